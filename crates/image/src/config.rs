//! The configuration that the agent gets when it starts as the first process of a guest.

use std::net::{IpAddr, SocketAddr};

use crate::error::{ImageError, Result};

/// What a guest's root file system is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// A tree of the host's, shared over virtiofs and never written: the guest's writes stay in its memory.
    Virtiofs {
        /// Tag of the share.
        tag: String,
    },
    /// A disk.
    Disk {
        /// Device without `/dev/`, such as `vda`.
        device: String,
        /// Type of its file system, such as `ext4`.
        filesystem: String,
    },
    /// The initial file system: the agent and nothing else.
    Initrd,
}

/// A disk for data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDisk {
    /// Device without `/dev/`, such as `vdb`; or `serial:` and the serial number of a virtio disk.
    pub device: String,
    /// Where it is mounted in the guest.
    pub mount: String,
    /// Type of its file system, such as `ext4`.
    pub filesystem: String,
}

/// How many commands may be under way in an iSCSI session at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IscsiQueue {
    /// For each logical unit (`node.session.queue_depth` of open-iscsi).
    pub depth: u32,
    /// For the whole session (`node.session.cmds_max` of open-iscsi), a power of two.
    pub commands: u32,
}

impl IscsiQueue {
    /// That of units of this depth: the session has room for eight of them, as in the published configuration (128 and 1024), and
    /// not less than open-iscsi gives by itself.
    pub fn of(depth: u32) -> Self {
        Self { depth, commands: depth.saturating_mul(8).checked_next_power_of_two().unwrap_or(u32::MAX).max(128) }
    }
}

/// A disk for data that the guest itself reaches over its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IscsiDisk {
    /// Address and port of the portal.
    pub portal: SocketAddr,
    /// Name of the target, such as `iqn.2026-01.example:store`.
    pub target: String,
    /// Number of the logical unit.
    pub lun: u32,
    /// The guest's own name.
    pub initiator: String,
    /// Where it is mounted in the guest.
    pub mount: String,
    /// Type of its file system, such as `ext4`.
    pub filesystem: String,
    /// The queue of its session; open-iscsi's own without.
    pub queue: Option<IscsiQueue>,
}

/// What the agent makes of a guest before it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestConfig {
    /// Host name.
    pub hostname: String,
    /// Id of the run, for the environment of everything in the guest.
    pub run_id: String,
    /// The root file system.
    pub root: Root,
    /// Address and prefix length of the guest's interface.
    pub address: Option<(IpAddr, u8)>,
    /// Hardware address of that interface where it is a card of the host's: the guest boots from [`crate::boot`] with its
    /// drivers. None means the first that there is.
    pub card: Option<String>,
    /// MTU of that interface, bytes.
    pub mtu: u32,
    /// Congestion control of TCP; the kernel's own without.
    pub congestion_control: Option<String>,
    /// Further disks.
    pub data_disks: Vec<DataDisk>,
    /// Disks that the guest logs in to once its network is up, to each target once. The root needs `iscsistart` of open-iscsi, and
    /// the guest boots from [`crate::boot`] with its initiator.
    pub iscsi: Vec<IscsiDisk>,
}

impl GuestConfig {
    /// A guest without a network card and further disks.
    pub fn new(hostname: &str, run_id: &str, root: Root) -> Self {
        Self {
            hostname: hostname.to_owned(),
            run_id: run_id.to_owned(),
            root,
            address: None,
            card: None,
            mtu: 1500,
            congestion_control: None,
            data_disks: Vec::new(),
            iscsi: Vec::new(),
        }
    }

    /// The words of the kernel's command line that say this to the agent. What the console is and how the machine
    /// ends is the platform's business.
    ///
    /// # Errors
    /// A value that would not come through the kernel's command line as it is: empty, with spaces, quotes or commas.
    pub fn command_line(&self) -> Result<String> {
        let mut words = vec![
            word("hostname", &[&self.hostname])?,
            word("run", &[&self.run_id])?,
            match &self.root {
                Root::Virtiofs { tag } => word("root", &["virtiofs", tag])?,
                Root::Disk { device, filesystem } => word("root", &["disk", device, filesystem])?,
                Root::Initrd => word("root", &["initrd"])?,
            },
            word("mtu", &[&self.mtu.to_string()])?,
        ];
        if let Some((address, prefix)) = &self.address {
            words.push(word("address", &[&format!("{address}/{prefix}")])?);
        }
        if let Some(mac) = &self.card {
            words.push(word("card", &[&mac.to_lowercase()])?);
        }
        if let Some(name) = &self.congestion_control {
            words.push(word("congestion", &[name])?);
        }
        for disk in &self.data_disks {
            words.push(word("disk", &[&disk.device, &disk.mount, &disk.filesystem])?);
        }
        for disk in &self.iscsi {
            let (address, port) = (disk.portal.ip().to_string(), disk.portal.port().to_string());
            let at = [&disk.target, &disk.lun.to_string(), &disk.initiator, &disk.mount, &disk.filesystem];
            let queue = disk.queue.map(|queue| [queue.depth.to_string(), queue.commands.to_string()]);
            let values = [&address, &port].into_iter().chain(at).chain(queue.iter().flatten());
            words.push(word("iscsi", &values.map(String::as_str).collect::<Vec<_>>())?);
        }
        Ok(words.join(" "))
    }
}

/// `tare.KEY=VALUE,VALUE`.
fn word(key: &str, values: &[&str]) -> Result<String> {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:+@".contains(c);
    if let Some(value) = values.iter().find(|value| value.is_empty() || !value.chars().all(safe)) {
        return Err(ImageError::new(
            format!("tell a guest its {key} `{}`", value.escape_debug()),
            "on the kernel's command line a value has letters, digits and -_./:+@ only, and at least one of them",
            "choose another",
        ));
    }
    Ok(format!("tare.{key}={}", values.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> GuestConfig {
        GuestConfig {
            hostname: "g1".into(),
            run_id: "r-1".into(),
            root: Root::Disk { device: "vda".into(), filesystem: "ext4".into() },
            address: Some(("198.18.0.2".parse().unwrap(), 24)),
            card: None,
            mtu: 9000,
            congestion_control: Some("bbr".into()),
            data_disks: vec![DataDisk { device: "vdb".into(), mount: "/data".into(), filesystem: "ext4".into() }],
            iscsi: Vec::new(),
        }
    }

    #[test]
    fn the_agent_is_configured_in_words_that_its_own_test_reads() {
        assert_eq!(
            example().command_line().unwrap(),
            "tare.hostname=g1 tare.run=r-1 tare.root=disk,vda,ext4 tare.mtu=9000 tare.address=198.18.0.2/24 \
             tare.congestion=bbr tare.disk=vdb,/data,ext4"
        );
        let share = GuestConfig { root: Root::Virtiofs { tag: "host".into() }, ..example() };
        assert!(share.command_line().unwrap().contains("tare.root=virtiofs,host "));
        let card = GuestConfig { card: Some("02:00:00:00:00:0A".into()), ..example() };
        assert!(card.command_line().unwrap().contains(" tare.card=02:00:00:00:00:0a "));
        let disk = IscsiDisk {
            portal: "198.18.1.9:3260".parse().unwrap(),
            target: "iqn.2026-01.example:g1".into(),
            lun: 1,
            initiator: "iqn.2026-01.example:i".into(),
            mount: "/data".into(),
            filesystem: "ext4".into(),
            queue: None,
        };
        let log = IscsiDisk { lun: 2, mount: "/log".into(), queue: Some(IscsiQueue::of(128)), ..disk.clone() };
        let words = GuestConfig { iscsi: vec![disk, log], ..example() }.command_line().unwrap();
        let word = "tare.iscsi=198.18.1.9,3260,iqn.2026-01.example:g1,1,iqn.2026-01.example:i,/data,ext4 \
                    tare.iscsi=198.18.1.9,3260,iqn.2026-01.example:g1,2,iqn.2026-01.example:i,/log,ext4,128,1024";
        assert!(words.ends_with(word), "{words}");
        assert_eq!(IscsiQueue::of(1).commands, 128, "what open-iscsi gives by itself");
    }

    #[test]
    fn a_value_that_would_be_more_words_is_refused() {
        for hostname in ["", "a b", "a\"b", "a,b", "a\nb", "a=b", "\u{e9}"] {
            let error = GuestConfig { hostname: hostname.into(), ..example() }.command_line().unwrap_err().to_string();
            assert!(error.contains("hostname"), "{error}");
        }
        let mount = DataDisk { device: "vdb".into(), mount: "/a init=/bin/sh".into(), filesystem: "ext4".into() };
        assert!(GuestConfig { data_disks: vec![mount], ..example() }.command_line().is_err());
    }
}
