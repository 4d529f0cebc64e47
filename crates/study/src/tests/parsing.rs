//! What a good file becomes, and what a file that cannot be read says.

use proptest::prelude::*;
use serde_json::json;
use tare_model::guest::GuestSize;
use tare_model::load::{Arrivals, LoadModel};
use tare_model::study::{Neighbours, Placement};
use tare_model::units::{ByteSize, Rate, Span};

use super::{ALL_GOOD, GOOD, good, study_of};
use crate::testing::Fake;
use crate::{StudyError, load, parse, scale, template};

#[test]
fn arms_keep_the_order_of_the_file_and_the_baseline_is_repeated_last() {
    let study = good();
    let ids: Vec<(&str, Option<&str>)> = study.arms.iter().map(|a| (a.id.as_str(), a.replica_of.as_deref())).collect();
    assert_eq!(ids, [("native", None), ("runc", None), ("native-again", Some("native"))]);
    assert_eq!(study.arms[0].label, "on the host");
    assert_eq!(study.arms[1].label, "runc", "an arm without a label is called by its id");
    assert_eq!(study.arms[2].label, "on the host, again");
    assert_eq!(study.arms[1].options, json!({ "runtime": "runc" }));
}

#[test]
fn cases_keep_the_order_of_the_file_and_expand_over_their_loads() {
    let study = good();
    let ids: Vec<&str> = study.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["idle", "busy@low", "busy@high", "bulk", "floor"]);
    let low = LoadModel::Open { rate: Rate(1.5), arrivals: Arrivals::Uniform, connections: 4 };
    let high = LoadModel::Open { rate: Rate(1000.0), arrivals: Arrivals::Poisson, connections: 8 };
    assert_eq!((&study.cases[1].load, &study.cases[2].load), (&low.into(), &high.into()));
    assert_eq!(study.cases[0].load, LoadModel::Closed { clients: 2, think_time: Span::from_millis(1) }.into());
    assert_eq!(study.cases[3].load, LoadModel::Closed { clients: 1, think_time: Span::ZERO }.into());
    assert_eq!(study.cases[1].label, "busy, low");
}

#[test]
fn a_case_overrides_what_it_names_and_keeps_the_rest() {
    let study = good();
    let busy = &study.cases[1];
    assert_eq!(busy.guest, GuestSize { cpus: 2, memory: ByteSize(256 << 20) });
    assert_eq!((busy.phases.steady_state, busy.phases.warm_up), (Span::from_secs(5), Span::from_millis(300)));
    let guest = GuestSize { cpus: 4, memory: ByteSize(64 << 20) };
    assert_eq!(busy.neighbours, Some(Neighbours { count: 6, guest }));
    assert!(busy.busy_target && !study.cases[0].busy_target);
}

#[test]
fn workloads_complete_their_parameters_and_objectives_are_in_the_metrics_unit() {
    let study = good();
    assert_eq!(study.cases[0].parameters["response"], "1KiB");
    assert_eq!(study.cases[1].parameters["request"], "1B", "the default that the workload filled in");
    let bounds: Vec<f64> = study.cases.iter().flat_map(|case| &case.qos).map(|objective| objective.bound).collect();
    assert_eq!(bounds, [0.005, 100.0, 1e9, 10.0]);
}

#[test]
fn the_lab_is_read_and_has_defaults() {
    let lab = good().lab;
    assert_eq!((lab.mtu, lab.offloads, lab.sample_interval), (9000, false, Span::from_millis(100)));
    assert_eq!(lab.placement, Placement::Explicit { client_cpus: vec![0], guest_cpus: vec![1, 2, 3, 5] });
    let plain = parse("template", template(), &Fake).unwrap().study.lab;
    assert_eq!((plain.mtu, plain.offloads, plain.link_rate, plain.congestion_control), (1500, true, None, None));
    assert_eq!((plain.placement, plain.sample_interval), (Placement::Separate, Span::from_millis(200)));
}

#[test]
fn scaling_shortens_every_phase_and_is_remembered() {
    let half = scale(good(), 0.5).unwrap();
    assert_eq!(half.cases[0].phases.steady_state, Span::from_secs(1));
    assert_eq!(half.cases[0].phases.warm_up, Span::from_millis(150));
    let quarter = scale(half, 0.5).unwrap();
    assert!((quarter.scale - 0.25).abs() < 1e-12);
    for factor in [0.0, -1.0, 10.1, f64::NAN, f64::INFINITY] {
        assert!(scale(good(), factor).is_err(), "{factor}");
    }
}

#[test]
fn a_loaded_study_keeps_its_text_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.toml");
    std::fs::write(&path, GOOD).unwrap();
    let loaded = load(&path, &Fake).unwrap();
    assert_eq!((loaded.source.as_str(), loaded.study), (GOOD, good()));
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        load(&path, &Fake).unwrap_err()
    };
    assert!(matches!(load(&folder.path().join("none.toml"), &Fake), Err(StudyError::Missing { .. })));
    assert!(matches!(load(folder.path(), &Fake), Err(StudyError::Read { .. })), "a folder is no file");
    assert!(matches!(written("empty.toml", b" \n\t\n"), StudyError::Empty { .. }));
    assert!(matches!(written("large.toml", &vec![b'#'; (1 << 20) + 1]), StudyError::TooLarge { .. }));
    let latin = written("latin.toml", b"schema = 1\nname = \"caf\xe9\"\n");
    assert!(matches!(latin, StudyError::NotUtf8 { offset: 22, line: 2, .. }), "{latin}");
    let text = latin.render(false);
    assert!(text.contains("line 2") && text.contains("save the file as UTF-8"), "{text}");
}

#[test]
fn a_byte_order_mark_is_no_error() {
    assert!(parse("bom.toml", &format!("\u{feff}{GOOD}"), &Fake).is_ok());
    assert!(matches!(parse("bom.toml", "\u{feff}\n", &Fake), Err(StudyError::Empty { .. })));
}

/// Parses, and if that fails makes the error's text as well: neither may panic.
fn survives(text: &str) {
    if let Err(error) = parse("any.toml", text, &Fake) {
        assert!(!error.render(false).is_empty());
        for problem in error.problems() {
            assert!(problem.span.start <= problem.span.end && problem.span.end <= text.len(), "{problem:?}");
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*") {
        survives(&text);
    }

    #[test]
    fn text_that_looks_like_a_study_never_panics(
        lines in prop::collection::vec(
            "(\\[\\[?(arms|cases|lab|guest|hosts)(\\.[a-z@.]{0,4})?\\]\\]?|(schema|name|blocks|arms|cases|loads?|qos|placement|options)(\\.[a-zµ]{1,3})? ?= ?([0-9]{1,20}|-?[0-9.e]{1,6}|\"[a-zµ0-9/ ]{0,8}\"|true|nan|\\{\\}|\\[\\]|\\{ ?[a-z]{1,6} ?= ?[0-9\"a-z]{1,5} ?\\}|1979-05-27))",
            0..12,
        )
    ) {
        survives(&lines.join("\n"));
    }

    #[test]
    fn a_good_study_cut_or_altered_anywhere_never_panics(
        good in prop::sample::select(&ALL_GOOD[..]), at in 0.0..1.0_f64, with in "\\PC{0,3}", cut in 0_usize..20,
    ) {
        let at = (at * good.len() as f64) as usize;
        let end = (at + cut).min(good.len());
        survives(&format!("{}{with}{}", &good[..at], &good[end..]));
        survives(&good[..at]);
    }
}

#[test]
fn a_case_has_the_filter_of_system_calls_that_it_asks_for_or_that_of_all() {
    use tare_model::guest::Seccomp::{Default, Off};
    let read = |text: &str| {
        study_of(text).cases.iter().map(|case| (case.id.starts_with("busy"), case.seccomp)).collect::<Vec<_>>()
    };
    assert!(read(GOOD).iter().all(|(_, level)| *level == Default));
    let own = "guest = { cpus = 2 }";
    let asked = GOOD.replace(own, "guest = { cpus = 2, seccomp = \"off\" }");
    assert!(read(&asked).iter().all(|(busy, level)| *level == if *busy { Off } else { Default }));
    let all = GOOD.replace("[guest]", "[guest]\nseccomp = \"off\"").replace(own, "guest = { seccomp = \"default\" }");
    assert!(read(&all).iter().all(|(busy, level)| *level == if *busy { Default } else { Off }));
}
