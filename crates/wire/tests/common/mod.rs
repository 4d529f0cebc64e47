//! Agents that do as a test likes.
#![allow(dead_code, reason = "one of the programs uses a part of it")]

use std::os::unix::net::UnixStream;
use std::time::Duration;

use tare_wire::{FromAgent, Greeting, Link, Reply, ToAgent, WireError, read_frame, write_frame};

/// For what must come; nothing waits so long.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A link to an agent that greets, says hello, and then does as it likes.
pub fn link(behave: impl FnOnce(UnixStream) + Send + 'static) -> Link {
    let agent = move |mut stream: UnixStream| {
        Greeting::ours().write(&mut stream).unwrap();
        Greeting::read(&mut stream).unwrap();
        let hello: ToAgent = read_frame(&mut stream).unwrap().unwrap();
        let said = Reply::Hello { version: "0".into(), pid: 1, kernel_age_ns: 1_500_000_000 };
        write_frame(&mut stream, &FromAgent { id: hello.id, result: Ok(said) }).unwrap();
        behave(stream);
    };
    open(agent, TIMEOUT).unwrap()
}

pub fn open(agent: impl FnOnce(UnixStream) + Send + 'static, timeout: Duration) -> Result<Link, WireError> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || agent(theirs));
    Link::open(Box::new(ours.try_clone().unwrap()), Box::new(ours), timeout, TIMEOUT)
}
