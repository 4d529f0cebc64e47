//! Sites of the tests' own, and servers for them: a thread a connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use tare_driver::web::proof::proof;
use tare_driver::web::spec::{
    Body, Embedded, FileRef, FileSet, Parameter, Quality, SiteModel, SiteState, Think, WebDrive,
};
use tare_model::drive::DriveSpec;
use tare_model::load::{LoadModel, Phases};
use tare_model::marker::{file_id, marked};
use tare_model::packed::Packed;

pub const SALT: u64 = 99;
pub const SECOND: u64 = 1_000_000_000;

/// A request as a server sees it.
pub struct Request {
    pub path: String,
    pub head: String,
    /// Which of its connection, from 0, and which connection.
    pub nth: usize,
    pub connection: usize,
}

impl Request {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// What a server does with a request: the answer, and whether the connection stays.
pub type Answer = (Vec<u8>, bool);

/// Serves until the test's process ends. What asks whether it is ready is not passed on.
pub fn serve(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for (connection, stream) in listener.incoming().enumerate() {
            let (Ok(stream), answer) = (stream, Arc::clone(&answer)) else { return };
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || converse(stream, connection, &*answer));
        }
    });
    address
}

/// Answers the requests of one connection.
pub fn converse(mut stream: impl Read + Write, connection: usize, answer: &dyn Fn(&Request) -> Answer) {
    for nth in 0.. {
        let Some(head) = head(&mut stream) else { return };
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if path == "/tare/ready" {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nready");
            let _ = stream.flush();
            return;
        }
        let (bytes, stays) = answer(&Request { path, head, nth, connection });
        if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() || !stays {
            return;
        }
    }
}

fn head(stream: &mut impl Read) -> Option<String> {
    let (mut head, mut piece) = (Vec::new(), [0; 4096]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => head.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
    String::from_utf8(head).ok()
}

/// An answer with a length.
pub fn sized(status: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// An answer in chunks of odd sizes.
pub fn chunked(fields: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n").into_bytes();
    for piece in body.chunks(37) {
        answer.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        answer.extend_from_slice(piece);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}

/// A file with its markers.
pub fn file(path: &str, bytes: u64) -> Vec<u8> {
    marked(file_id(path.as_bytes()), bytes as usize)
}

/// The page that answers a request for `/SITE/PAGE?...`, as the protocol has it.
pub fn page(request: &Request, title: &str, padding: usize) -> Vec<u8> {
    let (path, query) = request.path.split_once('?').unwrap();
    let site = path.split('/').nth(1).unwrap();
    let values: Vec<&str> = query.split('&').map(|pair| pair.split_once('=').unwrap().1).collect();
    let proof = proof(SALT, format!("{site}&7&{}", values.join("&")).as_bytes());
    let proof = std::str::from_utf8(&proof).unwrap();
    let beginning =
        format!("<!DOCTYPE html><html><head><title>{title}</title><meta name=\"proof\" content=\"{proof}\">");
    format!("{beginning}{}</html>\n", "p".repeat(padding)).into_bytes()
}

/// A site of one state that comes again and again.
pub fn site(body: Body, embedded: Vec<Embedded>) -> SiteModel {
    SiteModel {
        name: "shop".to_owned(),
        states: vec![SiteState {
            name: "home".to_owned(),
            counted_as: 0,
            body,
            secure: false,
            thinks: false,
            embedded,
            next: vec![(0, 1.0)],
            target: None,
        }],
        types: vec!["home".to_owned()],
        entry: vec![(0, 1.0)],
        think: Think::default(),
        pages: Quality { good_ns: 10 * SECOND, tolerable_ns: 20 * SECOND },
        downloads: None,
        files: FileSet::default(),
    }
}

pub fn home(padding: u64) -> Body {
    let parameters = vec![("user".to_owned(), Parameter::User), ("token".to_owned(), Parameter::Token)];
    Body::Page { title: "Home".to_owned(), command: 7, parameters, padding }
}

pub fn fixed(path: &str, bytes: u64) -> FileRef {
    FileRef::Fixed { path: path.to_owned(), bytes }
}

pub fn drive(site: SiteModel) -> WebDrive {
    WebDrive {
        site,
        tls: None,
        host: "shop.test".to_owned(),
        connections: 2,
        fresh_connections: true,
        receive_bytes_per_s: None,
        salt: SALT,
        check: true,
        timeout_ns: 20 * SECOND,
        overrun_ns: 20 * SECOND,
        threads: 1,
    }
}

pub fn spec(drive: WebDrive, targets: &[SocketAddr], load: LoadModel, phases: Phases) -> DriveSpec {
    let spec = DriveSpec::new(Packed::of(&drive).unwrap(), targets.to_vec(), load, phases);
    DriveSpec { seed: 7, loss_timeout_ns: 50_000_000, interval_ns: 50_000_000, ..spec }
}
