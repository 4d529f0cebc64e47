//! Figures that a text states one by one, and conditions that a report discloses.

use tare_model::metric::Unit;
use tare_model::published::Condition;

use super::{folder, measured, published, read, refused};

const CLAIMS: &str = r#"
[[report]]
format = "figures"
name = "own"
title = "What a text states"
arms = { one = "the one", other = "the other" }
[report.figures]
rate = { label = "throughput", better = "higher" }
[[report.cases]]
id = "bulk"
label = "bulk"
workload = "stream"
cpus = 2
memory = "4GiB"
"#;
const FIGURES: &str = "report,case,arm,figure,least,most,unit,line\n";
const CONDITIONS: &str = "report,case,arm,subject,what,value,unit,source\n";
const FIGURE: &str = "own,bulk,one,rate,9.70,9.70,Gbit/s,52\n";

/// What is said of a figure and a condition that are refused.
fn said(figures: &str, conditions: &str) -> String {
    let conditions = format!("{CONDITIONS}{conditions}");
    let files = [("f.csv", &*format!("{FIGURES}{figures}")), ("claims.toml", CLAIMS), ("g.csv", &*conditions)];
    let folder = folder(if conditions == CONDITIONS { &files[..2] } else { &files });
    read(&[folder.path().to_owned()]).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn figures_of_a_text_have_their_units_their_lines_and_no_middle_of_a_range() {
    let figures = format!("{FIGURES}{FIGURE}own,bulk,other,rate,200,300,Mbit/s,60\n");
    let conditions =
        format!("{CONDITIONS}own,,one,link,rate,10,Gbit/s,38\nown,bulk,,guest,system,Linux 5,-,the appendix\n");
    let folder = folder(&[("f.csv", &figures), ("claims.toml", CLAIMS), ("g.csv", &conditions)]);
    let imported = read(&[folder.path().to_owned()]).unwrap();
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    let report = &imported.reports[0];
    let one = measured(report, "bulk", "one");
    assert_eq!(one.metrics, [("rate".to_owned(), 9.7e9)].into());
    let record = &report.trials[0];
    assert_eq!((&record.metrics[0].unit, record.metrics[0].primary), (&Unit::BitsPerSecond, true));
    assert_eq!(record.facts["line of rate"], "52");
    let other = measured(report, "bulk", "other");
    let ends = [("rate_least".to_owned(), 200e6), ("rate_most".to_owned(), 300e6)];
    assert_eq!(other.metrics, ends.into());
    let published = report.published();
    assert_eq!(published.files.len(), 2);
    let first = Condition {
        arm: "one".into(),
        subject: "link".into(),
        what: "rate".into(),
        value: "10".into(),
        unit: "Gbit/s".into(),
        source: "line 38".into(),
        case: String::new(),
    };
    assert_eq!(published.conditions[0], first);
    assert_eq!((&*published.conditions[1].case, &*published.conditions[1].source), ("bulk", "the appendix"));
}

#[test]
fn a_figure_that_is_wrong_is_reported_with_file_line_and_field() {
    for (line, says) in [
        ("own,bulk,one,rate,9.7,9.7,,52", "f.csv, line 2, column `unit`: the figure has no unit"),
        ("own,bulk,one,rate,9.7,9.7,furlong,52", "f.csv, line 2, column `unit`: `furlong` is not a unit that is known"),
        ("own,bulk,one,rate,9.7,9.5,Gbit/s,52", "line 2, column `least`: 9.7 is more than 9.5"),
        ("own,bulk,one,rate,9.7,,Gbit/s,52", "line 2, column `most`: `` is not a number"),
        ("own,bulk,one,rate,9.7,9.7,Gbit/s,0", "line 2, column `line`: 0 is not from 1"),
        ("own,other,one,rate,9.7,9.7,Gbit/s,52", "line 2, column `case`: the case `other` is not described"),
        ("own,bulk,one,speed,9.7,9.7,Gbit/s,52", "line 2, column `figure`: the figure `speed` is not described"),
        ("../own,bulk,one,rate,9.7,9.7,Gbit/s,52", "line 2, column `report`: `../own` is not the name of a report"),
        ("own,bulk,one,rate,9,9,Gbit/s,52\nown,bulk,one,rate,9,10,Gbit/s,53", "line 3, column `figure`: rate of one"),
    ] {
        let said = said(&format!("{line}\n"), "");
        assert!(said.contains(says), "{line}: {said}");
    }
}

#[test]
fn a_condition_that_is_wrong_is_reported_with_file_line_and_field() {
    for (line, says) in [
        ("own,,one,guest,memory,6144,,240", "g.csv, line 2, column `unit`: the figure has no unit"),
        ("own,,one,guest,memory,,MB,240", "g.csv, line 2, column `value`: it is empty"),
        ("own,,one,guest,\u{1b}[2J,1,MB,240", "line 2, column `what`"),
        ("own,,nobody,guest,memory,1,MB,240", "line 2, column `arm`: report own has no arm `nobody`"),
        ("own,idle,one,guest,memory,1,MB,240", "line 2, column `case`: report own has no case `idle`"),
        ("strange,,,guest,memory,1,MB,240", "line 2, column `report`: there are no figures of a report `strange`"),
        (
            "own,,one,guest,memory,1,MB,240\nown,,one,guest,memory,2,MB,240",
            "line 3: own, , one, guest, memory, 240 is listed",
        ),
    ] {
        let said = said(FIGURE, &format!("{line}\n"));
        assert!(said.contains(says), "{line}: {said}");
    }
    assert!(
        refused(&format!("{CONDITIONS}own,,,guest,memory,1,MB,240\n")).contains("there are no figures of a report")
    );
}

#[test]
fn a_claim_names_a_condition_that_is_disclosed() {
    let claim = |what: &str| {
        format!(
            "{CLAIMS}[[report.claims]]\ntext = \"half\"\nkind = {{ share = {{ part = {{ subject = \"host\", what = \"{what}\" }}, \
             than = {{ subject = \"host\", what = \"cores\" }}, percent = 50, rounding = 1 }} }}\n"
        )
    };
    let figures = format!("{FIGURES}{FIGURE}");
    let conditions = format!("{CONDITIONS}own,,,host,cores,4,-,1\nown,,,host,used,2,-,2\n");
    let with = |claims: &str| {
        let folder = folder(&[("f.csv", &figures), ("claims.toml", claims), ("g.csv", &conditions)]);
        read(&[folder.path().to_owned()])
    };
    assert_eq!(with(&claim("used")).unwrap().reports[0].published().claims.len(), 1);
    let said = with(&claim("idle")).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("claims.toml, line 15, field `what`: there is no condition `idle` of `host`"), "{said}");
    let without = claim("used").replace("than = { subject = \"host\", what = \"cores\" }, ", "");
    let said = with(&without).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("line 15, field `than`: the claim is a `share` without a base"), "{said}");
}

#[test]
fn what_the_reports_state_in_their_text_is_imported_as_it_is_printed() {
    let imported = read(&[published()]).unwrap();
    let named = |name: &str| imported.reports.iter().find(|report| report.published().report == name).unwrap();
    let network = named("001");
    for (case, rate) in [("receive", 9.70e9), ("send", 9.87e9)] {
        assert_eq!(measured(network, case, "virtuozzo_containers").metrics["throughput"], rate);
    }
    assert_eq!((network.trials.len(), network.plan.study.arms.len()), (2, 5), "no figure is invented for the others");
    let several = named("003");
    let load = measured(several, "two-cpus-fixed-load", "virtual");
    assert_eq!((load.metrics["cpu_gained_per_jvm_least"], load.metrics["cpu_gained_per_jvm_most"]), (1.0, 4.0));
    let cpu = measured(several, "two-cpus-fixed-cpu", "virtual");
    let lost = ["least", "most"].map(|end| cpu.metrics[&format!("throughput_lost_per_jvm_{end}")]);
    assert_eq!(lost, [0.02, 0.03]);
    let web = measured(named("002"), "banking", "native");
    let errors = web.search.as_ref().unwrap().iterations().map(|probe| probe.counts["validation_errors"]);
    assert_eq!(errors.collect::<Vec<_>>(), [0, 0, 0]);
}

#[test]
fn wrong_answers_of_an_iteration_that_is_not_there_are_refused() {
    let said = refused("environment,workload,iteration,validation_errors,line\nnative,banking,1,0,826\n");
    assert!(said.contains("line 2, column `iteration`: there is no iteration 1 of banking on native"), "{said}");
}

#[test]
fn every_claim_that_ships_names_what_the_tables_have() {
    let whole = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(published()).unwrap().map(|file| file.unwrap()) {
        std::fs::copy(file.path(), whole.path().join(file.file_name())).unwrap();
    }
    // Beside the tables, where names are checked: of a report that is known, some tables alone may be read.
    std::fs::write(whole.path().join("claims.toml"), include_str!("../claims.toml")).unwrap();
    assert_eq!(read(&[whole.path().to_owned()]).unwrap().reports, read(&[published()]).unwrap().reports);
}
