//! Parameters of the web workloads.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::{ByteSize, Span};

use super::compile::DIRECTORIES_MAX;
use super::tables::{Site, Tables};
use crate::checks;
use crate::entry::read;
use crate::jvm::{self, HEAP};
use crate::url::Url;

/// Parameters of `web-banking`, `web-ecommerce` and `web-support`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// What serves: `tomcat`: Tomcat alone; `nginx`: an nginx of the guest's before it, which does TLS and gives files, and
    /// passes pages on to Tomcat on the guest's loopback.
    pub server: Server,
    /// The `nginx` program, by its path in the guest.
    pub nginx: String,
    /// A server of your own, which is there already and speaks docs/reference/web.md: `http://HOST:PORT`, `{guest}` as the host
    /// stands for the guest's address. Nothing is started in the guest then, and its files must be those of the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The same with TLS: `https://HOST:PORT`. Any certificate is taken, which is disclosed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_url: Option<String>,
    /// Largest heap of the Java virtual machine (`-Xmx`). Absent: a quarter of the guest's memory, at least 128 MiB, and more where
    /// the largest load needs it (12 kB a session, 18 kB a connection, 75 kB one with TLS, of which two thirds may be busy), as
    /// far as the guest has it; the rest keeps files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<ByteSize>,
    /// Another `java` program, by its path in the guest; absent: the runtime that comes with the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub java: Option<String>,
    /// Further options of the Java virtual machine, such as `-XX:+UseParallelGC`.
    pub options: Vec<String>,
    /// Whether pages that are secure in the site's table are asked for over TLS. `false` is reported as a deviation.
    pub tls: bool,
    /// Connections of a session; published: 2.
    #[schemars(range(min = 1, max = 16))]
    pub connections: u8,
    /// What a client reads from a connection at most, bytes a second, or `unlimited`; published: 100000.
    pub receive_rate: ReceiveRate,
    /// Users a session in the bank's file set, each with images of 10 checks (about 200 kB); published: 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users_per_session: Option<f64>,
    /// Directories a session in the file set; published: 5 of the shop (10 products, about 560 kB each), 0.25 of support (16 downloads, 68 MB
    /// each).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directories_per_session: Option<f64>,
    /// Sessions that the file set is made for. Absent: as many as the largest load that may be offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub file_sessions: Option<u32>,
    /// Time after which the server forgets a session that asks no more.
    pub session_timeout: Span,
    /// Connections of the server to its backend, at most.
    #[schemars(range(min = 1, max = 10000))]
    pub backend_connections: u32,
    /// How long the backend waits before each answer.
    pub backend_delay: Span,
    /// Threads of the driver; sessions are dealt to them in turn.
    #[schemars(range(min = 1, max = 64))]
    pub driver_threads: u32,
    /// A request that gets no answer for this long has failed.
    pub timeout: Span,
    /// A page that ends by more than this after its user's next think time would have is counted as overrun.
    pub overrun: Span,
    /// Share of requests with a wrong answer or none (0 to 1) from which on the figures are not used; published: 0.005.
    pub validation_errors_max: f64,
    /// How far the share of a request type may lie from its target, 0 to 1, before a trial is flagged; what chance does in
    /// a short trial (three standard deviations) is allowed beside that. The published limit is not known.
    pub mix_deviation_max: f64,
    /// With fewer requests of any type a trial is flagged; published: 100.
    pub least_requests: u64,
    /// A file with tables of your own for the site, as those in workloads/web/host/sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<String>,
}

/// What serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// Tomcat alone.
    #[default]
    Tomcat,
    /// nginx before Tomcat.
    Nginx,
}

/// Bytes a second, or no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveRate(pub Option<u64>);

/// How a rate without a limit is written.
const UNLIMITED: &str = "unlimited";

impl Serialize for ReceiveRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(rate) => serializer.serialize_u64(rate),
            None => serializer.serialize_str(UNLIMITED),
        }
    }
}

impl<'de> Deserialize<'de> for ReceiveRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || {
            serde::de::Error::custom("a receive rate is a number of bytes a second, such as 100000, or \"unlimited\"")
        };
        match Value::deserialize(deserializer)? {
            Value::String(text) if text == UNLIMITED => Ok(Self(None)),
            Value::Number(number) => number.as_u64().map(|rate| Self(Some(rate))).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

impl JsonSchema for ReceiveRate {
    fn schema_name() -> Cow<'static, str> {
        "ReceiveRate".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Bytes a second, or \"unlimited\".",
            "anyOf": [{ "type": "integer", "minimum": 1000 }, { "const": UNLIMITED }]
        })
    }
}

const MIB: u64 = 1 << 20;

impl Default for Parameters {
    fn default() -> Self {
        Self {
            server: Server::Tomcat,
            nginx: "/usr/sbin/nginx".to_owned(),
            url: None,
            tls_url: None,
            heap: None,
            java: None,
            options: Vec::new(),
            tls: true,
            connections: 2,
            receive_rate: ReceiveRate(Some(100_000)),
            users_per_session: None,
            directories_per_session: None,
            file_sessions: None,
            session_timeout: Span::from_secs(15 * 60),
            backend_connections: 100,
            backend_delay: Span::ZERO,
            driver_threads: 1,
            timeout: Span::from_secs(60),
            overrun: Span::from_secs(20),
            validation_errors_max: 0.005,
            mix_deviation_max: 0.01,
            least_requests: 100,
            tables: None,
        }
    }
}

/// Least heap of the server, bytes.
const HEAP_LEAST: u64 = 128 * MIB;
/// What the virtual machine takes beside its heap, bytes: code, compiled code, classes, stacks of threads, buffers of
/// connections, and the collector's tables.
const fn beside_heap(heap: u64) -> u64 {
    192 * MIB + heap / 32
}
/// The agent and what else there is in every guest.
const AGENT_BYTES: u64 = 32 * MIB;
/// Slower than this a page of the sites cannot come in time at all, bytes a second.
const RATE_LEAST: u64 = 1000;
/// More sessions than this are a slip: addresses and files run out before.
const SESSIONS_MAX: u32 = 1_000_000;

/// The parameters with every default of the site filled in, and its tables; or what is wrong with them.
pub(super) fn checked(site: Site, parameters: &Value) -> Result<(Parameters, Tables), FieldError> {
    let mut read: Parameters = read(parameters)?;
    let tables = site.tables_from(read.tables.as_deref())?;
    fill_file_set(&mut read, &tables)?;
    addresses(&read)?;
    for (field, path) in [("nginx", Some(read.nginx.as_str())), ("java", read.java.as_deref())] {
        checks::program_in_guest(field, path)?;
    }
    if let Some(heap) = read.heap.filter(|heap| heap.0 < HEAP_LEAST) {
        return Err(FieldError::new(&["heap"], format!("{heap} is less than the server needs"))
            .help("write 128MiB or more, or leave it out"));
    }
    if read.receive_rate.0.is_some_and(|rate| rate < RATE_LEAST) {
        return Err(FieldError::new(&["receive-rate"], format!("less than {RATE_LEAST} bytes a second"))
            .help("write bytes a second, such as 100000, or \"unlimited\""));
    }
    jvm::check_options("options", &read.options, &[&HEAP])?;
    numbers(&read)?;
    Ok((read, tables))
}

fn numbers(read: &Parameters) -> Result<(), FieldError> {
    let whole = [
        ("connections", u32::from(read.connections), 16),
        ("backend-connections", read.backend_connections, 10_000),
        ("driver-threads", read.driver_threads, 64),
        ("file-sessions", read.file_sessions.unwrap_or(1), SESSIONS_MAX),
    ];
    for (field, value, most) in whole {
        checks::between(&[field], value, 1, most)?;
    }
    for (field, share) in
        [("validation-errors-max", read.validation_errors_max), ("mix-deviation-max", read.mix_deviation_max)]
    {
        checks::share(field, share)?;
    }
    for (field, span, least) in [
        ("session-timeout", read.session_timeout, Span::from_secs(1)),
        ("timeout", read.timeout, Span::from_secs(1)),
        ("overrun", read.overrun, Span::ZERO),
        ("backend-delay", read.backend_delay, Span::ZERO),
    ] {
        checks::between(&[field], span, least, checks::DAY)?;
    }
    Ok(())
}

/// Fills in what decides the size of the file set, and refuses what the site does not have.
fn fill_file_set(read: &mut Parameters, tables: &Tables) -> Result<(), FieldError> {
    let files = &tables.files;
    let directories = files.products.as_ref().map(|products| products.directories_per_session);
    let directories = directories.or(files.downloads.as_ref().map(|downloads| downloads.directories_per_session));
    for (field, given, own) in [
        (
            "users-per-session",
            &mut read.users_per_session,
            files.checks.as_ref().map(|checks| checks.users_per_session),
        ),
        ("directories-per-session", &mut read.directories_per_session, directories),
    ] {
        match (*given, own) {
            (Some(_), None) => {
                return Err(FieldError::new(&[field], format!("the site `{}` has no such files", tables.name))
                    .help("leave it out"));
            }
            (Some(number), Some(_)) if !(number > 0.0 && number <= f64::from(DIRECTORIES_MAX)) => {
                return Err(FieldError::new(&[field], format!("{number} is not above 0, or too much")));
            }
            (None, own) => *given = own,
            _ => {}
        }
    }
    Ok(())
}

/// Addresses of a server that exists.
fn addresses(read: &Parameters) -> Result<(), FieldError> {
    let url = read.url.as_deref().map(|url| Url::read(url, "http")).transpose();
    url.map_err(|error| error.within(&["url"]))?;
    let tls = read.tls_url.as_deref().map(|url| Url::read(url, "https")).transpose();
    tls.map_err(|error| error.within(&["tls-url"]))?;
    if read.tls_url.is_some() && read.url.is_none() {
        return Err(FieldError::new(&["tls-url"], "it goes with `url`, which is not there")
            .help("write the plain address as well: whether the server is ready is asked there"));
    }
    let own = read.heap.is_some() || read.java.is_some() || !read.options.is_empty() || read.server != Server::Tomcat;
    if read.url.is_some() && own {
        return Err(FieldError::new(&["url"], "with a server of your own none is started")
            .help("leave `server`, `heap`, `java` and `options` out, or `url`"));
    }
    Ok(())
}

/// Sessions at one time under this load, or what is wrong with it: `load` in the path.
pub(super) fn sessions(load: &LoadModel) -> Result<u32, FieldError> {
    let kind = match load {
        LoadModel::Closed { .. } => ["load", "closed", "clients"],
        LoadModel::Open { .. } => ["load", "open", "connections"],
    };
    let sessions = load.connections();
    if !(1..=SESSIONS_MAX).contains(&sessions) {
        return Err(FieldError::new(&kind, format!("{sessions} sessions are not between 1 and {SESSIONS_MAX}")));
    }
    match load {
        LoadModel::Closed { think_time, .. } if *think_time != Span::ZERO => {
            Err(FieldError::new(&["load", "closed", "think-time"], "users think as the site's table says")
                .help("leave it out; `tables` may name a file with other think times"))
        }
        _ => Ok(sessions),
    }
}

impl Parameters {
    /// Users or directories a session.
    pub(super) fn per_session(&self) -> Option<f64> {
        self.users_per_session.or(self.directories_per_session)
    }

    /// Heap of the virtual machine in a guest of that size, of which so many bytes are busy under the largest load, bytes.
    pub(super) fn heap_in(&self, guest: &GuestSize, busy: u64) -> u64 {
        if let Some(heap) = self.heap {
            return heap.0;
        }
        // What is beside the heap grows by a 32nd of it.
        let room = guest.memory.0.saturating_sub(beside_heap(0) + AGENT_BYTES) / 33 * 32;
        let wanted = busy.saturating_add(busy / 2).min(room);
        wanted.max(guest.memory.0 / 4).max(HEAP_LEAST)
    }

    /// Refuses a heap that does not fit.
    pub(super) fn fit(&self, guest: &GuestSize) -> Result<(), FieldError> {
        if self.url.is_some() {
            return Ok(());
        }
        // What is chosen for a load never takes more than there is.
        let heap = self.heap_in(guest, 0);
        let beside = beside_heap(heap) + AGENT_BYTES;
        if heap.saturating_add(beside) <= guest.memory.0 {
            return Ok(());
        }
        let why = format!(
            "a heap of {} MiB and {} MiB that the virtual machine takes beside it do not fit into a guest of {} MiB",
            heap / MIB,
            beside / MIB,
            guest.memory.0 / MIB
        );
        Err(FieldError::new(&["heap"], why).help("write a smaller heap, or ask for larger guests"))
    }
}

#[cfg(test)]
mod tests;
