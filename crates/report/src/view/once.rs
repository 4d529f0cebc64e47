//! Says on a page what several of its parts have in common at the first of them.

use std::collections::BTreeSet;

use super::Report;
use super::case::FigureView;

/// The sentences that stand on the page already.
struct Said(BTreeSet<String>);

impl Said {
    /// Whether a sentence is new; it is not from then on.
    fn is_new(&mut self, sentence: &str) -> bool {
        self.0.insert(sentence.trim_end_matches('.').to_owned())
    }

    /// Leaves a text the sentences that are new.
    fn cut(&mut self, text: &mut String) {
        let kept: Vec<&str> = text.split(". ").filter(|sentence| self.is_new(sentence)).collect();
        let mut out = kept.join(". ");
        // The last sentence has its full stop; another that became the last has lost it.
        if !out.is_empty() && text.ends_with('.') && !out.ends_with('.') {
            out.push('.');
        }
        *text = out;
    }

    fn cut_captions<'a>(&mut self, figures: impl Iterator<Item = &'a mut FigureView>) {
        figures.filter(|figure| !figure.folded).for_each(|figure| self.cut(&mut figure.caption));
    }
}

impl Report {
    /// Leaves out of what is shown without opening a fold each sentence that stood before.
    pub(crate) fn say_once(&mut self) {
        let mut said = Said(BTreeSet::new());
        self.headlines.iter().for_each(|line| said.cut(&mut line.clone()));
        for group in self.sizing.iter_mut().flat_map(|view| &mut view.groups) {
            group.advice.iter_mut().for_each(|own| own.notes.retain(|note| said.is_new(note)));
            said.cut(&mut group.checks_seen);
            said.cut_captions(group.figures.iter_mut());
        }
        for part in self.consolidation.iter_mut().flat_map(|view| &mut view.groups).flat_map(|group| &mut group.parts) {
            part.seen.retain(|sentence| said.is_new(sentence));
            said.cut_captions(part.figure.iter_mut());
        }
        said.cut_captions(self.serving.iter_mut());
        if let Some(audit) = &mut self.audit {
            let shown = audit.broken.iter_mut().chain(&mut audit.uncertain);
            shown.for_each(|entry| said.cut(&mut entry.consequence));
        }
        for case in self.cases.iter_mut().filter(|case| !case.folded) {
            case.missing.retain(|sentence| said.is_new(sentence));
            let label = &case.label;
            if let Some(lead) = case.lead.first_mut() {
                said.cut(&mut lead.table.caption);
                if lead.table.caption.is_empty() {
                    lead.table.caption = format!("{}: {label}.", lead.title);
                }
            }
            said.cut_captions(case.shown.iter_mut());
        }
    }
}
