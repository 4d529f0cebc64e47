//! The client of PostgreSQL against a real server, and against peers that are none.

use crate::common::postgres;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use tare_driver::pg::{self, Connection};
use tare_model::sql::{SqlServer, SqlSpec};

const SECONDS: Duration = Duration::from_secs(20);

fn server(address: SocketAddr, user: &str, password: Option<&str>) -> SqlServer {
    SqlServer { password: password.map(str::to_owned), ..SqlServer::of(address, user, postgres::DATABASE) }
}

#[test]
fn logins_of_every_kind_that_is_spoken_and_refusals_that_say_why() {
    let Some(postgres) = postgres::start(&["password_encryption=scram-sha-256"]) else { return };
    let mut own = Connection::connect(&server(postgres.address(), postgres::USER, None), SECONDS).unwrap();
    own.simple("CREATE ROLE scram LOGIN PASSWORD 'sécret'; CREATE ROLE nobody LOGIN").unwrap();
    own.simple("SET password_encryption = md5; CREATE ROLE hashed LOGIN PASSWORD 'old'").unwrap();
    own.simple("CREATE ROLE plain LOGIN PASSWORD 'plain'").unwrap();
    postgres.set_access(
        "host all store 127.0.0.1/32 trust\nhost all scram 127.0.0.1/32 scram-sha-256\nhost all hashed 127.0.0.1/32 md5\n\
         host all plain 127.0.0.1/32 password\nhostssl all nobody 127.0.0.1/32 trust\n",
    );
    let connect = |user: &str, password| {
        let mut connection = Connection::connect(&server(postgres.address(), user, password), SECONDS)?;
        Ok::<_, pg::PgError>(connection.simple("SELECT current_user").unwrap()[0].rows[0][0].clone().unwrap())
    };
    // Until the server has read its new rules.
    let began = Instant::now();
    while connect("scram", Some("wrong")).is_ok() && began.elapsed() < SECONDS {}
    for (user, password) in [("scram", "sécret"), ("hashed", "old"), ("plain", "plain")] {
        assert_eq!(connect(user, Some(password)).unwrap(), user);
        let refused = connect(user, Some("wrong")).unwrap_err();
        assert!(refused.is("28P01") && refused.message.contains("check user and password"), "{refused}");
        assert!(refused.broken);
        let none = connect(user, None).unwrap_err();
        assert!(none.is("28P01") && none.message.contains("none was given"), "{none}");
    }
    let tls = connect("nobody", None).unwrap_err();
    assert!(tls.is("28000") && tls.message.contains("pg_hba.conf"), "{tls}");
    assert!(!tls.to_string().contains("secret"));

    let mut missing = server(postgres.address(), postgres::USER, None);
    missing.database = "elsewhere".to_owned();
    let missing = Connection::connect(&missing, SECONDS).unwrap_err();
    assert!(missing.is("3D000") && missing.message.contains("create the database"), "{missing}");
}

#[test]
fn statements_give_rows_and_errors_and_the_session_goes_on() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let mut there = server(postgres.address(), postgres::USER, None);
    there.schema = Some("the \"shop\"".to_owned());
    let spec = |statements: &[&str]| SqlSpec {
        server: there.clone(),
        statements: statements.iter().map(|s| (*s).to_owned()).collect(),
        timeout_ns: 20_000_000_000,
    };
    let results = pg::ask(&spec(&[
        "CREATE SCHEMA \"the \"\"shop\"\"\"",
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t VALUES (1, 'ü'), (2, NULL)",
        "SELECT a, b FROM t ORDER BY a",
        "SELECT current_schema(), current_setting('application_name')",
        "",
    ]));
    let results = results.unwrap();
    assert_eq!(results[2].tag, "INSERT 0 2");
    assert_eq!(results[3].columns, ["a", "b"]);
    assert_eq!(results[3].rows, [[Some("1".to_owned()), Some("ü".to_owned())], [Some("2".to_owned()), None]]);
    assert_eq!(results[4].rows, [[Some("the \"shop\"".to_owned()), Some("tare".to_owned())]]);
    let failure = pg::ask(&spec(&["SELECT 1", "SELECT 1/0", "SELECT 2"])).unwrap_err();
    assert_eq!(failure.sqlstate.as_deref(), Some("22012"));
    assert!(failure.message.contains("SELECT 1/0"), "{}", failure.message);

    let mut session = Connection::connect(&there, SECONDS).unwrap();
    assert!(!session.simple("NOTHING OF THE KIND").unwrap_err().broken);
    assert_eq!(session.simple("SELECT 1; SELECT 2").unwrap().len(), 2);
    assert!(session.simple("COPY t FROM STDIN").is_err(), "rows that nobody has");
    assert_eq!(session.simple("SELECT 3").unwrap()[0].rows[0][0].as_deref(), Some("3"));
    let long = "x".repeat(300_000);
    let said = session.simple(&format!("SELECT '{long}'")).unwrap();
    assert_eq!(said[0].rows[0][0].as_deref(), Some(long.as_str()));
}

#[test]
fn rows_are_copied_refused_and_aborted() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let mut session = Connection::connect(&server(postgres.address(), postgres::USER, None), SECONDS).unwrap();
    session.simple("CREATE TABLE t (a int)").unwrap();
    let count = |session: &mut Connection| {
        let said = session.simple("SELECT count(*), coalesce(sum(a), 0) FROM t").unwrap();
        said[0].rows[0].iter().map(|c| c.clone().unwrap()).collect::<Vec<_>>()
    };
    let mut copy = session.copy_in("COPY t FROM STDIN").unwrap();
    let rows: Vec<u8> = (1..=100_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    // Pieces that are cut anywhere.
    rows.chunks(70_001).for_each(|piece| copy.write(piece).unwrap());
    copy.write(b"").unwrap();
    assert_eq!(copy.finish().unwrap(), 100_000);
    assert_eq!(count(&mut session), ["100000", "5000050000"]);

    let mut copy = session.copy_in("COPY t FROM STDIN").unwrap();
    copy.write(b"1\nno number\n").unwrap();
    assert!(copy.finish().unwrap_err().is("22P02"));
    // A refusal is heard while there are rows to send: what a socket and its peer hold may have gone, and no more.
    let mut copy = session.copy_in("COPY t FROM STDIN").unwrap();
    copy.write(b"no number\n").unwrap();
    let piece = b"1\n".repeat(50_000);
    let heard = (0..10_000).find_map(|_| copy.write(&piece).err()).expect("a gigabyte was sent for nothing");
    assert!(heard.is("22P02"), "{heard}");
    drop(copy);
    let mut copy = session.copy_in("COPY t FROM STDIN").unwrap();
    copy.write(b"1\n").unwrap();
    copy.abort().unwrap();
    let mut copy = session.copy_in("COPY t FROM STDIN").unwrap();
    copy.write(b"1\n").unwrap();
    drop(copy);
    assert_eq!(count(&mut session), ["100000", "5000050000"], "nothing of what failed is kept");
    assert!(session.copy_in("COPY missing FROM STDIN").unwrap_err().is("42P01"));
    assert!(session.copy_in("SELECT 1").is_err());
    assert_eq!(count(&mut session), ["100000", "5000050000"]);
}

#[test]
fn a_bound_ends_a_statement_that_takes_too_long() {
    let Some(postgres) = postgres::start(&[]) else { return };
    let mut session = Connection::connect(&server(postgres.address(), postgres::USER, None), SECONDS).unwrap();
    session.bound(Some(Duration::from_millis(100))).unwrap();
    let began = Instant::now();
    let late = session.simple("SELECT pg_sleep(30)").unwrap_err();
    assert!(late.broken && late.message.contains("no answer in time"), "{late}");
    assert!(began.elapsed() >= Duration::from_millis(95) && began.elapsed() < Duration::from_secs(15));
}

#[test]
fn peers_that_are_no_postgresql_are_distinguished() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = Connection::connect(&server(closed, "u", Some("p")), SECONDS).unwrap_err();
    assert!(refused.message.contains("check that the server runs"), "{refused}");
    assert!(refused.sqlstate.is_none() && refused.broken);

    let says = |answer: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer);
            // Until the other end has seen enough.
            let _ = stream.read(&mut [0; 1024]);
        });
        let error = Connection::connect(&server(address, "u", Some("p")), Duration::from_millis(500)).unwrap_err();
        peer.join().unwrap();
        assert!(error.broken);
        error.message
    };
    assert!(says(b"HTTP/1.1 400 Bad Request\r\n\r\n").contains("does not speak the protocol"));
    assert!(says(b"").contains("no answer in time"));
    assert!(says(b"R\0\0\0\x05").contains("no answer in time"), "a message that never ends");
    assert!(says(b"R\0\0\0\x05\0").contains("cut short"));
    assert!(says(b"R\0\0\0\x08\0\0\0\x07").contains("GSSAPI"));
    assert!(says(b"E\0\0\0\x04").contains("without saying which"));
    assert!(says(b"Z\0\0\0\x01").contains("does not speak the protocol"), "a length that cannot be");
}
