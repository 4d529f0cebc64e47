//! The rules of merging by their names in a study.

use crate::language::shape::Words;

/// A rule by its name in a study.
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
