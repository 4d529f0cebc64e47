//! Figures that somebody else published: where they are from, and what was claimed of them.

use serde::{Deserialize, Serialize};

/// Where the figures of an imported run come from. A study that has this was not measured by tare.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Published {
    /// Number or short name of the report, such as `002`.
    pub report: String,
    /// What it is, in a sentence.
    pub title: String,
    /// Files that were read: (name, SHA-256 in hexadecimal).
    pub files: Vec<(String, String)>,
    /// Totals that are printed in the files beside the figures that they are of.
    pub printed: Vec<PrintedTotal>,
    /// What the report says of its figures.
    pub claims: Vec<Claim>,
    /// Conditions that differ between the arms, each in a sentence that names both.
    pub conditions: Vec<String>,
}

/// A figure that is printed as the sum or the mean of others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PrintedTotal {
    /// Case id.
    pub case: String,
    /// Arm id.
    pub arm: String,
    /// Which iteration, from 1; 0: the whole.
    pub iteration: u32,
    /// What it is of: one of [`figure`]'s, or the type's name and a dot before one of these, or a metric's id.
    pub figure: String,
    /// As printed.
    pub value: f64,
    /// Half of the last digit that is printed.
    pub rounding: f64,
}

/// Figures that are printed of requests, by the names that [`PrintedTotal::figure`] gives them; of one type with its name and a point before.
pub mod figure {
    /// Requests.
    pub const REQUESTS: &str = "requests";
    /// Of which good.
    pub const GOOD: &str = "good";
    /// Of which tolerable and no better.
    pub const TOLERABLE: &str = "tolerable";
    /// Of which failed.
    pub const FAILED: &str = "failed";
    /// Mean response time, seconds.
    pub const RESPONSE: &str = "response_s";
    /// Mean bytes of a request.
    pub const BYTES_EACH: &str = "bytes_per_request";
    /// Weighted byte rate, bytes a second.
    pub const BYTE_RATE: &str = "byte_rate";
}

/// What a report says of its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The claim, in our words.
    pub text: String,
    /// What it comes to.
    pub kind: ClaimKind,
}

/// What a claim comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// One arm's figure is larger than another's by so many percent.
    Percent {
        /// Case id; empty: it is of the score over all cases.
        case: String,
        /// The larger one's arm.
        arm: String,
        /// The smaller one's arm: the base that a reader takes it to be of.
        than: String,
        /// Percent as printed.
        percent: f64,
        /// Half of the last digit that is printed.
        rounding: f64,
    },
    /// A rate in a second, of a figure that is reported for a whole run.
    Rate {
        /// Case id.
        case: String,
        /// Arm id.
        arm: String,
        /// Guests.
        guests: u32,
        /// In a second, as printed.
        per_s: f64,
    },
    /// A score over several cases.
    Score {
        /// Arm id.
        arm: String,
        /// As printed.
        score: f64,
    },
}
