//! The whole way: text to study to plan, and every way in which a text can be wrong.
mod capacity;
mod conditions;
mod cpu_target;
mod density;
mod parsing;
mod planning;
mod refusing;
mod schedule;
mod shipping;
mod start;
mod sweep;
mod tiles;

use tare_model::study::Study;
use tare_model::units::ByteSize;

use crate::host::HostFacts;
use crate::testing::Fake;
use crate::{Problem, parse};

/// What is replaced, by what, the field that the error names, and a part of its message or help.
type Wrong = (&'static str, &'static str, &'static str, &'static str);

/// What is wrong with the errors about one wrong field of a good study, if anything. Of what is missing, and of the fields `elsewhere`,
/// the line is not that of the change.
fn fault(study: &str, &(good, bad, field, tells): &Wrong, elsewhere: &[&str]) -> Option<String> {
    let text = study.replacen(good, bad, 1);
    assert_ne!(text, study, "{good:?} is not in the study");
    let Err(error) = parse("bad.toml", &text, &Fake) else { return Some(format!("{bad:?} was taken")) };
    let problems = error.problems();
    let fault = |what: &str| Some(format!("{bad:?}: {what}: {problems:#?}"));
    let words = |problem: &Problem| format!("{} {}", problem.message, problem.help.as_deref().unwrap_or_default());
    let is_it = |problem: &&Problem| problem.path.join(".") == field && words(problem).contains(tells);
    let Some(problem) = problems.iter().find(is_it) else {
        return fault(&format!("no error of `{field}` says {tells:?}"));
    };
    // A field that stands where another one must be is one error, and the lost one another.
    if problems.len() > 2 {
        return fault("there are echoes");
    }
    let at = study.find(good)?;
    let lines = text[..at].matches('\n').count() + 1..=text[..at + bad.len()].matches('\n').count() + 1;
    let is_here = bad.is_empty() || elsewhere.contains(&field) || lines.contains(&problem.line);
    (!is_here).then(|| fault(&format!("it is in line {lines:?}"))).flatten()
}

fn assert_each_is_refused(study: &str, wrong: &[Wrong], elsewhere: &[&str]) {
    let faults: Vec<String> = wrong.iter().filter_map(|wrong| fault(study, wrong, elsewhere)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A study that uses every field of the format.
const GOOD: &str = include_str!("tests/good.toml");

/// Studies that use every field together.
const ALL_GOOD: [&str; 6] = [GOOD, capacity::GOOD, cpu_target::GOOD, density::GOOD, start::GOOD, sweep::GOOD];

fn study_of(text: &str) -> Study {
    parse("good.toml", text, &Fake).unwrap_or_else(|error| panic!("{}", error.render(false))).study
}

fn good() -> Study {
    study_of(GOOD)
}

/// A host on which all studies fit.
fn roomy() -> HostFacts {
    HostFacts {
        cpus: (0..8).collect(),
        shared_cores: Vec::new(),
        memory_available: ByteSize(64 << 30),
        memory_total: ByteSize(72 << 30),
        disk_free: ByteSize(1 << 40),
        ..HostFacts::default()
    }
}
