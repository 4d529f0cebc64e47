//! Names of the facts of a trial that more than one crate knows ([`crate::trial::TrialRecord::facts`]).

use crate::guest::DataPlace;

/// What a guest's data lie on.
pub const DATA_ON: &str = "data on";
/// How long it took to restore them before the trial.
pub const DATA_RESTORED_IN: &str = "data restored in";
/// How they were restored.
pub const DATA_RESTORED_BY: &str = "data restored by";

/// How far apart the drivers of a guest began, by the controller's clock.
pub const DRIVERS_BEGAN_WITHIN: &str = "drivers began within";

/// Which host serves what guests ask the driver's side for, where the study names one.
pub const SERVICES_ON: &str = "services on";

/// The name of the fact of how the clock of a host beside this one stands to this one's.
pub fn clock_of(host: &str) -> String {
    format!("clock of host {host}")
}

/// What the log of a guest's database lies on, where that is storage of its own.
pub const LOG_ON: &str = "log on";
/// How long it took to restore the log.
pub const LOG_RESTORED_IN: &str = "log restored in";
/// How the log was restored.
pub const LOG_RESTORED_BY: &str = "log restored by";

/// What a guest's data and their log lie on, and how they got there.
pub fn of_data(place: &DataPlace) -> Vec<(&'static str, String)> {
    let of = |names: [&'static str; 3], place: &DataPlace| {
        let values = [place.storage.clone(), format!("{:.2} s", place.restore_s), place.restored_by.clone()];
        names.into_iter().zip(values)
    };
    let log = place.log.as_deref().into_iter().flat_map(|log| of([LOG_ON, LOG_RESTORED_IN, LOG_RESTORED_BY], log));
    of([DATA_ON, DATA_RESTORED_IN, DATA_RESTORED_BY], place).chain(log).collect()
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
    use super::{of_data, of_guest, plain};
    use crate::guest::DataPlace;

    #[test]
    fn a_log_of_its_own_has_facts_of_its_own() {
        let place = |storage: &str, log| DataPlace {
            path: "/data".into(),
            storage: storage.into(),
            on_host: None,
            restore_s: 1.25,
            restored_by: "copied".into(),
            log,
        };
        let with_log = place("a disk", Some(Box::new(place("another", None))));
        let names = |place: &DataPlace| of_data(place).iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(&place("a disk", None)), ["data on", "data restored in", "data restored by"]);
        assert_eq!(names(&with_log)[3..], ["log on", "log restored in", "log restored by"]);
        assert_eq!((of_data(&with_log)[3].1.as_str(), of_data(&with_log)[1].1.as_str()), ("another", "1.25 s"));
    }

    #[test]
    fn the_number_of_a_guest_is_found_in_the_name_that_was_made_with_it() {
        assert_eq!(plain(&of_guest(12, "data on")), ("data on", Some(12)));
        assert_eq!(plain(&of_guest(1, "data on")), ("data on", None));
        assert_eq!(plain("guest clock"), ("guest clock", None));
        assert_eq!(plain("guest x: clock"), ("guest x: clock", None));
    }
}
