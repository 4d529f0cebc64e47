//! What a run does otherwise than the published study that it repeats.

use serde::{Deserialize, Serialize};

/// One thing that a published study had, and a run of tare's has otherwise. Plain text, a phrase or a sentence each; none is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deviation {
    /// What differs, in a few words.
    pub what: String,
    /// What was published.
    pub published: String,
    /// What is here.
    pub here: String,
    /// Why it is not as published.
    pub why: String,
    /// What that likely does to the figures.
    pub effect: String,
    /// Ids of the cases that it concerns; empty: all.
    pub cases: Vec<String>,
    /// Ids of the arms that it concerns; empty: all.
    pub arms: Vec<String>,
}

impl Deviation {
    /// A deviation of all cases and arms. The pair is what was published and what is here.
    pub fn new(
        what: &str,
        (published, here): (impl Into<String>, impl Into<String>),
        why: impl Into<String>,
        effect: impl Into<String>,
    ) -> Self {
        Self {
            what: what.to_owned(),
            published: published.into(),
            here: here.into(),
            why: why.into(),
            effect: effect.into(),
            cases: Vec::new(),
            arms: Vec::new(),
        }
    }

    /// Its texts, to be read or changed in place: all but the ids.
    pub fn texts_mut(&mut self) -> [&mut String; 5] {
        [&mut self.what, &mut self.published, &mut self.here, &mut self.why, &mut self.effect]
    }

    /// Whether both say the same, of whatever cases and arms.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let texts = |own: &Self| [&own.what, &own.published, &own.here, &own.why, &own.effect].map(String::clone);
        texts(self) == texts(other)
    }
}

/// The published study that a study repeats.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Original {
    /// Number of the report, such as `000`.
    pub report: String,
    /// Ids of the arms that the report is about: without one of them the study is another one.
    pub subject: Vec<String>,
    /// What the study itself has otherwise, whatever host it runs on.
    pub deviations: Vec<Deviation>,
}
