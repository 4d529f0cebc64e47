//! All keys set, all keys read: what is done before and after load, by one connection.

use std::sync::atomic::AtomicBool;

use tare_model::drive::SocketOptions;

use super::data::{Book, LOADED};
use super::pipe::{Broken, Limit, Pipe};
use super::protocol::{Answer, Verb};
use super::spec::{KvFailure, KvFound, KvSweep};
use crate::DriverError;
use crate::clock::now_ns;
use crate::task::Calls;

/// Requests that are under way at one time, and bytes of their values.
const DEPTH: u64 = 128;
const BYTES: usize = 1 << 20;

impl Calls for KvSweep {
    fn call(self, cancel: &AtomicBool) -> Result<KvFound, KvFailure> {
        let limit = Limit { until_ns: now_ns().saturating_add(self.timeout_ns), cancel };
        let book = Book::new(self.keys).map_err(KvFailure::of)?;
        let most = BYTES + 2 * book.longest();
        let pipe = Pipe::open(self.server, self.protocol, &SocketOptions::default(), most, limit);
        let pipe = pipe.map_err(KvFailure::of)?;
        pipe.bounded(true).map_err(|broken| KvFailure::at("begin", &broken))?;
        let mut sweep = Sweep { of: &self, book, pipe, limit, found: KvFound::default() };
        if self.fill {
            sweep.all(Verb::Set)?;
        }
        sweep.all(Verb::Get)?;
        Ok(sweep.found)
    }
}

impl KvFailure {
    /// A server that could not be used at all.
    pub fn of(error: DriverError) -> Self {
        Self { unreachable: matches!(error, DriverError::Connect { .. }), why: error.to_string() }
    }

    /// What went wrong after that.
    fn at(tried: &str, broken: &Broken) -> Self {
        Self { why: format!("{tried}: {broken}"), unreachable: false }
    }
}

struct Sweep<'a> {
    of: &'a KvSweep,
    book: Book,
    pipe: Pipe,
    limit: Limit<'a>,
    found: KvFound,
}

impl Sweep<'_> {
    /// Asks one thing of all keys.
    fn all(&mut self, verb: Verb) -> Result<(), KvFailure> {
        let depth = DEPTH.min((BYTES / self.book.longest().max(1)) as u64).max(1);
        let mut from = 0;
        while from < self.book.count() {
            let to = (from + depth).min(self.book.count());
            self.some(verb, from, to)?;
            from = to;
        }
        Ok(())
    }

    /// Asks one thing of keys from one number to below another.
    fn some(&mut self, verb: Verb, from: u64, to: u64) -> Result<(), KvFailure> {
        let (protocol, mut room) = (self.of.protocol, Book::room());
        self.pipe.out.clear();
        for number in from..to {
            let key = self.book.key(number, &mut room);
            match verb {
                Verb::Get => protocol.get(&mut self.pipe.out, key),
                Verb::Set => {
                    let (mark, rest) = self.book.value(number, LOADED);
                    protocol.set(&mut self.pipe.out, key, (&mark, rest));
                }
            }
        }
        let at = |number: u64| move |broken: Broken| KvFailure::at(&format!("{verb:?} of key {number}"), &broken);
        self.pipe.send(Some(self.limit)).map_err(at(from))?;
        for number in from..to {
            self.one(verb, number).map_err(at(number))??;
        }
        Ok(())
    }

    /// Takes the answer about one key.
    fn one(&mut self, verb: Verb, number: u64) -> Result<Result<(), KvFailure>, Broken> {
        let Self { of, book, pipe, limit, found } = self;
        let mut room = Book::room();
        let key = book.key(number, &mut room);
        loop {
            let Some((answer, bytes)) = of.protocol.answer(verb, key, book.longest(), pipe.came())? else {
                pipe.receive(Some(*limit))?;
                continue;
            };
            match answer {
                Answer::Stored => {}
                Answer::Missing => found.missing += 1,
                Answer::Value(value) => match book.read(number, value) {
                    Some(version) if !of.fill || version == LOADED => found.sound += 1,
                    seen => found.another(number, value.len(), seen),
                },
                Answer::Refused(words) => {
                    let why = format!("{verb:?} of key {number} was refused: {words}");
                    return Ok(Err(KvFailure { why, unreachable: false }));
                }
            }
            pipe.take(bytes);
            return Ok(Ok(()));
        }
    }
}

impl KvFound {
    #[cold]
    fn another(&mut self, number: u64, bytes: usize, version: Option<u64>) {
        self.wrong += 1;
        if self.first_wrong.is_empty() {
            let what = if version.is_some() { "another version than was set" } else { "no value of this key" };
            self.first_wrong = format!("key {number} has {bytes} bytes that are {what}");
        }
    }
}
