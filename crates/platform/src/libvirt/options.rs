//! Options of the platform.

use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;

use super::uri::Uri;
pub(super) use crate::machine::image::{DiskFormat, Image};
use crate::machine::memory::{Lies, refuse_merge_option};
use crate::options::{self as common, Switch};

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Options {
    /// The connection, as libvirt writes them.
    pub uri: String,
    /// What runs the guest's instructions: `auto`, `kvm` or `tcg` (emulation).
    pub accel: Accel,
    /// Machine type, such as `q35`.
    pub machine: String,
    /// CPU model: `host-passthrough`, `host-model`, `maximum` or a name that libvirt knows. Left out:
    /// `host-passthrough` with KVM, `maximum` when emulated.
    pub cpu_model: Option<String>,
    /// What the guest boots: `"host"` (the host's own root, shared and never written), a container image in the same way
    /// (`{ oci = "PATH" }`, `{ oci = { path = "PATH", name = "app:1" } }`), `{ debian = {} }` or
    /// `{ file = { path = "DISK", format = "qcow2" } }`.
    pub image: Image,
    /// The kernel for `host`, `oci` and `debian`. Left out: the one that `make platforms` fetched, or the host's.
    pub kernel: Option<PathBuf>,
    /// Further words for the kernel's command line, of `host` and `debian`.
    pub append: Vec<String>,
    /// A domain that is there already, started and stopped instead of one made for the run.
    pub domain: Option<Existing>,
    /// The guest's memory on the host.
    pub memory: Memory,
    /// The guest's disk, for images that have one; its cache and io are those of the data disk, too.
    pub disk: Disk,
    /// The disk with the data of a workload that brings some.
    pub data_disk: DataDisk,
    /// The guest's network card.
    pub network: Network,
    /// Pin virtual CPU n to the n-th of the guest's CPUs, the first again after the last.
    pub pin_vcpus: bool,
    /// How long the guest may take to its agent's first answer; then it is given up.
    pub boot_within: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            uri: "qemu:///system".into(),
            accel: Accel::Auto,
            machine: "q35".into(),
            cpu_model: None,
            image: Image::Host,
            kernel: None,
            append: Vec::new(),
            domain: None,
            memory: Memory::default(),
            disk: Disk::default(),
            data_disk: DataDisk::default(),
            network: Network::default(),
            pin_vcpus: false,
            boot_within: Span::from_secs(60),
        }
    }
}

impl Options {
    /// How the guest's memory lies on the host.
    pub(super) fn lies(&self) -> Lies {
        let (shared, huge_pages) = (self.image.is_shared(), self.memory.huge_pages);
        Lies { shared, huge_pages, passed_through: false }
    }
}

/// What runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Accel {
    /// KVM where it has really booted a guest, emulation elsewhere.
    #[default]
    Auto,
    /// The processor's virtualisation.
    Kvm,
    /// Emulation.
    Tcg,
}

/// A domain that is there already. Its guest runs the agent on a virtio port of the name `org.tare.agent.0`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Existing {
    /// Its name. It must be shut off: a running one is somebody's.
    pub existing: String,
    /// A snapshot of it to go back to before every start.
    #[serde(default)]
    pub snapshot: Option<String>,
    /// The address of its guest, where its servers are reached.
    pub address: IpAddr,
}

/// The guest's memory on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Memory {
    /// Take it from the host's huge pages.
    pub huge_pages: bool,
    /// Whether the guest reports pages that it has freed, and the host takes them back; needs libvirt 6.9.
    pub free_page_reporting: bool,
}

/// The guest's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Disk {
    /// How the guest sees it.
    pub bus: Bus,
    /// The host's cache. Left out: libvirt's choice.
    pub cache: Option<Cache>,
    /// How the host reads and writes. Left out: libvirt's choice.
    pub io: Option<Io>,
}

/// The disk with a workload's data: virtio-blk, or a unit of an iSCSI target that the guest itself logs in to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct DataDisk {
    /// `raw`: a whole copy (shared blocks where the host's file system can). `qcow2`: a file over the image that all
    /// guests begin with.
    pub format: DiskFormat,
    /// The unit of the lab's own target that `guest` logs in to, over its network card.
    pub iscsi: Option<Initiator>,
}

impl Default for DataDisk {
    fn default() -> Self {
        Self { format: DiskFormat::Raw, iscsi: None }
    }
}

/// Who logs in to an iSCSI target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Initiator {
    /// The emulator: not available here, as libvirt starts it in the host's network and not in the lab's.
    Hypervisor,
    /// The guest, over its own network card.
    Guest,
}

/// How the guest sees its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Bus {
    /// virtio-blk.
    #[default]
    Virtio,
    /// virtio-scsi; for images with a kernel of their own.
    Scsi,
    /// An emulated SATA disk; for images with a kernel of their own.
    Sata,
}

/// The host's cache of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cache {
    /// The host's page cache is passed by.
    None,
    /// It is used.
    Writeback,
    /// It is used for reading.
    Writethrough,
    /// Passed by, and each write waits for the disk.
    Directsync,
    /// Used, and the guest's flushes are ignored: data is lost when the host fails.
    Unsafe,
}

/// How the host reads and writes a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) enum Io {
    /// By a pool of threads.
    #[serde(rename = "threads")]
    Threads,
    /// By the kernel's asynchronous I/O; needs a cache of `none` or `directsync`.
    #[serde(rename = "native")]
    Native,
    /// By io_uring.
    #[serde(rename = "io_uring")]
    Uring,
}

/// The guest's network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Network {
    /// Its model, such as `virtio`, or `e1000e` for images with a kernel of their own.
    pub model: String,
    /// Pairs of queues, of virtio alone.
    pub queues: u32,
    /// Whether the kernel (vhost-net) moves packets instead of QEMU: `auto` where the host has it and KVM is used.
    pub vhost: Switch,
}

impl Default for Network {
    fn default() -> Self {
        Self { model: "virtio".into(), queues: 1, vhost: Switch::Auto }
    }
}

/// Most pairs of queues that a virtio network card has in QEMU.
const QUEUES_MAX: u32 = 128;

/// Checks options and fills in what was left out.
pub(super) fn read(value: &Value) -> Result<Options, FieldError> {
    refuse_merge_option(value)?;
    if value.get("log-disk").is_some() {
        let why = "a domain has one disk for its data here, and the log of a database lies there too";
        return Err(FieldError::new(&["log-disk"], why).help("leave it out, or measure machines without the library"));
    }
    let options: Options = common::read(value)?;
    let wrong = |path: &[&str], why: &str, help: &str| Err(FieldError::new(path, why).help(help));
    let uri = Uri::parse(&options.uri).map_err(|why| FieldError::new(&["uri"], why))?;
    if let Some(domain) = &options.domain {
        if domain.existing.trim().is_empty() {
            return wrong(
                &["domain", "existing"],
                "no domain is named",
                "write the name that `virsh list --all` shows",
            );
        }
    } else if !uri.local && uri.driver == "qemu" {
        let help = "write domain = { existing = \"NAME\", address = \"ADDRESS\" }";
        return wrong(&["uri"], "guests elsewhere cannot be made, for image and lab are on this host", help);
    }
    for (path, word) in [(["machine"].as_slice(), &options.machine), (&["network", "model"], &options.network.model)] {
        name(path, word)?;
    }
    options.cpu_model.iter().try_for_each(|model| name(&["cpu-model"], model))?;
    let own_kernel = options.image.is_own();
    if let Some(word) = options.append.iter().find(|word| word.contains(|c: char| c.is_control())) {
        return wrong(&["append"], &format!("{word:?} has a control character"), "write plain words");
    }
    if !options.append.is_empty() && (own_kernel || options.domain.is_some()) {
        return wrong(&["append"], "an image of one's own has its own boot loader", "set its words in the image");
    }
    let help = "images with a kernel of their own have other drivers: image = { file = { ... } }";
    if options.disk.bus != Bus::Virtio && !own_kernel {
        return wrong(&["disk", "bus"], "tare's own initial file system knows virtio disks alone", help);
    }
    if options.network.model != "virtio" && !own_kernel {
        return wrong(&["network", "model"], "tare's own initial file system knows virtio network cards alone", help);
    }
    let queues = options.network.queues;
    if !(1..=QUEUES_MAX).contains(&queues) || (queues > 1 && options.network.model != "virtio") {
        return wrong(
            &["network", "queues"],
            "it has one pair of queues, or with virtio up to 128",
            "write queues = 1",
        );
    }
    if options.disk.io == Some(Io::Native) && !matches!(options.disk.cache, Some(Cache::None | Cache::Directsync)) {
        return wrong(
            &["disk", "io"],
            "the kernel's asynchronous I/O needs the cache passed by",
            "add cache = \"none\"",
        );
    }
    check_data(&options)?;
    Ok(options)
}

fn check_data(options: &Options) -> Result<(), FieldError> {
    let wrong = |why: &str, help: &str| Err(FieldError::new(&["data-disk", "iscsi"], why).help(help));
    match options.data_disk.iscsi {
        None => Ok(()),
        Some(Initiator::Hypervisor) => wrong(
            "libvirt starts the emulator in the host's network, from which the lab's target is not to be reached",
            "write \"guest\", or use the platform that starts the emulator itself",
        ),
        Some(_) if options.data_disk.format != DiskFormat::Raw => {
            wrong("the unit of the target is a raw file", "leave `format` out")
        }
        Some(_) if options.image.cannot_log_in() => {
            wrong("the image has nothing to log in with", "write packages = [\"open-iscsi\", ..] for the image")
        }
        Some(_) => Ok(()),
    }
}

/// A word that libvirt looks up.
fn name(path: &[&str], word: &str) -> Result<(), FieldError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.+:".contains(c);
    if word.is_empty() || !word.chars().all(fits) {
        return Err(FieldError::new(path, format!("`{}` is no name", word.escape_debug())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::check;
    use crate::machine::image::DebianImage;
    use serde_json::json;

    #[test]
    fn a_study_says_as_little_as_it_likes() {
        let read = |value| common::read::<Options>(&check::<super::super::Libvirt>(&value).unwrap()).unwrap();
        assert_eq!(read(json!({})), Options::default());
        let options = read(json!({
            "image": {"file": {"path": "/x.qcow2", "format": "qcow2"}},
            "disk": {"bus": "sata", "cache": "none", "io": "native"},
            "network": {"model": "e1000e"},
            "memory": {"free-page-reporting": true},
        }));
        assert_eq!(options.disk.io, Some(Io::Native));
        assert_eq!(read(json!({"image": {"debian": {}}})).image, Image::Debian(DebianImage::default()));
        let there = json!({"uri": "qemu+ssh://h/system", "domain": {"existing": "vm", "address": "192.0.2.1"}});
        assert_eq!(read(there).domain.unwrap().existing, "vm");
    }

    #[test]
    fn what_cannot_work_is_refused_where_it_is_written() {
        let refused = |value: Value, path: &[&str]| {
            let error = check::<super::super::Libvirt>(&value).unwrap_err();
            assert_eq!(error.path, path, "{error}");
        };
        refused(json!({"uri": "qemu"}), &["uri"]);
        refused(json!({"uri": "qemu+ssh://host/system"}), &["uri"]);
        refused(json!({"machine": "q35 -nic none"}), &["machine"]);
        refused(json!({"append": ["a\nb"]}), &["append"]);
        refused(json!({"append": ["x"], "image": {"file": {"path": "/x", "format": "raw"}}}), &["append"]);
        refused(json!({"cpu-model": ""}), &["cpu-model"]);
        refused(json!({"disk": {"bus": "scsi"}}), &["disk", "bus"]);
        refused(json!({"network": {"queues": 0}}), &["network", "queues"]);
        refused(json!({"network": {"model": "e1000"}}), &["network", "model"]);
        refused(json!({"disk": {"io": "native"}}), &["disk", "io"]);
        refused(json!({"image": {"debian": {}}, "memory": {"merge": true}}), &["memory", "merge"]);
        refused(json!({"log-disk": {"format": "raw"}}), &["log-disk"]);
        refused(json!({"image": {"file": {"path": "/x"}}}), &["image", "file"]);
        refused(json!({"data-disk": {"iscsi": "hypervisor"}}), &["data-disk", "iscsi"]);
        refused(json!({"data-disk": {"iscsi": "guest", "format": "qcow2"}}), &["data-disk", "iscsi"]);
        refused(json!({"image": {"debian": {}}, "data-disk": {"iscsi": "guest"}}), &["data-disk", "iscsi"]);
        refused(json!({"domain": {"existing": " ", "address": "192.0.2.1"}}), &["domain", "existing"]);
    }
}
