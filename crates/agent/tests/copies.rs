//! Files into the agent's guest and out of it, and work that proves itself, as a controller asks for them.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tare_model::drive::{BusyStretch, BusyWork};
use tare_wire::{CHUNK_BYTES, Link, Reply, Request, WireError, copy_in, copy_out};

const TIMEOUT: Duration = Duration::from_secs(30);

/// An agent that is killed when the test ends.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> (Agent, Link) {
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_tare-agent")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let link = Link::open(Box::new(reader), Box::new(writer), TIMEOUT, TIMEOUT).unwrap();
    (Agent(child), link)
}

#[test]
fn files_of_any_length_come_back_the_same() {
    let (_agent, link) = start();
    let place = tempfile::tempdir().unwrap();
    let (inside, back) = (place.path().join("inside"), place.path().join("back"));
    let remote = inside.to_str().unwrap();
    for length in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let bytes: Vec<u8> = (0..length).map(|n| (n * 7 % 251) as u8).collect();
        let sent = copy_in(&link, &mut bytes.as_slice(), remote, 0o640, TIMEOUT).unwrap();
        assert_eq!(sent, length as u64);
        assert_eq!(std::fs::read(&inside).unwrap(), bytes);
        assert_eq!(std::fs::metadata(&inside).unwrap().permissions().mode() & 0o777, 0o640);
        // Exactly what is allowed is allowed.
        assert_eq!(copy_out(&link, remote, &back, sent, TIMEOUT).unwrap(), sent);
        assert_eq!(std::fs::read(&back).unwrap(), bytes);
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2, "nothing is left beside them");
    // The kernel's files tell no length.
    let length = copy_out(&link, "/proc/self/status", &back, 1 << 20, TIMEOUT).unwrap();
    assert!(length > 0 && std::fs::read_to_string(&back).unwrap().contains("tare-agent"));
}

#[test]
fn what_cannot_be_copied_says_why() {
    let (_agent, link) = start();
    let place = tempfile::tempdir().unwrap();
    let back = place.path().join("back");
    let mut said = Vec::new();
    for remote in ["/no/such/file", "/dev/zero", "/"] {
        let error = copy_out(&link, remote, &back, 100, TIMEOUT).unwrap_err();
        assert!(matches!(error, WireError::Refused { .. }), "{error}");
        said.push(error.to_string());
    }
    assert!(said[0].contains("read a file") && said[0].contains("/no/such/file"), "{said:?}");
    assert!(said[1].contains("no plain file"), "{said:?}");
    let error = copy_in(&link, &mut &b"x"[..], "/no/such/file", 0o600, TIMEOUT).unwrap_err();
    assert!(matches!(error, WireError::Refused { .. }), "{error}");
    assert!(!back.exists());
    let error = copy_out(&link, "/proc/self/status", &place.path().join("no/such"), 1 << 20, TIMEOUT).unwrap_err();
    assert!(matches!(error, WireError::Local { .. }), "{error}");
}

#[test]
fn both_kinds_of_busy_work_count() {
    let (_agent, link) = start();
    for work in [BusyWork::Spin, BusyWork::Mixed] {
        let Reply::BusyStarted { busy, .. } =
            link.call(Request::Busy { threads: 1, work: work.clone() }, TIMEOUT).unwrap()
        else {
            panic!("it did not start")
        };
        let began = Instant::now();
        loop {
            match link.call(Request::BusyIterations { busy }, TIMEOUT).unwrap() {
                Reply::BusyIterations { iterations: 1.. } => break,
                _ => assert!(began.elapsed() < TIMEOUT, "{work:?} does not count"),
            }
        }
        let stretch = BusyStretch { for_ns: 20_000_000, ..BusyStretch::default() };
        let Ok(Reply::BusyRan(done)) = link.call(Request::RunBusy { busy, stretch }, TIMEOUT) else {
            panic!("it did not compute through a stretch")
        };
        assert!(done.ended_ns - done.asked_ns >= stretch.for_ns && done.loops.len() == 1, "{done:?}");
        let Ok(Reply::BusyIterations { iterations }) = link.call(Request::BusyIterations { busy }, TIMEOUT) else {
            panic!("it does not count")
        };
        assert!(iterations > done.loops[0].iterations && done.loops[0].iterations > 0, "{iterations}, {done:?}");
        let stopped = link.call(Request::StopBusy { busy }, TIMEOUT);
        assert!(matches!(stopped, Ok(Reply::BusyIterations { iterations: all }) if all == iterations));
        assert!(matches!(link.call(Request::StopBusy { busy }, TIMEOUT), Err(WireError::Refused { .. })));
    }
}
