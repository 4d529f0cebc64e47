//! Guests that differ and are added by tiles.

use tare_model::density::{DensitySpec, GuestSeries, TileGuest};
use tare_model::guest::GuestSize;
use tare_model::units::ByteSize;

use super::density::spec;
use super::{roomy, study_of};
use crate::testing::Fake;
use crate::{HostFacts, Problem, human, parse, plan};

/// A case of tiles of three guests.
const GOOD: &str = r#"
schema = 1
name = "tiles"
question = "How many tiles?"
blocks = 2
baseline = "native"
[arms.native]
platform = "native"
[guest]
cpus = 1
memory = "1GiB"
[phases]
steady-state = "10s"
[cases.tile]
workload = "tile"
density = { guests = [1, 2, 4] }
qos = { "db:response_time_p99_s" = "200ms" }
[cases.tile.parameters]
members = [{ name = "shop" }, { name = "db", memory = "256MiB" }, { name = "app", memory = "3GiB" }]
"#;

fn problems(from: &str, to: &str) -> Vec<Problem> {
    let text = GOOD.replacen(from, to, 1);
    assert_ne!(text, GOOD, "{from:?} is not in the study");
    parse("bad.toml", &text, &Fake).expect_err(to).problems().to_vec()
}

#[test]
fn the_case_knows_the_guests_of_its_tile_with_their_sizes() {
    let study = study_of(GOOD);
    let density = spec(&study.cases[0]);
    assert_eq!(density.guests, GuestSeries::Listed(vec![1, 2, 4]), "of tiles, as they are written");
    let guest = |name: &str, mebibytes: u64| {
        let size = GuestSize { cpus: 1, memory: ByteSize(mebibytes << 20) };
        TileGuest { name: name.into(), size }
    };
    assert_eq!(density.tile, [guest("shop", 1024), guest("db", 256), guest("app", 3072)]);
    assert_eq!(study.cases[0].qos[0].metric, "db:response_time_p99_s");
    let again: DensitySpec = serde_json::from_value(serde_json::to_value(density).unwrap()).unwrap();
    assert_eq!(again, *density, "in the plan too");
}

#[test]
fn the_plan_counts_the_guests_of_all_tiles() {
    let host = HostFacts { memory_available: ByteSize(12 << 30), memory_total: ByteSize(16 << 30), ..roomy() };
    let planned = plan(&study_of(GOOD), &host, &Fake).unwrap();
    // Four tiles of 4.25 GiB: more than there is, which a scale-up ends before.
    assert_eq!(planned.cost.memory, ByteSize(17 << 30));
    let shown = human(&planned, &host);
    for words in [
        "tiles of shop (1 x 1.0 GiB), db (1 x 256.0 MiB), app (1 x 3.0 GiB) are added guest by guest, load at 1, 2, 4 tiles",
        "promises up to 17.0 GiB on 16.0 GiB (1.1x)",
    ] {
        assert!(shown.contains(words), "{words:?} is not in:\n{shown}");
    }
    let (three, one) = (planned.cost, plan(&study_of(&one_member()), &host, &Fake).unwrap().cost);
    assert!(three.around > one.around, "twelve guests are started, not four");
}

fn one_member() -> String {
    let members = GOOD.lines().last().unwrap();
    GOOD.replace(members, "members = [{ name = \"db\" }]")
}

#[test]
fn a_tile_is_asked_for_in_tiles_and_a_wrong_one_is_reported_where_it_stands() {
    let wrong = [
        ("density = { guests = [1, 2, 4] }\n", "", "cases.tile.workload", "of which tiles are added"),
        ("guests = [1, 2, 4]", "guests = [1, 86]", "cases.tile.density.guests.1", "from 1 to 85"),
        (
            "guests = [1, 2, 4]",
            "guests = { search = { most = 100 } }",
            "cases.tile.density.guests.search.most",
            "from 1 to 85",
        ),
        (
            "\"db:response_time_p99_s\"",
            "\"bd:response_time_p99_s\"",
            "cases.tile.qos.bd:response_time_p99_s",
            "did you mean `db:response_time_p99_s`?",
        ),
        ("\"db:response_time_p99_s\" = \"200ms\"", "tiles_held = 3", "cases.tile.qos.tiles_held", "is no metric"),
        ("members = [", "memberz = [", "cases.tile.parameters.memberz", "is no field"),
    ];
    for (from, to, path, tells) in wrong {
        let problems = problems(from, to);
        let found = problems.iter().find(|problem| problem.path.join(".") == path);
        let found = found.unwrap_or_else(|| panic!("{to:?}: nothing at {path}: {problems:#?}"));
        let message = format!("{} {}", found.message, found.help.as_deref().unwrap_or_default());
        assert!(message.contains(tells), "{to:?}: {message}");
    }
}

#[test]
fn a_host_without_room_for_one_tile_is_refused_with_what_it_takes() {
    let small = HostFacts { memory_available: ByteSize(5 << 30), memory_total: ByteSize(6 << 30), ..roomy() };
    let refused = plan(&study_of(GOOD), &small, &Fake).unwrap_err().to_string();
    assert!(refused.contains("adds tiles one by one, and not even one fits: it touches 4.2"), "{refused}");
}
