//! What tare states of itself, counted.

use serde::Serialize;
use tare_analysis::{Kept, Share};

/// Number of the form of `proof.json`.
const PROOF_SCHEMA: u32 = 1;

/// How often tare was wrong on a host.
#[derive(Debug, Serialize)]
pub struct Proof {
    /// Number of this form.
    pub schema: u32,
    /// The tare that was tried.
    pub tare_version: String,
    /// Its kernel.
    pub kernel: String,
    /// Its processor and their number.
    pub processor: String,
    /// When it began, UTC, RFC 3339.
    pub started_at: String,
    /// Whether it was the long form.
    pub full: bool,
    /// How long it took, seconds.
    pub wall_s: f64,
    /// The bars.
    pub bars: Vec<Bar>,
}

impl Proof {
    /// One that has no bars yet.
    pub fn begun(full: bool) -> Self {
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        let (tare_version, started_at) =
            (env!("CARGO_PKG_VERSION").to_owned(), jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        Self {
            schema: PROOF_SCHEMA,
            tare_version,
            kernel,
            processor: processor(),
            started_at,
            full,
            wall_s: 0.0,
            bars: Vec::new(),
        }
    }
}

fn processor() -> String {
    let seen = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = seen.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cpus} CPUs", model.map_or("unknown", |(_, name)| name.trim()))
}

/// A statement with a number, and what was counted.
#[derive(Debug, Clone, Serialize)]
pub struct Bar {
    /// Its name, the same in every proof.
    pub id: String,
    /// What tare states.
    pub statement: String,
    /// What is counted: `comparisons`.
    pub unit: &'static str,
    /// Largest rate of failures that the statement allows, 0 to 1.
    pub allowed: f64,
    /// Failures and all.
    pub share: Share,
    /// Exact interval of the rate at 95 %; `None` where nothing was counted.
    pub interval: Option<(f64, f64)>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What failed, and what a reader must know.
    pub notes: Vec<String>,
}

/// Whether a statement holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Met,
    /// It does not.
    NotMet,
    /// Too few were counted to say.
    Open,
    /// This host cannot try it.
    LeftOut,
}

impl Verdict {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "NOT MET",
            Self::Open => "open",
            Self::LeftOut => "left out",
        }
    }
}

impl Bar {
    /// A bar by what was counted.
    pub fn counted(
        id: &str,
        statement: &str,
        (allowed, unit): (f64, &'static str),
        share: Share,
        notes: Vec<String>,
    ) -> Self {
        let verdict = match share.keeps(allowed) {
            _ if share.of == 0 => Verdict::LeftOut,
            Kept::Met => Verdict::Met,
            Kept::NotMet => Verdict::NotMet,
            Kept::Open => Verdict::Open,
        };
        let interval = (share.of > 0).then(|| share.interval());
        let (id, statement) = (id.to_owned(), statement.to_owned());
        Self { id, statement, unit, allowed, share, interval, verdict, notes }
    }

    /// What was counted, in words.
    pub fn figure(&self) -> String {
        let Share { failed, of } = self.share;
        let rate = self.interval.map(|(low, high)| format!(", {:.1} to {:.1} %", low * 100.0, high * 100.0));
        format!("{failed} of {of} {}{}", self.unit, rate.unwrap_or_default())
    }
}
