//! A lab across two ordinary hosts that are joined by links: the guests' host and one that offers load, both emulated whole.

use std::path::Path;
use std::time::{Duration, Instant};

use tare_testkit::emulated::{AMD64, EmulatedHost, Hardware};

use super::{DISK, Ground, can_boot, outcomes, path_in, seconds, with_package};
use crate::common::{cache, query};

/// The link for ssh, and the wire for load: cards and addresses of the guests' host (1) and of the other (2).
const LINKS: [(&str, &str); 2] = [("eth1", "198.51.100."), ("eth2", "203.0.113.")];
/// The shipped studies, shortened, and what is asked of each.
const STUDIES: [(&str, &str); 4] = [
    ("response-time", "--only-case idle --only-case busy-host --scale 0.25"),
    ("throughput", "--scale 0.25"),
    ("order-entry.toml", "--scale 0.3"),
    ("web-serving.toml", "--only-case ecommerce --scale 0.2"),
];

/// The shipped study of sites at five users: what meets the quality of service on an emulated host says nothing.
fn few_users() -> String {
    let shipped = include_str!("../../../../studies/web-serving.toml");
    let (text, _) = shipped.split_once("[cases.banking-latency]").unwrap();
    let searched = "capacity = { from = 50, most = 1600, precision = 0.1, iterations = 3 }";
    assert!(text.contains(searched), "the study searches otherwise now");
    let lines = text.lines().filter(|line| !line.starts_with("score ") && !line.starts_with("qos "));
    lines.map(|line| line.replace(searched, "load = { closed = { clients = 5 } }") + "\n").collect()
}

/// The shipped study of orders with few clients: an emulated database that 40 wait for completes nothing in some seconds.
fn few_clients() -> String {
    let shipped = include_str!("../../../../studies/order-entry.toml");
    let searched = "load = { closed = { clients = 20 } }";
    assert!(shipped.contains(searched), "the study has another load now");
    shipped.replace(searched, "load = { closed = { clients = 2 } }")
}

/// A card at one end of a link to the other host: a socket in this folder, on which one of both listens.
fn card(folder: &Path, link: usize, listens: bool) -> [String; 4] {
    let socket = folder.join(format!("link-{link}"));
    let end = if listens { "on" } else { "off" };
    let netdev = format!("stream,id=link{link},server={end},addr.type=unix,addr.path={}", socket.display());
    // Both ends' own addresses: the same would be seen twice on one link.
    let mac = format!("52:54:00:00:0{link}:0{}", if listens { 1 } else { 2 });
    ["-netdev".into(), netdev, "-device".into(), format!("virtio-net-pci,netdev=link{link},mac={mac},romfile=")]
}

fn hardware(folder: &Path, listens: bool) -> Hardware {
    let devices = (1..=LINKS.len()).flat_map(|link| card(folder, link, listens)).collect();
    Hardware { devices, ..Hardware::default() }
}

/// Both hosts, up and joined, the guests' with tare and the other with nothing.
fn joined(folder: &Path) -> Option<(Ground, EmulatedHost)> {
    if !can_boot() {
        return None;
    }
    let disk = path_in(DISK);
    let began = Instant::now();
    let mut host = EmulatedHost::begin(&disk, AMD64, &hardware(folder, true));
    // Whoever connects must find somebody who listens.
    while !folder.join("link-2").exists() {
        assert!(!host.is_over() && seconds(began) < 60.0, "the guests' host listens on no link");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut other = EmulatedHost::begin(&disk, AMD64, &hardware(folder, false));
    host.wait();
    other.wait();
    eprintln!("both booted in {:.0} s", seconds(began));
    let ground = Ground::on(with_package(host), Hardware::default());
    for (host, number) in [(&ground.host, 1), (&other, 2)] {
        for (card, network) in LINKS {
            host.sh(&format!("ip address add {network}{number}/24 dev {card}; ip link set {card} mtu 9000 up"));
        }
    }
    ground.host.put(&disk.join("key"), ".ssh/id_ed25519");
    ground.host.sh("chmod 600 .ssh/id_ed25519; ssh-keyscan -t ed25519 198.51.100.2 >.ssh/known_hosts 2>/dev/null");
    Some((ground, other))
}

/// What guests of these studies need, as this host has it.
fn put_bundles(ground: &Ground) -> Option<()> {
    let bundles = cache().join("bundle");
    if !bundles.join("web").exists() {
        tare_testkit::skipped("no `web` for guests: `make build` makes it");
        return None;
    }
    let archive = ground.folder.path().join("bundles.tar");
    let made = std::process::Command::new("sh")
        .args(["-c", "cd \"$1\" && tar -cf \"$2\" web web-*[0-9a-f] postgresql-*", "tar"])
        .args([&bundles, &archive])
        .status();
    assert!(made.unwrap().success(), "{} was not packed", bundles.display());
    ground.host.sh("mkdir -p /var/cache/tare/bundle");
    ground.host.put(&archive, "bundles.tar");
    ground.host.sh("tar -C /var/cache/tare/bundle -xf bundles.tar && rm bundles.tar");
    Some(())
}

const LAB: &str = r#"[hosts.load]
ssh = { host = "198.51.100.2", address = "203.0.113.2" }

[roles]
drivers = ["load"]

[lab.wire]
interface = "eth2"
addresses = "203.0.113.100-203.0.113.120/24"
"#;

/// What a run may leave on a host that only offers load.
const LEFT_THERE: &str = "ls -d /tmp/*tare* /var/tmp/*tare* /run/tare/* 2>/dev/null; pgrep -l tare; true";

/// The shipped studies over a wire, with load from another host, driven from a third place by ssh.
#[test]
#[ignore = "boots two whole hosts: scripts/test-host.sh pair"]
fn two_hosts_measure_the_shipped_studies_over_a_wire() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut ground, other)) = joined(folder.path()) else { return };
    if put_bundles(&ground).is_none() {
        return;
    }
    ground.host.write(LAB, "lab.toml");
    ground.host.write(&few_users(), "web-serving.toml");
    ground.host.write(&few_clients(), "order-entry.toml");
    for (study, asked) in STUDIES {
        ground.check(&format!("{study}, with load from the other host"), |ground| {
            let before = (ground.snapshot(), other.sh(LEFT_THERE));
            let options = format!("--hosts lab.toml --blocks 1 --only-arm container {asked}");
            let began = Instant::now();
            let line = format!("rm -rf run; NO_COLOR=1 tare run {study} {options} --out run 2>&1 || test $? = 3");
            let ran = ground.host.run("root", &line);
            let said = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert!(ran.status.success(), "{study}: {}\n{said}", ran.status);
            eprintln!("  {study}: {:.0} s", seconds(began));
            let here = ground.folder.path().join(study);
            ground.host.fetch("run", &here);
            // The native arm and the container, in each case.
            let outcomes = outcomes(&here);
            assert!(outcomes.len() >= 2 && outcomes.iter().all(|own| own == "completed"), "{said}");
            let facts = query::<String>(&here, "SELECT DISTINCT name FROM facts");
            assert!(facts.iter().any(|fact| fact == "clock of host load"), "{facts:?}");
            let after = (ground.snapshot(), other.sh(LEFT_THERE));
            assert_eq!(after, before, "left behind");
        });
    }
    ground.finish();
}

/// The hosts' link breaks in the middle of a trial: that trial ends with the host's name, and the run goes on to its end.
#[test]
#[ignore = "boots two whole hosts: scripts/test-host.sh pair"]
fn a_host_that_is_lost_in_the_middle_ends_its_trials() {
    let folder = tempfile::tempdir().unwrap();
    let Some((ground, other)) = joined(folder.path()) else { return };
    ground.host.write(LAB, "lab.toml");
    ground.host.sh(
        "setsid -f tare run response-time --hosts lab.toml --blocks 1 --only-arm container --only-case idle --scale 10 --out lost \
         >lost.log 2>&1 </dev/null",
    );
    let deadline = Instant::now() + Duration::from_secs(300);
    while !ground.host.run("root", "grep -q '\"drive\"' lost/journal.jsonl").status.success() {
        assert!(Instant::now() < deadline, "no load: {}", ground.host.sh("cat lost.log"));
        std::thread::sleep(Duration::from_secs(1));
    }
    drop(other);
    while ground.host.run("root", "pgrep -x tare").status.success() {
        assert!(Instant::now() < deadline, "it goes on: {}", ground.host.sh("cat lost.log"));
        std::thread::sleep(Duration::from_secs(1));
    }
    let said = ground.host.sh("cat lost.log");
    assert!(said.contains("host `load`"), "{said}");
    let still = ground.host.run("root", "tare reap 2>&1");
    assert!(String::from_utf8_lossy(&still.stdout).contains("still there: the agent on 198.51.100.2"), "{still:?}");
}
