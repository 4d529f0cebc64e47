//! Names that become directories, control groups and links, and are checked before they do.

use crate::error::{LabError, Result};

const RUN_ID: &str = "1 to 48 lower-case letters, digits and `-`, beginning with a letter or a digit, such as \
                      `20261121-214502-7f3a`";
const GUEST: &str = "1 to 48 lower-case letters, digits and `-`, beginning with a letter or a digit, such as `target`";

fn is_plain(name: &str) -> bool {
    (1..=48).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
}

/// Refuses a run id that would reach outside its directory or match more than its own run.
pub(crate) fn check_run_id(run_id: &str) -> Result<()> {
    if is_plain(run_id) {
        return Ok(());
    }
    Err(LabError::Name { what: "run id", written: run_id.to_owned(), expected: RUN_ID })
}

/// Refuses a guest's name that could not be a directory of its own.
pub(crate) fn check_guest(name: &str) -> Result<()> {
    if is_plain(name) {
        return Ok(());
    }
    Err(LabError::Name { what: "name of a guest", written: name.to_owned(), expected: GUEST })
}

/// Name of a run's directory in every control group hierarchy, and alias of its links.
pub(crate) fn run_group(run_id: &str) -> String {
    format!("tare-{run_id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_reach_elsewhere_are_refused() {
        for bad in ["", ".", "..", "a/b", "../x", "A", "a b", "-a", "a\n", "a.b", &"x".repeat(49)] {
            assert!(check_run_id(bad).is_err(), "{bad:?}");
            assert!(check_guest(bad).is_err(), "{bad:?}");
        }
        assert!(check_run_id("20261121-214502-7f3a").is_ok());
        assert!(check_guest("target").is_ok());
    }
}
