//! Conditions of one victim: how a study asks for them, how they are planned, and what is refused.

use tare_model::aggressor::Aggressor;
use tare_model::study::Study;
use tare_model::turns::{TurnSpec, Waiting};
use tare_model::units::{ByteSize, Span};

use super::{Wrong, assert_each_is_refused, roomy, study_of};
use crate::testing::Fake;
use crate::{human, plan, scale};

/// Two arms, a case without neighbours, and a victim.
const STUDY: &str = r#"schema = 1
name = "isolation"
question = "What does a neighbour do?"
baseline = "native"
blocks = 3
noise-floor = false

[arms.native]
platform = "native"
[arms.container]
platform = "container"

[guest]
cpus = 1
memory = "1GiB"
[phases]
steady-state = "2s"

[cases.alone]
workload = "rr"

[cases.rr]
label = "small requests"
workload = "rr"
neighbours = { count = 2, cpus = 1, memory = "64MiB", work = ["none", "spin"] }
"#;

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn spec(study: &Study, case: &str) -> TurnSpec {
    study.cases.iter().find(|own| own.id == case).unwrap().schedule.condition().unwrap().turns
}

#[test]
fn a_case_becomes_one_for_each_thing_that_neighbours_do_with_long_turns() {
    let study = study_of(STUDY);
    let found: Vec<_> = study.cases.iter().map(|case| (case.id.as_str(), case.label.as_str(), case.family())).collect();
    let expected = [
        ("alone", "alone", "alone"),
        ("rr@none", "small requests, neighbours idle", "rr"),
        ("rr@spin", "small requests, neighbours: spin", "rr"),
    ];
    assert_eq!(found, expected);
    let work = |n: usize| study.cases[n].schedule.condition().map(|condition| condition.work);
    assert_eq!((work(0), work(1), work(2)), (None, Some(None), Some(Some(Aggressor::Spin))));
    let own = TurnSpec { turn: ms(500), warm_up: ms(100), gap: ms(200), waiting: Waiting::Idle, commands: None };
    assert_eq!(spec(&study, "rr@none"), own);
    let said = STUDY.replace("[phases]", "[turns]\ngap = \"50ms\"\nwarm-up = \"10%\"\n[phases]");
    let said = study_of(&format!("{said}turns = {{ length = \"1s\" }}\n"));
    assert_eq!(spec(&said, "rr@spin"), TurnSpec { turn: ms(1000), warm_up: ms(100), gap: ms(50), ..own });
    // The case without conditions keeps what its workload says.
    assert_eq!(study.cases[0].schedule.turns().map(|turns| turns.turn), Some(ms(20)));
}

#[test]
fn the_conditions_of_a_block_and_arm_are_a_set_and_cost_their_turns_once() {
    let study = study_of(STUDY);
    let plan = plan(&study, &roomy(), &Fake).unwrap();
    assert_eq!((plan.trials.len(), plan.sets.len()), (3 * (2 + 4), 3 + 6));
    let victims: Vec<_> = plan.sets.iter().map(|set| set.iter().map(|index| &plan.trials[*index as usize])).collect();
    let mut seen = std::collections::BTreeSet::new();
    for set in victims {
        let set: Vec<_> = set.collect();
        assert!(set.windows(2).all(|two| two[0].index + 1 == two[1].index), "{set:?}");
        if set[0].case != "alone" {
            assert_eq!(set.iter().map(|trial| trial.case.as_str()).collect::<Vec<_>>(), ["rr@none", "rr@spin"]);
            assert!(set.iter().all(|trial| (trial.block, &trial.arm) == (set[0].block, &set[0].arm)), "{set:?}");
            seen.insert((set[0].block, set[0].arm.clone()));
        }
    }
    assert_eq!(seen.len(), 6);
    // `alone`: 100 rounds of two turns of 20 ms and as many gaps of 1 ms. Each arm of the victim: 4 rounds of two turns of 700 ms.
    assert_eq!(plan.cost.measuring, ms(3 * (100 * 2 * 21 + 2 * 4 * 2 * 700)));
    // One guest of one arm stands with its neighbours, or two arms without any.
    assert_eq!(plan.cost.memory, ByteSize(2 << 30));
    let shown = human(&plan, &roomy());
    assert!(shown.contains("`rr@none`, `rr@spin`: conditions of one guest for each arm and block"), "{shown}");
    let listed =
        shown.lines().filter(|line| line.ends_with("  rr       native") || line.ends_with("  rr       container"));
    assert_eq!(listed.count(), 6, "one line a guest: {shown}");
}

#[test]
fn a_shorter_study_has_shorter_turns_and_still_two_of_them() {
    let short = scale(study_of(STUDY), 0.1).unwrap();
    let own = spec(&short, "rr@spin");
    assert_eq!((own.turn, own.warm_up, own.gap), (ms(100), ms(20), ms(40)));
    assert_eq!(spec(&scale(study_of(STUDY), 0.5).unwrap(), "rr@spin").turn, ms(500));
}

const NEIGHBOURS: &str = "neighbours = { count = 2, cpus = 1, memory = \"64MiB\", work = [\"none\", \"spin\"] }\n";

const WRONG: &[Wrong] = &[
    ("[\"none\", \"spin\"]", "[\"spin\", \"none\"]", "cases.rr.neighbours.work.0", "write \"none\" first"),
    ("[\"none\", \"spin\"]", "[\"none\"]", "cases.rr.neighbours.work", "lists nothing"),
    ("[\"none\", \"spin\"]", "[]", "cases.rr.neighbours.work", "lists 0 values"),
    ("[\"none\", \"spin\"]", "[\"none\", \"spinn\"]", "cases.rr.neighbours.work.1", "did you mean `spin`?"),
    ("[\"none\", \"spin\"]", "[\"none\", \"spin\", \"spin\"]", "cases.rr.neighbours.work.2", "is there twice"),
    ("[\"none\", \"spin\"]", "\"spin\"", "cases.rr.neighbours.work", "must be a list"),
    ("steady-state = \"2s\"", "steady-state = \"900ms\"", "cases.rr.neighbours", "does not hold two of them"),
    (
        "blocks = 3",
        "blocks = { at-least = 12, at-most = 60, until = \"2%\" }",
        "blocks",
        "as many blocks as each other",
    ),
    ("blocks = 3", "blocks = 3\nspare-blocks = 2", "spare-blocks", "replaces blocks case by case"),
    (
        "platform = \"container\"",
        "platform = \"far\"\noptions = { host = \"h\" }",
        "cases.rr.neighbours.work",
        "tare limits nothing on the machines of `container`",
    ),
    (
        "platform = \"container\"",
        "platform = \"null\"",
        "cases.rr.neighbours.work",
        "`container` sets no limits to them",
    ),
];

#[test]
fn what_is_wrong_with_conditions_is_said_at_its_line() {
    assert_each_is_refused(STUDY, WRONG, &["cases.rr.neighbours", "cases.rr.neighbours.work"]);
}

#[test]
fn what_cannot_stand_beside_conditions_is_refused() {
    for (added, field, says) in [
        ("guests = 2\n", "cases.rr.guests", "one guest with one driver"),
        ("busy-target = true\n", "cases.rr.busy-target", "leave one of them out"),
        ("schedule = \"turns\"\n", "cases.rr.schedule", "one condition after another"),
        ("loads = { low = { closed = { clients = 1 } } }\n", "cases.rr.loads", "under one load"),
        ("turns = { waiting = \"idle\" }\n", "cases.rr.turns.waiting", "an arm has one guest for all of them"),
    ] {
        let text = STUDY.replace(NEIGHBOURS, &format!("{NEIGHBOURS}{added}"));
        let error = crate::parse("conditions.toml", &text, &Fake).unwrap_err();
        let words = |p: &crate::Problem| format!("{} {}", p.message, p.help.as_deref().unwrap_or_default());
        let found = error.problems().iter().any(|p| p.path.join(".") == field && words(p).contains(says));
        assert!(found, "{added}: {}", error.render(false));
    }
    let null = STUDY.replace("label = \"small requests\"\nworkload = \"rr\"", "workload = \"null\"");
    let error = crate::parse("conditions.toml", &null, &Fake).unwrap_err().render(false);
    assert!(error.contains("`null` as it is set here cannot be set up twice") && error.contains("`rr`"), "{error}");
}
