//! The controller's end of a channel to one agent.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::WireError;
use crate::frame::{BUILD, Greeting, encode, read_frame};
use crate::message::{FromAgent, Reply, Request, ToAgent};
use crate::text;
use tare_model::packed::{Packed, Task, unpack_outcome};

type Answer = Result<Reply, String>;

/// Requests that may wait to be written. An agent that reads takes each at once.
const UNWRITTEN: usize = 64;

/// How long the reader is given to see how the channel ended, when writing failed.
const READER_KNOWS: Duration = Duration::from_millis(50);

/// State shared with the thread that reads: who waits for what, and why the channel ended.
#[derive(Default)]
struct Waiting {
    /// Number of the last request.
    last: u64,
    /// Every request that was not answered yet, also those that nobody waits for any longer.
    answers: HashMap<u64, mpsc::Sender<Answer>>,
    ended: Option<String>,
}

impl Waiting {
    /// Nothing more is to be expected. The first reason is the cause, later ones follow from it.
    fn end(&mut self, reason: String) {
        self.ended.get_or_insert(reason);
        self.answers.clear();
    }
}

/// A channel to one agent. Requests may be made from several threads at once, and a long one (a
/// driver's run) does not hold up the others.
///
/// The agent at the other end is not trusted. Whatever it does, a call ends after its timeout, also when the agent
/// does not read; what it sends is bounded in length and in memory; an answer that nobody asked for ends the
/// channel; and the text in its answers can be shown as it is.
pub struct Link {
    frames: mpsc::SyncSender<Vec<u8>>,
    waiting: Arc<Mutex<Waiting>>,
    version: String,
    kernel_age: Duration,
    /// Set once the agent was asked to end all that it does.
    cancelled: AtomicBool,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("version", &self.version).finish_non_exhaustive()
    }
}

/// A lock that a panic elsewhere cannot take away from us: the data behind it is always whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Greets the agent at the other end and waits at most `timeout` for its greeting and hello.
    /// `lifetime` is how long the agent may live, whatever happens to us.
    ///
    /// # Errors
    /// When the other end is not tare, is of another protocol, is gone or stays silent.
    pub fn open(
        mut reader: Box<dyn Read + Send>,
        mut writer: Box<dyn Write + Send>,
        timeout: Duration,
        lifetime: Duration,
    ) -> Result<Self, WireError> {
        Greeting::ours().write(&mut *writer)?;
        let (greeted, greeting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let shared = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("agent-link".into())
            .spawn(move || {
                let result = Greeting::read(&mut *reader).and_then(Greeting::check);
                let go_on = result.is_ok();
                // The opener may have given up; then there is nobody to tell.
                let _ = greeted.send(result);
                if go_on {
                    let reason = read_answers(&mut *reader, &shared);
                    lock(&shared).end(reason);
                }
            })
            .map_err(|source| WireError::Io { doing: "starting the reading thread", source })?;
        let theirs = match greeting.recv_timeout(timeout) {
            Ok(result) => result?,
            Err(_) => return Err(WireError::Timeout { request: "greet", waited: timeout }),
        };
        Self::hello(writer, waiting, theirs.version, (timeout, lifetime))
    }

    /// Takes up the conversation with an agent that was restored from a snapshot. It was greeted by whoever it spoke with before, had answered
    /// all requests, and waits for the next one, over a stream that is new to us and not to it.
    ///
    /// # Errors
    /// When the other end is gone or stays silent, or sends what is no answer.
    pub fn take_up(
        mut reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        timeout: Duration,
        lifetime: Duration,
    ) -> Result<Self, WireError> {
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let shared = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("agent-link".into())
            .spawn(move || {
                let reason = read_answers(&mut *reader, &shared);
                lock(&shared).end(reason);
            })
            .map_err(|source| WireError::Io { doing: "starting the reading thread", source })?;
        // Another build would not have been greeted.
        Self::hello(writer, waiting, BUILD.to_owned(), (timeout, lifetime))
    }

    /// Begins to write, and says how long the agent may live.
    fn hello(
        mut writer: Box<dyn Write + Send>,
        waiting: Arc<Mutex<Waiting>>,
        version: String,
        (timeout, lifetime): (Duration, Duration),
    ) -> Result<Self, WireError> {
        let (frames, queue) = mpsc::sync_channel(UNWRITTEN);
        let shared = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("agent-writer".into())
            .spawn(move || write_requests(&mut *writer, &queue, &shared))
            .map_err(|source| WireError::Io { doing: "starting the writing thread", source })?;
        let cancelled = AtomicBool::new(false);
        let mut link = Self { frames, waiting, version, kernel_age: Duration::ZERO, cancelled };
        let lifetime_ns = u64::try_from(lifetime.as_nanos()).unwrap_or(u64::MAX);
        if let Reply::Hello { kernel_age_ns, .. } = link.call(Request::Hello { lifetime_ns }, timeout)? {
            link.kernel_age = Duration::from_nanos(kernel_age_ns);
        }
        Ok(link)
    }

    /// Version of the agent.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How old the agent's kernel was at the hello, as it says; zero where it says nothing.
    pub fn kernel_age(&self) -> Duration {
        self.kernel_age
    }

    /// Asks, and waits at most `timeout` for the answer.
    ///
    /// # Errors
    /// When the agent is gone, stays silent, or says that it could not.
    pub fn call(&self, request: Request, timeout: Duration) -> Result<Reply, WireError> {
        let name = request.name();
        self.ask(request, name, timeout)
    }

    /// Has the workload's part in the agent do a task at once, and waits at most `timeout` for what comes of it.
    ///
    /// # Errors
    /// Those of [`Self::call`], and when what comes is of another kind.
    pub fn perform<T: Task>(&self, task: &T, timeout: Duration) -> Result<T::Outcome, WireError> {
        match self.ask(Request::Call(Packed::of(task)?), T::KIND, timeout)? {
            Reply::Called { outcome } => Ok(unpack_outcome::<T>(&outcome)?),
            _ => Err(WireError::Unexpected { request: T::KIND }),
        }
    }

    fn ask(&self, request: Request, name: &'static str, timeout: Duration) -> Result<Reply, WireError> {
        if matches!(request, Request::Cancel) {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        let (sender, answer) = mpsc::channel();
        let id = {
            let mut waiting = lock(&self.waiting);
            if let Some(reason) = &waiting.ended {
                return Err(WireError::Gone { reason: reason.clone() });
            }
            waiting.last += 1;
            let id = waiting.last;
            waiting.answers.insert(id, sender);
            id
        };
        if let Err(error) = self.send(ToAgent { id, request }) {
            // It was never sent, so no answer may come.
            lock(&self.waiting).answers.remove(&id);
            return Err(error);
        }
        match answer.recv_timeout(timeout) {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(reason)) => Err(WireError::Refused { request: name, reason }),
            Err(RecvTimeoutError::Timeout) => Err(WireError::Timeout { request: name, waited: timeout }),
            Err(RecvTimeoutError::Disconnected) => {
                let reason = lock(&self.waiting).ended.clone().unwrap_or_else(|| "channel closed".into());
                Err(WireError::Gone { reason })
            }
        }
    }

    /// Hands a request to the thread that writes.
    fn send(&self, message: ToAgent) -> Result<(), WireError> {
        let gone = || {
            let ended = lock(&self.waiting).ended.clone();
            WireError::Gone { reason: ended.unwrap_or_else(|| "it has stopped reading".into()) }
        };
        self.frames.try_send(encode(&message)?).map_err(|_| gone())
    }

    /// Whether the agent was asked to end all that it does ([`Request::Cancel`]), from here: whoever waits for it here need wait no longer.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether the agent is known to be gone, and how that was seen.
    pub fn ended(&self) -> Option<String> {
        lock(&self.waiting).ended.clone()
    }
}

/// Deals answers to those who wait, until the channel ends; returns how it ended.
fn read_answers(reader: &mut dyn Read, waiting: &Mutex<Waiting>) -> String {
    loop {
        match read_frame::<FromAgent>(reader) {
            Ok(Some(FromAgent { id, result })) => {
                let Some(sender) = lock(waiting).answers.remove(&id) else {
                    return format!("it answered a request that was not made, number {id}");
                };
                let result = result.map(text::clean).map_err(|reason| tare_model::clean::clipped(&reason));
                // The caller may have given up waiting.
                let _ = sender.send(result);
            }
            Ok(None) => return "it closed the channel".into(),
            Err(error) => return error.to_string(),
        }
    }
}

/// Writes requests until there are no more, or nobody takes them.
fn write_requests(writer: &mut dyn Write, queue: &mpsc::Receiver<Vec<u8>>, waiting: &Mutex<Waiting>) {
    for frame in queue {
        if let Err(error) = writer.write_all(&frame).and_then(|()| writer.flush()) {
            // The reader usually knows better why the other end is gone than a broken pipe tells.
            std::thread::sleep(READER_KNOWS);
            return lock(waiting).end(format!("writing a message: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::write_frame;
    use std::os::unix::net::UnixStream;
    use tare_model::drive::BusyWork;

    /// An agent of a few lines: greets, says hello, then does `behave` with each request.
    fn agent(
        behave: impl Fn(ToAgent, &mut UnixStream) + Send + 'static,
    ) -> (Box<dyn Read + Send>, Box<dyn Write + Send>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            Greeting::ours().write(&mut theirs).unwrap();
            Greeting::read(&mut theirs).unwrap();
            while let Ok(Some(message)) = read_frame::<ToAgent>(&mut theirs) {
                match message.request {
                    Request::Hello { .. } => {
                        let hello = Reply::Hello { version: "0".into(), pid: 1, kernel_age_ns: 1_500_000_000 };
                        answer(message.id, Ok(hello), &mut theirs);
                    }
                    _ => behave(message, &mut theirs),
                }
            }
        });
        (Box::new(ours.try_clone().unwrap()), Box::new(ours))
    }

    fn answer(id: u64, result: Answer, to: &mut UnixStream) {
        write_frame(to, &FromAgent { id, result }).unwrap();
    }

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn answers_find_their_callers_and_refusals_their_words() {
        let (reader, writer) = agent(|m, to| {
            let result = match m.request {
                Request::Clock => Ok(Reply::Clock { monotonic_ns: m.id }),
                Request::Busy { .. } => Err("no CPU to be had".into()),
                _ => Ok(Reply::Done),
            };
            answer(m.id, result, to);
        });
        let link = Link::open(reader, writer, TIMEOUT, TIMEOUT).unwrap();
        assert_eq!(link.kernel_age(), Duration::from_millis(1500));
        assert!(matches!(link.call(Request::Clock, TIMEOUT), Ok(Reply::Clock { .. })));
        let error = link.call(Request::Busy { threads: 1, work: BusyWork::Mixed }, TIMEOUT).unwrap_err().to_string();
        assert!(error.contains("busy loops") && error.contains("no CPU to be had"), "{error}");
    }

    #[test]
    fn an_agent_that_was_greeted_before_is_taken_up_in_the_middle() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            // No greeting: it has had one.
            while let Ok(Some(message)) = read_frame::<ToAgent>(&mut theirs) {
                let reply = match message.request {
                    Request::Hello { .. } => Reply::Hello { version: "0".into(), pid: 1, kernel_age_ns: 7 },
                    _ => Reply::Done,
                };
                answer(message.id, Ok(reply), &mut theirs);
            }
        });
        let reader = Box::new(ours.try_clone().unwrap());
        let link = Link::take_up(reader, Box::new(ours), TIMEOUT, TIMEOUT).unwrap();
        assert_eq!((link.kernel_age(), link.version()), (Duration::from_nanos(7), BUILD));
        assert!(matches!(link.call(Request::Cancel, TIMEOUT), Ok(Reply::Done)));
    }

    #[test]
    fn an_agent_that_stays_silent_is_distinguished_from_one_that_dies() {
        let (reader, writer) = agent(|m, to| match m.request {
            Request::Facts => {}
            Request::Bye => to.shutdown(std::net::Shutdown::Both).unwrap(),
            _ => answer(m.id, Ok(Reply::Done), to),
        });
        let link = Link::open(reader, writer, TIMEOUT, TIMEOUT).unwrap();
        assert!(matches!(link.call(Request::Facts, Duration::from_millis(50)), Err(WireError::Timeout { .. })));
        assert!(matches!(link.call(Request::Bye, TIMEOUT), Err(WireError::Gone { .. })));
        assert!(link.ended().is_some());
        assert!(matches!(link.call(Request::Clock, TIMEOUT), Err(WireError::Gone { .. })));
    }
}
