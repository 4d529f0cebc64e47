//! Runs set against runs, for `tare compare`, in three printed forms: how many of which verdict, the changes by size, what else differs, and
//! then every figure.

use std::collections::BTreeMap;
use std::fmt::Write;

use minijinja::value::Serde;
use minijinja::{Value, context};
use tare_model::findings::{RunComparison, RunComparisonRow, RunSide, Standing, Verdict};

use crate::error::ReportError;
use crate::format;
use crate::html::render;
use crate::markdown::{escaped, table_markdown};
use crate::terminal::{Style, paragraph, plain};
use crate::view::table::{Cell, Column, Table};
use crate::words;

/// Verdicts in the order in which they are counted.
const COUNTED: [Verdict; 10] = [
    Verdict::Better,
    Verdict::Worse,
    Verdict::Equivalent,
    Verdict::Lead,
    Verdict::WithinFloor,
    Verdict::NoDifferenceSeen,
    Verdict::TooNoisy,
    Verdict::CannotSay,
    Verdict::NotComparable,
    Verdict::NoiseFloor,
];

/// Most changes that the summary names.
const NAMED: usize = 3;

/// Why there is no verdict, and what to do instead.
fn no_verdict(comparison: &RunComparison) -> Option<String> {
    let why = comparison.withheld.as_ref()?;
    Some(format!(
        "Cannot say whether they differ: {why}. Give several runs of each (`tare compare A1 A2 A3 --with B1 B2 B3`), or make the two \
         versions arms of one study (`tare init my-study.toml --from two-settings`)."
    ))
}

fn title(comparison: &RunComparison) -> String {
    format!("{} against {}", comparison.after.label, comparison.before.label)
}

/// `1 worse, 2 no difference detected`.
fn counts<'a>(rows: impl Iterator<Item = &'a RunComparisonRow> + Clone) -> String {
    let of = |verdict: Verdict| rows.clone().filter(|row| row.comparison.verdict == verdict).count();
    let counted = COUNTED.into_iter().map(|verdict| (of(verdict), words::verdict(verdict))).filter(|(n, _)| *n > 0);
    counted.map(|(n, verdict)| format!("{n} {verdict}")).collect::<Vec<_>>().join(", ")
}

fn is_answer(row: &RunComparisonRow) -> bool {
    matches!(row.comparison.standing, Standing::Primary { .. })
}

/// What changed, and how many of the figures that answer have which verdict, in sentences.
fn summary(comparison: &RunComparison) -> Vec<String> {
    let runs = |side: &RunSide| format::plural(side.runs.len() as u64, "run", "runs");
    let sides = format!("{} against {}", runs(&comparison.after), runs(&comparison.before));
    if comparison.withheld.is_some() {
        return vec![format!("{sides}.")];
    }
    let changed = changes(comparison);
    let short =
        |row: &&RunComparisonRow| format!("{} {}", place(row), format::ratio_parts(&row.comparison.ratio).value);
    let largest: Vec<String> = changed.iter().take(NAMED).map(short).collect();
    let rest = if changed.len() > NAMED { "; ..." } else { "" };
    let which = if largest.is_empty() { String::new() } else { format!(": {}{rest}", largest.join("; ")) };
    let all = comparison.rows.len();
    let mut said = vec![format!("{} of {all} figures changed{which}. {sides}.", changed.len())];
    let answers = comparison.rows.iter().filter(|row| is_answer(row));
    let of = |n: usize, counts: String| (n > 0).then(|| format!("Figures that answer, {n}: {counts}."));
    said.extend(of(answers.clone().count(), counts(answers.clone())));
    said.extend(reasons(answers).into_iter().map(|(why, n)| format!("Cannot say in {n}: {why}.")));
    said
}

/// Why there is no verdict, and in how many rows for that reason.
fn reasons<'a>(rows: impl Iterator<Item = &'a RunComparisonRow>) -> BTreeMap<&'a str, u32> {
    let mut counted = BTreeMap::new();
    for why in rows.filter_map(|row| row.comparison.withheld.as_deref()) {
        *counted.entry(why).or_default() += 1;
    }
    counted
}

/// Rows whose interval excludes equality: verdicts first, then leads, the largest of each first.
fn changes(comparison: &RunComparison) -> Vec<&RunComparisonRow> {
    let differs =
        |row: &&RunComparisonRow| matches!(row.comparison.verdict, Verdict::Better | Verdict::Worse | Verdict::Lead);
    let mut rows: Vec<_> = comparison.rows.iter().filter(differs).collect();
    let rank =
        |row: &RunComparisonRow| (row.comparison.verdict == Verdict::Lead, -row.comparison.ratio.value.ln().abs());
    rows.sort_by(|a, b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)));
    rows
}

/// The figures that stand for all where there are no verdicts: those of primary metrics.
fn figures(comparison: &RunComparison) -> Vec<&RunComparisonRow> {
    comparison.rows.iter().filter(|row| comparison.withheld.is_some() && row.primary).collect()
}

fn place(row: &RunComparisonRow) -> String {
    format!("{}, {}: {}", row.case_label, row.arm_label, row.label)
}

/// Both sides' figures and their ratio: `before 15.4 us, after 16.1 us: +4.5 %`.
fn figure(comparison: &RunComparison, row: &RunComparisonRow) -> String {
    let [before, after] = [&row.before, &row.after].map(|own| format::value(own.value, &row.unit));
    let (first, second) = (&comparison.before.label, &comparison.after.label);
    format!("{first} {before}, {second} {after}: {}", format::ratio(&row.comparison.ratio))
}

fn table(comparison: &RunComparison, caption: &str, rows: &[&RunComparisonRow]) -> Table {
    let columns = vec![
        Column::text("What"),
        Column::numeric(&comparison.before.label),
        Column::numeric(&comparison.after.label),
        Column::numeric("Difference"),
        Column::text("Verdict"),
    ];
    let mut table = Table::new(caption, columns);
    for row in rows {
        let verdict = row.comparison.verdict;
        let chip = match comparison.withheld {
            Some(_) => Cell::none(),
            None => {
                let note = row.comparison.withheld.clone().unwrap_or_default();
                Cell { note, ..Cell::chip(words::verdict(verdict), words::verdict_class(verdict)) }
            }
        };
        table.rows.push(vec![
            Cell::text(place(row)),
            Cell::text(format::value(row.before.value, &row.unit)),
            Cell::text(format::value(row.after.value, &row.unit)),
            Cell::parts(format::ratio_parts(&row.comparison.ratio)),
            chip,
        ]);
    }
    table
}

/// The comparison for a terminal of `width` columns, with ANSI colours if `colour`. `all` prints every figure below the summary.
pub fn comparison_text(comparison: &RunComparison, all: bool, width: usize, colour: bool) -> String {
    let style = Style::new(colour);
    let mut out = style.bold(&plain(&title(comparison)));
    out.push('\n');
    for said in comparison.warnings.iter().chain(&no_verdict(comparison)) {
        out.push_str(&paragraph(said, width, "! ", "  "));
    }
    for said in summary(comparison) {
        out.push_str(&paragraph(&said, width, "", ""));
    }
    let (changes, figures) = (changes(comparison), figures(comparison));
    let mut list = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{}", style.bold(heading));
            lines.iter().for_each(|line| out.push_str(&paragraph(line, width, "- ", "  ")));
        }
    };
    let said = |row: &&RunComparisonRow| {
        format!("{} ({}): {}", words::verdict(row.comparison.verdict), row.case_label, row.comparison.sentence)
    };
    list("Changes, the largest first", changes.iter().map(said).collect());
    let shown = |row: &&RunComparisonRow| format!("{}: {}", place(row), figure(comparison, row));
    if !all {
        list("Primary metrics", figures.iter().map(shown).collect());
    }
    list("What else differs", comparison.differences.clone());
    if all {
        let every = |row: &RunComparisonRow| match comparison.withheld {
            Some(_) => shown(&row),
            None => format!("{} ({})", said(&row), figure(comparison, row)),
        };
        list("All figures", comparison.rows.iter().map(every).collect());
    } else {
        let left = comparison.rows.len() - changes.len() - figures.len();
        let _ = writeln!(
            out,
            "\n{} not shown; --all shows every figure.",
            format::plural(left as u64, "figure", "figures")
        );
    }
    out
}

/// The comparison as Markdown.
pub fn comparison_markdown(comparison: &RunComparison) -> String {
    let mut out = format!("# {}\n\n", escaped(&title(comparison)));
    for said in comparison.warnings.iter().chain(&no_verdict(comparison)).chain(&summary(comparison)) {
        let _ = writeln!(out, "- {}", escaped(said));
    }
    out.push('\n');
    for (_, table) in tables(comparison) {
        let _ = writeln!(out, "{}", table_markdown(&table));
    }
    if !comparison.differences.is_empty() {
        out.push_str("What else differs:\n\n");
    }
    for said in &comparison.differences {
        let _ = writeln!(out, "- {}", escaped(said));
    }
    out
}

/// The tables of a page, and whether each is folded.
fn tables(comparison: &RunComparison) -> Vec<(bool, Table)> {
    let mut tables = Vec::new();
    for (caption, rows) in
        [("Changes, the largest first.", changes(comparison)), ("Primary metrics.", figures(comparison))]
    {
        if !rows.is_empty() {
            tables.push((false, table(comparison, caption, &rows)));
        }
    }
    tables.push((true, table(comparison, "All figures.", &comparison.rows.iter().collect::<Vec<_>>())));
    tables
}

/// The comparison as one self-contained HTML file.
///
/// # Errors
/// When a template does not render, which would be a defect of this crate.
pub fn comparison_html(comparison: &RunComparison) -> Result<String, ReportError> {
    let notes: Vec<String> = comparison.warnings.iter().cloned().chain(no_verdict(comparison)).collect();
    let values = context! {
        title => title(comparison),
        notes => notes,
        summary => summary(comparison),
        differences => comparison.differences.clone(),
        tables => Value::from(Serde(tables(comparison))),
    };
    render("comparison.html", values)
}
