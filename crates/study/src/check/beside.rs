//! Fields of a case that cannot stand beside each other.

use crate::language::tree::Cursor;

const ONE_LOAD: (&str, &str) = ("a case has one load", "leave one of them out");
const OWN_LOAD: (&str, &str) =
    ("it says how much load is offered", "leave it out; cases of their own can differ in their loads");
const ADDS_GUESTS: &str = "`density` adds guests itself, each with one driver";
const ONE_GUEST: (&str, &str) = ("the capacity is that of one guest", "leave it out");
const PREDICTED: (&str, &str) = (
    "what is predicted is what one load in given guests comes to",
    "leave it out; a case with a `load` of its own can be held out",
);
const FEWER: (&str, &str) = (
    "it may come to fewer clients, and each instance has one at least",
    "leave one of them out; `cpu-target` and `load` can be had with instances",
);
const TWO_CASES: &str = "leave one of them out, or make two cases";

/// Counts of which 1, and switches of which `false`, is as if they were absent.
pub(crate) const COUNTS_AND_SWITCHES: [&str; 5] = ["guests", "drivers", "instances", "busy-target", "held-out"];

/// A field, another beside which it cannot stand, why, and what to do.
pub(crate) const NOT_BESIDE: [(&str, &str, (&str, &str)); 25] = [
    ("loads", "load", ("a case has one or the other", "move the `load` into `loads` under a name")),
    ("loads", "capacity", OWN_LOAD),
    ("loads", "load-from", OWN_LOAD),
    ("loads", "cpu-target", OWN_LOAD),
    ("users-per-instance", "load", ONE_LOAD),
    ("users-per-instance", "loads", ONE_LOAD),
    ("users-per-instance", "capacity", ONE_LOAD),
    ("users-per-instance", "load-from", ONE_LOAD),
    ("users-per-instance", "cpu-target", ONE_LOAD),
    (
        "load-from",
        "capacity",
        (
            "a case has one load",
            "leave one of them out; a case of its own can be offered a share of what this one finds",
        ),
    ),
    (
        "cpu-target",
        "capacity",
        (
            "one looks for the largest load that meets objectives, the other for that which takes a share of the CPUs",
            TWO_CASES,
        ),
    ),
    (
        "cpu-target",
        "load-from",
        ("one looks for its load itself, the other takes it from what another case finds", TWO_CASES),
    ),
    (
        "cpu-target",
        "density",
        ("one changes load in guests that stand, the other adds guests under one load", TWO_CASES),
    ),
    ("density", "capacity", ("one adds guests under a load, the other adds load to one guest", TWO_CASES)),
    ("density", "load-from", ("what one guest can be offered says nothing of many", "leave one of them out")),
    ("guests", "density", (ADDS_GUESTS, "leave it out: `density = { guests = [...] }` has the numbers")),
    ("drivers", "density", (ADDS_GUESTS, "leave it out")),
    ("neighbours", "density", (ADDS_GUESTS, "leave it out: the guests are each other's neighbours")),
    ("busy-target", "density", (ADDS_GUESTS, "leave it out")),
    ("busy-target", "cpu-target", ("its busy loops take all of the guest's CPUs", "leave it out")),
    ("guests", "capacity", ONE_GUEST),
    ("instances", "capacity", FEWER),
    ("instances", "load-from", FEWER),
    ("held-out", "capacity", PREDICTED),
    ("held-out", "density", PREDICTED),
];

/// Reports all of them in a case.
pub(super) fn check(case: &Cursor<'_>) {
    for (key, other, (why, help)) in NOT_BESIDE {
        let field = case.get(key);
        let is_absent = !field.is_there() || (COUNTS_AND_SWITCHES.contains(&key) && field.is_one_or_off());
        if !is_absent && case.get(other).is_there() {
            field.wrong_key(&format!("cannot stand beside `{other}`: {why}"), help);
        }
    }
}
