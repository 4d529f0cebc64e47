//! Options of the platform.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::{ByteSize, Span};

use super::disk_options::{self, Written};
pub(super) use super::disk_options::{Aio, Cache, DataDisk, Initiator, San};
use super::network::Network;
pub(super) use crate::machine::image::{DiskFormat, Image};
use crate::machine::memory::{Lies, refuse_merge_option};
use crate::machine::volume::Part;
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
    /// A disk for the log of a database, where the workload has one: it then lies there and not on the data disk. Mounted on `/log`.
    /// Left out: the log lies with the data.
    pub log_disk: Option<DataDisk>,
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
            log_disk: None,
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

    /// The disks for data that are written, each with what it is for.
    pub(super) fn disks(&self) -> impl Iterator<Item = (Part, &DataDisk)> {
        let disks = [(Part::Data, self.data_disk.as_ref()), (Part::Log, self.log_disk.as_ref())];
        disks.into_iter().filter_map(|(part, disk)| Some((part, disk?)))
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

    fn check_disks(&self) -> Result<(), FieldError> {
        disk_options::check_aio("disk", self.disk.aio, self.disk.cache)?;
        for (part, disk) in self.disks() {
            let (image, own_card) = (&self.image, self.network.vfio.is_some());
            Written { disk, option: part.option(), image, own_card }.check()?;
        }
        let Some(log) = &self.log_disk else { return Ok(()) };
        disk_options::check_apart(&self.data_disk.clone().unwrap_or_default(), log)
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
            "log-disk": {"format": "raw", "cache": "none"},
            "network": {"vhost": "off", "queues": 2, "offloads": false, "tx": "bh", "rx-queue-size": 512},
            "memory": {"free-page-reporting": true, "allowance": "512MiB"}, "outside-quota": true, "pin-vcpus": false, "boot-within": "20s",
        });
        let filled = check(&all).unwrap();
        assert_eq!(check(&filled).unwrap(), filled);
        let options: Options = common::read(&filled).unwrap();
        assert_eq!(options.data_disk.unwrap().mount(Part::Data), Some("/var/lib/x"));
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
        assert_eq!(wrong(json!({"boot-within": "0s"})), "boot-within");
        assert_eq!(wrong(json!({"program": "-x"})), "program");
    }
}
