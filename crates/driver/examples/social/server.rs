//! The application that answers from memory, on one thread and one epoll instance, so that ten thousand connections are nothing to it.

use std::collections::HashMap;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use rustix::event::epoll;
use rustix::io::Errno;

use crate::fake::{App, parse};

/// A connection, what has come of a request, and what is to be sent of an answer.
struct Client {
    stream: TcpStream,
    held: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
}

/// Serves until the process is killed.
pub fn serve(port: u16, users: u32) -> Result<(), Box<dyn Error>> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised)?;
    let app = App::new(1, users);
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    rustix::net::listen(&listener, 4096)?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let number = |fd: &dyn AsRawFd| epoll::EventData::new_u64(fd.as_raw_fd() as u64);
    epoll::add(&epoll, &listener, number(&listener), epoll::EventFlags::IN)?;
    let mut clients: HashMap<u64, Client> = HashMap::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; 256 << 10];
    loop {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        for event in &events {
            let which = event.data.u64();
            if which == listener.as_raw_fd() as u64 {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
                    epoll::add(&epoll, &stream, number(&stream), flags)?;
                    let at = stream.as_raw_fd() as u64;
                    clients.insert(at, Client { stream, held: Vec::new(), answer: Vec::new(), sent: 0 });
                }
            } else if clients.get_mut(&which).is_some_and(|client| !client.turn(&app, &mut buffer)) {
                clients.remove(&which);
            }
        }
    }
}

impl Client {
    /// Sends and reads what can be; false: it has gone.
    fn turn(&mut self, app: &App, buffer: &mut [u8]) -> bool {
        loop {
            while self.sent < self.answer.len() {
                match self.stream.write(&self.answer[self.sent..]) {
                    Ok(count) => self.sent += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                    Err(_) => return false,
                }
            }
            match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(count) => self.held.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
            if let Some((request, used)) = parse(&self.held) {
                self.held.drain(..used);
                (self.answer, self.sent) = (app.answer(&request), 0);
            }
        }
    }
}
