//! What the agent is told when it starts as the first process of a guest.

use std::net::IpAddr;

use crate::error::{ImageError, Result};

/// What a guest's root file system is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// The host's own root, shared over virtiofs and never written: the guest's writes stay in its memory.
    HostOverVirtiofs {
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
    /// Device without `/dev/`, such as `vdb`.
    pub device: String,
    /// Where it is mounted in the guest.
    pub mount: String,
    /// Type of its file system, such as `ext4`.
    pub filesystem: String,
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
    /// MTU of that interface, bytes.
    pub mtu: u32,
    /// Congestion control of TCP; the kernel's own without.
    pub congestion_control: Option<String>,
    /// Further disks.
    pub data_disks: Vec<DataDisk>,
}

impl GuestConfig {
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
                Root::HostOverVirtiofs { tag } => word("root", &["virtiofs", tag])?,
                Root::Disk { device, filesystem } => word("root", &["disk", device, filesystem])?,
                Root::Initrd => word("root", &["initrd"])?,
            },
            word("mtu", &[&self.mtu.to_string()])?,
        ];
        if let Some((address, prefix)) = &self.address {
            words.push(word("address", &[&format!("{address}/{prefix}")])?);
        }
        if let Some(name) = &self.congestion_control {
            words.push(word("congestion", &[name])?);
        }
        for disk in &self.data_disks {
            words.push(word("disk", &[&disk.device, &disk.mount, &disk.filesystem])?);
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn example() -> GuestConfig {
        GuestConfig {
            hostname: "g1".into(),
            run_id: "r-1".into(),
            root: Root::Disk { device: "vda".into(), filesystem: "ext4".into() },
            address: Some(("198.18.0.2".parse().unwrap(), 24)),
            mtu: 9000,
            congestion_control: Some("bbr".into()),
            data_disks: vec![DataDisk { device: "vdb".into(), mount: "/data".into(), filesystem: "ext4".into() }],
        }
    }

    #[test]
    fn the_agent_is_told_in_words_that_its_own_test_reads() {
        assert_eq!(
            example().command_line().unwrap(),
            "tare.hostname=g1 tare.run=r-1 tare.root=disk,vda,ext4 tare.mtu=9000 tare.address=198.18.0.2/24 \
             tare.congestion=bbr tare.disk=vdb,/data,ext4"
        );
        let share = GuestConfig { root: Root::HostOverVirtiofs { tag: "host".into() }, ..example() };
        assert!(share.command_line().unwrap().contains("tare.root=virtiofs,host "));
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
