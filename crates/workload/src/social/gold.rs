//! The gold copy: a cluster with one loaded database, made once and kept. What each guest uses is given a copy, in which every instance's
//! database is made of the one.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::statvfs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tare_model::ByteSize;
use tare_model::guest::GuestData;
use tare_model::social::{Added, GENERATION, Scale, SocialLoad};
use tare_model::sql::SqlServer;

use super::error::SocialError;
use super::parameters::Parameters;
use super::verify::{COUNT, counted};
use crate::store::asked::{Asked, NOBODY};
use crate::store::error::file;
use crate::store::gold::{DATA, check_settings, local, passable, shown, start, walk};
use crate::store::installation::Installation;
use crate::store::keep::{Held, Place, remove};
use crate::store::server::{SUPERUSER, Server, init_options};
use crate::{AheadSite, StoreError, WorkloadError};

/// Raised when what is made here changes in a way that the rest of the key does not tell.
const FORMAT: u32 = 1;
/// In tare's cache: all gold copies.
const FOLDER: &str = "gold";
/// In the gold copy, beside the cluster: what was counted in it when it was made.
pub(super) const KEPT: &str = "social.json";
/// The application's user, and the database that is loaded.
pub(super) const SOCIAL: &str = "social";
const MIB: u64 = 1 << 20;
/// An empty cluster and a little log, bytes.
const CLUSTER_BYTES: u64 = 96 * MIB;

/// What is kept beside the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// People, events and attendances that are loaded.
    pub loaded: Added,
    /// What they were made for.
    pub scale: Scale,
}

/// Longest that loading may take: an emulated host writes some hundred kB a second.
fn loading(scale: &Scale) -> Duration {
    Duration::from_secs(180 + scale.table_bytes() / 250_000)
}

/// About what a gold copy takes, bytes.
pub(super) fn gold_bytes(scale: &Scale) -> u64 {
    scale.table_bytes() + CLUSTER_BYTES
}

/// What a copy for so many instances comes to, bytes: their databases with half as much again for what is added, the log, what users
/// bring.
pub(super) fn room(scale: &Scale, instances: u32) -> u64 {
    let databases = scale.table_bytes().saturating_mul(u64::from(instances) + 1);
    databases.saturating_add(databases / 2).saturating_add(CLUSTER_BYTES + (3 << 30))
}

/// What so many users of all instances are likely to take of that, bytes: databases with a quarter as much again, the log, and what they bring,
/// some events of a megabyte each in some minutes.
pub(super) fn likely(scale: &Scale, instances: u32, users: u32) -> u64 {
    let databases = scale.table_bytes().saturating_mul(u64::from(instances) + 1);
    databases.saturating_add(databases / 4).saturating_add(CLUSTER_BYTES + 128 * MIB + u64::from(users) * 2 * MIB)
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
    scale: Scale,
) -> Result<(GuestData, Held), WorkloadError> {
    let folder = site.cache.join(FOLDER);
    DirBuilder::new().recursive(true).mode(0o755).create(&folder).map_err(file("make", &folder))?;
    let asked = Asked { link: site.here, side: "host", patience: site.patience };
    let making = Making { site, asked, folder: &folder, installation, parameters, scale };
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
    Ok((GuestData { gold, size: ByteSize(room(&scale, site.instances)), shared: false }, held))
}

/// Whether a gold copy is there, of that version.
fn whole(place: &Path, major: u32) -> bool {
    let tree = place.join("tree");
    let version = fs::read_to_string(tree.join(DATA).join("PG_VERSION")).unwrap_or_default();
    let kept = fs::read(tree.join(KEPT)).ok().and_then(|kept| serde_json::from_slice::<Kept>(&kept).ok());
    version.trim() == major.to_string() && kept.is_some() && !tree.join(DATA).join("postmaster.pid").exists()
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
    scale: Scale,
}

impl Making<'_> {
    /// A name for all that decides what is in the copy.
    fn key(&self) -> String {
        let Self { installation, parameters, scale, .. } = self;
        let made_of = format!(
            "format {FORMAT}\nrows {GENERATION} {}\nPostgreSQL {}\nmachine {}\ninit {}\nscale {} {} {}\nseed {}\n",
            env!("TARE_SOCIAL_BUILD"),
            installation.version,
            std::env::consts::ARCH,
            init_options(installation.major).join(" "),
            scale.people,
            scale.tags,
            scale.events,
            parameters.data_seed,
        );
        let digest = Sha256::digest(made_of.as_bytes());
        let key: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        format!("social-{key}")
    }

    /// Refuses what cannot fit before a row is made.
    fn fits(&self) -> Result<(), SocialError> {
        // Sorting for indexes takes about a quarter of the tables for a while.
        let need = gold_bytes(&self.scale) + self.scale.table_bytes() / 4;
        let seen = statvfs(self.folder).map_err(|error| file("look at", self.folder)(error.into()));
        let seen = seen.map_err(|error| SocialError::new(error.tried, error.why, error.remedy))?;
        let free = seen.f_bavail.saturating_mul(seen.f_frsize);
        if free >= need {
            return Ok(());
        }
        let tried = format!("make a database of {} people", self.scale.people);
        let why = format!("that takes {} of disk in {}, which has {}", shown(need), self.folder.display(), shown(free));
        let remedy = "write fewer `scale-users`, or set TARE_CACHE to a directory on a larger disk";
        Err(SocialError::new(tried, why, remedy))
    }

    fn make(&self, place: &Place) -> Result<(), WorkloadError> {
        passable(self.folder)?;
        self.fits()?;
        let (partial, began) = (place.partial(), Instant::now());
        let Scale { people, events, .. } = self.scale;
        let version = &self.installation.version;
        (self.site.note)(&format!(
            "making the social database: {people} people, {events} events, PostgreSQL {version}; it is kept for later runs"
        ));
        let made = self.fill(&partial);
        if made.is_err() {
            // What is left of it is in nobody's way, if this fails too.
            let _ = remove(&partial);
        }
        made?;
        let bytes = walk(&partial, true)?;
        fs::rename(&partial, place.whole()).map_err(file("put in its place", &partial))?;
        File::open(self.folder).and_then(|opened| opened.sync_all()).map_err(file("write out", self.folder))?;
        let (size, seconds) = (shown(bytes), began.elapsed().as_secs_f64());
        (self.site.note)(&format!("social database made: {size} on disk, {seconds:.1} s altogether"));
        Ok(())
    }

    /// Makes all that is in the copy, in a directory that is not yet in its place.
    fn fill(&self, partial: &Path) -> Result<(), WorkloadError> {
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
        let filled = self.load(port);
        if filled.is_err() {
            // The agent ends it anyway, when it ends itself.
            let _ = server.kill(asked);
        }
        let kept = filled?;
        server.stop(asked)?;
        server.tidy()?;
        let text = serde_json::to_string(&kept).map_err(|error| {
            let remedy = "report this: it is a defect of tare";
            SocialError::new("tell what is in the social database", error.to_string(), remedy)
        })?;
        let path = tree.join(KEPT);
        fs::write(&path, text).map_err(file("write", &path))?;
        Ok(())
    }

    fn load(&self, port: u16) -> Result<Kept, WorkloadError> {
        let (asked, longest) = (self.asked, loading(&self.scale));
        let (super_user, social) = (local(port, SUPERUSER, "postgres"), local(port, SOCIAL, SOCIAL));
        // As a superuser it may load rows that are held against keys as a whole, which it is no longer when they are there.
        let create = ["CREATE ROLE social LOGIN SUPERUSER", "CREATE DATABASE social OWNER social"];
        asked.sql("make the database", &super_user, &create, longest)?;
        let load = SocialLoad {
            server: social.clone(),
            scale: self.scale,
            seed: self.parameters.data_seed,
            connections: self.parameters.connections,
        };
        let loaded = asked.load_social(load, longest)?;
        let sent: u64 = loaded.tables.iter().map(|(_, _, bytes)| bytes).sum();
        let (rows_s, indexes_s) = (loaded.rows_s, loaded.indexes_s);
        (self.site.note)(&format!("{} of rows in {rows_s:.1} s, indexes {indexes_s:.1} s later", shown(sent)));
        let inside = SqlServer { database: SOCIAL.to_owned(), ..super_user };
        let finish = ["ALTER ROLE social NOSUPERUSER", "VACUUM (FREEZE, ANALYZE)"];
        asked.sql("freeze the rows", &inside, &finish, longest)?;
        let rows = asked.sql("count the rows", &inside, &[COUNT], longest)?;
        asked.sql("write the rows out", &inside, &["CHECKPOINT"], longest)?;
        let counts = rows.first().and_then(counted).ok_or_else(|| {
            let remedy = "report this: it is a defect of tare";
            StoreError::new("count the rows", "the server answered something else", remedy)
        })?;
        self.agrees(counts)?;
        Ok(Kept { loaded: counts, scale: self.scale })
    }

    /// Refuses a database that does not hold what was to be loaded.
    fn agrees(&self, counts: Added) -> Result<(), SocialError> {
        let asked = (u64::from(self.scale.people), u64::from(self.scale.events));
        if (counts.people, counts.events) == asked {
            return Ok(());
        }
        let why = format!(
            "it holds {} people and {} events, {} and {} were to be loaded",
            counts.people, counts.events, asked.0, asked.1
        );
        Err(SocialError::new("load the social database", why, "report this: it is a defect of tare"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_whole_copy_of_the_right_version_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        fs::create_dir_all(tree.join(DATA)).unwrap();
        fs::write(tree.join(DATA).join("PG_VERSION"), "15\n").unwrap();
        assert!(!whole(place.path(), 15), "nothing tells what is in it");
        let kept = Kept { loaded: Added::default(), scale: Scale::of(25) };
        fs::write(tree.join(KEPT), serde_json::to_string(&kept).unwrap()).unwrap();
        assert!(whole(place.path(), 15) && !whole(place.path(), 18));
        fs::write(tree.join(DATA).join("postmaster.pid"), "1\n").unwrap();
        assert!(!whole(place.path(), 15), "a server was killed in it");
    }

    #[test]
    fn room_grows_with_the_instances() {
        let scale = Scale::of(100);
        let more = room(&scale, 4) - room(&scale, 1);
        assert!(more.abs_diff(3 * scale.table_bytes() * 3 / 2) <= 2, "{more}");
        let more = likely(&scale, 4, 100) - likely(&scale, 1, 100);
        assert!(more.abs_diff(3 * scale.table_bytes() * 5 / 4) <= 2, "{more}");
        assert!((1..64).all(|instances| likely(&scale, instances, 1000) < room(&scale, instances)));
    }
}
