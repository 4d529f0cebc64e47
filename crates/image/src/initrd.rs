//! The initial file system: the agent as `/init`, and the modules that it may have to load.
//!
//! It is not compressed: it is small, and emulated machines copy faster than they decompress.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cpio::newc::{self, ModeFileType};

use crate::cache::{self, INITRDS, Key};
use crate::error::{ImageError, Result, reading, writing};
use crate::kernel::Kernel;
use crate::library;
use crate::modules::{Module, Modules};

/// What is loaded for what. `/modules.load` has a line for each: the feature, then files in the order of loading. The
/// agent chooses by the devices that it finds (`virtio-N`, N as in the virtio standard) and by its configuration.
const FEATURES: [(&str, &[&str]); 10] = [
    ("pci", &["virtio_pci"]),
    ("mmio", &["virtio_mmio"]),
    ("virtio-1", &["virtio_net"]),
    ("virtio-2", &["virtio_blk"]),
    ("virtio-3", &["virtio_console"]),
    ("virtio-4", &["virtio_rng"]),
    ("virtio-5", &["virtio_balloon"]),
    ("virtio-26", &["virtiofs"]),
    ("overlay", &["overlay"]),
    ("filesystem-ext4", &["crc32c_generic", "ext4"]),
];

/// The same for guests that reach a disk over their network. No other guest has these to copy at its start.
const ISCSI: (&str, &[&str]) = ("iscsi", &["crc32c_generic", "iscsi_tcp", "sd_mod"]);

/// What no guest can do without: its channel.
const INDISPENSABLE: [&str; 2] = ["virtio_pci", "virtio_console"];

/// Where the kernel keeps further ways of congestion control, each called `tcp_NAME`.
const CONGESTION_FOLDER: &str = "net/ipv4";

/// How long an initial file system is kept that nobody uses.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// What a guest boots from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The kernel's image.
    pub kernel: PathBuf,
    /// The initial file system.
    pub initrd: PathBuf,
}

impl Kernel {
    /// The modules that drive a device, by what the kernel of the host says of it in `modalias`.
    ///
    /// # Errors
    /// That it has none, or that its list of them cannot be read.
    pub fn drivers(&self, modalias: &str) -> Result<Vec<String>> {
        let drivers = Modules::driving(&self.modules, modalias)?;
        if drivers.is_empty() {
            return Err(ImageError::new(
                format!("drive the device {modalias} in guests with the kernel {}", self.release),
                "it has no driver for it",
                "name a kernel that has one, such as the host's own: kernel = \"/boot/vmlinuz-RELEASE\"",
            ));
        }
        Ok(drivers)
    }

    /// Whether it has an initiator for iSCSI: found out before a run.
    ///
    /// # Errors
    /// That it has none, or that its modules cannot be read.
    pub fn check_iscsi(&self) -> Result<()> {
        check_has(self, &Modules::look(&self.modules)?, ISCSI.1)
    }
}

fn check_has(kernel: &Kernel, modules: &Modules, wanted: &[&str]) -> Result<()> {
    let Some(missing) = wanted.iter().find(|name| !modules.has(name)) else { return Ok(()) };
    Err(ImageError::new(
        format!("boot guests with the kernel {}", kernel.release),
        format!("it has no {missing}"),
        "run `make platforms`, which fetches one for virtual machines, or name another: kernel = \"PATH\"",
    ))
}

/// A file as it was when it was last looked at.
type Seen = (PathBuf, u64, u64, i64, i64);

/// What the initial file system of some guests has beyond that of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Extras {
    /// The kernel's iSCSI initiator, for a guest that is given an [`crate::IscsiDisk`].
    pub iscsi: bool,
    /// Names of the modules that drive a network card of the host's, for a guest whose [`crate::GuestConfig`] has one.
    pub card: Vec<String>,
}

/// Agent, modules, and what is beyond.
type Ingredients = (Seen, Seen, Extras);

/// What was made in this process, by the agent and the modules that it was made of: guests start one after the other
/// with the same ones, and their start is timed.
static MADE: Mutex<Option<HashMap<Ingredients, PathBuf>>> = Mutex::new(None);

/// The initial file system for an agent with a kernel's modules, made if it is not in the cache.
///
/// # Errors
/// When the agent or a module cannot be read, when the kernel has no virtio or something of `extras` is missing, or when the cache
/// cannot be written.
pub fn boot(kernel: &Kernel, agent: &Path, extras: &Extras) -> Result<Boot> {
    let key = (seen(agent)?, seen(&kernel.modules.join("kernel"))?, extras.clone());
    // Held while it is made: others wait for the same.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_default();
    let initrd = match made.get(&key) {
        Some(initrd) if initrd.exists() => initrd.clone(),
        _ => keep(&archive(kernel, agent, extras)?)?,
    };
    made.insert(key, initrd.clone());
    Ok(Boot { kernel: kernel.image.clone(), initrd })
}

fn seen(path: &Path) -> Result<Seen> {
    let seen = fs::metadata(path).map_err(reading(path))?;
    Ok((path.to_owned(), seen.ino(), seen.len(), seen.mtime(), seen.mtime_nsec()))
}

/// Puts an archive into the cache under the name of what it holds.
fn keep(archive: &[u8]) -> Result<PathBuf> {
    let mut key = Key::default();
    key.add(archive);
    let folder = cache::folder(INITRDS)?;
    let path = folder.join(format!("{}.cpio", key.name()));
    if fs::metadata(&path).is_ok_and(|seen| seen.len() == archive.len() as u64) {
        // So that it is known to be in use. A cache that only another user may write to is used as it is.
        let _ = fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        return Ok(path);
    }
    let mut file = cache::beside(&path)?;
    file.write_all(archive).map_err(writing(&path))?;
    cache::publish(file, &path)?;
    forget_old(&folder);
    Ok(path)
}

/// Removes what has not been used for long: every agent that is built makes another.
fn forget_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let age = fs::metadata(&path).and_then(|seen| seen.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > KEPT_FOR) {
            // What stays takes up room and nothing else.
            let _ = fs::remove_file(&path);
        }
    }
}

fn archive(kernel: &Kernel, agent: &Path, extras: &Extras) -> Result<Vec<u8>> {
    let modules = Modules::look(&kernel.modules)?;
    check_has(kernel, &modules, &INDISPENSABLE)?;
    if extras.iscsi {
        check_has(kernel, &modules, ISCSI.1)?;
    }
    let program = fs::read(agent).map_err(reading(agent))?;
    let mut files = vec![("init".to_owned(), program)];
    for path in library::needed(agent, &files[0].1)? {
        let inside = path.to_string_lossy().trim_start_matches('/').to_owned();
        files.push((inside, fs::read(&path).map_err(reading(&path))?));
    }
    let (list, loaded) = features(&modules, extras)?;
    files.push(("modules.load".to_owned(), list.into_bytes()));
    files.extend(loaded.into_iter().map(|module| (file_name(&module.name), module.bytes)));
    write_archive(&files).map_err(|error| {
        ImageError::new("put together an initial file system", error, "report this: it is written to memory")
    })
}

fn file_name(module: &str) -> String {
    format!("modules/{module}.ko")
}

/// What is loaded for which feature, and the modules of all of them.
fn features(modules: &Modules, extras: &Extras) -> Result<(String, Vec<Module>)> {
    let congestion = modules.in_folder(CONGESTION_FOLDER);
    let congestion = congestion.into_iter().filter(|name| name.starts_with("tcp_") && *name != "tcp_diag");
    let congestion: Vec<(String, Vec<&str>)> =
        congestion.map(|name| (format!("congestion-{}", name.trim_start_matches("tcp_")), vec![name])).collect();
    let fixed = FEATURES.iter().chain(extras.iscsi.then_some(&ISCSI));
    let fixed = fixed.map(|(feature, names)| ((*feature).to_owned(), names.to_vec()));
    let card = ("card".to_owned(), extras.card.iter().map(String::as_str).collect());
    let mut known = HashMap::new();
    let mut list = String::new();
    for (feature, names) in fixed.chain(congestion).chain([card]) {
        let mut order: Vec<String> = Vec::new();
        for name in names.iter().filter(|name| modules.has(name)) {
            for module in modules.chain(name, &mut known)? {
                if !order.contains(&module) {
                    order.push(module);
                }
            }
        }
        if !order.is_empty() {
            let paths: Vec<String> = order.iter().map(|name| format!("/{}", file_name(name))).collect();
            list.push_str(&format!("{feature} {}\n", paths.join(" ")));
        }
    }
    let mut loaded: Vec<Module> = known.into_values().collect();
    loaded.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((list, loaded))
}

/// An archive as the kernel reads it (Documentation/driver-api/early-userspace/buffer-format.rst): directories first.
fn write_archive(files: &[(String, Vec<u8>)]) -> io::Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut number = 0;
    let mut folders: Vec<String> = ["dev", "proc", "sys", "run", "tmp", "root", "mnt"].map(String::from).to_vec();
    for (name, _) in files {
        let above: Vec<&Path> =
            Path::new(name).ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
        folders.extend(above.into_iter().rev().map(|above| above.to_string_lossy().into_owned()));
    }
    folders.sort();
    folders.dedup();
    let mut entry = |name: &str, kind: ModeFileType, mode: u32| {
        number += 1;
        newc::Builder::new(name).ino(number).nlink(1).mode(mode).set_mode_file_type(kind)
    };
    for folder in &folders {
        let mode = if folder == "tmp" { 0o1777 } else { 0o755 };
        entry(folder, ModeFileType::Directory, mode).write(&mut archive, 0).finish()?;
    }
    // What the agent says before it has mounted anything goes here.
    // So that a program without a console finds something in its place: a Rust program gives up without.
    entry("dev/null", ModeFileType::Char, 0o666).rdev_major(1).rdev_minor(3).write(&mut archive, 0).finish()?;
    entry("dev/console", ModeFileType::Char, 0o600).rdev_major(5).rdev_minor(1).write(&mut archive, 0).finish()?;
    for (name, bytes) in files {
        let size = u32::try_from(bytes.len()).map_err(|_| io::Error::other(format!("{name} is too large")))?;
        let mut writer = entry(name, ModeFileType::Regular, 0o755).write(&mut archive, size);
        writer.write_all(bytes)?;
        writer.finish()?;
    }
    newc::trailer(&mut archive)?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(mut archive: &[u8]) -> Vec<(String, u32)> {
        let mut names = Vec::new();
        loop {
            let reader = newc::Reader::new(archive).unwrap();
            if reader.entry().is_trailer() {
                return names;
            }
            names.push((reader.entry().name().to_owned(), reader.entry().mode()));
            archive = reader.finish().unwrap();
        }
    }

    #[test]
    fn directories_come_before_what_is_in_them() {
        let files = [("init".to_owned(), b"agent".to_vec()), ("lib/x/libc.so".to_owned(), b"1234567".to_vec())];
        let written = names(&write_archive(&files).unwrap());
        let place = |wanted: &str| written.iter().position(|(name, _)| name == wanted).unwrap();
        assert!(place("lib") < place("lib/x") && place("lib/x") < place("lib/x/libc.so"));
        assert_eq!(written[place("init")].1, 0o100_755);
        assert_eq!(written[place("dev/console")].1, 0o020_600);
    }

    #[test]
    fn the_initial_file_system_is_made_once_and_has_what_guests_need() {
        let Ok(kernel) = Kernel::find(None) else {
            eprintln!("SKIPPED: no kernel for virtual machines here; `make platforms` fetches one");
            return;
        };
        let agent = std::env::current_exe().unwrap();
        let boots: Vec<Boot> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| boot(&kernel, &agent, &Extras::default()).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(boots.windows(2).all(|pair| pair[0] == pair[1]), "{boots:?}");
        let archive = fs::read(&boots[0].initrd).unwrap();
        let written = names(&archive);
        for wanted in ["init", "modules.load"] {
            assert!(written.iter().any(|(name, _)| name == wanted), "{wanted}");
        }
        let modules = Modules::look(&kernel.modules).unwrap();
        let (list, _) = features(&modules, &Extras::default()).unwrap();
        assert!(!list.contains("iscsi"), "{list}");
        if modules.has("iscsi_tcp") {
            let (list, _) = features(&modules, &Extras { iscsi: true, ..Extras::default() }).unwrap();
            let line = list.lines().find(|line| line.starts_with("iscsi ")).unwrap();
            assert!(line.find("/libiscsi.ko").unwrap() < line.find("/iscsi_tcp.ko").unwrap(), "{line}");
        }
        let order: Vec<&str> =
            list.lines().find(|line| line.starts_with("virtio-1 ")).unwrap_or_default().split(' ').collect();
        let place = |name: &str| order.iter().position(|path| path.ends_with(name));
        assert!(place("net_failover.ko") < place("virtio_net.ko"), "{order:?}");
        fs::remove_file(&boots[0].initrd).unwrap();
        assert_eq!(boot(&kernel, &agent, &Extras::default()).unwrap(), boots[0], "made again when it is gone");
        fs::remove_file(&boots[0].initrd).unwrap();
    }

    #[test]
    fn what_nobody_uses_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        for (name, age) in [("old.cpio", KEPT_FOR * 2), ("new.cpio", Duration::ZERO)] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        forget_old(folder.path());
        assert!(folder.path().join("new.cpio").exists() && !folder.path().join("old.cpio").exists());
    }

    #[test]
    fn a_kernel_without_virtio_is_refused() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("kernel")).unwrap();
        let kernel = Kernel { image: "/k".into(), modules: place.path().into(), release: "1.0".into() };
        let error = boot(&kernel, &std::env::current_exe().unwrap(), &Extras::default()).unwrap_err().to_string();
        assert!(error.contains("no virtio_pci"), "{error}");
        assert!(kernel.check_iscsi().unwrap_err().to_string().contains("no crc32c_generic"));
    }
}
