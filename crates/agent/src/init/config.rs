//! What the kernel's command line tells the guest: words `tare.KEY=VALUE`, values separated by commas.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

const PREFIX: &str = "tare.";

/// The root file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Root {
    /// The host's, by the tag of its share.
    Virtiofs { tag: String },
    /// A disk.
    Disk { device: PathBuf, filesystem: String },
    /// The initial file system.
    Initrd,
}

/// How a disk is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Find {
    /// By its device file.
    Device(PathBuf),
    /// By its serial number: names of disks follow the order in which the kernel finds them.
    Serial(String),
}

/// A disk for data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataDisk {
    pub disk: Find,
    /// Below the root.
    pub mount: PathBuf,
    pub filesystem: String,
}

/// A disk for data that is reached over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IscsiDisk {
    pub address: IpAddr,
    pub port: u16,
    pub target: String,
    pub lun: u32,
    pub initiator: String,
    /// Below the root.
    pub mount: PathBuf,
    pub filesystem: String,
    /// Commands at one time: of each unit, and of the session.
    pub queue: Option<(u32, u32)>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuestConfig {
    pub hostname: String,
    pub run_id: String,
    pub root: Root,
    pub address: Option<(IpAddr, u8)>,
    /// Hardware address of the interface that it is for; none means the first.
    pub card: Option<String>,
    pub mtu: Option<u32>,
    pub congestion: Option<String>,
    pub disks: Vec<DataDisk>,
    pub iscsi: Vec<IscsiDisk>,
}

/// Reads the words; others are the kernel's.
///
/// # Errors
/// A word of ours that is not understood, or one that is missing.
pub(super) fn parse(words: &str) -> Result<GuestConfig, String> {
    let (mut hostname, mut run_id, mut root, mut card) = (None, None, None, None);
    let (mut address, mut mtu, mut congestion, mut disks, mut iscsi) = (None, None, None, Vec::new(), Vec::new());
    for word in words.split_whitespace() {
        let Some((key, value)) = word.strip_prefix(PREFIX).and_then(|word| word.split_once('=')) else { continue };
        let wrong = || format!("`{word}` is not understood");
        match key {
            "hostname" => hostname = Some(value.to_owned()),
            "run" => run_id = Some(value.to_owned()),
            "root" => root = Some(parse_root(value).ok_or_else(wrong)?),
            "address" => address = Some(parse_address(value).ok_or_else(wrong)?),
            "card" => card = Some(value.to_owned()),
            "mtu" => mtu = Some(value.parse().map_err(|_| wrong())?),
            "congestion" => congestion = Some(value.to_owned()),
            "disk" => disks.push(parse_disk(value).ok_or_else(wrong)?),
            "iscsi" => iscsi.push(parse_iscsi(value).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
    }
    let missing = |key: &str| format!("there is no `{PREFIX}{key}=`");
    Ok(GuestConfig {
        hostname: hostname.ok_or_else(|| missing("hostname"))?,
        run_id: run_id.ok_or_else(|| missing("run"))?,
        root: root.ok_or_else(|| missing("root"))?,
        address,
        card,
        mtu,
        congestion,
        disks,
        iscsi,
    })
}

fn parse_root(value: &str) -> Option<Root> {
    match value.split(',').collect::<Vec<_>>().as_slice() {
        ["virtiofs", tag] => Some(Root::Virtiofs { tag: (*tag).to_owned() }),
        ["disk", device, filesystem] => {
            Some(Root::Disk { device: device_file(device), filesystem: (*filesystem).to_owned() })
        }
        ["initrd"] => Some(Root::Initrd),
        _ => None,
    }
}

fn parse_address(value: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = value.split_once('/')?;
    let (address, prefix) = (address.parse::<IpAddr>().ok()?, prefix.parse().ok()?);
    (prefix <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, prefix))
}

fn parse_disk(value: &str) -> Option<DataDisk> {
    let [device, mount, filesystem] = value.split(',').collect::<Vec<_>>().try_into().ok()?;
    let disk = match device.strip_prefix("serial:") {
        Some(serial) => Find::Serial(serial.to_owned()),
        None => Find::Device(device_file(device)),
    };
    Some(DataDisk { disk, mount: below_root(mount)?, filesystem: filesystem.to_owned() })
}

fn parse_iscsi(value: &str) -> Option<IscsiDisk> {
    let values: Vec<&str> = value.split(',').collect();
    let [address, port, target, lun, initiator, mount, filesystem, ref queue @ ..] = *values.as_slice() else {
        return None;
    };
    let queue = match *queue {
        [] => None,
        [depth, commands] => Some((depth.parse().ok()?, commands.parse().ok()?)),
        _ => return None,
    };
    Some(IscsiDisk {
        address: address.parse().ok()?,
        port: port.parse().ok()?,
        target: target.to_owned(),
        lun: lun.parse().ok()?,
        initiator: initiator.to_owned(),
        mount: below_root(mount)?,
        filesystem: filesystem.to_owned(),
        queue,
    })
}

fn below_root(mount: &str) -> Option<PathBuf> {
    mount.strip_prefix('/').map(PathBuf::from)
}

fn device_file(name: &str) -> PathBuf {
    Path::new("/dev").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_among_the_kernels() {
        let config = parse(
            "console=ttyS0 quiet tare.hostname=g1 tare.run=r-1 tare.root=disk,vda,ext4 tare.mtu=9000 \
             tare.address=198.18.0.2/24 tare.card=02:00:00:00:00:01 tare.congestion=bbr tare.disk=vdb,/data,ext4 panic=-1\n",
        )
        .unwrap();
        assert_eq!((config.hostname.as_str(), config.run_id.as_str()), ("g1", "r-1"));
        assert_eq!(config.root, Root::Disk { device: "/dev/vda".into(), filesystem: "ext4".into() });
        assert_eq!(config.card.as_deref(), Some("02:00:00:00:00:01"));
        assert_eq!(config.address, Some(("198.18.0.2".parse().unwrap(), 24)));
        assert_eq!((config.mtu, config.congestion.as_deref()), (Some(9000), Some("bbr")));
        assert_eq!(
            config.disks,
            [DataDisk { disk: Find::Device("/dev/vdb".into()), mount: "data".into(), filesystem: "ext4".into() }]
        );
        assert!(config.iscsi.is_empty());
        let config = parse(
            "tare.hostname=g tare.run=r tare.root=initrd tare.disk=serial:tare-data,/data,ext4 \
             tare.iscsi=198.18.1.9,3260,iqn.2026-01.example:g1,1,iqn.2026-01.example:i,/data,ext4 \
             tare.iscsi=198.18.1.9,3260,iqn.2026-01.example:g1,2,iqn.2026-01.example:i,/log,ext4,128,1024",
        )
        .unwrap();
        assert_eq!(config.disks[0].disk, Find::Serial("tare-data".into()));
        let disk = &config.iscsi[0];
        assert_eq!((disk.port, disk.lun, disk.target.as_str()), (3260, 1, "iqn.2026-01.example:g1"));
        let queues: Vec<_> = config.iscsi.iter().map(|disk| (disk.lun, disk.queue)).collect();
        assert_eq!(queues, [(1, None), (2, Some((128, 1024)))]);
    }

    #[test]
    fn what_is_wrong_or_missing_is_said() {
        let base = "tare.hostname=g tare.run=r tare.root=initrd";
        assert_eq!(parse(base).unwrap().root, Root::Initrd);
        assert!(parse("tare.hostname=g tare.run=r").unwrap_err().contains("tare.root="));
        for word in [
            "tare.mtu=big",
            "tare.address=1.2.3.4",
            "tare.address=1.2.3.4/33",
            "tare.root=nfs,x",
            "tare.disk=vdb,data,ext4",
            "tare.iscsi=198.18.1.9,3260,iqn.x:y,1,iqn.x:z,data,ext4",
            "tare.iscsi=198.18.1.9,3260",
            "tare.iscsi=198.18.1.9,3260,iqn.x:y,1,iqn.x:z,/data,ext4,128",
            "tare.iscsi=198.18.1.9,3260,iqn.x:y,1,iqn.x:z,/data,ext4,all,1024",
            "tare.other=1",
        ] {
            let error = parse(&format!("{base} {word}")).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
