//! An application of the tests' own that answers as `docs/reference/social.md` has it, from memory.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tare_driver::social::contents::{SITE_FILES, event_title, mix, person_name, static_file, stored_file_id, tag_name};
use tare_driver::social::spec::{Cycle, Operation, Scale, SocialDrive, StoredFile};
use tare_model::drive::DriveSpec;
use tare_model::load::{LoadModel, Phases};
use tare_model::marker::{MARKER_BYTES, file_id, marked};
use tare_model::packed::Packed;

pub const SECOND: u64 = 1_000_000_000;
const SEED: u64 = 5;

/// A request as the application sees it.
pub struct Request {
    pub method: String,
    pub path: String,
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Who is logged in: the cookie is their number.
    fn user(&self) -> u32 {
        let cookie = self.field("Cookie").and_then(|cookie| cookie.strip_prefix("SESSION="));
        cookie.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// Somebody or something that a user has uploaded.
#[derive(Clone, Default)]
struct Uploaded {
    name: String,
    /// What the markers of its files are made with.
    files: BTreeMap<String, u64>,
}

/// One instance of the application.
pub struct App {
    pub scale: Scale,
    /// From 1.
    pub instance: u32,
    people: Mutex<BTreeMap<u32, Uploaded>>,
    events: Mutex<BTreeMap<u32, Uploaded>>,
    attends: Mutex<BTreeSet<(u32, u32)>>,
    names: Mutex<BTreeSet<String>>,
    statics: BTreeMap<String, u64>,
    pub requests: AtomicU64,
    pub full_statics: AtomicU64,
}

impl App {
    pub fn new(instance: u32, users: u32) -> Self {
        Self {
            scale: Scale::of(users),
            instance,
            people: Mutex::default(),
            events: Mutex::default(),
            attends: Mutex::default(),
            names: Mutex::default(),
            statics: statics(),
            requests: AtomicU64::new(0),
            full_statics: AtomicU64::new(0),
        }
    }

    /// People, events and attendances that were added.
    pub fn added(&self) -> (u64, u64, u64) {
        let count = |all: &Mutex<BTreeMap<u32, Uploaded>>| all.lock().unwrap().len() as u64;
        (count(&self.people), count(&self.events), self.attends.lock().unwrap().len() as u64)
    }

    /// The answer to a request.
    pub fn answer(&self, request: &Request) -> Vec<u8> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let user = request.user();
        let value = query.split_once('=').map_or("", |(_, value)| value);
        let id = || value.parse::<u32>().unwrap_or(0);
        match (request.method.as_str(), path) {
            ("GET", "/tare/ready") => ok("text/plain", b"ready"),
            ("GET", "/") => page("Upcoming events", user, &self.listing((1..=10).collect(), None)),
            ("GET", "/tag") => self.tag(value, user),
            ("GET", "/event") => self.event(id(), user),
            ("GET", "/person") => self.person(id(), user),
            ("GET", "/logout") => found("/", "Set-Cookie: SESSION=; Max-Age=0\r\n"),
            ("POST", "/login") => login(&String::from_utf8_lossy(&request.body)),
            ("GET", "/person/new") => page("New person", user, ""),
            ("GET", "/event/new") if user > 0 => page("New event", user, ""),
            ("GET", "/person/check") if self.names.lock().unwrap().contains(value) => ok("text/plain", b"taken"),
            ("GET", "/person/check") => ok("text/plain", b"free"),
            ("POST", "/event/attend") if user > 0 => self.attend(&request.body, user),
            ("POST", "/person") => self.add(request, "/person", self.scale.people, &self.people),
            ("POST", "/event") if user > 0 => self.add(request, "/event", self.scale.events, &self.events),
            ("GET", path) if path.starts_with("/image/") => self.picture(&path["/image".len()..]),
            ("GET", path) if path.starts_with("/static/") => self.statics(path, request),
            _ => status("404 Not Found"),
        }
    }

    fn name(&self, person: u32) -> String {
        if person > self.scale.people {
            return self.people.lock().unwrap().get(&person).map(|uploaded| uploaded.name.clone()).unwrap_or_default();
        }
        name(person)
    }

    fn listing(&self, events: Vec<u32>, hits: Option<usize>) -> String {
        let mut text = hits.map_or(String::new(), |hits| format!("<p id=\"hits\">{hits}</p>"));
        for event in events {
            let _ = write!(text, "<a href=\"/event?id={event}\">{}</a>", event_title(SEED, event.into()));
            let _ = write!(text, "<img src=\"/image/event/{event}t.jpg\">");
        }
        text
    }

    fn tag(&self, tag: &str, user: u32) -> Vec<u8> {
        let number = tag.strip_prefix("tag").and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        let hits = (number % 13) as usize;
        let some = |n: u64| 1 + (mix(1, number, n) % u64::from(self.scale.events)) as u32;
        page(tag, user, &self.listing((0..10.min(hits as u64)).map(some).collect(), Some(hits)))
    }

    fn event(&self, event: u32, user: u32) -> Vec<u8> {
        let uploaded = self.events.lock().unwrap().get(&event).map(|uploaded| uploaded.name.clone());
        let title = if event <= self.scale.events { Some(event_title(SEED, event.into())) } else { uploaded };
        let Some(title) = title.filter(|_| event > 0) else { return status("404 Not Found") };
        let attends = self.attends.lock().unwrap();
        let count = 10 + attends.iter().filter(|(at, _)| *at == event).count();
        let can = if user > 0 && !attends.contains(&(event, user)) { "yes" } else { "no" };
        drop(attends);
        let mut text = format!("<p id=\"attendees\">{count}</p><p id=\"attend\">{can}</p>");
        let _ =
            write!(text, "<img src=\"/image/event/{event}.jpg\"><a href=\"/document/event/{event}.pdf\">document</a>");
        for n in 0..12u64 {
            let person = 1 + (mix(2, event.into(), n) % u64::from(self.scale.people)) as u32;
            let _ = write!(text, "<a href=\"/person?id={person}\">{}</a>", self.name(person));
            if n < 3 {
                let _ = write!(text, "<img src=\"/image/person/{person}t.jpg\">");
            }
        }
        page(&title, user, &text)
    }

    fn person(&self, person: u32, user: u32) -> Vec<u8> {
        let name = self.name(person);
        if person == 0 || name.is_empty() {
            return status("404 Not Found");
        }
        let friend = 1 + person % self.scale.people;
        let friend = format!("<a href=\"/person?id={friend}\">{}</a>", self.name(friend));
        page(&name, user, &format!("<img src=\"/image/person/{person}.jpg\"><p>summary</p>{friend}"))
    }

    fn attend(&self, body: &[u8], user: u32) -> Vec<u8> {
        let event: u32 = String::from_utf8_lossy(body).strip_prefix("id=").and_then(|id| id.parse().ok()).unwrap_or(0);
        let mut attends = self.attends.lock().unwrap();
        attends.insert((event, user));
        let count = 10 + attends.iter().filter(|(at, _)| *at == event).count();
        let text = format!("<p id=\"attendees\">{count}</p><a href=\"/person?id={user}\">{}</a>", name(user));
        ok("text/html;charset=utf-8", text.as_bytes())
    }

    fn add(&self, request: &Request, page: &str, loaded: u32, all: &Mutex<BTreeMap<u32, Uploaded>>) -> Vec<u8> {
        let Some(parts) = parts(request) else { return status("400 Bad Request") };
        let text =
            |name: &str| parts.get(name).map(|part| String::from_utf8_lossy(part).into_owned()).unwrap_or_default();
        let user = text("user");
        if !user.is_empty() && !self.names.lock().unwrap().insert(user) {
            return status("409 Conflict");
        }
        let title = text("title");
        let name = if title.is_empty() { format!("{} {}", text("first"), text("last")) } else { title };
        let mut files = BTreeMap::new();
        for (part, kind) in [("image", "image"), ("thumbnail", "thumbnail")] {
            let Some(file) = parts.get(part).filter(|file| file.len() > MARKER_BYTES) else {
                return status("400 Bad Request");
            };
            let digits = std::str::from_utf8(&file[6..22]).unwrap_or("");
            files.insert(kind.to_owned(), u64::from_str_radix(digits, 16).unwrap_or(0));
        }
        let mut all = all.lock().unwrap();
        let id = loaded + 1 + all.len() as u32;
        all.insert(id, Uploaded { name, files });
        found(&format!("{page}?id={id}"), "")
    }

    fn picture(&self, path: &str) -> Vec<u8> {
        let Some((kind, id)) = StoredFile::parse(path) else { return status("404 Not Found") };
        let person = path.starts_with("/person");
        let (all, loaded) = if person { (&self.people, self.scale.people) } else { (&self.events, self.scale.events) };
        if id <= loaded.into() {
            return ok("image/jpeg", &file(stored_file_id(self.instance, kind, id), kind.bytes()));
        }
        let small = matches!(kind, StoredFile::PersonThumbnail | StoredFile::EventThumbnail);
        let of = if small { "thumbnail" } else { "image" };
        let all = all.lock().unwrap();
        let Some(marker) = all.get(&(id as u32)).and_then(|uploaded| uploaded.files.get(of)) else {
            return status("404 Not Found");
        };
        ok("image/jpeg", &file(*marker, kind.bytes()))
    }

    fn statics(&self, path: &str, request: &Request) -> Vec<u8> {
        let Some(&bytes) = self.statics.get(path) else { return status("404 Not Found") };
        if request.field("If-Modified-Since").is_some() {
            return b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec();
        }
        self.full_statics.fetch_add(1, Ordering::Relaxed);
        ok("text/plain", &file(file_id(path.as_bytes()), bytes))
    }
}

/// Static files by their path.
fn statics() -> BTreeMap<String, u64> {
    let own = |of: Operation| (0..of.static_files()).map(move |n| static_file(Some(of), n));
    (0..SITE_FILES).map(|n| static_file(None, n)).chain(Operation::ALL.into_iter().flat_map(own)).collect()
}

pub fn name(person: u32) -> String {
    let (first, last) = person_name(SEED, person.into());
    format!("{first} {last}")
}

fn login(body: &str) -> Vec<u8> {
    let number = body.split('&').find_map(|pair| pair.strip_prefix("user=user"));
    match (number, body.split('&').find_map(|pair| pair.strip_prefix("password="))) {
        (Some(number), Some(password)) if number == password => {
            found("/", &format!("Set-Cookie: SESSION={number}; Path=/; HttpOnly\r\n"))
        }
        _ => page("Login failed", 0, ""),
    }
}

/// The parts of a form with files.
fn parts(request: &Request) -> Option<BTreeMap<String, Vec<u8>>> {
    let boundary = format!("--{}", request.field("Content-Type")?.strip_prefix("multipart/form-data; boundary=")?);
    let (mut found, body) = (BTreeMap::new(), &request.body);
    let find = |what: &[u8], mut from: usize| {
        while !body[from..].starts_with(what) {
            from += 1 + body[from + 1..].iter().position(|&byte| byte == what[0])?;
        }
        Some(from)
    };
    let mut at = find(boundary.as_bytes(), 0)?;
    loop {
        at += boundary.len();
        if body[at..].starts_with(b"--") {
            return Some(found);
        }
        let begin = find(b"\r\n\r\n", at)? + 4;
        let head = std::str::from_utf8(&body[at..begin]).ok()?;
        let name = head.split_once("name=\"")?.1.split_once('"')?.0.to_owned();
        // Files are long, and have a line feed only behind their markers.
        let end = find(format!("\r\n{boundary}").as_bytes(), begin)?;
        found.insert(name, body[begin..end].to_vec());
        at = end + 2;
    }
}

/// A file with its markers.
pub fn file(id: u64, bytes: u64) -> Vec<u8> {
    marked(id, bytes as usize)
}

fn page(heading: &str, user: u32, rest: &str) -> Vec<u8> {
    let user = if user > 0 { name(user) } else { "-".to_owned() };
    let text = format!(
        "<!DOCTYPE html><html><head><title>{heading}</title></head><body><p id=\"user\">{user}</p><h1>{heading}</h1>{rest}\
         <a href=\"/tag?name={}\">tag</a></body></html>\n",
        tag_name(1)
    );
    ok("text/html;charset=utf-8", text.as_bytes())
}

pub fn ok(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn found(place: &str, fields: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\n{fields}Content-Length: 0\r\n\r\n").into_bytes()
}

pub fn status(status: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\nno\n").into_bytes()
}

/// Serves until the process ends, a thread a connection. `change` may answer in the application's place: (answer, whether the connection stays).
pub fn serve(
    app: Arc<App>,
    change: impl Fn(&Request) -> Option<(Vec<u8>, bool)> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let change = Arc::new(change);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (app, change) = (Arc::clone(&app), Arc::clone(&change));
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                let mut stream = stream;
                let mut held = Vec::new();
                while let Some(request) = read(&mut stream, &mut held) {
                    let (answer, stays) = change(&request).unwrap_or_else(|| (app.answer(&request), true));
                    if stream.write_all(&answer).is_err() || !stays {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Reads a request with its body.
fn read(stream: &mut impl Read, held: &mut Vec<u8>) -> Option<Request> {
    let mut piece = vec![0; 64 << 10];
    loop {
        if let Some((request, used)) = parse(held) {
            held.drain(..used);
            return Some(request);
        }
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => held.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
}

/// The request that these bytes begin with, and its length; `None` where it is not there in full.
pub fn parse(bytes: &[u8]) -> Option<(Request, usize)> {
    let end = bytes.windows(4).position(|at| at == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map_or(0, |n| n.parse().unwrap());
    let body = bytes.get(end..end + length)?.to_vec();
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    Some((Request { method, path, head: head.to_owned(), body }, end + length))
}

/// Users whose cycles have this mean.
pub fn drive(mean_ms: u64) -> SocialDrive {
    let mean_ns = mean_ms * 1_000_000;
    SocialDrive {
        scale: Scale::of(25),
        data_seed: SEED,
        cycle: Cycle { mean_ns, most_ns: 5 * mean_ns, add_person_ns: 0, add_event_ns: 0 },
        revalidating: 0.6,
        attend: 0.1,
        check: true,
        timeout_ns: 10 * SECOND,
        names: 3,
        threads: 1,
    }
}

pub fn spec(drive: SocialDrive, targets: &[SocketAddr], load: LoadModel, phases: Phases) -> DriveSpec {
    let spec = DriveSpec::new(Packed::of(&drive).unwrap(), targets.to_vec(), load, phases);
    DriveSpec { seed: 7, loss_timeout_ns: 50_000_000, ..spec }
}
