//! A machine's memory on the host: what it takes, and what it gives back.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{platform, skipped, turn};
use crate::machines::{Ground, exec, show};
use serde_json::{Value, json};
use tare_model::ByteSize;
use tare_model::guest::{GuestData, GuestSize, GuestSpec};
use tare_platform::Guest;

/// A value of `/proc/PID/status` of the guest's emulator, bytes.
fn of_emulator(guest: &dyn Guest, key: &str) -> u64 {
    let group = std::fs::read_to_string(guest.groups()[0].join("cgroup.procs")).unwrap();
    let text = |pid: &str, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let pid = group.lines().find(|pid| text(pid, "comm").starts_with("qemu")).unwrap();
    let status = text(pid, "status");
    let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap();
    value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// So much a guest touches and frees, bytes.
const TOUCHED: u64 = 200 << 20;

/// Share of what a guest touched and freed that its emulator gives back to the host, looked at until it is a half or the
/// time is over.
fn given_back(ground: &Ground, name: &str, options: &Value, timeout: Duration) -> f64 {
    let size = GuestSize { cpus: 1, memory: ByteSize(512 << 20) };
    let spec = GuestSpec::new(name, size);
    let mut guest = ground.start_as(&*platform("qemu", options), &spec).unwrap();
    let before = of_emulator(&*guest, "VmRSS");
    // Not zeroes: a kernel that is short of memory takes pages of those back by itself.
    let fill = format!("mkdir /tmp/m && mount -t tmpfs -o size=250m none /tmp/m && yes | head -c {TOUCHED} > /tmp/m/x");
    let ran = exec(&*guest, &fill);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let full = of_emulator(&*guest, "VmRSS");
    assert!(full >= before + TOUCHED / 2, "{name}: from {before} to {full} bytes, with {TOUCHED} touched");
    assert_eq!(exec(&*guest, "umount /tmp/m").code, Some(0));
    let deadline = Instant::now() + timeout;
    let share = loop {
        let share = full.saturating_sub(of_emulator(&*guest, "VmRSS")) as f64 / TOUCHED as f64;
        if share >= 0.5 || Instant::now() >= deadline {
            break share;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    guest.destroy().unwrap();
    show(&format!(
        "{name}: emulator {} MiB, {} MiB with {} MiB touched; given back {share:.2}",
        before >> 20,
        full >> 20,
        TOUCHED >> 20
    ));
    share
}

#[test]
fn freed_pages_are_reported_and_given_back_and_else_the_host_keeps_them_taken() {
    let _turn = turn();
    for (label, image) in [("host", json!("host")), ("debian", json!({"debian": {}}))] {
        let options = |reported: bool| json!({"image": image, "memory": {"free-page-reporting": reported}});
        let Some(ground) = Ground::new(label, &*platform("qemu", &options(true))) else { continue };
        let (with, without) = (
            given_back(&ground, "with", &options(true), Duration::from_secs(60)),
            // Free pages are reported two seconds after they were freed.
            given_back(&ground, "without", &options(false), Duration::from_secs(8)),
        );
        assert!(with >= 0.5, "{label}: reported, only {with:.2} of what was freed came back");
        assert!(without < 0.1, "{label}: unreported, {without:.2} came back");
        ground.end();
    }
}

/// The Java runtime as workloads get it, where it was made.
fn java() -> Option<PathBuf> {
    let cache = std::env::var_os("TARE_CACHE").map_or_else(|| PathBuf::from("/var/cache/tare"), PathBuf::from);
    cache.join("bundle/java").canonicalize().ok().filter(|bundle| bundle.join("runtime/bin/java").exists())
}

/// As many as `TARE_MACHINES` says, one after the other, and all stand at the end.
#[test]
fn machines_of_three_gibibytes_run_java_from_one_disk_and_take_what_they_touch() {
    let _turn = turn();
    let options = json!({"image": {"debian": {}}, "memory": {"free-page-reporting": true}});
    let platform = platform("qemu", &options);
    let Some(bundle) = java() else {
        return skipped("there is no Java runtime in the cache: scripts/bundle.sh java makes it");
    };
    let Some(ground) = Ground::new("java", &*platform) else { return };
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let gold = place.path().join("gold");
    assert!(Command::new("cp").arg("-a").args([&bundle, &gold]).status().unwrap().success());
    let count = std::env::var("TARE_MACHINES").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut guests = Vec::new();
    for number in 0..count {
        let size = GuestSize { cpus: 1, memory: ByteSize(3 << 30) };
        let data = Some(GuestData { gold: gold.clone(), size: ByteSize(256 << 20), shared: true, log: None });
        let spec = GuestSpec { data, merge: true, ..GuestSpec::new(format!("j{number}"), size) };
        let guest = ground.start_as(&*platform, &spec).unwrap();
        let place = guest.data().unwrap().clone();
        let merging = guest.parity().into_iter().find(|row| row.resource == "memory merging").unwrap();
        assert!(merging.equal, "{merging:?}");
        let booted = of_emulator(&*guest, "VmRSS");
        let began = Instant::now();
        let ran = exec(
            &*guest,
            &format!("{}/runtime/bin/java -Xshare:auto -XX:TieredStopAtLevel=1 -version 2>&1", place.path),
        );
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.code == Some(0) && said.contains("version"), "{ran:?}");
        let resident = of_emulator(&*guest, "VmRSS");
        show(&format!(
            "{}: agent after {:.1} s, java after {:.1} s more; emulator {} MiB, then {} MiB; data {} in {:.2} s; {said}",
            spec.name,
            guest.start_time_s(),
            began.elapsed().as_secs_f64(),
            booted >> 20,
            resident >> 20,
            place.restored_by,
            place.restore_s
        ));
        assert!(resident < 1 << 30, "of 3 GiB promised {resident} bytes are taken at once");
        guests.push(guest);
    }
    for guest in &mut guests {
        guest.destroy().unwrap();
    }
    drop(guests);
    ground.end();
}

/// `MemTotal` of the guest's kernel, bytes.
fn total(guest: &dyn Guest) -> u64 {
    let said = exec(guest, "grep MemTotal /proc/meminfo").stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    said.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_else(|| panic!("{said}")) << 10
}

#[test]
fn a_balloon_that_is_sized_takes_memory_from_the_guest_and_gives_it_back() {
    let _turn = turn();
    let platform = platform("qemu", &json!({"image": "host"}));
    assert_eq!(platform.ballooning_refusal(), None);
    let Some(ground) = Ground::new("sized", &*platform) else { return };
    let promised = 512 << 20;
    let size = GuestSize { cpus: 1, memory: ByteSize(promised) };
    let without = ground.start_as(&*platform, &GuestSpec::new("without", size)).unwrap();
    assert!(without.balloon().is_none());
    drop(without);
    let mut guest = ground.start_as(&*platform, &GuestSpec { balloon: true, ..GuestSpec::new("sized", size) }).unwrap();
    let row = guest.parity().into_iter().find(|row| row.resource == "balloon that is sized").unwrap();
    assert!(row.equal, "{row:?}");
    let balloon = guest.balloon().unwrap();
    let before = balloon.memory().unwrap();
    assert_eq!((before.current, before.most), (promised, promised));
    assert!((1..promised).contains(&before.unused), "{before:?}");
    let (had, taken) = (total(&*guest), 128 << 20);
    let reaches = |bytes: u64| {
        balloon.resize(bytes).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while balloon.memory().unwrap().current != bytes && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(100));
        }
        balloon.memory().unwrap()
    };
    let small = reaches(promised - taken);
    assert_eq!(small.current, promised - taken, "of {before:?}");
    let left = total(&*guest);
    assert!(had - left >= taken / 2, "the guest had {had} and now has {left}");
    assert_eq!(reaches(promised).current, promised);
    assert_eq!(total(&*guest), had);
    guest.destroy().unwrap();
    assert!(balloon.memory().is_err(), "the machine is gone");
    drop(guest);
    ground.end();
}
