//! A platform as the registry has it: what study files, plans and lists need to know of it, and how it is made of its options.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;

use crate::error::Result;
use crate::{Platform, ReapSite, options};

/// One platform, as study files, plans and lists need to know it.
pub struct Entry {
    /// Its name in a study file.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// JSON schema of its options.
    pub schema: fn() -> Value,
    /// Checks options and fills in what was left out.
    pub check_options: fn(&Value) -> std::result::Result<Value, FieldError>,
    /// Makes the platform with these options.
    pub make: fn(&Value) -> std::result::Result<Box<dyn Platform>, FieldError>,
    /// What a start takes here or there, for estimates.
    pub start_estimate: Span,
    /// Takes away what a run that is over left with this platform; the value is the token of
    /// [`tare_lab::Resource::Held`].
    pub reap: fn(&ReapSite<'_>, &Value) -> Result<()>,
    /// What of it is examined on a host; empty where only a study can say what there is to examine.
    pub variants: &'static [Variant],
    /// The option that a text behind a colon gives where an arm is named in a word, such as an image; `None`: nothing may stand there.
    pub colon: Option<&'static str>,
}

impl Entry {
    /// The entry of a platform that keeps nothing elsewhere and of which there is one variant.
    pub(crate) const fn of<P: FromOptions>(name: &'static str, summary: &'static str, start_estimate: Span) -> Self {
        Self {
            name,
            summary,
            schema: options::schema::<P::Options>,
            check_options: check::<P>,
            make: make::<P>,
            start_estimate,
            reap: |_, _| Ok(()),
            variants: &[Variant { name: "", options: "{}" }],
            colon: None,
        }
    }
}

/// One kind of a platform. A host may have one kind without the others.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// What tells it from the others; empty where there is one.
    pub name: &'static str,
    /// Its options, as JSON.
    pub options: &'static str,
}

impl Variant {
    /// Its name in a word, for a command line: without what explains it; `None` where it takes several words.
    pub fn word(&self) -> Option<&'static str> {
        let word = self.name.split(" (").next().unwrap_or_default();
        (!word.is_empty() && !word.contains([' ', ','])).then_some(word)
    }

    /// Its options, filled in as in a study.
    ///
    /// # Errors
    /// When the platform refuses them, which a test rules out.
    pub fn options(&self, entry: &Entry) -> std::result::Result<Value, FieldError> {
        let options = serde_json::from_str(self.options).map_err(|error| FieldError::new(&[], error.to_string()))?;
        (entry.check_options)(&options)
    }
}

/// A platform that is made of what a study says.
pub(crate) trait FromOptions: Platform + Sized + 'static {
    /// What a study says.
    type Options: Serialize + DeserializeOwned + JsonSchema;

    /// Reads it and refuses what cannot be meant.
    ///
    /// # Errors
    /// Which field is wrong, why, and what would be right.
    fn read(value: &Value) -> std::result::Result<Self::Options, FieldError> {
        options::read(value)
    }

    /// The platform with these options, which were checked.
    fn new(options: Self::Options) -> Self;
}

/// The options checked, with everything filled in that was left out.
pub(crate) fn check<P: FromOptions>(value: &Value) -> std::result::Result<Value, FieldError> {
    serde_json::to_value(P::read(value)?).map_err(|error| FieldError::new(&[], error.to_string()))
}

fn make<P: FromOptions>(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    Ok(Box::new(P::new(P::read(value)?)))
}
