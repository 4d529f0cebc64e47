//! What several workloads ask of a parameter.

use std::fmt::Display;

use tare_model::Span;
use tare_model::field::FieldError;

/// The longest time that a parameter may be, mostly.
pub(crate) const DAY: Span = Span::from_secs(86_400);

/// Refuses what is not between two values, which are allowed.
///
/// # Errors
/// At the field.
pub(crate) fn between<T: PartialOrd + Display>(field: &[&str], value: T, least: T, most: T) -> Result<(), FieldError> {
    if (&least..=&most).contains(&&value) {
        return Ok(());
    }
    Err(FieldError::new(field, format!("{value} is not between {least} and {most}")))
}

/// Refuses what is no share, from 0 to 1.
///
/// # Errors
/// At the field.
pub(crate) fn share(field: &str, value: f64) -> Result<(), FieldError> {
    between(&[field], value, 0.0, 1.0).map_err(|error| error.help("write a share, such as 0.1 for ten percent"))
}

/// Refuses a program in the guest that is not named by its whole path.
///
/// # Errors
/// At the field.
pub(crate) fn program_in_guest(field: &str, path: Option<&str>) -> Result<(), FieldError> {
    match path.filter(|path| !path.starts_with('/')) {
        Some(path) => Err(FieldError::new(&[field], format!("`{path}` is not an absolute path"))
            .help("write the path of the program in the guest, such as \"/usr/lib/jvm/java-17/bin/java\"")),
        None => Ok(()),
    }
}
