//! The counts as a page.

use tare_report::Page;

use super::bar::{Bar, Proof, Verdict};

/// Notes of a bar that are shown; `proof.json` has all.
const NOTES: usize = 12;

/// The page of a proof.
pub fn of(proof: &Proof) -> Page {
    let mut page = Page::new("How often tare is wrong on this host");
    page.paragraph(answer(proof));
    let form = if proof.full { "the long form" } else { "the short form" };
    page.paragraph(format!(
        "tare {}, Linux {}, {}; {form}, begun {}, {:.0} s.",
        proof.tare_version, proof.kernel, proof.processor, proof.started_at, proof.wall_s
    ));
    page.heading("Bars");
    let row = |bar: &Bar| vec![bar.verdict.words().to_owned(), bar.id.clone(), bar.statement.clone(), bar.figure()];
    page.rows(
        &["Verdict", "Bar", "What tare states", "Failures, and their rate at 95 %"],
        proof.bars.iter().map(row).collect(),
    );
    page.paragraph(
        "met: the failures are no more than the stated rate, and twice that rate (at least 5 of 100) is excluded. NOT MET: at the stated \
         rate, as many failures or more come up in less than 1 of 100 proofs. open: too few were counted to say. Rates are exact \
         intervals (Clopper and Pearson, 1934).",
    );
    for bar in proof.bars.iter().filter(|bar| !bar.notes.is_empty()) {
        page.heading(format!("{}: what failed, and what to know", bar.id));
        bar.notes.iter().take(NOTES).for_each(|note| {
            page.paragraph(note.clone());
        });
        if bar.notes.len() > NOTES {
            page.paragraph(format!("{} more are in proof.json", bar.notes.len() - NOTES));
        }
    }
    page
}

/// One sentence.
fn answer(proof: &Proof) -> String {
    let count = |verdict| proof.bars.iter().filter(|bar| bar.verdict == verdict).count();
    let parts = [Verdict::NotMet, Verdict::Met, Verdict::Open, Verdict::LeftOut];
    let parts = parts.map(|verdict| (count(verdict), verdict)).into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, verdict)| format!("{count} {}", verdict.words())).collect();
    format!("Each bar is a statement of tare's about itself. On this host: {}.", parts.join(", "))
}
