//! One conversation with a controller.
//!
//! One thread reads requests and answers the quick ones at once; whatever takes time gets a thread of
//! its own; one thread writes answers from a queue without bound (there is at most one answer a
//! request), so that a controller that has stopped reading never stops a measurement.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tare_wire::{FromAgent, Greeting, Reply, Request, ToAgent, WireError, read_frame, write_frame};

use crate::work::Work;
use crate::{age, children, exec, exit, facts, fetch, files};

/// How long the agent waits for the hello of a controller before it gives up.
const HELLO_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a goodbye may take to get out.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a conversation ended.
#[derive(Debug)]
pub enum Ended {
    /// The controller said goodbye.
    Bye,
    /// The controller closed the channel, or is gone.
    Closed,
    /// What came was no message of this protocol.
    Broken(WireError),
}

impl Ended {
    /// The exit code that tells it.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Bye | Self::Closed => exit::DONE,
            Self::Broken(_) => exit::BAD_CHANNEL,
        }
    }
}

/// What the writing thread is given.
enum Outgoing {
    Answer(FromAgent),
    /// Tells when everything before it is written.
    Flushed(mpsc::Sender<()>),
}

/// What the threads of a conversation share.
struct Session {
    work: Work,
    outgoing: mpsc::Sender<Outgoing>,
    lifetime: mpsc::Sender<Duration>,
    greeted: AtomicBool,
}

/// Greets, then serves requests until the channel ends. What is still running then runs on until the
/// caller ends the process, which it should do by [`exit::now`].
pub fn run(mut reader: impl Read, writer: impl Write + Send + 'static) -> Ended {
    match converse(&mut reader, writer) {
        Ok(ended) => ended,
        Err(error) if is_gone(&error) => Ended::Closed,
        Err(error) => Ended::Broken(error),
    }
}

/// A controller that was killed leaves a torn frame or a broken pipe behind: it is gone, and nothing
/// is wrong with the channel.
fn is_gone(error: &WireError) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error, WireError::Io { source, .. } if matches!(source.kind(), UnexpectedEof | BrokenPipe | ConnectionReset))
}

fn converse(reader: &mut dyn Read, mut writer: impl Write + Send + 'static) -> Result<Ended, WireError> {
    let (lifetime, granted) = mpsc::channel();
    thread("deadline", move || keep_time(&granted))?;
    children::adopt_orphans();
    // Both ends greet without waiting for the other, so that different versions still hear each other.
    Greeting::ours().write(&mut writer)?;
    Greeting::read(reader)?.check()?;
    let (outgoing, queue) = mpsc::channel();
    thread("answers", move || write_answers(&mut writer, &queue))?;
    let session = Arc::new(Session { work: Work::default(), outgoing, lifetime, greeted: AtomicBool::new(false) });
    while let Some(message) = read_frame::<ToAgent>(reader)? {
        if matches!(message.request, Request::Bye) {
            session.answer(message.id, Ok(Reply::Done));
            let (flushed, seen) = mpsc::channel();
            // A controller that no longer reads gets no goodbye.
            let _ = session.outgoing.send(Outgoing::Flushed(flushed)).map(|()| seen.recv_timeout(LAST_WORDS));
            return Ok(Ended::Bye);
        }
        take(&session, message);
    }
    Ok(Ended::Closed)
}

fn thread(name: &'static str, body: impl FnOnce() + Send + 'static) -> Result<(), WireError> {
    let started = std::thread::Builder::new().name(name.into()).spawn(body);
    started.map(drop).map_err(|source| WireError::Io { doing: "starting a thread of the agent", source })
}

/// Ends the process when its time is over. Until the hello says how long that is, it is short.
fn keep_time(granted: &mpsc::Receiver<Duration>) {
    let mut timeout = HELLO_TIMEOUT;
    loop {
        match granted.recv_timeout(timeout) {
            Ok(lifetime) => timeout = lifetime,
            Err(RecvTimeoutError::Timeout) => {
                // Standard error may be closed; the exit code says the same.
                let _ = writeln!(std::io::stderr(), "tare-agent: ended, {timeout:?} after its lifetime was last set");
                exit::now(exit::LIFETIME_OVER);
            }
            // The conversation is over and the process about to end.
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn write_answers(writer: &mut dyn Write, queue: &mpsc::Receiver<Outgoing>) {
    for outgoing in queue {
        match outgoing {
            Outgoing::Flushed(seen) => {
                let _ = seen.send(());
            }
            Outgoing::Answer(answer) => {
                let id = answer.id;
                let mut result = write_frame(writer, &answer);
                if let Err(error @ (WireError::TooLong { .. } | WireError::Malformed { .. })) = &result {
                    result = write_frame(writer, &FromAgent { id, result: Err(error.to_string()) });
                }
                if result.is_err() {
                    // Nobody is left to work for.
                    exit::now(exit::DONE);
                }
            }
        }
    }
}

/// Answers a quick request at once, and gives any other a thread.
fn take(session: &Arc<Session>, message: ToAgent) {
    let ToAgent { id, request } = message;
    if !session.greeted.load(Ordering::Relaxed) && !matches!(request, Request::Hello { .. }) {
        session.answer(id, Err("the first request must be a hello, which says how long the agent may live".into()));
        return;
    }
    match request {
        Request::Hello { lifetime_ns } => {
            session.greeted.store(true, Ordering::Relaxed);
            let sent = session.lifetime.send(Duration::from_nanos(lifetime_ns));
            let (version, pid) = (env!("CARGO_PKG_VERSION").to_owned(), std::process::id());
            let hello = Reply::Hello { version, pid, kernel_age_ns: age::now_ns() };
            session.answer(id, sent.map(|()| hello).map_err(|_| "the agent is ending".to_owned()));
        }
        // Answered at once: a restored guest's first work is not to be the making of a thread.
        Request::Keep { secret } => session.answer(id, session.work.keep(secret)),
        Request::Kept => session.answer(id, session.work.kept()),
        Request::Clock => session.answer(id, Ok(Reply::Clock { monotonic_ns: facts::monotonic_ns() })),
        Request::Cancel => {
            session.work.cancel();
            session.answer(id, Ok(Reply::Done));
        }
        Request::BusyIterations { busy } => session.answer(id, session.work.busy_iterations(busy)),
        slow => {
            let worker = Arc::clone(session);
            let (name, came_ns) = (slow.name(), facts::monotonic_ns());
            let started = thread("request", move || worker.answer(id, perform(&worker.work, slow, came_ns)));
            if let Err(error) = started {
                session.answer(id, Err(format!("cannot {name}: {error}")));
            }
        }
    }
}

/// Does what takes time; the request came at a moment of CLOCK_MONOTONIC.
fn perform(work: &Work, request: Request, came_ns: u64) -> Result<Reply, String> {
    match request {
        Request::Facts => Ok(Reply::Facts(facts::read())),
        Request::Describe { redact } => Ok(Reply::Described(Box::new(facts::machine(redact)))),
        Request::Serve { task, bind, from } => work.serve(&task, bind, from),
        Request::StopServe { server } => work.stop_serve(server),
        Request::Admit { token } => work.admit(token),
        Request::PrepareDrive(spec) => work.prepare_drive(*spec),
        Request::StartDrive { drive, start_at_ns } => work.start_drive(drive, start_at_ns),
        Request::Busy { threads, work: kind } => work.busy(threads, kind),
        Request::StopBusy { busy } => work.stop_busy(busy),
        Request::RunBusy { busy, stretch } => work.run_busy(busy, came_ns, &stretch),
        Request::Exec(spec) => exec::run(&spec, work.commands()).map(Reply::Executed),
        Request::Start(spec) => work.start(spec),
        Request::Look { command } => work.look(command),
        Request::End { command } => work.end(command),
        Request::Hold(spec) => work.hold(&spec),
        Request::Held => Ok(work.held()),
        Request::Call(task) => work.call(&task),
        Request::PutFile { path, mode, offset, bytes, last } => files::put(&path, mode, offset, &bytes, last),
        Request::GetFile { path, offset, limit_bytes } => files::get(&path, offset, limit_bytes),
        Request::Fetch { address, path, timeout_ns, limit_bytes } => {
            fetch::get(address, &path, Duration::from_nanos(timeout_ns), limit_bytes)
        }
        Request::StartSampling { guest, interval_ns } => work.start_sampling(&guest, interval_ns),
        Request::StopSampling => work.stop_sampling(),
        // These are answered where they are read.
        Request::Hello { .. }
        | Request::Clock
        | Request::Cancel
        | Request::BusyIterations { .. }
        | Request::Keep { .. }
        | Request::Kept
        | Request::Bye => Err("the agent lost track of its requests".into()),
    }
}

impl Session {
    fn answer(&self, id: u64, result: Result<Reply, String>) {
        // Without a writer the process is about to end.
        let _ = self.outgoing.send(Outgoing::Answer(FromAgent { id, result }));
    }
}
