//! What must hold for any bytes on the channel between controller and agent. Used by the fuzz targets, and by a plain test
//! that replays the seeds.

use std::io::{Cursor, Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tare_model::text::readable;
use tare_wire::{FromAgent, Greeting, Link, Reply, Request, ToAgent, read_frame, write_frame};

/// Longer than any answer takes here: nothing waits for anybody but the reader, and that comes to its end.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes as an agent may send them: a greeting and frames.
pub fn from_agent(bytes: &[u8]) {
    if let Some(rest) = after_greeting(bytes) {
        frames::<FromAgent>(rest);
    }
}

/// The same, sent to a [`Link`] that makes requests.
pub fn to_a_link(bytes: &[u8]) {
    if let Some(rest) = after_greeting(bytes) {
        through_a_link(rest);
    }
}

/// Bytes as a controller may send them.
pub fn from_controller(bytes: &[u8]) {
    if let Some(rest) = after_greeting(bytes) {
        frames::<ToAgent>(rest);
    }
}

fn after_greeting(mut bytes: &[u8]) -> Option<&[u8]> {
    let greeting = Greeting::read(&mut bytes).ok()?;
    assert_readable(&greeting.version);
    Some(bytes)
}

/// Every message that decodes is written again as one that decodes to the same.
fn frames<T: serde::Serialize + serde::de::DeserializeOwned>(mut reader: &[u8]) {
    while let Ok(Some(message)) = read_frame::<T>(&mut reader) {
        let mut once = Vec::new();
        write_frame(&mut once, &message).expect("what was read can be written");
        let again: T = read_frame(&mut once.as_slice()).expect("what was written can be read").expect("one frame");
        let mut twice = Vec::new();
        write_frame(&mut twice, &again).expect("what was read can be written");
        assert!(once == twice, "a message changed on its way");
    }
}

/// An agent that gives its frames one by one, each after a request.
fn through_a_link(frames: &[u8]) {
    let written = Arc::new((Mutex::new(0), Condvar::new()));
    let mut greeting = Vec::new();
    Greeting::ours().write(&mut greeting).expect("memory can be written");
    let agent = Agent {
        frames: Cursor::new([&greeting, frames].concat()),
        until: greeting.len(),
        torn: false,
        given: 0,
        written,
    };
    let requests = Requests(Arc::clone(&agent.written));
    let Ok(link) = Link::open(Box::new(agent), Box::new(requests), TIMEOUT, TIMEOUT) else { return };
    while link.ended().is_none() {
        match link.call(Request::Facts, TIMEOUT) {
            Ok(reply) => reply_is_readable(&reply),
            Err(error) => assert!(error.to_string().lines().all(|line| readable(line) == line), "{error:?}"),
        }
    }
}

fn reply_is_readable(reply: &Reply) {
    let pairs = |pairs: &[(String, String)]| pairs.iter().for_each(|(a, b)| (assert_readable(a), assert_readable(b)).0);
    let counts = |counts: &[(String, u64)]| counts.iter().for_each(|(reason, _)| assert_readable(reason));
    match reply {
        Reply::Hello { version, .. } => assert_readable(version),
        Reply::Facts(facts) => pairs(&facts.facts),
        Reply::Served(report) => (counts(&report.errors), pairs(&report.granted)).0,
        Reply::Driven(result) => {
            counts(&result.errors);
            pairs(&result.granted);
            result.steps.iter().for_each(|step| assert_readable(&step.name));
        }
        Reply::Samples { samples, .. } => samples.iter().for_each(|sample| assert_readable(&sample.series)),
        _ => {}
    }
}

fn assert_readable(text: &str) {
    assert_eq!(readable(text), text, "text came through unfit to be shown");
}

/// Writes so far, and how to hear of one.
type Written = Arc<(Mutex<usize>, Condvar)>;

struct Agent {
    frames: Cursor<Vec<u8>>,
    /// Where the frame that is given now ends.
    until: usize,
    /// Whether that frame announces more than there is: its end comes without a further request.
    torn: bool,
    /// Pieces given: the greeting, then one frame for each request.
    given: usize,
    written: Written,
}

impl Read for Agent {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let at = self.frames.position() as usize;
        if at == self.until && !self.torn {
            self.given += 1;
            let (count, heard) = &*self.written;
            // The controller's own greeting is the first write.
            let waited = heard.wait_timeout_while(count.lock().unwrap(), TIMEOUT, |count| *count <= self.given);
            drop(waited);
            let rest = &self.frames.get_ref()[at..];
            let length = rest.first_chunk().map_or(4, |&length| 4 + u32::from_le_bytes(length) as usize);
            self.torn = length > rest.len();
            self.until = at + length.min(rest.len());
        }
        let most = buffer.len().min(self.until - at);
        self.frames.read(&mut buffer[..most])
    }
}

struct Requests(Written);

impl Write for Requests {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        *self.0.0.lock().unwrap() += 1;
        self.0.1.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
