//! Filling a store: tables and rows side by side over several connections, then all that rests on them.
//!
//! A table that one connection can fill is made (or emptied), filled and committed in one transaction, so that its rows are written
//! frozen (`COPY ... FREEZE`): nobody has to visit them again. A table larger than a connection's share is cut into chunks.
//! Indexes come after the rows. A superuser loads lines and history with their foreign keys in place and unchecked, and the
//! keys are then held against all rows at once; for others the server validates them.
//!
//! The last transaction makes functions and trigger, has the numbers go on behind the loaded rows, and writes a
//! mark onto the store: a store without it is not whole, and [`count`](super::count()) refuses it. What was made is dropped
//! again when the load fails or is cancelled; a load that was killed leaves tables without the mark. The mark also says up to which
//! page the history is full, where one connection loaded it: the history of new orders lies behind, and is counted there.

mod jobs;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::store::spec::{GENERATION, StoreLoad, StoreLoaded, StoreSize};
use tare_model::sql::SqlFailure;

use self::jobs::Chunk;
use super::data::{Source, Table};
use super::schema::{self, FOREIGN_KEYS, ForeignKey, TABLES};
use crate::fill::crew::{Crew, cancelled, failed_at};
use crate::fill::rows::{self, Batch};
use crate::fill::server::{self, SETTINGS, ask};
use crate::fill::work;
use crate::pg::Connection;

/// Highest number of a row: `integer` in the database, with room for ten times what a long run adds.
const NUMBER_MAX: u64 = 2_000_000_000;
/// Has the server take rows in this transaction without holding each against the foreign keys. No trigger of a store is fired
/// by an insertion.
const UNCHECKED: &str = "SET LOCAL session_replication_role = replica";

/// What begins the mark of a store that is whole.
pub const MARK: &str = "tare store";
/// In the mark, before the number of the page of `cust_hist` that holds the last loaded row. All before it are full.
pub const HISTORY_TO_PAGE: &str = ", history to page ";
/// Pages at the end of a table among which its last row is looked for, in turn. Servers make room for up to 64 at once (512 before
/// version 16), of which the last may stay empty; as a rule none does.
const LAST_PAGES: [u64; 3] = [2, 65, 1_024];

/// Makes the tables, fills them and makes all that rests on them.
///
/// # Errors
/// Why the server did not do what it was asked, with its SQLSTATE and the table: too old, tables of a store there
/// already, another load at work, a store too large for numbers of 32 bits, cancelled.
pub fn load(load: &StoreLoad, cancel: &AtomicBool) -> Result<StoreLoaded, SqlFailure> {
    check_size(&load.size)?;
    server::guarded(&load.server, "store", &TABLES, |keeper| fill(keeper, load, cancel))
}

fn check_size(size: &StoreSize) -> Result<(), SqlFailure> {
    let highest = size.customers.max(size.orders_per_month.saturating_mul(12)).max(size.products);
    let lowest = size.customers.min(size.orders_per_month).min(size.products);
    let refuse = |why: String| Err(SqlFailure { sqlstate: None, message: why });
    if highest > NUMBER_MAX {
        return refuse(format!(
            "the store is too large: {highest} rows of a table, at most {NUMBER_MAX} can be numbered"
        ));
    }
    if lowest == 0 {
        return refuse("the store is too small: it needs a customer, an order a month and a product".to_owned());
    }
    Ok(())
}

fn fill(keeper: &mut Connection, load: &StoreLoad, cancel: &AtomicBool) -> Result<StoreLoaded, SqlFailure> {
    let began = Instant::now();
    let mut crew = Crew::new(&load.server, load.connections, SETTINGS)?;
    let unchecked = may_load_unchecked(keeper)?;
    let plan = jobs::plan(&load.size, u64::from(load.connections.max(1)), unchecked);
    for table in plan.tables {
        keeper.simple(schema::create_table(table).unwrap_or_default()).map_err(failed_at(table))?;
    }
    let source = Source::new(load.seed, load.size);
    let done = work::run(&mut crew, &plan.jobs, &Table::ALL, (began, cancel), |connection, chunk, stop| {
        send(connection, &source, chunk, unchecked, stop)
    })?;
    if cancel.load(Ordering::SeqCst) {
        return Err(cancelled());
    }
    if unchecked {
        check_keys(keeper, &load.size)?;
    }
    let history = if plan.history_in_order { last_page(keeper, "cust_hist")? } else { None };
    finish(keeper, load, history)?;
    let indexes = began.elapsed().saturating_sub(done.rows);
    let tables = done.tables.into_iter().map(|(table, rows, bytes)| (table.name().to_owned(), rows, bytes)).collect();
    Ok(StoreLoaded { tables, rows_s: done.rows.as_secs_f64(), indexes_s: indexes.as_secs_f64() })
}

/// Whether rows can be loaded without the server's holding each against the foreign keys, which is a superuser's to ask for.
fn may_load_unchecked(keeper: &mut Connection) -> Result<bool, SqlFailure> {
    keeper.simple("BEGIN")?;
    let said = keeper.simple(UNCHECKED);
    keeper.simple("ROLLBACK")?;
    match said {
        Ok(_) => Ok(true),
        Err(error) if error.broken => Err(error.into()),
        Err(_) => Ok(false),
    }
}

/// Holds rows that were loaded unchecked against the foreign keys, all at once: the keys that are referred to are 1 to the number of
/// their rows, each of them once, so a reference is good exactly if it is neither below nor above.
fn check_keys(keeper: &mut Connection, size: &StoreSize) -> Result<(), SqlFailure> {
    for ForeignKey { name, table, column, to, .. } in &FOREIGN_KEYS {
        let rows = Table::ALL.into_iter().find(|t| t.name() == *to).map_or(0, |t| t.numbers(size));
        let holds = ask(
            keeper,
            &format!(
                "SELECT (SELECT min({column}) FROM {table}) >= 1 AND (SELECT max({column}) FROM {table}) <= {rows} AND \
                 (SELECT min({column}) FROM {to}) = 1 AND (SELECT max({column}) FROM {to}) = {rows}"
            ),
        )?;
        if holds != "t" {
            let message = format!("table {table}: rows do not keep to the foreign key {name}");
            return Err(SqlFailure { sqlstate: Some("23503".to_owned()), message });
        }
    }
    Ok(())
}

/// Loads a chunk in a transaction of its own. Returns rows and bytes.
fn send(
    connection: &mut Connection,
    source: &Source,
    chunk: &Chunk,
    unchecked: bool,
    stop: &AtomicBool,
) -> Result<(u64, u64), SqlFailure> {
    let table = chunk.table.name();
    let keyed = unchecked && jobs::is_late(table);
    let mut before: Vec<String> = keyed.then(|| UNCHECKED.to_owned()).into_iter().collect();
    match (chunk.whole, keyed) {
        (true, false) => before.extend(schema::create_table(table).map(str::to_owned)),
        // As good as made in this transaction.
        (true, true) => before.push(format!("TRUNCATE {table}")),
        // Rows of a commit that is not on disk yet cannot be marked visible to all.
        (false, _) => before.push("SET LOCAL synchronous_commit = on".to_owned()),
    }
    let batch = Batch { table, before, frozen: chunk.whole };
    rows::send(connection, &batch, chunk.from..=chunk.to, stop, |number, out| source.write(chunk.table, number, out))
}

/// The page that holds the last row of a table; `None` where it is not found.
fn last_page(keeper: &mut Connection, table: &str) -> Result<Option<u64>, SqlFailure> {
    let pages = ask(keeper, &format!("SELECT pg_relation_size('{table}') / current_setting('block_size')::bigint"))?;
    let pages = pages.parse::<u64>().unwrap_or(0);
    for among in LAST_PAGES {
        let from = pages.saturating_sub(among);
        // Servers before version 14 know no max(ctid); so few rows are sorted at once.
        let last = format!("SELECT ctid FROM {table} WHERE ctid >= '({from},0)' ORDER BY ctid DESC LIMIT 1");
        let last = ask(keeper, &last)?;
        if let Some(page) = last.trim_start_matches('(').split(',').next().and_then(|page| page.parse().ok()) {
            return Ok(Some(page));
        }
    }
    Ok(None)
}

/// The last transaction: what makes the store one that is whole. Its commit waits for the disk.
fn finish(keeper: &mut Connection, load: &StoreLoad, history: Option<u64>) -> Result<(), SqlFailure> {
    let StoreSize { customers, orders_per_month, products } = load.size;
    let mut statements = vec!["BEGIN".to_owned(), "SET LOCAL synchronous_commit = on".to_owned()];
    statements.extend(schema::functions::CREATE.map(str::to_owned));
    statements.extend(schema::continue_after(customers, 12 * orders_per_month));
    let history = history.map(|page| format!("{HISTORY_TO_PAGE}{page}")).unwrap_or_default();
    statements.push(format!(
        "COMMENT ON TABLE orders IS '{MARK} {GENERATION}: seed {}, {customers} customers, {orders_per_month} orders a \
         month, {products} products{history}'",
        load.seed
    ));
    statements.push("COMMIT".to_owned());
    for sql in &statements {
        keeper.simple(sql).map_err(failed_at(&format!("functions and trigger: `{}`", sql.trim())))?;
    }
    Ok(())
}
