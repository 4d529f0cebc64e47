//! What a group has used.

use std::path::Path;

use super::{Cgroup, read};
use crate::error::{LabError, Result};

/// CPU time that a group has used since it was made, over all its processes, also those that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GroupCpu {
    /// In user mode, seconds. The kernel splits the total by the share of its ticks that fell in each mode.
    pub user_s: f64,
    /// In the kernel on behalf of the group, seconds.
    pub system_s: f64,
    /// All, seconds, measured at every switch of tasks.
    pub total_s: f64,
    /// Time for which tasks were kept from running by the quota, summed over CPUs, seconds.
    pub throttled_s: f64,
    /// Periods in which the quota was used up.
    pub nr_throttled: u64,
}

/// Memory of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupMemory {
    /// Charged to the group now, page cache included, bytes.
    pub current_bytes: u64,
    /// The most that was charged at one time, bytes; `None` where the kernel does not keep it (version 2 before Linux 5.19).
    pub peak_bytes: Option<u64>,
    /// Processes that the kernel killed because the limit was reached.
    pub oom_kills: u64,
}

impl Cgroup {
    /// CPU time used so far.
    ///
    /// Version 2's `cpu.stat` (microseconds) where a version 2 group is there; else version 1's `cpuacct.usage`
    /// (nanoseconds), split by `cpuacct.stat` (ticks).
    ///
    /// # Errors
    /// When there is no group, or it is gone.
    pub fn cpu(&self) -> Result<GroupCpu> {
        self.must_be_available("account for CPU time")?;
        let mut cpu = match &self.dirs.v2 {
            Some(dir) => cpu_v2(dir)?,
            None => self.cpu_v1()?,
        };
        if !self.dirs.v2_limits
            && let Some(dir) = self.dirs.of("cpu")
        {
            let file = dir.join("cpu.stat");
            let text = read(&file)?;
            cpu.throttled_s = number(&text, "throttled_time").unwrap_or(0) as f64 / 1e9;
            cpu.nr_throttled = number(&text, "nr_throttled").unwrap_or(0);
        }
        Ok(cpu)
    }

    fn cpu_v1(&self) -> Result<GroupCpu> {
        let dir = self.dirs.of("cpuacct").unwrap_or(Path::new("/"));
        let file = dir.join("cpuacct.usage");
        let total_ns: u64 = read(&file)?.parse().map_err(|_| not_understood(&file))?;
        let ticks = read(&dir.join("cpuacct.stat"))?;
        let (user, system) = (number(&ticks, "user").unwrap_or(0), number(&ticks, "system").unwrap_or(0));
        let total_s = total_ns as f64 / 1e9;
        // Ticks are too coarse for seconds, but their proportion is what the kernel itself would split by.
        let share = if user + system == 0 { 1.0 } else { user as f64 / (user + system) as f64 };
        Ok(GroupCpu { user_s: total_s * share, system_s: total_s * (1.0 - share), total_s, ..GroupCpu::default() })
    }

    /// Memory used.
    ///
    /// # Errors
    /// When there is no group, or it is gone.
    pub fn memory(&self) -> Result<GroupMemory> {
        self.must_be_available("account for memory")?;
        let dir = self.dirs.of("memory").unwrap_or(Path::new("/"));
        let v2 = self.dirs.v2_limits;
        let (current, peak, kills) = if v2 {
            ("memory.current", "memory.peak", "memory.events")
        } else {
            ("memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control")
        };
        let file = dir.join(current);
        Ok(GroupMemory {
            current_bytes: read(&file)?.parse().map_err(|_| not_understood(&file))?,
            peak_bytes: read(&dir.join(peak)).ok().and_then(|text| text.parse().ok()),
            oom_kills: number(&read(&dir.join(kills))?, "oom_kill").unwrap_or(0),
        })
    }

    fn must_be_available(&self, tried: &str) -> Result<()> {
        match &self.unavailable {
            None => Ok(()),
            Some(why) => Err(LabError::Unavailable {
                tried: format!("{tried} of a group"),
                why: why.clone(),
                remedy: "Without control groups, usage is known of single processes only".into(),
            }),
        }
    }
}

fn cpu_v2(dir: &Path) -> Result<GroupCpu> {
    let file = dir.join("cpu.stat");
    let text = read(&file)?;
    let seconds = |key| number(&text, key).map(|us| us as f64 / 1e6);
    Ok(GroupCpu {
        user_s: seconds("user_usec").ok_or_else(|| not_understood(&file))?,
        system_s: seconds("system_usec").ok_or_else(|| not_understood(&file))?,
        total_s: seconds("usage_usec").ok_or_else(|| not_understood(&file))?,
        throttled_s: seconds("throttled_usec").unwrap_or(0.0),
        nr_throttled: number(&text, "nr_throttled").unwrap_or(0),
    })
}

/// The number after a key, in a file of one key and number a line, as the kernel writes them of control groups.
pub fn number(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once(' ').filter(|(k, _)| *k == key)?.1.trim().parse().ok())
}

fn not_understood(file: &Path) -> LabError {
    LabError::Unavailable {
        tried: format!("read {}", file.display()),
        why: "it is not as the kernel documents it".into(),
        remedy: "Report this kernel's version".into(),
    }
}
