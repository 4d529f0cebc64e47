//! What the two parts of `http` send each other: requests with what must be answered, and what came of them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tare_model::clean::Untrusted;
use tare_model::packed::Task;

/// One kind of request, ready to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Method and path, for people.
    pub name: String,
    /// All of it: line, fields and body.
    pub text: Vec<u8>,
    /// It may be sent once more where a kept connection ended before the answer (RFC 9110, section 9.2.2).
    pub repeats: bool,
    /// How often it is chosen, against the others.
    pub weight: f64,
    /// What must be answered.
    pub expect: Expected,
}

/// What an answer must be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Expected {
    /// Its status; `None`: any from 200 to 299.
    pub status: Option<u16>,
    /// What its body contains; empty: anything.
    pub contains: Vec<u8>,
    /// Length of its body.
    pub bytes: Option<u64>,
    /// SHA-256 of its body.
    pub sha256: Option<[u8; 32]>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The name that TLS asks for, where TLS is spoken. Its certificate may be any.
    pub tls: Option<String>,
    /// Longest silence before an answer, and within one, nanoseconds.
    pub timeout_ns: u64,
}

/// Load on the target of a drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpDrive {
    /// The requests, at least one.
    pub requests: Vec<Asked>,
    /// How the server is reached.
    pub reached: Reached,
    /// Each request has a connection of its own.
    pub fresh: bool,
}

/// What a driver did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HttpDone {
    /// Right answers in the measured window, by request.
    pub answered: Vec<u64>,
    /// Answers that the server is busy (429, 503), in all phases.
    pub refused: u64,
    /// Wrong answers in all phases.
    pub wrong: u64,
    /// The first of them, for people; empty where there is none.
    pub first_wrong: String,
    /// Connections that were opened, in all phases.
    pub connections: u64,
    /// Requests that were sent once more on a new connection, in all phases.
    pub reconnected: u64,
}

/// Asks a server once and verifies the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpAsk {
    /// The server.
    pub server: SocketAddr,
    /// How it is reached.
    pub reached: Reached,
    /// What is asked.
    pub request: Asked,
}

impl HttpDone {
    /// Adds what another driver or thread did.
    pub fn add(&mut self, other: &Self) {
        self.answered.resize(self.answered.len().max(other.answered.len()), 0);
        self.answered.iter_mut().zip(&other.answered).for_each(|(all, one)| *all += one);
        self.refused += other.refused;
        self.wrong += other.wrong;
        self.connections += other.connections;
        self.reconnected += other.reconnected;
        if self.first_wrong.is_empty() {
            self.first_wrong.clone_from(&other.first_wrong);
        }
    }
}

impl Task for HttpDrive {
    const KIND: &'static str = "http";
    type Outcome = HttpDone;
}

impl Task for HttpAsk {
    const KIND: &'static str = "ask the service";
    type Outcome = Result<(), String>;
}

impl Untrusted for HttpDone {
    fn clean(&mut self) {
        self.answered.clean();
        self.first_wrong.clean();
    }
}
