//! Page faults of the processes of a group.

use std::fs;
use std::ops::Sub;
use std::path::PathBuf;

use super::end;

/// Page faults of processes, of their threads and of their children that have ended (`minflt` to `cmajflt` of proc_pid_stat(5)). The kernel counts
/// them exactly there, while those of `memory.stat` lag behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageFaults {
    /// All of them.
    pub all: u64,
    /// Those for which something was read from a disk.
    pub major: u64,
}

impl Sub for PageFaults {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { all: self.all.saturating_sub(before.all), major: self.major.saturating_sub(before.major) }
    }
}

/// What the processes have had so far that are in the groups with these directories; `None` where there is none.
pub fn page_faults_in(directories: &[PathBuf]) -> Option<PageFaults> {
    let stats = end::processes_below(directories).into_iter().filter_map(|process| {
        // One that has ended meanwhile is counted with its parent's children.
        of_stat(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    });
    stats.reduce(|sum, one| PageFaults { all: sum.all + one.all, major: sum.major + one.major })
}

/// Fields 10 to 13 of the file; the name before may hold blanks and brackets.
fn of_stat(stat: &str) -> Option<PageFaults> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut numbers = after_name.split_ascii_whitespace().skip(7).map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let [minor, of_children, major, major_of_children] = [next()?, next()?, next()?, next()?];
    let major = major + major_of_children;
    Some(PageFaults { all: minor + of_children + major, major })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_those_of_a_process_and_of_its_children() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 100 20 3 4 5 6";
        assert_eq!(of_stat(stat), Some(PageFaults { all: 127, major: 7 }));
        assert_eq!(of_stat("7 (x) S 1"), None);
        assert_eq!(page_faults_in(&["/nonexistent".into()]), None);
        let later = PageFaults { all: 130, major: 7 } - PageFaults { all: 127, major: 7 };
        assert_eq!(later, PageFaults { all: 3, major: 0 });
    }

    #[test]
    fn what_a_process_touches_is_counted() {
        let own = || of_stat(&fs::read_to_string("/proc/thread-self/stat").unwrap()).unwrap();
        let before = own();
        // A thousand pages that nobody has touched.
        let touched = vec![1_u8; 1000 * 4096];
        assert!(touched.iter().map(|&byte| u64::from(byte)).sum::<u64>() > 0);
        assert!((own() - before).all > 0);
    }
}
