//! What does not hold together in a run, or cannot be compared.

use serde::{Deserialize, Serialize};

use crate::published::{Claim, ClaimKind};

/// One thing that an audit looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Which check, such as `bytes-a-request`.
    pub check: AuditCheck,
    /// What came of it.
    pub outcome: AuditOutcome,
    /// Case id; empty: the whole run.
    pub case: String,
    /// Arms that it concerns, by id.
    pub arms: Vec<String>,
    /// What was found, in a sentence with the figures.
    pub detail: String,
    /// What follows for the reader, in a sentence; empty where nothing does.
    pub consequence: String,
}

/// The entry that judges a claim of a published report, and what it says of it; `None` where none was made.
pub fn of_claim<'a>(entries: &'a [AuditEntry], claim: &Claim) -> Option<(&'a AuditEntry, &'a str)> {
    let (check, case) = judged_by(&claim.kind);
    let said = said(claim);
    let of = |entry: &'a AuditEntry| Some((entry, entry.detail.strip_prefix(said.as_str())?));
    let own = |entry: &&AuditEntry| entry.check == check && case.is_none_or(|case| entry.case == case);
    // Entries are in the order of their gravity: the gravest judges the claim.
    entries.iter().filter(own).find_map(of)
}

/// The check that judges a claim, and the case of its entry; `None`: whichever case the check finds.
fn judged_by(kind: &ClaimKind) -> (AuditCheck, Option<&str>) {
    match kind {
        ClaimKind::Percent { case, .. } | ClaimKind::Times { case, .. } => (AuditCheck::Base, Some(case)),
        ClaimKind::Share { .. } => (AuditCheck::Base, None),
        ClaimKind::Rate { case, .. } => (AuditCheck::PerRun, Some(case)),
        ClaimKind::Score { .. } => (AuditCheck::Score, Some("")),
        ClaimKind::Best { .. } | ClaimKind::Same { .. } | ClaimKind::Product { .. } => (AuditCheck::Claims, None),
    }
}

/// How the detail of an entry that judges a claim begins: the claim in quotation marks.
pub fn said(claim: &Claim) -> String {
    format!("\"{}\": ", claim.text.trim_end_matches('.'))
}

/// How grave it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditOutcome {
    /// It holds.
    Holds,
    /// It is unknown.
    Unknown,
    /// It holds with a reservation that a reader must know.
    Reservation,
    /// It does not hold: no verdict may rest on it.
    Broken,
}

/// The checks there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditCheck {
    /// Totals add up to what they are totals of.
    Totals,
    /// A request is the same work on every arm: its bytes.
    BytesARequest,
    /// The mix of request types is that of the tables, and the same on every arm.
    Mix,
    /// There are requests enough of each type.
    Enough,
    /// Percentages are of the base that they seem to be of.
    Base,
    /// Figures of a whole run are not taken for those of a second, or the other way round.
    PerRun,
    /// Arms were compared with the same number of guests, clients and drivers.
    Conditions,
    /// Wrong answers are few enough.
    Validation,
    /// A score is what its parts make it.
    Score,
    /// What a report says follows from the conditions that it discloses.
    Claims,
    /// What offered the load, and what stood behind the server, did not limit it.
    Instrument,
    /// Every arm was repeated, in fresh instances.
    Repeated,
}

impl AuditCheck {
    /// Name in files and on the terminal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Totals => "totals",
            Self::BytesARequest => "bytes-a-request",
            Self::Mix => "mix",
            Self::Enough => "enough",
            Self::Base => "base",
            Self::PerRun => "per-run",
            Self::Conditions => "conditions",
            Self::Validation => "validation",
            Self::Score => "score",
            Self::Claims => "claims",
            Self::Instrument => "instrument",
            Self::Repeated => "repeated",
        }
    }
}

/// Parameters by which a case of a workload with request types sets the limits of its audit.
pub mod limit {
    /// Points (0 to 1) by which the share of a type may miss its target.
    pub const MIX_DEVIATION_MAX: &str = "mix-deviation-max";
    /// Fewest requests of a type in an iteration.
    pub const LEAST_REQUESTS: &str = "least-requests";
    /// Largest share of requests with a wrong answer, or none.
    pub const VALIDATION_ERRORS_MAX: &str = "validation-errors-max";
    /// All of them.
    pub const ALL: [&str; 3] = [MIX_DEVIATION_MAX, LEAST_REQUESTS, VALIDATION_ERRORS_MAX];
}
