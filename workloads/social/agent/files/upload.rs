//! Bodies of requests: files that are uploaded, and what has to be read past.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::social::spec::StoredFile;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, shutdown};
use tare_model::drive::Wait;

use super::answer::Answer;
use super::{Connection, End, MOST_FILE, Request};
use crate::error::reason_of;
use crate::head::Body;
use crate::net;

/// Bytes that are received and written at once.
const PIECE: usize = 64 * 1024;
/// Longest pause of a client that is read past before its connection is closed.
const TIMEOUT: Duration = Duration::from_secs(2);

impl Connection<'_> {
    /// Takes a file that is uploaded, and says what came of it. All of its body has been read then.
    pub(super) fn upload(
        &mut self,
        request: &Request,
        (instance, kind, id): (u32, StoredFile, u64),
    ) -> Result<Answer, End> {
        let bytes = match request.body {
            Body::Length(bytes) if bytes <= MOST_FILE => bytes,
            Body::Length(_) => return self.end_with(Answer::TOO_LARGE),
            Body::None | Body::Chunked => return self.end_with(Answer::NO_LENGTH),
        };
        self.invite(request)?;
        let store = self.store;
        let draft = match store.folder.draft() {
            Ok(draft) => draft,
            Err(errno) => {
                // Nothing is written, so nothing more can fail.
                let _ = self.body(bytes, None)?;
                return Ok(self.failed(errno));
            }
        };
        if let Err(errno) = self.body(bytes, Some(&draft.file))? {
            return Ok(self.failed(errno));
        }
        match draft.keep(instance, kind, id) {
            Ok(new) => {
                self.shared.tally.kept().fetch_add(u64::from(new), Ordering::Relaxed);
                Ok(Answer::CREATED)
            }
            Err(errno) => Ok(self.failed(errno)),
        }
    }

    /// Reads past the body of a request that is refused for other reasons.
    pub(super) fn drain_refused(&mut self, request: &Request, answer: Answer) -> Result<Answer, End> {
        match request.body {
            Body::None => Ok(answer),
            // A client that waits for a word sends no body after this one.
            Body::Length(bytes) if bytes <= MOST_FILE && !request.waits => {
                self.body(bytes, None)?.map(|()| answer).map_err(End::from)
            }
            Body::Length(_) | Body::Chunked => self.end_with(answer),
        }
    }

    /// Tells a client that waits for it that the body may come.
    fn invite(&self, request: &Request) -> Result<(), End> {
        if request.waits {
            net::send_full(self.fd, b"HTTP/1.1 100 Continue\r\n\r\n", SendFlags::empty())?;
        }
        Ok(())
    }

    /// Refuses and ends the connection.
    fn end_with(&mut self, answer: Answer) -> Result<Answer, End> {
        let sent = self.say(answer, true)?;
        self.served.requests += 1;
        self.served.bytes_out += sent;
        self.linger();
        Err(End::Done)
    }

    /// After the last answer, reads past as much as a file can have: were the connection closed before what has come is read, it would be
    /// reset, and the answer might be lost.
    pub(super) fn linger(&mut self) {
        let _ = shutdown(self.fd, Shutdown::Write);
        let _ = net::receive_timeout(self.fd, Some(TIMEOUT));
        // How far it came does not matter: the answer is out.
        let _ = self.body(MOST_FILE, None);
    }

    /// Receives a body of so many bytes and writes it to the file. The inner error is the file's: the body was read past.
    fn body(&mut self, bytes: u64, file: Option<&OwnedFd>) -> Result<Result<(), Errno>, End> {
        let have = bytes.min((self.filled - self.begin) as u64) as usize;
        let mut written = write(file, &self.input[self.begin..self.begin + have]);
        self.begin += have;
        let mut left = bytes - have as u64;
        let mut piece = vec![0; PIECE.min(left as usize)];
        while left > 0 {
            let room = piece.len().min(left as usize);
            let got = match net::receive(self.fd, &mut piece[..room], Wait::Block)? {
                0 => return Err(End::Fault("a request was cut short".to_owned())),
                got => got,
            };
            self.served.bytes_in += got as u64;
            left -= got as u64;
            if written.is_ok() {
                written = write(file, &piece[..got]);
            }
        }
        Ok(written)
    }

    /// What to say when the file system refuses.
    fn failed(&self, errno: Errno) -> Answer {
        if matches!(errno, Errno::NOSPC | Errno::DQUOT) {
            return Answer::FULL;
        }
        self.shared.tally.error(format!("a file that was uploaded cannot be kept: {}", reason_of(errno)));
        Answer::BROKEN
    }
}

/// Writes all bytes, to no file none.
fn write(file: Option<&OwnedFd>, mut bytes: &[u8]) -> Result<(), Errno> {
    let Some(file) = file else { return Ok(()) };
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
