//! What a guest's data lie on as the guest itself sees it: the file system, the device and its queues, read inside.
//!
//! The guest tells this of itself and may tell anything. It is shown to people beside what the host knows, and is short.

use std::fmt::Write;
use std::time::Duration;

use tare_model::guest::{DataPlace, ParityRow};
use tare_wire::{CHUNK_BYTES, Link, Reply, Request};

use crate::parity::row;

/// Most hardware queues that are counted.
const MOST_QUEUES: usize = 128;

/// Most characters of what a guest says in one place.
const MOST_SAID: usize = 120;

/// A mount, as `/proc/self/mountinfo` tells it (proc_pid_mountinfo(5)).
#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    /// Major and minor number of the device.
    device: &'a str,
    options: &'a str,
    kind: &'a str,
    source: &'a str,
}

/// Adds to a place, and to that of its log, what is mounted there and on which device, as far as the guest tells; and gives
/// whether it sees the log apart.
pub(crate) fn look(link: &Link, place: &mut DataPlace, timeout: Duration) -> Option<ParityRow> {
    let read = reader(link, timeout);
    let tell = |place: &mut DataPlace| {
        if let Some(inside) = describe(&read, &place.path) {
            place.storage = format!("{}; the guest sees {inside}", place.storage);
        }
    };
    tell(place);
    place.log.as_deref_mut().into_iter().for_each(tell);
    place.log.as_ref().map(|log| apart(&read, &place.path, &log.path))
}

/// Commands that the guest has under way at one time on the SCSI disk that is mounted there, as its kernel tells.
pub(crate) fn commands(link: &Link, path: &str, timeout: Duration) -> Option<String> {
    let read = reader(link, timeout);
    let mounts = read("/proc/self/mountinfo")?;
    commands_of(&read, &place_of(&read, mount_of(&mounts, path)?.device)?)
}

/// Reads files of the guest's.
fn reader(link: &Link, timeout: Duration) -> impl Fn(&str) -> Option<String> {
    move |file: &str| {
        let asked = Request::GetFile { path: file.to_owned(), offset: 0, limit_bytes: CHUNK_BYTES as u64 };
        match link.call(asked, timeout) {
            Ok(Reply::File { bytes, .. }) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        }
    }
}

/// Whether the guest sees data and log on devices of their own. A file system that is no device's (major number 0) is a way to what
/// the host has, and tells nothing of it.
fn apart(read: &impl Fn(&str) -> Option<String>, data: &str, log: &str) -> ParityRow {
    const APART: &str = "apart from the data";
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    let devices = mount_of(&mounts, data).zip(mount_of(&mounts, log)).map(|(data, log)| (data.device, log.device));
    let granted = devices.map(|(data, log)| match data == log && !data.starts_with("0:") {
        true => format!("on the same device as the data ({})", plain(log)),
        false => APART.to_owned(),
    });
    row("storage of the log", APART, granted, "the mounts of data and log, asked inside")
}

fn describe(read: &impl Fn(&str) -> Option<String>, path: &str) -> Option<String> {
    let mounts = read("/proc/self/mountinfo")?;
    let mount = mount_of(&mounts, path)?;
    let mut said = format!("{} ({}) on {}", plain(mount.kind), plain(mount.options), plain(mount.source));
    if let Some(queue) = queue(read, mount.device) {
        // A string takes all that is written to it.
        let _ = write!(said, ", {queue}");
    }
    Some(said)
}

/// The mount that a path is on: of those above it the nearest, and of several at one place the last.
fn mount_of<'a>(mountinfo: &'a str, path: &str) -> Option<Mount<'a>> {
    let holds = |point: &str| {
        let below = path.strip_prefix(point.trim_end_matches('/'));
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    let points = mountinfo.lines().filter_map(|line| Some((line.split(' ').nth(4)?, line)));
    let (_, line) = points.filter(|(point, _)| holds(point)).max_by_key(|(point, _)| point.len())?;
    let (head, tail) = line.split_once(" - ")?;
    let (head, mut tail): (Vec<&str>, _) = (head.split(' ').collect(), tail.split(' '));
    Some(Mount { device: head.get(2)?, options: head.get(5)?, kind: tail.next()?, source: tail.next()? })
}

/// Where the guest's kernel has what it tells of a block device; `None` for what is none.
fn place_of(read: &impl Fn(&str) -> Option<String>, device: &str) -> Option<String> {
    // The number goes into a path, and it came from the guest.
    if !device.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') {
        return None;
    }
    // That of a partition is its disk's.
    let places = [format!("/sys/dev/block/{device}"), format!("/sys/dev/block/{device}/..")];
    places.into_iter().find(|place| read(&format!("{place}/queue/write_cache")).is_some())
}

/// Commands at one time of the SCSI device that it is; `None` where it is none.
fn commands_of(read: &impl Fn(&str) -> Option<String>, place: &str) -> Option<String> {
    read(&format!("{place}/device/queue_depth")).map(|text| plain(text.trim()))
}

/// How requests get to a block device; `None` for what is none.
fn queue(read: &impl Fn(&str) -> Option<String>, device: &str) -> Option<String> {
    let place = place_of(read, device)?;
    let value = |name: &str| read(&format!("{place}/queue/{name}")).map(|text| plain(text.trim()));
    let queues = (0..MOST_QUEUES).take_while(|n| read(&format!("{place}/mq/{n}/nr_tags")).is_some()).count();
    let mut said = vec![match queues {
        0 | 1 => "1 queue".to_owned(),
        several => format!("{several} queues"),
    }];
    said.extend(value("nr_requests").map(|requests| format!("{requests} requests deep")));
    said.extend(commands_of(read, &place).map(|commands| format!("{commands} commands at one time")));
    said.extend(value("scheduler").map(|schedulers| format!("scheduler {}", chosen(&schedulers))));
    said.extend(value("write_cache").map(|cache| format!("write cache: {cache}")));
    Some(said.join(", "))
}

/// The one in brackets.
fn chosen(schedulers: &str) -> &str {
    let inner = schedulers.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(schedulers, |(chosen, _)| chosen)
}

/// Without what would not be text in a report.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(MOST_SAID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const MOUNTS: &str = "21 1 0:20 / / ro,relatime - virtiofs hostroot rw\n\
                          30 21 0:5 / /dev rw - devtmpfs devtmpfs rw\n\
                          31 21 253:1 / /data ro - tmpfs hidden rw\n\
                          32 21 253:0 / /data rw,noatime shared:3 - ext4 /dev/vda rw\n\
                          33 21 253:7 / /data2 rw - xfs /dev/vdz rw\n";

    fn guest(files: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        let files: BTreeMap<String, String> =
            files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        move |file| files.get(file).cloned()
    }

    #[test]
    fn the_nearest_and_last_mount_is_what_is_seen() {
        let seen = mount_of(MOUNTS, "/data/pg").unwrap();
        assert_eq!((seen.kind, seen.device, seen.options), ("ext4", "253:0", "rw,noatime"));
        assert_eq!(mount_of(MOUNTS, "/data").unwrap().source, "/dev/vda");
        assert_eq!(mount_of(MOUNTS, "/database").unwrap().kind, "virtiofs", "a name that only begins so is not below");
        assert_eq!(mount_of("", "/data"), None);
    }

    #[test]
    fn a_disk_is_described_with_its_queues() {
        let disk = "/sys/dev/block/253:0";
        let files = [
            ("/proc/self/mountinfo".to_owned(), MOUNTS),
            (format!("{disk}/queue/write_cache"), "write back\n"),
            (format!("{disk}/queue/scheduler"), "[none] mq-deadline\n"),
            (format!("{disk}/queue/nr_requests"), "256\n"),
            (format!("{disk}/mq/0/nr_tags"), "256\n"),
            (format!("{disk}/mq/1/nr_tags"), "256\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let said = describe(&guest(&files), "/data").unwrap();
        assert_eq!(
            said,
            "ext4 (rw,noatime) on /dev/vda, 2 queues, 256 requests deep, scheduler none, write cache: write back"
        );
        let part = [("/proc/self/mountinfo", MOUNTS), ("/sys/dev/block/253:0/../queue/write_cache", "write through\n")];
        assert!(describe(&guest(&part), "/data").unwrap().ends_with("1 queue, write cache: write through"));
        // A file system that is no block device's, and a guest that does not tell.
        assert_eq!(describe(&guest(&files[..1]), "/x").unwrap(), "virtiofs (ro,relatime) on hostroot");
        assert_eq!(describe(&guest(&[]), "/data"), None);
    }

    #[test]
    fn a_log_is_apart_where_its_device_is_another() {
        let mounts = format!(
            "{MOUNTS}34 21 253:0 /log /log rw - ext4 /dev/vda rw\n35 21 0:20 /a /shared rw - virtiofs hostroot rw\n"
        );
        let files = [("/proc/self/mountinfo", mounts.as_str())];
        let seen = |data: &str, log: &str| apart(&guest(&files), data, log);
        assert!(seen("/data", "/data2").equal);
        let same = seen("/data", "/log");
        assert!(!same.equal && same.granted.as_ref().is_some_and(|granted| granted.contains("253:0")), "{same:?}");
        assert!(seen("/", "/shared").equal, "what the host has below a share, it does not tell");
        assert!(!apart(&guest(&[]), "/data", "/log").equal);
    }

    #[test]
    fn a_scsi_disk_tells_how_many_commands_it_takes() {
        let disk = "/sys/dev/block/253:0";
        let (depth, cache) = (format!("{disk}/device/queue_depth"), format!("{disk}/queue/write_cache"));
        let files = [("/proc/self/mountinfo", MOUNTS), (depth.as_str(), "128\n"), (cache.as_str(), "write back\n")];
        assert_eq!(commands_of(&guest(&files), disk).as_deref(), Some("128"));
        assert!(describe(&guest(&files), "/data").unwrap().contains("1 queue, 128 commands at one time"));
    }

    #[test]
    fn what_a_guest_says_is_short_and_asks_for_no_other_files() {
        let long = "x".repeat(5000);
        let mounts = format!("1 0 ../../etc / / {long}\u{7} - {long} {long} rw\n");
        let read = |file: &str| match file {
            "/proc/self/mountinfo" => Some(mounts.clone()),
            other => {
                assert!(other.is_empty(), "{other} was read");
                None
            }
        };
        let said = describe(&read, "/data").unwrap();
        assert!(said.len() < 400 && !said.contains('\u{7}'), "{said}");
    }
}
