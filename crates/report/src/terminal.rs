//! The findings for the end of a run: a compact table, then the answer.

use tare_model::count;
use tare_model::findings::section::{Block, Place};
use tare_model::findings::{Answer, CaseFindings, Findings, MetricFindings, Verdict};
use tare_model::metric::{Unit, common};
use tare_model::text::is_unfit;

use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::view::parts::Parts;
use crate::view::setting::blocks;
use crate::view::{
    Report, account, capacity, consolidation, cpu_targets, density, fold, isolation, primary, sizing, steps, trust,
};
use crate::words;

/// So many findings are printed whatever they say.
const FEW: usize = 12;

/// Narrowest width that is laid out for; a narrower terminal breaks lines itself.
const NARROWEST: usize = 40;

/// The findings for a terminal of `width` columns, with ANSI colours if `colour`: the primary metric of
/// every case on every arm with its interval, the ratio against the baseline, the verdict; then the answer.
pub fn terminal(findings: &Findings, width: usize, colour: bool) -> String {
    let width = width.max(NARROWEST);
    let style = Style::new(colour);
    let arms = Arms::of(findings);
    let report = Report::new(findings);
    // Dozens of cases are summed up in lines of their own below.
    let shown: Vec<&CaseFindings> = findings.cases.iter().filter(|case| !fold::is_folded(findings, &case.id)).collect();
    let mut lines: Vec<(String, Vec<Line>)> = shown.iter().map(|case| case_lines(case, findings, &arms)).collect();
    // The parts of a start matter where there are several kinds of guests.
    let weighs = |metric: &&MetricFindings| common::OF_THE_GUEST.contains(&metric.spec.id.as_str());
    let of_guests = findings.across.iter().filter(|metric| weighs(metric) || report.glance.is_some());
    // A study of conditions alone asks nothing of that.
    let asks = report.isolation.is_none() || !shown.is_empty();
    let of_guests = of_guests.filter(|_| asks);
    lines.extend(of_guests.map(|metric| metric_lines("all cases", metric, findings, &arms)));
    let widths = Widths::of(lines.iter().flat_map(|(_, lines)| lines), width);
    let mut out = String::new();
    if let Some(published) = &report.published {
        let text = format!("{}. {}.", published.mark, published.source);
        out.push_str(&style.bold(&paragraph(&text, width, "", "  ")));
        out.push('\n');
    }
    for warning in &report.warnings {
        out.push_str(&style.alarm(&paragraph(&format!("WARNING: {warning}"), width, "", "  ")));
        out.push('\n');
    }
    out.push_str(&sections(isolation::lines(findings, &arms), width, &style));
    let notes = shown.iter().map(|case| notes(case, findings, &arms)).chain(std::iter::repeat(Vec::new()));
    for ((heading, lines), notes) in lines.iter().zip(notes) {
        out.push_str(&style.bold(&paragraph(heading, width, "", "  ")));
        for line in lines {
            out.push_str(&line.text(&widths, &style));
        }
        for note in &notes {
            out.push_str(&paragraph(note, width, "  ", "    "));
        }
        out.push('\n');
    }
    out.push_str(&summed_up(findings, &arms, &report, width, &style));
    for left in report.glance.iter().flat_map(|glance| &glance.left_out) {
        let text = format!("not measured here: {}: {} Remedy: {}", left.label, left.reason, left.remedy);
        out.push_str(&paragraph(&text, width, "", "  "));
    }
    out.push_str(&style.bold(&paragraph(&report.question, width, "", "")));
    for line in report.headlines.iter().chain(&report.summary) {
        out.push_str(&paragraph(line, width, "", ""));
    }
    out.push_str(&answers(findings, &report, width, &style));
    out.push_str(&judged(&report, width, &style));
    let apart = report.glance.as_ref().map_or(&[][..], |glance| &glance.why_apart);
    if !apart.is_empty() {
        out.push('\n');
    }
    for sentence in apart {
        out.push_str(&paragraph(sentence, width, "", "  "));
    }
    out.push_str(&deviations(findings, width, &style));
    out.push('\n');
    out.push_str(&paragraph(&format!("{}.", report.grounds.join("; ")), width, "", ""));
    out
}

/// Headings, each with its lines below it.
fn sections(all: Vec<(String, Vec<String>)>, width: usize, style: &Style) -> String {
    let mut out = String::new();
    for (heading, lines) in all {
        out.push_str(&style.bold(&paragraph(&heading, width, "", "  ")));
        lines.iter().for_each(|line| out.push_str(&paragraph(line, width, "  ", "    ")));
        out.push('\n');
    }
    out
}

/// What sums up several cases: instances in one guest, and sizing.
fn summed_up(findings: &Findings, arms: &Arms, report: &Report, width: usize, style: &Style) -> String {
    let all = consolidation::lines(findings, arms).into_iter().chain(sizing::lines(findings, arms));
    let mut out = sections(all.collect(), width, style);
    if let Some(folded) = &report.folded {
        let text = format!("{}: each with its own figures in the HTML report and in the CSV files.", folded.count);
        out.push_str(&format!("{}\n", paragraph(&text, width, "", "  ")));
    }
    out
}

/// The answer finding by finding, below an empty line; nothing where the tables say it all.
fn answers(findings: &Findings, report: &Report, width: usize, style: &Style) -> String {
    // Of many findings those on what was not seen would bury those on what was; the tables above have all.
    let is_shown = |answer: &Answer| {
        report.glance.is_none()
            || findings.answer.len() <= FEW
            || matches!(answer.verdict, Verdict::Better | Verdict::Worse | Verdict::Lead | Verdict::WithinFloor)
    };
    let mut out = String::new();
    let all = || findings.answer.iter().zip(&report.answers).filter(|(answer, _)| is_shown(answer));
    for (answer, view) in all().take(report.shown) {
        if out.is_empty() {
            out.push('\n');
        }
        let text = paragraph(&view.line, width, "- ", "  ");
        let (mark, painted) = (format!("- {}", view.verdict), style.verdict(answer.verdict, view.verdict));
        out.push_str(&text.strip_prefix(&mark).map_or(text.clone(), |rest| format!("- {painted}{rest}")));
    }
    let more = all().count().saturating_sub(report.shown);
    if more > 0 {
        out.push_str(&paragraph(&format!("and {more} more, case by case, in the report"), width, "- ", "  "));
    }
    out
}

/// The score, and what the audit found not to hold.
fn judged(report: &Report, width: usize, style: &Style) -> String {
    let mut out = String::new();
    if let Some(score) = &report.score {
        out.push_str(&format!("\n{}", paragraph(&score.what, width, "", "  ")));
        score.arms.iter().for_each(|line| out.push_str(&paragraph(&line.line(), width, "  ", "    ")));
        score.notes.iter().for_each(|note| out.push_str(&paragraph(note, width, "  ", "    ")));
    }
    for entry in report.audit.iter().flat_map(|audit| &audit.broken) {
        let text = paragraph(&format!("AUDIT: {}: {}", entry.outcome, entry.paragraph()), width, "", "  ");
        out.push_str(&format!("\n{}", style.alarm(&text)));
    }
    out
}

/// What the study does otherwise than the published one, where it repeats one.
fn deviations(findings: &Findings, width: usize, style: &Style) -> String {
    if findings.plan.study.original.is_none() || findings.deviations.is_empty() {
        return String::new();
    }
    let head = paragraph(&format!("What is otherwise than in {}:", trust::original(findings)), width, "", "  ");
    let lines = findings.deviations.iter().map(|own| {
        let text =
            format!("{}: published: {}; here: {}; likely effect: {}", own.what, own.published, own.here, own.effect);
        paragraph(&text, width, "- ", "  ")
    });
    std::iter::once(format!("\n{}", style.bold(&head))).chain(lines).collect()
}

/// One arm in one case.
struct Line {
    arm: String,
    value: String,
    interval: String,
    against: String,
    against_interval: String,
    verdict: Option<Verdict>,
    word: &'static str,
}

/// Columns that fit the terminal; 0 leaves a column out.
struct Widths {
    arm: usize,
    value: usize,
    interval: usize,
    against: usize,
    against_interval: usize,
    /// Verdicts in their short form.
    short: bool,
}

impl Widths {
    fn of<'a>(lines: impl Iterator<Item = &'a Line> + Clone, width: usize) -> Self {
        let widest = |of: fn(&Line) -> &String| lines.clone().map(|line| columns(of(line))).max().unwrap_or(0);
        let mut widths = Self {
            arm: widest(|line| &line.arm),
            value: widest(|line| &line.value),
            interval: widest(|line| &line.interval),
            against: widest(|line| &line.against),
            against_interval: widest(|line| &line.against_interval),
            short: false,
        };
        let total = |w: &Self| {
            let verdict = if w.short { "no completed trial".len() } else { "no difference detected".len() };
            2 + w.arm + 2 + w.value + 1 + w.interval + 2 + w.against + 1 + w.against_interval + 2 + verdict
        };
        // The interval of the ratio decides, so it is the last to go.
        if total(&widths) > width {
            widths.interval = 0;
        }
        if total(&widths) > width {
            widths.against_interval = 0;
        }
        widths.short = total(&widths) > width;
        let over = total(&widths).saturating_sub(width);
        widths.arm = widths.arm.saturating_sub(over).max(8.min(widths.arm));
        widths
    }
}

impl Line {
    fn text(&self, widths: &Widths, style: &Style) -> String {
        let mut out = format!("  {}  {}", fitted(&self.arm, widths.arm), padded_left(&self.value, widths.value));
        if widths.interval > 0 {
            out.push_str(&format!(" {}", style.dim(&padded(&self.interval, widths.interval))));
        }
        out.push_str(&format!("  {}", padded(&self.against, widths.against)));
        if widths.against_interval > 0 {
            out.push_str(&format!(" {}", padded(&self.against_interval, widths.against_interval)));
        }
        out.push_str("  ");
        let word = self.verdict.filter(|_| widths.short).map_or(self.word, words::verdict_short);
        out.push_str(&self.verdict.map_or_else(|| word.to_owned(), |v| style.verdict(v, word)));
        format!("{}\n", out.trim_end())
    }
}

fn case_lines(case: &CaseFindings, findings: &Findings, arms: &Arms) -> (String, Vec<Line>) {
    let Some(metric) = primary(case) else {
        return (format!("{}: no completed trial", case.label), Vec::new());
    };
    metric_lines(&case.label, metric, findings, arms)
}

fn metric_lines(what: &str, metric: &MetricFindings, findings: &Findings, arms: &Arms) -> (String, Vec<Line>) {
    // A label may have a colon of its own.
    let label = metric.spec.label.replacen(": ", ", ", 1);
    let heading = format!("{what}: {label}, {}", words::better(metric.spec.better));
    (heading, arms.iter().map(|arm| arm_line(arm, metric, findings)).collect())
}

/// What qualifies the figures of a case, in lines: objectives, what was not measured, operations that are missing or late.
fn notes(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<String> {
    // Where no number of guests held, no objective is judged. What was missed is reported with the number that was tried.
    let none_held =
        |arm: &str| case.density.iter().flat_map(|own| &own.arms).any(|own| own.arm == arm && own.held == 0);
    let judged = case.objectives.iter().filter(|objective| !none_held(&objective.arm));
    let blocks = blocks(case, findings).map(|blocks| format!("{blocks}."));
    let mut out: Vec<String> = blocks.into_iter().chain(judged.map(|objective| objective.sentence.clone())).collect();
    out.extend(case.not_measured.iter().cloned());
    let said =
        case.sections.iter().filter(|section| section.place == Place::Answer).flat_map(|section| &section.blocks);
    out.extend(said.filter_map(|block| if let Block::Sentence(said) = block { Some(said.clone()) } else { None }));
    out.extend(density::lines(case, arms));
    out.extend(capacity::lines(case, findings, arms));
    out.extend(cpu_targets::lines(case, findings, arms));
    out.extend(Parts::new(case, findings, arms).iter().flat_map(Parts::lines));
    out.extend(steps::lines(case, arms));
    let mut same: Vec<(Vec<String>, String)> = Vec::new();
    // Of what others measured nobody here knows how many operations were lost.
    let counted = if findings.plan.study.published.is_some() { &[][..] } else { &case.accounts };
    for own in counted {
        let count = |name: &str| own.counts.get(name).copied().unwrap_or(0);
        let missing = count::MISSING.map(count);
        let open = own.offered_per_s.map(|offered| {
            let late = own.lateness.iter().find(|(q, _)| (q - 0.99).abs() < 1e-9);
            let late = late.map_or_else(|| "n/a".to_owned(), |(_, e)| format::value(e.value, &Unit::Seconds));
            let rate = |rate: f64| format::value(rate, &account::arrivals(own));
            let achieved = own.achieved_per_s.as_ref().map_or_else(|| "n/a".to_owned(), |e| rate(e.value));
            format!(", late by {late} at p99, offered {}, achieved {achieved}", rate(offered))
        });
        let [failed, lost, unfinished] = missing.map(format::count);
        // They are of all phases, where figures are of the window alone.
        let reasons = match account::reasons(own) {
            reasons if reasons.is_empty() => reasons,
            reasons => format!(" over all phases {reasons}"),
        };
        let text =
            format!("{failed} failed{reasons}, {lost} lost, {unfinished} unfinished{}", open.unwrap_or_default());
        let label = arms.label(&own.arm);
        match same.iter_mut().find(|(_, known)| *known == text) {
            Some((labels, _)) => labels.push(label),
            None => same.push((vec![label], text)),
        }
    }
    out.extend(same.into_iter().map(|(labels, text)| format!("operations of {}: {text}", labels.join("; "))));
    out
}

fn arm_line(arm: &ArmLook, metric: &MetricFindings, findings: &Findings) -> Line {
    let found = metric.arms.iter().find(|estimate| estimate.arm == arm.id);
    let parts = found.map(|found| format::estimate_parts(&found.estimate, &metric.spec.unit));
    let comparison = metric.comparisons.iter().find(|c| c.arm == arm.id);
    let word = match comparison {
        Some(comparison) => words::verdict(comparison.verdict),
        None if found.is_none() => "no completed trial",
        None if arm.id == findings.plan.study.baseline => "baseline",
        None => "",
    };
    let (value, interval) = parts.map_or_else(
        || ("-".to_owned(), String::new()),
        |parts| (plain(&parts.value), parts.interval.unwrap_or_else(|| "no interval".to_owned())),
    );
    let ratio = comparison.map(|c| format::ratio_parts(&c.ratio));
    let (against, against_interval) =
        ratio.map_or_else(Default::default, |parts| (parts.value, parts.interval.unwrap_or_default()));
    let verdict = comparison.map(|c| c.verdict);
    Line { arm: plain(&arm.label), value, interval, against, against_interval, verdict, word }
}

/// Colours, or none.
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    pub(crate) const fn new(colour: bool) -> Self {
        Self { colour }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        // The line's end stays outside, so that a pager does not carry the colour on.
        let (text, end) = text.strip_suffix('\n').map_or((text, ""), |text| (text, "\n"));
        format!("\u{1b}[{code}m{text}\u{1b}[0m{end}")
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Red and bold, each line by itself.
    fn alarm(&self, text: &str) -> String {
        text.lines().map(|line| format!("{}\n", self.paint("1;31", line))).collect()
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn verdict(&self, verdict: Verdict, text: &str) -> String {
        match verdict {
            Verdict::Worse => self.paint("31", text),
            Verdict::Better => self.paint("32", text),
            Verdict::Lead | Verdict::CannotSay | Verdict::TooNoisy | Verdict::NotComparable => self.paint("33", text),
            Verdict::Equivalent | Verdict::NoDifferenceSeen | Verdict::WithinFloor => self.paint("36", text),
            Verdict::NoiseFloor => self.paint("2", text),
        }
    }
}

/// Text without control characters: a label must not move a terminal's cursor.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_unfit(c) || c == '\n' || c == '\t' { ' ' } else { c }).collect()
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

fn padded_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Exactly `width` columns of text, with an ellipsis where it was cut.
fn fitted(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return padded(text, width);
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}\u{2026}")
}

/// Text broken into lines of at most `width` columns, ending in a line break.
pub(crate) fn paragraph(text: &str, width: usize, first: &str, rest: &str) -> String {
    let mut out = String::from(first);
    let mut used = columns(first);
    let mut fresh = true;
    for word in plain(text).split_whitespace() {
        if !fresh && used + 1 + columns(word) > width {
            out.push('\n');
            out.push_str(rest);
            (used, fresh) = (columns(rest), true);
        }
        if !fresh {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += columns(word);
        fresh = false;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_keep_to_the_width() {
        let text = paragraph("one two three four five six seven", 12, "- ", "  ");
        assert_eq!(text, "- one two\n  three four\n  five six\n  seven\n");
    }

    #[test]
    fn a_label_cannot_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb"), "a [2Jb");
    }
}
