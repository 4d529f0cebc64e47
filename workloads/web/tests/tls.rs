//! TLS of web sessions against a server with a certificate of the test's own.

use crate::common::web as sites;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use crate::common::{closed, run, run_in_turns, steady, two_arms};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::{Digest, Sha256};
use sites::*;
use tare_driver::web::spec::{Embedded, TlsSpec, WebDrive};
use tare_model::drive::{DriveResult, DriveSpec};

const LOGO: (&str, u64) = ("/files/shop/images/home/00.gif", 50_000);

/// Serves over TLS of these versions; its address and the SHA-256 of its certificate.
fn serve_tls(versions: &[&'static rustls::SupportedProtocolVersion]) -> (SocketAddr, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec!["shop.test".to_owned()]).unwrap();
    let digest = Sha256::digest(made.cert.der()).to_vec();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.session_storage = rustls::server::ServerSessionMemoryCache::new(10_000);
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (connection, stream) in listener.incoming().enumerate() {
            let (stream, config) = (stream.unwrap(), Arc::clone(&config));
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                let stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                converse(stream, connection, &answer);
            });
        }
    });
    (address, digest)
}

fn answer(request: &Request) -> Answer {
    let known = request.path == LOGO.0;
    (if known { sized("200 OK", &file(LOGO.0, LOGO.1)) } else { chunked("", &page(request, "Home", 20_000)) }, true)
}

fn drive_tls(digest: Option<Vec<u8>>) -> WebDrive {
    let embedded = |_| Embedded { file: fixed(LOGO.0, LOGO.1), unchanged: 0.0 };
    let mut site = site(home(20_000), (0..3).map(embedded).collect());
    site.states[0].secure = true;
    site.states[0].next = vec![(0, 0.5)];
    WebDrive { tls: Some(TlsSpec { certificate_sha256: digest }), ..drive(site) }
}

fn drive_at(address: SocketAddr, drive: WebDrive) -> DriveResult {
    run(&spec(drive, &[address], closed(3), steady(400))).unwrap()
}

#[test]
fn users_make_one_handshake_in_full_and_resume_it_on_their_other_connection() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let (address, digest) = serve_tls(&[version]);
        let result = drive_at(address, drive_tls(Some(digest)));
        let web = result.outcome::<WebDrive>().unwrap();
        assert_eq!(web.faults, [], "{version:?}");
        assert!(result.operations > 5 && web.types[0].good == result.operations, "{} pages", result.operations);
        let (full, resumed) = (web.handshakes_full, web.handshakes_resumed);
        // What was under way at the end has connected and not yet shaken hands.
        assert!(full > 3 && resumed > 3, "{full} in full, {resumed} resumed");
        assert!(full.abs_diff(resumed) <= 3 && full + resumed + 3 >= web.connections, "{full} {resumed} {web:?}");
    }
}

#[test]
fn slow_reading_and_records_in_pieces_change_nothing() {
    let (address, digest) = serve_tls(&[&rustls::version::TLS13]);
    let mut drive = drive_tls(Some(digest));
    drive.receive_bytes_per_s = Some(1_000_000);
    let result = drive_at(address, drive);
    assert_eq!(result.outcome::<WebDrive>().unwrap().faults, []);
    // 220 kB a page on two connections.
    assert!(
        result.operations >= 1 && result.response.quantile(0.0).unwrap() > 60e6,
        "{:?}",
        result.response.quantile(0.0)
    );
}

#[test]
fn another_certificate_is_reported_before_the_load_and_any_is_taken_where_none_is_known() {
    let (address, digest) = serve_tls(&[&rustls::version::TLS13]);
    let load = |pin| spec(drive_tls(pin), &[address], closed(1), steady(100));
    let refused = run(&load(Some(vec![7; 32]))).unwrap_err().to_string();
    let shown: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(refused.contains(&shown) && refused.contains("07070707"), "{refused}");
    assert!(run(&load(Some(vec![7; 31]))).unwrap_err().to_string().contains("32 bytes"));
    let result = run(&load(None)).unwrap();
    assert!(result.granted.contains(&("certificate".to_owned(), "any".to_owned())));
    assert!(result.operations > 0);
}

/// What is said of a server that answers the first bytes with these.
fn refused_by(drive: WebDrive, answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(answer);
    });
    run(&spec(drive, &[address], closed(1), steady(50))).unwrap_err().to_string()
}

#[test]
fn what_is_not_the_right_tls_is_reported_before_the_load() {
    // The alert protocol_version, as a server that knows 1.1 at most sends it.
    let old = refused_by(drive_tls(None), b"\x15\x03\x01\x00\x02\x02\x46");
    assert!(old.contains("ProtocolVersion") && old.contains("1.3"), "{old}");
    let plain = refused_by(drive_tls(None), b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    assert!(plain.contains("not TLS") && plain.contains("plain HTTP"), "{plain}");
    let silent = refused_by(drive_tls(None), b"");
    assert!(silent.contains("closes the connection"), "{silent}");
    let other = || drive(site(home(100), Vec::new()));
    let secure = refused_by(other(), b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    assert!(secure.contains("400") && secure.contains("not the one for TLS"), "{secure}");
    let mail = refused_by(other(), b"220 mail.test ESMTP\r\n");
    assert!(mail.contains("not HTTP/1.1"), "{mail}");
}

#[test]
fn each_request_goes_to_the_port_that_is_right_for_it() {
    let (secure, digest) = serve_tls(&[&rustls::version::TLS13]);
    let plain = serve(answer);
    let mut drive = drive_tls(Some(digest));
    // From the plain page to the one in TLS and back.
    let mut second = drive.site.states[0].clone();
    second.name = "pay".to_owned();
    drive.site.states[0].secure = false;
    drive.site.states[0].next = vec![(1, 1.0)];
    second.next = vec![(0, 0.8)];
    drive.site.states.push(second);
    let result = run(&spec(drive, &[plain, secure], closed(3), steady(400))).unwrap();
    let web = result.outcome::<WebDrive>().unwrap();
    assert_eq!(web.faults, []);
    let shaken = web.handshakes_full + web.handshakes_resumed;
    assert!(result.operations > 5 && shaken > 3 && shaken < web.connections, "{web:?}");
}

#[test]
fn in_turns_no_handshake_fails_and_none_begins_in_the_turn_of_others() {
    let (turns, (address, digest)) = (two_arms(30, 15, &steady(300)), serve_tls(&[&rustls::version::TLS13]));
    let arm = |arm: usize| DriveSpec {
        turns: Some(turns[arm].clone()),
        ..spec(drive_tls(Some(digest.clone())), &[address], closed(3), steady(300))
    };
    let (_, results) = run_in_turns([arm(0), arm(1)]);
    for result in results {
        let web = result.outcome::<WebDrive>().unwrap();
        assert_eq!((web.faults.as_slice(), result.errors.as_slice()), (&[][..], &[][..]));
        assert!(result.operations > 5 && web.types[0].good == result.operations, "{} pages", result.operations);
        assert_eq!(web.handshakes_full + web.handshakes_resumed, web.connections, "all were over before the end");
        let done = result.turns.as_ref().unwrap();
        let times: u64 = done.counts.iter().map(|turn| turn.response_ns).sum();
        let busy = times as f64 / (3 * done.measured_ns) as f64;
        assert!((0.98..1.02).contains(&busy), "times of pages come to {busy} of the time");
    }
}
