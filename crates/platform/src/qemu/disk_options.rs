//! Options of the disks that hold a guest's data.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_image::IscsiQueue;
use tare_model::ByteSize;
use tare_model::field::FieldError;

use crate::machine::image::{DiskFormat, Image};
use crate::machine::volume::Part;

/// Most commands of one unit: those of a data disk and a log disk together are as many as the lab's target takes in one session.
const MOST_DEEP: u32 = 256;

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
    /// A directory of the host's that such a disk is a file in, also one that the lab's target serves: the mount point of a disk or a
    /// LUN, say. tare makes a directory of its own in it for each guest, and takes it away again; `{guest}` stands for the guest's
    /// number. That of the log is on another file system than the data. Left out: `/var/lib/tare`.
    pub directory: Option<PathBuf>,
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
    /// Most commands that a guest which logs in by itself has under way at one time on the unit, 1 to 256
    /// (`node.session.queue_depth` of open-iscsi; its session then takes eight times as many). Left out: open-iscsi's 32.
    pub queue_depth: Option<u32>,
    /// Where it is mounted in the guest. Left out: `/data` (the log: `/log`) for one that was made or has data, nowhere for a device.
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
            directory: None,
            device: None,
            iscsi: None,
            san: None,
            overwrite: false,
            queue_depth: None,
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
    pub(super) fn mount(&self, part: Part) -> Option<&str> {
        self.mount.as_deref().or(self.device.is_none().then_some(part.mount()))
    }

    /// Where it is mounted in a guest with data.
    pub(super) fn mount_with_data(&self, part: Part) -> &str {
        self.mount.as_deref().unwrap_or(part.mount())
    }

    /// The queue that is asked for.
    pub(super) fn queue(&self) -> Option<IscsiQueue> {
        self.queue_depth.map(IscsiQueue::of)
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

/// Refuses reads and writes that cannot be so, of the disk below one option.
///
/// # Errors
/// The field and why.
pub(super) fn check_aio(option: &str, aio: Aio, cache: Cache) -> Result<(), FieldError> {
    if aio != Aio::Native || cache == Cache::None {
        return Ok(());
    }
    let why = "native reads and writes go past the host's cache";
    Err(FieldError::new(&[option, "aio"], why).help("write cache = \"none\" too"))
}

/// Refuses a log disk that is the data disk, or that cannot be beside it.
///
/// # Errors
/// Which field is wrong and why.
pub(super) fn check_apart(data: &DataDisk, log: &DataDisk) -> Result<(), FieldError> {
    let refuse = |key: &str, why: String, help: &str| Err(FieldError::new(&["log-disk", key], why).help(help));
    let other = "name another one, or leave `log-disk` out: the log then lies with the data";
    if let Some(device) = log.device.as_ref().filter(|device| data.device.as_ref() == Some(device)) {
        return refuse("device", format!("the data disk is {} too", device.display()), other);
    }
    let same = |one: &PathBuf, other: &PathBuf| one.components().eq(other.components());
    if let (Some(one), Some(two)) = (&data.directory, &log.directory)
        && same(one, two)
    {
        return refuse("directory", format!("the data disk is in {} too", one.display()), other);
    }
    if log.san.is_some() && log.san == data.san {
        return refuse("san", "the data disk is that unit too".into(), other);
    }
    let mounts = [(Part::Data, data), (Part::Log, log)].map(|(part, disk)| disk.mount_with_data(part));
    if mounts[0] == mounts[1] {
        return refuse("mount", format!("the data disk is mounted on {} too", mounts[0]), "name another place");
    }
    if log.iscsi.is_none() || data.iscsi.is_none() {
        return Ok(());
    }
    if log.iscsi != data.iscsi || log.san.is_some() != data.san.is_some() {
        let why = "data and log on units of iSCSI targets are logged in to by one side, on one network";
        return refuse("iscsi", why.into(), "write `iscsi` as for the data disk, and `san` for both or for none");
    }
    let target = |disk: &DataDisk| disk.san.as_ref().map(|san| (san.portal, san.target.clone()));
    if target(log) == target(data) && log.queue_depth != data.queue_depth {
        let why = "data and log are units of one target, whose session has one depth for all";
        return refuse("queue-depth", why.into(), "write the same for both");
    }
    Ok(())
}

/// A disk as it is written.
pub(super) struct Written<'a> {
    pub disk: &'a DataDisk,
    /// The option that it is.
    pub option: &'static str,
    /// What the guest boots.
    pub image: &'a Image,
    /// Whether its network card is passed through.
    pub own_card: bool,
}

impl Written<'_> {
    fn error(&self, key: &str, why: &str, help: &str) -> FieldError {
        FieldError::new(&[self.option, key], why).help(help)
    }

    /// Refuses what cannot be meant, whatever the host.
    ///
    /// # Errors
    /// Which field is wrong and why.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        let disk = self.disk;
        check_aio(self.option, disk.aio, disk.cache)?;
        if disk.size.is_some() && disk.device.is_some() {
            return Err(FieldError::new(&[self.option], "it has either a `size` or a `device`")
                .help("write size = \"1GiB\" for a disk that tare makes"));
        }
        if disk.directory.is_some() && (disk.device.is_some() || disk.san.is_some()) {
            let why = "a `device`, or a unit of a storage server of yours, is no file of this host's";
            return Err(self.error("directory", why, "leave it out"));
        }
        self.check_iscsi()?;
        self.check_queue()?;
        if disk.size.is_some_and(|size| size.0 < 16 << 20) {
            return Err(self.error("size", "there is no room for a file system in it", "write 16MiB or more"));
        }
        if disk.mount.as_deref().is_some_and(|mount| !mount.starts_with('/')) {
            return Err(self.error("mount", "it is no absolute path", "write \"/data\""));
        }
        Ok(())
    }

    fn check_queue(&self) -> Result<(), FieldError> {
        let Some(depth) = self.disk.queue_depth else { return Ok(()) };
        if self.disk.iscsi != Some(Initiator::Guest) {
            let why = "only a guest that logs in to an iSCSI target by itself has a session, whose depth this is";
            let help = "leave it out: the queue of a virtio disk is QEMU's, and what the host has logged in to has the depth that \
                        the host's iscsid.conf gives it";
            return Err(self.error("queue-depth", why, help));
        }
        if !(1..=MOST_DEEP).contains(&depth) {
            let why = format!("{depth} is not between 1 and {MOST_DEEP}");
            return Err(self.error("queue-depth", &why, "write a number such as 128"));
        }
        Ok(())
    }

    fn check_iscsi(&self) -> Result<(), FieldError> {
        let disk = self.disk;
        let refuse = |key: &str, why: &str, help: &str| Err(self.error(key, why, help));
        if disk.overwrite && disk.device.is_none() && disk.san.is_none() {
            return refuse("overwrite", "there is nothing of yours to overwrite", "leave it out");
        }
        let Some(initiator) = disk.iscsi else {
            let help = "write iscsi = \"guest\" or iscsi = \"hypervisor\" too";
            return if disk.san.is_some() { refuse("san", "nobody logs in to it", help) } else { Ok(()) };
        };
        if disk.is_always_there() || disk.format != DiskFormat::Raw {
            let help = "leave `size`, `device` and `format` out, or `iscsi`";
            return refuse("iscsi", "the unit of a target has the workload's data, and is nothing else", help);
        }
        if disk.aio != Aio::Threads
            || (initiator == Initiator::Guest && (disk.iothread || disk.cache != Cache::Writeback))
        {
            let why = "`aio` is about files of the host's; `cache` and `iothread` about disks that QEMU has";
            return refuse("iscsi", why, "leave them out");
        }
        if let Some(san) = &disk.san {
            let safe = |c: char| c.is_ascii_alphanumeric() || "-._:{}".contains(c);
            if san.target.is_empty() || !san.target.chars().all(safe) {
                return refuse("san", "its `target` is no name of iSCSI", "write it as iqn.2026-01.com.example:store");
            }
            if !self.own_card {
                let why = "the lab's network, which the guest and its QEMU are on, leads nowhere else";
                let help = "log in on this host (`iscsiadm`) and write device = \"/dev/..\", or pass a card through: network.vfio";
                return refuse("san", why, help);
            }
            if !disk.overwrite {
                let why = "the gold copy is written over its unit before each guest";
                return refuse("overwrite", why, "write overwrite = true if what is there may be destroyed");
            }
        }
        if initiator == Initiator::Hypervisor {
            return Ok(());
        }
        if self.own_card && disk.san.is_none() {
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
    use serde_json::{Value, json};

    use super::*;
    use crate::entry;

    fn check(options: &Value) -> Result<Value, FieldError> {
        entry::check::<super::super::Qemu>(options)
    }

    fn wrong(options: Value) -> String {
        check(&options).unwrap_err().path.join(".")
    }

    #[test]
    fn a_disk_that_cannot_be_is_refused_where_it_is_written() {
        let file = json!({"file": {"path": "x", "format": "raw"}});
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
    }

    #[test]
    fn a_log_disk_is_another_than_the_data_disk() {
        let both = |data: Value, log: Value| json!({"data-disk": data, "log-disk": log});
        let device = json!({"device": "/dev/sdb", "overwrite": true});
        assert_eq!(wrong(both(device.clone(), device.clone())), "log-disk.device");
        assert!(check(&both(device.clone(), json!({"device": "/dev/sdc", "overwrite": true}))).is_ok());
        assert!(check(&both(device, json!({"format": "qcow2"}))).is_ok(), "each is what it is");
        let pool = |name: &str| json!({"directory": name});
        assert_eq!(wrong(both(pool("/srv/a"), pool("/srv/a/"))), "log-disk.directory");
        assert!(check(&both(pool("/srv/a"), pool("/srv/b"))).is_ok());
        let nowhere = json!({"device": "/dev/sdb", "directory": "/srv/a"});
        assert_eq!(wrong(both(nowhere, json!({}))), "data-disk.directory");
        assert!(check(&json!({"log-disk": {}})).is_ok(), "the data disk is then as without any option");
        assert_eq!(wrong(both(json!({"mount": "/log"}), json!({}))), "log-disk.mount");
        assert_eq!(wrong(both(json!({}), json!({"aio": "native"}))), "log-disk.aio");
        assert_eq!(wrong(both(json!({"iscsi": "guest"}), json!({"iscsi": "hypervisor"}))), "log-disk.iscsi");
        assert!(check(&both(json!({"iscsi": "guest"}), json!({"iscsi": "guest"}))).is_ok());
        assert!(check(&both(json!({"iscsi": "guest"}), json!({"format": "raw"}))).is_ok());
        let vfio = json!({"device": "0000:01:00.1", "mac": "02:00:00:00:00:01", "address": "192.0.2.7/24"});
        let unit = |lun: u32| {
            let san = json!({"portal": "192.0.2.9:3260", "target": "iqn.2026-01.com.example:{guest}", "lun": lun});
            json!({"iscsi": "guest", "san": san, "overwrite": true})
        };
        let on_card = |data: Value, log: Value| json!({"image": {"file": {"path": "x", "format": "raw"}}, "network": {"vfio": vfio}, "data-disk": data, "log-disk": log});
        assert_eq!(wrong(on_card(unit(1), unit(1))), "log-disk.san");
        assert!(check(&on_card(unit(1), unit(2))).is_ok());
    }

    #[test]
    fn a_queue_has_a_depth_where_the_guest_has_a_session() {
        let disk = |data: Value| json!({"data-disk": data});
        let guest = |depth: u32| disk(json!({"iscsi": "guest", "queue-depth": depth}));
        assert!(check(&guest(128)).is_ok() && check(&guest(256)).is_ok());
        for depth in [0, 257] {
            assert_eq!(wrong(guest(depth)), "data-disk.queue-depth", "{depth}");
        }
        for path in [json!({"format": "raw"}), json!({"iscsi": "hypervisor"}), json!({"device": "/dev/sdb"})] {
            let mut path = path;
            path["queue-depth"] = 128.into();
            let error = check(&disk(path)).unwrap_err();
            assert_eq!(error.path.join("."), "data-disk.queue-depth");
            assert!(error.message.contains("by itself"), "{}", error.message);
        }
        let options = json!({"data-disk": {"iscsi": "guest", "queue-depth": 128}, "log-disk": {"iscsi": "guest"}});
        assert_eq!(wrong(options), "log-disk.queue-depth");
        let queue = DataDisk { queue_depth: Some(128), ..DataDisk::default() }.queue().unwrap();
        assert_eq!((queue.depth, queue.commands), (128, 1024), "as published");
    }

    #[test]
    fn a_device_is_mounted_only_where_that_is_written() {
        let device = DataDisk { device: Some("/dev/sdb".into()), ..DataDisk::default() };
        assert_eq!(device.mount(Part::Data), None);
        let mounts = [Part::Data, Part::Log].map(|part| DataDisk::default().mount(part).map(str::to_owned));
        assert_eq!(mounts, ["/data", "/log"].map(|mount| Some(mount.to_owned())));
    }
}
