//! Workflow commands of GitHub Actions: lines that its runner shows as annotations.

use tare_model::findings::{Gate, GateOutcome, GatedComparison, GatedRun};
use tare_model::text::readable;

use super::{in_order, said, word};

/// Annotations of one kind that GitHub shows of a step.
const SHOWN: usize = 10;

/// The lines: an error for each comparison on which the gate fails, a warning for each other one without a clear answer. Of more than ten
/// of a kind the last says how many more there are.
pub fn annotations(gate: &Gate) -> Vec<String> {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for run in &gate.runs {
        for own in in_order(run) {
            match own.outcome {
                outcome if gate.fails_on.contains(&outcome) => errors.push(annotated(run, own)),
                GateOutcome::Within => {}
                _ => warnings.push(annotated(run, own)),
            }
        }
    }
    let errors = lines("error", &errors);
    errors.into_iter().chain(lines("warning", &warnings)).collect()
}

/// Title and message.
fn annotated(run: &GatedRun, own: &GatedComparison) -> (String, String) {
    (format!("tare gate: {}: {}", word(own.outcome), own.id), format!("{}: {}", own.label, said(run, own)))
}

fn lines(kind: &str, all: &[(String, String)]) -> Vec<String> {
    let shown = if all.len() > SHOWN { SHOWN - 1 } else { all.len() };
    let line = |title: &str, message: &str| format!("::{kind} title={}::{}", property(title), data(message));
    let mut lines: Vec<String> = all.iter().take(shown).map(|(title, message)| line(title, message)).collect();
    if shown < all.len() {
        lines.push(line("tare gate", &format!("and {} more; the summary has all", all.len() - shown)));
    }
    lines
}

/// A message, escaped as the runner reads it back: one line of it is one command.
fn data(text: &str) -> String {
    readable(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which a colon or a comma would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_a_command_or_begins_another() {
        assert_eq!(data("100 % sure\n::error::x\r\n"), "100 %25 sure%0A::error::x%0A");
        assert_eq!(property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
        assert_eq!(data("%0A"), "%250A", "what looks escaped is text");
    }

    #[test]
    fn of_many_the_last_line_counts_the_rest() {
        let many: Vec<(String, String)> = (0..23).map(|n| (format!("t{n}"), format!("m{n}"))).collect();
        assert_eq!(lines("error", &many[..10]).len(), 10);
        let lines = lines("error", &many);
        assert_eq!((lines.len(), lines[0].as_str()), (10, "::error title=t0::m0"));
        assert_eq!(lines[9], "::error title=tare gate::and 14 more; the summary has all");
    }
}
