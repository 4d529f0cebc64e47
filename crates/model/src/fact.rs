//! Names of the facts of a trial that more than one crate knows ([`crate::trial::TrialRecord::facts`]).

/// What a guest's data lie on.
pub const DATA_ON: &str = "data on";
/// How long it took to restore them before the trial.
pub const DATA_RESTORED_IN: &str = "data restored in";
/// How they were restored.
pub const DATA_RESTORED_BY: &str = "data restored by";

/// How far apart the drivers of a guest began, by the controller's clock.
pub const DRIVERS_BEGAN_WITHIN: &str = "drivers began within";

/// The name of the fact of how the clock of a host beside this one stands to this one's.
pub fn clock_of(host: &str) -> String {
    format!("clock of host {host}")
}

/// The name of a fact about the `number`-th guest of a trial, from 1: the first guest's have no number.
pub fn of_guest(number: u32, name: &str) -> String {
    if number <= 1 { name.to_owned() } else { format!("guest {number}: {name}") }
}

/// The name of a fact without the guest that it is about, and that guest's number where it is not the first.
pub fn plain(name: &str) -> (&str, Option<u32>) {
    let parts = name.strip_prefix("guest ").and_then(|rest| rest.split_once(": "));
    match parts.and_then(|(number, plain)| Some((plain, number.parse().ok()?))) {
        Some((plain, number)) => (plain, Some(number)),
        None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_guest, plain};

    #[test]
    fn the_number_of_a_guest_is_found_in_the_name_that_was_made_with_it() {
        assert_eq!(plain(&of_guest(12, "data on")), ("data on", Some(12)));
        assert_eq!(plain(&of_guest(1, "data on")), ("data on", None));
        assert_eq!(plain("guest clock"), ("guest clock", None));
        assert_eq!(plain("guest x: clock"), ("guest x: clock", None));
    }
}
