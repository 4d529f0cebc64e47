//! The store in a real server: filled, counted, searched, bought from.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::postgres::{self, Postgres};
use tare_driver::pg::Connection;
use tare_driver::store;
use tare_driver::store::data::Source;
use tare_driver::store::schema::{FOREIGN_KEYS, INDEXES, TABLES, functions, statements};
use tare_driver::store::spec::{StoreCount, StoreCounts, StoreLoad, StoreLoaded, StoreSize};
use tare_model::ByteSize;
use tare_model::sql::{SqlFailure, SqlRows, SqlServer};

const SEED: u64 = 4;

fn server(postgres: &Postgres, database: &str) -> SqlServer {
    SqlServer::of(postgres.address(), postgres::USER, database)
}

fn fill(server: &SqlServer, size: StoreSize, connections: u32) -> Result<StoreLoaded, SqlFailure> {
    let load = StoreLoad { server: server.clone(), size, seed: SEED, connections };
    store::load(&load, &AtomicBool::new(false))
}

fn small() -> StoreSize {
    StoreSize::of(ByteSize(1_000_000))
}

fn connect(server: &SqlServer) -> Connection {
    Connection::connect(server, Duration::from_secs(10)).unwrap()
}

fn query(connection: &mut Connection, sql: &str) -> SqlRows {
    connection.simple(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).pop().unwrap()
}

fn value(connection: &mut Connection, sql: &str) -> String {
    query(connection, sql).rows[0][0].clone().unwrap_or_default()
}

fn count(server: &SqlServer, after_order: u64, in_doubt: &[u64]) -> StoreCounts {
    let question =
        StoreCount { server: server.clone(), after_order, in_doubt: in_doubt.to_vec(), timeout_ns: 30_000_000_000 };
    store::count(&question).unwrap()
}

/// A statement with its parameters in it, as literals of no type, which the server takes as it takes a driver's.
fn with(sql: &str, parameters: &[&str]) -> String {
    let mut sql = sql.to_owned();
    for (n, parameter) in parameters.iter().enumerate().rev() {
        sql = sql.replace(&format!("${}", n + 1), &format!("'{parameter}'"));
    }
    sql
}

fn fingerprint(connection: &mut Connection) -> Vec<String> {
    let hash =
        |table: &str| format!("SELECT sum(('x' || substr(md5(t::text), 1, 15))::bit(60)::bigint)::text FROM {table} t");
    TABLES.iter().filter(|t| **t != "reorder").map(|table| value(connection, &hash(table))).collect()
}

#[test]
fn a_filled_store_is_whole_and_the_same_on_any_number_of_connections() {
    let Some(postgres) = postgres::start(&["autovacuum=off"]) else { return };
    let one = server(&postgres, "store");
    let size = StoreSize::of(ByteSize(10_000_000));
    let loaded = fill(&one, size, 2).unwrap();
    let mut connection = connect(&one);
    let source = Source::new(SEED, size);
    let lines: u64 = (1..=12_000).map(|n| source.order(n).lines).sum();
    let expected = [
        ("categories", 16),
        ("products", 10_000),
        ("inventory", 10_000),
        ("customers", 20_000),
        ("orders", 12_000),
        ("orderlines", lines),
        ("cust_hist", lines),
    ];
    for ((table, rows), (name, loaded_rows, bytes)) in expected.iter().zip(&loaded.tables) {
        assert_eq!((*table, *rows), (name.as_str(), *loaded_rows));
        assert!(*bytes > *rows, "{table}");
        assert_eq!(value(&mut connection, &format!("SELECT count(*) FROM {table}")), rows.to_string());
    }
    assert_eq!(value(&mut connection, "SELECT count(*) FROM reorder"), "0");
    let stock: u64 = (1..=10_000).map(|n| source.stock(n)).sum();
    let counts = count(&one, 12_000, &[]);
    let untouched = StoreCounts {
        customers: 20_000,
        orders: 12_000,
        last_order: 12_000,
        stock: stock as i64,
        ..StoreCounts::default()
    };
    assert_eq!(counts, untouched);
    // Sums as the server sees them: what was sent in binary is what was meant.
    let totals: u64 = (1..=12_000).map(|n| source.order(n)).map(|o| o.net_cents + o.tax_cents).sum();
    assert_eq!(value(&mut connection, "SELECT (sum(total_amount) * 100)::bigint FROM orders"), totals.to_string());
    assert_eq!(value(&mut connection, "SELECT count(*) FROM orders WHERE tax <> round(net_amount * 0.0825, 2)"), "0");
    assert_eq!(value(&mut connection, "SELECT count(*) FROM orders WHERE total_amount <> net_amount + tax"), "0");
    assert_eq!(value(&mut connection, "SELECT min(price) || ' ' || max(price) FROM products"), "9.99 29.99");
    let dates = "SELECT min(order_date) || ' ' || max(order_date) FROM orders";
    assert_eq!(value(&mut connection, dates), "2025-01-01 2025-12-31");
    assert_whole(&mut connection);

    // The tables are cut into chunks for as many.
    connection.simple("CREATE SCHEMA second").unwrap();
    let second = SqlServer { schema: Some("second".to_owned()), ..one };
    fill(&second, size, 5).unwrap();
    let mut other = connect(&second);
    assert_whole(&mut other);
    assert_eq!(fingerprint(&mut connection), fingerprint(&mut other));
    // For one who may not have foreign keys unchecked, the server validates them.
    connection.simple("CREATE ROLE plain LOGIN; CREATE SCHEMA third AUTHORIZATION plain").unwrap();
    let third = SqlServer { schema: Some("third".to_owned()), user: "plain".to_owned(), ..second.clone() };
    fill(&third, size, 2).unwrap();
    let mut other = connect(&third);
    assert_whole(&mut other);
    assert_eq!(fingerprint(&mut connection), fingerprint(&mut other));
    let differ = "SELECT count(*) FROM public.customers p JOIN second.customers s USING (customer_id) WHERE p <> s";
    assert_eq!(value(&mut connection, differ), "0");
}

/// New history is found behind the loaded rows without these being read, where the mark says where they end.
#[test]
fn new_history_is_counted_from_where_the_loaded_ends() {
    let Some(postgres) = postgres::start(&["autovacuum=off"]) else { return };
    let server = server(&postgres, "store");
    fill(&server, StoreSize::of(ByteSize(10_000_000)), 2).unwrap();
    let mut connection = connect(&server);
    let mark = value(&mut connection, "SELECT obj_description('orders'::regclass, 'pg_class')");
    let page: u64 = mark.split_once(", history to page ").unwrap().1.parse().unwrap();
    let last = "SELECT max(split_part(trim('(' from ctid::text), ',', 1)::bigint) FROM cust_hist";
    assert_eq!(value(&mut connection, last), page.to_string());
    assert!(page > 100, "{page}");
    let order = "INSERT INTO orders SELECT n, current_date, 1 + n % 9, 1, 0.08, 1.08 FROM generate_series(20001, 22000) n; \
         INSERT INTO orderlines SELECT n, l, 1, 1, current_date FROM generate_series(20001, 22000) n, generate_series(1, 3) l; \
         INSERT INTO cust_hist SELECT 1 + n % 9, n, 1 FROM generate_series(20001, 22000) n, generate_series(1, 3) l";
    connection.simple(order).unwrap();
    let early = format!("SELECT count(*) FROM cust_hist WHERE order_id > 20000 AND ctid < '({page},0)'");
    assert_eq!(value(&mut connection, &early), "0");
    let counts = count(&server, 12_000, &[]);
    assert_eq!((counts.new_orders, counts.new_lines, counts.new_history, counts.orphans), (2_000, 6_000, 6_000, 0));
    // A mark that says too much loses nothing.
    let wrong = mark.replace(&format!("page {page}"), "page 4000000");
    connection.simple(&format!("COMMENT ON TABLE orders IS '{wrong}'")).unwrap();
    assert_eq!(count(&server, 12_000, &[]), counts);
}

/// All indexes, keys, routines and the trigger are there and valid; rows are frozen and counted.
fn assert_whole(connection: &mut Connection) {
    let here = "current_schema()::regnamespace";
    let names = |connection: &mut Connection, sql: &str| -> BTreeSet<String> {
        query(connection, sql).rows.into_iter().filter_map(|mut row| row.remove(0)).collect()
    };
    let sql = format!(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = indexrelid WHERE indisvalid AND relnamespace = {here}"
    );
    assert_eq!(names(connection, &sql), INDEXES.iter().map(|i| i.name.to_owned()).collect());
    let sql =
        format!("SELECT conname FROM pg_constraint WHERE contype = 'f' AND convalidated AND connamespace = {here}");
    assert_eq!(names(connection, &sql), FOREIGN_KEYS.iter().map(|k| k.name.to_owned()).collect());
    let sql = format!("SELECT count(*) FROM pg_proc WHERE pronamespace = {here} AND proname LIKE 'store\\_%'");
    assert_eq!(value(connection, &sql), "7");
    let sql = "SELECT tgenabled FROM pg_trigger WHERE tgname = 'store_reorder' AND tgrelid = 'inventory'::regclass";
    assert_eq!(value(connection, sql), "O");
    let sql = format!("SELECT reloptions::text FROM pg_class WHERE relname = 'inventory' AND relnamespace = {here}");
    assert_eq!(value(connection, &sql), "{fillfactor=85}");
    for table in TABLES.iter().filter(|table| **table != "reorder") {
        // Of pages that hold rows, since several who load at once make some that nobody comes to use. One at which somebody else is
        // when it is visited, such as the writer of pages, is left out.
        let pages = format!("SELECT count(DISTINCT split_part(ctid::text, ',', 1)) FROM {table}");
        let known = format!("SELECT relallvisible, reltuples > 0 FROM pg_class WHERE oid = '{table}'::regclass");
        let pages: u64 = value(connection, &pages).parse().unwrap();
        let known = query(connection, &known).rows.remove(0);
        let visible: u64 = known[0].as_ref().unwrap().parse().unwrap();
        assert!(10 * visible + 30 >= 9 * pages, "{table}: of {pages} pages {visible} are known to be visible to all");
        assert_eq!(known[1].as_deref(), Some("t"), "{table}");
    }
}

#[test]
fn every_browse_and_login_uses_its_index() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres, "store");
    fill(&server, StoreSize::of(ByteSize(10_000_000)), 2).unwrap();
    let mut connection = connect(&server);
    let actor = value(&mut connection, "SELECT actor FROM products WHERE prod_id = 77");
    let title = value(&mut connection, "SELECT split_part(title, ' ', 2) FROM products WHERE prod_id = 77");
    let cases: [(&str, &[&str], &str, &str); 7] = [
        (statements::BROWSE_BY_CATEGORY, &["integer", "integer"], "3, 5", "_special"),
        (statements::BROWSE_BY_ACTOR, &["text", "integer"], &format!("'{actor}', 5"), "products_actor"),
        (statements::BROWSE_BY_TITLE, &["text", "integer"], &format!("'{title}', 5"), "products_title"),
        (statements::LOGIN, &["text", "text"], "'user5', 'password'", "customers_"),
        (statements::PREVIOUS, &["integer"], "5", "cust_hist_customer"),
        (statements::READ_PRICE, &["integer"], "5", "products_pkey"),
        (statements::TAKE_STOCK, &["integer", "integer"], "5, 1", "inventory_pkey"),
    ];
    // The server may take the index of special products or that of category and special: it judges which is cheaper.
    for mode in ["force_generic_plan", "force_custom_plan"] {
        connection.simple(&format!("SET plan_cache_mode = {mode}")).unwrap();
        for (n, (sql, types, values, index)) in cases.iter().enumerate() {
            let name = format!("{mode}_{n}");
            connection.simple(&format!("PREPARE {name} ({}) AS {sql}", types.join(", "))).unwrap();
            let plan = query(&mut connection, &format!("EXPLAIN EXECUTE {name}({values})"));
            let plan: Vec<String> = plan.rows.into_iter().filter_map(|mut row| row.remove(0)).collect();
            assert!(plan.iter().any(|line| line.contains(index)), "{mode}: {sql}: {plan:#?}");
            assert!(!plan.iter().any(|line| line.contains("Seq Scan")), "{mode}: {sql}: {plan:#?}");
            let found = query(&mut connection, &format!("EXECUTE {name}({values})"));
            let is_browse = sql.contains("LIMIT $2");
            assert!(!is_browse || (1..=5).contains(&found.rows.len()), "{sql}: {}", found.rows.len());
        }
    }
    // Titles are looked for among the titles, and actors among the actors.
    let found = query(&mut connection, &with(statements::BROWSE_BY_TITLE, &[&title, "1000"]));
    let expected = format!("SELECT count(*) FROM products WHERE title ~ '\\m{title}\\M'");
    assert_eq!(found.rows.len().to_string(), value(&mut connection, &expected));
}

#[test]
fn short_stock_is_refused_and_low_stock_reordered() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres, "store");
    let size = StoreSize { products: 20_000, ..small() };
    fill(&server, size, 1).unwrap();
    let mut connection = connect(&server);
    let stock = |connection: &mut Connection, product: u64| {
        let row = query(connection, &format!("SELECT quan_in_stock, sales FROM inventory WHERE prod_id = {product}"));
        row.rows[0].iter().map(|v| v.as_ref().unwrap().parse::<i64>().unwrap()).collect::<Vec<_>>()
    };
    let before = count(&server, 1_200, &[]);
    connection.simple("UPDATE inventory SET quan_in_stock = 5 WHERE prod_id IN (7, 10000)").unwrap();
    let set = count(&server, 1_200, &[]);
    for product in [7_u64, 10_000] {
        let take = |quantity: &str| with(statements::TAKE_STOCK, &[&product.to_string(), quantity]);
        assert_eq!(query(&mut connection, &take("6")).tag, "UPDATE 0", "there are 5");
        assert_eq!(query(&mut connection, &take("2")).tag, "UPDATE 1");
        assert_eq!(stock(&mut connection, product), [3, 2], "three is not low");
        assert_eq!(query(&mut connection, &take("1")).tag, "UPDATE 1");
        let full = if product == 7 { 250 } else { 2_500 };
        assert_eq!(stock(&mut connection, product), [full, 3]);
        let sql = format!(
            "SELECT quan_low, quan_reordered, date_expected - date_reordered FROM reorder WHERE prod_id = {product}"
        );
        let row = query(&mut connection, &sql).rows.remove(0);
        assert_eq!(row, [Some("2".to_owned()), Some((full - 2).to_string()), Some("7".to_owned())]);
    }
    let after = count(&server, 1_200, &[]);
    assert_eq!((before.sales, before.reorders, after.reorders), (0, 0, 2));
    assert_eq!(after.stock, set.stock - after.sales + after.restocked);
    assert_eq!((after.sales, after.restocked), (6, 248 + 2_498));
}

fn logins_and_browses_agree(connection: &mut Connection, other: &mut Connection) {
    for user in ["user1", "user17", "user1999", "nobody"] {
        let id = query(connection, &with(statements::LOGIN, &[user, "password"])).rows;
        let logged = query(other, &with(functions::CALL_LOGIN, &[user, "password"])).rows;
        let Some(id) = id.first().and_then(|row| row[0].clone()) else {
            assert!(logged.is_empty() && user == "nobody", "{logged:?}");
            continue;
        };
        assert!(logged.iter().all(|row| row[0].as_ref() == Some(&id)));
        let previous = query(connection, &with(statements::PREVIOUS, &[&id])).rows;
        let shown: Vec<_> = logged.iter().map(|row| row[1..].to_vec()).filter(|row| row[0].is_some()).collect();
        assert_eq!(previous, shown);
        assert!(previous.len() <= 10 && previous.iter().all(|row| row[2].is_some()));
    }
    let wrong = query(other, &with(functions::CALL_LOGIN, &["user1", "wrong"]));
    assert!(wrong.rows.is_empty());
    for (statement, function, wanted) in [
        (statements::BROWSE_BY_CATEGORY, functions::CALL_BROWSE_BY_CATEGORY, "5"),
        (statements::BROWSE_BY_ACTOR, functions::CALL_BROWSE_BY_ACTOR, "mary"),
        (statements::BROWSE_BY_TITLE, functions::CALL_BROWSE_BY_TITLE, "River"),
    ] {
        for most in ["1", "9"] {
            let rows = query(connection, &with(statement, &[wanted, most]));
            assert_eq!(rows, query(other, &with(function, &[wanted, most])), "{statement}");
            assert!(rows.rows.len() <= most.parse().unwrap());
        }
    }
}

/// The same steps by statements and by functions, each in a store of its own.
#[test]
#[expect(clippy::too_many_lines, reason = "one store is filled for all that is asked of it")]
fn functions_do_what_the_statements_do() {
    let Some(postgres) = postgres::start(&["log_min_messages=warning"]) else { return };
    let one = server(&postgres, "store");
    let mut connection = connect(&one);
    connection.simple("CREATE SCHEMA functions").unwrap();
    let two = SqlServer { schema: Some("functions".to_owned()), ..one.clone() };
    fill(&one, small(), 1).unwrap();
    fill(&two, small(), 2).unwrap();
    let mut other = connect(&two);
    logins_and_browses_agree(&mut connection, &mut other);
    let person: [&str; 19] = [
        "A",
        "B",
        "1 C",
        "",
        "D",
        "TX",
        "75001",
        "US",
        "1",
        "e@mail.example",
        "555",
        "3",
        "4444",
        "2030/01",
        "newuser1",
        "password",
        "30",
        "40000",
        "F",
    ];
    let first = query(&mut connection, &with(statements::NEW_CUSTOMER, &person)).rows;
    assert_eq!(first, [[Some("2001".to_owned())]], "numbers go on behind the loaded ones");
    assert_eq!(query(&mut other, &with(functions::CALL_NEW_CUSTOMER, &person)).rows, first);
    assert!(query(&mut connection, &with(statements::NEW_CUSTOMER, &person)).rows.is_empty(), "taken");
    assert_eq!(query(&mut other, &with(functions::CALL_NEW_CUSTOMER, &person)).rows, [[Some("0".to_owned())]]);

    for connection in [&mut connection, &mut other] {
        connection.simple("UPDATE inventory SET quan_in_stock = 5 WHERE prod_id IN (3, 4, 5)").unwrap();
    }
    let cart: [(&str, &str); 3] = [("4", "3"), ("3", "1"), ("5", "2")];
    let call = |products: &str, quantities: &str| {
        with(functions::CALL_PURCHASE, &["12", products, quantities, "10.00", "0.83", "10.83"])
    };
    let bought = query(&mut other, &call("{4,3,5}", "{3,1,2}"));
    assert_eq!((bought.columns, bought.rows), (vec!["order_id".to_owned()], vec![vec![Some("1201".to_owned())]]));
    connection.simple("BEGIN").unwrap();
    let order = value(&mut connection, &with(statements::INSERT_ORDER, &["12", "10.00", "0.83", "10.83"]));
    for (line, (product, quantity)) in (1..).zip(cart) {
        let line = format!("{line}");
        assert_eq!(query(&mut connection, &with(statements::TAKE_STOCK, &[product, quantity])).tag, "UPDATE 1");
        query(&mut connection, &with(statements::INSERT_LINE, &[&order, &line, product, quantity]));
        query(&mut connection, &with(statements::INSERT_HISTORY, &["12", &order, product]));
    }
    connection.simple("COMMIT").unwrap();
    let short = query(&mut other, &call("{3,4}", "{1,300}"));
    assert_eq!(short.rows, [[Some("0".to_owned())]], "short stock is returned, not raised");
    assert_eq!(fingerprint(&mut connection), fingerprint(&mut other), "and nothing of it is left");
    let counts = count(&one, 1_200, &[]);
    assert_eq!(counts, count(&two, 1_200, &[]));
    let expected = (1, 1_201, 1_083, 3, 6, 3, 0);
    let seen = (
        counts.new_orders,
        counts.new_order_ids,
        counts.new_total_cents,
        counts.new_lines,
        counts.new_quantity,
        counts.new_history,
        counts.orphans,
    );
    assert_eq!(seen, expected);
    assert_eq!((counts.reorders, counts.restocked, counts.sales), (1, 248, 6));
    // In doubt, it is counted by itself.
    let counts = count(&one, 1_200, &[1_201, 1_205, 99_999_999_999]);
    assert_eq!(counts.doubtful, [(1_201, 3, 6, 3)]);
    assert_eq!((counts.new_orders, counts.new_lines, counts.new_history, counts.new_total_cents), (0, 0, 0, 0));
    // The order that was rolled back took a number and left nothing.
    let next = query(&mut other, &call("{9}", "{1}")).rows;
    assert!(next == [[Some("1203".to_owned())]] || next == [[Some("0".to_owned())]], "{next:?}");
    assert!(!postgres.log().contains("ERROR"), "{}", postgres.log());
}

#[test]
fn counting_finds_what_does_not_belong_together() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres, "store");
    fill(&server, small(), 2).unwrap();
    let mut connection = connect(&server);
    connection.simple("INSERT INTO orders VALUES (1300, current_date, 1, 1, 0.08, 1.08)").unwrap();
    assert_eq!(count(&server, 1_200, &[]).orphans, 1, "an order without a line");
    connection.simple("INSERT INTO cust_hist VALUES (1, 1299, 1)").unwrap();
    assert_eq!(count(&server, 1_200, &[]).orphans, 2, "history without an order");
    connection.simple("INSERT INTO cust_hist VALUES (2, 1300, 1), (1, 1300, 1)").unwrap();
    assert_eq!(count(&server, 1_200, &[]).orphans, 3, "history of an order that another customer made");
    connection.simple("DELETE FROM cust_hist WHERE order_id = 1300").unwrap();
    connection.simple("ALTER TABLE orderlines DROP CONSTRAINT orderlines_order").unwrap();
    connection.simple("INSERT INTO orderlines VALUES (1298, 1, 1, 1, current_date)").unwrap();
    let counts = count(&server, 1_200, &[]);
    assert_eq!(counts.orphans, 3, "a line without an order");
    assert_eq!((counts.new_orders, counts.new_lines, counts.new_history, counts.last_order), (1, 1, 1, 1_300));
    connection.simple("COMMENT ON TABLE orders IS NULL").unwrap();
    let question = StoreCount { server: server.clone(), after_order: 0, in_doubt: vec![], timeout_ns: 5_000_000_000 };
    let why = store::count(&question).unwrap_err();
    assert!(why.message.contains("no whole store"), "{why:?}");
    connection.simple("COMMENT ON TABLE orders IS 'tare store'").unwrap();
    connection.simple("BEGIN; LOCK TABLE cust_hist").unwrap();

    let why = store::count(&StoreCount { timeout_ns: 300_000_000, ..question }).unwrap_err();
    assert_eq!(why.sqlstate.as_deref(), Some("57014"), "{why:?}");
}

#[test]
fn a_store_that_cannot_be_filled_is_refused_and_says_why() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres, "store");
    fill(&server, small(), 2).unwrap();
    let refused = |server: &SqlServer, size: StoreSize| fill(server, size, 2).unwrap_err();
    let why = refused(&server, small());
    assert_eq!(why.sqlstate.as_deref(), Some("42P07"));
    assert!(why.message.contains("schema already there") && why.message.contains("schema public"), "{why:?}");
    assert!(why.message.contains("cust_hist, customers"), "{why:?}");
    assert_eq!(count(&server, 1_200, &[]).orders, 1_200, "what was there is untouched");

    let missing = SqlServer { schema: Some("elsewhere".to_owned()), ..server.clone() };
    let why = refused(&missing, small());
    assert_eq!(why.sqlstate.as_deref(), Some("3F000"), "{why:?}");
    let missing = SqlServer { database: "nowhere".to_owned(), ..server.clone() };
    let why = refused(&missing, small());
    assert_eq!(why.sqlstate.as_deref(), Some("3D000"), "{why:?}");
    assert!(why.message.contains("nowhere"), "{why:?}");

    let mut connection = connect(&server);
    connection.simple("CREATE SCHEMA other; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA other TO reader").unwrap();
    let other = SqlServer { schema: Some("other".to_owned()), user: "reader".to_owned(), ..server.clone() };
    let why = refused(&other, small());
    assert_eq!(why.sqlstate.as_deref(), Some("42501"), "{why:?}");
    let mine = SqlServer { user: postgres::USER.to_owned(), ..other };
    assert!(refused(&mine, StoreSize { customers: 3_000_000_000, ..small() }).message.contains("too large"));
    assert!(refused(&mine, StoreSize { products: 0, ..small() }).message.contains("too small"));
    // Somebody else is at it.
    let mut keeper = connect(&mine);
    keeper.simple("SELECT pg_advisory_lock(1952543333, hashtext('other'))").unwrap();
    assert_eq!(refused(&mine, small()).sqlstate.as_deref(), Some("55006"));
    drop(keeper);
    // A failure in the midst says at what, and leaves nothing.
    connection.simple("CREATE TABLE other.products_title ()").unwrap();
    let why = refused(&mine, small());
    assert_eq!(why.sqlstate.as_deref(), Some("42P07"), "{why:?}");
    assert!(why.message.contains("table products") && why.message.contains("products_title"), "{why:?}");
    let left = "SELECT string_agg(relname, ',') FROM pg_class WHERE relnamespace = 'other'::regnamespace";
    assert_eq!(value(&mut connection, left), "products_title");
}

#[test]
fn a_load_that_is_cancelled_ends_at_once_and_leaves_nothing() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres, "store");
    let mut connection = connect(&server);
    let begin = |size: StoreSize| {
        let load = StoreLoad { server: server.clone(), size, seed: SEED, connections: 2 };
        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        (cancel, std::thread::spawn(move || store::load(&load, &flag)))
    };
    let wait_for = |connection: &mut Connection, sql: &str| {
        let began = Instant::now();
        while value(connection, sql) != "t" {
            assert!(began.elapsed() < Duration::from_secs(20), "{sql}");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    // In the rows.
    let (cancel, loading) = begin(StoreSize::of(ByteSize(2_000_000_000)));
    wait_for(&mut connection, "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'COPY%'");
    std::thread::sleep(Duration::from_millis(100));
    let asked = Instant::now();
    cancel.store(true, Ordering::SeqCst);
    let why = loading.join().unwrap().unwrap_err();
    println!("cancelled after {:?}", asked.elapsed());
    assert!(why.message.contains("cancelled"), "{why:?}");
    // A second is what is asked for; a busy machine is given more.
    assert!(asked.elapsed() < Duration::from_secs(10));
    assert_nothing_left(&mut connection);

    // Where the server itself is at work, and looks at no client: what it waits for goes on being held.
    let (cancel, loading) = begin(StoreSize::of(ByteSize(10_000_000)));
    wait_for(&mut connection, "SELECT to_regclass('customers') IS NOT NULL");
    connection.simple("BEGIN; LOCK TABLE customers").unwrap();
    wait_for(&mut connection, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted");
    cancel.store(true, Ordering::SeqCst);
    wait_for(
        &mut connection,
        "SELECT count(*) = 0 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND query NOT LIKE 'DROP%'",
    );
    connection.simple("ROLLBACK").unwrap();
    let why = loading.join().unwrap().unwrap_err();
    assert!(why.message.contains("cancelled"), "{why:?}");
    assert_nothing_left(&mut connection);
    // And the place is fit for another.
    fill(&server, small(), 2).unwrap();
}

fn assert_nothing_left(connection: &mut Connection) {
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(value(connection, left), "0");
    let began = Instant::now();
    let others =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while value(connection, others) != "0" {
        assert!(began.elapsed() < Duration::from_secs(10), "sessions that go on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_that_dies_is_reported_and_no_store_is_taken_for_whole() {
    let Some(mut postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres, "store");
    let load = StoreLoad { server, size: StoreSize::of(ByteSize(2_000_000_000)), seed: SEED, connections: 2 };
    let mut watch = connect(&load.server);
    let loading = {
        let load = load.clone();
        std::thread::spawn(move || store::load(&load, &AtomicBool::new(false)))
    };
    let began = Instant::now();
    while value(&mut watch, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%'") == "0" {
        assert!(began.elapsed() < Duration::from_secs(20) && !loading.is_finished());
    }
    drop(watch);
    postgres.kill();
    let why = loading.join().unwrap().unwrap_err();
    assert!(why.message.contains("table "), "{why:?}");
}

/// Speaks as a server of version 11 does, as far as it is asked; ends with the connections.
fn old_server() -> std::net::SocketAddr {
    use std::io::{Read, Write};
    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[kind][..], &length, body].concat()
    }
    fn receive(peer: &mut std::net::TcpStream, head: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; head];
        peer.read_exact(&mut bytes).ok()?;
        let length = u32::from_be_bytes(bytes[head - 4..].try_into().unwrap()) as usize;
        bytes.resize(head + length - 4, 0);
        peer.read_exact(&mut bytes[head..]).ok()?;
        Some(bytes)
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ready = message(b'Z', b"I");
    let serve = move |mut peer: std::net::TcpStream| -> Option<()> {
        receive(&mut peer, 4)?;
        peer.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat()).ok()?;
        loop {
            let asked = receive(&mut peer, 5)?;
            let is_show = String::from_utf8_lossy(&asked).contains("server_version_num");
            let mut answer = Vec::new();
            if is_show {
                let column = [&[0, 1][..], b"v\0", &[0; 6], &25_u32.to_be_bytes(), &[0; 8]].concat();
                answer.extend(message(b'T', &column));
                answer.extend(message(b'D', &[&[0, 1, 0, 0, 0, 6][..], b"110022"].concat()));
            }
            answer.extend(message(b'C', if is_show { b"SHOW\0" } else { b"SET\0" }));
            answer.extend(&ready);
            peer.write_all(&answer).ok()?;
        }
    };
    std::thread::spawn(move || {
        for peer in listener.incoming().flatten() {
            serve(peer);
        }
    });
    address
}

#[test]
fn a_server_that_is_too_old_is_refused_with_its_version() {
    let server = SqlServer::of(old_server(), "store", "store");
    let why = fill(&server, small(), 2).unwrap_err();
    assert!(why.message.contains("PostgreSQL 11 is too old; the store needs 12 or later"), "{why:?}");
    assert!(why.message.contains(&server.address.to_string()), "{why:?}");
}
