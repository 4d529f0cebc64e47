//! The gold copy: a cluster with one loaded database, made once and kept. What each guest uses is given a copy, in which every instance's
//! database is made of the one.

use std::path::Path;
use std::time::Duration;

use crate::social::spec::{Added, GENERATION, Scale, SocialLoad};
use serde::{Deserialize, Serialize};
use tare_model::ByteSize;
use tare_model::guest::GuestData;
use tare_model::sql::SqlServer;

use super::parameters::Parameters;
use super::verify::{COUNT, counted};
use crate::asked::Asked;
use crate::gold::{self, Held, shown};
use crate::postgres::cluster::{Database, database, local};
use crate::postgres::installation::Installation;
use crate::postgres::server::SUPERUSER;
use crate::{Failure, SetupSite, WorkloadError};

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
    site: &SetupSite<'_>,
    installation: &Installation,
    parameters: &Parameters,
    scale: Scale,
) -> Result<(GuestData, Held), WorkloadError> {
    let rows = Rows { parameters, scale };
    let (gold, held) = database(site, installation, &parameters.settings, &rows)?;
    Ok((GuestData { gold: gold.data, size: ByteSize(room(&scale, site.instances)), shared: false, log: None }, held))
}

/// The rows of the application's database.
struct Rows<'a> {
    parameters: &'a Parameters,
    scale: Scale,
}

impl Database for Rows<'_> {
    type Kept = Kept;
    const KIND: &'static str = "social";
    const KEPT: &'static str = KEPT;

    fn made_of(&self) -> String {
        let Scale { people, tags, events } = self.scale;
        let (build, seed) = (env!("TARE_SOCIAL_BUILD"), self.parameters.data_seed);
        format!("rows {GENERATION} {build}\nscale {people} {tags} {events}\nseed {seed}")
    }

    fn description(&self) -> String {
        format!("social database of {} people and {} events", self.scale.people, self.scale.events)
    }

    fn fits(&self, folder: &Path) -> Result<(), WorkloadError> {
        // Sorting for indexes takes about a quarter of the tables for a while.
        let need = gold_bytes(&self.scale) + self.scale.table_bytes() / 4;
        Ok(gold::fits(folder, need, &format!("make a {}", self.description()), "write fewer `scale-users`")?)
    }

    fn load(&self, asked: Asked<'_>, port: u16, note: &dyn Fn(&str)) -> Result<Kept, WorkloadError> {
        let longest = loading(&self.scale);
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
        let loaded = asked.database(&load, &load.server, longest)?;
        let sent: u64 = loaded.tables.iter().map(|(_, _, bytes)| bytes).sum();
        let (rows_s, indexes_s) = (loaded.rows_s, loaded.indexes_s);
        note(&format!("{} of rows in {rows_s:.1} s, indexes {indexes_s:.1} s later", shown(sent)));
        let inside = SqlServer { database: SOCIAL.to_owned(), ..super_user };
        let finish = ["ALTER ROLE social NOSUPERUSER", "VACUUM (FREEZE, ANALYZE)"];
        asked.sql("freeze the rows", &inside, &finish, longest)?;
        let rows = asked.sql("count the rows", &inside, &[COUNT], longest)?;
        asked.sql("write the rows out", &inside, &["CHECKPOINT"], longest)?;
        let counts = rows.first().and_then(counted).ok_or_else(|| {
            let remedy = "report this: it is a defect of tare";
            Failure::new("count the rows", "the server answered something else", remedy)
        })?;
        self.agrees(counts)?;
        Ok(Kept { loaded: counts, scale: self.scale })
    }
}

impl Rows<'_> {
    /// Refuses a database that does not hold what was to be loaded.
    fn agrees(&self, counts: Added) -> Result<(), Failure> {
        let asked = (u64::from(self.scale.people), u64::from(self.scale.events));
        if (counts.people, counts.events) == asked {
            return Ok(());
        }
        let why = format!(
            "it holds {} people and {} events, {} and {} were to be loaded",
            counts.people, counts.events, asked.0, asked.1
        );
        Err(Failure::new("load the social database", why, "report this: it is a defect of tare"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
