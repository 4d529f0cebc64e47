//! The file store of the social application, and its geocoder (`docs/reference/social.md`, "File store and geocoder").
//!
//! A blocking thread a connection, as the backend of the web sites has: connections are those of the applications' pools, kept alive.
//! What is loaded is computed from its path; what users bring lies in a folder. A computed file costs one receive, a send for each
//! 64 KiB and two looks at the clock; nothing is allocated for it once the connection's buffers are there.

mod answer;
mod computed;
mod kept;
mod upload;
mod way;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::social::spec::{StoreSpec, StoredFile};
use rustix::io::Errno;
use tare_model::drive::{SocketOptions, Wait};

use self::answer::Answer;
use self::computed::Filler;
use self::kept::Folder;
use self::way::Way;
use crate::door::Door;
use crate::error::reason_of;
use crate::head::{self, Body, Head, Parsed};
use crate::server::{Server, Shared};
use crate::task::{Kind, Serves};
use crate::{DriverError, clock, net};

/// Longest head of a request.
const MOST_HEAD: usize = 16 * 1024;
/// Longest file that is kept, bytes: twice the longest of those that are loaded.
const MOST_FILE: u64 = 2 * StoredFile::PersonImage.bytes();
/// Most instances: each has a directory.
const MOST_INSTANCES: u32 = 10_000;

/// What the geocoder always answers.
const PLACE: &[u8] = b"<?xml version=\"1.0\"?><ResultSet><Result><Latitude>33.0000</Latitude>\
    <Longitude>-177.0000</Longitude></Result></ResultSet>";

pub(crate) const KIND: Kind = Kind::serves::<StoreSpec>();

impl Serves for StoreSpec {
    fn serve(self, door: Door) -> Result<Server, DriverError> {
        let server = Server::listen(door, &SocketOptions::default(), 0)?;
        let store = Arc::new(Store::open(self)?);
        server.tally().kept();
        server.accepting(move |shared, fd| serve(shared, fd, &store))
    }
}

/// The store.
#[derive(Debug)]
struct Store {
    spec: StoreSpec,
    folder: Folder,
}

impl Store {
    /// Opens it.
    ///
    /// # Errors
    /// When the folder is not there, not empty or no folder, and when there are no instances or too many.
    fn open(spec: StoreSpec) -> Result<Self, DriverError> {
        if !(1..=MOST_INSTANCES).contains(&spec.instances) {
            let what = format!("the file store is for {} instances", spec.instances);
            return Err(DriverError::invalid(what, "name 1 to 10,000"));
        }
        let folder = Folder::open(&spec.folder)?;
        Ok(Self { spec, folder })
    }
}

/// What one connection has done.
#[derive(Debug, Default, Clone, Copy)]
struct Served {
    requests: u64,
    bytes_in: u64,
    bytes_out: u64,
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// As it should.
    Done,
    /// The reason is counted.
    Fault(String),
}

impl From<Errno> for End {
    fn from(errno: Errno) -> Self {
        Self::Fault(reason_of(errno))
    }
}

/// Serves one connection until its client closes it. What is no request of HTTP/1.1 is answered with 400 and ends the connection.
fn serve(shared: &Shared, fd: &OwnedFd, store: &Store) -> Result<(), String> {
    let mut connection = Connection {
        shared,
        store,
        fd: fd.as_fd(),
        input: vec![0; MOST_HEAD],
        begin: 0,
        filled: 0,
        filler: Filler::new(),
        served: Served::default(),
    };
    let ended = connection.serve();
    let served = connection.served;
    shared.tally.served(1, served.bytes_in, served.bytes_out);
    shared.tally.answered(served.requests);
    // Counted while the connection is still open: the reason is in the report once the connection is closed.
    if let End::Fault(reason) = ended
        && !shared.stopping()
    {
        shared.tally.error(reason);
    }
    Ok(())
}

/// A connection and its buffers.
struct Connection<'a> {
    shared: &'a Shared,
    store: &'a Store,
    fd: BorrowedFd<'a>,
    input: Vec<u8>,
    /// In `input`, what was received and not yet read: from here ...
    begin: usize,
    /// ... to here.
    filled: usize,
    filler: Filler,
    served: Served,
}

/// A request, apart from the buffer that it came in.
struct Request {
    way: Way,
    body: Body,
    close: bool,
    waits: bool,
}

impl Connection<'_> {
    fn serve(&mut self) -> End {
        loop {
            let request = match self.request() {
                Ok(request) => request,
                Err(end) => return end,
            };
            let read_ns = clock::now_ns();
            let delay_ns = self.store.spec.delay_ns;
            if let Err(end) = self.act(&request, read_ns, delay_ns) {
                return end;
            }
            if request.close {
                return End::Done;
            }
        }
    }

    /// The next request.
    fn request(&mut self) -> Result<Request, End> {
        loop {
            match head::parse(&self.input[self.begin..self.filled]) {
                Parsed::Head(head) => {
                    let Head { method, target, length, body, close, waits } = head;
                    let request = Request { way: Way::of(method, target, &self.store.spec), body, close, waits };
                    self.begin += length;
                    return Ok(request);
                }
                Parsed::Malformed(what) => return Err(self.refuse(what)),
                Parsed::Partial => self.receive()?,
            }
        }
    }

    /// Receives more of a head.
    fn receive(&mut self) -> Result<(), End> {
        self.input.copy_within(self.begin..self.filled, 0);
        self.filled -= self.begin;
        self.begin = 0;
        if self.filled == self.input.len() {
            return Err(self.refuse("a head is longer than 16 KiB"));
        }
        match net::receive(self.fd, &mut self.input[self.filled..], Wait::Block) {
            Ok(0) if self.filled > 0 => Err(End::Fault("a request was cut short".to_owned())),
            Ok(0) => Err(End::Done),
            Ok(got) => {
                self.filled += got;
                self.served.bytes_in += got as u64;
                Ok(())
            }
            // The application was ended while it asked nothing.
            Err(Errno::CONNRESET) if self.filled == 0 => Err(End::Done),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Does what is asked, after the delay.
    fn act(&mut self, request: &Request, read_ns: u64, delay_ns: u64) -> Result<(), End> {
        if !matches!(request.way, Way::Put { .. } | Way::Refused { .. })
            && !matches!(request.body, Body::None | Body::Length(0))
        {
            return Err(self.refuse("a body where none belongs"));
        }
        let answer = match &request.way {
            Way::Put { instance, kind, id } => self.upload(request, (*instance, *kind, *id))?,
            Way::Refused { answer } => self.drain_refused(request, *answer)?,
            Way::Computed { .. } | Way::Kept { .. } | Way::Place => Answer::OK,
        };
        // An upload has all come by now; the rest came with its head.
        let read_ns = if matches!(request.way, Way::Put { .. }) { clock::now_ns() } else { read_ns };
        if delay_ns > 0 && !clock::sleep_until(read_ns + delay_ns, &self.shared.stop) {
            return Err(End::Done);
        }
        let sent = match &request.way {
            Way::Computed { file, kind } => self.filler.send(self.fd, *file, *kind)?,
            Way::Kept { instance, kind, id } => self.send_kept(*instance, *kind, *id)?,
            Way::Place => Answer::OK.send(self.fd, "text/xml", PLACE, false)?,
            Way::Put { .. } | Way::Refused { .. } => self.say(answer, false)?,
        };
        self.shared.tally.service().record(clock::now_ns().saturating_sub(read_ns));
        self.served.requests += 1;
        self.served.bytes_out += sent;
        Ok(())
    }

    /// Sends a file that was uploaded.
    fn send_kept(&self, instance: u32, kind: StoredFile, id: u64) -> Result<u64, End> {
        match self.store.folder.find(instance, kind, id) {
            Ok(Some((file, bytes))) => Ok(kept::send(self.fd, &file, bytes, kind)?),
            Ok(None) => self.say(Answer::UNKNOWN, false),
            Err(errno) => {
                self.shared.tally.error(format!("a file that was uploaded cannot be read: {}", reason_of(errno)));
                self.say(Answer::BROKEN, false)
            }
        }
    }

    /// Sends an answer that says no more than its status, and counts it where it is a refusal.
    fn say(&self, answer: Answer, last: bool) -> Result<u64, End> {
        if let Some(reason) = answer.reason {
            self.shared.tally.error(reason.to_owned());
        }
        Ok(answer.send(self.fd, "text/plain", b"", last)?)
    }

    /// Tells the application that it sent no request, and the run why.
    fn refuse(&mut self, what: &str) -> End {
        // The reason is reported even if this fails.
        if Answer::MALFORMED.send(self.fd, "text/plain", b"", true).is_ok() {
            self.linger();
        }
        End::Fault(format!("malformed request: {what}"))
    }
}
