//! The store of the order-entry workload: its size, what drives it, and what was done in it.
//!
//! Modelled on the order flow of an online store as published in 2011 (`docs/reference/postgresql.md`).

use serde::{Deserialize, Serialize};
use tare_model::clean::Untrusted;
use tare_model::packed::Task;
use tare_model::sql::{SqlFailure, SqlServer};
use tare_model::units::ByteSize;

/// Changes whenever the same seed and size give other rows, tables, indexes or functions than before: a copy of an older store is
/// none of a newer one.
pub const GENERATION: u32 = 1;

/// Bytes of a gigabyte, as sizes of a store are counted.
const GB: u64 = 1_000_000_000;

/// How many rows a store begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSize {
    /// Customers, numbered from 1: the first half in the US, the second elsewhere.
    pub customers: u64,
    /// Orders of each of the twelve months that are loaded.
    pub orders_per_month: u64,
    /// Products, numbered from 1. Every 10,000th sells ten times as often.
    pub products: u64,
}

impl StoreSize {
    /// The rows of a store of a nominal size, by the published rule, in decimal units.
    ///
    /// Three sizes are given: 10 MB (20,000 customers, 1,000 orders a month, 10,000 products), 1 GB (2 million, 100,000,
    /// 100,000) and 100 GB (200 million, 10 million, 1 million). Sizes below 1 GB are multiples of the first, sizes above 1 GB fractions of the
    /// last. Customers and orders are in proportion to the size all along. Products are not: there are 1,000 a MB below 1 GB
    /// and 10,000 a GB above, so that a store of 999 MB has 999,000, one of 1 GB 100,000 and one of 1.1 GB 11,000. That is how
    /// the original has it, and the published 4 GB are 8 million customers, 400,000 orders a month and
    /// 40,000 products; it is kept. The nominal size is the original's: [`disk_bytes`](Self::disk_bytes) tells what is needed.
    ///
    /// Of everything there is at least one.
    #[must_use]
    pub fn of(db_size: ByteSize) -> Self {
        let bytes = db_size.0;
        let product_bytes = match bytes {
            0..GB => 1_000,
            GB => 10_000,
            _ => 100_000,
        };
        Self {
            customers: (bytes / 500).max(1),
            orders_per_month: (bytes / 10_000).max(1),
            products: (bytes / product_bytes).max(1),
        }
    }

    /// An estimate of what the data directory of a server takes after loading, bytes: an empty cluster, tables and indexes, and the
    /// write-ahead log that loading leaves (as much as the tables, at most the server's default `max_wal_size`).
    ///
    /// Fitted to PostgreSQL 15 with pages of 8 KiB: stores of 10 MB, 100 MB and 1 GB were 79, 338 and 2,505 MiB on
    /// disk, of which 33, 145 and 1,025 were the log; the estimate is 82, 388 and 2,555. What orders add in a run, and a larger
    /// `max_wal_size`, come on top.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        const EMPTY: u64 = 48 << 20;
        let tables = self.table_bytes();
        EMPTY.saturating_add(tables).saturating_add(tables.min(1 << 30))
    }

    /// An estimate of tables and indexes alone, bytes, fitted as [`disk_bytes`](Self::disk_bytes).
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        // A customer, a month's order in each of twelve months with its lines and history, a product with its stock.
        let rows = [(self.customers, 300), (self.orders_per_month, 12 * 775), (self.products, 250)];
        rows.iter().fold(0, |sum: u64, (count, bytes)| sum.saturating_add(count.saturating_mul(*bytes)))
    }
}

/// How statements reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoreStatements {
    /// Each statement of an order by itself, prepared once a connection: one round trip each.
    #[default]
    Prepared,
    /// Functions in the database: one round trip a step (login, browse, purchase).
    Functions,
}

/// A store to be filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreLoad {
    /// The server; its database (and schema) must be there and hold no table of the store's.
    pub server: SqlServer,
    /// Rows.
    pub size: StoreSize,
    /// Seed: the same seed and size give the same rows, on any number of connections.
    pub seed: u64,
    /// Connections that load side by side.
    pub connections: u32,
}

/// What filling a store came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StoreLoaded {
    /// Table, rows, bytes sent for it.
    pub tables: Vec<(String, u64, u64)>,
    /// Seconds until the last row was there. Indexes are made meanwhile, as soon as their rows are there.
    pub rows_s: f64,
    /// Seconds from then on: the other indexes, keys, functions, trigger and statistics.
    pub indexes_s: f64,
}

/// What a store's driver does with each of its clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoreDrive {
    /// The server; `address` is not looked at: the targets of the drive say where.
    pub server: SqlServer,
    /// Rows that the store began with.
    pub size: StoreSize,
    /// How statements reach the server.
    pub statements: StoreStatements,
    /// Probability that an order is a new customer's, from 0 to 1.
    pub new_customers: f64,
    /// Mean of the browses an order: their number is uniform on 1 to twice this less one.
    pub searches: u32,
    /// Mean of the rows a browse: uniform on 1 to twice this less one.
    pub search_batch: u32,
    /// Mean of the lines an order: uniform on 1 to twice this less one, at most 10.
    pub line_items: u32,
    /// Each client starts at a moment uniform on 0 to this, in the warm-up, nanoseconds.
    pub start_jitter_ns: u64,
    /// Then the clients start at this rate, a second; 0: all at once. Jitter and ramp together are compressed into the
    /// warm-up where that is shorter.
    pub ramp_rate_per_s: f64,
    /// Longest wait for a connection, nanoseconds.
    pub connect_timeout_ns: u64,
    /// Failures after which a client gives up. A deadlock that was resolved by trying again is none.
    pub failures_max: u32,
    /// First number of the user names of this driver's new customers. Ranges of drivers of one server must not overlap.
    pub new_user_from: u64,
}

/// What a store's driver committed, over all phases: what the database must hold. Amounts are in cents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoreDone {
    /// Orders whose commit was acknowledged.
    pub orders: u64,
    /// Sum of their numbers.
    pub order_ids: u64,
    /// Sum of their total amounts, cents.
    pub total_cents: u64,
    /// Lines of those orders.
    pub lines: u64,
    /// Quantity over those lines.
    pub quantity: u64,
    /// Customers whose insertion was acknowledged.
    pub new_customers: u64,
    /// Numbers of orders whose commit was sent and never answered: they may or may not be there.
    pub in_doubt: Vec<u64>,
    /// The same of orders whose number nobody learned, because a function in the database makes order and commit at once:
    /// the customer's number and the total amount in cents.
    pub unnumbered: Vec<(u64, u64)>,
    /// Insertions of customers that were sent and never answered.
    pub customers_in_doubt: u64,
    /// Orders of the measured window that were rolled back because stock was short. They count as operations.
    pub rolled_back: u64,
    /// The same over all phases.
    pub rolled_back_total: u64,
    /// Deadlocks (40P01) of all phases after which the purchase was tried again.
    pub deadlock_retries: u64,
    /// Names of new customers that were taken already, all phases, after which another was tried.
    pub name_retries: u64,
    /// Connections that were lost and made again.
    pub reconnects: u64,
    /// Clients that gave up.
    pub gave_up: u32,
    /// Statements answered in the measured window.
    pub statements: u64,
    /// How clients were started, for people, with what was compressed.
    pub ramp: String,
}

impl StoreDone {
    /// Adds what another client or driver did. How clients were started is kept from the first that tells.
    pub fn add(&mut self, other: &Self) {
        self.orders += other.orders;
        self.order_ids += other.order_ids;
        self.total_cents += other.total_cents;
        self.lines += other.lines;
        self.quantity += other.quantity;
        self.new_customers += other.new_customers;
        self.in_doubt.extend_from_slice(&other.in_doubt);
        self.unnumbered.extend_from_slice(&other.unnumbered);
        self.customers_in_doubt += other.customers_in_doubt;
        self.rolled_back += other.rolled_back;
        self.rolled_back_total += other.rolled_back_total;
        self.deadlock_retries += other.deadlock_retries;
        self.name_retries += other.name_retries;
        self.reconnects += other.reconnects;
        self.gave_up += other.gave_up;
        self.statements += other.statements;
        if self.ramp.is_empty() {
            self.ramp.clone_from(&other.ramp);
        }
    }
}

/// What a store holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoreCounts {
    /// Customers.
    pub customers: u64,
    /// Orders, the loaded ones included.
    pub orders: u64,
    /// Highest order number that was loaded or made.
    pub last_order: u64,
    /// Orders beyond `StoreCount::after_order` but those in doubt.
    pub new_orders: u64,
    /// Sum of their numbers.
    pub new_order_ids: u64,
    /// Sum of their total amounts, cents.
    pub new_total_cents: u64,
    /// Lines of those orders.
    pub new_lines: u64,
    /// Quantity over those lines.
    pub new_quantity: u64,
    /// Rows of the customers' history of those orders.
    pub new_history: u64,
    /// Which of the orders in doubt are there, each with its lines, quantity and history rows.
    pub doubtful: Vec<(u64, u64, u64, u64)>,
    /// Sum of the sales over the inventory.
    pub sales: i64,
    /// Sum of the stock over the inventory.
    pub stock: i64,
    /// Rows of reorders.
    pub reorders: u64,
    /// Sum of the quantities that reorders added to stock.
    pub restocked: i64,
    /// Orders without a line, lines without an order, history without an order: none may be there.
    pub orphans: u64,
}

/// A question for [`StoreCounts`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreCount {
    /// The server.
    pub server: SqlServer,
    /// Orders up to this number were there before.
    pub after_order: u64,
    /// Orders in doubt, counted by themselves.
    pub in_doubt: Vec<u64>,
    /// Longest that it may take, nanoseconds.
    pub timeout_ns: u64,
}

impl Task for StoreDrive {
    const KIND: &'static str = "store";
    type Outcome = StoreDone;
}

impl Task for StoreLoad {
    const KIND: &'static str = "fill the store";
    type Outcome = Result<StoreLoaded, SqlFailure>;
}

impl Task for StoreCount {
    const KIND: &'static str = "count what is in the store";
    type Outcome = Result<StoreCounts, SqlFailure>;
}

/// Orders in doubt that are taken: each client of a store may lose some connections.
const MOST_DOUBTS: usize = 100_000;

impl Untrusted for StoreDone {
    fn clean(&mut self) {
        self.in_doubt.truncate(MOST_DOUBTS);
        self.unnumbered.truncate(MOST_DOUBTS);
        self.ramp.clean();
    }
}

impl Untrusted for StoreLoaded {
    fn clean(&mut self) {
        self.tables.clean();
    }
}

impl Untrusted for StoreCounts {
    fn clean(&mut self) {
        self.doubtful.truncate(MOST_DOUBTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> [u64; 3] {
        let size = StoreSize::of(text.parse().unwrap());
        [size.customers, size.orders_per_month, size.products]
    }

    #[test]
    fn the_three_published_sizes_are_as_published() {
        assert_eq!(size("10MB"), [20_000, 1_000, 10_000]);
        assert_eq!(size("1GB"), [2_000_000, 100_000, 100_000]);
        assert_eq!(size("100GB"), [200_000_000, 10_000_000, 1_000_000]);
    }

    #[test]
    fn the_disk_is_estimated_within_a_sixth_of_what_was_seen() {
        for (text, mib) in [("10MB", 79.0), ("100MB", 338.0), ("1GB", 2_505.0)] {
            let estimate = StoreSize::of(text.parse().unwrap()).disk_bytes() as f64 / f64::from(1 << 20);
            assert!(estimate >= mib && estimate < mib * 7.0 / 6.0, "{text}: {estimate}");
        }
    }

    #[test]
    fn megabytes_scale_from_the_smallest_and_gigabytes_from_the_largest() {
        assert_eq!(size("50MB"), [100_000, 5_000, 50_000]);
        assert_eq!(size("999MB"), [1_998_000, 99_900, 999_000]);
        assert_eq!(size("1000MB"), size("1GB"));
        assert_eq!(size("2GB"), [4_000_000, 200_000, 20_000]);
        assert_eq!(size("4GB"), [8_000_000, 400_000, 40_000], "the size of the published study");
        assert_eq!(size("1B"), [1, 1, 1]);
    }
}
