//! What the kernel counts of merging, for the host and for each process.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::{is_gone, process_file};
use crate::{Guests, MemoryError, Result};

const KSM: &str = "/sys/kernel/mm/ksm";

/// What the kernel counts of merging on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Host {
    /// Pages that are kept once for others.
    pub pages_shared: u64,
    /// Places that use them beyond the first.
    pub pages_sharing: u64,
    /// Places that use the kernel's own page of zeros.
    pub zero_pages: u64,
    /// Bytes in a page.
    pub page: u64,
}

impl Host {
    /// Whether nothing was saved.
    pub const fn is_quiet(&self) -> bool {
        self.pages_sharing + self.zero_pages == 0
    }
}

/// What is counted now; nothing on a kernel that cannot merge.
pub(super) fn host() -> Result<Host> {
    let count = |name: &str| -> Result<u64> {
        let path = Path::new(KSM).join(name);
        match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().map_err(|_| MemoryError::Form {
                path,
                held: text.chars().take(80).collect(),
                expected: "a count",
            }),
            Err(error) if is_gone(&error) => Ok(0),
            Err(error) => Err(MemoryError::file("read", path, error)),
        }
    };
    Ok(Host {
        pages_shared: count("pages_shared")?,
        pages_sharing: count("pages_sharing")?,
        zero_pages: count("ksm_zero_pages")?,
        page: rustix::param::page_size() as u64,
    })
}

/// A process that is open to merging, or has merged pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Merger {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel keeps it (15 characters).
    pub name: String,
    /// Whether all its memory is open to merging (`PR_SET_MEMORY_MERGE`); before Linux 6.12 the kernel does not tell.
    pub merge_any: Option<bool>,
    /// Pages of it that are merged with others.
    pub merging_pages: u64,
    /// Empty pages of it that are merged with the kernel's own page of zeros.
    pub zero_pages: u64,
    /// Pages of it that the kernel keeps books on.
    pub rmap_items: u64,
    /// Bytes won minus bytes of bookkeeping, as the kernel reckons.
    pub profit_bytes: i64,
}

/// All processes of this host that are open to merging or have merged pages, those that merge most first. Those that this
/// user may not look at are left out.
///
/// # Errors
/// When `/proc` cannot be listed, or what it says is not understood.
pub fn mergers() -> Result<Vec<Merger>> {
    let entries = fs::read_dir("/proc").map_err(|error| MemoryError::file("list", "/proc", error))?;
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if let Some(found) = of_process(pid)?
            && found.is_open()
        {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            all.push(Merger { name: name.trim_end().to_owned(), ..found });
        }
    }
    all.sort_by_key(|merger| (std::cmp::Reverse(merger.merging_pages + merger.zero_pages), merger.pid));
    Ok(all)
}

/// Virtual and resident sizes of these processes, as rules ask for them. What they were promised is not known here.
///
/// # Errors
/// When `/proc` of a process that is there cannot be read or understood.
pub fn sizes(pids: &[u32]) -> Result<Guests> {
    let page = rustix::param::page_size() as u64;
    let mut guests = Guests::default();
    for &pid in pids {
        let Some(text) = process_file(pid, "statm")? else { continue };
        let mut pages = text.split_ascii_whitespace().map_while(|field| field.parse::<u64>().ok());
        let (Some(size), Some(resident)) = (pages.next(), pages.next()) else {
            let path = format!("/proc/{pid}/statm").into();
            return Err(MemoryError::Form { path, held: text.chars().take(80).collect(), expected: "counts of pages" });
        };
        guests.virtual_bytes += size * page;
        guests.resident_bytes += resident * page;
    }
    Ok(guests)
}

impl Merger {
    const fn is_open(&self) -> bool {
        matches!(self.merge_any, Some(true)) || self.merging_pages + self.zero_pages + self.rmap_items > 0
    }
}

/// What the kernel counts of one process, without its name; `None` when it is gone, or may not be looked at. On a kernel
/// that does not count (before 6.1) everything is 0.
pub(super) fn of_process(pid: u32) -> Result<Option<Merger>> {
    let text = match process_file(pid, "ksm_stat") {
        Ok(Some(text)) => text,
        Ok(None) if Path::new("/proc").join(pid.to_string()).exists() => String::new(),
        Ok(None) => return Ok(None),
        Err(MemoryError::File { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    Ok(Some(Merger { pid, ..parse(&text) }))
}

/// Lines such as `ksm_merging_pages 7` and `ksm_merge_any: yes`. What a kernel does not tell is 0.
pub fn parse(text: &str) -> Merger {
    let mut found = Merger::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let count = || value.trim().parse().unwrap_or(0);
        match name {
            "ksm_rmap_items" => found.rmap_items = count(),
            "ksm_zero_pages" => found.zero_pages = count(),
            "ksm_merging_pages" => found.merging_pages = count(),
            "ksm_process_profit" => found.profit_bytes = value.trim().parse().unwrap_or(0),
            "ksm_merge_any:" => found.merge_any = Some(value.trim() == "yes"),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_merges_is_read_from_old_and_new_kernels() {
        let new = "ksm_rmap_items 9\nksm_zero_pages 3\nksm_merging_pages 7\nksm_process_profit -12\nksm_merge_any: yes\n\
                   ksm_mergeable: yes\n";
        let found = parse(new);
        assert_eq!((found.rmap_items, found.zero_pages, found.merging_pages), (9, 3, 7));
        assert_eq!((found.profit_bytes, found.merge_any, found.is_open()), (-12, Some(true), true));
        let old = parse("ksm_rmap_items 0\nksm_merging_pages 0\nksm_process_profit 0\n");
        assert!(old.merge_any.is_none() && !old.is_open());
    }

    #[test]
    fn a_process_that_is_gone_is_none_and_this_one_is_there() {
        assert_eq!(of_process(u32::MAX >> 1).unwrap(), None);
        let sizes = sizes(&[std::process::id(), u32::MAX >> 1]).unwrap();
        assert!(sizes.resident_bytes > 0 && sizes.virtual_bytes > sizes.resident_bytes, "{sizes:?}");
        assert_eq!(of_process(std::process::id()).unwrap().map(|found| found.pid), Some(std::process::id()));
    }
}
