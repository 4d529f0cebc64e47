//! The formats of other programs, read as those programs read them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tare_model::findings::Findings;
use tare_model::metric::{Better, Unit};
use tare_report::export::{Figure, Selection, action, bencher, figures, openmetrics, otava};

use crate::fixture;

const HOSTILE: &str = "a\"b\\c\nd,e{f}=\u{1b}[2J\r\u{202e}";

fn chosen<'a>(findings: &'a Findings, all_metrics: bool, better: Option<Better>) -> Vec<Figure<'a>> {
    let has = |_: Option<&str>, _: &str, _: &str| true;
    figures(findings, &Selection { has: &has, all_metrics, better })
}

fn hostile() -> Findings {
    let mut findings = fixture::findings();
    findings.plan.study.name = HOSTILE.to_owned();
    findings.run.id = HOSTILE.to_owned();
    findings.cases[0].id = HOSTILE.to_owned();
    findings.cases[0].metrics[0].spec.unit = Unit::Other(HOSTILE.to_owned());
    findings
}

#[test]
fn what_answers_the_study_is_exported_with_effects_where_there_is_a_verdict() {
    let findings = fixture::findings();
    let own = chosen(&findings, false, None);
    assert!(own.iter().all(|figure| figure.arm != "native-again"), "the replica measures the study");
    let native = own.iter().find(|figure| figure.arm == "native").unwrap();
    assert!(native.value.is_some() && native.effect.is_none());
    let idle = own.iter().find(|figure| figure.case == Some("idle") && figure.arm == "container").unwrap();
    let effect = idle.effect.unwrap();
    assert!(effect.low.unwrap() < effect.value && effect.value < effect.high.unwrap() && effect.value > 1.0);
    for figure in &own {
        assert!(figure.effect.is_none() || figure.withheld.is_none(), "{figure:?}");
    }
    assert!(own.iter().all(|figure| figure.case.is_none() || figure.spec.primary));
    assert!(chosen(&findings, true, None).len() > own.len());
    assert!(chosen(&findings, true, Some(Better::Higher)).iter().all(|own| own.spec.better == Better::Higher));
}

#[test]
fn bencher_metric_format_is_valid_by_its_schema() {
    // https://bencher.dev/bmf.json
    let number = json!({ "type": "number" });
    let metric = json!({
        "type": "object", "required": ["value"], "additionalProperties": false,
        "properties": { "value": number, "lower_value": number, "upper_value": number }
    });
    let measures = json!({ "type": "object", "patternProperties": { "^[a-z0-9]+(-[a-z0-9]+)*$": metric }, "additionalProperties": false });
    let schema = json!({ "type": "object", "patternProperties": { ".+": measures } });
    let validator = jsonschema::validator_for(&schema).unwrap();
    for findings in [fixture::findings(), hostile(), fixture::density(), fixture::serving()] {
        let found: Value = serde_json::from_str(&bencher(&chosen(&findings, true, None)).unwrap()).unwrap();
        assert!(validator.is_valid(&found), "{found:#}");
        assert!(!found.as_object().unwrap().is_empty());
    }
    let findings = fixture::findings();
    let found: Value = serde_json::from_str(&bencher(&chosen(&findings, false, None)).unwrap()).unwrap();
    let own = &found["idle/container"];
    let effect = &own["response-time-p50-s-effect"];
    let ratio = &findings.cases[0].metrics[0].comparisons.iter().find(|own| own.arm == "container").unwrap().ratio;
    assert_eq!(effect["value"].as_f64(), Some(ratio.value));
    assert_eq!((effect["lower_value"].as_f64(), effect["upper_value"].as_f64()), (ratio.low, ratio.high));
    assert!(own["response-time-p50-s"]["value"].as_f64().unwrap() < 1e-3, "in the stored unit");
    assert!(found["idle/native"]["response-time-p50-s-effect"].is_null());
}

#[test]
fn a_file_of_github_action_benchmark_has_one_direction() {
    let findings = fixture::findings();
    let mixed = action(&chosen(&findings, false, None)).unwrap_err();
    assert!(mixed.to_string().contains("--better lower"), "{mixed}");
    for (better, tool) in [(Better::Lower, "customSmallerIsBetter"), (Better::Higher, "customBiggerIsBetter")] {
        let (text, named) = action(&chosen(&findings, false, Some(better))).unwrap();
        assert_eq!(named, tool);
        let found: Vec<Value> = serde_json::from_str(&text).unwrap();
        let names: BTreeSet<&str> = found.iter().map(|own| own["name"].as_str().unwrap()).collect();
        assert_eq!(names.len(), found.len(), "charts are by name");
        for own in &found {
            assert!(own["unit"].is_string() && own["value"].is_f64(), "{own}");
            // As the action reads it: a number after the sign.
            let range = own["range"].as_str().map(|range| range.strip_prefix("\u{b1} ").unwrap().parse::<f64>());
            assert!(range.is_none_or(|range| range.is_ok()), "{own}");
        }
        assert!(found.iter().any(|own| own["name"].as_str().unwrap().ends_with("(effect)")));
    }
}

#[test]
fn a_row_for_otava_has_a_number_in_every_column_of_a_metric() {
    for findings in [fixture::findings(), hostile()] {
        let attributes = [("commit".to_owned(), HOSTILE.to_owned())];
        let table = otava(&findings, &chosen(&findings, false, None), &attributes);
        let mut read = csv::ReaderBuilder::new().has_headers(true).from_reader(table.header.as_bytes());
        let names: Vec<String> = read.headers().unwrap().iter().map(str::to_owned).collect();
        let all = format!("{}{}", table.header, table.row);
        let mut read = csv::ReaderBuilder::new().from_reader(all.as_bytes());
        let rows: Vec<csv::StringRecord> = read.records().map(Result::unwrap).collect();
        assert_eq!((rows.len(), rows[0].len()), (1, names.len()));
        assert_eq!(names[..5], ["time", "study", "run", "tare_version", "commit"]);
        assert_eq!(&rows[0][0], findings.run.started_at.as_str());
        assert!(rows[0].iter().skip(5).all(|own| own.parse::<f64>().is_ok()), "{:?}", rows[0]);
        let metrics: BTreeSet<&String> = names.iter().skip(5).collect();
        assert_eq!(metrics.len(), names.len() - 5, "no name twice");
        assert!(names.iter().any(|name| name.starts_with("effect/busy-both/container/")));
        assert_eq!((table.header.lines().count(), table.row.lines().count()), (1, 1));
    }
}

/// Reads a label list; what follows it.
fn labels(text: &str) -> (Vec<(String, String)>, &str) {
    let mut rest = text.strip_prefix('{').unwrap();
    let mut found = Vec::new();
    while let Some((name, after)) = rest.split_once("=\"") {
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{text}");
        let (mut value, mut at) = (String::new(), after.char_indices());
        let end = loop {
            match at.next().unwrap() {
                (end, '"') => break end,
                (_, '\\') => value.push(match at.next().unwrap().1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("\\{c} in {text}"),
                }),
                (_, c) => value.push(c),
            }
        };
        found.push((name.to_owned(), value));
        rest = &after[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (found, rest.strip_prefix('}').unwrap()),
        }
    }
    panic!("no labels: {text}")
}

/// Checks a text by the rules of OpenMetrics 1.0 that concern gauges; the names of its families.
fn check_openmetrics(text: &str) -> Vec<String> {
    assert!(text.ends_with("\n# EOF\n") && !text.contains('\r'));
    let mut families: Vec<(String, String)> = Vec::new();
    let mut samples = BTreeSet::new();
    for line in text.strip_suffix("# EOF\n").unwrap().lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let name = typed.strip_suffix(" gauge").unwrap();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert!(families.iter().all(|(own, _)| own != name), "{name} twice, or interleaved");
            families.push((name.to_owned(), String::new()));
            continue;
        }
        let (family, unit) = families.last_mut().unwrap();
        if let Some(own) = line.strip_prefix("# UNIT ") {
            let (name, own) = own.split_once(' ').unwrap();
            assert!(name == family && name.ends_with(&format!("_{own}")), "{line}");
            own.clone_into(unit);
        } else if let Some(help) = line.strip_prefix("# HELP ") {
            assert!(help.starts_with(&format!("{family} ")), "{line}");
        } else {
            let (name, rest) = line.split_at(line.find('{').unwrap());
            assert_eq!(name, family, "a gauge has no suffix");
            let (labels, value) = labels(rest);
            assert!(samples.insert((name.to_owned(), labels)), "twice: {line}");
            assert!(value.strip_prefix(' ').unwrap().parse::<f64>().unwrap().is_finite(), "{line}");
        }
    }
    families.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn openmetrics_keeps_the_rules_of_the_format() {
    for findings in [fixture::findings(), hostile(), fixture::density(), fixture::serving(), fixture::store()] {
        check_openmetrics(&openmetrics(&findings, &chosen(&findings, true, None)));
    }
    let findings = hostile();
    let text = openmetrics(&findings, &chosen(&findings, false, None));
    let families = check_openmetrics(&text);
    for name in
        ["tare_effect_ratio", "tare_effect_low_ratio", "tare_effect_high_ratio", "tare_value", "tare_run_start_seconds"]
    {
        assert!(families.iter().any(|own| own == name), "{name}: {families:?}");
    }
    let line = text.lines().find(|line| line.starts_with("tare_effect_ratio{")).unwrap();
    let (found, _) = labels(&line["tare_effect_ratio".len()..]);
    let names: Vec<&str> = found.iter().map(|own| own.0.as_str()).collect();
    assert_eq!(names, ["study", "case", "arm", "metric", "baseline"]);
    assert_eq!(found[0].1, "a\"b\\c\nd,e{f}=\u{fffd}[2J\u{fffd}\u{fffd}");
}
