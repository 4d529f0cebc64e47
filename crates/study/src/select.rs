//! Which arms and cases of a study are run, where the command line asks for fewer than all.

use tare_model::capacity::LoadShare;
use tare_model::study::{Case, CaseLoad, Study};

use crate::suggest;

/// Patterns of ids, in which `*` stands for any characters. An empty list of "only" chooses all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// Arms that are run beside the baseline (`--only-arm`).
    pub only_arms: &'a [String],
    /// Arms that are left out (`--without`).
    pub without_arms: &'a [String],
    /// Cases that are run, with those that they take their load from (`--only-case`).
    pub only_cases: &'a [String],
    /// Cases that are left out (`--without-case`).
    pub without_cases: &'a [String],
}

/// Why a selection means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// A pattern matches no id.
    #[error("{option} {pattern}: the study has no such {what}; {help}")]
    Unknown {
        /// The option.
        option: &'static str,
        /// What was written.
        pattern: String,
        /// `arm` or `case`.
        what: &'static str,
        /// What was probably meant, or all that there are.
        help: String,
    },
    /// The baseline was to be left out.
    #[error("--without {pattern}: `{baseline}` is the baseline, which all others are compared with; {help}")]
    Baseline {
        /// What was written.
        pattern: String,
        /// The baseline's id.
        baseline: String,
        /// The arms that can be left out.
        help: String,
    },
    /// A case that is run takes its load from one that is left out.
    #[error("--without-case: `{case}` takes its load from the capacity that `{from}` finds; leave out both, or none")]
    LoadFrom {
        /// The case that is run.
        case: String,
        /// The case that is left out.
        from: String,
    },
    /// No case remains.
    #[error("the command line leaves out every case; keep at least one")]
    NoCase,
}

/// The study with the chosen arms and cases, and a sentence for each way in which it is not whole.
///
/// The baseline and its replica remain whatever is chosen. A score remains where all of its cases do.
///
/// # Errors
/// When a pattern matches nothing, and when what remains cannot be run.
pub fn select(mut study: Study, selection: &Selection<'_>) -> Result<(Study, Vec<String>), SelectError> {
    let arms = arms(&study, selection)?;
    let cases = cases(&study, selection)?;
    let mut notes = Vec::new();
    notes.extend(note("arms", study.arms.iter().map(|arm| arm.id.as_str()), &arms));
    notes.extend(note("cases", study.cases.iter().map(|case| case.id.as_str()), &cases));
    study.arms.retain(|arm| arms.contains(&arm.id));
    study.cases.retain(|case| cases.contains(&case.id));
    let is_whole = |(case, _): &(String, f64)| cases.contains(case);
    if study.score.take_if(|score| !score.references.iter().all(is_whole)).is_some() {
        notes.push("the study's score has no figure: not all of its cases are run".into());
    }
    Ok((study, notes))
}

/// The ids of the arms that remain.
fn arms(study: &Study, selection: &Selection<'_>) -> Result<Vec<String>, SelectError> {
    let ids: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
    known("--only-arm", "arm", selection.only_arms, &ids)?;
    known("--without", "arm", selection.without_arms, &ids)?;
    if let Some(pattern) = selection.without_arms.iter().find(|pattern| matches(pattern, &study.baseline)) {
        let others = study.arms.iter().filter(|arm| arm.id != study.baseline && arm.replica_of.is_none());
        let others: Vec<String> = others.map(|arm| format!("`{}`", arm.id)).collect();
        let help = format!("arms that can be left out: {}", others.join(", "));
        return Err(SelectError::Baseline { pattern: pattern.clone(), baseline: study.baseline.clone(), help });
    }
    let stays = |id: &str, is_baseline: bool| {
        (is_baseline || chosen(selection.only_arms, id)) && !any(selection.without_arms, id)
    };
    let kept = study
        .arms
        .iter()
        .filter(|arm| stays(&arm.id, arm.id == study.baseline || arm.replica_of.as_ref() == Some(&study.baseline)));
    Ok(kept.map(|arm| arm.id.clone()).collect())
}

/// The ids of the cases that remain.
fn cases(study: &Study, selection: &Selection<'_>) -> Result<Vec<String>, SelectError> {
    let ids: Vec<&str> = study.cases.iter().map(|case| case.id.as_str()).collect();
    known("--only-case", "case", selection.only_cases, &ids)?;
    known("--without-case", "case", selection.without_cases, &ids)?;
    let is_left_out = |id: &str| any(selection.without_cases, id);
    let wanted = |case: &&Case| chosen(selection.only_cases, &case.id) && !is_left_out(&case.id);
    let mut kept: Vec<String> = study.cases.iter().filter(wanted).map(|case| case.id.clone()).collect();
    for case in study.cases.iter().filter(wanted) {
        let CaseLoad::ShareOf { share: LoadShare { case: from, .. }, .. } = &case.load else { continue };
        if is_left_out(from) {
            return Err(SelectError::LoadFrom { case: case.id.clone(), from: from.clone() });
        }
        if !kept.contains(from) {
            kept.push(from.clone());
        }
    }
    if kept.is_empty() { Err(SelectError::NoCase) } else { Ok(kept) }
}

fn known(option: &'static str, what: &'static str, patterns: &[String], ids: &[&str]) -> Result<(), SelectError> {
    let Some(pattern) = patterns.iter().find(|pattern| !ids.iter().any(|id| matches(pattern, id))) else {
        return Ok(());
    };
    let help = suggest::help(pattern, if what == "arm" { "arms" } else { "cases" }, ids.iter().copied());
    Err(SelectError::Unknown { option, pattern: pattern.clone(), what, help })
}

fn chosen(only: &[String], id: &str) -> bool {
    only.is_empty() || any(only, id)
}

fn any(patterns: &[String], id: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, id))
}

/// Whether an id is what the pattern says: `*` stands for any characters, also for none.
pub fn matches(pattern: &str, id: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == id };
    let Some(tail) = id.strip_prefix(start) else { return false };
    tail.char_indices().map(|(at, _)| at).chain([tail.len()]).any(|at| matches(rest, &tail[at..]))
}

/// How many of all are run, and the shorter of both lists; nothing where all are.
fn note<'s>(what: &str, all: impl Iterator<Item = &'s str>, kept: &[String]) -> Option<String> {
    let (run, left): (Vec<&str>, Vec<&str>) = all.partition(|id| kept.iter().any(|own| own == id));
    if left.is_empty() {
        return None;
    }
    let list = |ids: &[&str]| ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    let of = format!("{} of the study's {} {what} are run", run.len(), run.len() + left.len());
    Some(match run.len() < left.len() {
        true => format!("{of}, as the command line asks: {}", list(&run)),
        false => format!("{of}; left out by the command line: {}", list(&left)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::testing::Fake;

    /// What remains of a study of the arms native and vm and the cases banking-latency (its load is a share of banking's capacity),
    /// banking, rates, half (of rates) and plain, with a score of banking and rates.
    fn remains(selection: &Selection<'_>) -> Result<(String, Vec<String>), SelectError> {
        let text = include_str!("tests/capacity.toml");
        let whole = parse("study", text, &Fake).unwrap_or_else(|error| panic!("{}", error.render(false))).study;
        let (study, notes) = select(whole, selection)?;
        let arms = study.arms.iter().map(|arm| arm.id.as_str());
        let ids: Vec<&str> = arms.chain(study.cases.iter().map(|case| case.id.as_str())).collect();
        Ok((format!("{}{}", ids.join(" "), if study.score.is_some() { " score" } else { "" }), notes))
    }

    fn patterns(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, id) in [("users-*", "users-10"), ("*", "a"), ("a*c*", "abc"), ("*-10", "users-10"), ("a", "a")] {
            assert!(matches(pattern, id), "{pattern} {id}");
        }
        for (pattern, id) in [("users-*", "user-10"), ("a", "ab"), ("*b", "abc"), ("a*b*c", "acb")] {
            assert!(!matches(pattern, id), "{pattern} {id}");
        }
    }

    #[test]
    fn without_a_selection_nothing_changes() {
        let whole = "native vm banking-latency banking rates half plain score";
        assert_eq!(remains(&Selection::default()), Ok((whole.into(), Vec::new())));
    }

    #[test]
    fn the_baseline_remains_beside_chosen_arms() {
        let of = |only: &[&str]| {
            let only = patterns(only);
            remains(&Selection { only_arms: &only, ..Selection::default() }).unwrap()
        };
        assert_eq!(of(&["v*"]).1, [""; 0]);
        let (ids, notes) = of(&["native"]);
        assert!(ids.starts_with("native banking-latency"), "{ids}");
        assert_eq!(notes, ["1 of the study's 2 arms are run; left out by the command line: `vm`"]);
    }

    #[test]
    fn a_case_is_run_with_the_one_that_its_load_is_a_share_of() {
        let only = patterns(&["half"]);
        let (ids, notes) = remains(&Selection { only_cases: &only, ..Selection::default() }).unwrap();
        assert_eq!(ids, "native vm rates half");
        assert_eq!(notes[0], "2 of the study's 5 cases are run, as the command line asks: `rates`, `half`");
        assert!(notes[1].contains("score"), "{notes:?}");
        let without = patterns(&["half", "plain"]);
        let (ids, _) = remains(&Selection { without_cases: &without, ..Selection::default() }).unwrap();
        assert_eq!(ids, "native vm banking-latency banking rates score");
    }

    #[test]
    fn a_selection_that_means_nothing_is_refused_with_what_there_is() {
        let refused = |option: &str, pattern: &str| {
            let given = patterns(&[pattern]);
            let of = |own: &str| if own == option { &given[..] } else { &[] };
            let selection = Selection {
                only_arms: of("--only-arm"),
                without_arms: of("--without"),
                only_cases: of("--only-case"),
                without_cases: of("--without-case"),
            };
            remains(&selection).unwrap_err().to_string()
        };
        for (option, pattern, words) in [
            ("--only-case", "zzz-*", "--only-case zzz-*: the study has no such case; cases: `banking-latency`"),
            ("--without-case", "plai", "did you mean `plain`?"),
            ("--only-arm", "zzz", "--only-arm zzz: the study has no such arm; arms: `native`, `vm`"),
            ("--without", "nat*", "`native` is the baseline, which all others are compared with"),
            ("--without", "nat*", "arms that can be left out: `vm`"),
            ("--without-case", "rates", "`half` takes its load from the capacity that `rates` finds"),
            ("--without-case", "*", "keep at least one"),
        ] {
            let error = refused(option, pattern);
            assert!(error.contains(words), "{error}");
        }
    }
}
