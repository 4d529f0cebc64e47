//! One file a command.

mod audit;
mod calibrate;
mod compare;
mod doctor;
mod exec;
mod export;
mod fields;
pub mod gate;
mod history;
mod image;
mod import;
mod init;
mod ksm;
mod list;
mod manual;
mod plan;
mod prove;
mod reap;
mod report;
mod run;
mod schema;
mod size;
pub mod verify;

use crate::args::Command;
use crate::exit::{Exit, Failure};

/// Does what was asked. `confined` is why no lab can be made here, if that is known already.
pub fn run(command: Command, confined: Option<String>) -> Result<Exit, Failure> {
    match command {
        Command::Run(_) | Command::Exec(_) | Command::Calibrate(_) if confined.is_some() => {
            Err(Failure::new(confined.unwrap_or_default(), Exit::HostUnfit))
        }
        Command::Run(arguments) => run::command(&arguments),
        Command::Exec(arguments) => exec::command(&arguments),
        Command::Plan(arguments) => plan::command(&arguments),
        Command::Doctor(arguments) => doctor::command(&arguments, confined),
        Command::Report(arguments) => report::command(&arguments),
        Command::Verify(arguments) => verify::command(&arguments),
        Command::Compare(arguments) => compare::command(&arguments),
        Command::Gate(arguments) => gate::command(&arguments),
        Command::Export(arguments) => export::command(&arguments),
        Command::History(arguments) => history::command(&arguments),
        Command::Import(arguments) => import::command(&arguments),
        Command::Audit(arguments) => audit::command(&arguments),
        Command::Size(arguments) => size::command(&arguments),
        Command::Calibrate(arguments) => calibrate::command(&arguments),
        Command::Prove(arguments) => prove::command(&arguments),
        Command::Reap { forget } => reap::command(forget.as_deref()),
        Command::Reaper { run } => reap::attend(&run),
        Command::Image(arguments) => image::command(&arguments),
        Command::Ksm(arguments) => ksm::command(&arguments),
        Command::List(arguments) => list::command(&arguments),
        Command::Init(arguments) => init::command(&arguments),
        Command::Schema(arguments) => schema::command(&arguments),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::pages(&folder),
    }
}

/// A paragraph of lines that fit, broken between words.
fn wrapped(text: &str, width: usize, first: &str, others: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(line.trim_end());
            lines.push('\n');
            others.clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_entries_are_broken_between_words_and_nothing_is_lost() {
        let text = "one two three four five six";
        assert_eq!(wrapped(text, 14, "  ", "    "), "  one two\n    three four\n    five six\n");
        assert_eq!(wrapped("longer-than-the-line", 5, "  ", "  "), "  longer-than-the-line\n");
    }
}
