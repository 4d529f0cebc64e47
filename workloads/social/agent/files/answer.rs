//! What the store says.

use std::io::Write;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::net;

/// Longest head of an answer, with its body where that is short.
const ROOM: usize = 512;

/// The status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    status: &'static str,
    /// What a refusal is counted under.
    pub reason: Option<&'static str>,
}

impl Answer {
    /// Here it is.
    pub const OK: Self = Self { status: "200 OK", reason: None };
    /// It was kept.
    pub const CREATED: Self = Self { status: "201 Created", reason: None };
    /// No request.
    pub const MALFORMED: Self = Self { status: "400 Bad Request", reason: None };
    /// A part of the address is missing.
    pub const NO_ADDRESS: Self =
        Self { status: "400 Bad Request", reason: Some("400: an address without street, city, state or zip") };
    /// A loaded file cannot be replaced.
    pub const LOADED: Self = Self { status: "403 Forbidden", reason: Some("403: a loaded file was uploaded") };
    /// Nothing can be there.
    pub const NO_PLACE: Self = Self { status: "404 Not Found", reason: Some("404: no file can have this path") };
    /// It could be there, but nobody has uploaded it.
    pub const UNKNOWN: Self = Self { status: "404 Not Found", reason: Some("404: a file that nobody has uploaded") };
    /// Neither got nor put.
    pub const NO_METHOD: Self =
        Self { status: "405 Method Not Allowed", reason: Some("405: a method other than GET and PUT") };
    /// The length of the file is missing.
    pub const NO_LENGTH: Self =
        Self { status: "411 Length Required", reason: Some("411: a file without Content-Length") };
    /// Too much.
    pub const TOO_LARGE: Self =
        Self { status: "413 Content Too Large", reason: Some("413: a file longer than 1,343,040 bytes") };
    /// The file system refused, and the reason is counted.
    pub const BROKEN: Self = Self { status: "500 Internal Server Error", reason: None };
    /// No room left.
    pub const FULL: Self =
        Self { status: "507 Insufficient Storage", reason: Some("507: no room left in the folder of the store") };

    /// Writes the head of an answer with so many bytes into `room`; returns how long it is. What does not fit is left out, which
    /// no status here comes near.
    pub fn head(self, content: &str, bytes: u64, last: bool, room: &mut [u8]) -> usize {
        let whole = room.len();
        let mut left: &mut [u8] = room;
        let end = if last { "Connection: close\r\n" } else { "" };
        let status = self.status;
        let _ = write!(left, "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {bytes}\r\n{end}\r\n");
        whole - left.len()
    }

    /// Sends a short answer; `last` says that the connection ends. Returns the bytes sent.
    pub fn send(self, fd: BorrowedFd<'_>, content: &str, body: &[u8], last: bool) -> Result<u64, Errno> {
        let mut room = [0; ROOM];
        let head = self.head(content, body.len() as u64, last, &mut room);
        let whole = head + body.len();
        room[head..whole].copy_from_slice(body);
        net::send_full(fd, &room[..whole], SendFlags::empty())?;
        Ok(whole as u64)
    }
}
