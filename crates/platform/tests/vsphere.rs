//! Machines of vSphere, against its simulator; sshd in a namespace of the test's own stands for what runs in them.

use std::process::Command;
use std::time::Duration;

use crate::common::sshd::{PLAIN, Sshd};
use crate::common::vcsim::{PASSWORD, Vcsim, apart};
use crate::common::{platform, skipped};
use crate::remote::{PLATFORM, Run, with};
use serde_json::{Value, json};
use tare_model::Refusal;
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::units::ByteSize;
use tare_platform::{Guest, HostView};

fn options(sshd: &Sshd, vm: &str, snapshot: &str) -> Value {
    with(sshd.options(PLAIN), "vsphere", json!({"vm": vm, "snapshot": snapshot}))
}

/// `web-1` at a snapshot that was made after the one that is meant; what vSphere calls that one.
fn prepared(vcsim: &Vcsim) -> String {
    let clean = vcsim.make_snapshot("web-1", "clean");
    assert_ne!(vcsim.make_snapshot("web-1", "later"), clean);
    clean
}

fn row(guest: &dyn Guest, resource: &str) -> (Option<String>, bool) {
    let row = guest.parity().into_iter().find(|row| row.resource == resource);
    row.map(|row| (row.granted, row.equal)).unwrap_or_else(|| panic!("no row {resource}"))
}

#[test]
fn a_machine_is_reverted_started_and_stopped_by_vsphere() {
    apart(skipped, PASSWORD, |sshd, vcsim| {
        let Some(run) = Run::new("vsphere") else { return };
        let clean = prepared(vcsim);
        vcsim.govc(&["vm.change", "-vm", "web-1", "-c", "1", "-m", "256"]);
        let options = options(sshd, "web-1", "clean");
        assert!(!vcsim.is_on("web-1"));
        let mut guest = run.start(&options).unwrap();
        assert!(vcsim.is_on("web-1") && !vcsim.is_on("web-2"));
        assert_eq!(vcsim.current_snapshot("web-1"), clean, "reverted to what was meant");
        assert_eq!(row(&*guest, "cpus, by its hypervisor"), (Some("1".into()), true));
        assert_eq!(row(&*guest, "memory, by its hypervisor"), (Some("256MiB".into()), true));
        guest.destroy().unwrap();
        assert!(!vcsim.is_on("web-1"));
        // Off already, and on already.
        guest.destroy().unwrap();
        vcsim.govc(&["vm.power", "-on", "web-1"]);
        let by_path = with(options.clone(), "vsphere", json!({"vm": "/DC0/vm/web-1", "snapshot": "clean"}));
        let mut guest = run.start(&by_path).unwrap();
        vcsim.govc(&["vm.power", "-off", "web-1"]);
        guest.destroy().unwrap();
        assert!(!vcsim.is_on("web-1"));
        run.end();
    });
}

#[test]
fn what_vsphere_says_of_a_machine_and_its_host_is_disclosed() {
    apart(skipped, PASSWORD, |sshd, vcsim| {
        let Some(run) = Run::new("described") else { return };
        prepared(vcsim);
        vcsim.govc(&[
            "vm.change",
            "-vm",
            "web-1",
            "-c",
            "2",
            "-m",
            "512",
            "-cpu.reservation",
            "100",
            "-cpu.limit",
            "2000",
            "-mem.reservation",
            "128",
        ]);
        let mut guest = run.start(&options(sshd, "web-1", "clean")).unwrap();
        let [host, machine] = guest.hypervisor() else { panic!("{:?}", guest.hypervisor()) };
        let of = |section: &tare_model::environment::Section, name: &str| {
            section
                .facts
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
                .unwrap_or_else(|| panic!("{name}"))
        };
        assert_eq!(
            (host.title.as_str(), machine.title.as_str()),
            ("Hypervisor", "Virtual machine, as its hypervisor has it")
        );
        let asked_at = vcsim.govc(&["about", "-json"]);
        let asked_at: Value = serde_json::from_str(&asked_at).unwrap();
        assert_eq!(of(host, "vSphere, asked at"), asked_at["about"]["fullName"].as_str().unwrap());
        assert!(of(host, "host").starts_with("VMware ESXi ") && of(host, "host").contains("build-"), "{host:?}");
        assert_eq!(of(host, "CPU clock"), "2294 MHz");
        assert_eq!(of(host, "CPU cores"), "2 cores, 2 threads in 2 sockets");
        assert_eq!(of(machine, "memory"), "512 MiB");
        assert!(of(machine, "CPUs").starts_with("2,"), "{machine:?}");
        assert_eq!(of(machine, "CPU share"), "reservation 100 MHz, limit 2000 MHz, shares not reported");
        assert!(of(machine, "memory share").starts_with("reservation 128 MiB, no limit"), "{machine:?}");
        assert!(of(machine, "hardware version").starts_with("vmx-") && of(machine, "VMware Tools").contains("running"));
        // It has not what was asked for.
        assert_eq!(row(&*guest, "cpus, by its hypervisor"), (Some("2".into()), false));
        assert_eq!(row(&*guest, "memory, by its hypervisor"), (Some("512MiB".into()), false));
        assert_eq!(row(&*guest, "cpu limit, by its hypervisor"), (Some("2000 MHz".into()), false));
        guest.destroy().unwrap();
        run.end();
    });
}

#[test]
fn its_counters_are_read_while_it_is_on() {
    apart(skipped, PASSWORD, |sshd, vcsim| {
        let Some(run) = Run::new("counters") else { return };
        let clean = prepared(vcsim);
        let second = vcsim.make_snapshot("web-2", "clean");
        let mut both = options(sshd, "web-{guest}", "clean");
        both["machines"] = json!(2);
        // Both are the one behind the sshd, each with a name of its own.
        let config = sshd.folder().join("both");
        std::fs::write(&config, "Host web*\n  HostName 127.0.0.1\n").unwrap();
        both["host"] = json!("web{guest}");
        both["address"] = json!("127.0.0.{guest}");
        both["config"] = json!(config);
        let made = platform(PLATFORM, &both);
        let mut counters = made.host_counters().expect("vSphere has counters");
        assert!((counters.read)().figures.is_empty(), "nothing is on");
        let start = |name: &str| {
            let size = GuestSize { cpus: 1, memory: ByteSize(32 << 20) };
            made.start(&run.site(), &GuestSpec { cpu_set: vec![0], ..GuestSpec::new(name, size) }).unwrap()
        };
        let mut guests = [start("t0"), start("t1")];
        assert_eq!((vcsim.current_snapshot("web-1"), vcsim.current_snapshot("web-2")), (clean, second));
        let read = (counters.read)();
        assert_eq!(read.wrong, None);
        let of = |name: &str| {
            read.figures.iter().filter(|figure| figure.series == name).map(|figure| figure.value).collect::<Vec<_>>()
        };
        for name in [
            "cpu_ready_percent",
            "cpu_used_cpus",
            "memory_consumed_bytes",
            "memory_active_bytes",
            "net_received_bytes_per_s",
        ] {
            for vm in ["vm1", "vm2"] {
                assert!(!of(&format!("{vm}_{name}")).is_empty(), "{vm}_{name}: {read:?}");
            }
        }
        let busy = of("esx1_cpu_used_percent");
        assert!(!busy.is_empty() && busy.iter().all(|percent| (0.0..=100.0).contains(percent)), "{busy:?}");
        assert!(of("vm1_memory_consumed_bytes")[0] > 1e6, "KiB became bytes");
        assert!(read.figures.iter().all(|figure| figure.at.elapsed() < Duration::from_secs(20)));
        // Once more before they are off, and then nothing is there to be read.
        std::thread::sleep(Duration::from_millis(20));
        guests.iter_mut().for_each(|guest| guest.destroy().unwrap());
        assert!(!vcsim.is_on("web-1") && !vcsim.is_on("web-2"));
        assert!(!(counters.read)().figures.is_empty(), "kept until it is asked for");
        assert!((counters.read)().figures.is_empty());
        run.end();
    });
}

#[test]
fn what_vsphere_refuses_is_said_with_the_reason_and_a_remedy() {
    apart(skipped, PASSWORD, |sshd, vcsim| {
        let Some(run) = Run::new("refused") else { return };
        prepared(vcsim);
        let view = HostView::here(&run.0.agent);
        let refused = |options: &Value, words: &[&str]| {
            let Err(Refusal { reason, remedy }) = platform(PLATFORM, options).check(&view) else {
                panic!("accepted: {options}")
            };
            let error = run.error(options);
            for word in words {
                assert!(format!("{reason} {remedy}").contains(word), "{word}: {reason} {remedy}");
                assert!(error.contains(word), "{word}: {error}");
            }
            assert!(!format!("{reason}{remedy}{error}").contains(PASSWORD) && !vcsim.is_on("web-1"));
        };
        refused(
            &options(sshd, "web-9", "clean"),
            &["no virtual machine \"web-9\"", "`govc find / -type m` lists them"],
        );
        refused(&options(sshd, "/DC0/vm/web-9", "clean"), &["no virtual machine \"/DC0/vm/web-9\""]);
        refused(&options(sshd, "web-1", "dirty"), &["has no snapshot \"dirty\"; it has:", "clean/later", "`snapshot`"]);
        refused(&options(sshd, "web-2", "clean"), &["has no snapshot, \"clean\" neither", "snapshot.create"]);
        let nowhere = json!({"vm": "web-1", "snapshot": "clean", "url": "http://127.0.0.1:1/sdk"});
        refused(&with(sshd.options(PLAIN), "vsphere", nowhere), &["connection refused", "GOVC_URL"]);
        vcsim.make_snapshot("web-1", "clean");
        refused(&options(sshd, "web-1", "clean"), &["may be several snapshots", "Write the path of one"]);
        run.end();
    });
}

#[test]
fn a_login_that_vsphere_does_not_know_is_refused_and_not_shown() {
    let wrong = "wrong-hunter2";
    apart(skipped, wrong, |sshd, vcsim| {
        let Some(run) = Run::new("login") else { return };
        prepared(vcsim);
        let options = options(sshd, "web-1", "clean");
        let Err(Refusal { reason, remedy }) = platform(PLATFORM, &options).check(&HostView::here(&run.0.agent)) else {
            panic!("accepted")
        };
        let error = run.error(&options);
        for said in [format!("{reason} {remedy}"), error] {
            assert!(said.contains("Login failure") && said.contains("GOVC_USERNAME and GOVC_PASSWORD"), "{said}");
            assert!(!said.contains(wrong), "{said}");
        }
        assert!(!vcsim.is_on("web-1"));
        run.end();
    });
}

#[test]
fn what_a_killed_controller_left_on_is_switched_off_and_no_password_is_in_the_ledger() {
    apart(skipped, PASSWORD, |sshd, vcsim| {
        let Some(run) = Run::new("vskilled") else { return };
        prepared(vcsim);
        let guest = run.start(&options(sshd, "web-1", "clean")).unwrap();
        let token = run.tokens().remove(0);
        assert!(!token.to_string().contains(PASSWORD) && token.to_string().contains("VirtualMachine:"), "{token}");
        // As after kill -9: the connection dies, which here is the ssh process, and nobody takes anything away.
        let ssh: Vec<String> = run.processes().into_iter().filter(|left| left.contains("(ssh)")).collect();
        let pid = ssh[0].split(' ').nth(1).unwrap();
        assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
        crate::remote::until("the agent to go with the connection", || run.is_clean());
        std::mem::forget(guest);
        assert!(vcsim.is_on("web-1"));
        run.reap(&token).unwrap();
        assert!(!vcsim.is_on("web-1"));
        run.reap(&token).unwrap();
        drop(run.0.lab);
        run.0.state.remove().unwrap();
    });
}
