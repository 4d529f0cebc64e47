//! The file store over sockets: computed and uploaded files, the geocoder, its counts, and clients that mean no good.

use crate::common::{answer, connect};

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tare_driver::serve::{self, ServeReport, Server};
use tare_driver::social::contents::stored_file_id;
use tare_driver::social::spec::{Scale, StoreSpec, StoredFile};
use tare_model::marker::marked;
use tare_model::packed::Packed;

const SCALE: Scale = Scale { people: 2_500, tags: 10, events: 30 };
const FREE: &str = "/1/person/2501.jpg";

/// A fresh folder, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tare-test-files-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// All files in it, by their paths in it.
    fn files(&self) -> Vec<String> {
        fn walk(path: &Path, base: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(path).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, base, found);
                } else {
                    found.push(path.strip_prefix(base).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.0, &self.0, &mut found);
        found.sort();
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn spec(folder: &Folder, delay: Duration) -> StoreSpec {
    let folder = folder.0.to_str().unwrap().to_owned();
    StoreSpec { scale: SCALE, instances: 3, folder, delay_ns: delay.as_nanos() as u64 }
}

fn store(folder: &Folder) -> Server {
    serve::start(&Packed::of(&spec(folder, Duration::ZERO)).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap()
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: files\r\n\r\n").into_bytes()
}

fn put(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("PUT {path} HTTP/1.1\r\nHost: files\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body.to_vec()].concat()
}

fn ask(stream: &mut TcpStream, request: &[u8]) -> (u16, Vec<u8>) {
    stream.write_all(request).unwrap();
    let (head, body) = answer(stream);
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

fn is_closed(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0]).is_ok_and(|n| n == 0)
}

/// What a loaded file is, made the slow way.
fn expected(instance: u32, kind: StoredFile, id: u64) -> Vec<u8> {
    marked(stored_file_id(instance, kind, id), kind.bytes() as usize)
}

fn granted<'a>(report: &'a ServeReport, name: &str) -> &'a str {
    &report.granted.iter().find(|(of, _)| of == name).unwrap().1
}

fn errors(report: &ServeReport) -> Vec<(&str, u64)> {
    report.errors.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

#[test]
fn loaded_files_are_as_the_contract_has_them_on_kept_connections() {
    let folder = Folder::new("loaded");
    let server = store(&folder);
    let mut streams: Vec<TcpStream> = (0..2).map(|_| connect(server.addr)).collect();
    let mut received = 0;
    for (instance, id) in [(1, 1), (3, 30)] {
        for kind in StoredFile::ALL {
            for stream in &mut streams {
                stream.write_all(&get(&format!("/{instance}{}", kind.path(id)))).unwrap();
                let (head, body) = answer(stream);
                assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
                assert!(head.contains(if kind == StoredFile::EventDocument {
                    "application/pdf"
                } else {
                    "image/jpeg"
                }));
                assert!(body == expected(instance, kind, id), "{kind:?}");
                received += (head.len() + body.len()) as u64;
            }
        }
    }
    assert_eq!(ask(&mut streams[0], &get("/2/person/2500t.jpg")).0, 200);
    drop(streams);
    let report = server.stop();
    assert_eq!((report.connections, report.requests, report.service.count()), (2, 21, 21));
    assert!(report.bytes_out > received && report.cpu_ns > 0);
    assert_eq!((errors(&report), granted(&report, "files kept")), (vec![], "0"));
    assert_eq!(folder.files(), Vec::<String>::new());
}

#[test]
fn an_upload_is_there_for_the_next_request_and_for_its_instance_alone() {
    let folder = Folder::new("uploaded");
    let server = store(&folder);
    let mut stream = connect(server.addr);
    let mut other = connect(server.addr);
    let first: Vec<u8> = (0..671_520_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert_eq!(ask(&mut other, &get(FREE)), (404, vec![]));
    assert_eq!(ask(&mut stream, &put(FREE, &first)), (201, vec![]));
    assert!(ask(&mut other, &get(FREE)) == (200, first.clone()));
    assert_eq!(ask(&mut other, &get("/2/person/2501.jpg")).0, 404);
    // Again, and another length: all of the new, nothing of the old.
    let second = vec![b'x'; 5_000];
    assert_eq!(ask(&mut other, &put(FREE, &second)).0, 201);
    assert!(ask(&mut stream, &get(FREE)) == (200, second));
    assert_eq!(ask(&mut stream, &put("/3/event/1234567t.jpg", b"")).0, 201);
    assert_eq!(ask(&mut stream, &get("/3/event/1234567t.jpg")), (200, vec![]));
    // The longest that is taken.
    let longest = vec![b'y'; 2 * 671_520];
    assert_eq!(ask(&mut stream, &put("/3/event/31.pdf", &longest)).0, 201);
    assert!(ask(&mut other, &get("/3/event/31.pdf")) == (200, longest));
    let report = server.stop();
    let at = ["1/person/501/0/2501.jpg", "3/event/31/0/31.pdf", "3/event/567/1/1234567t.jpg"];
    assert_eq!(folder.files(), at.map(str::to_owned));
    assert_eq!((report.requests, granted(&report, "files kept")), (10, "3"));
    assert_eq!(errors(&report), [("404: a file that nobody has uploaded", 2)]);
}

#[test]
fn a_file_is_never_seen_in_part_while_it_is_replaced() {
    let folder = Folder::new("replaced");
    let server = store(&folder);
    let mut stream = connect(server.addr);
    let body = |byte: u8| vec![byte; 400_000 + usize::from(byte)];
    assert_eq!(ask(&mut stream, &put(FREE, &body(b'a'))).0, 201);
    let stop = AtomicBool::new(false);
    let looked = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut stream = connect(server.addr);
            let mut looked = 0;
            while !stop.load(Ordering::SeqCst) {
                let (status, got) = ask(&mut stream, &get(FREE));
                assert!(status == 200 && got == body(got[0]), "{status}, {} bytes", got.len());
                looked += 1;
            }
            looked
        });
        for round in 0..60 {
            let letter = b'a' + round % 26;
            assert_eq!(ask(&mut stream, &put(FREE, &body(letter))).0, 201);
        }
        stop.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert!(looked > 0);
    let report = server.stop();
    assert_eq!((granted(&report, "files kept"), errors(&report)), ("1", vec![]));
}

#[test]
fn half_a_file_leaves_nothing() {
    let folder = Folder::new("half");
    let server = store(&folder);
    let whole = put(FREE, &vec![b'z'; 300_000]);
    let mut cut = connect(server.addr);
    cut.write_all(&whole[..200_000]).unwrap();
    cut.shutdown(Shutdown::Write).unwrap();
    assert!(is_closed(&mut cut));
    // One that is still under way when the store stops, and drips.
    let mut slow = connect(server.addr);
    slow.write_all(&whole[..100]).unwrap();
    let began = Instant::now();
    while folder.files().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "the file was not begun");
        std::thread::sleep(Duration::from_millis(2));
    }
    slow.write_all(&whole[100..101]).unwrap();
    let report = server.stop();
    assert_eq!(folder.files(), Vec::<String>::new());
    assert_eq!(errors(&report), [("a request was cut short", 1)]);
    assert_eq!((report.requests, granted(&report, "files kept")), (0, "0"));
}

#[test]
fn refusals_have_their_status_and_keep_the_connection_where_the_next_request_can_be_found() {
    let folder = Folder::new("refusals");
    let server = store(&folder);
    let mut stream = connect(server.addr);
    for (request, status) in [
        (put("/1/person/2500.jpg", b"abc"), 403),
        (put("/1/event/30.pdf", b"abc"), 403),
        (put("/4/person/2501.jpg", b"abc"), 404),
        (put("/0/person/2501.jpg", b"abc"), 404),
        (put("/1/house/2501.jpg", b"abc"), 404),
        (put("/1/person/2501.pdf", b"abc"), 404),
        (put("/1/person/../../../../etc/passwd", b"abc"), 404),
        (put("/../1/person/2501.jpg", b"abc"), 404),
        (put("/1/person/%2e%2e/2501.jpg", b"abc"), 404),
        (put("/1/person/2501.jpg/../2502.jpg", b"abc"), 404),
        (get("/1/person/../person/1.jpg"), 404),
        (get("/etc/passwd"), 404),
        (get("/under-way-0"), 404),
        (get("/"), 404),
        (b"DELETE /1/person/2501.jpg HTTP/1.1\r\n\r\n".to_vec(), 405),
        (get("/geocode?street=1&city=2"), 400),
        (get("/1/person/1t.jpg"), 200),
    ] {
        assert_eq!(ask(&mut stream, &request).0, status, "{}", String::from_utf8_lossy(&request));
    }
    for (request, status) in [
        (format!("PUT {FREE} HTTP/1.1\r\nContent-Length: 1343041\r\n\r\n"), 413),
        (format!("PUT {FREE} HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\nabc"), 413),
        (format!("PUT {FREE} HTTP/1.1\r\n\r\n"), 411),
        (format!("PUT {FREE} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 411),
        (format!("PUT {FREE} HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400),
        (format!("PUT {FREE} HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400),
        ("GET /1/person/1t.jpg HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_owned(), 400),
        ("\u{2}\u{3}\r\n\r\n".to_owned(), 400),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20_000)), 400),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65)), 400),
    ] {
        let mut stream = connect(server.addr);
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let (head, body) = answer(&mut stream);
        let shown = &request[..request.len().min(80)];
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")) && body.is_empty(), "{shown:?}: {head}");
        assert!(head.contains("Connection: close\r\n") && is_closed(&mut stream), "{shown:?}");
    }
    drop(stream);
    let report = server.stop();
    assert_eq!(folder.files(), Vec::<String>::new());
    assert_eq!((report.requests, granted(&report, "files kept")), (21, "0"));
    let expected = [
        ("400: an address without street, city, state or zip", 1),
        ("403: a loaded file was uploaded", 2),
        ("404: no file can have this path", 12),
        ("405: a method other than GET and PUT", 1),
        ("411: a file without Content-Length", 2),
        ("413: a file longer than 1,343,040 bytes", 2),
        ("malformed request: a body of two lengths", 1),
        ("malformed request: a body where none belongs", 1),
        ("malformed request: a head is longer than 16 KiB", 1),
        ("malformed request: a length that is no number", 1),
        ("malformed request: no head of HTTP", 2),
    ];
    assert_eq!(errors(&report), expected);
}

#[test]
fn requests_in_pieces_and_several_at_once_are_distinguished() {
    let folder = Folder::new("pieces");
    let server = store(&folder);
    let mut stream = connect(server.addr);
    let all = [
        put("/1/person/2501t.jpg", &vec![b'q'; 20_000]),
        get("/1/person/2501t.jpg"),
        b"PUT /1/event/31t.jpg HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc".to_vec(),
        get("/1/event/31t.jpg"),
        get("/geocode?street=1+Main+Street&city=a&state=CA&zip=94000"),
    ]
    .concat();
    for piece in all.chunks(997) {
        stream.write_all(piece).unwrap();
    }
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 201 "));
    assert!(answer(&mut stream).1 == vec![b'q'; 20_000]);
    let mut word = [0; 25];
    stream.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 201 "));
    assert_eq!(answer(&mut stream).1, b"abc");
    let place = "<?xml version=\"1.0\"?><ResultSet><Result><Latitude>33.0000</Latitude><Longitude>-177.0000</Longitude>\
        </Result></ResultSet>";
    assert_eq!(String::from_utf8(answer(&mut stream).1).unwrap(), place);
    stream.write_all(b"GET /1/person/1t.jpg HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(answer(&mut stream).1.len(), 5_758);
    assert!(is_closed(&mut stream));
    let report = server.stop();
    assert_eq!((report.requests, errors(&report)), (6, vec![]));
    assert!(report.bytes_in > all.len() as u64);
}

#[test]
fn a_delay_is_part_of_every_answer_and_stopping_does_not_wait_for_it() {
    let folder = Folder::new("delay");
    let delay = Duration::from_millis(60);
    let server = serve::start(&Packed::of(&spec(&folder, delay)).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
    let mut stream = connect(server.addr);
    for request in [get("/1/person/1t.jpg"), put(FREE, b"abc"), get(FREE), get("/geocode?street=&city=&state=&zip=")] {
        let began = Instant::now();
        assert!(ask(&mut stream, &request).0 < 300);
        assert!(began.elapsed() >= delay, "an answer came before its delay");
    }
    let report = server.stop();
    assert!(report.service.count() == 4 && report.service.min >= delay.as_nanos() as u64);
    drop(fs::remove_dir_all(folder.0.join("1")));
    let server =
        serve::start(&Packed::of(&spec(&folder, Duration::from_secs(3_600))).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST))
            .unwrap();
    let mut waiting = connect(server.addr);
    waiting.write_all(&get("/1/person/1.jpg")).unwrap();
    // Nobody reads what this one is sent.
    let mut idle = connect(server.addr);
    idle.write_all(b"GET /1/per").unwrap();
    assert_eq!(server.stop().requests, 0);
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody_and_stops_with_the_store() {
    let folder = Folder::new("stuck");
    let server = store(&folder);
    let mut stuck = connect(server.addr);
    for _ in 0..40 {
        stuck.write_all(&get("/1/person/1.jpg")).unwrap();
    }
    let mut stream = connect(server.addr);
    assert_eq!(ask(&mut stream, &get("/1/person/1t.jpg")).0, 200);
    let report = server.stop();
    assert!(report.requests < 41, "{}", report.requests);
}

#[test]
fn a_folder_that_cannot_be_used_is_refused() {
    let folder = Folder::new("bad");
    fs::write(folder.0.join("something"), "x").unwrap();
    let start =
        |spec: &StoreSpec| serve::start(&Packed::of(spec).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST)).map(Server::stop);
    let why = start(&spec(&folder, Duration::ZERO)).unwrap_err().to_string();
    assert!(why.contains("holds something already") && why.contains("tare-test-files"), "{why}");
    let nowhere = Folder(folder.0.join("nowhere"));
    let why = start(&spec(&nowhere, Duration::ZERO)).unwrap_err().to_string();
    assert!(why.contains("nowhere") && why.contains("No such file"), "{why}");
    let file = Folder(folder.0.join("something"));
    assert!(start(&spec(&file, Duration::ZERO)).unwrap_err().to_string().contains("Not a directory"));
    let good = spec(&folder, Duration::ZERO);
    let why = start(&StoreSpec { instances: 0, ..good }).unwrap_err().to_string();
    assert!(why.contains("0 instances"), "{why}");
}

/// A small file system on a folder, until it is dropped.
struct Mount<'a>(&'a Folder);

impl<'a> Mount<'a> {
    /// `None` where that cannot be: it needs root.
    fn new(folder: &'a Folder) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&folder.0).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Self(folder))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        // Lazily: whatever still has a file of it open.
        let _ = Command::new("umount").arg("-l").arg(&self.0.0).status();
    }
}

#[test]
fn a_full_folder_is_reported_as_507() {
    let folder = Folder::new("full");
    let Some(_mounted) = Mount::new(&folder) else {
        println!("SKIPPED: a file system cannot be mounted here (root, mount)");
        return;
    };
    let server = store(&folder);
    let mut stream = connect(server.addr);
    assert_eq!(ask(&mut stream, &put(FREE, &vec![b'x'; 600_000])).0, 507);
    assert_eq!(folder.files(), Vec::<String>::new());
    assert_eq!(ask(&mut stream, &put(FREE, &vec![b'x'; 6_000])).0, 201);
    let report = server.stop();
    assert_eq!(errors(&report), [("507: no room left in the folder of the store", 1)]);
}
