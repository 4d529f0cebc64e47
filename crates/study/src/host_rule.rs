//! Who governs the host's memory, by their names in a study: the rules of merging, and those that size balloons.

use crate::language::shape::Words;

/// A rule of merging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Off,
    Fixed,
    PublishedScript,
    Ksmtuned,
    Advisor,
    Tare,
}

impl Words for Rule {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("fixed", Self::Fixed),
        ("published-script", Self::PublishedScript),
        ("ksmtuned", Self::Ksmtuned),
        ("advisor", Self::Advisor),
        ("tare", Self::Tare),
    ];
}

/// Who sizes balloons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BalloonRule {
    Off,
    Mom,
}

impl Words for BalloonRule {
    const WORDS: &'static [(&'static str, Self)] = &[("off", Self::Off), ("mom", Self::Mom)];
}

impl Rule {
    /// The fields that it has.
    pub(crate) const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Off => &[],
            Self::Fixed => &["pages-to-scan", "sleep", "zero-pages"],
            Self::PublishedScript | Self::Ksmtuned => &["zero-pages"],
            Self::Advisor => &["target-scan-time", "max-cpu", "zero-pages"],
            Self::Tare => &["free-goal", "max-cpu", "zero-pages"],
        }
    }
}
