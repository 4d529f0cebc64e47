//! Parameters of `social`.

use std::collections::BTreeMap;

use crate::social::spec::{Cycle, Scale};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::load::LoadModel;
use tare_model::{ByteSize, Span};

use crate::checks;
use crate::entry::read;
use crate::jvm::{self, COLLECTOR, Collector, HEAP};
use crate::postgres::installation::EMBEDDED;
use crate::postgres::settings::{self, SettingValue};

/// Parameters of `social`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// How each instance's Java virtual machine is started.
    pub java: Java,
    /// Connections of each instance to its database, at most.
    #[schemars(range(min = 1, max = 1000))]
    pub pool: u32,
    /// Threads of each instance that serve requests, at most.
    #[schemars(range(min = 1, max = 5000))]
    pub threads: u32,
    /// For how long the home page of those who are not logged in is kept, in whole seconds; published: about 10 s.
    pub home_ttl: Span,
    /// For how long objects are kept that were read from the database, in whole seconds; published: 1800 s.
    pub object_ttl: Span,
    /// Where PostgreSQL's programs are on this host, such as `/usr/lib/postgresql/15/bin`; `embedded`, the default: those that
    /// `make platforms` fetches. The database is beside the guest and never in it.
    pub postgres: String,
    /// PostgreSQL's own settings, over those that tare chooses.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub settings: BTreeMap<String, SettingValue>,
    /// Connections that fill the database side by side, once.
    #[schemars(range(min = 1, max = 64))]
    pub connections: u32,
    /// Users of each instance that its data are made for: 100 people a user, 25 users at least. Absent: the clients of the load, or the
    /// most that a search may try, over the instances. Cases that are to be compared need the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub scale_users: Option<u32>,
    /// Seed of the data: the same seed and scale give the same rows everywhere.
    pub data_seed: u64,
    /// Share of sessions whose browser has all static files and asks whether they have changed (0 to 1); the others begin with
    /// none. Published: 0.6.
    pub revalidating: f64,
    /// Probability that a user who can attend an event says so (0 to 1). Published: 0.1.
    pub attend: f64,
    /// Times from the start of one operation to that of the next.
    pub cycle: CycleTimes,
    /// Operations that each instance answers before its users come.
    pub prime: Prime,
    /// An operation to whose requests nothing is answered for this long has failed.
    pub timeout: Span,
    /// Threads of the driver; users are dealt to them in turn.
    #[schemars(range(min = 1, max = 64))]
    pub driver_threads: u32,
    /// How long the file store waits before each answer.
    pub file_delay: Span,
    /// Share of operations with a wrong answer or none (0 to 1) from which on the figures are not used.
    pub errors_max: f64,
}

/// How a Java virtual machine is started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Java {
    /// Heap, the first and the largest (`-Xms`, `-Xmx`). Absent: as published 1536 MiB in guests of one CPU, else 2048 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<ByteSize>,
    /// Stack of a thread (`-Xss`); published: 192 KiB.
    pub stack: ByteSize,
    /// The collector; `default` is what the virtual machine chooses by the guest's size.
    pub collector: Collector,
    /// Further options, such as `-XX:MaxMetaspaceSize=128m`.
    pub flags: Vec<String>,
    /// Whether the heap lies in large pages that the guest's system has set aside (`-XX:+UseLargePages`). `auto`: where there are enough for the
    /// heaps of all instances, which is reported; `on`: without them nothing is started.
    pub large_pages: LargePages,
}

/// Whether heaps lie in large pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LargePages {
    /// Where there are enough.
    #[default]
    Auto,
    /// In any case.
    On,
    /// Never.
    Off,
}

/// Times from the start of one operation to that of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CycleTimes {
    /// Mean of the negative exponential distribution; published: 5 s.
    pub mean: Span,
    /// What would be longer is this long; published: 25 s.
    pub most: Span,
    /// Shortest after the registration of a person; published: 2 s. With a mean below 5 s it is shorter by as much.
    pub add_person: Span,
    /// Shortest after the announcement of an event; published: 3 s. With a mean below 5 s it is shorter by as much.
    pub add_event: Span,
}

/// Operations that each instance answers before its users come, as fast as it can, so that what runs often is compiled whatever the load to
/// come. Every trial takes longer by that; a warm-up is for users to join and caches to fill then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Prime {
    /// Operations; 0, the default: none, as published.
    #[schemars(range(max = 1_000_000))]
    pub operations: u32,
    /// Longest that this may take; an instance that has answered fewer by then is reported.
    pub within: Span,
}

const MIB: u64 = 1 << 20;
/// Most operations that an instance is primed with.
const PRIME_MAX: u32 = 1_000_000;
/// Users at one time that the data of one instance can be made for.
const SCALE_USERS_MAX: u32 = 100_000;
/// More users than this are a slip.
const CLIENTS_MAX: u32 = 1_000_000;
/// Least heap of an instance, bytes: below it the application hardly starts.
const HEAP_LEAST: u64 = 64 * MIB;
/// Least stack that a 64 bit virtual machine takes, bytes.
const STACK_LEAST: u64 = 180 << 10;
/// Classes, their code and what is compiled of it, of one instance, bytes: as published.
pub(super) const METASPACE_BYTES: u64 = 256 * MIB;
/// The guest's system and the agent, bytes. Published: 0.5 to 1 GB; one that is made for nothing else takes so much at least.
pub(super) const SYSTEM_BYTES: u64 = 128 * MIB;

impl Default for Parameters {
    fn default() -> Self {
        Self {
            java: Java::default(),
            pool: 50,
            threads: 200,
            home_ttl: Span::from_secs(10),
            object_ttl: Span::from_secs(1800),
            postgres: EMBEDDED.to_owned(),
            settings: BTreeMap::new(),
            connections: 2,
            scale_users: None,
            data_seed: 1,
            revalidating: 0.6,
            attend: 0.1,
            cycle: CycleTimes::default(),
            prime: Prime::default(),
            timeout: Span::from_secs(60),
            driver_threads: 1,
            file_delay: Span::ZERO,
            errors_max: 0.005,
        }
    }
}

impl Default for Java {
    fn default() -> Self {
        Self {
            heap: None,
            stack: ByteSize(192 << 10),
            collector: Collector::Default,
            flags: Vec::new(),
            large_pages: LargePages::Auto,
        }
    }
}

impl Default for Prime {
    fn default() -> Self {
        Self { operations: 0, within: Span::from_secs(600) }
    }
}

impl Default for CycleTimes {
    fn default() -> Self {
        let Cycle { mean_ns, most_ns, add_person_ns, add_event_ns } = Cycle::default();
        let span = |ns| Span { ns };
        Self {
            mean: span(mean_ns),
            most: span(most_ns),
            add_person: span(add_person_ns),
            add_event: span(add_event_ns),
        }
    }
}

impl CycleTimes {
    /// The times as the driver gets them. Users in more haste than the published ones are so after every operation.
    pub fn cycle(&self) -> Cycle {
        let published = Cycle::default();
        let haste = (self.mean.ns as f64 / published.mean_ns as f64).min(1.0);
        let shortest = |span: Span| (span.ns as f64 * haste).round() as u64;
        Cycle {
            mean_ns: self.mean.ns,
            most_ns: self.most.ns,
            add_person_ns: shortest(self.add_person),
            add_event_ns: shortest(self.add_event),
        }
    }
}

/// The parameters with every default filled in, or what is wrong with them.
pub(super) fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    whole(&read)?;
    for (field, share) in
        [("revalidating", read.revalidating), ("attend", read.attend), ("errors-max", read.errors_max)]
    {
        checks::share(field, share)?;
    }
    spans(&read)?;
    java(&read.java).map_err(|error| error.within(&["java"]))?;
    if read.postgres != EMBEDDED && !read.postgres.starts_with('/') {
        return Err(FieldError::new(&["postgres"], format!("`{}` is not an absolute path", read.postgres))
            .help("write the directory of the programs, such as /usr/lib/postgresql/15/bin, or leave it out"));
    }
    for (name, value) in &read.settings {
        settings::check(name, &value.0).map_err(|error| error.within(&["settings", name]))?;
        if name == "max_connections" {
            let why = "it follows from `pool` and the number of instances";
            return Err(FieldError::new(&["settings", name], why).help("leave it out"));
        }
    }
    Ok(read)
}

fn whole(read: &Parameters) -> Result<(), FieldError> {
    for (field, value, most) in [
        ("pool", read.pool, 1000),
        ("threads", read.threads, 5000),
        ("connections", read.connections, 64),
        ("scale-users", read.scale_users.unwrap_or(1), SCALE_USERS_MAX),
        ("driver-threads", read.driver_threads, 64),
    ] {
        checks::between(&[field], value, 1, most)?;
    }
    if read.prime.operations > PRIME_MAX {
        return Err(FieldError::new(
            &["prime", "operations"],
            format!("{} is more than {PRIME_MAX}", read.prime.operations),
        ));
    }
    Ok(())
}

fn spans(read: &Parameters) -> Result<(), FieldError> {
    const DAY: Span = Span::from_secs(86_400);
    let CycleTimes { mean, most, add_person, add_event } = read.cycle;
    for (field, span, least, at_most) in [
        (&["home-ttl"][..], read.home_ttl, Span::ZERO, DAY),
        (&["object-ttl"], read.object_ttl, Span::ZERO, DAY),
        (&["timeout"], read.timeout, Span::from_secs(1), DAY),
        (&["prime", "within"], read.prime.within, Span::from_secs(1), DAY),
        (&["file-delay"], read.file_delay, Span::ZERO, Span::from_secs(10)),
        (&["cycle", "mean"], mean, Span::from_millis(1), DAY),
        (&["cycle", "most"], most, mean, DAY),
        (&["cycle", "add-person"], add_person, Span::ZERO, DAY),
        (&["cycle", "add-event"], add_event, Span::ZERO, DAY),
    ] {
        checks::between(field, span, least, at_most)?;
    }
    for (field, span) in [("home-ttl", read.home_ttl), ("object-ttl", read.object_ttl)] {
        if !span.ns.is_multiple_of(1_000_000_000) {
            return Err(FieldError::new(&[field], format!("{span} is not a whole number of seconds")));
        }
    }
    Ok(())
}

fn java(java: &Java) -> Result<(), FieldError> {
    if let Some(heap) = java.heap.filter(|heap| heap.0 < HEAP_LEAST) {
        return Err(FieldError::new(&["heap"], format!("{heap} is less than the application needs"))
            .help("write 64MiB or more, or leave it out"));
    }
    if java.stack.0 < STACK_LEAST || java.stack.0 > 1 << 30 {
        let why = format!("{} is no stack that a virtual machine takes", java.stack);
        return Err(FieldError::new(&["stack"], why).help("write 180KiB to 1GiB; published: 192KiB"));
    }
    if let Some(number) = java.flags.iter().position(|flag| flag.starts_with("-Djava.io.tmpdir")) {
        let why = format!("`{}` would leave files where they do not go with the run", java.flags[number]);
        return Err(FieldError::new(&["flags", &number.to_string()], why)
            .help("leave it out: tare gives instances a place of their own"));
    }
    jvm::check_options("flags", &java.flags, &[&HEAP, &COLLECTOR, &OWN])
}

/// Options that a parameter of this workload alone stands for: how they begin without `-XX:` and a sign, and the parameter.
const OWN: [(&str, &str); 6] = [
    ("-Xms", "heap"),
    ("InitialHeapSize", "heap"),
    ("InitialRAMPercentage", "heap"),
    ("-Xss", "stack"),
    ("ThreadStackSize", "stack"),
    ("UseLargePages", "large-pages"),
];

/// Users of a driver under this load, at most; or what is wrong with it: `load` in the path.
pub(super) fn users(load: &LoadModel) -> Result<u32, FieldError> {
    match *load {
        LoadModel::Open { .. } => {
            let why = "users ask for one thing after the other, as their cycle times say";
            Err(FieldError::new(&["load", "open"], why).help("write load = { closed = { clients = 100 } }"))
        }
        LoadModel::Closed { think_time, .. } if think_time != Span::ZERO => {
            let why = "users do not think: they keep cycle times";
            Err(FieldError::new(&["load", "closed", "think-time"], why).help("leave it out, or write `cycle`"))
        }
        LoadModel::Closed { clients, .. } if !(1..=CLIENTS_MAX).contains(&clients) => {
            let why = format!("{clients} users are not between 1 and {CLIENTS_MAX}");
            Err(FieldError::new(&["load", "closed", "clients"], why))
        }
        LoadModel::Closed { clients, .. } => Ok(clients),
    }
}

impl Parameters {
    /// What each instance's data are made for, where so many users share so many instances.
    pub fn scale(&self, users: u32, instances: u32) -> Scale {
        Scale::of(self.scale_users.unwrap_or_else(|| users.div_ceil(instances.max(1))))
    }

    /// Heap of each instance in guests of so many CPUs, bytes.
    pub fn heap_bytes(&self, cpus: u32) -> u64 {
        self.java.heap.map_or(if cpus <= 1 { 1536 * MIB } else { 2048 * MIB }, |heap| heap.0)
    }
}

#[cfg(test)]
mod tests;
