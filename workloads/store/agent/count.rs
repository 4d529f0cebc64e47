//! Counting what is in a store: the database is asked, at one moment.
//!
//! What is new is found by the orders' numbers, which begin behind those that were there before. The rows of new orders are
//! held against each other; those that were loaded were held against the foreign keys when they were.

use std::time::{Duration, Instant};

use crate::store::spec::{StoreCount, StoreCounts};
use tare_model::sql::SqlFailure;

use super::load::{HISTORY_TO_PAGE, MARK};
use crate::pg::Connection;

/// Counts what is in a store, in one transaction that sees one moment.
///
/// # Errors
/// Why the server did not do what it was asked, with its SQLSTATE; that there is no store, or one whose filling was cut short;
/// that it took longer than it may.
pub fn count(count: &StoreCount) -> Result<StoreCounts, SqlFailure> {
    let timeout = Duration::from_nanos(count.timeout_ns);
    let began = Instant::now();
    let mut connection = Connection::connect(&count.server, timeout)?;
    let left = timeout.saturating_sub(began.elapsed());
    // The server gives up by itself, a little before it is given up: then it says so.
    connection.bound(Some(left + Duration::from_secs(1)))?;
    counts(&mut connection, count, left).map_err(|mut failure| {
        failure.message = format!("cannot count the store in {}: {}", count.server, failure.message);
        failure
    })
}

fn counts(connection: &mut Connection, count: &StoreCount, left: Duration) -> Result<StoreCounts, SqlFailure> {
    connection.simple("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    connection.simple(&format!("SET LOCAL statement_timeout = {}", left.as_millis().max(1)))?;
    let loaded_to = check_whole(connection)?;
    let after = count.after_order.min(i32::MAX as u64);
    // Numbers that no order can have are none of an order that is there.
    let numbers = count.in_doubt.iter().filter(|n| **n <= i32::MAX as u64);
    let doubt = format!("'{{{}}}'::integer[]", numbers.map(u64::to_string).collect::<Vec<_>>().join(","));

    let [customers] = one(connection, "SELECT count(*) FROM customers")?;
    let [orders, last_order] = one(connection, "SELECT count(*), coalesce(max(order_id), 0) FROM orders")?;
    let [new_orders, new_order_ids, new_total_cents, without_line] = one(connection, &new_orders_sql(after, &doubt))?;
    let [new_lines, new_quantity, lines_alone] = one(connection, &new_lines_sql(after, &doubt))?;
    let history_from = |connection: &mut Connection, page| one(connection, &new_history_sql(after, &doubt, page));
    let [mut new_history, mut history_alone] = history_from(connection, loaded_to)?;
    if loaded_to > 0 && new_history != new_lines {
        // Something is missing, or has come to lie among the loaded rows: all of them tell which.
        [new_history, history_alone] = history_from(connection, 0)?;
    }
    let [sales, stock] =
        one(connection, "SELECT coalesce(sum(sales), 0), coalesce(sum(quan_in_stock), 0) FROM inventory")?;
    let [reorders] = one(connection, "SELECT count(*) FROM reorder")?;
    let [restocked] = one(connection, "SELECT coalesce(sum(quan_reordered), 0) FROM reorder")?;
    let doubtful = rows(connection, &doubtful_sql(&doubt))?;
    connection.simple("COMMIT")?;
    Ok(StoreCounts {
        customers,
        orders,
        last_order,
        new_orders,
        new_order_ids,
        new_total_cents,
        new_lines,
        new_quantity,
        new_history,
        doubtful: doubtful
            .into_iter()
            .map(|[order, lines, quantity, history]| (order, lines, quantity, history))
            .collect(),
        sales,
        stock,
        reorders,
        restocked,
        orphans: without_line + lines_alone + history_alone,
    })
}

/// The new orders, and which of them have no line.
fn new_orders_sql(after: u64, doubt: &str) -> String {
    format!(
        "SELECT count(*) FILTER (WHERE known), coalesce(sum(order_id) FILTER (WHERE known), 0), \
         coalesce((sum(total_amount) FILTER (WHERE known) * 100)::bigint, 0), count(*) FILTER (WHERE alone) \
         FROM (SELECT order_id, total_amount, order_id <> ALL ({doubt}) AS known, NOT EXISTS \
         (SELECT FROM orderlines l WHERE l.order_id = o.order_id) AS alone FROM orders o WHERE order_id > {after}) o"
    )
}

/// The lines of new orders, and which of them have no order.
fn new_lines_sql(after: u64, doubt: &str) -> String {
    format!(
        "SELECT count(*) FILTER (WHERE l.order_id <> ALL ({doubt})), \
         coalesce(sum(quantity) FILTER (WHERE l.order_id <> ALL ({doubt})), 0), count(*) FILTER (WHERE o.order_id IS NULL) \
         FROM orderlines l LEFT JOIN orders o ON o.order_id = l.order_id WHERE l.order_id > {after}"
    )
}

/// The history of new orders, and which of it has no order, or one of another customer. No index knows the history by order: the table is read from the page
/// on that holds the last loaded row, since pages before that one are full.
fn new_history_sql(after: u64, doubt: &str, from_page: u64) -> String {
    format!(
        "SELECT count(*) FILTER (WHERE h.order_id <> ALL ({doubt})), count(*) FILTER \
         (WHERE o.order_id IS NULL OR o.customer_id <> h.customer_id) \
         FROM cust_hist h LEFT JOIN orders o ON o.order_id = h.order_id WHERE h.order_id > {after} \
         AND h.ctid >= '({from_page},0)'"
    )
}

/// The orders in doubt that are there.
fn doubtful_sql(doubt: &str) -> String {
    format!(
        "SELECT order_id, (SELECT count(*) FROM orderlines l WHERE l.order_id = o.order_id), \
         (SELECT coalesce(sum(quantity), 0) FROM orderlines l WHERE l.order_id = o.order_id), \
         (SELECT count(*) FROM cust_hist h WHERE h.customer_id = o.customer_id AND h.order_id = o.order_id) \
         FROM orders o WHERE order_id = ANY ({doubt}) ORDER BY order_id"
    )
}

/// Refuses what is no store, or not a whole one. Returns the page up to which the history was loaded; 0 where that is not known.
fn check_whole(connection: &mut Connection) -> Result<u64, SqlFailure> {
    let said = connection.simple("SELECT obj_description(to_regclass('orders'), 'pg_class')")?;
    let mark = said.first().and_then(|r| r.rows.first()?.first()?.clone());
    if let Some(mark) = mark.filter(|mark| mark.starts_with(MARK)) {
        let page = mark.split_once(HISTORY_TO_PAGE).and_then(|(_, page)| page.parse().ok());
        return Ok(page.unwrap_or(0));
    }
    let message = "there is no whole store: its tables are missing, or filling them was cut short; drop what is there and fill it anew";
    Err(SqlFailure { sqlstate: None, message: message.to_owned() })
}

/// The numbers of the only row.
fn one<T: std::str::FromStr, const N: usize>(connection: &mut Connection, sql: &str) -> Result<[T; N], SqlFailure> {
    let mut rows = rows(connection, sql)?;
    rows.pop().ok_or_else(|| unlike(sql))
}

/// Rows of numbers.
fn rows<T: std::str::FromStr, const N: usize>(
    connection: &mut Connection,
    sql: &str,
) -> Result<Vec<[T; N]>, SqlFailure> {
    let said = connection.simple(sql)?;
    let read = |row: &Vec<Option<String>>| {
        let numbers: Option<Vec<T>> = row.iter().map(|v| v.as_ref()?.parse().ok()).collect();
        numbers.and_then(|n| n.try_into().ok()).ok_or_else(|| unlike(sql))
    };
    said.iter().flat_map(|result| &result.rows).map(read).collect()
}

fn unlike(sql: &str) -> SqlFailure {
    SqlFailure { sqlstate: None, message: format!("the server answered otherwise than with numbers: `{sql}`") }
}
