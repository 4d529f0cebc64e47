//! Runs over time, for `tare history`, in three printed forms: how many changes, the changes by size, then the series.

mod tables;

pub use tables::history_parquet;

use std::collections::BTreeSet;
use std::fmt::Write;

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;
use tare_model::findings::Verdict;
use tare_model::history::{ChangePoint, EffectSeries, History, minute};

use crate::error::ReportError;
use crate::format;
use crate::html::render;
use crate::markdown::{escaped, table_markdown};
use crate::plot::arms::ArmLook;
use crate::plot::{self, Figure};
use crate::terminal::{Style, paragraph, plain};
use crate::view::table::{Cell, Column, Table};
use crate::words;

/// A change with its series.
type Change<'a> = (&'a EffectSeries, &'a ChangePoint);

/// All changes of series that answer, or of all others: those that are confirmed, then leads, the largest first.
fn changes(history: &History, primary: bool) -> Vec<Change<'_>> {
    let series = history.series.iter().filter(|own| own.metric.primary == primary);
    let mut all: Vec<Change<'_>> =
        series.flat_map(|own| own.change_points.iter().map(move |change| (own, change))).collect();
    let rank = |(_, change): &Change<'_>| (is_lead(change), -change.ratio.value.ln().abs());
    all.sort_by(|a, b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)));
    all
}

/// Whether further runs have to confirm a change.
fn is_lead(change: &ChangePoint) -> bool {
    change.verdict == Verdict::Lead
}

/// What there is, and how many changes.
fn summary(history: &History) -> Vec<String> {
    let (Some(first), Some(last)) = (history.runs.first(), history.runs.last()) else {
        return vec!["There are no runs.".to_owned()];
    };
    let studies: BTreeSet<&str> = history.runs.iter().map(|run| run.study.as_str()).collect();
    let counted = [
        format::plural(history.runs.len() as u64, "run", "runs"),
        format!("of {}", format::plural(studies.len() as u64, "study", "studies")),
        format!("on {}", format::plural(history.hosts.len() as u64, "host", "hosts")),
    ];
    let mut said =
        vec![format!("{}, {} to {}.", counted.join(" "), minute(&first.started_at), minute(&last.started_at))];
    for (primary, which) in [(true, "that answer their studies"), (false, "of other figures")] {
        let series: Vec<_> = history.series.iter().filter(|own| own.metric.primary == primary).collect();
        if series.is_empty() {
            continue;
        }
        let short = series.iter().filter(|own| own.withheld.is_some()).count();
        let short = if short > 0 { format!(" {short} of the series have too few runs.") } else { String::new() };
        let series = format::plural(series.len() as u64, "series", "series");
        let (leads, found): (Vec<_>, Vec<_>) = changes(history, primary).into_iter().partition(|own| is_lead(own.1));
        let leads = match leads.len() as u64 {
            0 => String::new(),
            n => format!(" and {} of one", format::plural(n, "lead", "leads")),
        };
        let found = format::plural(found.len() as u64, "change", "changes");
        said.push(format!("{found}{leads} in {series} {which}.{short}"));
    }
    said
}

/// What a change is, with how many runs it rests on.
fn said((series, change): &Change<'_>) -> String {
    let runs = |n: u32| format::plural(n.into(), "run", "runs");
    let (before, after) = (runs(change.runs_before), runs(change.runs_after));
    let differ = match change.differences.is_empty() {
        true => "Nothing else that was noted differs.".to_owned(),
        false => format!("What else differs: {}", change.differences.join(" ")),
    };
    let p = format::p_value(change.p_equal);
    format!("{}: {}; {before} before, {after} after, p {p}. {differ}", series.case_label, change.sentence)
}

/// `idle/container/p50, host 1, plan 1: 12 runs, latest +5.1 % [...]; 1 change`.
fn line(series: &EffectSeries) -> String {
    let runs = format::plural(series.points.len() as u64, "run", "runs");
    format!("{}: {runs}, latest {}; {}", name(series), latest(series), state(series))
}

/// The series by its ids, with what tells it apart from others of the same effect.
fn name(series: &EffectSeries) -> String {
    format!("{}, {} (host {}, plan {})", series.study, series.id, series.host, series.plan)
}

fn latest(series: &EffectSeries) -> String {
    series.points.last().map_or_else(String::new, |point| format::ratio(&point.ratio))
}

fn state(series: &EffectSeries) -> String {
    match (&series.withheld, series.change_points.len() as u64) {
        (Some(why), _) => why.clone(),
        (None, 0) => "no change".to_owned(),
        (None, n) => format::plural(n, "change", "changes"),
    }
}

/// Series that are shown unless all are asked for: those that answer, and others that changed.
fn is_shown(series: &EffectSeries) -> bool {
    series.metric.primary || !series.change_points.is_empty()
}

/// Why series of one effect are several, each reason once.
fn splits(history: &History) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for split in history.series.iter().filter_map(|own| own.split.as_deref()) {
        if !found.contains(&split) {
            found.push(split);
        }
    }
    found
}

/// The history for a terminal of `width` columns, with ANSI colours if `colour`. `all` lists every series.
pub fn history_text(history: &History, all: bool, width: usize, colour: bool) -> String {
    let style = Style::new(colour);
    let mut out = String::new();
    for said in summary(history) {
        out.push_str(&paragraph(&plain(&said), width, "", ""));
    }
    let mut list = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{}", style.bold(heading));
            lines.iter().for_each(|line| out.push_str(&paragraph(line, width, "- ", "  ")));
        }
    };
    list("Changes of what answers, the largest first", changes(history, true).iter().map(said).collect());
    list("Changes of other figures", changes(history, false).iter().map(said).collect());
    let shown: Vec<&EffectSeries> = history.series.iter().filter(|own| all || is_shown(own)).collect();
    list("Series", shown.iter().copied().map(line).collect());
    list("Where a series begins anew", splits(history).into_iter().map(str::to_owned).collect());
    let left = history.series.len() - shown.len();
    if left > 0 {
        let left = format::plural(left as u64, "series", "series");
        let _ = writeln!(out, "\n{left} without a change not shown; --all shows every series.");
    }
    for said in history.method.iter().filter(|_| !history.series.is_empty()).skip(2).take(1) {
        let _ = write!(out, "\n{}", paragraph(said, width, "", ""));
    }
    out
}

/// The history as Markdown.
pub fn history_markdown(history: &History) -> String {
    let mut out = format!("# {}\n\n", escaped(&title(history)));
    let mut list = |heading: &str, lines: &[String]| {
        if !lines.is_empty() {
            let heading = if heading.is_empty() { String::new() } else { format!("{heading}:\n\n") };
            let lines: String = lines.iter().map(|line| format!("- {}\n", escaped(line))).collect();
            let _ = writeln!(out, "{heading}{lines}");
        }
    };
    list("", &summary(history));
    list("Changes of what answers, the largest first", &changes(history, true).iter().map(said).collect::<Vec<_>>());
    list("Changes of other figures", &changes(history, false).iter().map(said).collect::<Vec<_>>());
    list("Where a series begins anew", &splits(history).into_iter().map(str::to_owned).collect::<Vec<_>>());
    let _ = writeln!(out, "{}", table_markdown(&table(history.series.iter())));
    history.method.iter().for_each(|said| _ = writeln!(out, "{}\n", escaped(said)));
    out
}

fn title(history: &History) -> String {
    let studies: BTreeSet<&str> = history.runs.iter().map(|run| run.study.as_str()).collect();
    match studies.into_iter().collect::<Vec<_>>()[..] {
        [study] => format!("{study} over time"),
        _ => "Studies over time".to_owned(),
    }
}

fn table<'a>(series: impl Iterator<Item = &'a EffectSeries>) -> Table {
    let columns = vec![
        Column::text("Series"),
        Column::text("What"),
        Column::numeric("Runs"),
        Column::numeric("Latest"),
        Column::text("Changes"),
    ];
    let mut table = Table::new("", columns);
    for own in series {
        table.rows.push(vec![
            Cell::text(name(own)),
            Cell::text(what(own)),
            Cell::text(own.points.len().to_string()),
            own.points.last().map_or_else(Cell::none, |point| Cell::parts(format::ratio_parts(&point.ratio))),
            Cell::text(state(own)),
        ]);
    }
    table
}

fn what(series: &EffectSeries) -> String {
    format!("{}: {} over {}, {}", series.case_label, series.arm_label, series.baseline, series.metric.label)
}

/// A series with its picture, as the template takes it.
#[derive(Debug, Serialize)]
struct Drawn {
    what: String,
    name: String,
    state: String,
    changes: Vec<Said>,
    split: Option<String>,
    figure: Option<Figure>,
}

/// A change as the template takes it.
#[derive(Debug, Serialize)]
struct Said {
    text: String,
    word: &'static str,
    class: &'static str,
}

impl Said {
    fn of(change: &Change<'_>) -> Self {
        let verdict: Verdict = change.1.verdict;
        Self { text: said(change), word: words::verdict(verdict), class: words::verdict_class(verdict) }
    }
}

/// The history as one self-contained HTML file: a small plot for each series that answers or changed, and all series in a table.
///
/// # Errors
/// When a template does not render, which would be a defect of this crate.
pub fn history_html(history: &History) -> Result<String, ReportError> {
    let mut arms: Vec<&str> = Vec::new();
    let mut drawn = Vec::new();
    for (number, own) in history.series.iter().enumerate().filter(|(_, own)| is_shown(own)) {
        let at = arms.iter().position(|arm| *arm == own.arm).unwrap_or_else(|| {
            arms.push(&own.arm);
            arms.len() - 1
        });
        let look = ArmLook::series(at, &own.arm_label);
        drawn.push(Drawn {
            what: what(own),
            name: name(own),
            state: state(own),
            changes: own.change_points.iter().map(|change| Said::of(&(own, change))).collect(),
            split: own.split.clone(),
            figure: plot::history::figure(&format!("series-{number}"), own, &look),
        });
    }
    let hosts = history.hosts.iter().map(|host| {
        let facts: Vec<String> = host.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        format!("Host {}: {}.", host.number, facts.join("; "))
    });
    render(
        "history.html",
        context! {
            title => title(history),
            summary => summary(history),
            series => Value::from(Serde(drawn)),
            table_of_series => Value::from(Serde(table(history.series.iter()))),
            runs => Value::from(Serde(runs(history))),
            hosts => hosts.collect::<Vec<_>>(),
            method => history.method.clone(),
        },
    )
}

fn runs(history: &History) -> Table {
    let columns = ["Run", "Study", "Begun", "tare", "Host", "Root hash"].map(Column::text);
    let mut table = Table::new("", columns.into());
    for run in &history.runs {
        let begun = minute(&run.started_at);
        let cells = [&run.run, &run.study, &begun, &run.tare_version].map(Cell::text);
        let last = [Cell::text(run.host.to_string()), Cell::code(&run.root_hash)];
        table.rows.push(cells.into_iter().chain(last).collect());
    }
    table
}
