//! The memory of this host: what is there, who waits for it, and the reserve that is kept.

use std::fs;
use std::io;

use tare_model::density::StopKind;

use crate::{MemoryError, Result};

const MEMINFO: &str = "/proc/meminfo";
const VMSTAT: &str = "/proc/vmstat";
const PRESSURE: &str = "/proc/pressure/memory";

/// Pages that a host may write to swap before it is said to swap: cold pages of others, that no guest drove out.
const SWAPPED_MOST: u64 = 256;

/// The memory of this host at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostNow {
    /// All memory of the host, bytes.
    pub total_bytes: u64,
    /// What programs could still take without swapping, as the kernel reckons, bytes.
    pub available_bytes: u64,
    /// Unused, bytes.
    pub free_bytes: u64,
    /// Buffers of block devices, bytes.
    pub buffers_bytes: u64,
    /// Cached files, bytes.
    pub cached_bytes: u64,
    /// All swap, bytes; 0: there is none.
    pub swap_total_bytes: u64,
    /// Pages read from swap since the host started.
    pub swap_in_pages: u64,
    /// Pages written to swap since the host started.
    pub swap_out_pages: u64,
    /// Share of time (0 to 1) in which some task waited for memory, over 10 s; `None` where the kernel does not tell.
    pub pressure: Option<f64>,
    /// Processes that the kernel has killed for memory since the host started, those of limited groups among them.
    pub oom_kills: u64,
}

impl HostNow {
    /// Looks at this host.
    ///
    /// # Errors
    /// When `/proc` cannot be read or understood.
    pub fn read() -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| MemoryError::file("read", path, error));
        let pressure = match fs::read_to_string(PRESSURE) {
            Ok(text) => Some(pressure(&text)?),
            // Without it in the kernel, and with it switched off.
            Err(error) if is_unsupported(&error) => None,
            Err(error) => return Err(MemoryError::file("read", PRESSURE, error)),
        };
        let mut now = Self { pressure, ..memory(&read(MEMINFO)?)? };
        counted(&read(VMSTAT)?, &mut now)?;
        Ok(now)
    }

    /// Whether this much more can be touched with the reserve still there. Zero always fits above the reserve.
    pub const fn fits(&self, bytes: u64, reserve_bytes: u64) -> bool {
        bytes.saturating_add(reserve_bytes) <= self.available_bytes
    }
}

/// Whether the kernel has no account of pressure: not built in, or not switched on.
fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::EOPNOTSUPP)
}

/// When load and guests must give way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guard {
    /// Memory that must stay available, bytes.
    pub reserve_bytes: u64,
    /// Share of time (0 to 1) in which some task may wait for memory, over 10 s.
    pub pressure: f64,
}

impl Guard {
    /// Whether it is time to stop, and why, with the figures. `start` is the host before the first guest.
    pub fn check(&self, start: &HostNow, now: &HostNow) -> Option<(StopKind, String)> {
        let killed = now.oom_kills.saturating_sub(start.oom_kills);
        if killed > 0 {
            let what = if killed == 1 { "a process" } else { "processes" };
            return Some((StopKind::Killed, format!("the kernel killed {what} for memory ({killed} since the start)")));
        }
        let swapped = now.swap_out_pages.saturating_sub(start.swap_out_pages);
        if swapped > SWAPPED_MOST {
            let detail = format!("the host wrote {swapped} pages to swap since the start; {SWAPPED_MOST} are let pass");
            return Some((StopKind::Swap, detail));
        }
        if now.available_bytes < self.reserve_bytes {
            let (left, reserve) = (mib(now.available_bytes), mib(self.reserve_bytes));
            let detail = format!("{left} of the host's {} were available; {reserve} are kept", mib(now.total_bytes));
            return Some((StopKind::Memory, detail));
        }
        let pressure = now.pressure.filter(|share| *share > self.pressure)?;
        let detail = format!(
            "tasks waited for memory {:.1} % of the last 10 s; {:.1} % are let pass",
            pressure * 100.0,
            self.pressure * 100.0
        );
        Some((StopKind::Pressure, detail))
    }
}

/// Bytes as people read them.
fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Figures of `/proc/meminfo`.
pub(crate) fn memory(text: &str) -> Result<HostNow> {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map(|kib| kib * 1024)
    };
    let must = |name, expected| of(name).ok_or_else(|| form(MEMINFO, text, expected));
    Ok(HostNow {
        total_bytes: must("MemTotal", "a line `MemTotal: N kB`")?,
        available_bytes: must("MemAvailable", "a line `MemAvailable: N kB`")?,
        free_bytes: must("MemFree", "a line `MemFree: N kB`")?,
        buffers_bytes: must("Buffers", "a line `Buffers: N kB`")?,
        cached_bytes: must("Cached", "a line `Cached: N kB`")?,
        // Not there in a kernel that cannot swap.
        swap_total_bytes: of("SwapTotal").unwrap_or(0),
        ..HostNow::default()
    })
}

/// Counts of `/proc/vmstat`. A kernel that cannot swap counts no swapped pages, and one before 4.13 no kills.
fn counted(text: &str, now: &mut HostNow) -> Result<()> {
    let of = |name: &str| -> Result<u64> {
        let mut rows = text.lines().filter_map(|line| line.split_once(' '));
        let Some((_, count)) = rows.find(|(row, _)| *row == name) else { return Ok(0) };
        count.trim().parse().map_err(|_| form(VMSTAT, count, "a count"))
    };
    now.swap_in_pages = of("pswpin")?;
    now.swap_out_pages = of("pswpout")?;
    now.oom_kills = of("oom_kill")?;
    Ok(())
}

/// `avg10` of the line `some` of `/proc/pressure/memory`, as a share.
fn pressure(text: &str) -> Result<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "));
    let percent = some.and_then(|rest| rest.split(' ').find_map(|word| word.strip_prefix("avg10=")));
    let percent = percent.and_then(|percent| percent.parse::<f64>().ok()).filter(|percent| percent.is_finite());
    percent.map(|percent| percent / 100.0).ok_or_else(|| form(PRESSURE, text, "a line `some avg10=PERCENT ...`"))
}

fn form(path: &str, held: &str, expected: &'static str) -> MemoryError {
    MemoryError::Form { path: path.into(), held: held.chars().take(80).collect(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str = "MemTotal:       24684096 kB\nMemFree:        20515820 kB\nMemAvailable:   23851188 kB\n\
                          Buffers:           71532 kB\nCached:          2630884 kB\nSwapCached:            0 kB\n\
                          SwapTotal:       1048572 kB\nHugePages_Total:       0\n";
    const COUNTS: &str = "nr_free_pages 5128955\npswpin 7\npswpout 11\noom_kill 39\nthp_zero_page_alloc 0\n";
    const WAITED: &str = "some avg10=12.50 avg60=0.00 avg300=0.00 total=11287086\n\
                          full avg10=3.00 avg60=0.00 avg300=0.00 total=4778663\n";
    const GIB: u64 = 1 << 30;

    fn host() -> HostNow {
        let mut now = memory(MEMORY).unwrap();
        counted(COUNTS, &mut now).unwrap();
        HostNow { pressure: Some(pressure(WAITED).unwrap()), ..now }
    }

    #[test]
    fn the_kernels_texts_are_read() {
        let now = host();
        assert_eq!((now.total_bytes, now.available_bytes), (24_684_096 << 10, 23_851_188 << 10));
        assert_eq!(
            (now.free_bytes, now.buffers_bytes, now.cached_bytes),
            (20_515_820 << 10, 71_532 << 10, 2_630_884 << 10)
        );
        assert_eq!((now.swap_total_bytes, now.swap_in_pages, now.swap_out_pages), (1_048_572 << 10, 7, 11));
        assert_eq!((now.oom_kills, now.pressure), (39, Some(0.125)));
    }

    #[test]
    fn a_kernel_without_swap_counts_none_and_other_texts_are_refused() {
        let plain = MEMORY.replace("SwapTotal", "Other");
        assert_eq!(memory(&plain).unwrap().swap_total_bytes, 0);
        let mut now = HostNow::default();
        counted("nr_free_pages 5\n", &mut now).unwrap();
        assert_eq!((now.swap_out_pages, now.oom_kills), (0, 0));
        assert!(memory("").is_err() && memory(&MEMORY.replace(" kB", "")).is_err());
        assert!(counted("pswpout many\n", &mut now).is_err());
        for wrong in ["", "full avg10=1.00\n", "some avg10=x\n", "some avg60=1.0\n", "some avg10=NaN\n"] {
            assert!(pressure(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn this_host_is_read() {
        let now = HostNow::read().unwrap();
        assert!(now.available_bytes <= now.total_bytes && now.total_bytes > 0, "{now:?}");
        assert!(now.fits(0, now.available_bytes) && !now.fits(1, now.available_bytes));
        assert!(!now.fits(u64::MAX, u64::MAX));
    }

    #[test]
    fn a_host_that_is_well_goes_on() {
        let guard = Guard { reserve_bytes: 2 * GIB, pressure: 0.4 };
        let start = host();
        assert_eq!(guard.check(&start, &start), None, "what happened before the start does not count");
        let some = HostNow { swap_out_pages: start.swap_out_pages + SWAPPED_MOST, pressure: None, ..start };
        assert_eq!(guard.check(&start, &some), None);
    }

    #[test]
    fn each_way_to_harm_is_reported_with_its_figures() {
        let guard = Guard { reserve_bytes: 2 * GIB, pressure: 0.4 };
        let start = host();
        let stop = |now: HostNow| guard.check(&start, &now).unwrap();
        let (kind, detail) = stop(HostNow { available_bytes: GIB, ..start });
        assert!(kind == StopKind::Memory && detail.contains("1024 MiB") && detail.contains("2048 MiB"), "{detail}");
        let (kind, detail) = stop(HostNow { swap_out_pages: 11 + 300, ..start });
        assert!(kind == StopKind::Swap && detail.contains("300 pages"), "{detail}");
        let (kind, detail) = stop(HostNow { pressure: Some(0.625), ..start });
        assert!(kind == StopKind::Pressure && detail.contains("62.5 %") && detail.contains("40.0 %"), "{detail}");
        // A kill is the worst of what may have happened at once.
        let all = HostNow { oom_kills: 41, available_bytes: 0, swap_out_pages: 5000, ..start };
        let (kind, detail) = stop(all);
        assert!(kind == StopKind::Killed && detail.contains("2 since"), "{detail}");
    }
}
