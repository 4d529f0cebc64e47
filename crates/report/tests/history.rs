//! Histories: what a reader finds in each form.

use parquet::file::reader::{FileReader, SerializedFileReader};
use tare_model::findings::{Estimate, Verdict};
use tare_model::history::{ChangePoint, EffectSeries, History, HistoryHost, HistoryRun, SeriesPoint};
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::text::readable;
use tare_report::{history_html, history_markdown, history_parquet, history_text};

use crate::page::parsed;

fn ratio(value: f64, half: f64) -> Estimate {
    let ends = (half > 0.0).then_some((value - half, value + half));
    Estimate {
        value,
        low: ends.map(|e| e.0),
        high: ends.map(|e| e.1),
        level: 0.95,
        n: 12,
        method: "a method".to_owned(),
    }
}

fn id(number: usize) -> String {
    format!("20260102-0300{number:02}-00af")
}

/// Twenty runs, of which the last nine have a larger ratio; the fourth does not count.
fn series(metric: &str, primary: bool, changes: bool) -> EffectSeries {
    let point = |number: usize| SeriesPoint {
        run: id(number),
        ratio: ratio(if changes && number > 10 { 1.3 } else { 1.2 } + 0.001 * (number % 3) as f64, 0.01),
        fault: (number == 3).then(|| "the driver was at its limit".to_owned()),
    };
    let change = ChangePoint {
        before: id(10),
        after: id(11),
        runs_before: 10,
        runs_after: 9,
        ratio: ratio(1.083, 0.004),
        p_equal: 1e-9,
        verdict: Verdict::Worse,
        differences: vec!["Kernel, release: 6.1, then 6.12.".to_owned()],
        sentence: "container over native, response time (median): +8.3 % [+7.9, +8.7] (worse) from run 11 on"
            .to_owned(),
    };
    let spec = MetricSpec::new(metric, "response time, <median>", Unit::Seconds, Better::Lower);
    EffectSeries {
        id: format!("idle/container/{metric}"),
        study: "made-up".to_owned(),
        case: Some("idle".to_owned()),
        case_label: "idle <host> \u{1b}[2J".to_owned(),
        arm: "container".to_owned(),
        arm_label: "a \"container\" & more".to_owned(),
        baseline: "native".to_owned(),
        metric: MetricSpec { primary, ..spec },
        host: 1,
        plan: 1,
        split: None,
        points: (0..20).map(point).collect(),
        withheld: None,
        change_points: if changes { vec![change] } else { Vec::new() },
    }
}

fn history() -> History {
    let run = |number: usize| HistoryRun {
        run: id(number),
        root_hash: "a".repeat(64),
        study: "made-up".to_owned(),
        started_at: format!("2026-01-02T03:00:{number:02}Z"),
        tare_version: "0.1.0".to_owned(),
        host: 1,
        notes: Vec::new(),
    };
    let mut short = series("new", true, false);
    short.points.truncate(1);
    short.withheld = Some("1 of the 6 runs that the search for changes needs".to_owned());
    short.split = Some("A series of its own from run 19 on: its plan differs.".to_owned());
    History {
        runs: (0..20).map(run).collect(),
        hosts: vec![HistoryHost { number: 1, facts: vec![("CPU, model".to_owned(), "made <up>".to_owned())] }],
        series: vec![series("p50", true, true), series("p99", false, true), series("mean", false, false), short],
        method: vec!["One.".to_owned(), "Two.".to_owned(), "How often.".to_owned()],
    }
}

#[test]
fn a_page_draws_what_answers_and_what_changed_and_lists_all() {
    // As it is printed: names of others may hold anything.
    let page = readable(&history_html(&history()).unwrap());
    let document = parsed(&page);
    let drawn = document.descendants().filter(|node| node.has_tag_name("svg")).count();
    assert_eq!(drawn, 2 * 3, "two layouts of three series");
    assert_eq!(page.matches("does not count: the driver was at its limit").count(), 2 * 2);
    assert_eq!(page.matches("stroke-dasharray=\"4 3\"").count(), 2 * 2, "a dashed line a change");
    let rows = document.descendants().filter(|node| node.has_tag_name("tr")).count();
    assert_eq!(rows, 4 + 1 + 20 + 1, "series, runs and their heads");
    assert!(page.contains("CPU, model: made &lt;up&gt;") && page.contains("Kernel, release: 6.1, then 6.12."));
    assert!(!page.contains("<host>") && !page.contains("<script") && !page.contains('\u{1b}'));
}

#[test]
fn a_terminal_has_the_changes_that_answer_first() {
    let text = history_text(&history(), false, 100, false);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("20 runs of 1 study on 1 host") < at("1 change in 2 series that answer their studies"));
    assert!(at("Changes of what answers") < at("Changes of other figures") && at("+8.3 %") < at("Series"));
    assert!(text.contains("10 runs before, 9 runs after, p <0.001") && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains("1 series without a change not shown") && !text.contains("idle/container/mean"), "{text}");
    assert!(text.contains("A series of its own from run 19") && text.contains("How often."), "{text}");
    assert!(history_text(&history(), true, 100, false).contains("idle/container/mean"));
    let markdown = history_markdown(&history());
    assert!(markdown.starts_with("# made-up over time\n") && markdown.contains("idle/container/mean"), "{markdown}");
    let none = History::default();
    assert!(history_text(&none, false, 100, false).contains("no runs") && history_html(&none).is_ok());
}

#[test]
fn parquet_has_a_row_a_run_a_point_and_a_change() {
    let files = history_parquet(&history()).unwrap();
    let rows = |(name, bytes): &(String, Vec<u8>)| {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
        (name.clone(), reader.metadata().file_metadata().num_rows())
    };
    let expected = [("history-runs.parquet", 20), ("history-effects.parquet", 61), ("history-changes.parquet", 2)];
    assert_eq!(files.iter().map(rows).collect::<Vec<_>>(), expected.map(|(name, rows)| (name.to_owned(), rows)));
    let reader = SerializedFileReader::new(bytes::Bytes::from(files[2].1.clone())).unwrap();
    let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
    let of = |name: &str| row.get_column_iter().find(|(own, _)| *own == name).unwrap().1.to_string();
    assert_eq!(
        (of("run_after"), of("verdict"), of("ratio")),
        (format!("\"{}\"", id(11)), "\"worse\"".into(), "1.083".into())
    );
}
