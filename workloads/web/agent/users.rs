//! Users of a web site as the engine drives them: an operation is a page with all its files.
//!
//! The page is asked for first, before other connections are opened. When it has come in full, and was right, its files are asked for on all of the
//! session's connections, the next as soon as one has answered. So a page comes no later than one whose files are asked for while it is read,
//! but for the time its own body takes.

use std::net::SocketAddr;

use super::site::{Answer, Asked, Next, Site, Tally, Tokens, User};
use crate::session::engine::{Ended, Target, Users, Window};
use crate::session::fault::{Fault, UNFINISHED};
use crate::session::http::Head;
use crate::timeline::{Stage, Timeline};

/// Where requests go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub plain: SocketAddr,
    pub secure: SocketAddr,
    /// Everything is asked for over TLS.
    pub all_secure: bool,
}

/// What all threads share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'a> {
    pub site: &'a Site,
    pub ports: Ports,
    pub seed: u64,
    /// Think time where the site has none, nanoseconds.
    pub think_ns: u64,
    /// Whose clock users think by.
    pub timeline: &'a Timeline,
}

/// A user, and the page that is under way.
#[derive(Debug)]
pub(super) struct Visitor {
    user: User,
    cookie: Option<Box<[u8]>>,
    page: Page,
    /// The next file of the page to ask for.
    file: u16,
    state: u16,
}

/// How far a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    /// It is the first of its session.
    First,
    /// It has not been asked for.
    Due,
    Asked,
    Here,
}

/// A request, and what its answer must be.
#[derive(Debug, Default)]
pub(super) struct Request {
    text: Vec<u8>,
    asked: Asked,
    /// The head said that the file has not changed.
    bodiless: bool,
}

/// Users of one thread, and what it counts.
#[derive(Debug)]
pub(super) struct Visitors<'a> {
    way: Way<'a>,
    tokens: Tokens,
    pub types: Tally,
    pub exchanges: u64,
    pub not_modified: u64,
}

impl<'a> Visitors<'a> {
    pub fn new(way: Way<'a>, thread: u32) -> Self {
        let (tokens, types) = (Tokens::new(way.seed, thread as u16), Tally::new(way.site));
        Self { way, tokens, types, exchanges: 0, not_modified: 0 }
    }
}

impl Users for Visitors<'_> {
    type User = Visitor;
    type Request = Request;

    const GATHERS: bool = true;
    const ANSWER_MAX: u64 = u64::MAX;

    fn user(&self, _client: u32) -> Visitor {
        let user = User::fresh(self.way.site, 0, 0);
        Visitor { user, cookie: None, page: Page::First, file: 0, state: 0 }
    }

    fn target(&self, visitor: &Visitor) -> Target {
        let Ports { plain, secure, all_secure } = self.way.ports;
        let over_tls = all_secure || self.way.site.secure(visitor.state);
        Target { address: if over_tls { secure } else { plain }, secure: over_tls }
    }

    fn arrive(&mut self, visitor: &mut Visitor, number: u64) {
        visitor.user = User::fresh(self.way.site, self.way.seed, number);
        (visitor.cookie, visitor.page) = (None, Page::First);
    }

    fn next(&mut self, visitor: &mut Visitor, from: u64, earliest: u64) -> Option<u64> {
        let site = self.way.site;
        if visitor.user.next(site) == Next::End {
            return None;
        }
        let drawn = if visitor.user.thinks(site) { visitor.user.think_ns(site) } else { 0 };
        let think = if visitor.page != Page::First && self.way.think_ns > 0 { self.way.think_ns } else { drawn };
        // Whoever has seen a page fail does not think of the next before the pause is over.
        Some(self.way.timeline.after(from, think).max(earliest))
    }

    fn begin(&mut self, visitor: &mut Visitor, _now: u64, _in_window: bool) {
        (visitor.page, visitor.file, visitor.state) = (Page::Due, 0, visitor.user.state());
    }

    fn ask(&mut self, visitor: &mut Visitor, _outstanding: u16, request: &mut Request, _so_far: u64) -> Option<u64> {
        let site = self.way.site;
        request.asked = match visitor.page {
            Page::First | Page::Due => {
                visitor.page = Page::Asked;
                let cookie = visitor.cookie.as_deref().unwrap_or_default();
                visitor.user.ask(site, cookie, &mut self.tokens, &mut request.text)
            }
            Page::Here if visitor.file < site.embedded(visitor.state) => {
                let file = visitor.file;
                visitor.file += 1;
                visitor.user.ask_embedded(site, file, &mut request.text)
            }
            Page::Asked | Page::Here => return None,
        };
        Some(request.text.len() as u64)
    }

    fn piece<'r>(&'r mut self, request: &'r Request, at: u64) -> &'r [u8] {
        &request.text[at as usize..]
    }

    fn clear(request: &mut Request) {
        request.text.clear();
    }

    fn sent(&mut self, _visitor: &mut Visitor, _again: bool, in_window: bool) {
        self.exchanges += u64::from(in_window);
    }

    fn head(&mut self, visitor: &mut Visitor, request: &mut Request, head: Head, in_window: bool) -> Result<(), Fault> {
        if head.cookie.is_some() {
            visitor.cookie = head.cookie;
        }
        request.bodiless = request.asked.status(head.status)? == Answer::NotModified;
        self.not_modified += u64::from(request.bodiless && in_window);
        Ok(())
    }

    fn body(&mut self, _visitor: &mut Visitor, request: &mut Request, piece: &[u8]) -> Result<(), Fault> {
        request.asked.feed(self.way.site, piece)
    }

    fn answered(&mut self, visitor: &mut Visitor, request: &mut Request, _so_far: u64) -> Result<(), Fault> {
        visitor.page = Page::Here;
        if request.bodiless { Ok(()) } else { request.asked.finish(self.way.site) }
    }

    fn completed(&mut self, visitor: &mut Visitor, ended: &Ended, window: Window) {
        if window.due && !window.ended {
            self.types.record_late(self.way.site, visitor.state, ended);
        } else {
            self.types.record(self.way.site, visitor.state, ended, window.ended);
        }
    }

    fn failed(&mut self, visitor: &mut Visitor, ended: &Ended, window: Window, _broken: bool) {
        self.types.record(self.way.site, visitor.state, ended, window.due || window.ended);
    }

    fn unfinished(&mut self, visitor: &mut Visitor, cut: &Ended, due: Stage, silent: bool) {
        if due == Stage::Steady {
            let fault = (silent && self.way.site.is_download(visitor.state)).then_some(UNFINISHED);
            self.types.record_late(self.way.site, visitor.state, &Ended { fault, ..*cut });
        }
    }

    fn never_begun(&mut self, _visitor: Option<&mut Visitor>, cut: &Ended) {
        self.types.record_late(self.way.site, self.way.site.first(), cut);
    }
}
