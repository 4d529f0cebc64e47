//! The probe inside a guest.

use std::path::Path;

use tare_model::Span;
use tare_model::sample::{Sample, Source};

use crate::ProbeError;
use crate::collector::Catalog;
use crate::host::system;
use crate::sampler::{Collectors, Sampler, Settings};
use crate::stat::StatCollector;

/// Samples a guest from inside, as its own kernel tells: CPU by kind with steal, run queue, load, memory, swap.
///
/// Series are named as those of [`HostProbe`](crate::HostProbe), of [`Source::InGuest`]. In a container they are the
/// host's own figures, in a sandbox its emulation of them: they show what a program inside would believe, and verdicts
/// never rest on them. Stamps are CLOCK_MONOTONIC of the guest's kernel; a guest with a kernel of its own has its own
/// clock, and whoever merges the samples with the host's must translate.
pub struct GuestProbe {
    sampler: Sampler,
}

impl GuestProbe {
    /// Starts sampling; the first sample is taken when this returns.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read or the thread cannot be started.
    pub fn start(name: &str, interval: Span) -> Result<Self, ProbeError> {
        Self::start_in(Path::new("/"), name, interval)
    }

    fn start_in(root: &Path, name: &str, interval: Span) -> Result<Self, ProbeError> {
        let source = Source::InGuest(name.to_owned());
        let mut catalog = Catalog::default();
        let stat = StatCollector::new(root, &source, [&[], &[]], &mut catalog)?;
        let others = system(root, &source, &mut catalog);
        let settings = Settings {
            name: "probe-guest".to_owned(),
            source,
            interval_ns: interval.ns,
            instants: Vec::new(),
            cpus: Vec::new(),
        };
        let collectors = Collectors { together: vec![Box::new(stat)], others };
        Ok(Self { sampler: Sampler::start(settings, catalog, collectors)? })
    }

    /// Takes a last sample and ends: the samples in the order of time, and the CPU that the probe's own thread spent,
    /// nanoseconds.
    ///
    /// # Errors
    /// When the thread died.
    pub fn stop(self) -> Result<(Vec<Sample>, u64), ProbeError> {
        self.sampler.stop().map(|data| (data.samples, data.cpu_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_with_a_sparse_proc_is_sampled_as_far_as_it_goes() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        std::fs::create_dir(&proc).unwrap();
        // As gVisor writes them: zeros, and fewer lines than Linux has.
        std::fs::write(proc.join("stat"), "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nintr 0\nctxt 0\n")
            .unwrap();
        std::fs::write(proc.join("meminfo"), "MemTotal: 2048 kB\nMemFree: 1024 kB\nMemAvailable: 1536 kB\n").unwrap();
        let probe = GuestProbe::start_in(root.path(), "sandbox", Span::from_millis(10)).unwrap();
        let (samples, _) = probe.stop().unwrap();
        let value = |series: &str| samples.iter().find(|sample| sample.series == series).map(|sample| sample.value);
        assert_eq!(value("memory_available_bytes"), Some(1536.0 * 1024.0));
        assert_eq!(value("cpu_steal_s"), Some(0.0));
        assert_eq!(value("swap_free_bytes"), None);
        assert!(samples.iter().all(|sample| sample.source == Source::InGuest("sandbox".into())));
    }

    #[test]
    fn without_proc_the_error_says_which_file_and_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let error = GuestProbe::start_in(root.path(), "g", Span::from_millis(10)).err().unwrap().to_string();
        assert!(error.contains("proc/stat") && error.contains("mounted"), "{error}");
    }
}
