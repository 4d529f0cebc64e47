//! The database of the social application in a real server: filled, whole, the same on any number of connections, refused, cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::postgres::{self, Postgres};
use tare_driver::pg::Connection;
use tare_driver::social;
use tare_driver::social::contents::{event_title, person_name};
use tare_driver::social::spec::{Scale, SocialLoad, SocialLoaded};
use tare_model::sql::{SqlFailure, SqlServer};

const SEED: u64 = 4;
const TABLES: [&str; 10] = [
    "address",
    "person",
    "socialevent",
    "comments_rating",
    "id_gen",
    "invitation",
    "person_person",
    "person_socialevent",
    "socialeventtag",
    "socialeventtag_socialevent",
];

fn server(postgres: &Postgres) -> SqlServer {
    SqlServer::of(postgres.address(), postgres::USER, postgres::DATABASE)
}

fn request(server: &SqlServer, scale: Scale, connections: u32) -> SocialLoad {
    SocialLoad { server: server.clone(), scale, seed: SEED, connections }
}

fn fill(server: &SqlServer, scale: Scale, connections: u32) -> Result<SocialLoaded, SqlFailure> {
    social::load(&request(server, scale, connections), &AtomicBool::new(false))
}

fn connect(server: &SqlServer) -> Connection {
    Connection::connect(server, Duration::from_secs(10)).unwrap()
}

fn value(connection: &mut Connection, sql: &str) -> String {
    let said = connection.simple(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).pop().unwrap();
    said.rows[0][0].clone().unwrap_or_default()
}

fn fingerprint(connection: &mut Connection) -> Vec<String> {
    let hash = |table: &str| {
        format!("SELECT count(*) || ' ' || sum(('x' || substr(md5(t::text), 1, 15))::bit(60)::bigint) FROM {table} t")
    };
    TABLES.iter().map(|table| value(connection, &hash(table))).collect()
}

/// Queries that count what does not belong together.
const ORPHANS: [&str; 14] = [
    "SELECT count(*) FROM person p LEFT JOIN address a USING (addressid) WHERE a.addressid IS NULL",
    "SELECT count(*) FROM socialevent e LEFT JOIN address a USING (addressid) WHERE a.addressid IS NULL",
    "SELECT count(*) FROM socialevent e LEFT JOIN person p ON p.username = submitterusername WHERE p.userid IS NULL",
    "SELECT count(*) FROM comments_rating c LEFT JOIN person p USING (username) WHERE p.userid IS NULL",
    "SELECT count(*) FROM comments_rating LEFT JOIN socialevent e USING (socialeventid) WHERE e.title IS NULL",
    "SELECT count(*) FROM person_person LEFT JOIN person f ON f.username = friend_username WHERE f.userid IS NULL",
    "SELECT count(*) FROM person_person WHERE person_username = friend_username",
    "SELECT count(*) FROM person_socialevent LEFT JOIN person p USING (username) WHERE p.userid IS NULL",
    "SELECT count(*) FROM person_socialevent LEFT JOIN socialevent e USING (socialeventid) WHERE e.title IS NULL",
    "SELECT count(*) FROM socialeventtag_socialevent LEFT JOIN socialeventtag t USING (socialeventtagid) WHERE tag IS NULL",
    "SELECT count(*) FROM socialeventtag t WHERE refcount <> (SELECT count(*) FROM socialeventtag_socialevent s \
     WHERE s.socialeventtagid = t.socialeventtagid)",
    "SELECT count(*) FROM socialevent e WHERE (numberofvotes, totalscore) <> (SELECT count(*), coalesce(sum(rating), 0) \
     FROM comments_rating c WHERE c.socialeventid = e.socialeventid)",
    "SELECT count(*) FROM socialevent WHERE eventtimestamp NOT BETWEEN '2026-01-01' AND timestamp '2026-01-01' + interval '540 d' \
     OR createdtimestamp NOT BETWEEN timestamp '2026-01-01' - interval '540 d' AND '2026-01-01'",
    "SELECT count(*) FROM comments_rating c JOIN socialevent USING (socialeventid) WHERE creationtime < createdtimestamp",
];

/// All keys and indexes are there and valid, rows frozen and counted, numbers free from where they say.
fn assert_whole(connection: &mut Connection, scale: Scale) {
    let here = "current_schema()::regnamespace";
    let indexes = format!(
        "SELECT count(*) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indisvalid AND relnamespace = {here}"
    );
    assert_eq!(value(connection, &indexes), "19");
    assert_eq!(value(connection, &indexes.replace("indisvalid", "indisvalid AND indisprimary")), "10");
    assert_eq!(value(connection, &indexes.replace("indisvalid", "indisvalid AND indisunique")), "12");
    for table in TABLES {
        let pages = format!("SELECT count(DISTINCT split_part(ctid::text, ',', 1)) FROM {table}");
        let pages: u64 = value(connection, &pages).parse().unwrap();
        let class = format!("FROM pg_class WHERE oid = '{table}'::regclass");
        let visible: u64 = value(connection, &format!("SELECT relallvisible {class}")).parse().unwrap();
        assert!(10 * visible + 30 >= 9 * pages, "{table}: of {pages} pages {visible} are known to be visible to all");
        assert_eq!(value(connection, &format!("SELECT reltuples > 0 {class}")), "t", "{table}");
        let analyzed = format!("SELECT count(*) > 0 FROM pg_stats WHERE tablename = '{table}'");
        assert_eq!(value(connection, &analyzed), "t", "{table}");
    }
    for (key, table, column) in [
        ("person", "person", "userid"),
        ("socialevent", "socialevent", "socialeventid"),
        ("address", "address", "addressid"),
        ("comments_rating", "comments_rating", "commentid"),
        ("invitation", "invitation", "invitationid"),
        ("socialeventtag", "socialeventtag", "socialeventtagid"),
    ] {
        let next = value(connection, &format!("SELECT gen_value FROM id_gen WHERE gen_key = '{key}'"));
        let sql = format!("SELECT min({column}) || ' ' || max({column}) + 1 || ' ' || count(*) + 1 FROM {table}");
        assert_eq!(value(connection, &sql), format!("1 {next} {next}"));
    }
    let mark = value(connection, "SELECT obj_description('id_gen'::regclass, 'pg_class')");
    let Scale { people, tags, events } = scale;
    assert_eq!(mark, format!("tare social 1: seed {SEED}, {people} people, {tags} tags, {events} events"));
}

#[test]
fn a_filled_database_is_whole_and_the_same_on_any_number_of_connections() {
    let Some(postgres) = postgres::start(&["autovacuum=off"]) else { return };
    let one = server(&postgres);
    let scale = Scale::of(30);
    let loaded = fill(&one, scale, 2).unwrap();
    let mut connection = connect(&one);
    for (table, (name, rows, bytes)) in TABLES.iter().zip(&loaded.tables) {
        assert_eq!(table, name);
        assert_eq!(value(&mut connection, &format!("SELECT count(*) FROM {table}")), rows.to_string());
        assert!(bytes > rows);
    }
    assert!(loaded.rows_s > 0.0 && loaded.indexes_s > 0.0);
    let counts = loaded.tables.iter().map(|(_, rows, _)| *rows).collect::<Vec<_>>();
    let (people, events) = (u64::from(scale.people), u64::from(scale.events));
    assert_eq!([counts[0], counts[1], counts[2], counts[8]], [people + events, people, events, u64::from(scale.tags)]);
    assert_whole(&mut connection, scale);
    for sql in ORPHANS {
        assert_eq!(value(&mut connection, sql), "0", "{sql}");
    }
    let (first, last) = person_name(SEED, 17);
    let name = "SELECT firstname || ' ' || lastname || ' ' || password FROM person WHERE username = 'user17'";
    assert_eq!(value(&mut connection, name), format!("{first} {last} 17"));
    let title = "SELECT title FROM socialevent WHERE socialeventid = 3 AND imageurl = '/event/3.jpg'";
    assert_eq!(value(&mut connection, title), event_title(SEED, 3));
    let place = "SELECT min(latitude) || ' ' || max(longitude) FROM address";
    assert_eq!(value(&mut connection, place), "33 -177");

    let whole = fingerprint(&mut connection);
    for (connections, schema) in [(1, "second"), (5, "third")] {
        connection.simple(&format!("CREATE SCHEMA {schema}")).unwrap();
        let other = SqlServer { schema: Some(schema.to_owned()), ..one.clone() };
        fill(&other, scale, connections).unwrap();
        let mut other = connect(&other);
        assert_whole(&mut other, scale);
        assert_eq!(fingerprint(&mut other), whole, "{connections} connections");
    }
}

#[test]
fn a_database_that_cannot_be_filled_is_refused_and_says_why() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres);
    let scale = Scale::of(1);
    let none = Scale { people: 100, ..scale };
    assert!(fill(&server, none, 1).unwrap_err().message.contains("too small"));
    let huge = Scale { people: u32::MAX, ..scale };
    assert!(fill(&server, huge, 1).unwrap_err().message.contains("too large"));
    let mut connection = connect(&server);
    connection.simple("CREATE TABLE invitation (mine text)").unwrap();
    let why = fill(&server, scale, 2).unwrap_err();
    assert_eq!(why.sqlstate.as_deref(), Some("42P07"));
    assert!(why.message.contains("has invitation") && why.message.contains("without a social database"), "{why:?}");
    assert_eq!(value(&mut connection, "SELECT count(*) FROM invitation"), "0", "nothing of it was touched");
    connection.simple("DROP TABLE invitation; SELECT pg_advisory_lock(1952543333, hashtext('public'))").unwrap();
    let why = fill(&server, scale, 2).unwrap_err();
    assert_eq!(why.sqlstate.as_deref(), Some("55006"), "{why:?}");
    assert!(why.message.contains("somebody else is filling a social database"), "{why:?}");
    connection.simple("SELECT pg_advisory_unlock_all()").unwrap();

    // Something that only shows after the rows: the name of an index is taken.
    connection.simple("CREATE VIEW person_username AS SELECT 1").unwrap();
    let why = fill(&server, scale, 2).unwrap_err();
    assert_eq!(why.sqlstate.as_deref(), Some("42P07"), "{why:?}");
    assert!(why.message.contains("cannot fill the social database in"), "{why:?}");
    assert!(why.message.contains("table person") && why.message.contains("person_username"), "{why:?}");
    assert_nothing_left(&mut connection);
    connection.simple("DROP VIEW person_username").unwrap();
    fill(&server, scale, 2).unwrap();
}

fn assert_nothing_left(connection: &mut Connection) {
    let names = TABLES.map(|table| format!("'{table}'")).join(", ");
    assert_eq!(value(connection, &format!("SELECT count(*) FROM pg_class WHERE relname IN ({names})")), "0");
}

/// A load that goes on in a thread of its own.
fn load_until_rows_are_on_their_way(
    server: &SqlServer,
    connection: &mut Connection,
    cancel: &Arc<AtomicBool>,
) -> JoinHandle<Result<SocialLoaded, SqlFailure>> {
    let (flag, load) = (Arc::clone(cancel), request(server, Scale::of(2_000), 2));
    let loading = std::thread::spawn(move || social::load(&load, &flag));
    let began = Instant::now();
    let copying = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY %' AND state = 'active'";
    while value(connection, copying) == "0" {
        assert!(began.elapsed() < Duration::from_secs(60) && !loading.is_finished(), "no rows were sent");
        std::thread::sleep(Duration::from_millis(5));
    }
    loading
}

#[test]
fn a_server_that_ends_half_way_or_lets_nobody_in_is_reported() {
    let Some(mut postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres);
    let mut connection = connect(&server);
    let loading = load_until_rows_are_on_their_way(&server, &mut connection, &Arc::default());
    postgres.kill();
    let why = loading.join().unwrap().unwrap_err();
    let what = format!("cannot fill the social database in {server}: table ");
    assert!(why.message.starts_with(&what), "{why:?}");

    // What it had when it ended is not whole, and is neither touched nor taken for whole.
    postgres.start();
    let server = self::server(&postgres);
    let mut connection = connect(&server);
    let mark = "SELECT coalesce(obj_description(to_regclass('id_gen'), 'pg_class'), 'none')";
    assert_eq!(value(&mut connection, mark), "none");
    connection.simple("CREATE TABLE IF NOT EXISTS person (mine text)").unwrap();
    let why = fill(&server, Scale::of(1), 2).unwrap_err();
    assert!(why.message.contains("nothing of it was touched"), "{why:?}");

    postgres.set_access("host all all 127.0.0.1/32 scram-sha-256\n");
    let began = Instant::now();
    // The server takes the rules up a moment later; until then the tables are in the way.
    let why = loop {
        let why = fill(&server, Scale::of(1), 2).unwrap_err();
        if !why.message.contains("was touched") {
            break why;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{why:?}");
    };
    assert!(why.message.contains("password"), "{why:?}");
}

#[test]
fn a_load_that_is_cancelled_ends_and_leaves_nothing() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let server = server(&postgres);
    let mut connection = connect(&server);
    let cancel = Arc::new(AtomicBool::new(false));
    let loading = load_until_rows_are_on_their_way(&server, &mut connection, &cancel);
    cancel.store(true, Ordering::SeqCst);
    let why = loading.join().unwrap().unwrap_err();
    assert!(why.message.contains("cancelled"), "{why:?}");
    assert_nothing_left(&mut connection);
    fill(&server, Scale::of(1), 2).unwrap();
}
