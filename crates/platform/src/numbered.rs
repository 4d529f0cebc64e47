//! Names that a study gives to what each guest has one of: disks, units, devices, directories.

/// What stands for a guest's number in such a name.
const PLACEHOLDER: &str = "{guest}";

/// Whether a name is one for each guest.
pub(crate) fn is_each_guests(name: &str) -> bool {
    name.contains(PLACEHOLDER)
}

/// A name of the user's for what one guest has: `{guest}` is the number of the guest in its trial, from 1, so that the
/// same names serve every trial.
pub(crate) fn for_guest(name: &str, guest: &str) -> String {
    for_number(name, number(guest))
}

/// The same by number.
pub(crate) fn for_number(name: &str, number: u32) -> String {
    name.replace(PLACEHOLDER, &number.to_string())
}

/// Which of its trial's guests one is, from 1: the names of several end in `x0`, `x1`, .. after what tells the trial.
pub(crate) fn number(guest: &str) -> u32 {
    let last = guest.rsplit_once('x').and_then(|(_, last)| last.parse::<u32>().ok());
    last.map_or(1, |last| last.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_named_by_the_number_of_the_guest_whatever_the_trial() {
        let names = ["t0x0", "t17x0", "t5y1x2", "t9", "machine", "x"].map(|guest| for_guest("/dev/vg0/{guest}", guest));
        assert_eq!(names, [1, 1, 3, 1, 1, 1].map(|number| format!("/dev/vg0/{number}")));
        assert!(is_each_guests("/dev/{guest}") && !is_each_guests("/dev/sdb"));
    }
}
