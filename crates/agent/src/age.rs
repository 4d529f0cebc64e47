//! How old the kernel is, and was when user space began: what a machine's start is split by.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;

use rustix::time::{ClockId, clock_gettime};

/// How the beginning of user space is known.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// This program is the first process, and began at this age of the kernel, nanoseconds.
    First(u64),
    /// Another program is; the kernel's log has when it ran it.
    Logged,
}

static KNOWN: OnceLock<Known> = OnceLock::new();

/// Where the kernel's log is read, one record a call.
const LOG: &str = "/dev/kmsg";
/// Longer records are cut by the kernel (`PRINTKRB_RECORD_MAX`).
const RECORD_BYTES: usize = 8192;
/// So many records are looked at: no more fit into a kernel's log of ordinary size.
const RECORDS: usize = 100_000;

/// Age of the kernel: CLOCK_BOOTTIME, nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Notes that this program is the first of a machine and begins now.
pub fn begins_first() {
    // It begins once.
    let _ = KNOWN.set(Known::First(now_ns()));
}

/// Notes that this program serves in a machine which another program has set up.
pub fn serves_in_machine() {
    let _ = KNOWN.set(Known::Logged);
}

/// Age of the kernel when user space began, nanoseconds; `None` where this is no machine of its own, and where nobody knows.
pub fn user_space_began_ns() -> Option<u64> {
    match KNOWN.get()? {
        Known::First(age_ns) => Some(*age_ns),
        Known::Logged => logged_ns(),
    }
}

/// The same by the kernel's log. `/proc/1/stat` does not tell: it has the time at which the kernel made process 1 as a thread of its
/// own, before any driver.
fn logged_ns() -> Option<u64> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut log = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(LOG).ok()?;
    let mut record = vec![0; RECORD_BYTES];
    for _ in 0..RECORDS {
        match log.read(&mut record) {
            Ok(length) => {
                if let Some(age_ns) = began_ns(&String::from_utf8_lossy(&record[..length])) {
                    return Some(age_ns);
                }
            }
            // A record that was overwritten meanwhile; the next is there.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            // The end, or no log for us.
            Err(_) => return None,
        }
    }
    None
}

/// The time of a record by which the kernel says that it runs the first program, nanoseconds.
fn began_ns(record: &str) -> Option<u64> {
    let (head, text) = record.split_once(';')?;
    let mut fields = head.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let age_us: u64 = fields.nth(1)?.parse().ok()?;
    let first = text.lines().next()?;
    // Programs may write there, too; the kernel's own records are of facility 0.
    let kernels = priority < 8 && first.starts_with("Run ") && first.ends_with(" as init process");
    kernels.then(|| age_us.checked_mul(1000)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_when_it_runs_the_first_program() {
        let record = "6,412,1834211,-;Run /sbin/init as init process\n SUBSYSTEM=x\n";
        assert_eq!(began_ns(record), Some(1_834_211_000));
        for other in [
            "6,413,1834300,-;  with arguments:",
            "14,500,1900000,-;Run /bin/sh as init process",
            "6,412;Run /init as init process",
            "6,412,x,-;Run /init as init process",
            "",
        ] {
            assert_eq!(began_ns(other), None, "{other}");
        }
    }

    #[test]
    fn the_kernel_is_as_old_as_it_says() {
        let uptime = || std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds = |text: String| text.split_whitespace().next().unwrap().parse::<f64>().unwrap();
        let before = seconds(uptime());
        let age_s = now_ns() as f64 / 1e9;
        let after = seconds(uptime());
        // It tells hundredths, rounded down.
        assert!(before - 0.01 <= age_s && age_s <= after + 0.02, "{before} {age_s} {after}");
        assert_eq!(user_space_began_ns(), None, "this is no machine's agent");
    }
}
