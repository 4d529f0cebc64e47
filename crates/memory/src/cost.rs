//! What processes take of the host's memory, and what merging saved in them.
//!
//! Sizes come from one walk of the kernel's over a process's page tables (`/proc/PID/smaps`). The number of users of a
//! merged page decides who pays for it: each of them saves `1 - 1/users` of it, so that all users together save what the kernel
//! counts as saved. Which of it was empty, code or data is found on a bounded random sample of pages, and scaled so that the
//! kinds add up to what the kernel counts.

mod sample;
mod smaps;
mod stat;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::Path;

use tare_model::merging::SavedFrom;

use self::sample::Kinds;
use self::stat::Host;
use crate::{MemoryError, Result};

pub(crate) use self::stat::parse as merger_of;
pub use self::stat::{Merger, mergers, sizes};

/// What processes take of the host's memory, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Resident, bytes; a merged page counts once for each place that uses it. The kernel's own page of zeros counts nowhere.
    pub resident_bytes: u64,
    /// Resident and used by nobody else, bytes.
    pub unique_bytes: u64,
    /// Their part of what they share with each other and with others, bytes.
    pub shared_bytes: u64,
    /// What merging saved in them, by what it was.
    pub saved: SavedFrom,
    /// Virtual sizes, bytes.
    pub virtual_bytes: u64,
}

/// What these processes take. One that goes meanwhile is left out, and so is one that has no memory of its own any more.
///
/// It takes about 20 ms for each GiB that is resident in small pages, mostly the kernel's.
///
/// # Errors
/// When `/proc` of a process that is there cannot be read or understood.
pub fn of_processes(pids: &[u32]) -> Result<Cost> {
    let host = stat::host()?;
    let mut cost = Cost::default();
    let mut kinds = Kinds::default();
    let (mut merging, mut zero) = (0, 0);
    for &pid in pids {
        let Some(text) = process_file(pid, "smaps")? else { continue };
        let mappings = smaps::parse(&text).map_err(|held| MemoryError::Form {
            path: format!("/proc/{pid}/smaps").into(),
            held,
            expected: "mappings with sizes in kB",
        })?;
        for mapping in &mappings {
            cost.virtual_bytes += mapping.size;
            cost.resident_bytes += mapping.rss;
            cost.unique_bytes += mapping.private;
            cost.shared_bytes += mapping.pss.saturating_sub(mapping.private);
        }
        if host.is_quiet() {
            continue;
        }
        let Some(merger) = stat::of_process(pid)? else { continue };
        merging += merger.merging_pages;
        zero += merger.zero_pages;
        kinds.add(&sample::of_process(pid, &mappings, merger.merge_any, host.page));
    }
    cost.saved = saved(&host, merging, zero, &kinds);
    Ok(cost)
}

/// Splits what the kernel counts as saved: of the merged pages the part that these processes have of all that use them,
/// by the kinds of the sample; of those merged with the kernel's own page of zeros exactly theirs.
fn saved(host: &Host, merging: u64, zero: u64, kinds: &Kinds) -> SavedFrom {
    let using = host.pages_shared + host.pages_sharing;
    let part = if using == 0 { 0.0 } else { (merging as f64 / using as f64).min(1.0) };
    let pages = host.pages_sharing as f64 * part;
    let bytes = |pages: f64| (pages.round() as u64) * host.page;
    let all = bytes(pages);
    let [zero_share, code_share, data_share] = kinds.shares();
    let from = |share: f64| bytes(pages * share);
    let (empty, code) = (from(zero_share), from(code_share));
    let data = from(data_share).min(all.saturating_sub(empty + code));
    // Whatever is left, so that the kinds add up to all.
    let unknown = all.saturating_sub(empty + code + data);
    // Of shares that make up everything, nothing but rounding is left.
    let (data, unknown) = if kinds.is_known() { (data + unknown, 0) } else { (data, unknown) };
    let zero_bytes = empty + zero * host.page;
    SavedFrom { zero_bytes, code_bytes: code, data_bytes: data, unknown_bytes: unknown }
}

/// A file of a process; `None` when the process is gone.
fn process_file(pid: u32, name: &str) -> Result<Option<String>> {
    let path = Path::new("/proc").join(pid.to_string()).join(name);
    match fs::read(&path) {
        // Names of files may be anything.
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(MemoryError::file("read", path, error)),
    }
}

/// Whether an error says that a process has ended.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}
