//! The gold copy: a cluster with the loaded store, made once and kept, of which every guest is given a copy.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::statvfs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tare_model::ByteSize;
use tare_model::guest::GuestData;
use tare_model::sql::SqlServer;
use tare_model::store::{GENERATION, StoreCount, StoreCounts, StoreLoad, StoreLoaded, StoreSize};
use tare_wire::ExecResult;

use super::asked::{Asked, NOBODY, failure};
use super::error::{StoreError, file};
use super::installation::Installation;
use super::keep::{Held, Place, remove};
use super::parameters::Parameters;
use super::server::{SHORT, STORE, SUPERUSER, Server, init_options};
use super::settings::{self, SettingValue, wal_bytes};
use crate::{AheadSite, WorkloadError};

/// Raised when what is made here changes in a way that the rest of the key does not tell.
const FORMAT: u32 = 2;
/// In tare's cache: all gold copies.
const FOLDER: &str = "gold";
/// In the gold copy, beside the cluster: what was counted in it when it was made.
pub(super) const KEPT: &str = "store.json";
/// In the gold copy: the cluster.
pub(crate) const DATA: &str = "data";
/// Number of an order that none ever has, for counts that look at no new order: the largest `integer`.
pub(super) const NO_ORDER: u64 = 0x7fff_ffff;
/// Ports that a cluster is made on: below those that the kernel gives out.
const PORTS: (u16, u16) = (20_000, 32_000);
/// How often another port is tried when one is taken.
const TRIES: u32 = 5;
const MIB: u64 = 1 << 20;

/// Settings under which a cluster is made. What fails is made anew, so nothing has to last until it is whole; and no more of
/// the log is kept than must be, since every guest is given it.
const MAKING: [(&str, &str); 14] = [
    ("autovacuum", "off"),
    ("checkpoint_timeout", "1h"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("listen_addresses", "127.0.0.1"),
    ("maintenance_work_mem", "256MB"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "1GB"),
    ("min_wal_size", "32MB"),
    ("shared_buffers", "256MB"),
    ("synchronous_commit", "off"),
    ("unix_socket_directories", ""),
    ("wal_level", "minimal"),
    ("wal_recycle", "off"),
];

/// What is kept beside the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// What the store held when it was loaded.
    pub counts: StoreCounts,
    /// What loading came to.
    pub loaded: StoreLoaded,
}

/// Longest that loading a store may take: a virtual machine under emulation writes some hundred kB a second.
pub(super) fn loading(db: ByteSize) -> Duration {
    Duration::from_secs(120 + db.0 / 250_000)
}

/// Longest that counting a store may take, after growth.
pub(super) fn counting(db: ByteSize) -> Duration {
    Duration::from_secs(120 + db.0 / 10_000_000)
}

/// About what a gold copy takes, bytes: an empty cluster, a little log, tables and indexes.
pub(super) fn gold_bytes(size: &StoreSize) -> u64 {
    size.table_bytes().saturating_add(80 * MIB)
}

/// Disk for one guest: its data, half as much again for what is added, the log, and the file system's own.
pub(crate) fn room(data_bytes: u64, wal_bytes: u64) -> u64 {
    data_bytes.saturating_add(data_bytes / 2).saturating_add(wal_bytes).saturating_add(256 * MIB)
}

/// Finds the gold copy or makes it. It stays where it is as long as what is given with it is held.
///
/// # Errors
/// When there is no room, the server's user cannot get there, anything of the making fails, or the server does not take the
/// study's settings.
pub(super) fn gold(
    site: &AheadSite<'_>,
    installation: &Installation,
    parameters: &Parameters,
) -> Result<(GuestData, Held), WorkloadError> {
    let folder = site.cache.join(FOLDER);
    DirBuilder::new().recursive(true).mode(0o755).create(&folder).map_err(file("make", &folder))?;
    let asked = Asked { link: site.here, side: "host", patience: site.patience };
    let making = Making { site, asked, folder: &folder, installation, parameters, size: parameters.size() };
    let place = Place::new(&folder, making.key());
    let held = loop {
        let held = place.share(asked, site.note)?;
        if whole(&place.whole(), installation.major) {
            break held;
        }
        drop(held);
        let _own = place.own(asked, site.note)?;
        place.sweep()?;
        // Meanwhile another may have made it.
        if !whole(&place.whole(), installation.major) {
            // Nothing that is not whole ever has this name, unless somebody has changed it.
            remove(&place.whole())?;
            making.make(&place)?;
        }
    };
    let gold = place.whole().join("tree");
    check_settings(asked, installation, &parameters.settings, &gold)?;
    let bytes = walk(&gold, false)?;
    let size = room(bytes, wal_bytes(&parameters.settings, parameters.db_size));
    Ok((GuestData { gold, size: ByteSize(size), shared: false }, held))
}

/// Has the server read the study's settings, without starting it: one that it does not know or take would fail every trial.
pub(crate) fn check_settings(
    asked: Asked<'_>,
    installation: &Installation,
    given: &BTreeMap<String, SettingValue>,
    gold: &Path,
) -> Result<(), WorkloadError> {
    if given.is_empty() {
        return Ok(());
    }
    let (program, data) = (installation.bin.join("postgres"), gold.join(DATA));
    let (program, data) = (program.to_string_lossy(), data.to_string_lossy());
    let given: Vec<String> = given.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
    let mut argv = vec![&*program, "-D", &*data, "-C", "port"];
    argv.extend(given.iter().flat_map(|setting| ["-c", setting.as_str()]));
    let ran = asked.run(&argv, Some(NOBODY), SHORT)?;
    if ran.code == Some(0) {
        return Ok(());
    }
    let tried = format!("start PostgreSQL {} with the study's settings", installation.version);
    let remedy = "correct `settings` of the case; they are PostgreSQL's own, in its own words";
    Err(StoreError::new(tried, refusal(&ran), remedy).into())
}

/// What the server refused, without the lines that it writes beside it.
fn refusal(ran: &ExecResult) -> String {
    let said = String::from_utf8_lossy(&ran.stderr);
    let fatal = said.lines().find_map(|line| line.split_once("FATAL:").map(|(_, why)| why.trim().to_owned()));
    fatal.unwrap_or_else(|| failure(ran))
}

/// Whether a gold copy is there, of that version.
fn whole(place: &Path, major: u32) -> bool {
    let tree = place.join("tree");
    let version = fs::read_to_string(tree.join(DATA).join("PG_VERSION")).unwrap_or_default();
    let kept = fs::read(tree.join(KEPT)).ok().and_then(|kept| serde_json::from_slice::<Kept>(&kept).ok());
    version.trim() == major.to_string() && kept.is_some() && !tree.join(DATA).join("postmaster.pid").exists()
}

/// Bytes on the disk of all that is in a directory; each file is written out on request.
pub(crate) fn walk(folder: &Path, sync: bool) -> Result<u64, StoreError> {
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(file("read", &folder))? {
            let path = entry.map_err(file("read", &folder))?.path();
            let seen = path.symlink_metadata().map_err(file("look at", &path))?;
            bytes += seen.blocks() * 512;
            if seen.is_dir() {
                folders.push(path);
            } else if sync && seen.is_file() {
                File::open(&path).and_then(|opened| opened.sync_all()).map_err(file("write out", &path))?;
            }
        }
        if sync {
            File::open(&folder).and_then(|opened| opened.sync_all()).map_err(file("write out", &folder))?;
        }
    }
    Ok(bytes)
}

/// Whether nobody can get to a directory: each on the way must let everybody pass.
pub(crate) fn passable(folder: &Path) -> Result<(), StoreError> {
    let folder = folder.canonicalize().map_err(file("look at", folder))?;
    for way in folder.ancestors() {
        let mode = way.metadata().map_err(file("look at", way))?.permissions().mode();
        if mode & 0o001 == 0 {
            let why = format!("its user, nobody, may not pass {}", way.display());
            let remedy = format!("`chmod o+x {}`, or set TARE_CACHE to another directory", way.display());
            return Err(StoreError::new(format!("run PostgreSQL in {}", folder.display()), why, remedy));
        }
    }
    Ok(())
}

/// So many bytes for people.
pub(crate) fn shown(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
    } else {
        format!("{:.0} MiB", bytes as f64 / MIB as f64)
    }
}

/// The size of a database as people write it: in decimal units, where they come out even.
fn nominal(db: ByteSize) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let even = UNITS.into_iter().find(|(_, bytes)| db.0.is_multiple_of(*bytes));
    even.map_or_else(|| db.to_string(), |(unit, bytes)| format!("{} {unit}", db.0 / bytes))
}

/// Random bytes as hexadecimal digits.
///
/// # Errors
/// When the kernel gives none.
pub(crate) fn random(bytes: usize) -> Result<String, StoreError> {
    use std::io::Read;
    let path = Path::new("/dev/urandom");
    let mut read = vec![0; bytes];
    File::open(path).and_then(|mut from| from.read_exact(&mut read)).map_err(file("read", path))?;
    Ok(read.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a gold copy is made of.
struct Making<'a> {
    site: &'a AheadSite<'a>,
    /// Who makes it.
    asked: Asked<'a>,
    /// The directory of all gold copies.
    folder: &'a Path,
    installation: &'a Installation,
    parameters: &'a Parameters,
    size: StoreSize,
}

impl Making<'_> {
    /// A name for all that decides what is in the copy.
    fn key(&self) -> String {
        let Self { installation, parameters, size, .. } = self;
        let made_of = format!(
            "format {FORMAT}\nrows {GENERATION} {}\nPostgreSQL {}\nmachine {}\ninit {}\nsize {} {} {}\nseed {}\n",
            env!("TARE_STORE_BUILD"),
            installation.version,
            std::env::consts::ARCH,
            init_options(installation.major).join(" "),
            size.customers,
            size.orders_per_month,
            size.products,
            parameters.seed,
        );
        let digest = Sha256::digest(made_of.as_bytes());
        let key: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        format!("store-{key}")
    }

    /// Refuses what cannot fit before hours are spent on it.
    fn fits(&self) -> Result<(), StoreError> {
        // Sorting for indexes takes about a quarter of the tables for a while.
        let need = self.size.disk_bytes() + self.size.table_bytes() / 4 + 64 * MIB;
        let seen = statvfs(self.folder).map_err(|error| file("look at", self.folder)(error.into()))?;
        let free = seen.f_bavail.saturating_mul(seen.f_frsize);
        if free >= need {
            return Ok(());
        }
        let tried = format!("make a database of {}", nominal(self.parameters.db_size));
        let why = format!("that takes {} of disk in {}, which has {}", shown(need), self.folder.display(), shown(free));
        Err(StoreError::new(
            tried,
            why,
            "ask for a smaller `db-size`, or set TARE_CACHE to a directory on a larger disk",
        ))
    }

    fn make(&self, place: &Place) -> Result<(), WorkloadError> {
        passable(self.folder)?;
        self.fits()?;
        let partial = place.partial();
        let began = Instant::now();
        let (size, version) = (nominal(self.parameters.db_size), &self.installation.version);
        (self.site.note)(&format!("making the database: {size}, PostgreSQL {version}; it is kept for later runs"));
        let made = self.fill(&partial);
        if made.is_err() {
            // What is left of it is in nobody's way, if this fails too.
            let _ = remove(&partial);
        }
        let kept = made?;
        let bytes = walk(&partial, true)?;
        fs::rename(&partial, place.whole()).map_err(file("put in its place", &partial))?;
        File::open(self.folder).and_then(|opened| opened.sync_all()).map_err(file("write out", self.folder))?;
        let sent: u64 = kept.loaded.tables.iter().map(|(_, _, bytes)| bytes).sum();
        (self.site.note)(&format!(
            "database made: {} of rows in {:.1} s, the last indexes and keys {:.1} s later; {} on disk, {:.1} s altogether",
            shown(sent),
            kept.loaded.rows_s,
            kept.loaded.indexes_s,
            shown(bytes),
            began.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Makes all that is in the copy, in a directory that is not yet in its place.
    fn fill(&self, partial: &Path) -> Result<Kept, WorkloadError> {
        let tree = partial.join("tree");
        DirBuilder::new().recursive(true).mode(0o755).create(&tree).map_err(file("make", &tree))?;
        for path in [partial, &tree] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(file("open", path))?;
        }
        chown(&tree, Some(NOBODY.0), Some(NOBODY.1)).map_err(file("give to nobody", &tree))?;
        let asked = self.asked;
        let bin = self.installation.bin.to_string_lossy().into_owned();
        let server = Server { bin, data: tree.join(DATA).to_string_lossy().into_owned() };
        server.init(asked, self.installation.major)?;
        let port = start(&server, asked)?;
        let filled = self.load(asked, port);
        if filled.is_err() {
            // The agent ends it anyway, when it ends itself.
            let _ = server.kill(asked);
        }
        let kept = filled?;
        server.stop(asked)?;
        server.tidy()?;
        let text = serde_json::to_string(&kept).map_err(|error| {
            StoreError::new("tell what is in the database", error.to_string(), "report this: it is a defect of tare")
        })?;
        let path = tree.join(KEPT);
        fs::write(&path, text).map_err(file("write", &path))?;
        Ok(kept)
    }

    fn load(&self, asked: Asked<'_>, port: u16) -> Result<Kept, WorkloadError> {
        let (super_user, store) = (local(port, SUPERUSER, "postgres"), local(port, STORE, STORE));
        let longest = loading(self.parameters.db_size);
        asked.sql("make the database", &super_user, &CREATE, longest)?;
        let connections = std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(1));
        let load = StoreLoad { server: store.clone(), size: self.size, seed: self.parameters.seed, connections };
        let loaded = asked.load(load, longest)?;
        let inside = SqlServer { database: STORE.to_owned(), ..super_user };
        asked.sql("freeze the rows", &inside, &[LOADED, "VACUUM (FREEZE, ANALYZE)"], longest)?;
        let timeout_ns = u64::try_from(counting(self.parameters.db_size).as_nanos()).unwrap_or(u64::MAX);
        let count = StoreCount { server: store, after_order: NO_ORDER, in_doubt: Vec::new(), timeout_ns };
        let counts = asked.count(count)?;
        asked.sql("write the rows out", &inside, &["CHECKPOINT"], longest)?;
        Ok(Kept { counts, loaded })
    }
}

/// The store's user and database. As a superuser it may load rows that are held against the foreign keys as a whole, ...
pub(super) const CREATE: [&str; 2] = ["CREATE ROLE store LOGIN SUPERUSER", "CREATE DATABASE store OWNER store"];
/// ... which it is no longer when they are there.
pub(super) const LOADED: &str = "ALTER ROLE store NOSUPERUSER";

/// A server on this side's 127.0.0.1, which trusts who comes from there.
pub(crate) fn local(port: u16, user: &str, database: &str) -> SqlServer {
    SqlServer {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        user: user.to_owned(),
        password: None,
        database: database.to_owned(),
        schema: None,
    }
}

/// Starts a server on a port that is free; which.
pub(crate) fn start(server: &Server, asked: Asked<'_>) -> Result<u16, WorkloadError> {
    let mut tries = 0;
    loop {
        let number = u16::from_str_radix(&random(2)?, 16).unwrap_or_default();
        let port = PORTS.0 + number % (PORTS.1 - PORTS.0);
        let settings = MAKING.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let settings = settings.chain([("port".to_owned(), port.to_string())]).collect();
        server.configure(asked, &settings::file(&settings), None)?;
        tries += 1;
        match server.start(asked) {
            Ok(_) => return Ok(port),
            Err(error) if tries < TRIES && error.to_string().contains("in use") => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn only_a_whole_copy_of_the_right_version_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        fs::create_dir_all(tree.join(DATA)).unwrap();
        fs::write(tree.join(DATA).join("PG_VERSION"), "15\n").unwrap();
        assert!(!whole(place.path(), 15), "nothing tells what is in it");
        let kept = Kept { counts: StoreCounts { orders: 3, ..StoreCounts::default() }, loaded: StoreLoaded::default() };
        fs::write(tree.join(KEPT), serde_json::to_string(&kept).unwrap()).unwrap();
        assert!(whole(place.path(), 15) && !whole(place.path(), 18));
        fs::write(tree.join(DATA).join("postmaster.pid"), "1\n").unwrap();
        assert!(!whole(place.path(), 15), "a server was killed in it");
    }

    #[test]
    fn a_directory_that_nobody_may_pass_is_named_with_the_remedy() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("cache");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let error = passable(&inner).unwrap_err().to_string();
        assert!(error.contains(&format!("chmod o+x {}", place.path().display())), "{error}");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
        passable(&inner).unwrap();
    }

    #[test]
    fn a_guests_disk_holds_its_data_what_is_added_and_the_log() {
        assert_eq!(room(1 << 30, 2 << 30), (1 << 30) + (1 << 29) + (2 << 30) + 256 * MIB);
        assert_eq!((shown(3 << 29), shown(5 << 20)), ("1.5 GiB".into(), "5 MiB".into()));
        assert_eq!((nominal(ByteSize(4_000_000_000)), nominal(ByteSize(1 << 20))), ("4 GB".into(), "1MiB".into()));
    }

    #[test]
    fn random_digits_differ() {
        assert_eq!(random(8).unwrap().len(), 16);
        assert_ne!(random(8).unwrap(), random(8).unwrap());
    }
}
