//! Clients of a service as the session engine drives them: an operation is one request and its answer.

use super::judge::Judge;
use super::spec::{Asked, HttpDone};
use crate::session::draw::{Aliases, Dice};
use crate::session::engine::{Ended, Target, Users, Window};
use crate::session::fault::{BROKEN, Fault};
use crate::session::http::Head;
use crate::timeline::{Stage, Timeline};

/// What all clients share.
#[derive(Debug)]
pub(super) struct Way<'a> {
    pub requests: &'a [Asked],
    pub choice: &'a Aliases,
    pub target: Target,
    pub seed: u64,
    /// A session is one request: of an open loop, where each arrival is one, and where each has a connection of its own.
    pub single: bool,
    pub think_ns: u64,
    /// Whose clock clients think by.
    pub timeline: &'a Timeline,
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    dice: Dice,
    /// The request that is under way.
    which: usize,
    judge: Judge,
    /// It has asked for something, ever, and in this session.
    asked: (bool, bool),
    /// The operation's request has been handed out.
    sent: bool,
}

/// The clients of a thread, and what they counted.
#[derive(Debug)]
pub(super) struct Clients<'a> {
    way: Way<'a>,
    pub done: HttpDone,
}

impl<'a> Clients<'a> {
    pub fn new(way: Way<'a>) -> Self {
        let answered = vec![0; way.requests.len()];
        Self { way, done: HttpDone { answered, ..HttpDone::default() } }
    }

    /// What a client asks for now.
    fn asked(&self, client: &Client) -> &'a Asked {
        &self.way.requests[client.which]
    }
}

impl Users for Clients<'_> {
    type User = Client;
    /// Which of the requests it is.
    type Request = usize;

    const GATHERS: bool = true;
    const ANSWER_MAX: u64 = u64::MAX;

    fn user(&self, client: u32) -> Client {
        let dice = Dice::new(self.way.seed, client.into());
        Client { dice, which: 0, judge: Judge::default(), asked: (false, false), sent: false }
    }

    fn target(&self, _client: &Client) -> Target {
        self.way.target
    }

    fn arrive(&mut self, client: &mut Client, _number: u64) {
        client.asked.1 = false;
    }

    fn next(&mut self, client: &mut Client, from: u64, earliest: u64) -> Option<u64> {
        if self.way.single && client.asked.1 {
            return None;
        }
        let think = if client.asked.0 { self.way.think_ns } else { 0 };
        client.asked = (true, true);
        let due = if think > 0 { self.way.timeline.after(from, think) } else { from };
        Some(due.max(earliest))
    }

    fn begin(&mut self, client: &mut Client, _now: u64, _in_window: bool) {
        client.which = self.way.choice.choose(&mut client.dice);
        client.judge.clear();
        client.sent = false;
    }

    fn ask(&mut self, client: &mut Client, _outstanding: u16, request: &mut usize, _so_far: u64) -> Option<u64> {
        *request = client.which;
        let first = !std::mem::replace(&mut client.sent, true);
        first.then(|| self.asked(client).text.len() as u64)
    }

    fn piece<'r>(&'r mut self, request: &'r usize, at: u64) -> &'r [u8] {
        &self.way.requests[*request].text[at as usize..]
    }

    fn clear(_request: &mut usize) {}

    fn may_repeat(&self, client: &Client) -> bool {
        self.asked(client).repeats
    }

    fn sent(&mut self, _client: &mut Client, _again: bool, _in_window: bool) {}

    fn head(&mut self, client: &mut Client, _request: &mut usize, head: Head, _in_window: bool) -> Result<(), Fault> {
        client.judge.head(&self.asked(client).expect, head.status);
        Ok(())
    }

    fn body(&mut self, client: &mut Client, _request: &mut usize, piece: &[u8]) -> Result<(), Fault> {
        client.judge.body(&self.asked(client).expect, piece);
        Ok(())
    }

    fn answered(&mut self, client: &mut Client, _request: &mut usize, _so_far: u64) -> Result<(), Fault> {
        client.judge.end(&self.asked(client).expect)
    }

    fn completed(&mut self, client: &mut Client, _ended: &Ended, window: Window) {
        self.done.answered[client.which] += u64::from(window.ended);
    }

    fn cause(&self, client: &Client, fault: Fault) -> Fault {
        client.judge.fault().unwrap_or(fault)
    }

    fn failed(&mut self, client: &mut Client, ended: &Ended, _window: Window, _broken: bool) {
        if client.judge.is_busy() {
            self.done.refused += 1;
        } else if client.judge.fault().is_some() || ended.fault == Some(BROKEN) {
            self.done.wrong += 1;
            if self.done.first_wrong.is_empty() {
                let asked = self.asked(client);
                let words = match client.judge.fault() {
                    Some(_) => client.judge.words(&asked.expect),
                    None => "what is answered is not HTTP/1.1".to_owned(),
                };
                self.done.first_wrong = format!("{}: {words}", asked.name);
            }
        }
    }

    fn unfinished(&mut self, _client: &mut Client, _cut: &Ended, _due: Stage, _silent: bool) {}

    fn never_begun(&mut self, _client: Option<&mut Client>, _cut: &Ended) {}
}
