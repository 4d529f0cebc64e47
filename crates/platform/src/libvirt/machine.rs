//! The description of a machine that tare makes.

use std::path::{Path, PathBuf};

use tare_model::ByteSize;
use tare_model::guest::{GuestSpec, ParityRow};

use super::options::{Bus, Cache, Io, Memory, Network, Options};
use super::xml::Node;
use crate::machine::{kernel, share};
use crate::options::Switch;
use crate::{merging, parity};

/// QEMU's own elements.
const QEMU_NAMESPACE: &str = "http://libvirt.org/schemas/domain/qemu/1.0";
/// Cache of translated code when emulated, MiB. QEMU would take up to a gigabyte of the host's memory.
const TRANSLATIONS_MIB: u32 = 128;
/// Requests that the file server takes at once.
const SHARE_QUEUE: u32 = 1024;

/// Everything about a machine.
pub(super) struct Machine<'a> {
    pub name: &'a str,
    pub uuid: &'a str,
    pub run_id: &'a str,
    pub spec: &'a GuestSpec,
    pub options: &'a Options,
    pub kvm: bool,
    /// Hardware address and the host's name of its network card; none without one.
    pub network: Option<(&'a str, &'a str)>,
    pub boot: Boot,
    pub disks: Vec<DiskFile>,
    /// Socket of the file server.
    pub share: Option<PathBuf>,
    /// Socket that the agent's port is to be on; libvirt's own choice without.
    pub channel: Option<PathBuf>,
    /// Socket that the console is to be on; libvirt's own choice without.
    pub console: Option<PathBuf>,
    /// What libvirt would confine the emulator with.
    pub confined_by: Vec<String>,
}

/// What it boots.
pub(super) enum Boot {
    /// A kernel of the host's.
    Kernel { image: PathBuf, initrd: PathBuf, command_line: String },
    /// Its first disk.
    Disk,
}

/// A disk of it.
#[derive(Clone)]
pub(super) struct DiskFile {
    pub path: PathBuf,
    /// `raw` or `qcow2`.
    pub format: &'static str,
    pub read_only: bool,
    /// Its serial number. A disk that is found by it is a virtio one, whatever the others are.
    pub serial: Option<&'static str>,
}

impl Machine<'_> {
    /// As libvirt takes it.
    pub(super) fn describe(&self) -> Node {
        let size = self.spec.size;
        let mut vcpus = Node::new("vcpu").with("placement", "static");
        if !self.spec.cpu_set.is_empty() {
            vcpus = vcpus.with("cpuset", crate::parity::ranges(&self.spec.cpu_set));
        }
        let run = Node::new("qemu:env").with("name", tare_lab::RUN_VARIABLE).with("value", self.run_id);
        let ends = ["on_poweroff", "on_reboot", "on_crash"].map(|end| Node::new(end).text("destroy"));
        Node::new("domain")
            .with("type", if self.kvm { "kvm" } else { "qemu" })
            .with("xmlns:qemu", QEMU_NAMESPACE)
            .child(Node::new("name").text(self.name))
            .child(Node::new("uuid").text(self.uuid))
            .child(Node::new("description").text(format!("a guest of tare's run {}; `tare reap` ends it", self.run_id)))
            .child(Node::new("memory").with("unit", "b").text(size.memory.0))
            .child(vcpus.text(size.cpus))
            .child(backing(self.options.memory, self.spec.merge, self.share.is_some()))
            .child(self.system())
            .child(self.features())
            .child(self.cpu())
            .children(ends)
            .child(Node::new("devices").children(self.devices()))
            .children(self.confined_by.iter().map(|model| unconfined(model)))
            .child(Node::new("qemu:commandline").child(run))
    }

    fn system(&self) -> Node {
        let arch = std::env::consts::ARCH;
        let kind = Node::new("type").with("arch", arch).with("machine", &self.options.machine).text("hvm");
        let system = Node::new("os").child(kind);
        match &self.boot {
            Boot::Kernel { image, initrd, command_line } => system
                .child(Node::new("kernel").text(image.display()))
                .child(Node::new("initrd").text(initrd.display()))
                .child(Node::new("cmdline").text(command_line)),
            Boot::Disk => system.child(Node::new("boot").with("dev", "hd")),
        }
    }

    fn features(&self) -> Node {
        let features = Node::new("features").child(Node::new("acpi"));
        if self.kvm {
            return features;
        }
        let cache = Node::new("tb-cache").with("unit", "MiB").text(TRANSLATIONS_MIB);
        features.child(Node::new("tcg").child(cache))
    }

    fn cpu(&self) -> Node {
        let cpu = Node::new("cpu");
        match self.options.cpu_model.as_deref() {
            None if self.kvm => cpu.with("mode", "host-passthrough"),
            None => cpu.with("mode", "maximum"),
            Some(mode @ ("host-passthrough" | "host-model" | "maximum")) => cpu.with("mode", mode),
            Some(model) => {
                let model = Node::new("model").with("fallback", "forbid").text(model);
                cpu.with("mode", "custom").with("match", "exact").child(model)
            }
        }
    }

    fn devices(&self) -> Vec<Node> {
        let mut devices = vec![
            Node::new("controller").with("type", "usb").with("model", "none"),
            Node::new("controller").with("type", "virtio-serial").with("index", 0),
            balloon(self.options.memory),
            Node::new("rng")
                .with("model", "virtio")
                .child(Node::new("backend").with("model", "random").text("/dev/urandom")),
            self.channel_device(),
        ];
        devices.push(match self.console.as_deref() {
            Some(path) => Node::new("serial").with("type", "unix").child(bound(path)),
            None => Node::new("serial").with("type", "pty"),
        });
        if self.disks.len() > 1 || self.options.disk.bus == Bus::Scsi {
            devices.push(Node::new("controller").with("type", "scsi").with("model", "virtio-scsi"));
        }
        devices.extend(self.disks.iter().enumerate().map(|(number, disk)| self.disk(number, disk)));
        devices.extend(self.share.as_deref().map(shared));
        devices.extend(self.network.map(|(mac, name)| card(&self.options.network, self.kvm, mac, name)));
        devices
    }

    fn channel_device(&self) -> Node {
        let port = Node::new("target").with("type", "virtio").with("name", tare_image::CHANNEL_PORT);
        let channel = Node::new("channel").with("type", "unix");
        let channel = match &self.channel {
            Some(path) => channel.child(bound(path)),
            None => channel.child(Node::new("source").with("mode", "bind")),
        };
        channel.child(port)
    }

    fn disk(&self, number: usize, file: &DiskFile) -> Node {
        let options = self.options.disk;
        let (bus, letters) = match options.bus {
            _ if file.serial.is_some() => ("virtio", "vd"),
            Bus::Virtio => ("virtio", "vd"),
            Bus::Scsi => ("scsi", "sd"),
            Bus::Sata => ("sata", "sd"),
        };
        let mut driver = Node::new("driver").with("name", "qemu").with("type", file.format);
        if let Some(cache) = options.cache {
            driver = driver.with("cache", cache_word(cache));
        }
        if let Some(io) = options.io {
            driver = driver.with("io", io_word(io));
        }
        let letter = char::from(b'a' + u8::try_from(number % 26).unwrap_or(0));
        let disk = Node::new("disk")
            .with("type", "file")
            .with("device", "disk")
            .child(driver)
            .child(Node::new("source").with("file", file.path.display()))
            .child(Node::new("target").with("dev", format!("{letters}{letter}")).with("bus", bus));
        let disk = disk.children(file.serial.map(|serial| Node::new("serial").text(serial)));
        if file.read_only { disk.child(Node::new("readonly")) } else { disk }
    }
}

/// A socket that QEMU listens on.
fn bound(path: &Path) -> Node {
    Node::new("source").with("mode", "bind").with("path", path.display())
}

fn backing(memory: Memory, merge: bool, shared: bool) -> Node {
    let mut backing = Node::new("memoryBacking");
    if memory.huge_pages {
        backing = backing.child(Node::new("hugepages"));
    }
    if !merge {
        backing = backing.child(Node::new("nosharepages"));
    }
    if shared {
        // The file server reads and writes the guest's memory.
        let source = Node::new("source").with("type", "memfd");
        backing = backing.child(source).child(Node::new("access").with("mode", "shared"));
    }
    backing
}

fn balloon(memory: Memory) -> Node {
    let balloon = Node::new("memballoon");
    if memory.free_page_reporting {
        balloon.with("model", "virtio").with("freePageReporting", "on")
    } else {
        balloon.with("model", "none")
    }
}

fn shared(socket: &Path) -> Node {
    Node::new("filesystem")
        .with("type", "mount")
        .child(Node::new("driver").with("type", "virtiofs").with("queue", SHARE_QUEUE))
        .child(Node::new("source").with("socket", socket.display()))
        .child(Node::new("target").with("dir", share::TAG))
}

fn card(options: &Network, kvm: bool, mac: &str, name: &str) -> Node {
    let card = Node::new("interface")
        .with("type", "ethernet")
        .child(Node::new("mac").with("address", mac))
        .child(Node::new("target").with("dev", name))
        .child(Node::new("model").with("type", &options.model));
    if options.model != "virtio" {
        return card;
    }
    let vhost = match options.vhost {
        Switch::On => true,
        Switch::Off => false,
        Switch::Auto => kvm && kernel::vhost().is_ok(),
    };
    let mut driver = Node::new("driver").with("name", if vhost { "vhost" } else { "qemu" });
    if options.queues > 1 {
        driver = driver.with("queues", options.queues);
    }
    card.child(driver)
}

/// The emulator runs as root and confined by nothing, as every other arm's does: libvirt would otherwise give kernel
/// and disks to another user for the time being, and confine by what differs from host to host.
fn unconfined(model: &str) -> Node {
    let label = Node::new("seclabel").with("model", model).with("relabel", "no");
    match model {
        "dac" => label.with("type", "static").child(Node::new("label").text("+0:+0")),
        _ => Node::new("seclabel").with("model", model).with("type", "none"),
    }
}

fn cache_word(cache: Cache) -> &'static str {
    match cache {
        Cache::None => "none",
        Cache::Writeback => "writeback",
        Cache::Writethrough => "writethrough",
        Cache::Directsync => "directsync",
        Cache::Unsafe => "unsafe",
    }
}

fn io_word(io: Io) -> &'static str {
    match io {
        Io::Threads => "threads",
        Io::Native => "native",
        Io::Uring => "io_uring",
    }
}

/// What was granted of merging: by the host's kernel, which tells of the emulator (`pid`) from Linux 6.12, else by libvirt.
pub(super) fn merging(pid: u32, description: &Node) -> ParityRow {
    match merging::is_mergeable(pid) {
        Some(on) => merging::read_back(Some(on), format!("ksm_mergeable of process {pid}, the emulator")),
        None => {
            let on = description.find("memoryBacking/nosharepages").is_none();
            merging::read_back(Some(on), "libvirt's description of the running domain".to_owned())
        }
    }
}

/// What libvirt says that the running domain has, beside what was asked.
pub(super) fn granted(spec: &GuestSpec, description: &Node) -> Vec<ParityRow> {
    let cpus = description.find("vcpu").map(|node| node.attribute("current").unwrap_or(&node.text).to_owned());
    let memory = description.find("memory").and_then(bytes).map(|bytes| ByteSize(bytes).to_string());
    let note = "libvirt's description of the running domain";
    vec![
        parity::row("virtual cpus", spec.size.cpus.to_string(), cpus, note),
        parity::row("guest memory", spec.size.memory.to_string(), memory, note),
    ]
}

/// A size in a description; libvirt counts in KiB unless it says otherwise.
fn bytes(node: &Node) -> Option<u64> {
    let factor = match node.attribute("unit").unwrap_or("KiB") {
        "b" | "bytes" => 1,
        "KiB" | "k" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        _ => return None,
    };
    node.text.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::guest::GuestSize;

    fn machine<'a>(spec: &'a GuestSpec, options: &'a Options) -> Machine<'a> {
        Machine {
            name: "tare-r-g",
            uuid: "u",
            run_id: "r",
            spec,
            options,
            kvm: false,
            network: Some(("02:00:00:00:00:01", "tare1")),
            boot: Boot::Disk,
            disks: vec![DiskFile { path: "/a&b<".into(), format: "qcow2", read_only: false, serial: Some("s&") }],
            share: Some("/s".into()),
            channel: Some("/c".into()),
            console: Some("/t".into()),
            confined_by: vec!["dac".into(), "apparmor".into()],
        }
    }

    fn spec() -> GuestSpec {
        let size = GuestSize { cpus: 2, memory: ByteSize(512 << 20) };
        GuestSpec { cpu_set: vec![0, 1, 3], ..GuestSpec::new("g", size) }
    }

    #[test]
    fn a_description_says_what_the_options_say() {
        let (spec, mut options) = (spec(), Options::default());
        options.network.queues = 4;
        options.network.vhost = Switch::On;
        options.disk.cache = Some(Cache::None);
        options.disk.io = Some(Io::Uring);
        options.cpu_model = Some("Nehalem".into());
        let read = Node::parse(&machine(&spec, &options).describe().write().unwrap()).unwrap();
        let attribute = |path: &str, name: &str| read.find(path).unwrap().attribute(name).unwrap().to_owned();
        assert_eq!(attribute("vcpu", "cpuset"), "0-1,3");
        assert_eq!(attribute("devices/interface/driver", "queues"), "4");
        assert_eq!(attribute("devices/interface/driver", "name"), "vhost");
        assert_eq!(attribute("devices/disk/driver", "io"), "io_uring");
        assert_eq!(attribute("devices/disk/source", "file"), "/a&b<");
        assert_eq!(attribute("devices/filesystem/source", "socket"), "/s");
        assert_eq!(attribute("memoryBacking/access", "mode"), "shared");
        assert_eq!(attribute("qemu:commandline/qemu:env", "value"), "r");
        assert_eq!(read.find("cpu/model").unwrap().text, "Nehalem");
        assert_eq!(read.all("seclabel").count(), 2);
        assert!(read.find("memoryBacking/nosharepages").is_some());
        assert_eq!(attribute("devices/memballoon", "model"), "none");
        options.memory.free_page_reporting = true;
        let merged = GuestSpec { merge: true, ..spec };
        let read = Node::parse(&machine(&merged, &options).describe().write().unwrap()).unwrap();
        assert!(read.find("memoryBacking/nosharepages").is_none());
        assert_eq!(read.find("devices/memballoon").unwrap().attribute("freePageReporting"), Some("on"));
    }

    #[test]
    fn what_was_granted_is_read_back_and_compared() {
        let text = "<domain><memory unit='KiB'>524288</memory><vcpu placement='static' current='1'>2</vcpu></domain>";
        let rows = granted(&spec(), &Node::parse(text).unwrap());
        assert_eq!(rows.iter().map(|row| row.equal).collect::<Vec<_>>(), [false, true], "{rows:?}");
        // Of no process the kernel tells nothing: libvirt is believed.
        let apart = Node::new("domain").child(Node::new("memoryBacking").child(Node::new("nosharepages")));
        let rows = [&apart, &Node::new("domain")].map(|description| merging(u32::MAX, description).equal);
        assert_eq!(rows, [false, true]);
        let rows = granted(&spec(), &Node::new("domain"));
        assert!(rows.iter().all(|row| row.granted.is_none() && !row.equal), "{rows:?}");
    }
}
