//! All platforms.

use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;

use crate::error::Result;
use crate::{Platform, ReapSite, container, native, null, oci};

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
}

/// Every platform, the plainest first.
pub fn all() -> &'static [Entry] {
    const ALL: &[Entry] = &[null::ENTRY, native::ENTRY, container::ENTRY, oci::ENTRY];
    ALL
}

/// The platform of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.name == name)
}

/// For platforms that keep nothing elsewhere: there is nothing to take away.
pub(crate) fn nothing_held(_: &ReapSite<'_>, _: &Value) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_unique_and_every_platform_works_without_options() {
        let mut names: Vec<_> = all().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().len());
        for entry in all() {
            let filled = (entry.check_options)(&json!({})).unwrap();
            assert_eq!((entry.check_options)(&filled).unwrap(), filled, "{}: filled options are final", entry.name);
            assert!((entry.make)(&filled).is_ok(), "{}", entry.name);
            assert_eq!((entry.schema)()["type"], "object", "{}", entry.name);
        }
    }

    #[test]
    fn an_unknown_option_is_refused_by_its_name() {
        for entry in all() {
            let error = (entry.check_options)(&json!({"colour": "red"})).unwrap_err();
            assert!(error.to_string().contains("colour"), "{}: {error}", entry.name);
        }
    }
}
