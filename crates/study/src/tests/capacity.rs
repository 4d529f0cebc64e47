//! The largest load that meets its objectives, shares of it, and the score over several cases.

use proptest::prelude::*;
use tare_model::capacity::{CapacitySpec, LoadShare};
use tare_model::load::{Arrivals, LoadKind, LoadModel};
use tare_model::plan::PlannedTrial;
use tare_model::study::{Case, CaseLoad, Guests, Study};
use tare_model::units::{ByteSize, Span};

use super::{Wrong, assert_each_is_refused, roomy, study_of};
use crate::testing::{FILES_PER_SESSION, Fake, MOST_SESSIONS};
use crate::{human, parse, plan};

/// A study that uses every field of searches and shares.
pub(super) const GOOD: &str = include_str!("capacity.toml");

const CLOSED: LoadKind = LoadKind::Closed { think_time: Span::ZERO };
const UNIFORM: LoadKind = LoadKind::Open { arrivals: Arrivals::Uniform, connections: 8 };

fn spec(case: &Case) -> CapacitySpec {
    let CaseLoad::Capacity(spec) = case.load else { panic!("{:?}", case.load) };
    spec
}

fn share(case: &Case) -> &LoadShare {
    let CaseLoad::ShareOf { share, guests: Guests::ONE } = &case.load else { panic!("{:?}", case.load) };
    share
}

#[test]
fn searches_are_read_and_have_defaults() {
    let study = study_of(GOOD);
    let ids: Vec<&str> = study.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["banking-latency", "banking", "rates", "half", "plain"], "the order of the file");
    let banking = CapacitySpec { kind: CLOSED, from: 50.0, most: 4000.0, precision: 0.05, iterations: 2, drivers: 1 };
    assert_eq!(spec(&study.cases[1]), banking);
    let rates = CapacitySpec { kind: UNIFORM, from: 400.0, most: 6400.0, precision: 0.1, iterations: 3, drivers: 1 };
    assert_eq!(spec(&study.cases[2]), rates);
    // What a guest is given must do for the largest load.
    assert_eq!(study.cases[1].load.largest(), LoadModel::Closed { clients: 4000, think_time: Span::ZERO });
    let bare = study_of(&GOOD.replace("from = 50, most = 4000, precision = 0.05, iterations = 2", "most = 90"));
    let defaults = CapacitySpec { kind: CLOSED, from: 6.0, most: 90.0, precision: 0.05, iterations: 3, drivers: 1 };
    assert_eq!(spec(&bare.cases[1]), defaults);
    let thinking = GOOD.replace("capacity = {", "load = { closed = { think-time = \"2s\" } }\ncapacity = {");
    let kind = LoadKind::Closed { think_time: Span::from_secs(2) };
    assert_eq!(spec(&study_of(&thinking).cases[1]), CapacitySpec { kind, ..banking });
}

#[test]
fn what_is_searched_and_shares_of_it_are_dealt_out_among_drivers() {
    let text = GOOD.replace("capacity = {", "drivers = 11\ncapacity = {");
    let text = text.replace("load-from = { case = \"banking\"", "drivers = 8\nload-from = { case = \"banking\"");
    let study = study_of(&text);
    let (latency, banking) = (&study.cases[0], &study.cases[1]);
    assert_eq!((spec(banking).most, spec(banking).drivers), (4000.0, 11), "what the guest is offered in all");
    assert_eq!(banking.load.guests(), Guests { count: 1, drivers: 11 });
    assert_eq!(banking.load.largest().number(), 364.0, "of each driver");
    assert_eq!(latency.load.largest().number(), 500.0, "of each driver");
}

#[test]
fn shares_are_of_the_other_cases_largest_load_and_of_its_kind() {
    let study = study_of(GOOD);
    let of = |case: &str, share, kind, most| LoadShare { kind, case: case.to_owned(), share, most };
    assert_eq!(share(&study.cases[0]), &of("banking", 0.8, CLOSED, 4000.0), "of one size");
    // Connections and arrivals are its own where it says them.
    let kind = LoadKind::Open { arrivals: Arrivals::Poisson, connections: 4 };
    assert_eq!(share(&study.cases[3]), &of("rates", 0.5, kind, 6400.0));
    let as_other = study_of(&GOOD.replace("load = { open = { connections = 4 } }\n", ""));
    assert_eq!(share(&as_other.cases[3]).kind, UNIFORM);
    let more = study_of(&GOOD.replace("share = 0.8", "share = 1.5"));
    assert_eq!(share(&more.cases[0]).most, 6000.0, "more than the other may be offered");
    assert!(matches!(study.cases[4].load, CaseLoad::Fixed { .. }));
    let references = [("banking".to_owned(), 120.0), ("rates".to_owned(), 114.5)];
    assert_eq!(study.score.unwrap().references, references);
    assert_eq!((study.published, study_of(&GOOD.replace("score", "#score")).score), (None, None));
}

pub(super) const WRONG: &[Wrong] = &[
    ("from = 50", "form = 50", "cases.banking.capacity.form", "did you mean `from`?"),
    ("from = 50", "from = 0", "cases.banking.capacity.from", "whole number from 1"),
    ("from = 50", "from = 5000", "cases.banking.capacity.from", "is 5000, and the search ends at 4000"),
    ("from = 50", "from = \"50/s\"", "cases.banking.capacity.from", "the load is a closed loop, which has clients"),
    ("from = 50", "from = 50.5", "cases.banking.capacity.from", "whole number"),
    ("most = 4000, ", "", "cases.banking.capacity.most", "has no `most`"),
    ("most = 4000", "most = 60001", "cases.banking.capacity.most", "whole number from 1 to 60000"),
    ("most = 4000", "most = 30000", "cases.banking.capacity.most", "more sessions than a client has ports"),
    ("most = \"6400/s\"", "most = 6400", "cases.rates.capacity.most", "did you mean \"6400/s\"?"),
    ("most = \"6400/s\"", "most = \"0/s\"", "cases.rates.capacity.most", "must be a rate"),
    ("precision = 0.05", "precision = 5", "cases.banking.capacity.precision", "5 % is 0.05"),
    ("precision = 0.05", "precision = 0", "cases.banking.capacity.precision", "from 0.001 to 1"),
    ("precision = 0.05", "precision = \"5 %\"", "cases.banking.capacity.precision", "must be a number"),
    ("iterations = 2", "iterations = 1", "cases.banking.capacity.iterations", "whole number from 2 to 20"),
    ("iterations = 2", "iterations = 21", "cases.banking.capacity.iterations", "whole number from 2 to 20"),
    ("capacity = { from", "capacty = { from", "cases.banking.capacty", "did you mean `capacity`?"),
    (
        "capacity = { from = 50, most = 4000, precision = 0.05, iterations = 2 }",
        "capacity = 4000",
        "cases.banking.capacity",
        "for example `capacity = { most = 4000 }`",
    ),
    ("qos = { good_share = 0.95, tolerable_share = 0.99 }", "", "cases.banking.capacity", "the case has none"),
    ("qos = { good_share = 0.95, tolerable_share = 0.99 }", "qos = {}", "cases.banking.capacity", "`qos = {"),
    ("good_share = 0.95", "capacity = 500", "cases.banking.qos.capacity", "is no metric that `web-banking` yields"),
    ("capacity = { from", "guests = 2\ncapacity = { from", "cases.banking.guests", "that of one guest"),
    (
        "capacity = { from = 50, most = 4000",
        "drivers = 64\ncapacity = { from = 1, most = 50",
        "cases.banking.capacity.most",
        "is 50, and each of the 64 drivers has one client at least",
    ),
    (
        "capacity = { from",
        "load = { closed = { clients = 9 } }\ncapacity = { from",
        "cases.banking.load.closed.clients",
        "the search goes from `capacity.from` to `capacity.most`",
    ),
    ("capacity = { from", "load = {}\ncapacity = { from", "cases.banking.load", "write `load = { closed = {} }`"),
    (
        "capacity = { from",
        "loads = { low = { closed = {} } }\ncapacity = { from",
        "cases.banking.loads",
        "cannot stand beside `capacity`",
    ),
    (
        "capacity = { from",
        "load-from = { case = \"rates\", share = 1 }\ncapacity = { from",
        "cases.banking.load-from",
        "cannot stand beside `capacity`",
    ),
    ("connections = 8, ", "", "cases.rates.load.open.connections", "has no `connections`"),
    ("connections = 8", "rate = \"9/s\", connections = 8", "cases.rates.load.open.rate", "leave it out"),
    ("case = \"banking\"", "case = \"bankng\"", "cases.banking-latency.load-from.case", "did you mean `banking`?"),
    ("case = \"banking\"", "case = \"plain\"", "cases.banking-latency.load-from.case", "has no `capacity`"),
    ("case = \"banking\"", "case = \"zzz\"", "cases.banking-latency.load-from.case", "`banking`, `rates`"),
    (
        "case = \"banking\"",
        "case = \"banking-latency\"",
        "cases.banking-latency.load-from.case",
        "that case has no `capacity`",
    ),
    ("case = \"banking\", ", "", "cases.banking-latency.load-from.case", "has no `case`"),
    ("share = 0.8", "share = 80", "cases.banking-latency.load-from.share", "80 % is 0.8"),
    ("share = 0.8", "share = 0", "cases.banking-latency.load-from.share", "from 0.001 to 2"),
    ("share = 0.8", "share = 2.5", "cases.banking-latency.load-from.share", "2.5 % is 0.025"),
    ("share = 0.8", "shares = 0.8", "cases.banking-latency.load-from.shares", "did you mean `share`?"),
    ("share = 0.8", "most = 0.8", "cases.banking-latency.load-from.most", "`most` stands in `[cases.ID.capacity]`"),
    (
        "connections = 4 } }\nload-from = { case = \"rates\"",
        "connections = 4, rate = \"5/s\" } }\nload-from = { case = \"rates\"",
        "cases.half.load.open.rate",
        "it comes from what the other case finds",
    ),
    (
        "load-from = { case = \"rates\"",
        "load-from = { case = \"banking\"",
        "cases.half.load",
        "is open, and the load of `cases.banking` is closed",
    ),
    ("banking = 120", "bankng = 120", "score.bankng", "did you mean `banking`?"),
    ("banking = 120", "plain = 120", "score.plain", "is a case that looks for no capacity"),
    ("banking = 120", "banking = 0", "score.banking", "from 0.001"),
    ("banking = 120", "banking = \"120\"", "score.banking", "must be a number"),
    ("score = { banking = 120, rates = 114.5 }", "score = {}", "score", "names nothing"),
    ("score = { banking = 120, rates = 114.5 }", "score = 5", "score", "must be a table"),
    ("blocks = 2", "blocks = 2\npublished = {}", "published.report", "`published` has no `report`"),
    ("blocks = 2", "blocks = 2\nprecision = 0.1", "precision", "`precision` stands in `[cases.ID.capacity]`"),
];

/// Of these, what a schema for editors cannot find.
pub(super) const BEYOND_A_SCHEMA: &[&str] = &[
    "drivers = 64\ncapacity = { from = 1, most = 50",
    "from = 5000",
    "from = \"50/s\"",
    "most = 30000",
    "most = 6400",
    "good_share = 0.95",
    "capacity = 500",
    "case = \"bankng\"",
    "case = \"plain\"",
    "case = \"zzz\"",
    "case = \"banking-latency\"",
    "load-from = { case = \"banking\"",
    "bankng = 120",
    "plain = 120",
    "most = \"0/s\"",
];

#[test]
fn each_field_wrong_in_turn_is_named_with_its_line_and_its_remedy() {
    assert_each_is_refused(GOOD, WRONG, &["cases.banking.capacity", "cases.half.load"]);
    const { assert!(MOST_SESSIONS < 30_000) };
}

#[test]
fn a_refused_search_is_not_reported_again_where_it_is_named() {
    let text = GOOD.replace("iterations = 2", "iterations = 0");
    let error = parse("bad.toml", &text, &Fake).unwrap_err();
    let paths: Vec<String> = error.problems().iter().map(|problem| problem.path.join(".")).collect();
    assert_eq!(paths, ["cases.banking.capacity.iterations"]);
}

#[test]
fn a_share_that_may_be_more_clients_than_a_driver_has_is_refused() {
    let other =
        "[cases.many]\nworkload = \"rr\"\ncapacity = { most = 40000 }\nqos = { response_time_p50_s = \"1ms\" }\n";
    let study = |share| {
        let own = format!("[cases.own]\nworkload = \"rr\"\nload-from = {{ case = \"many\", share = {share} }}\n");
        parse("bad.toml", &format!("{GOOD}\n{other}{own}"), &Fake)
    };
    let error = study(2.0).unwrap_err();
    let [problem] = error.problems() else { panic!("{}", error.render(false)) };
    assert_eq!(problem.path, ["cases", "own", "load-from", "share"]);
    assert!(problem.message.contains("80000 clients"), "{}", problem.message);
    assert!(study(1.5).is_ok());
}

#[test]
fn neither_adds_guests() {
    let java = "workload = \"java\"\ndensity = { guests = [1, 2] }\n";
    let both =
        format!("{GOOD}\n[cases.both]\n{java}capacity = {{ most = 5 }}\nqos = {{ response_time_p50_s = \"1ms\" }}\n");
    let share = format!("{GOOD}\n[cases.both]\n{java}load-from = {{ case = \"banking\", share = 1 }}\n");
    for (text, beside) in [(both, "capacity"), (share, "load-from")] {
        let error = parse("bad.toml", &text, &Fake).unwrap_err();
        let [problem] = error.problems() else { panic!("{}", error.render(false)) };
        assert_eq!(problem.path, ["cases", "both", "density"]);
        assert!(problem.message.contains(&format!("cannot stand beside `{beside}`")), "{}", problem.message);
    }
}

#[test]
fn what_is_offered_no_load_or_finds_its_own_is_not_searched() {
    let finds = "workload = \"java\"\nparameters = { finds-load = true }\n";
    let search = "capacity = { most = 5 }\nqos = { response_time_p50_s = \"1ms\" }\n";
    let share = "load-from = { case = \"banking\", share = 1 }\n";
    for (field, text) in [("capacity", search), ("load-from", share)] {
        let error = parse("bad.toml", &format!("{GOOD}\n[cases.own]\n{finds}{text}"), &Fake).unwrap_err();
        let [problem] = error.problems() else { panic!("{}", error.render(false)) };
        assert_eq!(problem.path, ["cases", "own", field]);
        assert!(problem.message.contains("finds that itself"), "{}", problem.message);
    }
}

#[test]
fn errors_of_searches_read_well() {
    let with =
        |good: &str, bad: &str| parse("study.toml", &GOOD.replacen(good, bad, 1), &Fake).unwrap_err().render(false);
    insta::assert_snapshot!("no_objectives", with("qos = { good_share = 0.95, tolerable_share = 0.99 }", ""));
    insta::assert_snapshot!("misspelt_search", with("case = \"banking\"", "case = \"bankng\""));
}

#[test]
fn what_a_search_takes_is_counted_by_its_tries() {
    let mut study = study_of(GOOD);
    study.cases.retain(|case| case.id == "banking");
    let cost = plan(&study, &roomy(), &Fake).unwrap().cost;
    let spec = spec(&study.cases[0]);
    let (likely, most) = (spec.tries_likely(), spec.tries_at_most());
    assert!(likely > 8 && most > 2 * likely, "{likely} {most}");
    // A minute each, in two blocks on two arms; starts take 10 and 40 ms.
    assert_eq!(cost.measuring, Span::from_secs(u64::from(likely) * 60 * 4));
    assert_eq!(cost.around, Span::from_millis(u64::from(likely) * (100 + 10 + 100 + 40) * 2));
    assert_eq!(cost.memory, ByteSize(1 << 30), "one guest at a time");
    // The files of one guest at the largest load, and the record of all tries.
    let mut fixed = study.clone();
    fixed.cases[0].load = spec.kind.at(spec.most).into();
    let without = plan(&fixed, &roomy(), &Fake).unwrap().cost.disk.0;
    assert!(without > 4000 * FILES_PER_SESSION.0 && cost.disk.0 > without, "{without} {}", cost.disk);
    assert!(cost.disk.0 - without < 500 << 20, "{}", cost.disk.0 - without);
}

#[test]
fn shares_come_after_all_blocks_of_the_others_and_nothing_else_moves() {
    let study = study_of(GOOD);
    let order = plan(&study, &roomy(), &Fake).unwrap().trials;
    assert_eq!(order.len(), 2 * 5 * 2);
    let waits = |trial: &PlannedTrial| ["banking-latency", "half"].contains(&trial.case.as_str());
    let (first, last) = order.split_at(12);
    assert!(!first.iter().any(waits) && last.iter().all(waits), "{order:?}");
    for (part, cases) in [(first, 3), (last, 2)] {
        let blocks: Vec<u32> = part.iter().map(|trial| trial.block).collect();
        assert!(blocks.is_sorted() && blocks.iter().filter(|block| **block == 1).count() == cases * 2);
    }
    assert!(order.iter().enumerate().all(|(place, trial)| trial.index as usize == place));
    // The others are in the order in which they would be alone.
    let mut alone = study.clone();
    alone.cases.retain(|case| !matches!(case.load, CaseLoad::ShareOf { .. }));
    assert_eq!(plan(&alone, &roomy(), &Fake).unwrap().trials, first);
}

#[test]
fn a_plan_tells_what_is_searched_and_what_waits() {
    let mut study = study_of(GOOD);
    let shown = |study: &Study| human(&plan(study, &roomy(), &Fake).unwrap(), &roomy());
    insta::assert_snapshot!("human_capacity", shown(&study));
    study.cases.retain(|case| case.id == "plain");
    study.score = None;
    let plain = shown(&study);
    assert!(["searches", "waits", "score", "at most 0"].iter().all(|word| !plain.contains(word)), "{plain}");
}

proptest! {
    /// However it is set, a search has a grid that is not empty and a number of tries.
    #[test]
    fn any_search_that_is_read_can_be_planned(
        from in 1_u32..60_000, most in 1_u32..60_000, precision in 0.001_f64..1.0, iterations in 2_u32..20,
    ) {
        let fields = format!("from = {from}, most = {most}, precision = {precision}, iterations = {iterations}");
        let text = GOOD.replace("from = 50, most = 4000, precision = 0.05, iterations = 2", &fields);
        prop_assert_eq!(parse("any.toml", &text, &Fake).is_ok(), from <= most && most <= MOST_SESSIONS);
        if let Ok(loaded) = parse("any.toml", &text, &Fake) {
            let spec = spec(&loaded.study.cases[1]);
            let (likely, most) = (spec.tries_likely(), spec.tries_at_most());
            prop_assert!(likely >= 1 && likely <= most && !spec.grid().is_empty());
        }
    }
}
