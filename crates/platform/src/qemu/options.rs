//! Options of the platform.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::{ByteSize, Span};

use super::network::Network;
pub(super) use crate::machine::image::{DiskFormat, Image};
use crate::machine::memory::{Lies, refuse_merge_option};
use crate::options as common;

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Options {
    /// What runs the guest's instructions: `kvm`, `tcg` (emulated) or `auto`, which takes KVM only after a guest has
    /// really booted with it here.
    pub accel: Accel,
    /// The machine that the guest sees.
    pub machine: Machine,
    /// QEMU: the name of a program in PATH, or its path.
    pub program: String,
    /// The guest's processor, as QEMU's `-cpu` has it. Left out: `host` with KVM, `max` when emulated.
    pub cpu_model: Option<String>,
    /// The kernel that the guest boots; its modules are looked for beside it. Left out: the newest that
    /// `make platforms` fetched, or the host's.
    pub kernel: Option<PathBuf>,
    /// Further words for the kernel's command line.
    pub append: Vec<String>,
    /// Firmware in a flash chip (UEFI), for an image of one's own. Left out: QEMU's BIOS.
    pub firmware: Option<PathBuf>,
    /// What the guest's root file system is: `"host"`, a container image (`{ oci = "PATH" }`,
    /// `{ oci = { path = "PATH", name = "app:1" } }`), `{ debian = { packages = [..] } }` or
    /// `{ file = { path = "..", format = "qcow2" } }`.
    pub image: Image,
    /// The server that shares the guest's root, of `host` and `oci`. Left out: looked for where distributions put it.
    pub virtiofsd: Option<PathBuf>,
    /// How the root disk is attached, where the guest has one.
    pub disk: RootDisk,
    /// A disk for data.
    pub data_disk: Option<DataDisk>,
    /// The network card.
    pub network: Network,
    /// The guest's memory on the host.
    pub memory: Memory,
    /// Whether what serves the guest beside its virtual CPUs (I/O threads, vhost, a file server) may take CPU time beyond the guest's
    /// quota, on the guest's CPU set. The virtual CPUs are then bounded by their number alone, as they are on many hypervisors.
    pub outside_quota: bool,
    /// Whether each virtual CPU stays on one CPU of the guest's CPU set, in turn. Without a CPU set nothing is pinned.
    pub pin_vcpus: bool,
    /// How long the guest may take from the start of its processor to its agent's first answer. Beyond it the guest is
    /// given up, and the end of its console is shown.
    pub boot_within: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            accel: Accel::Auto,
            machine: Machine::Q35,
            program: "qemu-system-x86_64".into(),
            cpu_model: None,
            kernel: None,
            append: Vec::new(),
            firmware: None,
            image: Image::Host,
            virtiofsd: None,
            disk: RootDisk::default(),
            data_disk: None,
            network: Network::default(),
            memory: Memory::default(),
            outside_quota: false,
            pin_vcpus: true,
            boot_within: Span::from_millis(60_000),
        }
    }
}

/// What runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Accel {
    /// KVM where it has really booted a guest, else emulation.
    Auto,
    /// The processor, through KVM.
    Kvm,
    /// Emulation in software. Its figures say nothing about virtual machines.
    Tcg,
}

/// The machine that the guest sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Machine {
    /// A PC with PCI Express.
    Q35,
    /// A small machine without PCI, its devices memory-mapped.
    Microvm,
}

/// How the root disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct RootDisk {
    /// What each guest writes to: `qcow2` (an overlay over the image) or `raw` (a copy of it).
    pub clone: DiskFormat,
    /// What of it the host keeps in its memory.
    pub cache: Cache,
    /// How the host's files are read and written.
    pub aio: Aio,
    /// Whether a thread of its own serves it.
    pub iothread: bool,
}

impl Default for RootDisk {
    fn default() -> Self {
        Self { clone: DiskFormat::Qcow2, cache: Cache::Writeback, aio: Aio::Threads, iothread: false }
    }
}

/// A disk for data. With a workload that brings data, these are on it: on a clone of `format`, on a block `device`, or on
/// an iSCSI target. Otherwise it is empty and has a `size`, or is a `device` with what is on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct DataDisk {
    /// Size of a disk that is made for each guest, with an empty file system. With data it may be left out: the disk is as
    /// large as they ask for.
    pub size: Option<ByteSize>,
    /// Format of such a disk: with data, `raw` is a whole copy (shared blocks where the host's file system can), `qcow2`
    /// a file over the image that all guests begin with.
    pub format: DiskFormat,
    /// A block device of the host's that is passed through. It must not be in use, and one guest has it at a time;
    /// `{guest}` stands for the guest's number in its trial (1, 2, ..), so that several guests have one each. Without data
    /// tare writes nothing to it. With data it is overwritten before each guest, which needs `overwrite`.
    pub device: Option<PathBuf>,
    /// The disk is a unit of an iSCSI target: the lab's own, or that of `san`. Who logs in: `hypervisor` (QEMU, and the
    /// guest sees a virtio disk) or `guest` (over its own network card).
    pub iscsi: Option<Initiator>,
    /// A storage server of one's own for `iscsi`, on the network of a card that is passed through (`network.vfio`). Its
    /// unit is overwritten before each guest, which needs `overwrite`.
    pub san: Option<San>,
    /// That what is on `device` or on the unit of `san` may be destroyed.
    pub overwrite: bool,
    /// Where it is mounted in the guest. Left out: `/data` for one that was made or has data, nowhere for a device.
    pub mount: Option<String>,
    /// Type of its file system. Data are always on ext4.
    pub filesystem: String,
    /// What of it the host keeps in its memory.
    pub cache: Cache,
    /// How it is read and written on the host.
    pub aio: Aio,
    /// Whether a thread of its own serves it.
    pub iothread: bool,
}

impl Default for DataDisk {
    fn default() -> Self {
        Self {
            size: None,
            format: DiskFormat::Raw,
            device: None,
            iscsi: None,
            san: None,
            overwrite: false,
            mount: None,
            filesystem: "ext4".into(),
            cache: Cache::Writeback,
            aio: Aio::Threads,
            iothread: false,
        }
    }
}

/// Who logs in to an iSCSI target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Initiator {
    /// QEMU: the guest sees a virtio disk.
    Hypervisor,
    /// The guest, over its own network card.
    Guest,
}

/// A unit of a storage server of one's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct San {
    /// Its address and port, such as `192.0.2.9:3260`. This host must reach it, and the guest if that logs in.
    pub portal: SocketAddr,
    /// Name of the target; `{guest}` stands for the guest's number in its trial (1, 2, ..).
    pub target: String,
    /// Number of the unit.
    pub lun: u32,
}

impl DataDisk {
    /// Whether it is there for guests without data, too.
    pub(super) fn is_always_there(&self) -> bool {
        self.size.is_some() || self.device.is_some()
    }

    /// Where it is mounted in a guest without data.
    pub(super) fn mount(&self) -> Option<&str> {
        self.mount.as_deref().or(self.device.is_none().then_some("/data"))
    }
}

/// What of a disk the host keeps in its memory, as QEMU names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cache {
    /// Nothing (O_DIRECT).
    None,
    /// Reads and writes; a flush of the guest's reaches the disk.
    Writeback,
    /// Reads; every write reaches the disk.
    Writethrough,
    /// Reads and writes, and the guest's flushes are ignored: no figure of a database holds with it.
    Unsafe,
}

/// How the host's files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Aio {
    /// By threads.
    Threads,
    /// By the kernel's asynchronous calls; needs `cache = "none"`.
    Native,
    /// By io_uring.
    IoUring,
}

/// The guest's memory on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Memory {
    /// Whether it lies in huge pages that the host has set apart.
    pub huge_pages: bool,
    /// Whether the guest reports pages that it has freed, and the host takes them back.
    pub free_page_reporting: bool,
    /// What the control group grants beyond the guest's own memory, for QEMU, its translated code and a file server.
    pub allowance: ByteSize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { huge_pages: false, free_page_reporting: false, allowance: ByteSize(256 << 20) }
    }
}

/// Checks options and fills in what was left out.
pub(super) fn read(value: &Value) -> Result<Options, FieldError> {
    refuse_merge_option(value)?;
    let options: Options = common::read(value)?;
    options.check().map(|()| options)
}

impl Options {
    /// Whether the guest sees a file system of the host's, for which its memory must be shared with the file server.
    pub(super) fn shares_root(&self) -> bool {
        self.image.is_shared()
    }

    /// How the guest's memory lies on the host.
    pub(super) fn lies(&self) -> Lies {
        let (shared, huge_pages) = (self.shares_root(), self.memory.huge_pages);
        Lies { shared, huge_pages, passed_through: self.network.vfio.is_some() }
    }

    fn check(&self) -> Result<(), FieldError> {
        let refuse = |path: &[&str], why: &str, help: &str| Err(FieldError::new(path, why).help(help));
        if self.program.trim().is_empty() || self.program.starts_with('-') {
            return refuse(&["program"], "it is no program", "write a name such as \"qemu-system-x86_64\", or a path");
        }
        if self.boot_within.ns == 0 {
            return refuse(&["boot-within"], "no guest boots in no time", "write a time such as \"60s\"");
        }
        if let Some(word) = self.append.iter().find(|word| word.contains(|c: char| c.is_control())) {
            return refuse(&["append"], &format!("{word:?} has a control character"), "write plain words");
        }
        self.check_image()?;
        self.check_disks()?;
        self.network.check()
    }

    fn check_image(&self) -> Result<(), FieldError> {
        let refuse = |path: &[&str], why: &str, help: &str| Err(FieldError::new(path, why).help(help));
        let own = self.image.is_own();
        if own && self.machine == Machine::Microvm {
            return refuse(&["machine"], "a microvm cannot boot an image by its own boot loader", "use `q35`");
        }
        if own && self.kernel.is_some() {
            return refuse(&["kernel"], "an image of one's own boots its own kernel", "leave `kernel` out");
        }
        if own && !self.append.is_empty() {
            return refuse(&["append"], "an image of one's own has its own boot loader", "set its words in the image");
        }
        if !own && self.firmware.is_some() {
            return refuse(&["firmware"], "this guest's kernel is loaded without firmware", "leave `firmware` out");
        }
        Ok(())
    }

    fn check_disks(&self) -> Result<(), FieldError> {
        let native = |aio, cache| aio == Aio::Native && cache != Cache::None;
        let (why, help) = ("native reads and writes go past the host's cache", "write cache = \"none\" too");
        if native(self.disk.aio, self.disk.cache) {
            return Err(FieldError::new(&["disk", "aio"], why).help(help));
        }
        let Some(data) = &self.data_disk else { return Ok(()) };
        if native(data.aio, data.cache) {
            return Err(FieldError::new(&["data-disk", "aio"], why).help(help));
        }
        if data.size.is_some() && data.device.is_some() {
            return Err(FieldError::new(&["data-disk"], "it has either a `size` or a `device`")
                .help("write size = \"1GiB\" for a disk that tare makes"));
        }
        self.check_iscsi(data)?;
        if data.size.is_some_and(|size| size.0 < 16 << 20) {
            return Err(FieldError::new(&["data-disk", "size"], "there is no room for a file system in it")
                .help("write 16MiB or more"));
        }
        if data.mount.as_deref().is_some_and(|mount| !mount.starts_with('/')) {
            return Err(FieldError::new(&["data-disk", "mount"], "it is no absolute path").help("write \"/data\""));
        }
        Ok(())
    }

    fn check_iscsi(&self, data: &DataDisk) -> Result<(), FieldError> {
        let refuse = |key: &str, why: &str, help: &str| Err(FieldError::new(&["data-disk", key], why).help(help));
        if data.overwrite && data.device.is_none() && data.san.is_none() {
            return refuse("overwrite", "there is nothing of yours to overwrite", "leave it out");
        }
        let Some(initiator) = data.iscsi else {
            let help = "write iscsi = \"guest\" or iscsi = \"hypervisor\" too";
            return if data.san.is_some() { refuse("san", "nobody logs in to it", help) } else { Ok(()) };
        };
        if data.is_always_there() || data.format != DiskFormat::Raw {
            let help = "leave `size`, `device` and `format` out, or `iscsi`";
            return refuse("iscsi", "the unit of a target has the workload's data, and is nothing else", help);
        }
        if data.aio != Aio::Threads
            || (initiator == Initiator::Guest && (data.iothread || data.cache != Cache::Writeback))
        {
            let why = "`aio` is about files of the host's; `cache` and `iothread` about disks that QEMU has";
            return refuse("iscsi", why, "leave them out");
        }
        if let Some(san) = &data.san {
            let safe = |c: char| c.is_ascii_alphanumeric() || "-._:{}".contains(c);
            if san.target.is_empty() || !san.target.chars().all(safe) {
                return refuse("san", "its `target` is no name of iSCSI", "write it as iqn.2026-01.com.example:store");
            }
            if self.network.vfio.is_none() {
                let why = "the lab's network, which the guest and its QEMU are on, leads nowhere else";
                let help = "log in on this host (`iscsiadm`) and write device = \"/dev/..\", or pass a card through: network.vfio";
                return refuse("san", why, help);
            }
            if !data.overwrite {
                let why = "the gold copy is written over its unit before each guest";
                return refuse("overwrite", why, "write overwrite = true if what is there may be destroyed");
            }
        }
        if initiator == Initiator::Hypervisor {
            return Ok(());
        }
        if self.network.vfio.is_some() && data.san.is_none() {
            let why = "a guest with a passed-through card is not on the lab's network, where the lab's target is";
            return refuse("iscsi", why, "name a storage server on the card's network: san = { .. }");
        }
        if self.image.cannot_log_in() {
            let help = "write packages = [\"open-iscsi\", ..] for the image";
            return refuse("iscsi", "the image has nothing to log in with", help);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry;

    fn check(options: &Value) -> Result<Value, FieldError> {
        entry::check::<super::super::Qemu>(options)
    }
    use serde_json::json;

    #[test]
    fn a_study_sets_everything() {
        let all = json!({
            "accel": "tcg", "machine": "microvm", "program": "/opt/qemu", "cpu-model": "max,-avx", "kernel": "/boot/k",
            "append": ["quiet"], "image": {"debian": {"packages": ["sysbench"]}},
            "disk": {"clone": "raw", "cache": "none", "aio": "native", "iothread": true},
            "data-disk": {"size": "1GiB", "format": "qcow2", "mount": "/var/lib/x", "cache": "unsafe"},
            "network": {"vhost": "off", "queues": 2, "offloads": false, "tx": "bh", "rx-queue-size": 512},
            "memory": {"free-page-reporting": true, "allowance": "512MiB"}, "outside-quota": true, "pin-vcpus": false, "boot-within": "20s",
        });
        let filled = check(&all).unwrap();
        assert_eq!(check(&filled).unwrap(), filled);
        let options: Options = common::read(&filled).unwrap();
        assert_eq!(options.data_disk.unwrap().mount(), Some("/var/lib/x"));
        let file = json!({"image": {"file": {"path": "x.qcow2", "format": "qcow2"}}, "firmware": "/OVMF.fd"});
        assert!(check(&file).is_ok());
    }

    #[test]
    fn what_cannot_be_is_refused_where_it_is_written() {
        let wrong = |value: Value| check(&value).unwrap_err().path.join(".");
        let file = json!({"file": {"path": "x", "format": "raw"}});
        assert_eq!(wrong(json!({"image": {"file": {"path": "x"}}})), "image.file", "the format is never guessed");
        assert_eq!(wrong(json!({"image": file, "machine": "microvm"})), "machine");
        assert_eq!(wrong(json!({"image": file, "kernel": "/k"})), "kernel");
        assert_eq!(wrong(json!({"image": file, "append": ["x"]})), "append");
        assert_eq!(wrong(json!({"firmware": "/k"})), "firmware");
        assert_eq!(wrong(json!({"image": {"debian": {}}, "memory": {"merge": true}})), "memory.merge");
        assert_eq!(wrong(json!({"disk": {"aio": "native"}})), "disk.aio");
        assert!(check(&json!({"data-disk": {}})).is_ok(), "a disk for what a workload brings");
        let disk = |value: Value| wrong(json!({"data-disk": value}));
        let san = json!({"portal": "192.0.2.9:3260", "target": "iqn.2026-01.com.example:{guest}", "lun": 1});
        assert_eq!(disk(json!({"san": san})), "data-disk.san");
        assert_eq!(disk(json!({"iscsi": "guest", "san": san, "overwrite": true})), "data-disk.san");
        assert_eq!(disk(json!({"overwrite": true})), "data-disk.overwrite");
        assert_eq!(disk(json!({"iscsi": "hypervisor", "format": "qcow2"})), "data-disk.iscsi");
        assert_eq!(disk(json!({"iscsi": "guest", "iothread": true})), "data-disk.iscsi");
        assert_eq!(disk(json!({"iscsi": "nobody"})), "data-disk.iscsi");
        let debian = json!({"image": {"debian": {}}, "data-disk": {"iscsi": "guest"}});
        assert_eq!(wrong(debian), "data-disk.iscsi");
        let vfio = json!({"device": "0000:01:00.1", "mac": "02:00:00:00:00:01", "address": "192.0.2.7/24"});
        let on_a_real_card = |data: Value| json!({"image": file, "network": {"vfio": vfio}, "data-disk": data});
        assert_eq!(wrong(on_a_real_card(json!({"iscsi": "guest"}))), "data-disk.iscsi");
        assert_eq!(wrong(on_a_real_card(json!({"iscsi": "guest", "san": san}))), "data-disk.overwrite");
        for who in ["guest", "hypervisor"] {
            assert!(check(&on_a_real_card(json!({"iscsi": who, "san": san, "overwrite": true}))).is_ok());
        }
        assert_eq!(wrong(json!({"data-disk": {"size": "1GiB", "device": "/dev/sdb"}})), "data-disk");
        assert_eq!(wrong(json!({"data-disk": {"size": "1GiB", "mount": "data"}})), "data-disk.mount");
        assert_eq!(wrong(json!({"boot-within": "0s"})), "boot-within");
        assert_eq!(wrong(json!({"program": "-x"})), "program");
    }

    #[test]
    fn a_device_is_mounted_only_where_that_is_written() {
        let device = DataDisk { device: Some("/dev/sdb".into()), ..DataDisk::default() };
        assert_eq!(device.mount(), None);
        assert_eq!(DataDisk::default().mount(), Some("/data"));
    }
}
