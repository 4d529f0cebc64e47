//! Guests that are stopped and let run again, and such as are written down and restored, for real.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tare_model::ByteSize;
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::token::Token;
use tare_platform::{Guest, Platform};
use tare_wire::{Reply, Request, WireError};

use crate::common::{exec, platform, skipped, turn};
use crate::machines::Ground;

const SECRET: Token = Token::new([0x5E; Token::LEN]);
const TIMEOUT: Duration = Duration::from_secs(30);

fn spec(name: &str) -> GuestSpec {
    GuestSpec::new(name, GuestSize { cpus: 1, memory: ByteSize(256 << 20) })
}

/// What the agent of a guest says that it keeps.
fn kept(guest: &dyn Guest) -> Option<Token> {
    match guest.link().call(Request::Kept, TIMEOUT) {
        Ok(Reply::Keeps { secret }) => secret,
        other => panic!("{}: {other:?}; it said: {}", guest.spec().name, guest.diagnostics()),
    }
}

/// A guest stands still, does not answer, uses no CPU and keeps what it holds; and runs again.
fn stands_still_and_runs_again(label: &str, name: &str, options: &Value) {
    let _turn = turn();
    let platform = platform(name, options);
    if !platform.pauses_by_itself()
        && let Some(why) = tare_lab::freezing_refusal()
    {
        return skipped(&why);
    }
    assert_eq!(platform.pool_refusal(), None);
    let Some(ground) = Ground::new(label, &*platform) else { return };
    let mut guest = ground.start_as(&*platform, &spec(label)).unwrap();
    guest.link().call(Request::Keep { secret: SECRET }, TIMEOUT).unwrap();
    guest.pause().unwrap();
    let before = cpu_us(&*guest);
    let silent = guest.link().call(Request::Clock, Duration::from_millis(300));
    assert!(matches!(silent, Err(WireError::Timeout { .. })), "{silent:?}");
    // What carries a machine may look round while its processors stand.
    assert!(cpu_us(&*guest) - before < 100_000, "{label} used {} us of CPU", cpu_us(&*guest) - before);
    let faults = guest.page_faults().unwrap();
    guest.resume().unwrap();
    assert_eq!(kept(&*guest), Some(SECRET));
    assert_eq!(exec(&*guest, &["true"]).code, Some(0));
    assert!((guest.page_faults().unwrap() - faults).all > 0, "a program was started without a page fault");
    // One that stands still is taken away, too.
    guest.pause().unwrap();
    guest.destroy().unwrap();
    drop(guest);
    ground.end();
}

fn cpu_us(guest: &dyn Guest) -> u64 {
    let text = guest.groups().iter().find_map(|group| std::fs::read_to_string(group.join("cpu.stat")).ok());
    tare_lab::keyed_number(&text.unwrap_or_default(), "usage_usec").unwrap_or(0)
}

#[test]
fn processes_containers_and_machines_stand_still_and_run_again() {
    stands_still_and_runs_again("still-native", "native", &json!({}));
    stands_still_and_runs_again("still-container", "container", &json!({}));
    stands_still_and_runs_again("still-runc", "oci", &json!({"runtime": "runc"}));
    for name in ["bubblewrap", "nspawn", "lxc"] {
        stands_still_and_runs_again(&format!("still-{name}"), name, &json!({}));
    }
    stands_still_and_runs_again("still-runsc", "oci", &json!({"runtime": "runsc"}));
    stands_still_and_runs_again("still-qemu", "qemu", &json!({"boot-within": "120s"}));
}

/// Two guests are restored of one that was written down: each holds what that one's memory held, and is a guest of its own.
fn is_restored(label: &str, name: &str, options: &Value) {
    let _turn = turn();
    let platform = platform(name, options);
    let Some(ground) = Ground::new(label, &*platform) else { return };
    if let Some(refusal) = platform.snapshot_refusal() {
        panic!("{refusal}");
    }
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut first = ground.start_as(&*platform, &spec("first")).unwrap();
    assert_eq!(kept(&*first), None);
    first.link().call(Request::Keep { secret: SECRET }, TIMEOUT).unwrap();
    assert_eq!(exec(&*first, &["sh", "-c", "echo here > /tmp/left"]).code, Some(0));
    first.snapshot(place.path()).unwrap();
    assert!(first.link().call(Request::Clock, Duration::from_secs(2)).is_err(), "it has not ended");
    first.destroy().unwrap();
    drop(first);
    let written = bytes_of(place.path());
    let mut guests: Vec<_> = ["second", "third"].map(|name| restore(&ground, &*platform, name, place.path())).into();
    for guest in &guests {
        assert_eq!(kept(&**guest), Some(SECRET));
        assert_eq!(exec(&**guest, &["cat", "/tmp/left"]).stdout, b"here\n");
        assert!(guest.start_time_s() > 0.0 && guest.start_parts().is_none());
        assert!(guest.page_faults().unwrap().all > 0);
    }
    // What one of them keeps from now on is its own.
    guests[0].link().call(Request::Keep { secret: Token::new([1; Token::LEN]) }, TIMEOUT).unwrap();
    assert_eq!(kept(&*guests[1]), Some(SECRET));
    for mut guest in guests.drain(..) {
        guest.destroy().unwrap();
    }
    assert_eq!(bytes_of(place.path()), written, "the snapshot was changed");
    ground.end();
}

fn restore(ground: &Ground, platform: &dyn Platform, name: &str, snapshot: &Path) -> Box<dyn Guest> {
    platform.restore(&ground.0.site(), &spec(name), snapshot).unwrap()
}

fn bytes_of(place: &Path) -> u64 {
    std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn a_sandbox_is_restored_with_what_its_memory_held() {
    is_restored("restored-runsc", "oci", &json!({"runtime": "runsc"}));
}

#[test]
fn a_machine_is_restored_with_what_its_memory_held() {
    is_restored("restored-qemu", "qemu", &json!({"image": {"debian": {}}, "boot-within": "120s"}));
}

#[test]
fn what_takes_no_snapshots_says_so() {
    for (name, options, word) in [
        ("native", json!({}), "takes no snapshots"),
        ("oci", json!({"runtime": "runc"}), "CRIU"),
        ("qemu", json!({}), "virtiofs"),
    ] {
        let refusal = platform(name, &options).snapshot_refusal().unwrap();
        assert!(refusal.reason.contains(word) && refusal.remedy.contains("start"), "{refusal}");
    }
    let null = platform("null", &json!({})).pool_refusal().unwrap();
    assert!(null.reason.contains("no control group"), "{null}");
    let elsewhere = platform("ssh", &json!({"host": "192.0.2.7"})).pool_refusal().unwrap();
    assert!(elsewhere.reason.contains("exist already"), "{elsewhere}");
}
