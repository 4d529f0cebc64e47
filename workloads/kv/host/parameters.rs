//! Parameters of `kv`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::ByteSize;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;

use super::spec::{Keys, Popularity, Protocol};
use crate::entry::read;
use crate::operations::VerdictOn;

/// Parameters of `kv`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// The server: `redis`, over RESP, or `memcached`, over its text protocol.
    pub server: Protocol,
    /// Its program, the same path on this host and in the guest. Absent: `/usr/bin/redis-server` or `/usr/bin/memcached`, where Debian has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The server's own limit of memory for keys and values: `maxmemory` of redis, `-m` of memcached. Whole MiB.
    pub memory: ByteSize,
    /// Whether the server drops keys when its memory is full (`allkeys-lru`; memcached's own way), so that a GET may find none. Else it
    /// refuses what it has no room for, and a GET that finds nothing makes the trial invalid.
    pub eviction: bool,
    /// Threads that serve: `-t` of memcached, `io-threads` of redis. Absent: for memcached as many as the guest has
    /// CPUs, for redis one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Keys. All are set before the load.
    pub keys: u64,
    /// Size of a key.
    pub key_size: ByteSize,
    /// Size of a value; the smallest, where `value-size-max` is given. Its first 16 bytes are a mark by which it is verified.
    pub value_size: ByteSize,
    /// Largest size of a value: each key's values have one size, uniform from `value-size` to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_size_max: Option<ByteSize>,
    /// Share of the requests that are GETs, percent. The others are SETs of keys that are there.
    pub gets: f64,
    /// How often keys are asked for: `"uniform"`, or `{ zipf = { exponent = 0.99 } }`.
    pub popularity: Popularity,
    /// Requests that a client sends together (pipelining). An operation is a request; those of a pipeline are due together in an open loop,
    /// and each takes until the last of them is answered.
    pub depth: u32,
    /// Seed of what is in values.
    pub seed: u64,
    /// What the verdict is about. Absent: the rate in a closed loop, the median response time in an open one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictOn>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            server: Protocol::Redis,
            program: None,
            memory: ByteSize(64 * MIB),
            eviction: false,
            threads: None,
            keys: 100_000,
            key_size: ByteSize(24),
            value_size: ByteSize(100),
            value_size_max: None,
            gets: 90.0,
            popularity: Popularity::Uniform,
            depth: 1,
            seed: 1,
            verdict: None,
        }
    }
}

const MIB: u64 = 1 << 20;
/// Least and largest memory of a server, bytes.
const MEMORY: (u64, u64) = (8 * MIB, 1 << 40);
/// Most keys.
const KEYS: u64 = 1_000_000_000;
/// Bytes of a key: with the digits of every number, and as memcached takes them.
const KEY_BYTES: (u64, u64) = (14, 250);
/// Bytes of a value: with its mark, and less than memcached's items may have.
const VALUE_BYTES: (u64, u64) = (16, 512 << 10);
/// Longest pipeline, requests and bytes of their values.
const DEPTH: u32 = 4096;
const PIPELINE_BYTES: u64 = 8 * MIB;
/// Threads of a server at most.
const THREADS: u32 = 128;
/// What a server keeps of a key beside key and value, bytes, at least.
const ENTRY_BYTES: u64 = 48;
/// What server and agent take beside what is in keys, bytes.
const BESIDE_BYTES: u64 = 48 * MIB;

/// The parameters, or everything that is wrong with them: the first by its field, the others in its words.
pub(super) fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    let mut wrong = Vec::new();
    let mut check = |field: &str, holds: bool, why: String| {
        if !holds {
            wrong.push((field.to_owned(), why));
        }
    };
    let within = |size: ByteSize, (least, most): (u64, u64)| {
        ((least..=most).contains(&size.0), format!("{size} is not between {} and {}", ByteSize(least), ByteSize(most)))
    };
    let (holds, why) = within(read.memory, MEMORY);
    check("memory", holds && read.memory.0.is_multiple_of(MIB), format!("{why}, in whole MiB"));
    let (holds, why) = within(read.key_size, KEY_BYTES);
    check("key-size", holds, why);
    let (holds, why) = within(read.value_size, VALUE_BYTES);
    check("value-size", holds, why);
    if let Some(most) = read.value_size_max {
        let (holds, why) = within(most, (read.value_size.0, VALUE_BYTES.1));
        check("value-size-max", holds, why);
    }
    check("keys", (1..=KEYS).contains(&read.keys), format!("{} is not between 1 and {KEYS}", read.keys));
    check("gets", (0.0..=100.0).contains(&read.gets), format!("{} is not between 0 and 100 %", read.gets));
    if let Popularity::Zipf { exponent } = read.popularity {
        let holds = exponent.is_finite() && exponent > 0.0 && exponent <= 10.0;
        check("popularity", holds, format!("an exponent of {exponent} is not above 0 and at most 10"));
    }
    check("depth", (1..=DEPTH).contains(&read.depth), format!("{} is not between 1 and {DEPTH}", read.depth));
    let bytes = u64::from(read.depth).saturating_mul(read.largest());
    check(
        "depth",
        bytes <= PIPELINE_BYTES,
        format!("a pipeline of values of {bytes} bytes is larger than {PIPELINE_BYTES}"),
    );
    if let Some(threads) = read.threads {
        check("threads", (1..=THREADS).contains(&threads), format!("{threads} is not between 1 and {THREADS}"));
    }
    if let Some(program) = &read.program {
        check("program", program.starts_with('/'), format!("`{program}` is no absolute path"));
    }
    let data = read.data_bytes();
    let room = read.eviction || data <= read.memory.0;
    check(
        "memory",
        room,
        format!("{} does not hold {} keys, which take {} MiB at least", read.memory, read.keys, data / MIB),
    );
    refuse(wrong).map_or(Ok(read), Err)
}

/// One error of all that is wrong.
fn refuse(wrong: Vec<(String, String)>) -> Option<FieldError> {
    let mut wrong = wrong.into_iter();
    let (field, mut why) = wrong.next()?;
    wrong.for_each(|(field, also)| why.push_str(&format!("; and `{field}`: {also}")));
    Some(FieldError::new(&[&field], why))
}

impl Parameters {
    const fn largest(&self) -> u64 {
        match self.value_size_max {
            Some(most) => most.0,
            None => self.value_size.0,
        }
    }

    /// What all keys take in a server, bytes, at least.
    const fn data_bytes(&self) -> u64 {
        let value = self.value_size.0.midpoint(self.largest());
        self.keys.saturating_mul(self.key_size.0.saturating_add(value).saturating_add(ENTRY_BYTES))
    }

    /// The keys. [`checked`] bounds all of them.
    pub(super) fn keys(&self) -> Keys {
        let bytes = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
        Keys {
            count: self.keys,
            key_bytes: bytes(self.key_size.0),
            value_bytes: (bytes(self.value_size.0), bytes(self.largest())),
            seed: self.seed,
        }
    }

    /// Bytes of all keys and values.
    pub(super) const fn plain_bytes(&self) -> u64 {
        self.keys.saturating_mul(self.key_size.0.saturating_add(self.largest()))
    }

    /// Path of the program.
    pub(super) fn program(&self) -> &str {
        let usual = match self.server {
            Protocol::Redis => "/usr/bin/redis-server",
            Protocol::Memcached => "/usr/bin/memcached",
        };
        self.program.as_deref().unwrap_or(usual)
    }

    /// Name of the server, as Debian's package of it has it.
    pub(super) const fn package(&self) -> &'static str {
        match self.server {
            Protocol::Redis => "redis-server",
            Protocol::Memcached => "memcached",
        }
    }

    /// Threads of the server in such a guest.
    pub(super) fn threads_in(&self, guest: &GuestSize) -> u32 {
        let usual = match self.server {
            Protocol::Redis => 1,
            Protocol::Memcached => guest.cpus.clamp(1, THREADS),
        };
        self.threads.unwrap_or(usual)
    }

    /// Refuses guests in which the server would not have its memory: beside its limit, memory that allocators leave between items (a
    /// quarter), the program, connections, and the agent.
    pub(super) fn fit(&self, guest: &GuestSize) -> Result<(), FieldError> {
        let needed = self.memory.0.saturating_add(self.memory.0 / 4).saturating_add(BESIDE_BYTES);
        if needed <= guest.memory.0 {
            return Ok(());
        }
        let why = format!(
            "a server with {} for keys takes up to {} MiB, and a guest has {} MiB",
            self.memory,
            needed / MIB,
            guest.memory.0 / MIB
        );
        Err(FieldError::new(&["memory"], why).help("write a smaller `memory`, or ask for larger guests"))
    }
}

#[cfg(test)]
#[path = "../tests/parameters.rs"]
mod tests;
