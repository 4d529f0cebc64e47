//! Several instances in a guest, loads that are looked for by the share of CPU they take, and cases that are held out.

use tare_model::cpu_target::CpuTarget;
use tare_model::load::{Arrivals, LoadKind, LoadModel};
use tare_model::study::{Case, CaseLoad};
use tare_model::units::Span;

use super::{Wrong, assert_each_is_refused, roomy, study_of};
use crate::testing::{DATABASE, Fake};
use crate::{human, parse, plan, scale};

/// A study that uses every field of them.
pub(super) const GOOD: &str = include_str!("cpu_target.toml");

fn target(case: &Case) -> CpuTarget {
    let CaseLoad::CpuTarget { target, .. } = case.load else { panic!("{:?}", case.load) };
    target
}

#[test]
fn instances_targets_and_held_out_cases_are_read_and_have_defaults() {
    let study = study_of(GOOD);
    let listed: Vec<_> = study.cases.iter().map(|case| (case.id.as_str(), case.instances, case.held_out)).collect();
    assert_eq!(listed, [("fixed", 4, false), ("fixed-check", 4, true), ("held", 2, false), ("rate", 1, false)]);
    let (kind, step) = (LoadKind::Closed { think_time: Span::ZERO }, Span::from_secs(20));
    let all = CpuTarget { kind, share: 0.4, tolerance: 0.03, from: 50.0, most: 2000.0, step, steps: 6 };
    assert_eq!(target(&study.cases[2]), all);
    let kind = LoadKind::Open { arrivals: Arrivals::Poisson, connections: 8 };
    let (step, steps) = (Span::from_secs(30), 8);
    let defaults = CpuTarget { kind, share: 0.7, tolerance: 0.02, from: 100.0, most: 1600.0, step, steps };
    assert_eq!(target(&study.cases[3]), defaults);
    // What a guest is given must do for the largest load.
    let largest = LoadModel::Closed { clients: 2000, think_time: Span::ZERO };
    assert_eq!(study.cases[2].load.largest(), largest);
    let from = |text: &str| target(&study_of(text).cases[2]).from;
    let bare = GOOD.replace("from = 50, most = 2000", "most = 20");
    assert_eq!(from(&bare), 2.0, "a client for each instance");
    assert_eq!(from(&bare.replace("most = 20", "most = 90")), 6.0);
    assert_eq!(study_of(&GOOD.replace("held-out = true\n", "")).cases[1], {
        let mut case = study.cases[1].clone();
        case.held_out = false;
        case
    });
}

pub(super) const WRONG: &[Wrong] = &[
    ("instances = 2", "instnces = 2", "cases.held.instnces", "did you mean `instances`?"),
    ("instances = 2", "instances = 0", "cases.held.instances", "whole number from 1 to 64"),
    ("instances = 2", "instances = 65", "cases.held.instances", "whole number from 1 to 64"),
    ("instances = 2", "instances = \"2\"", "cases.held.instances", "whole number"),
    ("clients = 100", "clients = 3", "cases.fixed.instances", "is 4, and the load has 3 clients: each instance"),
    ("from = 50", "from = 1", "cases.held.instances", "the first load that is tried has 1 clients"),
    (
        "load = { open = { connections = 8 } }",
        "load = { open = { connections = 8 } }\ninstances = 3",
        "cases.rate.instances",
        "`rr` as it is set here has one instance in a guest",
    ),
    (
        "load = { open = { connections = 8 } }",
        "load = { open = { connections = 8 } }\ninstances = 3",
        "cases.rate.instances",
        "several can be had with `social`",
    ),
    (
        "instances = 4\nload",
        "instances = 4\nparameters = { one-instance-only = true }\nload",
        "cases.fixed.instances",
        "`social` as it is set here",
    ),
    (
        "load = { closed = { clients = 100 } }",
        "capacity = { most = 90 }\nqos = { operations = 5 }",
        "cases.fixed.instances",
        "beside `capacity`: it may come to fewer clients",
    ),
    ("held-out = true", "held-out = 1", "cases.fixed-check.held-out", "`true` or `false`"),
    ("held-out = true", "heldout = true", "cases.fixed-check.heldout", "did you mean `held-out`?"),
    ("from = 50", "form = 50", "cases.held.cpu-target.form", "did you mean `from`?"),
    (
        "cpu-target = { share = 0.4,",
        "cpu-traget = { share = 0.4,",
        "cases.held.cpu-traget",
        "did you mean `cpu-target`?",
    ),
    ("share = 0.4", "share = 40", "cases.held.cpu-target.share", "a share, not a percentage: 40 % is 0.4"),
    ("share = 0.4", "share = 1", "cases.held.cpu-target.share", "1 % is 0.01"),
    ("share = 0.4", "share = 0", "cases.held.cpu-target.share", "must be from 0.01 to 0.99"),
    ("share = 0.4", "share = \"40%\"", "cases.held.cpu-target.share", "number"),
    ("share = 0.4,", "", "cases.held.cpu-target.share", "has no `share`"),
    ("tolerance = 0.03", "tolerance = 3", "cases.held.cpu-target.tolerance", "3 % is 0.03"),
    ("tolerance = 0.03", "tolerance = 0.5", "cases.held.cpu-target.tolerance", "must be from 0.001 to 0.2"),
    ("from = 50", "from = 3000", "cases.held.cpu-target.from", "is 3000, and the search ends at 2000"),
    ("from = 50", "from = 0", "cases.held.cpu-target.from", "whole number from 1"),
    ("from = 50", "from = \"50/s\"", "cases.held.cpu-target.from", "the load is a closed loop, which has clients"),
    (", most = 2000", "", "cases.held.cpu-target.most", "has no `most`"),
    ("most = \"1600/s\"", "most = 1600", "cases.rate.cpu-target.most", "/s"),
    ("step = \"20s\"", "step = \"1ms\"", "cases.held.cpu-target.step", "shows no CPU of a load"),
    ("step = \"20s\"", "step = 20", "cases.held.cpu-target.step", "20s"),
    ("steps = 6", "steps = 1", "cases.held.cpu-target.steps", "whole number from 2 to 100"),
    ("connections = 8", "connections = 8, rate = \"5/s\"", "cases.rate.load.open.rate", "stands beside `cpu-target`"),
    (
        "instances = 2",
        "load = { closed = { clients = 9 } }",
        "cases.held.load.closed.clients",
        "from `cpu-target.from` to `cpu-target.most`",
    ),
    (
        "instances = 2",
        "loads = { a = { closed = { clients = 9 } } }",
        "cases.held.loads",
        "cannot stand beside `cpu-target`",
    ),
    (
        "instances = 2",
        "capacity = { most = 9 }\nqos = { operations = 5 }",
        "cases.held.cpu-target",
        "the largest load that meets objectives",
    ),
    (
        "instances = 2",
        "load-from = { case = \"fixed\", share = 1 }",
        "cases.held.cpu-target",
        "takes it from what another case finds",
    ),
    ("instances = 2", "density = { guests = [1] }", "cases.held.cpu-target", "adds guests under one load"),
    ("instances = 2", "busy-target = true", "cases.held.busy-target", "its busy loops take all"),
    (
        "instances = 2",
        "parameters = { one-load-only = true }",
        "cases.held.cpu-target",
        "it can be had with `rr`, `social`",
    ),
    (
        "workload = \"rr\"",
        "workload = \"cpu\"",
        "cases.rate.cpu-target",
        "changes load in guests that stand, which `cpu`",
    ),
];

/// Of these, what a schema for editors cannot find.
pub(super) const BEYOND_A_SCHEMA: &[&str] = &[
    "clients = 3",
    "from = 1",
    "load = { open = { connections = 8 } }\ninstances = 3",
    "instances = 4\nparameters = { one-instance-only = true }\nload",
    "from = 3000",
    "from = \"50/s\"",
    "most = 1600",
    "step = \"1ms\"",
    "parameters = { one-load-only = true }",
    "workload = \"cpu\"",
];

#[test]
fn each_field_wrong_in_turn_is_named_with_its_line_and_its_remedy() {
    assert_each_is_refused(
        GOOD,
        WRONG,
        &[
            "cases.fixed.instances",
            "cases.held.instances",
            "cases.held.cpu-target",
            "cases.rate.cpu-target",
            "cases.held.busy-target",
        ],
    );
}

#[test]
fn what_no_other_case_predicts_cannot_be_held_out() {
    let text =
        GOOD.replace("load = { open = { connections = 8 } }", "held-out = true\nload = { open = { connections = 8 } }");
    let error = parse("cpu_target.toml", &text, &Fake).unwrap_err().render(false);
    assert!(error.contains("no other case with `rr`") && error.contains("cases.rate.held-out"), "{error}");
    let density = "[cases.more]\nworkload = \"java\"\nheld-out = true\ndensity = { guests = [1] }\n";
    let error = parse("cpu_target.toml", &format!("{GOOD}{density}"), &Fake).unwrap_err().render(false);
    assert!(error.contains("cannot stand beside `density`"), "{error}");
}

#[test]
fn machines_that_tare_does_not_make_reach_no_database_here() {
    let text = GOOD
        .replace("[cases.fixed]", "[arms.away]\nplatform = \"far\"\noptions = { host = \"there\" }\n\n[cases.fixed]");
    let error = parse("cpu_target.toml", &text, &Fake).unwrap_err();
    let paths: Vec<String> = error.problems().iter().map(|problem| problem.path.join(".")).collect();
    assert_eq!(paths, ["cases.fixed.workload", "cases.fixed-check.workload", "cases.held.workload"]);
    let text = error.render(false);
    assert!(text.contains("`cases.fixed.workload` asks for `social`"), "{text}");
}

#[test]
fn a_machine_elsewhere_is_held_to_a_share_that_its_own_kernel_counts() {
    let text = "schema = 1\nname = \"far\"\nquestion = \"How busy?\"\nbaseline = \"here\"\nblocks = 1\nnoise-floor = false\n\
                [arms.here]\nplatform = \"native\"\n[arms.there]\nplatform = \"far\"\noptions = { host = \"a\" }\n\
                [guest]\ncpus = 1\nmemory = \"64MiB\"\n[phases]\nsteady-state = \"1s\"\n\
                [cases.held]\nworkload = \"rr\"\ncpu-target = { share = 0.4, most = 90 }\n";
    let said = |text: &str| {
        let differences = plan(&study_of(text), &roomy(), &Fake).unwrap().differences;
        differences.iter().any(|said| said.starts_with("`there` is held to a share of CPU that its own kernel counts"))
    };
    assert!(said(text) && !said(&text.replace("cpu-target = { share = 0.4, most = 90 }\n", "")));
}

#[test]
fn a_plan_tells_and_counts_the_steps_the_instances_and_what_is_held_out() {
    let study = study_of(GOOD);
    let host = roomy();
    let made = plan(&study, &host, &Fake).unwrap();
    // Three blocks of two arms; each search has four steps, the first warmed up as the case asks.
    let held = 180 + (60 + 20) + 3 * 20 + 3 * 20 / 3;
    let rate = 180 + (60 + 30) + 3 * 40;
    // Two cases take turns of 500 ms, with 20 ms between two. A third of 20 s is no whole number of seconds.
    let expected = 6.0 * (2.0 * 180.0 * 1.04 + f64::from(held + rate));
    assert!((made.cost.measuring.as_secs_f64() - expected).abs() < 1e-6, "{:?}", made.cost);
    let text = human(&made, &host);
    for line in [
        "the load at which 40 % of the guests' CPUs are busy, within 3 points: `held` (from 50, at most 2000 clients)",
        "likely 4 steps of 20s a trial, at most 6, all in the guests that are then measured",
        "the load at which 70 % of the guests' CPUs are busy, within 2 points: `rate` (from 100/s, at most 1600/s)",
        "if each search for a share of CPU takes every step that it may",
        "`fixed`, `fixed-check`: 4 instances of the application in each guest",
        "`held`: 2 instances of the application in each guest",
        "`fixed-check`: predicted from the other cases, and measured to check that",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let short = scale(study, 0.1).unwrap();
    assert_eq!(target(&short.cases[2]).step, Span::from_secs(2));
}

#[test]
fn cases_that_ask_for_the_same_share_stand_together_in_a_plan() {
    let more = |id: &str, instances: u32, share: &str| {
        format!(
            "\n[cases.{id}]\nworkload = \"social\"\ninstances = {instances}\n\
             cpu-target = {{ share = {share}, tolerance = 0.03, from = 8, most = 90, step = \"20s\", steps = 6 }}\n"
        )
    };
    let text = [GOOD, &more("high", 2, "0.7"), &more("wide", 4, "0.4"), &more("higher", 4, "0.7")].concat();
    let (study, host) = (study_of(&text), roomy());
    let text = human(&plan(&study, &host, &Fake).unwrap(), &host);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("the load at which")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].ends_with("3 points: `held` (from 50, at most 2000 clients), `wide` (from 8, at most 90 clients)")
    );
    let high = "70 % of the guests' CPUs are busy, within 3 points: `high` (from 8, at most 90 clients), `higher` (";
    assert!(lines.iter().any(|line| line.contains(high)), "{lines:?}");
    assert_eq!(text.matches("likely 4 steps of").count(), 3, "between them is one with other steps: {text}");
}

#[test]
fn parameters_are_held_against_the_load_and_the_instances() {
    for (find, line, replaced, words) in [
        (
            "instances = 4\nload",
            16,
            "instances = 4\nparameters = { scale-users = 20 }\nload",
            "100 users are more than 4 times 20",
        ),
        (
            "instances = 2",
            27,
            "instances = 2\nparameters = { scale-users = 999 }",
            "2000 users are more than 2 times 999",
        ),
    ] {
        let error = parse("cpu_target.toml", &GOOD.replacen(find, replaced, 1), &Fake).unwrap_err().render(false);
        assert!(error.contains("parameters.scale-users") && error.contains(words), "{error}");
        assert!(error.contains(&format!("cpu_target.toml:{line}:")), "{error}");
    }
}

#[test]
fn each_instance_has_disk_of_its_own_in_a_plan() {
    let disk = |text: &str| plan(&study_of(text), &roomy(), &Fake).unwrap().cost.disk.0;
    let more = disk(&GOOD.replace("instances = 4", "instances = 9")) - disk(GOOD);
    // On both arms at one time.
    assert!(more.abs_diff(2 * 5 * DATABASE.0) < 1 << 20, "{more}");
}
