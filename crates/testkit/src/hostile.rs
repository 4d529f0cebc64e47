//! A platform whose guests' agents turn against their controller.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use tare_model::guest::GuestSpec;
use tare_platform::{Guest, Platform, PlatformError, Site};
use tare_wire::{FromAgent, Greeting, Link, MAX_FRAME_BYTES, Reply, Request, ToAgent, read_frame, write_frame};

use crate::forward::forward;
use crate::platform::NEIGHBOUR;

/// What an agent does when it is asked to start a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mischief {
    /// Announces a frame that is too long.
    TooLong,
    /// Sends frames that are none.
    Malformed,
    /// Answers what nobody asked, without end.
    Flood,
    /// Refuses in words that would take over a terminal.
    Escapes,
}

/// Words that would take over a terminal: they clear it, set its title, and turn the direction of writing.
const ESCAPES: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}fdp.exe\r";

/// How long the honest part of an agent may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A real platform, but for what the measured guest's agent does in the end.
pub struct HostilePlatform {
    pub inner: Box<dyn Platform>,
    pub mischief: Mischief,
}

impl Platform for HostilePlatform {
    forward!(look, disclosures, comparable, versions);

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>, PlatformError> {
        let inner = self.inner.start(site, spec)?;
        if spec.name.starts_with(NEIGHBOUR) {
            return Ok(inner);
        }
        let link = turn_against(Arc::clone(inner.link()), self.mischief).map_err(|why| PlatformError::Start {
            guest: spec.name.clone(),
            tried: "put a hostile agent in its place".into(),
            why: why.to_string(),
            remedy: "This is a defect of the test".into(),
            diagnostics: String::new(),
        })?;
        Ok(Box::new(HostileGuest { inner, link: Arc::new(link) }))
    }
}

/// A link to an agent that has the honest one do its work, until it is asked to start a server.
fn turn_against(honest: Arc<Link>, mischief: Mischief) -> Result<Link, tare_wire::WireError> {
    let io = |source| tare_wire::WireError::Io { doing: "making a hostile agent", source };
    let (ours, theirs) = UnixStream::pair().map_err(io)?;
    let reader = ours.try_clone().map_err(io)?;
    std::thread::Builder::new()
        .name("hostile-agent".into())
        // However it ends, the link sees the end of the stream.
        .spawn(move || drop(serve(theirs, &honest, mischief)))
        .map_err(io)?;
    Link::open(Box::new(reader), Box::new(ours), TIMEOUT, TIMEOUT)
}

fn serve(mut stream: UnixStream, honest: &Link, mischief: Mischief) -> Result<(), tare_wire::WireError> {
    Greeting::ours().write(&mut stream)?;
    Greeting::read(&mut stream)?;
    while let Some(ToAgent { id, request }) = read_frame::<ToAgent>(&mut stream)? {
        let result = match request {
            Request::Hello { .. } => Ok(Reply::Hello { version: String::new(), pid: 1, kernel_age_ns: 0 }),
            Request::Serve { .. } => match mischief.bytes() {
                Some(bytes) => return send_for_ever(&mut stream, &bytes),
                None => Err(ESCAPES.to_owned()),
            },
            other => honest.call(other, TIMEOUT).map_err(|error| error.to_string()),
        };
        write_frame(&mut stream, &FromAgent { id, result })?;
    }
    Ok(())
}

fn send_for_ever(stream: &mut UnixStream, bytes: &[u8]) -> Result<(), tare_wire::WireError> {
    loop {
        stream.write_all(bytes).map_err(|source| tare_wire::WireError::Io { doing: "doing harm", source })?;
    }
}

impl Mischief {
    /// What it sends without end; `None` for a plain answer.
    fn bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::TooLong => Some((MAX_FRAME_BYTES as u32 + 1).to_le_bytes().to_vec()),
            Self::Malformed => Some([&8_u32.to_le_bytes()[..], &[0xff; 8]].concat()),
            Self::Flood => {
                let mut bytes = Vec::new();
                let unasked = FromAgent { id: u64::MAX, result: Ok(Reply::Done) };
                write_frame(&mut bytes, &unasked).ok().map(|()| bytes)
            }
            Self::Escapes => None,
        }
    }

    /// What the reason of the trial's failure must contain.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "was announced, more than the",
            Self::Malformed => "could not be decoded",
            Self::Flood => "it answered a request that was not made",
            Self::Escapes => "owned",
        }
    }
}

/// A real guest behind a hostile agent.
struct HostileGuest {
    inner: Box<dyn Guest>,
    link: Arc<Link>,
}

impl Guest for HostileGuest {
    forward!(spec, address, groups, parity, facts, data, start_time_s, links, drops, kill, destroy);

    fn link(&self) -> &Arc<Link> {
        &self.link
    }

    fn diagnostics(&self) -> String {
        ESCAPES.to_owned()
    }
}
