//! The image of a guest: the user's own, or one that tare makes of the host's root.
//!
//! The latter holds empty directories and links alone: the host's top directories are shown in it, read-only. It is named
//! after its content and kept, for it is the same for every guest and takes a few kilobytes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};
use tare_lab::is_rootless;
use tare_model::Refusal;

use super::{Client, Settings};

/// Its name, before the hash of its content.
const OWN: &str = "localhost/tare-host-root";

/// Top directories that are the guest's own, as on every arm, or of no use to it.
const NOT_SHOWN: [&str; 8] = ["dev", "proc", "sys", "run", "tmp", "var", "lost+found", ".tare"];

/// Directories of the host's below those that are shown all the same.
const SHOWN_BELOW: &str = "/var/lib";

/// Directories of the guest's own with their modes. `/var/run` is a link.
const EMPTY: [(&str, u32); 10] = [
    ("dev", 0o755),
    ("proc", 0o755),
    ("sys", 0o755),
    ("run", 0o755),
    ("tmp", 0o1777),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/lib", 0o755),
    ("var/log", 0o755),
    ("var/tmp", 0o1777),
];

/// An image that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    /// Its name.
    pub reference: String,
    /// Directories of the host's that are shown in it.
    pub shown: Vec<PathBuf>,
}

impl Image {
    /// Refuses an image that is named and not there.
    ///
    /// # Errors
    /// Why, and the remedy.
    pub(super) fn check(settings: &Settings, client: &Client) -> Result<(), Refusal> {
        let Some(named) = &settings.image else { return Ok(()) };
        if is_there(client, named) {
            return Ok(());
        }
        let pull = client.argv(&["pull", named]).join(" ");
        let reason = format!("the engine has no image `{named}`, and nothing is fetched in a run");
        Err(Refusal::new(reason, format!("Fetch it before: `{pull}`; or load, or build it with that name")))
    }

    /// The image, made where it is the host's root and not there yet.
    ///
    /// # Errors
    /// Why there is none, and the remedy.
    pub(super) fn ready(settings: &Settings, client: &Client, state: &Path) -> Result<Self, Refusal> {
        if let Some(named) = &settings.image {
            Self::check(settings, client)?;
            return Ok(Self { reference: named.clone(), shown: Vec::new() });
        }
        let failed = |why: String| Refusal::new(why, "Is there room for it, and may the engine write to its storage?");
        let mut top =
            Top::of(Path::new("/")).map_err(|error| failed(format!("the host's root cannot be listed: {error}")))?;
        let archive = top.archive().map_err(|error| failed(format!("its archive cannot be made: {error}")))?;
        let hash: String = Sha256::digest(&archive).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let reference = format!("{OWN}:{hash}");
        if !is_there(client, &reference) {
            // Several guests may do so at the same time: each has a file of its own, and the same comes of it.
            let file = state.join(format!("host-root-{:?}.tar", std::thread::current().id()).replace(['(', ')'], ""));
            let made = std::fs::write(&file, &archive).map_err(|error| format!("{}: {error}", file.display()));
            let made = made.and_then(|()| client.run(&["import", &file.to_string_lossy(), &reference]));
            // What is left of it goes with the run's directory.
            let _ = std::fs::remove_file(&file);
            made.map_err(failed)?;
        }
        if is_rootless() {
            // A user may not part a directory from what others have mounted below it.
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
            top.shown.retain(|directory| !has_mounts_below(directory, &mounts));
        }
        Ok(Self { reference, shown: top.shown })
    }

    /// What a reader must know about it.
    pub(super) fn disclosure(settings: &Settings) -> String {
        match &settings.image {
            Some(named) => format!(
                "The guest's root is the image `{named}`, with its variables; its writes go to the engine's storage."
            ),
            None => format!(
                "The guest's root is the image `{OWN}`, which tare makes once and keeps in the engine: the host's top \
                 directories and /var/lib are shown in it read-only, without what is mounted below them; /tmp, /run and the rest of \
                 /var are its own, empty, and writes there go to the engine's storage. Without root, directories with other mounts \
                 below them are empty as well."
            ),
        }
    }
}

fn is_there(client: &Client, reference: &str) -> bool {
    client.json(&["image", "inspect", "--format", "{{json .ID}}", reference]).is_ok()
}

/// Whether something is mounted below a directory; `mounts` as in `/proc/self/mounts` (proc(5)).
fn has_mounts_below(directory: &Path, mounts: &str) -> bool {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
    points.into_iter().any(|point| point != directory && point.starts_with(directory))
}

/// The top of a root file system.
#[derive(Debug, PartialEq, Eq)]
struct Top {
    /// Directories that are shown.
    shown: Vec<PathBuf>,
    /// Links, with where they lead.
    links: Vec<(String, PathBuf)>,
}

impl Top {
    fn of(root: &Path) -> std::io::Result<Self> {
        let (mut shown, mut links) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(root)? {
            let entry = entry?;
            // A name that is no text is no system's, and cannot be an argument.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = entry.file_type()?;
            if NOT_SHOWN.contains(&name.as_str()) {
                continue;
            }
            if kind.is_symlink() {
                links.push((name, std::fs::read_link(entry.path())?));
            } else if kind.is_dir() {
                shown.push(entry.path());
            }
        }
        let below = root.join(SHOWN_BELOW.trim_start_matches('/'));
        // A directory that is closed even to root, as those of some network file systems, cannot be shown.
        shown.retain(|path| std::fs::read_dir(path).is_ok());
        shown.extend(below.metadata().is_ok_and(|found| found.is_dir() && found.mode() & 0o111 != 0).then_some(below));
        shown.sort();
        links.sort();
        Ok(Self { shown, links })
    }

    /// Directories and links as a tar archive, the same for the same names.
    fn archive(&self) -> std::io::Result<Vec<u8>> {
        let mut archive = Builder::new(Vec::new());
        let header = |kind: EntryType, mode: u32| {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_size(0);
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            header
        };
        let tops = self.shown.iter().filter_map(|path| path.file_name()?.to_str());
        let tops = tops.filter(|name| EMPTY.iter().all(|(empty, _)| !empty.ends_with(name))).map(|name| (name, 0o755));
        for (name, mode) in EMPTY.into_iter().chain(tops) {
            archive.append_data(&mut header(EntryType::Directory, mode), name, std::io::empty())?;
        }
        let run = [("var/run".to_owned(), PathBuf::from("/run"))];
        for (name, target) in self.links.iter().chain(&run) {
            archive.append_link(&mut header(EntryType::Symlink, 0o777), name, target)?;
        }
        archive.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_hosts_top_is_shown_and_nothing_of_it_is_in_the_archive() {
        let root = tempfile::tempdir().unwrap();
        for directory in ["usr/bin", "etc", "var/lib/x", "var/tmp", "proc", "run/secret", "tmp", "home"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        std::fs::write(root.path().join("etc/shadow"), "secret").unwrap();
        std::fs::write(root.path().join("swapfile"), "").unwrap();
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).unwrap();
        let top = Top::of(root.path()).unwrap();
        let shown: Vec<_> =
            top.shown.iter().map(|path| path.strip_prefix(root.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(shown, ["etc", "home", "usr", "var/lib"]);
        let bytes = top.archive().unwrap();
        assert_eq!(bytes, Top::of(root.path()).unwrap().archive().unwrap());
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries: BTreeMap<String, (EntryType, u32)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.path().unwrap().to_str().unwrap().trim_end_matches('/').to_owned();
                (name, (entry.header().entry_type(), entry.header().mode().unwrap()))
            })
            .collect();
        assert_eq!(entries["tmp"], (EntryType::Directory, 0o1777));
        assert_eq!((entries["bin"].0, entries["var/run"].0), (EntryType::Symlink, EntryType::Symlink));
        assert!(entries.contains_key("home") && !entries.contains_key("swapfile"), "{entries:?}");
        assert!(!entries.keys().any(|name| name.contains("shadow") || name.contains("secret")), "{entries:?}");
    }

    #[test]
    fn mounts_below_a_directory_are_seen_and_its_own_is_none() {
        let mounts = "dev /home ext4 rw 0 0\ndev /mnt/disk ext4 rw 0 0\ndev /mnt2 ext4 rw 0 0\n";
        let below = ["/home", "/mnt", "/mnt2", "/usr"].map(|path| has_mounts_below(Path::new(path), mounts));
        assert_eq!(below, [false, true, false, false]);
    }

    #[test]
    fn an_image_that_is_not_there_is_named_with_the_command_that_gets_it() {
        let settings = Settings { image: Some("localhost/app:1".into()), ..Settings::default() };
        let Refusal { reason, remedy } =
            Image::check(&settings, &Client::of("/bin/false", &["--host", "x"])).unwrap_err();
        assert!(reason.contains("localhost/app:1"), "{reason}");
        assert!(remedy.contains("/bin/false --host x pull localhost/app:1"), "{remedy}");
        let there = Client::of("/bin/sh", &["-c", "echo '\"sha256:1\"'"]);
        let image = Image::ready(&settings, &there, Path::new("/none")).unwrap();
        assert_eq!(image, Image { reference: "localhost/app:1".into(), shown: Vec::new() });
    }
}
