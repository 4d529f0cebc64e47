//! Users of their own for the programs that carry a machine, and what the kernel says of who they are.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use tare_model::guest::ParityRow;
use tare_wire::launch::{LaunchCapability, LaunchUser};

use crate::builder::GuestBuilder;
use crate::error::Result;
use crate::parity;

/// The first of the numbers of users and groups, `0x74000000`, and how many there are. No distribution assigns them
/// (systemd's list of user numbers has the range as unused).
const FIRST: u32 = 0x7400_0000;
const COUNT: u32 = 1 << 24;
/// CAP_DAC_OVERRIDE and CAP_FOWNER, as /proc has them: what reads all files.
pub(crate) const ALL_FILES: u64 = 1 << 1 | 1 << 3;

/// A number that no other program of this run has, and those of other runs hardly ever. Without root there is only the user who runs
/// tare, who is 0 in tare's user namespace.
pub(crate) fn fresh(run_id: &str) -> u32 {
    if tare_lab::is_rootless() {
        return 0;
    }
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let mut hasher = DefaultHasher::new();
    run_id.hash(&mut hasher);
    let begin = (hasher.finish() % u64::from(COUNT)) as u32;
    FIRST + begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % COUNT
}

/// A user of one's own with these capabilities.
pub(crate) fn own(run_id: &str, capabilities: &[LaunchCapability]) -> LaunchUser {
    let number = fresh(run_id);
    LaunchUser { uid: number, gid: number, capabilities: capabilities.to_vec() }
}

/// What a program is to be, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Confined {
    /// Its user; `None` where it has several.
    pub uid: Option<u32>,
    /// The capabilities that it may use, as a set of bits.
    pub capabilities: u64,
    /// Whether a filter is between it and the kernel's system calls.
    pub filtered: bool,
}

impl Confined {
    /// A user of one's own with these capabilities.
    pub(crate) const fn new(uid: u32, capabilities: u64, filtered: bool) -> Self {
        Self { uid: Some(uid), capabilities, filtered }
    }

    /// What the kernel says of a process.
    pub(crate) fn of(process: u32) -> Option<Self> {
        parsed(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?)
    }

    /// Why a program that is found to be this, or cannot be seen, is not to carry a guest.
    fn too_much(found: Option<Self>, asked: Self) -> Option<String> {
        let Some(found) = found else { return Some("what it may do cannot be read in /proc/PID/status".to_owned()) };
        let (wanted, is) = (asked.words(asked.uid), found.words(asked.uid));
        (!found.is_within(asked)).then(|| format!("it was to be {wanted}, and is {is}"))
    }

    /// Whether it may do no more than another. A filter is shown, but takes no rights away.
    fn is_within(self, asked: Self) -> bool {
        self.uid == asked.uid && self.capabilities & !asked.capabilities == 0
    }

    /// In words that are the same for every guest: its number is of no interest to who compares two runs.
    fn words(self, own: Option<u32>) -> String {
        self.words_where(own, tare_lab::is_rootless())
    }

    fn words_where(self, own: Option<u32>, rootless: bool) -> String {
        let user = match self.uid {
            Some(0) if rootless => "the user who runs tare".to_owned(),
            uid if uid.is_some() && uid == own => "a user of its own".to_owned(),
            Some(0) => "root".to_owned(),
            Some(uid) => format!("user {uid}"),
            None => "several users".to_owned(),
        };
        let capabilities = match self.capabilities {
            0 => "no capabilities".to_owned(),
            // Over what this user has, and nothing else.
            set if rootless => format!("capabilities {set:#x} in a user namespace"),
            ALL_FILES => "CAP_DAC_OVERRIDE and CAP_FOWNER".to_owned(),
            set => format!("capabilities {set:#x}"),
        };
        format!("{user}, {capabilities}, {}seccomp filter", if self.filtered { "" } else { "no " })
    }
}

fn parsed(status: &str) -> Option<Confined> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let uids: Vec<u32> = field("Uid")?.split_whitespace().map_while(|uid| uid.parse().ok()).collect();
    let [first, rest @ ..] = uids.as_slice() else { return None };
    Some(Confined {
        uid: rest.iter().all(|uid| uid == first).then_some(*first),
        capabilities: u64::from_str_radix(field("CapEff")?.trim(), 16).ok()?
            | u64::from_str_radix(field("CapPrm")?.trim(), 16).ok()?,
        filtered: field("Seccomp").is_some_and(|mode| mode.trim() == "2"),
    })
}

/// Looks what a program is, and notes it for the report.
///
/// # Errors
/// When it may do more than it was to, or nothing can be read of it: then no guest is carried by it.
pub(crate) fn hold_to(builder: &mut GuestBuilder<'_>, program: &str, process: u32, asked: Confined) -> Result<()> {
    let found = Confined::of(process);
    // With root it is a user of its own, which is what is compared with.
    let (asked_words, granted) = (asked.words_where(asked.uid, false), found.map(|found| found.words(asked.uid)));
    if let Some(why) = Confined::too_much(found, asked) {
        let remedy = "It has ended, or its own sandbox does not work here: try another version of it, and report this";
        return Err(builder.failed(&format!("confine {program}"), why, remedy));
    }
    let users = match tare_lab::is_rootless() {
        true => "without root there is nobody else to be".to_owned(),
        false => format!("the users are of the range {FIRST:#x} to {:#x}", FIRST + COUNT - 1),
    };
    let note = format!("/proc/PID/status; {users}");
    builder.note(parity::row(format!("rights of {program}"), asked_words, granted, note));
    Ok(())
}

/// Notes what a program is that is not asked to be anything else; `why` says whose choice that is.
pub(crate) fn note_as_found(builder: &mut GuestBuilder<'_>, program: &str, process: u32, why: &str) {
    let granted = Confined::of(process).map(|found| found.words(None));
    let note = format!("/proc/PID/status; {why}");
    let (resource, asked) = (format!("rights of {program}"), "not asked".to_owned());
    // Whatever it is is as asked. Only what cannot be read is to be seen as a difference.
    let equal = granted.is_some();
    builder.note(ParityRow { resource, asked, granted, equal, note });
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nUid:\t7\t7\t7\t7\nCapInh:\t0\nCapPrm:\t000000000000000a\nCapEff:\t0000000000000000\n\
                          Seccomp:\t2\nSeccomp_filters:\t1\n";

    #[test]
    fn rights_are_read_as_the_kernel_tells_them() {
        let seen = parsed(STATUS).unwrap();
        assert_eq!(seen, Confined::new(7, ALL_FILES, true), "what it may take counts as had");
        assert_eq!(parsed(&STATUS.replace("7\t7\t7\t7", "0\t7\t7\t7")).unwrap().uid, None);
        assert!(!parsed(&STATUS.replace("Seccomp:\t2", "Seccomp:\t0")).unwrap().filtered);
        assert_eq!(parsed("Name: x"), None);
    }

    #[test]
    fn more_rights_than_asked_are_seen_and_fewer_are_fine() {
        let asked = Confined::new(7, ALL_FILES, true);
        assert!(asked.is_within(asked) && Confined::new(7, 0, false).is_within(asked));
        assert!(!Confined::new(0, 0, true).is_within(asked), "another user");
        assert!(!Confined { uid: None, ..asked }.is_within(asked), "another user beside it");
        assert!(!Confined::new(7, 2 | 4, true).is_within(asked), "another capability");
        assert_eq!(Confined::too_much(Some(asked), asked), None);
        let root = Confined::too_much(Some(Confined::new(0, 4, false)), asked);
        assert!(root.is_some_and(|why| why.contains("is root, capabilities 0x4")));
        assert!(Confined::too_much(None, asked).is_some(), "a program of which nothing can be read");
        assert_eq!(asked.words(Some(7)), "a user of its own, CAP_DAC_OVERRIDE and CAP_FOWNER, seccomp filter");
        assert_eq!(Confined::new(0, 4, false).words_where(Some(7), false), "root, capabilities 0x4, no seccomp filter");
        let without_root = Confined::new(0, 0, true);
        assert_eq!(without_root.words_where(Some(0), true), "the user who runs tare, no capabilities, seccomp filter");
        assert_eq!(without_root.words_where(Some(0), false), "a user of its own, no capabilities, seccomp filter");
    }

    #[test]
    fn every_program_has_a_number_of_its_own() {
        let numbers: std::collections::BTreeSet<u32> = (0..100).map(|_| fresh("r")).collect();
        assert!(numbers.len() == 100 && numbers.iter().all(|number| (FIRST..FIRST + COUNT).contains(number)));
    }
}
