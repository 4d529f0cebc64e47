//! What the two parts of `kv` send each other: the server, the keys, what is driven, and what is counted.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_model::clean::Untrusted;
use tare_model::packed::Task;

/// A kind of server, and so its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Redis, or what speaks RESP as it does.
    #[default]
    Redis,
    /// memcached, by its text protocol.
    Memcached,
}

/// How often keys are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Popularity {
    /// Each as often as any other.
    #[default]
    Uniform,
    /// The key of rank r in proportion to 1/r to the power of `exponent`. Which key has which rank does not follow from its number.
    Zipf {
        /// The exponent, above 0; web traffic has about 1.
        exponent: f64,
    },
}

/// The keys of a server and the sizes of their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Keys, numbered from 0.
    pub count: u64,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Least and most bytes of a value. A key's values all have one size, which is drawn by its number.
    pub value_bytes: (u32, u32),
    /// Seed of what is in values.
    pub seed: u64,
}

/// Load on the targets of a drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KvDrive {
    /// How the server speaks.
    pub protocol: Protocol,
    /// The keys, which are all there.
    pub keys: Keys,
    /// Share of GETs, from 0 to 1; the others are SETs.
    pub get_share: f64,
    /// Which keys.
    pub popularity: Popularity,
    /// Requests that are sent together, and whose answers are awaited together.
    pub depth: u32,
    /// Number of the first connection of this driver as a writer. Each connection of each drive on one server has a number of its own, above 0.
    pub first_writer: u32,
    /// Connections below this number had ended before this drive began.
    pub oldest_writer: u32,
}

/// What a driver counted of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// GETs that were answered.
    pub gets: u64,
    /// Those of them that had no value.
    pub misses: u64,
    /// SETs that were answered.
    pub sets: u64,
    /// Bytes of requests, protocol included.
    pub bytes_out: u64,
    /// Bytes of answers, protocol included.
    pub bytes_in: u64,
}

/// What a driver did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KvDone {
    /// In the measured window.
    pub steady: Counts,
    /// In all phases.
    pub all: Counts,
    /// GETs and SETs that were sent and got no answer, in all phases: the server may have served them.
    pub in_doubt: (u64, u64),
    /// Requests that the server refused.
    pub refused: u64,
    /// Answers that were wrong.
    pub wrong: u64,
    /// The first of them, for people; empty where there is none.
    pub first_wrong: String,
}

/// Sets all keys, or reads all of them, outside of the measured time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvSweep {
    /// The server.
    pub server: SocketAddr,
    /// How it speaks.
    pub protocol: Protocol,
    /// The keys.
    pub keys: Keys,
    /// Whether all keys are set before they are read.
    pub fill: bool,
    /// Longest that it may take, nanoseconds.
    pub timeout_ns: u64,
}

/// What a sweep found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KvFound {
    /// Keys that have a value of theirs.
    pub sound: u64,
    /// Keys without a value.
    pub missing: u64,
    /// Keys with another value.
    pub wrong: u64,
    /// The first of them, for people; empty where there is none.
    pub first_wrong: String,
}

/// Asks a server for its version, its settings and what it has counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvAsk {
    /// The server.
    pub server: SocketAddr,
    /// How it speaks.
    pub protocol: Protocol,
    /// Longest that it may take, nanoseconds.
    pub timeout_ns: u64,
}

/// What a server says of itself, by its own names.
pub type Said = Vec<(String, String)>;

/// Why a call could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvFailure {
    /// What happened, for people.
    pub why: String,
    /// Whether the server could not be reached, which a server that starts will mend.
    pub unreachable: bool,
}

impl KvDone {
    /// Adds what another client or driver did.
    pub fn add(&mut self, other: &Self) {
        self.steady.add(&other.steady);
        self.all.add(&other.all);
        self.in_doubt = (self.in_doubt.0 + other.in_doubt.0, self.in_doubt.1 + other.in_doubt.1);
        self.refused += other.refused;
        self.wrong += other.wrong;
        if self.first_wrong.is_empty() {
            self.first_wrong.clone_from(&other.first_wrong);
        }
    }
}

impl Counts {
    /// Adds what another pipeline or client came to.
    #[inline]
    pub const fn add(&mut self, other: &Self) {
        self.gets += other.gets;
        self.misses += other.misses;
        self.sets += other.sets;
        self.bytes_out += other.bytes_out;
        self.bytes_in += other.bytes_in;
    }
}

impl Task for KvDrive {
    const KIND: &'static str = "kv";
    type Outcome = KvDone;
}

impl Task for KvSweep {
    const KIND: &'static str = "sweep the keys";
    type Outcome = Result<KvFound, KvFailure>;
}

impl Task for KvAsk {
    const KIND: &'static str = "ask the key-value server about itself";
    type Outcome = Result<Said, KvFailure>;
}

impl Untrusted for KvDone {
    fn clean(&mut self) {
        self.first_wrong.clean();
    }
}

impl Untrusted for KvFound {
    fn clean(&mut self) {
        self.first_wrong.clean();
    }
}

impl Untrusted for KvFailure {
    fn clean(&mut self) {
        self.why.clean();
    }
}
