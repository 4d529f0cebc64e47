//! Web sites as drivers see them: pages, how users go from one to the next, what files there are, and what is right.
//!
//! `docs/reference/web.md` has the protocol between driver, server and backend. What several programs must agree on to the
//! byte (markers of files, proofs of pages) is computed here alone.

use serde::{Deserialize, Serialize};
use tare_model::clean::Untrusted;
use tare_model::packed::Task;
use tare_model::trial::RequestType;

/// A site: what users ask of it, in which order, and how soon it must come. Made from the tables of the workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SiteModel {
    /// Name, the first part of the addresses of its pages, such as `banking`.
    pub name: String,
    /// What can be asked for. A new user begins with the first of `entry`.
    pub states: Vec<SiteState>,
    /// Names of the request types, in the order in which they are reported; `states[n].counted_as` points here.
    pub types: Vec<String>,
    /// First request of a new user: (state, probability); adds up to 1.
    pub entry: Vec<(u16, f64)>,
    /// How long users think.
    pub think: Think,
    /// How soon a page must have come.
    pub pages: Quality,
    /// How fast downloads must come, bytes a second: (good, tolerable); `None` where there are none.
    pub downloads: Option<(f64, f64)>,
    /// Files beside the fixed ones.
    pub files: FileSet,
}

/// Bounds of the response time of a page with all its embedded files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quality {
    /// At most so long is good, nanoseconds.
    pub good_ns: u64,
    /// At most so long is tolerable, nanoseconds; longer has failed.
    pub tolerable_ns: u64,
}

/// Think times: exponential with this mean, cut off at the most, in multiples of the granularity (rounded to the nearest).
/// All 0: users do not think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Think {
    /// Mean before cutting off, nanoseconds.
    pub mean_ns: u64,
    /// Most, nanoseconds.
    pub most_ns: u64,
    /// Granularity, nanoseconds; 0: none.
    pub step_ns: u64,
}

/// One thing that can be asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SiteState {
    /// Name, unique in the site; of a page also the last part of its address.
    pub name: String,
    /// Index into [`SiteModel::types`].
    pub counted_as: u16,
    /// What is asked for.
    pub body: Body,
    /// Whether over TLS, where the server has it.
    pub secure: bool,
    /// Whether the user thinks before it, unless it is the first of a session.
    pub thinks: bool,
    /// Files that belong to it, in the order in which they are asked for once the page has come and was right.
    pub embedded: Vec<Embedded>,
    /// What comes next: (state, probability). What is left of 1 ends the session.
    pub next: Vec<(u16, f64)>,
    /// Target share of this state in all requests, 0 to 1, where the tables give one.
    pub target: Option<f64>,
}

/// What the answer to a request is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// A page that the server makes.
    Page {
        /// Title that it must have.
        title: String,
        /// Number of the backend's command that it must have asked.
        command: u16,
        /// What the address and the query of the backend carry, in order: (name, value).
        parameters: Vec<(String, Parameter)>,
        /// Least bytes of the body.
        padding: u64,
    },
    /// A file as it lies on the disk.
    File(FileRef),
    /// A file whose quality is its byte rate.
    Download,
}

impl Default for Body {
    fn default() -> Self {
        Self::File(FileRef::default())
    }
}

/// A value of a user that a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Parameter {
    /// The user, 10 digits.
    User,
    /// One of the user's checks, 6 digits.
    Check,
    /// The product that the user looks at: `DIRECTORY-ITEM`, 5 digits and one.
    Product,
    /// A number from 0 to below this, chosen anew each time.
    Choice(u32),
    /// Digits that no other request of the run has, so that no answer can have been kept: 16 hexadecimal ones.
    Token,
}

/// A file that belongs to a page.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Embedded {
    /// Which.
    pub file: FileRef,
    /// Probability that the user has it already, so that it is asked for only if it has changed, 0 to 1.
    pub unchanged: f64,
}

/// A file of the site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FileRef {
    /// Always the same one.
    Fixed {
        /// Path of its address, such as `/files/banking/images/login/03.gif`.
        path: String,
        /// Length, bytes.
        bytes: u64,
    },
    /// An image of the user's check: the front, else the back.
    Check {
        /// Whether the front.
        front: bool,
    },
    /// An image of the product that the user looks at, by class.
    Product {
        /// Index into [`FileSet::products`]' classes.
        class: u8,
    },
}

impl Default for FileRef {
    fn default() -> Self {
        Self::Fixed { path: String::new(), bytes: 0 }
    }
}

/// The files beside the fixed ones, of which there are more the more sessions there are. Lengths are `base + step * i`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FileSet {
    /// Images of checks.
    pub checks: Option<CheckFiles>,
    /// Images of products.
    pub products: Option<ProductFiles>,
    /// Downloads.
    pub downloads: Option<DownloadFiles>,
}

/// `/files/SITE/checks/USER/CHECK-front.gif` and `-back.gif`. The i-th check of a user has the number `(user % 100000) * 10 + i`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckFiles {
    /// Users that there are: numbers from 1 to this.
    pub users: u32,
    /// Checks a user, at most 10.
    pub checks: u32,
    /// Length of a front: base and step, bytes.
    pub front: (u64, u64),
    /// Length of a back.
    pub back: (u64, u64),
}

/// `/files/SITE/products/DIRECTORY/ITEM-CLASS.jpg`, directories from 0, items from 0, classes `a`, `b`, `c` ...
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProductFiles {
    /// Directories.
    pub directories: u32,
    /// Products in each, at most 10.
    pub items: u32,
    /// Length by class: base and step (times the item), bytes.
    pub classes: Vec<(u64, u64)>,
}

/// `/files/SITE/downloads/DIRECTORY/CLASS-ITEM.bin`, all numbers from 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DownloadFiles {
    /// Directories.
    pub directories: u32,
    /// Exponent of the popularity of directories (Zipf); 0: all alike.
    pub zipf: f64,
    /// Classes.
    pub classes: Vec<DownloadClass>,
}

/// Downloads of similar size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DownloadClass {
    /// Probability of the class; all add up to 1.
    pub share: f64,
    /// Length of the i-th: base and step, bytes.
    pub size: (u64, u64),
    /// Probability of the i-th within the class; adds up to 1. There are as many files as entries.
    pub within: Vec<f64>,
}

/// What a driver of sessions is given. `targets[0]` is the plain port, `targets[1]` that with TLS; one alone serves both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebDrive {
    /// The site, its files as many as there are on the server's disk.
    pub site: SiteModel,
    /// What is known of the server's TLS; `None`: everything is plain.
    pub tls: Option<TlsSpec>,
    /// Name of the host that requests carry.
    pub host: String,
    /// Connections a session, at least 1.
    pub connections: u8,
    /// Whether a new user opens connections of its own; false only to measure requests without connecting.
    pub fresh_connections: bool,
    /// Bytes a second that are read from a connection at most; `None`: as they come.
    pub receive_bytes_per_s: Option<u64>,
    /// Known to the backend as well; see `proof` of the agent's part.
    pub salt: u64,
    /// Whether bodies are checked; false only to measure what checking costs.
    pub check: bool,
    /// A page has failed once nothing has come of an answer to it for this long, nanoseconds.
    pub timeout_ns: u64,
    /// A page that is later than its think time by more than this is counted as overrun, nanoseconds.
    pub overrun_ns: u64,
    /// Threads; sessions are dealt to them in turn.
    pub threads: u32,
}

/// TLS as the driver speaks it: 1.3, or 1.2 with forward secrecy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSpec {
    /// SHA-256 of the certificate that the server must show; `None`: any, which is disclosed.
    pub certificate_sha256: Option<Vec<u8>>,
}

/// What a driver of sessions did. All of the measured window unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WebDone {
    /// By request type, in the order of [`SiteModel::types`].
    pub types: Vec<RequestType>,
    /// Sessions that began.
    pub sessions_began: u64,
    /// Most sessions at one time.
    pub sessions_most: u64,
    /// Requests that were sent to the server, embedded files counted.
    pub exchanges: u64,
    /// Of which were answered with "not modified".
    pub not_modified: u64,
    /// What was wrong with answers, by kind, such as `marker`, `proof`, `title`, `status 500`, `timeout`, `refused`, `tls`;
    /// each counts one request of its type as a validation error. All phases.
    pub faults: Vec<(String, u64)>,
    /// Connections that were opened, all phases.
    pub connections: u64,
    /// Requests that were sent once more, because the server had closed a kept connection before it saw them; all phases.
    pub reconnected: u64,
    /// TLS handshakes in full, all phases.
    pub handshakes_full: u64,
    /// TLS handshakes that resumed a session, all phases.
    pub handshakes_resumed: u64,
    /// Pages that came so late that they overran their user's next think time by more than the cap.
    pub overruns: u64,
    /// User memory of the driver's process when the load ended, over the sessions that there were, bytes.
    pub memory_per_session_bytes: u64,
}

impl Task for WebDrive {
    const KIND: &'static str = "web";
    type Outcome = WebDone;
}

impl Untrusted for WebDone {
    fn clean(&mut self) {
        self.faults.clean();
        self.types.clean();
    }
}

/// A server that stands for the database of a web application; `docs/reference/web.md` has its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendSpec {
    /// What its proofs are made with; see `proof` of the agent's part.
    pub salt: u64,
    /// How long it waits before each answer, nanoseconds.
    pub delay_ns: u64,
}

impl Task for BackendSpec {
    const KIND: &'static str = "web backend";
    type Outcome = ();
}
