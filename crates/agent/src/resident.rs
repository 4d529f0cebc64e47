//! How much memory a command and its children have had in use at most.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::children;

/// First and longest pause between two searches for children, each twice as long as the one before: children come soon
/// after the start if they do, and a search looks at every process of the guest, which may be all of the host's.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(30));

/// A process and those below it.
#[derive(Debug)]
pub struct Family {
    head: i32,
    /// `/proc/PID/status` of each, which stays that of this process alone should its number be given to another.
    members: HashMap<i32, File>,
    search_at: Instant,
    pause: Duration,
}

impl Family {
    /// That of a process that was just started.
    pub fn of(head: u32) -> Self {
        let head = head.cast_signed();
        Self { head, members: HashMap::new(), search_at: Instant::now(), pause: PAUSES.0 }
    }

    /// The largest resident sizes of all that live, added up, bytes; `None` where `/proc` tells of none.
    ///
    /// It is the peak (`VmHWM`) and not the present size: that falls when pages are merged with the kernel's page of zeros, or
    /// are swapped out, although the process has given nothing back.
    pub fn peak_bytes(&mut self) -> Option<u64> {
        let now = Instant::now();
        if now >= self.search_at || self.members.is_empty() {
            self.search();
            self.search_at = now + self.pause;
            self.pause = (2 * self.pause).min(PAUSES.1);
        }
        let mut sum = None;
        self.members.retain(|_, status| {
            let peak = peak_of(status);
            sum = peak.map_or(sum, |peak| Some(sum.unwrap_or(0) + peak));
            peak.is_some()
        });
        sum
    }

    fn search(&mut self) {
        for pid in children::family(self.head) {
            if let std::collections::hash_map::Entry::Vacant(place) = self.members.entry(pid)
                && let Ok(status) = File::open(format!("/proc/{pid}/status"))
            {
                place.insert(status);
            }
        }
    }
}

fn peak_of(status: &File) -> Option<u64> {
    // The line is among the first thirty, of which each is short.
    let mut text = [0; 4096];
    let read = status.read_at(&mut text, 0).ok()?;
    parse(&String::from_utf8_lossy(&text[..read]))
}

/// `VmHWM` of `/proc/PID/status` (proc(5)), which has KiB.
fn parse(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read() {
        assert_eq!(parse("Name:\tjava\nVmPeak:\t  900 kB\nVmHWM:\t     120 kB\nVmRSS:\t 7 kB\n"), Some(122_880));
        assert_eq!(parse("Name:\tkthreadd\n"), None);
        assert_eq!(parse("VmHWM:\t18446744073709551615 kB\n"), None);
    }

    #[test]
    fn a_family_has_its_children_and_is_gone_with_its_head() {
        let script = "head -c 20000000 /dev/zero | tail -c 20000000 | { sleep 1000; cat > /dev/null; }";
        let mut shell = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let mut family = Family::of(shell.id());
        let began = Instant::now();
        // The 20 MB lie in the memory of `tail`, a child of the shell.
        while family.peak_bytes().unwrap_or(0) < 20_000_000 {
            family.search_at = began;
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", family.peak_bytes());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(family.members.len() >= 3);
        let all: Vec<i32> = family.members.keys().copied().collect();
        for pid in all.into_iter().filter_map(rustix::process::Pid::from_raw) {
            // Some may have come to their end by themselves.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        shell.wait().unwrap();
        let began = Instant::now();
        while family.peak_bytes().is_some() {
            assert!(began.elapsed() < Duration::from_secs(20), "the memory of dead processes is still reported");
        }
    }
}
