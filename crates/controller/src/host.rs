//! The memory of the host that carries the guests, as a run looks at it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tare_lab::keyed_number;
use tare_memory::Kernel;
use tare_memory::cost::{self, Cost};
use tare_memory::host::HostNow;

/// How a run looks at this host's memory. The one that comes with tare reads the kernel's files; tests put a host in its
/// place that runs short when they want it to.
pub trait HostAccess: Send + Sync {
    /// Merging of memory on this host.
    fn kernel(&self) -> Kernel;

    /// The host's memory now.
    ///
    /// # Errors
    /// What could not be read, and why.
    fn now(&self) -> Result<HostNow, String>;

    /// What these processes take of it.
    ///
    /// # Errors
    /// What could not be read, and why.
    fn cost(&self, pids: &[u32]) -> Result<Cost, String>;
}

/// This host.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisHost;

impl HostAccess for ThisHost {
    fn kernel(&self) -> Kernel {
        Kernel::host()
    }

    fn now(&self) -> Result<HostNow, String> {
        HostNow::read().map_err(|error| error.to_string())
    }

    fn cost(&self, pids: &[u32]) -> Result<Cost, String> {
        cost::of_processes(pids).map_err(|error| error.to_string())
    }
}

/// CPU seconds that the group with these directories has used; `None` where none of them tells.
pub fn cpu_s(directories: &[PathBuf]) -> Option<f64> {
    let version_2 = |directory: &PathBuf| {
        let text = std::fs::read_to_string(directory.join("cpu.stat")).ok()?;
        Some(keyed_number(&text, "usage_usec")? as f64 / 1e6)
    };
    let version_1 = |directory: &PathBuf| {
        let text = std::fs::read_to_string(directory.join("cpuacct.usage")).ok()?;
        Some(text.trim().parse::<u64>().ok()? as f64 / 1e9)
    };
    directories.iter().find_map(version_2).or_else(|| directories.iter().find_map(version_1))
}

/// How a scale-up looks at its host.
#[derive(Clone)]
pub struct Watched {
    host: Arc<dyn HostAccess>,
    /// The groups in which all guests lie; none where there are no such groups.
    groups: Vec<PathBuf>,
}

impl Watched {
    /// The host of guests that lie in these groups.
    pub fn new(host: Arc<dyn HostAccess>, groups: Vec<PathBuf>) -> Self {
        Self { host, groups }
    }

    /// The host's memory now, in which those are counted as killed that were killed among the guests: what another program's own
    /// limit ends is no harm of theirs, and when memory runs out for all, that is seen by what is available. Only where the guests
    /// lie in no groups every kill of the host counts.
    ///
    /// # Errors
    /// What could not be read, and why.
    pub fn now(&self) -> Result<HostNow, String> {
        let killed = (!self.groups.is_empty()).then(|| tare_lab::oom_kills_in(&self.groups).unwrap_or(0));
        self.host.now().map(|now| HostNow { oom_kills: killed.unwrap_or(now.oom_kills), ..now })
    }

    /// The same with the kills that were counted `before`: for that, each guest's group is looked at.
    ///
    /// # Errors
    /// What could not be read, and why.
    pub fn again(&self, before: &HostNow) -> Result<HostNow, String> {
        self.host.now().map(|now| HostNow { oom_kills: before.oom_kills, ..now })
    }
}

/// Virtual and resident size of processes, bytes: cheap enough to be asked every second.
pub fn sizes(pids: &[u32]) -> (u64, u64) {
    let page = rustix::param::page_size() as u64;
    let one = |pid: &u32| {
        let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("statm")).ok()?;
        let mut fields = text.split_whitespace().map_while(|field| field.parse::<u64>().ok());
        Some((fields.next()? * page, fields.next()? * page))
    };
    pids.iter().filter_map(one).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of a control group as the kernel shows it.
    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn cpu_of_a_group_is_read_in_both_versions() {
        let unified = group(&[("cpu.stat", "usage_usec 2500000\n")]);
        let cpuacct = group(&[("cpuacct.usage", "1500000000\n"), ("cpu.stat", "nr_periods 1\nthrottled_time 0\n")]);
        let of = |all: &[&tempfile::TempDir]| all.iter().map(|one| one.path().to_owned()).collect::<Vec<_>>();
        assert_eq!((cpu_s(&of(&[&unified])), cpu_s(&of(&[&cpuacct]))), (Some(2.5), Some(1.5)));
        assert_eq!(cpu_s(&of(&[&cpuacct, &unified])), Some(2.5), "the finer of the two");
        assert_eq!(cpu_s(&[]), None);
    }

    #[test]
    fn what_is_killed_elsewhere_counts_only_where_guests_have_no_groups() {
        struct Elsewhere;
        impl HostAccess for Elsewhere {
            fn kernel(&self) -> Kernel {
                Kernel::host()
            }
            fn now(&self) -> Result<HostNow, String> {
                Ok(HostNow { oom_kills: 40, available_bytes: 7, ..HostNow::default() })
            }
            fn cost(&self, _: &[u32]) -> Result<Cost, String> {
                Ok(Cost::default())
            }
        }
        let own = group(&[("memory.events", "oom_kill 2\n")]);
        let killed = |groups| Watched::new(Arc::new(Elsewhere), groups).now().unwrap().oom_kills;
        assert_eq!((killed(Vec::new()), killed(vec![own.path().to_owned()])), (40, 2));
        let not_made = own.path().join("guest");
        assert_eq!(killed(vec![not_made]), 0, "a group that is not there has killed nobody");
    }

    #[test]
    fn sizes_of_processes_add_up_and_one_that_is_gone_has_none() {
        let own = std::process::id();
        let (virtual_bytes, resident) = sizes(&[own]);
        assert!(virtual_bytes >= resident && resident > 0);
        assert_eq!(sizes(&[u32::MAX]), (0, 0));
    }
}
