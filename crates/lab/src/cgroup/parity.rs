//! What was asked of a group against what the kernel says that it grants.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tare_model::ByteSize;
use tare_model::guest::{GuestSize, ParityRow};

use super::{Cgroup, PROCESSES, processes_below, read};
use crate::cpu::{affinity, format_cpu_list, online_cpus, parse_cpu_list};

/// What was read, and where.
struct Granted<T> {
    value: T,
    file: PathBuf,
}

impl Cgroup {
    /// Asks the kernel what this group is granted, and compares it with the size that was asked: the CPU
    /// quota, the CPU set, the memory limit and the limit on processes. A limit of a group above counts where it is the smaller one.
    pub fn parity(&self, size: &GuestSize, cpu_set: &[u32]) -> Vec<ParityRow> {
        let asked_set = if cpu_set.is_empty() { "any".to_owned() } else { format_cpu_list(cpu_set) };
        let asked_cpus = format!("{} CPUs", size.cpus);
        let asked_memory = size.memory.to_string();
        if let Some(why) = &self.unavailable {
            let row = |resource: &str, asked: String| row(resource, asked, Err(why.clone()));
            return vec![
                row("cpu quota", asked_cpus),
                row("cpu set", asked_set),
                row("memory limit", asked_memory),
                row("process limit", PROCESSES.to_string()),
            ];
        }
        vec![
            row("cpu quota", asked_cpus, self.granted_quota(size.cpus)),
            row("cpu set", asked_set, self.granted_set(cpu_set)),
            row("memory limit", asked_memory, self.granted_memory(size.memory)),
            row("process limit", PROCESSES.to_string(), self.granted_processes()),
        ]
    }

    fn granted_quota(&self, asked: u32) -> Judged {
        let v2 = self.dirs.v2_limits;
        let least = self.least("cpu", |dir| if v2 { quota_v2(dir) } else { quota_v1(dir) })?;
        let Some(Granted { value: micro_cpus, file }) = least else {
            return Ok((("no limit".into(), false), "no quota is set".into()));
        };
        let text = format!("{} CPUs", micro_cpus as f64 / 1e6);
        let equal = micro_cpus == u64::from(asked) * 1_000_000;
        Ok(((text, equal), format!("read from {}; time in CPUs, in periods of 100 ms", file.display())))
    }

    fn granted_set(&self, asked: &[u32]) -> Judged {
        let dir = self.dirs.of("cpuset").ok_or("there is no cpuset group")?;
        let names = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
        let file = names.map(|name| dir.join(name)).into_iter().find(|file| file.exists());
        let (granted, note) = match file {
            Some(file) => {
                let text = read(&file).map_err(|e| e.to_string())?;
                let granted = parse_cpu_list(&text).ok_or_else(|| format!("`{text}` is no list of CPUs"))?;
                (granted, format!("read from {}", file.display()))
            }
            None => self.bound_set()?,
        };
        let mut wanted = if asked.is_empty() { online_cpus().map_err(|e| e.to_string())? } else { asked.to_vec() };
        wanted.sort_unstable();
        wanted.dedup();
        Ok(((format_cpu_list(&granted), granted == wanted), note))
    }

    /// Where the group has no list of CPUs: those that its processes are bound to, all together.
    fn bound_set(&self) -> Result<(Vec<u32>, String), String> {
        let absent = "this host's control groups have no controller `cpuset`";
        // A process may end between the two looks.
        let bound: Vec<Vec<u32>> = processes_below(&self.paths).into_iter().filter_map(affinity).collect();
        if bound.is_empty() {
            return Err(format!("{absent}, and no process is in the group whose own binding could be read"));
        }
        let note = format!("{absent}: this is what its {} processes are bound to, and they could undo it", bound.len());
        let all: BTreeSet<u32> = bound.into_iter().flatten().collect();
        Ok((all.into_iter().collect(), note))
    }

    fn granted_memory(&self, asked: ByteSize) -> Judged {
        let v2 = self.dirs.v2_limits;
        let name = if v2 { "memory.max" } else { "memory.limit_in_bytes" };
        let least = self.least("memory", |dir| {
            let file = dir.join(name);
            let text = read(&file).ok()?;
            // "max" is no limit in version 2; in version 1 it is the largest number of whole pages.
            let value = text.parse().ok().filter(|bytes| *bytes < (1u64 << 62))?;
            Some(Granted { value, file })
        })?;
        let Some(Granted { value: bytes, file }) = least else {
            return Ok((("no limit".into(), false), "no limit is set".into()));
        };
        // The kernel counts whole pages and rounds down.
        let page = rustix::param::page_size() as u64;
        let equal = bytes <= asked.0 && asked.0 - bytes < page;
        let rounding = if bytes == asked.0 { String::new() } else { format!("; in whole pages of {page} B") };
        let swap = match self.swap() {
            Some(text) => format!("; {text}"),
            None => "; swap is not accounted for by this kernel".into(),
        };
        Ok(((ByteSize(bytes).to_string(), equal), format!("read from {}{rounding}{swap}", file.display())))
    }

    fn granted_processes(&self) -> Judged {
        if self.dirs.of("pids").is_none_or(|dir| !dir.join("pids.max").exists()) {
            return Err("this host's control groups have no controller `pids`: processes are not limited".into());
        }
        let least = self.least("pids", |dir| {
            let file = dir.join("pids.max");
            // "max" is no limit.
            let value = read(&file).ok()?.parse().ok()?;
            Some(Granted { value, file })
        })?;
        let Some(Granted { value, file }) = least else {
            return Ok((("no limit".into(), false), "no limit is set".into()));
        };
        let note = format!("read from {}; processes and their threads", file.display());
        Ok(((value.to_string(), value == PROCESSES), note))
    }

    fn swap(&self) -> Option<String> {
        let dir = self.dirs.of("memory")?;
        if self.dirs.v2_limits {
            return Some(format!("swap at most {} B", read(&dir.join("memory.swap.max")).ok()?));
        }
        Some(format!("memory and swap together at most {} B", read(&dir.join("memory.memsw.limit_in_bytes")).ok()?))
    }

    /// The smallest limit of this group and those above it, up to where the hierarchy is mounted. An
    /// ancestor without the file (the root) limits nothing.
    fn least(
        &self,
        controller: &str,
        limit: impl Fn(&Path) -> Option<Granted<u64>>,
    ) -> Result<Option<Granted<u64>>, String> {
        let dir = self.dirs.of(controller).ok_or_else(|| format!("there is no {controller} group"))?;
        if !dir.exists() {
            return Err(format!("the group {} is gone", dir.display()));
        }
        let mount = self.mounts.iter().find(|mount| dir.starts_with(mount));
        let inside = dir.ancestors().take_while(|dir| mount.is_none_or(|mount| dir.starts_with(mount)));
        Ok(inside.filter_map(limit).min_by_key(|granted| granted.value))
    }
}

/// The value as text, whether it is what was asked, and where it was read; or why it could not be.
type Judged = Result<((String, bool), String), String>;

fn row(resource: &str, asked: String, judged: Judged) -> ParityRow {
    let resource = resource.to_owned();
    match judged {
        Ok(((granted, equal), note)) => ParityRow { resource, asked, granted: Some(granted), equal, note },
        Err(note) => ParityRow { resource, asked, granted: None, equal: false, note },
    }
}

/// In millionths of a CPU.
fn quota(quota_us: u64, period_us: u64, file: PathBuf) -> Option<Granted<u64>> {
    let value = quota_us.checked_mul(1_000_000)?.checked_div(period_us)?;
    Some(Granted { value, file })
}

fn quota_v2(dir: &Path) -> Option<Granted<u64>> {
    let file = dir.join("cpu.max");
    let text = read(&file).ok()?;
    let (limit, period) = text.split_once(' ')?;
    quota(limit.parse().ok()?, period.parse().ok()?, file)
}

fn quota_v1(dir: &Path) -> Option<Granted<u64>> {
    let file = dir.join("cpu.cfs_quota_us");
    // -1 is no limit.
    let limit = read(&file).ok()?.parse().ok()?;
    quota(limit, read(&dir.join("cpu.cfs_period_us")).ok()?.parse().ok()?, file)
}
