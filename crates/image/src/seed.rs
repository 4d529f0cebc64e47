//! The seed: a small disk by which cloud-init sets up an image of the user's own, and starts the agent in it.
//!
//! cloud-init finds it by its label (its data source NoCloud). A JSON library writes its whole configuration, as JSON
//! is YAML: no value can be anything but a value.

use std::fs::File;
use std::io::{self, Cursor, Write};
use std::net::IpAddr;
use std::path::Path;

use fatfs::{FileSystem, FormatVolumeOptions, FsOptions, format_volume};
use serde_json::{Value, json};

use crate::error::{ImageError, Result, reading, writing};

/// As cloud-init looks for it, padded as FAT wants it.
const LABEL: [u8; 11] = *b"CIDATA     ";

/// Room for the files' names, tables and rounding, bytes.
const SLACK: u64 = 512 << 10;

/// Smaller than this no FAT is made, bytes.
const SMALLEST: u64 = 1 << 20;

/// Copies the agent out and starts it apart from cloud-init, which waits for what it starts. `$1` is the name of the
/// port, `$2` the run. `/run` may forbid to run programs.
const START: &str = r#"
set -eu
mkdir -p /run/tare-seed /var/lib/tare-agent
mount -o ro LABEL=CIDATA /run/tare-seed
cp /run/tare-seed/tare-agent /var/lib/tare-agent/tare-agent
umount /run/tare-seed
chmod 755 /var/lib/tare-agent/tare-agent
set -- env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "TARE_RUN=$2" \
    /var/lib/tare-agent/tare-agent --channel "/dev/virtio-ports/$1"
if [ -d /run/systemd/system ]; then
    exec systemd-run --unit=tare-agent --collect --no-block --property=LimitNOFILE=524288 \
        --property=DefaultDependencies=no --property=KillMode=mixed "$@"
fi
nohup setsid "$@" </dev/null >/dev/console 2>&1 &
"#;

/// The configuration for cloud-init in an image of the user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Host name.
    pub hostname: String,
    /// Address and prefix length of the guest's interface.
    pub address: Option<(IpAddr, u8)>,
    /// Hardware address of that interface.
    pub mac: String,
    /// Its MTU, bytes.
    pub mtu: u32,
    /// Id of the run.
    pub run_id: String,
    /// Name of the virtio port that the agent serves.
    pub channel: String,
}

impl Seed {
    /// The files of cloud-init's, by name.
    fn files(&self) -> [(&'static str, String); 3] {
        let meta =
            json!({ "instance-id": format!("{}-{}", self.run_id, self.hostname), "local-hostname": self.hostname });
        let user = json!({
            "hostname": self.hostname,
            "preserve_hostname": false,
            // Nobody logs in, and making keys or growing file systems is no work of the guest's.
            "ssh_deletekeys": false,
            "ssh_genkeytypes": [],
            "growpart": { "mode": "off" },
            "resize_rootfs": false,
            "bootcmd": [["sh", "-c", START, "tare", self.channel, self.run_id]],
        });
        [
            ("meta-data", meta.to_string()),
            ("user-data", format!("#cloud-config\n{user}\n")),
            ("network-config", self.network().to_string()),
        ]
    }

    /// The interface by version 2 of cloud-init's format.
    fn network(&self) -> Value {
        let Some((address, prefix)) = &self.address else { return json!({ "version": 2, "ethernets": {} }) };
        json!({
            "version": 2,
            "ethernets": {
                "eth0": {
                    "match": { "macaddress": self.mac.to_lowercase() },
                    "set-name": "eth0",
                    "dhcp4": false,
                    "dhcp6": false,
                    "accept-ra": false,
                    "link-local": [],
                    "mtu": self.mtu,
                    "addresses": [format!("{address}/{prefix}")],
                }
            }
        })
    }

    /// A name that is part of a path in the guest.
    fn check(&self) -> Result<()> {
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let wrong = [("channel", &self.channel), ("host name", &self.hostname), ("run id", &self.run_id)]
            .into_iter()
            .find(|(_, value)| value.is_empty() || value.starts_with('.') || !value.chars().all(safe));
        match wrong {
            None => Ok(()),
            Some((what, value)) => Err(ImageError::new(
                format!("write a seed with the {what} `{}`", value.escape_debug()),
                "it has letters, digits and -_. only, and does not begin with a dot",
                "choose another",
            )),
        }
    }
}

/// Writes a seed with the agent in it: a raw disk of FAT, labelled `cidata`.
///
/// # Errors
/// When a name would be none, the agent cannot be read, there is something at `at` already, or it cannot be written.
pub fn seed(seed: &Seed, agent: &Path, at: &Path) -> Result<()> {
    seed.check()?;
    let program = std::fs::read(agent).map_err(reading(agent))?;
    let texts = seed.files();
    let mut files: Vec<(&str, &[u8])> = texts.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    files.push(("tare-agent", &program));
    let disk = disk(&files).map_err(writing(at))?;
    let mut file = File::create_new(at).map_err(writing(at))?;
    let done = file.write_all(&disk).map_err(writing(at));
    if done.is_err() {
        // Half a seed would be taken for one.
        let _ = std::fs::remove_file(at);
    }
    done
}

/// The disk: made in memory, where its tables are quickly written.
fn disk(files: &[(&str, &[u8])]) -> io::Result<Vec<u8>> {
    let content: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let size = (content + content / 16 + SLACK).max(SMALLEST).next_multiple_of(4096);
    let mut disk = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    format_volume(Cursor::new(disk.as_mut_slice()), FormatVolumeOptions::new().volume_label(LABEL))?;
    let filesystem = FileSystem::new(Cursor::new(disk.as_mut_slice()), FsOptions::new())?;
    for (name, bytes) in files {
        filesystem.root_dir().create_file(name)?.write_all(bytes)?;
    }
    filesystem.unmount()?;
    Ok(disk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn example() -> Seed {
        Seed {
            hostname: "guest-1".into(),
            address: Some(("198.18.0.2".parse().unwrap(), 24)),
            mac: "02:00:C6:12:00:02".into(),
            mtu: 1500,
            run_id: "20260101-000000-beef".into(),
            channel: crate::CHANNEL_PORT.into(),
        }
    }

    #[test]
    fn the_seed_is_found_by_its_label_and_holds_what_was_said() {
        let place = tempfile::tempdir().unwrap();
        let (agent, at) = (place.path().join("agent"), place.path().join("seed.img"));
        std::fs::write(&agent, vec![7; 3 << 20]).unwrap();
        seed(&example(), &agent, &at).unwrap();
        assert!(seed(&example(), &agent, &at).is_err(), "nothing is written over");

        let disk =
            FileSystem::new(File::options().read(true).write(true).open(&at).unwrap(), FsOptions::new()).unwrap();
        assert_eq!(disk.read_volume_label_from_root_dir().unwrap().as_deref(), Some("CIDATA"));
        let file = |name: &str| {
            let mut bytes = Vec::new();
            disk.root_dir().open_file(name).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(file("tare-agent"), vec![7; 3 << 20]);
        let network: Value = serde_json::from_slice(&file("network-config")).unwrap();
        assert_eq!(network["ethernets"]["eth0"]["addresses"][0], "198.18.0.2/24");
        assert_eq!(network["ethernets"]["eth0"]["match"]["macaddress"], "02:00:c6:12:00:02");
        let user = String::from_utf8(file("user-data")).unwrap();
        let user: Value = serde_json::from_str(user.strip_prefix("#cloud-config\n").unwrap()).unwrap();
        assert_eq!(user["bootcmd"][0][4], "org.tare.agent.0");
        let meta: Value = serde_json::from_slice(&file("meta-data")).unwrap();
        assert_eq!(meta["local-hostname"], "guest-1");
    }

    #[test]
    fn a_name_that_would_be_more_is_refused() {
        for channel in ["", "../vda", "a b", "a\"b", ".", "a/b"] {
            let bad = Seed { channel: channel.into(), ..example() };
            assert!(bad.check().is_err(), "{channel}");
        }
        let without = Seed { address: None, ..example() };
        assert_eq!(without.network()["ethernets"], json!({}));
    }

    #[test]
    fn the_script_is_one_that_a_shell_takes() {
        let checked = std::process::Command::new("sh").args(["-n", "-c", START]).status().unwrap();
        assert!(checked.success());
    }
}
