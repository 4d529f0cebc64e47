//! What is sent: whole requests, put together from pieces.

use crate::web::proof::proof;
use crate::web::spec::Parameter;
use tare_model::marker::file_id;

use super::asked::Asked;
use super::compile::{File, Page, Site, What};
use super::user::User;
use crate::session::draw::mix;
use crate::web::digits;

/// The day after the one that all files are of, so that none has changed since.
const UNCHANGED: &[u8] = b"If-Modified-Since: Sun, 02 Jan 2005 00:00:00 GMT\r\n";
/// Tokens that a thread has: 2^48 requests are 89 years at 100,000 a second.
const TOKENS: u32 = 48;

/// Tokens of one thread, and where it puts queries together.
#[derive(Debug)]
pub(crate) struct Tokens {
    key: u64,
    next: u64,
    query: Vec<u8>,
}

impl Tokens {
    /// Those of a thread of the run with this seed. No two of a run are the same: the numbers of threads and requests are mapped one
    /// to one.
    pub fn new(seed: u64, thread: u16) -> Self {
        Self { key: mix(seed), next: u64::from(thread) << TOKENS, query: Vec::with_capacity(256) }
    }

    fn draw(&mut self) -> u64 {
        self.next += 1;
        mix(self.key ^ self.next)
    }
}

impl User {
    /// Appends the request for what the user's state is. `cookie` is the value of `SESSION`, empty where the user has none yet; only
    /// pages carry it.
    pub fn ask(&mut self, site: &Site, cookie: &[u8], tokens: &mut Tokens, out: &mut Vec<u8>) -> Asked {
        match &site.states[usize::from(self.state)].what {
            What::Page(page) => self.ask_page(site, page, cookie, tokens, out),
            What::File(file) => self.ask_file(site, file, false, out),
            What::Download => self.ask_download(site, out),
        }
    }

    /// Appends the request for the n-th file of the user's state, `n` below [`Site::embedded`]. Whether only if it has changed is drawn.
    pub fn ask_embedded(&mut self, site: &Site, n: u16, out: &mut Vec<u8>) -> Asked {
        let part = &site.states[usize::from(self.state)].embedded[usize::from(n)];
        let unchanged = part.unchanged > 0 && self.dice.happens(part.unchanged);
        self.ask_file(site, &part.file, unchanged, out)
    }

    fn ask_page(&mut self, site: &Site, page: &Page, cookie: &[u8], tokens: &mut Tokens, out: &mut Vec<u8>) -> Asked {
        out.extend_from_slice(&page.head);
        tokens.query.clear();
        tokens.query.extend_from_slice(&page.query);
        for (name, parameter) in &page.parameters {
            out.extend_from_slice(name);
            let value = out.len();
            self.value(*parameter, tokens, out);
            tokens.query.push(b'&');
            tokens.query.extend_from_slice(&out[value..]);
        }
        out.extend_from_slice(&site.host);
        if !cookie.is_empty() {
            out.extend_from_slice(b"Cookie: SESSION=");
            out.extend_from_slice(cookie);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        Asked::page(self.state, proof(site.salt, &tokens.query))
    }

    fn value(&mut self, parameter: Parameter, tokens: &mut Tokens, out: &mut Vec<u8>) {
        match parameter {
            Parameter::User => digits(out, u64::from(self.number), 10),
            Parameter::Check => digits(out, u64::from(self.check_number()), 6),
            Parameter::Product => {
                digits(out, u64::from(self.directory), 5);
                out.push(b'-');
                digits(out, self.item.into(), 1);
            }
            Parameter::Choice(below) => digits(out, u64::from(self.dice.below(below)), 1),
            Parameter::Token => hexadecimal(out, tokens.draw()),
        }
    }

    const fn check_number(&self) -> u32 {
        self.number % 100_000 * 10 + self.check as u32
    }

    fn ask_file(&self, site: &Site, file: &File, unchanged: bool, out: &mut Vec<u8>) -> Asked {
        let begin = out.len();
        let (id, bytes) = match file {
            File::Fixed { head, id, bytes } => {
                out.extend_from_slice(head);
                (*id, *bytes)
            }
            File::Check { front } => {
                let length = if *front { site.files.checks.front } else { site.files.checks.back };
                out.extend_from_slice(&site.files.head);
                out.extend_from_slice(b"checks/");
                digits(out, u64::from(self.number), 10);
                out.push(b'/');
                digits(out, u64::from(self.check_number()), 6);
                out.extend_from_slice(if *front { b"-front.gif" } else { b"-back.gif" });
                (id_of(&out[begin..]), step(length, self.check.into()))
            }
            File::Product { class } => {
                out.extend_from_slice(&site.files.head);
                out.extend_from_slice(b"products/");
                digits(out, u64::from(self.directory), 5);
                out.push(b'/');
                digits(out, self.item.into(), 1);
                out.extend_from_slice(&[b'-', b'a' + class]);
                out.extend_from_slice(b".jpg");
                (id_of(&out[begin..]), step(site.files.products.classes[usize::from(*class)], self.item.into()))
            }
        };
        end(site, unchanged, out);
        Asked::file(id, bytes, unchanged)
    }

    fn ask_download(&mut self, site: &Site, out: &mut Vec<u8>) -> Asked {
        let begin = out.len();
        let files = &site.files;
        let directory = files.directories.choose(&mut self.dice);
        let class = files.classes.choose(&mut self.dice);
        let (items, length) = &files.items[class];
        let item = items.choose(&mut self.dice);
        out.extend_from_slice(&files.head);
        out.extend_from_slice(b"downloads/");
        digits(out, directory as u64, 5);
        out.push(b'/');
        digits(out, class as u64, 1);
        out.push(b'-');
        digits(out, item as u64, 1);
        out.extend_from_slice(b".bin");
        let id = id_of(&out[begin..]);
        end(site, false, out);
        Asked::file(id, step(*length, item as u64), false)
    }
}

/// What a file is known by whose request has been begun with `GET PATH`.
const fn id_of(request: &[u8]) -> u64 {
    let (_, path) = request.split_at(4);
    file_id(path)
}

const fn step((base, step): (u64, u64), i: u64) -> u64 {
    base + step * i
}

fn end(site: &Site, unchanged: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(&site.host);
    if unchanged {
        out.extend_from_slice(UNCHANGED);
    }
    out.extend_from_slice(b"\r\n");
}

fn hexadecimal(out: &mut Vec<u8>, number: u64) {
    let digit = |at: u32| b"0123456789abcdef"[(number >> (4 * at)) as usize & 15];
    out.extend((0..16).rev().map(digit));
}
