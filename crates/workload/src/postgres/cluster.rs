//! A gold copy that is a cluster of PostgreSQL with one loaded database.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tare_model::sql::SqlServer;
use tare_wire::ExecResult;

use super::installation::Installation;
use super::server::{CONF, LOG, SHORT, Server, WAL, init_options};
use super::settings::{self, SettingValue};
use crate::asked::{Asked, NOBODY, failure};
use crate::failure::file;
use crate::gold::{self, Held, Making, TREE, at_host, found_or_made, name, walk};
use crate::{Failure, SetupSite, WorkloadError};

/// Raised when what is made here changes in a way that the rest of the name does not tell.
const FORMAT: u32 = 4;
/// In what guests are given: the cluster.
pub(crate) const DATA: &str = "data";
/// Beside what guests are given: the log alone, for arms that have a disk for it.
const LOG_TREE: &str = "log";
/// Ports that a cluster is made on: below those that the kernel gives out.
const PORTS: (u16, u16) = (20_000, 32_000);
/// How often another port is tried when one is taken.
const TRIES: u32 = 5;

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

/// The database of a workload.
pub(crate) trait Database {
    /// What was counted in it when it was made, which is kept beside the cluster.
    type Kept: Serialize + DeserializeOwned;

    /// How the names of its copies begin.
    const KIND: &'static str;
    /// Where that is kept, beside the cluster.
    const KEPT: &'static str;

    /// All that decides what is in it, but for PostgreSQL.
    fn made_of(&self) -> String;

    /// What it is, for people, such as `database of 4 GB`.
    fn description(&self) -> String;

    /// Refuses what cannot fit into the directory of gold copies.
    ///
    /// # Errors
    /// That it cannot, with the figures.
    fn fits(&self, folder: &Path) -> Result<(), WorkloadError>;

    /// Makes it on the server at 127.0.0.1, in an empty cluster whose superuser is trusted, and has all rows written out.
    ///
    /// # Errors
    /// What the server refused, and that it does not hold what it should.
    fn load(&self, asked: Asked<'_>, port: u16, note: &dyn Fn(&str)) -> Result<Self::Kept, WorkloadError>;
}

/// A gold copy: the directories that guests are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoldDatabase {
    /// The whole cluster, and what is kept beside it.
    pub data: PathBuf,
    /// The log alone, once more.
    pub log: PathBuf,
}

/// Finds the gold copy of a database or makes it; it stays where it is as long as what is given with it is held.
///
/// # Errors
/// When there is no room, the server's user cannot get there, anything of the making fails, or the server does not take the
/// study's settings.
pub(crate) fn database<D: Database>(
    site: &SetupSite<'_>,
    installation: &Installation,
    settings: &BTreeMap<String, SettingValue>,
    database: &D,
) -> Result<(GoldDatabase, Held), WorkloadError> {
    // First, for making the database may take long.
    check_settings(at_host(site), installation, settings)?;
    let cluster = Cluster { site, installation, database };
    let (place, held) = found_or_made(site, cluster.name(), &cluster)?;
    Ok((GoldDatabase { data: place.join(TREE), log: place.join(LOG_TREE) }, held))
}

/// A server on this side's 127.0.0.1, which trusts who comes from there.
pub(crate) fn local(port: u16, user: &str, database: &str) -> SqlServer {
    SqlServer::of(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), user, database)
}

/// Random bytes as hexadecimal digits.
///
/// # Errors
/// When the kernel gives none.
pub(crate) fn random(bytes: usize) -> Result<String, Failure> {
    use std::io::Read;
    let path = Path::new("/dev/urandom");
    let mut read = vec![0; bytes];
    File::open(path).and_then(|mut from| from.read_exact(&mut read)).map_err(file("read", path))?;
    Ok(read.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a gold copy is made of.
struct Cluster<'a, D> {
    site: &'a SetupSite<'a>,
    installation: &'a Installation,
    database: &'a D,
}

impl<D: Database> Cluster<'_, D> {
    fn name(&self) -> String {
        let made_of = format!(
            "format {FORMAT}\n{}\nPostgreSQL {}\nmachine {}\ninit {}\n",
            self.database.made_of(),
            self.installation.version,
            std::env::consts::ARCH,
            init_options(self.installation.major).join(" "),
        );
        name(D::KIND, &made_of)
    }

    /// Makes the cluster with its database.
    fn fill(&self, partial: &Path) -> Result<(), WorkloadError> {
        let (tree, log) = (partial.join(TREE), partial.join(LOG_TREE));
        for path in [&tree, &log] {
            DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(file("make", path))?;
        }
        for path in [partial, &tree, &log] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(file("open", path))?;
        }
        for path in [&tree, &log] {
            chown(path, Some(NOBODY.0), Some(NOBODY.1)).map_err(file("give to nobody", path))?;
        }
        let asked = at_host(self.site);
        let bin = self.installation.bin.to_string_lossy().into_owned();
        let server = Server { bin, data: tree.join(DATA).to_string_lossy().into_owned() };
        server.init(asked, self.installation.major)?;
        let port = start(&server, asked)?;
        let loaded = self.database.load(asked, port, self.site.note);
        if loaded.is_err() {
            // The agent ends it anyway, when it ends itself.
            let _ = server.kill(asked);
        }
        let kept = loaded?;
        server.stop(asked)?;
        tidy(&tree.join(DATA))?;
        let (from, to) = (tree.join(DATA).join(WAL), log.to_string_lossy().into_owned());
        asked.script("copy the log", r#"cp -a "$1" "$2""#, &[&from.to_string_lossy(), &to], Some(NOBODY), SHORT)?;
        let text = serde_json::to_string(&kept).map_err(|error| {
            Failure::new("tell what is in the database", error.to_string(), "report this: it is a defect of tare")
        })?;
        let path = tree.join(D::KEPT);
        fs::write(&path, text).map_err(file("write", &path))?;
        Ok(())
    }
}

impl<D: Database> Making for Cluster<'_, D> {
    fn noun(&self) -> &'static str {
        "database"
    }

    fn is_whole(&self, place: &Path) -> bool {
        whole::<D>(place, self.installation.major)
    }

    fn make(&self, folder: &Path, partial: &Path) -> Result<(), WorkloadError> {
        passable(folder)?;
        self.database.fits(folder)?;
        let began = Instant::now();
        let (database, note) = (self.database.description(), self.site.note);
        note(&format!("making the {database}, PostgreSQL {}; it is kept for later runs", self.installation.version));
        self.fill(partial)?;
        let bytes = gold::shown(walk(partial, true)?);
        note(&format!("{database} made: {bytes} on disk, {:.1} s altogether", began.elapsed().as_secs_f64()));
        Ok(())
    }
}

/// Whether a gold copy is there, of that version.
fn whole<D: Database>(place: &Path, major: u32) -> bool {
    let tree = place.join(TREE);
    let version = fs::read_to_string(tree.join(DATA).join("PG_VERSION")).unwrap_or_default();
    let kept = fs::read(tree.join(D::KEPT)).ok().and_then(|kept| serde_json::from_slice::<D::Kept>(&kept).ok());
    let log = place.join(LOG_TREE).join(WAL);
    version.trim() == major.to_string()
        && kept.is_some()
        && log.is_dir()
        && !tree.join(DATA).join("postmaster.pid").exists()
}

/// Has the server read the study's settings, without starting it and without data: one that it does not know or take would fail every
/// trial.
fn check_settings(
    asked: Asked<'_>,
    installation: &Installation,
    given: &BTreeMap<String, SettingValue>,
) -> Result<(), WorkloadError> {
    if given.is_empty() {
        return Ok(());
    }
    let program = installation.bin.join("postgres");
    let program = program.to_string_lossy();
    let given: Vec<String> = given.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
    let mut argv = vec![&*program, "-D", "/", "-c", "config_file=/dev/null", "-C", "port"];
    argv.extend(given.iter().flat_map(|setting| ["-c", setting.as_str()]));
    let ran = asked.run(&argv, Some(NOBODY), SHORT)?;
    if ran.code == Some(0) {
        return Ok(());
    }
    let tried = format!("start PostgreSQL {} with the study's settings", installation.version);
    let remedy = "correct `settings` of the case; they are PostgreSQL's own, in its own words";
    Err(Failure::new(tried, refusal(&ran), remedy).into())
}

/// What the server refused, without the lines that it writes beside it.
fn refusal(ran: &ExecResult) -> String {
    let said = String::from_utf8_lossy(&ran.stderr);
    let fatal = said.lines().find_map(|line| line.split_once("FATAL:").map(|(_, why)| why.trim().to_owned()));
    fatal.unwrap_or_else(|| failure(ran))
}

/// Whether nobody can get to a directory: each on the way must let everybody pass.
fn passable(folder: &Path) -> Result<(), Failure> {
    let folder = folder.canonicalize().map_err(file("look at", folder))?;
    for way in folder.ancestors() {
        let mode = way.metadata().map_err(file("look at", way))?.permissions().mode();
        if mode & 0o001 == 0 {
            let why = format!("its user, nobody, may not pass {}", way.display());
            let remedy = format!("`chmod o+x {}`, or set TARE_CACHE to another directory", way.display());
            return Err(Failure::new(format!("run PostgreSQL in {}", folder.display()), why, remedy));
        }
    }
    Ok(())
}

/// Starts a server on a port that is free; which.
fn start(server: &Server, asked: Asked<'_>) -> Result<u16, WorkloadError> {
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

/// Takes away what a server that was stopped leaves beside its data that a copy of them should not have.
///
/// # Errors
/// When it is still running, or a file cannot be removed.
fn tidy(data: &Path) -> Result<(), Failure> {
    if data.join("postmaster.pid").exists() {
        let why = "postmaster.pid is still there";
        return Err(Failure::new("stop PostgreSQL", why, "look for a server that runs there"));
    }
    for name in [CONF, LOG, "postmaster.opts"] {
        let path = data.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(file("remove", &path)(error)),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of which a number is kept.
    struct Numbered;

    impl Database for Numbered {
        type Kept = u64;
        const KIND: &'static str = "numbered";
        const KEPT: &'static str = "number.json";

        fn made_of(&self) -> String {
            String::new()
        }

        fn description(&self) -> String {
            "number".to_owned()
        }

        fn fits(&self, _: &Path) -> Result<(), WorkloadError> {
            Ok(())
        }

        fn load(&self, _: Asked<'_>, _: u16, _: &dyn Fn(&str)) -> Result<u64, WorkloadError> {
            Ok(3)
        }
    }

    #[test]
    fn only_a_whole_copy_of_the_right_version_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let (tree, whole) = (place.path().join(TREE), |major| whole::<Numbered>(place.path(), major));
        fs::create_dir_all(tree.join(DATA)).unwrap();
        fs::write(tree.join(DATA).join("PG_VERSION"), "15\n").unwrap();
        assert!(!whole(15), "nothing tells what is in it");
        fs::write(tree.join(Numbered::KEPT), "cut sho").unwrap();
        assert!(!whole(15), "what tells it is cut short");
        fs::write(tree.join(Numbered::KEPT), "3").unwrap();
        assert!(!whole(15), "there is no log");
        fs::create_dir_all(place.path().join(LOG_TREE).join(WAL)).unwrap();
        assert!(whole(15) && !whole(18));
        fs::write(tree.join(DATA).join("postmaster.pid"), "1\n").unwrap();
        assert!(!whole(15), "a server was killed in it");
    }

    #[test]
    fn what_a_stopped_server_leaves_is_taken_away_and_one_that_runs_is_reported() {
        let data = tempfile::tempdir().unwrap();
        for name in [CONF, LOG, "PG_VERSION"] {
            fs::write(data.path().join(name), "").unwrap();
        }
        tidy(data.path()).unwrap();
        let left: Vec<_> = fs::read_dir(data.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["PG_VERSION"]);
        fs::write(data.path().join("postmaster.pid"), "1\n").unwrap();
        assert!(tidy(data.path()).unwrap_err().to_string().contains("a server that runs"));
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
    fn random_digits_differ() {
        assert_eq!(random(8).unwrap().len(), 16);
        assert_ne!(random(8).unwrap(), random(8).unwrap());
    }
}
