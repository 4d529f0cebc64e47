//! A real image with a real cloud-init: the seed starts the agent in it. It takes an image that only who asks for it
//! builds: `tare image build debian` with [`PACKAGES`].

use crate::machine;
#[allow(dead_code)]
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::machine::Machine;
use tare_image::{Boot, CHANNEL_PORT, DebianSpec, Disk, Seed, debian_find, overlay, seed};
use tare_wire::Request;

const PACKAGES: [&str; 6] = ["systemd-sysv", "udev", "cloud-init", "linux-image-cloud-amd64", "netplan.io", "dbus"];

/// systemd and cloud-init are slow when they are emulated.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The kernel and the initial file system that are in the image.
fn own_boot(image: &Disk, at: &Path) -> Boot {
    let debugfs = |request: &str| {
        let done = Command::new("/usr/sbin/debugfs").args(["-R", request]).arg(&image.path).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let listed = debugfs("ls -p /boot");
    let release = listed.split('/').find_map(|name| name.strip_prefix("vmlinuz-")).unwrap().to_owned();
    let boot = Boot { kernel: at.join("vmlinuz"), initrd: at.join("initrd") };
    debugfs(&format!("dump /boot/vmlinuz-{release} {}", boot.kernel.display()));
    debugfs(&format!("dump /boot/initrd.img-{release} {}", boot.initrd.display()));
    boot
}

#[test]
fn cloud_init_starts_the_agent() {
    let spec = DebianSpec { suite: None, packages: PACKAGES.map(String::from).to_vec() };
    let found = machine::boot().and_then(|_| debian_find(&spec).map_err(|error| error.to_string()));
    let image = match found {
        Ok(Some(image)) => image,
        Ok(None) => {
            eprintln!("SKIPPED: no such image; build it: tare image build debian {}", PACKAGES.join(" "));
            return;
        }
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
    };
    let place = tempfile::tempdir().unwrap();
    let boot = own_boot(&image, place.path());
    let (clone, seeded) = (place.path().join("clone.qcow2"), place.path().join("seed.img"));
    overlay(&image, &clone).unwrap();
    let asked = Seed {
        hostname: "seeded".into(),
        address: Some(("198.18.0.7".parse().unwrap(), 24)),
        mac: "02:00:c6:12:00:07".into(),
        mtu: 1400,
        run_id: "20260101-000000-beef".into(),
        channel: CHANNEL_PORT.into(),
    };
    seed(&asked, &machine::agent().unwrap(), &seeded).unwrap();
    let disks = [
        format!("file={},format=qcow2,if=virtio", clone.display()),
        format!("file={},format=raw,if=virtio,readonly=on", seeded.display()),
    ];
    let arguments = ["-m", "1024", "-drive", &disks[0], "-drive", &disks[1], "-netdev", "hubport,hubid=0,id=n"];
    let card = ["-device", "virtio-net-pci,netdev=n,romfile=,mac=02:00:c6:12:00:07"];
    let mut machine = Machine::start(&boot, "root=/dev/vda rw", &[&arguments[..], &card].concat());
    machine.reach_agent(TIMEOUT);
    assert_eq!(machine.fact("host name"), "seeded");
    assert_eq!(machine.fact("mtu eth0"), "1400");
    assert_eq!(machine.run(&["sh", "-c", "echo $TARE_RUN"]), asked.run_id);
    assert!(machine.run(&["ip", "-4", "-o", "address"]).contains("198.18.0.7/24"));
    assert!(!machine.run(&["mount"]).contains("tare-seed"), "the seed is not left mounted");
    machine.call(Request::Bye);
}
