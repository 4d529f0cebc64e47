//! Arms whose guests are started from a pool or of a snapshot.

use tare_model::start::Start;
use tare_model::units::ByteSize;

use super::{Wrong, assert_each_is_refused, roomy, study_of};
use crate::testing::Fake;
use crate::{HostFacts, human, plan};

/// A study that starts guests in every way.
pub(super) const GOOD: &str = r#"
schema = 1
name = "starts"
question = "What does a start cost that is not from nothing?"
baseline = "native"
blocks = 6

[arms.native]
platform = "native"
start = "cold"

[arms.pool]
platform = "oci"
start = { pool = 8 }
options = { runtime = "runc" }

[arms.snapshot]
platform = "oci"
start = "snapshot"
options = { runtime = "runsc" }

[guest]
cpus = 1
memory = "256MiB"

[phases]
steady-state = "1s"

[cases.burst]
workload = "guest-start"
load = { closed = { clients = 4 } }
"#;

#[test]
fn how_guests_are_started_is_read_and_shown() {
    let study = study_of(GOOD);
    let starts: Vec<Start> = study.arms.iter().map(|arm| arm.start).collect();
    // The last repeats the baseline.
    assert_eq!(starts, [Start::Cold, Start::Pool(8), Start::Snapshot, Start::Cold]);
    let text = human(&plan(&study, &roomy(), &Fake).unwrap(), &roomy());
    assert!(text.contains("`pool`: from a pool of 8 guests that are stopped"), "{text}");
    assert!(text.contains("`snapshot`: restored from a snapshot"), "{text}");
    let again = study_of(&GOOD.replace("baseline = \"native\"", "baseline = \"pool\""));
    assert_eq!(again.arms.last().map(|arm| arm.start), Some(Start::Pool(8)), "the replica is started alike");
}

#[test]
fn what_cannot_be_started_so_is_refused() {
    let wrong: &[Wrong] = &[
        ("start = \"snapshot\"", "start = \"snapshots\"", "arms.snapshot.start", "did you mean `snapshot`?"),
        ("start = { pool = 8 }", "start = \"pool\"", "arms.pool.start", "choices: `cold`, `snapshot`"),
        ("start = { pool = 8 }", "start = { pool = 0 }", "arms.pool.start.pool", "from 1 to 256"),
        ("start = { pool = 8 }", "start = {}", "arms.pool.start.pool", "has no `pool`"),
        ("start = { pool = 8 }", "start = { pool = 8, size = 1 }", "arms.pool.start.size", "is not a field"),
        ("start = { pool = 8 }", "start = { pool = 3 }", "arms.pool.start", "`burst` takes 4 at one time"),
        ("start = \"cold\"", "start = \"snapshot\"", "arms.native.start", "no snapshots of its guests are taken"),
        (
            "platform = \"native\"\nstart = \"cold\"",
            "platform = \"null\"\nstart = { pool = 8 }",
            "arms.native.start",
            "in no control group",
        ),
    ];
    assert_each_is_refused(GOOD, wrong, &["arms.pool.start.pool"]);
}

#[test]
fn starts_are_of_workloads_that_make_guests() {
    let other = GOOD.replace("load = { closed = { clients = 4 } }", "") + "[cases.answers]\nworkload = \"rr\"\n";
    let error = crate::parse("bad.toml", &other, &Fake).unwrap_err();
    let paths: Vec<String> = error.problems().iter().map(|problem| problem.path.join(".")).collect();
    assert_eq!(paths, ["arms.pool.start", "arms.snapshot.start"]);
    let problem = &error.problems()[0];
    assert!(problem.message.contains("`rr` of the case `answers` makes none"), "{problem:?}");
    assert!(problem.help.as_ref().unwrap().contains("`guest-start`"), "{problem:?}");
}

#[test]
fn no_pool_is_filled_beside_an_open_loop() {
    let open = GOOD.replace("closed = { clients = 4 }", "open = { rate = \"10/s\", connections = 4 }");
    let error = crate::parse("bad.toml", &open, &Fake).unwrap_err();
    let problems: Vec<_> = error.problems().iter().map(|own| (own.path.join("."), own.message.clone())).collect();
    assert_eq!(problems.len(), 1, "a snapshot needs no time between starts: {problems:?}");
    assert!(problems[0].0 == "arms.pool.start" && problems[0].1.contains("`burst` has an open loop"), "{problems:?}");
}

#[test]
fn a_pool_that_is_larger_than_memory_is_refused_by_the_plan() {
    let study = study_of(&GOOD.replace("pool = 8", "pool = 200"));
    // 200 guests of 256 MiB, and the measured one.
    let host = HostFacts { memory_available: ByteSize(50 << 30), ..roomy() };
    let refused = plan(&study, &host, &Fake).unwrap_err().to_string();
    assert!(refused.contains("256MiB for each of 200 in the pool of `pool`"), "{refused}");
    // The arms of a set need room for the pool, for what the others make beside it, and for their measured guests.
    let planned = plan(&study_of(GOOD), &roomy(), &Fake).unwrap();
    assert_eq!(planned.cost.memory, ByteSize((8 + 4 + 4) * (256 << 20)));
    // Without room for that, arms run one after the other, and a pool stands alone.
    let narrow = HostFacts { memory_available: ByteSize(9 * (256 << 20)), ..roomy() };
    let planned = plan(&study_of(GOOD), &narrow, &Fake).unwrap();
    assert_eq!((planned.sets.len(), planned.cost.memory), (0, ByteSize(9 * (256 << 20))));
}
