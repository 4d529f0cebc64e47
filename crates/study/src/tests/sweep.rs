//! A sweep: a case for each combination of values.

use tare_model::load::LoadModel;
use tare_model::units::ByteSize;

use super::study_of;
use crate::parse;
use crate::testing::Fake;

/// A good study with two sweeps.
pub(super) const GOOD: &str = include_str!("sweep.toml");

#[test]
fn a_sweep_makes_a_case_of_each_combination_in_the_order_of_its_lists() {
    let study = study_of(GOOD);
    let ids: Vec<&str> = study.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(
        ids,
        ["users-100-1", "users-100-4", "users-200-1", "users-200-4", "one", "sizes-128b-2gib", "sizes-4kib-2gib"]
    );
    let labels: Vec<&str> = study.cases.iter().map(|case| case.label.as_str()).collect();
    assert_eq!(labels[1], "4 of 100 users");
    assert_eq!(labels[5], "sizes, parameters.request 128B, guest.memory 2GiB", "no field is named in the label");
    let clients = |index: usize| match study.cases[index].load.largest() {
        LoadModel::Closed { clients, .. } => clients,
        LoadModel::Open { .. } => 0,
    };
    assert_eq!((clients(1), study.cases[1].instances), (400, 4));
    assert_eq!(clients(4), 10);
    assert_eq!(study.cases[6].parameters["request"], "4KiB");
    assert_eq!((study.cases[6].guest.cpus, study.cases[6].guest.memory), (2, ByteSize(2 << 30)), "tables are filled");
}

/// What is replaced, by what, the line and a part of the error.
const WRONG: &[(&str, &str, usize, &str)] = &[
    ("instances = [1, 4]", "instances = []", 25, "`cases.users.sweep.instances` is an empty list"),
    ("instances = [1, 4]", "instances = 4", 25, "`cases.users.sweep.instances` must be a list of values"),
    ("instances = [1, 4]", "instances = [1, 1]", 23, "makes the case `users-100-1` that is there already"),
    ("instances = [1, 4]", "instances = [1, 4]\nworkload = [\"rr\"]", 26, "stands in the case as well"),
    ("instances = [1, 4]", "instances = [1, 4]\nlabel.x = [1]", 26, "leads through what is no table"),
    ("instances = [1, 4]", "instances = [1, 400]", 25, "a whole number from 1 to 64"),
    ("instances = [1, 4]", "instance = [1, 4]", 25, "did you mean `instances`?"),
    ("users-per-instance = [100, 200]", "users-per-instance = [0]", 24, "a whole number from 1 to"),
    (
        "users-per-instance = 10",
        "users-per-instance = 1\nload = { closed = { clients = 1 } }",
        29,
        "cannot stand beside `load`",
    ),
    ("users-per-instance = 10", "users-per-instance = 10\nsweep = {}", 30, "lists no values"),
    ("users-per-instance = 10", "users-per-instance = 10\nsweep = [1]", 30, "must be a table of lists"),
    ("[cases.one]", "[cases.users-200-4]", 23, "makes the case `users-200-4` that is there already"),
    ("[\"128B\", \"4KiB\"]", "[\"128B\", \"4KiB\", \"Zwei\"]", 35, "request"),
];

#[test]
fn each_mistake_in_a_sweep_is_shown_where_it_stands() {
    for (good, bad, line, part) in WRONG {
        let text = GOOD.replacen(good, bad, 1);
        assert_ne!(text, GOOD, "{good}");
        let error = parse("sweep.toml", &text, &Fake).expect_err(bad).render(false);
        assert!(error.contains(part) && error.contains(&format!("sweep.toml:{line}:")), "{bad}: {error}");
    }
    let many: Vec<String> = (1..=400).map(|users| users.to_string()).collect();
    let text = GOOD.replacen("[100, 200]", &format!("[{}]", many.join(", ")), 1);
    let error = parse("sweep.toml", &text, &Fake).unwrap_err().render(false);
    assert!(error.contains("makes more than 500 cases"), "{error}");
}

#[test]
fn all_mistakes_of_a_sweep_are_shown_and_each_once() {
    let text = GOOD.replacen("[100, 200]", "[]", 1).replacen("instances = [1, 4]", "instances = 4", 1);
    let problems = parse("sweep.toml", &text, &Fake).unwrap_err().problems().to_vec();
    assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [24, 25], "{problems:?}");
    // Four cases share it.
    let text = GOOD.replacen("workload = \"social\"", "workload = \"social\"\nqos = { response_time = \"1s\" }", 1);
    let problems = parse("sweep.toml", &text, &Fake).unwrap_err().problems().to_vec();
    assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [22], "{problems:?}");
}
