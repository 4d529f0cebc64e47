//! Real machines: what this crate makes boots, and the agent in it sets it up as configured.

use crate::machine;

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{Machine, boot, config};
use tare_image::{DataDisk, DebianSpec, Format, Root, blank, debian_find, inspect, overlay};
use tare_wire::{Reply, Request};

macro_rules! boot_or_skip {
    () => {
        match boot() {
            Ok(boot) => boot,
            Err(reason) => {
                eprintln!("SKIPPED: {reason}");
                return;
            }
        }
    };
}

#[test]
fn the_initial_file_system_alone_is_a_guest() {
    let boot = boot_or_skip!();
    let mut setup = config(Root::Initrd);
    setup.address = Some(("198.18.0.2".parse().unwrap(), 24));
    setup.mtu = 1400;
    setup.congestion_control = Some("bbr".into());
    let network = ["-netdev", "hubport,hubid=0,id=n", "-device", "virtio-net-pci,netdev=n,romfile="];
    let mut machine = Machine::with_agent(&boot, &setup, &network);
    assert_eq!(machine.fact("host name"), "guest-1");
    assert_eq!(machine.fact("mtu eth0"), "1400");
    assert_eq!(machine.fact("congestion control"), "bbr");
    assert_eq!(machine.fact("root file system"), "rootfs");
    assert_eq!(machine.fact("user id"), "0");
    assert_eq!(machine.fact("cpus online"), "0");
    let Reply::Clock { monotonic_ns } = machine.call(Request::Clock) else { panic!("no clock") };
    assert!(monotonic_ns > 0);
    machine.call(Request::Bye);
    machine.wait();
}

#[test]
fn a_guest_is_switched_off_when_the_controller_goes() {
    let boot = boot_or_skip!();
    let mut machine = Machine::with_agent(&boot, &config(Root::Initrd), &[]);
    machine.link = None;
    machine.wait();
}

#[test]
fn a_controller_may_come_long_after_the_agent() {
    let boot = boot_or_skip!();
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("channel");
    let channel = format!("socket,id=agent,server=on,wait=off,path={}", socket.display());
    let mut machine = Machine::start_on(&channel, &boot, &config(Root::Initrd).command_line().unwrap(), &[]);
    let deadline = Instant::now() + machine::TIMEOUT;
    while !machine.console().contains("as init process") {
        assert!(Instant::now() < deadline, "{}", machine.console());
        std::thread::sleep(Duration::from_millis(20));
    }
    // By then the agent has opened its port, to which nobody listens.
    std::thread::sleep(Duration::from_secs(2));
    let stream = UnixStream::connect(&socket).unwrap();
    machine.open(Box::new(stream.try_clone().unwrap()), Box::new(stream), machine::TIMEOUT);
    assert_eq!(machine.fact("host name"), "guest-1");
    machine.call(Request::Bye);
    machine.wait();
}

#[test]
fn what_fails_is_on_the_console_and_the_machine_ends() {
    let boot = boot_or_skip!();
    let lost = Root::Disk { device: "vdz".into(), filesystem: "ext4".into() };
    let mut machine = Machine::start(&boot, "tare.hostname=g tare.run=r", &[]);
    machine.wait();
    let console = machine.console();
    assert!(console.contains("tare-agent: cannot understand") && console.contains("tare.root="), "{console}");

    let mut machine = Machine::start(&boot, &config(lost).command_line().unwrap(), &[]);
    machine.wait();
    let console = machine.console();
    assert!(console.contains("tare-agent: cannot find the disk /dev/vdz"), "{console}");
}

/// A root file system with a shell and `cat`, with their libraries, from this machine's own.
fn small_root(at: &Path) {
    let content = at.join("content");
    for program in ["/bin/sh", "/bin/cat"] {
        let listed = Command::new("ldd").arg(program).output().unwrap();
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
        for file in libraries.chain([program]) {
            let inside = content.join(file.trim_start_matches('/'));
            fs::create_dir_all(inside.parent().unwrap()).unwrap();
            fs::copy(file, inside).unwrap();
        }
    }
    let made = Command::new("/usr/sbin/mke2fs")
        .args(["-q", "-t", "ext4", "-d", content.to_str().unwrap(), at.join("root.img").to_str().unwrap(), "64M"])
        .status()
        .unwrap();
    assert!(made.success());
}

#[test]
fn a_disk_is_a_root_and_another_holds_data() {
    let boot = boot_or_skip!();
    if !Path::new("/usr/sbin/mke2fs").exists() || Command::new("qemu-img").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no mke2fs or no qemu-img here");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    small_root(place.path());
    let base = inspect(&place.path().join("root.img"), Format::Raw).unwrap();
    let clone = place.path().join("clone.qcow2");
    overlay(&base, &clone).unwrap();
    let data = place.path().join("data.img");
    blank(64 << 20, "ext4", &data, Format::Raw).unwrap();

    let mut setup = config(Root::Disk { device: "vda".into(), filesystem: "ext4".into() });
    setup.data_disks = vec![DataDisk { device: "vdb".into(), mount: "/srv/data".into(), filesystem: "ext4".into() }];
    let disks = [
        format!("file={},format=qcow2,if=virtio", clone.display()),
        format!("file={},format=raw,if=virtio", data.display()),
    ];
    let mut machine = Machine::with_agent(&boot, &setup, &["-drive", &disks[0], "-drive", &disks[1]]);
    assert_eq!(machine.fact("root file system"), "ext4");
    assert_eq!(machine.run(&["sh", "-c", "echo $TARE_RUN:$HOME:$LANG"]), "20260101-000000-beef:/root:C.UTF-8");
    assert_eq!(machine.run(&["sh", "-c", "echo kept >/srv/data/file && cat /srv/data/file"]), "kept");
    let mounts = machine.run(&["cat", "/proc/mounts"]);
    assert!(mounts.contains("/dev/vdb /srv/data ext4"), "{mounts}");
    assert_eq!(machine.run(&["sh", "-c", "(sleep 0 & ) ; echo gone >/new && cat /new"]), "gone");
    machine.call(Request::Bye);
    machine.wait();
    assert!(inspect(&clone, Format::Qcow2).is_err(), "a clone refers to its base, and is no image of a user's");
}

#[test]
fn a_debian_that_was_built_is_a_guest() {
    let boot = boot_or_skip!();
    let Some(image) = debian_find(&DebianSpec::default()).unwrap() else {
        eprintln!("SKIPPED: no Debian in the cache; build it: tare image build debian");
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let clone = place.path().join("clone.qcow2");
    overlay(&image, &clone).unwrap();
    let setup = config(Root::Disk { device: "vda".into(), filesystem: "ext4".into() });
    let disk = format!("file={},format=qcow2,if=virtio", clone.display());
    let mut machine = Machine::with_agent(&boot, &setup, &["-drive", &disk]);
    assert!(machine.run(&["cat", "/etc/os-release"]).contains("ID=debian"));
    assert!(machine.run(&["ip", "-o", "link"]).contains(" lo: "));
    assert!(machine.run(&["dpkg", "-s", "procps"]).contains("install ok installed"));
    machine.call(Request::Bye);
    machine.wait();
}

/// The program that shares a directory; dropped, it is gone.
struct Sharing(Child);

impl Drop for Sharing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn share_host(socket: &Path) -> Option<Sharing> {
    let programs = ["/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd"];
    let program = programs.into_iter().find(|program| Path::new(program).exists())?;
    let mut command = Command::new(program);
    command.arg(format!("--socket-path={}", socket.display()));
    if program.contains("libexec") {
        command.args(["--shared-dir=/", "--cache=always", "--sandbox=chroot", "--xattr"]);
    } else {
        command.args(["-o", "source=/,cache=always,sandbox=chroot,xattr"]);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while !socket.exists() {
        assert!(Instant::now() < deadline, "virtiofsd does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(Sharing(child))
}

#[test]
fn the_hosts_own_root_is_a_guests_and_stays_as_it_was() {
    let boot = boot_or_skip!();
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("socket");
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: sharing the whole root needs root");
        return;
    }
    let Some(_sharing) = share_host(&socket) else {
        eprintln!("SKIPPED: no virtiofsd here");
        return;
    };
    let shared = config(Root::Virtiofs { tag: "host".into() });
    let socket = format!("socket,id=fs,path={}", socket.display());
    let arguments = [
        ["-object", "memory-backend-memfd,id=m,size=256M,share=on"],
        ["-numa", "node,memdev=m"],
        ["-chardev", &socket],
        ["-device", "vhost-user-fs-pci,chardev=fs,tag=host"],
    ];
    let mut machine = Machine::with_agent(&boot, &shared, &arguments.concat());
    assert_eq!(machine.fact("root file system"), "overlay");
    let own = fs::read_to_string("/etc/os-release").unwrap();
    assert_eq!(machine.run(&["cat", "/etc/os-release"]), own.trim());
    // Its writes are its own, and it sees neither the host's /run nor its /tmp.
    let name = place.path().file_name().unwrap().to_str().unwrap().to_owned();
    machine.run(&["sh", "-c", &format!("echo x >/etc/{name} && rm /etc/hostname && ! test -e /tmp/{name}")]);
    assert!(!Path::new("/etc").join(&name).exists() && Path::new("/etc/hostname").exists());
    assert_eq!(machine.run(&["sh", "-c", "ls -A /run /tmp"]), "/run:\n\n/tmp:");
    assert_eq!(machine.run(&["uname", "-n"]), "guest-1");
    // The agent's orphans are collected: none stays a zombie.
    machine.run(&[
        "sh",
        "-c",
        "for i in 1 2 3; do (sleep 0.1 & ) ; done; sleep 0.5; ! grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null",
    ]);
    machine.call(Request::Bye);
    machine.wait();
}
