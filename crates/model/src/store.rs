//! The store of the order-entry workload: its size, what drives it, and what was done in it.
//!
//! Modelled on the order flow of an online store as published in 2011 (`docs/method.md`).

use serde::{Deserialize, Serialize};

use crate::sql::SqlServer;

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
    /// Seconds for the rows.
    pub rows_s: f64,
    /// Seconds for indexes, keys, functions, trigger and statistics.
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
