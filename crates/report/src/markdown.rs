//! The report as Markdown: the same words and tables, no figures.

use tare_model::findings::Findings;
use tare_model::text::is_unfit;

use crate::view::Report;
use crate::view::case::CaseView;
use crate::view::section::BlockView;
use crate::view::table::{Cell, Table};
use crate::view::test_bed::{Boxed, TestBed};

/// The report as Markdown (GitHub's tables). What users wrote is escaped, so it stays text.
pub fn markdown(findings: &Findings) -> String {
    let report = Report::new(findings);
    let mut out = format!("# {}\n\n", escaped(&report.question));
    if let Some(published) = &report.published {
        out.push_str(&format!("> **{}.** {}. {}\n\n", published.mark, escaped(&published.source), published.note));
    }
    for warning in &report.warnings {
        out.push_str(&format!("> **WARNING: {}**\n\n", escaped(warning)));
    }
    answer(&mut out, &report);
    for victim in report.isolation.iter().flat_map(|view| &view.victims) {
        out.push_str(&format!("## {}\n\n", escaped(&victim.title)));
        push_tables(&mut out, std::slice::from_ref(&victim.matrix));
        push_tables(&mut out, std::slice::from_ref(&victim.survival));
    }
    glance(&mut out, &report);
    sizing(&mut out, &report);
    instances(&mut out, &report);
    checked(&mut out, &report);
    for case in report.cases.iter().filter(|case| !case.folded) {
        out.push_str(&format!("## {}\n\n", escaped(&case.label)));
        case_body(&mut out, case);
    }
    if let Some(folded) = &report.folded {
        out.push_str(&format!("## Case by case\n\n{}\n\n", escaped(&folded.about)));
    }
    for case in report.cases.iter().filter(|case| case.folded) {
        // What GitHub folds; elsewhere the texts stand as they are.
        out.push_str(&format!("<details><summary>{}</summary>\n\n", escaped(&case.label)));
        case_body(&mut out, case);
        out.push_str("</details>\n\n");
    }
    if let Some(limits) = &report.limits {
        out.push_str("## What limits this study\n\n");
        limits.about.iter().for_each(|sentence| out.push_str(&format!("{}\n\n", escaped(sentence))));
        push_tables(&mut out, std::slice::from_ref(&limits.table));
    }
    if let Some(table) = &report.start_times {
        out.push_str("## Guest start time\n\n");
        push_tables(&mut out, std::slice::from_ref(table));
    }
    trust(&mut out, &report);
    disclosure(&mut out, &report);
    out
}

fn case_body(out: &mut String, case: &CaseView) {
    for verdict in &case.verdicts {
        out.push_str(&format!("- {}\n", escaped(&verdict.sentence)));
    }
    for objective in &case.objectives {
        out.push_str(&format!("- **{}**: {}", objective.verdict, escaped(&objective.sentence)));
        if !objective.blocks.is_empty() {
            out.push_str(&format!(". By block: {}", escaped(&objective.blocks)));
        }
        out.push('\n');
    }
    push_list(out, &case.missing);
    push_list(out, &case.left_out);
    out.push_str(&format!("\n{}\n\n", escaped(&case.setup)));
    for lead in &case.lead {
        push_tables(out, std::slice::from_ref(&lead.table));
    }
    sections(out, case, true);
    if let Some(requests) = &case.requests {
        push_tables(out, std::slice::from_ref(&requests.summary));
        for arm in &requests.arms {
            push_tables(out, std::slice::from_ref(&arm.quality));
        }
        out.push_str("The requests of each iteration by type are in `findings.json` and in the HTML report.\n\n");
    }
    if let Some(used) = &case.used {
        push_tables(out, std::slice::from_ref(&used.table));
    }
    sections(out, case, false);
    push_tables(out, &case.tables);
}

/// What the workload itself says of the case, with the answer or after it.
fn sections(out: &mut String, case: &CaseView, answers: bool) {
    for section in case.sections.iter().filter(|section| section.answers == answers) {
        out.push_str(&format!("### {}\n\n", escaped(&section.title)));
        for block in &section.blocks {
            match block {
                BlockView::Sentence(sentence) => out.push_str(&format!("{}\n\n", escaped(sentence))),
                BlockView::Table(table) => push_tables(out, std::slice::from_ref(table)),
                BlockView::Fold { tables, .. } => push_tables(out, tables),
                BlockView::Figure(_) => {}
            }
        }
    }
}

/// What to build, and the models behind it.
fn sizing(out: &mut String, report: &Report) {
    let Some(view) = &report.sizing else { return };
    out.push_str("## Sizing: what to build\n\n");
    for group in &view.groups {
        out.push_str(&format!("### {}\n\n{}\n\n", escaped(&group.title), escaped(&group.question)));
        for own in &group.advice {
            out.push_str(&format!("- **{}**: {}\n", escaped(&own.arm), escaped(&own.sentence)));
            own.notes.iter().for_each(|note| out.push_str(&format!("  - {}\n", escaped(note))));
        }
        out.push('\n');
        push_tables(out, group.table.as_slice());
        out.push_str(&format!("{}\n\n", escaped(view.rule)));
        if !group.checks_seen.is_empty() {
            out.push_str(&format!("{}\n\n", escaped(&group.checks_seen)));
        }
        for table in [&group.checks, &group.models, &group.parameters, &group.points].into_iter().flatten() {
            push_tables(out, std::slice::from_ref(table));
        }
    }
}

/// Several instances in one guest.
fn instances(out: &mut String, report: &Report) {
    let Some(view) = &report.consolidation else { return };
    out.push_str("## Several instances in one guest\n\n");
    for group in &view.groups {
        out.push_str(&format!("### {}\n\n{}\n\n", escaped(&group.title), escaped(&group.about)));
        for part in group.parts.iter().filter(|part| part.table.is_some() || !part.seen.is_empty()) {
            let title = if part.title.is_empty() { &part.table_title } else { &part.title };
            out.push_str(&format!("#### {}\n\n", escaped(title)));
            push_list(out, &part.seen);
            out.push('\n');
            push_tables(out, part.table.as_slice());
        }
    }
    if !view.published.is_empty() {
        out.push_str(&format!("{}\n\n", escaped(view.published)));
    }
}

fn answer(out: &mut String, report: &Report) {
    push_list(out, &report.headlines);
    if !report.headlines.is_empty() {
        out.push('\n');
    }
    for line in &report.summary {
        out.push_str(&format!("{}\n\n", escaped(line)));
    }
    for answer in report.answers.iter().take(report.shown) {
        out.push_str(&format!("- {}\n", escaped(&answer.line)));
    }
    if report.answers.len() > report.shown {
        out.push_str(&format!("- and {} more, case by case below\n", report.answers.len() - report.shown));
    }
    if let Some(score) = &report.score {
        out.push_str(&format!("\n{}:\n\n", escaped(&score.what)));
        score.arms.iter().for_each(|line| out.push_str(&format!("- {}\n", escaped(&line.line()))));
        score.notes.iter().for_each(|note| out.push_str(&format!("\n{}\n", escaped(note))));
    }
    out.push_str(&format!("\n{}.\n\n", escaped(&report.grounds.join("; "))));
}

/// What was published and checked.
fn checked(out: &mut String, report: &Report) {
    if let Some(published) = &report.published {
        out.push_str("## Published claims, recomputed\n\n");
        push_tables(out, published.claims.as_slice());
        push_tables(out, published.conditions.as_slice());
        push_tables(out, published.files.as_slice());
    }
    let Some(audit) = &report.audit else { return };
    out.push_str(&format!("## Audit\n\n{}.\n\n", escaped(&audit.summary)));
    for entry in audit.broken.iter().chain(&audit.uncertain) {
        out.push_str(&format!("- **{}**: {}\n", entry.outcome, escaped(&entry.paragraph())));
        entry.others.iter().for_each(|other| out.push_str(&format!("  - {}\n", escaped(other))));
    }
    out.push('\n');
    push_tables(out, audit.holds.as_slice());
}

fn glance(out: &mut String, report: &Report) {
    let Some(glance) = &report.glance else { return };
    out.push_str("## All arms at a glance\n\n");
    push_tables(out, std::slice::from_ref(&glance.compared));
    push_tables(out, glance.apart.as_slice());
    push_list(out, &glance.why_apart);
    for left in &glance.left_out {
        let (label, reason, remedy) = (escaped(&left.label), escaped(&left.reason), escaped(&left.remedy));
        out.push_str(&format!("- **not measured here**: {label}: {reason} Remedy: {remedy}\n"));
    }
    out.push('\n');
}

fn trust(out: &mut String, report: &Report) {
    if report.published.is_some() {
        deviations(out, report);
        out.push_str("\n## How it was computed\n\n");
        report.method.iter().for_each(|paragraph| out.push_str(&format!("{}\n\n", escaped(paragraph))));
        return;
    }
    test_beds(out, &report.test_beds);
    out.push_str(&format!("## Parity\n\n{}\n\n", escaped(&report.parity_summary)));
    push_tables(out, &report.parity);
    push_tables(out, &report.platforms);
    deviations(out, report);
    out.push_str(&format!("\n## Trials\n\n{}.\n\n", escaped(&report.trials_summary)));
    push_tables(out, report.not_completed.as_slice());
    push_tables(out, report.flagged.as_slice());
    push_list(out, &report.unchecked);
    if !report.unchecked.is_empty() {
        out.push('\n');
    }
    out.push_str("## How it was measured\n\n");
    for paragraph in &report.method {
        out.push_str(&format!("{}\n\n", escaped(paragraph)));
    }
}

fn test_beds(out: &mut String, beds: &[TestBed]) {
    for bed in beds {
        let of = if bed.of.is_empty() { String::new() } else { format!(": {}", bed.of) };
        out.push_str(&format!("## Test bed{}\n\n", escaped(&of)));
        let list = |out: &mut String, depth: usize, boxed: &Boxed| {
            let lines: Vec<String> = boxed.lines.iter().map(|line| escaped(line)).collect();
            let about = if lines.is_empty() { String::new() } else { format!(": {}", lines.join("; ")) };
            out.push_str(&format!("{}- **{}**{about}\n", "  ".repeat(depth), escaped(&boxed.title)));
        };
        for other in &bed.others {
            out.push_str(&format!("- {}\n", escaped(&other.title)));
            other.drivers.iter().for_each(|boxed| list(out, 1, boxed));
        }
        bed.between.iter().for_each(|between| list(out, 0, between));
        out.push_str(&format!("- {}: {}\n", escaped(&bed.host.title), bed.host.about));
        bed.host.drivers.iter().for_each(|driver| list(out, 1, driver));
        bed.link.iter().for_each(|link| list(out, 1, link));
        bed.host.lines.iter().for_each(|line| out.push_str(&format!("  - {}\n", escaped(line))));
        bed.host.guests.iter().for_each(|guest| list(out, 1, guest));
        out.push('\n');
    }
}

fn deviations(out: &mut String, report: &Report) {
    out.push_str("## Deviations\n\n");
    push_tables(out, report.deviations.as_slice());
    if report.differences.is_empty() {
        out.push_str("The run is the study as written.\n");
    } else {
        out.push_str("On this host the run differs from the study as written:\n\n");
    }
    push_list(out, &report.differences);
}

fn disclosure(out: &mut String, report: &Report) {
    let disclosure = &report.disclosure;
    out.push_str("## Disclosure\n\n");
    push_tables(out, &[disclosure.arms.clone(), disclosure.cases.clone()]);
    push_tables(out, &disclosure.run);
    push_tables(out, &disclosure.environment);
    push_tables(out, &disclosure.hardware);
    disclosure.machines.iter().for_each(|(_, tables)| push_tables(out, tables));
    push_tables(out, &disclosure.facts);
    push_tables(out, disclosure.order.as_slice());
    out.push_str(&format!("{}\n", escaped(&report.checking)));
}

fn push_list(out: &mut String, items: &[String]) {
    for item in items {
        out.push_str(&format!("- {}\n", escaped(item)));
    }
}

fn push_tables(out: &mut String, tables: &[Table]) {
    for table in tables {
        out.push_str(&table_markdown(table));
        out.push('\n');
    }
}

/// A table with its caption in bold above it.
pub(crate) fn table_markdown(table: &Table) -> String {
    let caption = escaped(&table.caption);
    let mut out = if caption.is_empty() { "|".to_owned() } else { format!("**{caption}**\n\n|") };
    for column in &table.columns {
        let note = if column.note.is_empty() { String::new() } else { format!(" ({})", escaped(&column.note)) };
        out.push_str(&format!(" {}{note} |", escaped(&column.title)));
    }
    out.push_str("\n|");
    for column in &table.columns {
        out.push_str(if column.numeric { "---:|" } else { "---|" });
    }
    out.push('\n');
    for row in &table.rows {
        out.push('|');
        for (cell, column) in row.iter().zip(&table.columns) {
            out.push_str(&format!(" {} |", cell_markdown(cell, column.numeric)));
        }
        out.push('\n');
    }
    out
}

fn cell_markdown(cell: &Cell, numeric: bool) -> String {
    let text = escaped(&cell.text);
    let text = if cell.chip.is_empty() && !cell.strong { text } else { format!("**{text}**") };
    let tag = [cell.tag.as_str(), cell.word].join(" ");
    let text = if tag.trim().is_empty() { text } else { format!("{text} **{}**", escaped(tag.trim())) };
    let note = escaped(&cell.note);
    match (note.is_empty(), numeric) {
        (true, _) => text,
        (false, true) => format!("{text} {note}"),
        (false, false) => format!("{text} ({note})"),
    }
}

/// Text that Markdown shows as it is: marks escaped, line breaks as spaces.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '`' | '\\' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // A lone bracket is text; only what could be or become a link or an image needs care.
            '[' | ']' if text.contains("](") || text.contains("][") || text.contains("]:") => {
                out.push('\\');
                out.push(c);
            }
            // A web address becomes a link by itself.
            ':' if text.contains("://") => out.push_str("&#58;"),
            '@' => out.push_str("&#64;"),
            '.' if text.contains("www.") => out.push_str("&#46;"),
            '_' if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => out.push_str("\\_"),
            c if is_unfit(c) || c == '\n' || c == '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_text_stay_text() {
        assert_eq!(escaped("a|b <script> *x*\n`y`"), "a\\|b &lt;script&gt; \\*x\\* \\`y\\`");
        assert_eq!(escaped("[15.1, 15.8]"), "[15.1, 15.8]");
        assert_eq!(escaped("[click](javascript:x)"), "\\[click\\](javascript:x)");
        assert_eq!(escaped("see https://x.y, www.x, a@b"), "see https&#58;//x&#46;y, www&#46;x, a&#64;b");
        assert_eq!(escaped("a\u{202e}b\u{1b}c"), "a b c");
    }
}
