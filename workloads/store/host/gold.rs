//! The gold copy of a store: a cluster with its rows, made once and kept, of which every guest is given a copy.

use std::path::Path;
use std::time::Duration;

use crate::store::spec::{GENERATION, StoreCount, StoreCounts, StoreLoad, StoreLoaded, StoreSize};
use serde::{Deserialize, Serialize};
use tare_model::ByteSize;
use tare_model::guest::{GuestData, GuestLog};
use tare_model::sql::SqlServer;

use super::parameters::Parameters;
use super::ready::STORE;
use crate::asked::Asked;
use crate::gold::{self, Held, shown, walk};
use crate::postgres::cluster::{Database, database, local};
use crate::postgres::installation::Installation;
use crate::postgres::server::SUPERUSER;
use crate::postgres::settings::wal_bytes;
use crate::{Failure, SetupSite, WorkloadError};

/// In the gold copy, beside the cluster: what was counted in it when it was made.
pub(super) const KEPT: &str = "store.json";
/// Number of an order that none ever has, for counts that look at no new order: the largest `integer`.
pub(super) const NO_ORDER: u64 = 0x7fff_ffff;
/// Months of orders that are loaded.
const MONTHS: u64 = 12;
const MIB: u64 = 1 << 20;
/// What a log takes beside its limit, which is a soft one: the segment that is written, and those that are made ahead.
const WAL_BESIDE: u64 = 64 * MIB;

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

/// About what a gold copy takes, bytes: an empty cluster, a little log twice, tables and indexes.
pub(super) fn gold_bytes(size: &StoreSize) -> u64 {
    size.table_bytes().saturating_add(112 * MIB)
}

/// Disk for one guest's data: themselves, half as much again for what is added, and the file system's own.
pub(super) fn room(data_bytes: u64) -> u64 {
    data_bytes.saturating_add(data_bytes / 2).saturating_add(256 * MIB)
}

/// Disk for one guest's log.
pub(super) fn log_room(parameters: &Parameters) -> ByteSize {
    ByteSize(wal_bytes(&parameters.settings, parameters.db_size).saturating_add(WAL_BESIDE))
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
) -> Result<(GuestData, Held), WorkloadError> {
    let rows = Rows { parameters, size: parameters.size() };
    let (gold, held) = database(site, installation, &parameters.settings, &rows)?;
    let size = ByteSize(room(walk(&gold.data, false)?));
    let log = GuestLog { gold: gold.log, size: log_room(parameters) };
    Ok((GuestData { gold: gold.data, size, shared: false, log: Some(log) }, held))
}

/// The size of a database as people write it: in decimal units, where they come out even.
fn nominal(db: ByteSize) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let even = UNITS.into_iter().find(|(_, bytes)| db.0.is_multiple_of(*bytes));
    even.map_or_else(|| db.to_string(), |(unit, bytes)| format!("{} {unit}", db.0 / bytes))
}

/// The rows of a store.
struct Rows<'a> {
    parameters: &'a Parameters,
    size: StoreSize,
}

impl Database for Rows<'_> {
    type Kept = Kept;
    const KIND: &'static str = "store";
    const KEPT: &'static str = KEPT;

    fn made_of(&self) -> String {
        let StoreSize { customers, orders_per_month, products } = self.size;
        let (build, seed) = (env!("TARE_STORE_BUILD"), self.parameters.seed);
        format!("rows {GENERATION} {build}\nsize {customers} {orders_per_month} {products}\nseed {seed}")
    }

    fn description(&self) -> String {
        format!("database of {}", nominal(self.parameters.db_size))
    }

    fn fits(&self, folder: &Path) -> Result<(), WorkloadError> {
        // Sorting for indexes takes about a quarter of the tables for a while.
        let need = self.size.disk_bytes().saturating_add(self.size.table_bytes() / 4).saturating_add(64 * MIB);
        Ok(gold::fits(folder, need, &format!("make a {}", self.description()), "ask for a smaller `db-size`")?)
    }

    fn load(&self, asked: Asked<'_>, port: u16, note: &dyn Fn(&str)) -> Result<Kept, WorkloadError> {
        let (super_user, store) = (local(port, SUPERUSER, "postgres"), local(port, STORE, STORE));
        let longest = loading(self.parameters.db_size);
        asked.sql("make the database", &super_user, &CREATE, longest)?;
        let connections = std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(1));
        let load = StoreLoad { server: store.clone(), size: self.size, seed: self.parameters.seed, connections };
        let loaded = asked.database(&load, &load.server, longest)?;
        let sent: u64 = loaded.tables.iter().map(|(_, _, bytes)| bytes).sum();
        let (rows_s, indexes_s) = (loaded.rows_s, loaded.indexes_s);
        note(&format!("{} of rows in {rows_s:.1} s, the last indexes and keys {indexes_s:.1} s later", shown(sent)));
        let inside = SqlServer { database: STORE.to_owned(), ..super_user };
        asked.sql("freeze the rows", &inside, &[LOADED, "VACUUM (FREEZE, ANALYZE)"], longest)?;
        let timeout_ns = u64::try_from(counting(self.parameters.db_size).as_nanos()).unwrap_or(u64::MAX);
        let count = StoreCount { server: store, after_order: NO_ORDER, in_doubt: Vec::new(), timeout_ns };
        let counts = asked.database(&count, &count.server, Duration::from_nanos(count.timeout_ns))?;
        agrees(&self.size, &counts)?;
        asked.sql("write the rows out", &inside, &["CHECKPOINT"], longest)?;
        Ok(Kept { counts, loaded })
    }
}

/// Refuses a store that does not hold what was to be loaded, before every trial is held against it.
pub(super) fn agrees(size: &StoreSize, counts: &StoreCounts) -> Result<(), Failure> {
    let orders = MONTHS.saturating_mul(size.orders_per_month);
    let there = (counts.customers, counts.orders, counts.last_order, counts.sales);
    if there == (size.customers, orders, orders, 0) {
        return Ok(());
    }
    let why = format!(
        "it holds {} customers, {} orders of which the last has number {}, and {} sales; {} customers, {orders} orders and no sale \
         were to be loaded",
        counts.customers, counts.orders, counts.last_order, counts.sales, size.customers
    );
    Err(Failure::new("load the store", why, "report this: it is a defect of tare"))
}

/// The store's user and database. As a superuser it may load rows that are held against the foreign keys as a whole, ...
pub(super) const CREATE: [&str; 2] = ["CREATE ROLE store LOGIN SUPERUSER", "CREATE DATABASE store OWNER store"];
/// ... which it is no longer when they are there.
pub(super) const LOADED: &str = "ALTER ROLE store NOSUPERUSER";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_disk_holds_its_data_and_what_is_added_and_that_of_the_log_all_that_is_kept() {
        assert_eq!(room(1 << 30), (1 << 30) + (1 << 29) + 256 * MIB);
        let parameters = Parameters { db_size: ByteSize(4_000_000_000), ..Parameters::default() };
        assert_eq!(log_room(&parameters).0, 12 * 4_000_000_000 + 64 * MIB);
        assert_eq!((nominal(ByteSize(4_000_000_000)), nominal(ByteSize(1 << 20))), ("4 GB".into(), "1MiB".into()));
    }

    #[test]
    fn a_store_that_is_not_what_was_asked_for_is_refused_with_both_figures() {
        let size = StoreSize { customers: 2_000, orders_per_month: 100, products: 1_000 };
        let good = StoreCounts { customers: 2_000, orders: 1_200, last_order: 1_200, ..StoreCounts::default() };
        assert!(agrees(&size, &good).is_ok());
        for bad in [
            StoreCounts { customers: 1_999, ..good.clone() },
            StoreCounts { orders: 1_199, ..good.clone() },
            StoreCounts { last_order: 1_201, ..good.clone() },
            StoreCounts { sales: 1, ..good.clone() },
        ] {
            let message = agrees(&size, &bad).map_err(|error| error.to_string()).err().unwrap_or_default();
            assert!(message.contains("2000 customers, 1200 orders") && message.contains("defect"), "{message}");
        }
    }
}
