//! Whether the memory of a guest is open to merging with equal memory of others (KSM), read back from the host's kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tare_model::guest::ParityRow;

use crate::parity;

/// What the row of it is called, whoever read it back.
pub(crate) const RESOURCE: &str = "memory merging";
/// What is asked for, and what is granted.
const ON: &str = "on";
const OFF: &str = "off";
/// Where the kernel tells of processes.
const PROC: &str = "/proc";

/// Whether somebody read it back already.
pub(crate) fn is_read_back(rows: &[ParityRow]) -> bool {
    rows.iter().any(|row| row.resource == RESOURCE)
}

/// A row of a guest that was to be merged; `granted`: what was read back, by `note`.
pub(crate) fn read_back(granted: Option<bool>, note: String) -> ParityRow {
    parity::row(RESOURCE, ON, granted.map(|on| if on { ON } else { OFF }.to_owned()), note)
}

/// The row of a guest whose processes are the host's. `started`: the process that was started for it, which is the guest's
/// own first one or has that among its children.
pub(crate) fn row(started: Option<u32>) -> ParityRow {
    row_at(Path::new(PROC), started)
}

fn row_at(proc: &Path, started: Option<u32>) -> ParityRow {
    let Some(process) = started.map(|started| first_inside(proc, started)) else {
        return read_back(None, "no process of it runs on this host".to_owned());
    };
    let file = proc.join(process.to_string()).join("ksm_stat");
    match fs::read_to_string(&file).map(|text| flag(&text, "ksm_merge_any")) {
        Ok(Some(on)) => read_back(Some(on), format!("ksm_merge_any of process {process}, the guest's first")),
        Ok(None) => read_back(None, "the kernel does not tell: ksm_merge_any is there from Linux 6.12".to_owned()),
        Err(error) => read_back(None, format!("{} cannot be read: {error}", file.display())),
    }
}

/// Whether some memory of a process may be merged (`ksm_mergeable`, from Linux 6.12); `None` where the kernel does not report it.
pub(crate) fn is_mergeable(process: u32) -> Option<bool> {
    flag(&fs::read_to_string(format!("{PROC}/{process}/ksm_stat")).ok()?, "ksm_mergeable")
}

/// Whether a process, or what it starts, may be merged at all; `None` where the kernel does not report it.
#[cfg(feature = "conformance")]
pub(crate) fn is_open(process: u32) -> Option<bool> {
    let text = fs::read_to_string(format!("{PROC}/{process}/ksm_stat")).ok()?;
    Some(flag(&text, "ksm_mergeable")? || flag(&text, "ksm_merge_any")?)
}

/// The value of a line `name: yes` or `name: no`.
fn flag(ksm_stat: &str, name: &str) -> Option<bool> {
    let value = ksm_stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim() == "yes")
}

/// The last in the line of first children: what starts a guest (a runtime, a monitor, a small init) stays above it.
fn first_inside(proc: &Path, started: u32) -> u32 {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in fs::read_dir(proc).into_iter().flatten().flatten() {
        let Some(number) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let parent = fs::read_to_string(process.path().join("stat")).ok().and_then(|stat| parent(&stat));
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(number);
        }
    }
    // Removed on the way, so that a number that is used again meanwhile makes no circle.
    let mut inside = started;
    while let Some(first) = children.remove(&inside).and_then(|below| below.into_iter().min()) {
        inside = first;
    }
    inside
}

/// Field 4 of proc_pid_stat(5). The name before may have blanks and brackets in it.
pub(crate) fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes as the kernel tells of them: number, parent, `ksm_stat`.
    fn host(processes: &[(u32, u32, Option<&str>)]) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        for (number, parent, ksm_stat) in processes {
            let folder = proc.path().join(number.to_string());
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("stat"), format!("{number} (a) S b) S {parent} 1 1 0\n")).unwrap();
            if let Some(text) = ksm_stat {
                fs::write(folder.join("ksm_stat"), text).unwrap();
            }
        }
        fs::write(proc.path().join("meminfo"), "").unwrap();
        proc
    }

    #[test]
    fn the_process_inside_is_asked_and_not_the_one_that_started_it() {
        let (yes, no) = (Some("ksm_rmap_items 0\nksm_merge_any: yes\n"), Some("ksm_merge_any: no\n"));
        let proc = host(&[(10, 1, yes), (11, 10, yes), (12, 11, no), (13, 1, yes)]);
        let row = |started| row_at(proc.path(), Some(started));
        let inside = row(10);
        assert!(
            inside.granted.as_deref() == Some(OFF) && !inside.equal && inside.note.contains("process 12"),
            "{inside:?}"
        );
        assert!(row(13).equal && row(13).granted.as_deref() == Some(ON), "{:?}", row(13));
        assert!(is_read_back(&[inside]) && !is_read_back(&[]));
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_not_called_granted() {
        let proc = host(&[(10, 1, Some("ksm_rmap_items 0\n")), (20, 1, None)]);
        for (started, word) in [(Some(10), "6.12"), (Some(20), "cannot be read"), (None, "no process")] {
            let row = row_at(proc.path(), started);
            assert!(row.granted.is_none() && !row.equal && row.note.contains(word), "{row:?}");
        }
        // A process that is gone is asked for by its own number.
        assert_eq!(first_inside(proc.path(), 99), 99);
    }
}
