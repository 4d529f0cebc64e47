//! One client: a pipeline of requests after the other on its connection, every answer verified.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::choice::{Chooser, Mix};
use super::data::{Book, version, writer};
use super::pipe::{Broken, Pipe};
use super::protocol::{Answer, Verb};
use super::spec::{Counts, KvDone, KvDrive, Protocol};
use crate::control::Control;
use crate::error::Failure;
use crate::operation::{Done, Operation};

/// Keys of which a client remembers what it wrote last.
const REMEMBERED: usize = 1024;
/// Refusals are counted by so many different texts; the others together.
const REASONS: usize = 20;

/// What the clients of a driver have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub drive: KvDrive,
    pub seed: u64,
    pub book: Book,
    pub mix: Mix,
}

/// A request that was sent.
#[derive(Debug, Clone)]
struct Sent {
    verb: Verb,
    number: u64,
    /// Where its key stands in what was sent.
    key: Range<usize>,
}

/// A client.
#[derive(Debug)]
pub(super) struct Client<'a> {
    shared: &'a Shared,
    control: &'a Control,
    pipe: Pipe,
    chooser: Chooser,
    sent: Vec<Sent>,
    account: Account<'a>,
    /// What the last pipeline came to.
    last: Counts,
    reasons: BTreeSet<String>,
}

/// What a client has written and seen.
#[derive(Debug)]
struct Account<'a> {
    book: &'a Book,
    protocol: Protocol,
    /// Its number as a writer, and the number below which others had ended before.
    writer: u32,
    oldest: u32,
    /// Values written so far.
    written: u64,
    /// Of some keys, the number and the last version written.
    own: Box<[Option<(u64, u64)>; REMEMBERED]>,
    done: KvDone,
}

impl<'a> Client<'a> {
    /// The client of a connection.
    pub fn new(shared: &'a Shared, control: &'a Control, index: u32, pipe: Pipe) -> Self {
        let Shared { drive, seed, book, mix } = shared;
        let account = Account {
            book,
            protocol: drive.protocol,
            writer: drive.first_writer + index,
            oldest: drive.oldest_writer,
            written: 0,
            own: Box::new([None; REMEMBERED]),
            done: KvDone::default(),
        };
        let chooser = Chooser::new(mix, *seed, index);
        let (sent, last, reasons) = (Vec::new(), Counts::default(), BTreeSet::new());
        Self { shared, control, pipe, chooser, sent, account, last, reasons }
    }

    /// What it did, and its connection, which stays open until all have ended.
    pub fn settle(self) -> (KvDone, Pipe) {
        (self.account.done, self.pipe)
    }

    /// Puts a pipeline of requests together.
    #[inline]
    fn write(&mut self) {
        let Self { shared, pipe, chooser, sent, account, .. } = self;
        let (protocol, book, out) = (shared.drive.protocol, &shared.book, &mut pipe.out);
        out.clear();
        sent.clear();
        for _ in 0..shared.drive.depth {
            let (verb, number) = chooser.next();
            let mut room = Book::room();
            let key = book.key(number, &mut room);
            let before = out.len();
            match verb {
                Verb::Get => protocol.get(out, key),
                Verb::Set => {
                    account.written += 1;
                    let (mark, rest) = book.value(number, version(account.writer, account.written));
                    protocol.set(out, key, (&mark, rest));
                }
            }
            let from = before + protocol.key_at(verb, key.len());
            sent.push(Sent { verb, number, key: from..from + key.len() });
        }
    }

    /// Sends the pipeline and takes the answers to it; the words of the first refusal or wrong answer, if any.
    #[inline]
    fn exchange(&mut self) -> Result<Option<String>, (Broken, usize)> {
        let Self { pipe, sent, account, last, .. } = self;
        *last = Counts { bytes_out: pipe.out.len() as u64, ..Counts::default() };
        pipe.send(None).map_err(|broken| (broken, 0))?;
        let (most, mut failed, mut version) = (account.book.longest(), None, account.written - sets(sent));
        for (at, request) in sent.iter().enumerate() {
            version += u64::from(request.verb == Verb::Set);
            loop {
                let answer = account.protocol.answer(request.verb, &pipe.out[request.key.clone()], most, pipe.came());
                if let Some((answer, bytes)) = answer.map_err(|fault| (fault.into(), at))? {
                    let took = account.took(request, version, answer, last);
                    failed = failed.or(took);
                    last.bytes_in += bytes as u64;
                    pipe.take(bytes);
                    break;
                }
                pipe.receive(None).map_err(|broken| (broken, at))?;
            }
        }
        Ok(failed)
    }

    /// Counts a connection that broke before the answer at `from` was whole.
    #[cold]
    fn broke(&mut self, broken: Broken, from: usize) -> Failure {
        let done = &mut self.account.done;
        let unanswered = &self.sent[from..];
        done.in_doubt.1 += sets(unanswered);
        done.in_doubt.0 += unanswered.len() as u64 - sets(unanswered);
        let ended = self.control.cut.load(Ordering::Relaxed);
        if matches!(broken, Broken::Fault(_) | Broken::TooMuch) && !ended {
            done.wrong_answer(|| broken.to_string());
            return Failure::fatal("an answer that is none");
        }
        Failure::fatal(broken.to_string())
    }

    /// The words that a refusal is counted under: a server may find many.
    #[cold]
    fn reason(&mut self, words: String) -> Failure {
        if self.reasons.len() < REASONS {
            self.reasons.insert(words.clone());
        }
        Failure::passing(if self.reasons.contains(&words) { words } else { "refused".to_owned() })
    }
}

/// How many SETs there are among requests.
fn sets(sent: &[Sent]) -> u64 {
    sent.iter().filter(|request| request.verb == Verb::Set).count() as u64
}

impl Account<'_> {
    /// Counts an answer; why the operation failed, if it did. `written` is the count that a SET's value was written with.
    #[inline]
    fn took(&mut self, request: &Sent, written: u64, answer: Answer<'_>, counts: &mut Counts) -> Option<String> {
        let number = request.number;
        match answer {
            Answer::Value(value) => {
                counts.gets += 1;
                let why = self.wrong(number, value)?;
                self.done.wrong_answer(|| format!("GET of key {number}: {why}"));
                Some("wrong value".to_owned())
            }
            Answer::Missing => {
                counts.gets += 1;
                counts.misses += 1;
                None
            }
            Answer::Stored => {
                counts.sets += 1;
                self.own[number as usize % REMEMBERED] = Some((number, version(self.writer, written)));
                None
            }
            Answer::Refused(words) => Some(self.refused(request, words)),
        }
    }

    #[cold]
    fn refused(&mut self, request: &Sent, words: String) -> String {
        self.done.refused += 1;
        if request.verb == Verb::Set {
            // Whether the old value is still there is the server's choice.
            self.own[request.number as usize % REMEMBERED] = None;
        }
        words
    }

    /// What is wrong with a key's value, if anything: it is not the key's, or older than what this client has written.
    #[inline]
    fn wrong(&self, number: u64, value: &[u8]) -> Option<String> {
        let Some(seen) = self.book.read(number, value) else {
            let (length, expected) = (value.len(), self.book.size(number));
            return Some(format!("{length} bytes that are no value of this key, whose values have {expected}"));
        };
        let by = writer(seen);
        let mine = by == u64::from(self.writer);
        if mine && seen > version(self.writer, self.written) {
            return Some("a value that nobody wrote".to_owned());
        }
        let (_, last) = self.own[number as usize % REMEMBERED].filter(|(of, _)| *of == number)?;
        let stale = if mine { seen < last } else { by < u64::from(self.oldest) };
        stale.then(|| "a value older than one whose SET was answered before".to_owned())
    }
}

impl KvDone {
    /// Counts a wrong answer and keeps what is said of the first.
    #[cold]
    fn wrong_answer(&mut self, what: impl FnOnce() -> String) {
        self.wrong += 1;
        if self.first_wrong.is_empty() {
            self.first_wrong = what();
        }
    }
}

impl Operation for &mut Client<'_> {
    #[inline]
    fn perform(&mut self) -> Result<Done, Failure> {
        self.write();
        let exchanged = self.exchange();
        self.account.done.all.add(&self.last);
        match exchanged {
            Ok(None) => Ok(Done::Answered),
            Ok(Some(words)) => Err(self.reason(words)),
            Err((broken, from)) => Err(self.broke(broken, from)),
        }
    }

    #[inline]
    fn counts(&mut self) {
        self.account.done.steady.add(&self.last);
    }
}
