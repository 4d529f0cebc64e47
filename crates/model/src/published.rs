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
    /// What it discloses of the conditions under which its figures were measured, in the order of its files.
    pub conditions: Vec<Condition>,
}

/// Where a figure stands in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// Name of the file, without its folders.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Name of the column or of the key.
    pub field: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}, field `{}`", self.file, self.line, self.field)
    }
}

/// One condition under which figures were measured, as a report discloses it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Condition {
    /// Case id; empty: it is not of one case.
    pub case: String,
    /// Arm id; empty: it is of every arm.
    pub arm: String,
    /// What has it, such as `web server`.
    pub subject: String,
    /// Which of its properties, such as `connection_timeout`.
    pub what: String,
    /// As printed.
    pub value: String,
    /// One of [`unit::named`]'s names; [`unit::NONE`] of words and of bare numbers.
    pub unit: String,
    /// Where it is printed, such as `line 1209`.
    pub source: String,
}

impl Condition {
    /// Value and unit for people: `10 GB`.
    pub fn printed(&self) -> String {
        if self.unit == unit::NONE { self.value.clone() } else { format!("{} {}", self.value, self.unit) }
    }

    /// The value in the unit that its kind is reckoned in (bytes, seconds, bits a second, a share); `None` of words.
    pub fn quantity(&self) -> Option<f64> {
        let (_, factor) = unit::named(&self.unit)?;
        let value = self.value.replace(',', "").parse::<f64>().ok()?;
        value.is_finite().then_some(value * factor)
    }

    /// Whether another discloses the same value, whatever unit it is printed in.
    pub fn agrees_with(&self, other: &Self) -> bool {
        match (self.quantity(), other.quantity()) {
            (Some(own), Some(beside)) => {
                let kind = |of: &Self| unit::named(&of.unit).map(|(unit, _)| unit);
                kind(self) == kind(other) && (own - beside).abs() <= 1e-9 * own.abs().max(beside.abs())
            }
            (None, None) => self.value.eq_ignore_ascii_case(&other.value),
            _ => false,
        }
    }
}

/// Names a condition in a claim. What is left out is empty, as in the condition itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConditionName {
    /// Case id.
    pub case: String,
    /// Arm id.
    pub arm: String,
    /// What has it.
    pub subject: String,
    /// Which of its properties.
    pub what: String,
}

impl ConditionName {
    /// Whether it names this condition.
    pub fn is_of(&self, condition: &Condition) -> bool {
        (&self.case, &self.arm, &self.subject, &self.what)
            == (&condition.case, &condition.arm, &condition.subject, &condition.what)
    }
}

/// Units in which reports print figures.
pub mod unit {
    use crate::metric::Unit;

    /// The unit of words and of bare numbers.
    pub const NONE: &str = "-";

    /// Name, unit in which it is reckoned, and how many of that it is. Memory is counted in powers of 1,024, as the reports
    /// do: 10 GB on one page are 10240 MB on another.
    const ALL: [(&str, Unit, f64); 16] = [
        ("s", Unit::Seconds, 1.0),
        ("ms", Unit::Seconds, 1e-3),
        ("min", Unit::Seconds, 60.0),
        ("B", Unit::Bytes, 1.0),
        ("KB", Unit::Bytes, 1024.0),
        ("MB", Unit::Bytes, 1_048_576.0),
        ("GB", Unit::Bytes, 1_073_741_824.0),
        ("bit/s", Unit::BitsPerSecond, 1.0),
        ("Mbit/s", Unit::BitsPerSecond, 1e6),
        ("Gbit/s", Unit::BitsPerSecond, 1e9),
        ("operations/s", Unit::OperationsPerSecond, 1.0),
        ("%", Unit::Share, 0.01),
        ("points", Unit::Count, 1.0),
        ("cores", Unit::Count, 1.0),
        ("MHz", Unit::Count, 1.0),
        (NONE, Unit::Count, 1.0),
    ];

    /// The unit of a name, and how many of it one of that name is; `None` of a name that is none.
    pub fn named(name: &str) -> Option<(Unit, f64)> {
        let found = ALL.iter().find(|(known, ..)| *known == name)?;
        // Those that nothing converts are units of their own.
        let unit = match &found.1 {
            Unit::Count if name != NONE => Unit::Other(name.to_owned()),
            unit => unit.clone(),
        };
        Some((unit, found.2))
    }

    /// Names of all units.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|(name, ..)| *name)
    }
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
    /// Where it was read; `None` where only the report tells it.
    #[serde(default)]
    pub place: Option<Place>,
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
    /// One arm's figure is so many times another's.
    Times {
        /// Case id.
        case: String,
        /// The larger one's arm.
        arm: String,
        /// The smaller one's arm.
        than: String,
        /// How many times, as printed.
        times: f64,
        /// Half of the last digit that is printed.
        rounding: f64,
    },
    /// One arm's figure is the best of all arms that the report names.
    Best {
        /// Case id, or what the report calls a case of which it prints no figure.
        case: String,
        /// Arm id.
        arm: String,
    },
    /// Conditions of some subjects were the same on every arm, in every case.
    Same {
        /// Subjects: those of [`Condition::subject`].
        subjects: Vec<String>,
    },
    /// A whole is, or is at least, what its factors come to.
    Product {
        /// Conditions to be multiplied with each other.
        factors: Vec<ConditionName>,
        /// The condition that they are held against.
        whole: ConditionName,
        /// Whether the whole may be more.
        more: bool,
    },
    /// One condition is so many percent of another.
    Share {
        /// The part.
        part: ConditionName,
        /// What it is a part of.
        than: ConditionName,
        /// Percent as printed.
        percent: f64,
        /// Half of the last digit that is printed.
        rounding: f64,
    },
}
