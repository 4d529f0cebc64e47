//! `tare completions` and `tare man`: generated from the one definition of the command line.

use std::collections::BTreeSet;
use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};

use crate::args::Arguments;
use crate::exit::{Exit, Failure};
use crate::{output, studies};

/// Prints shell completions.
pub fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_names(), "tare", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}

/// The command line with the names that its arguments may be, which shells then propose. What is no such name, such as a file, is taken
/// all the same when a command is run.
fn with_names() -> Command {
    let studies = || PossibleValuesParser::new(studies::SHIPPED.iter().map(|study| study.name));
    let (platforms, workloads) = (tare_platform::registry::all().iter(), tare_workload::registry::ALL.iter());
    let kinds: BTreeSet<&str> = platforms.map(|own| own.name).chain(workloads.map(|own| own.name)).collect();
    let mut command = Arguments::command();
    for (of, argument) in [("run", "study"), ("plan", "study"), ("doctor", "study"), ("init", "from")] {
        command = command.mut_subcommand(of, |own| own.mut_arg(argument, |own| own.value_parser(studies())));
    }
    command.mut_subcommand("schema", |own| own.mut_arg("of", |own| own.value_parser(PossibleValuesParser::new(kinds))))
}

/// Writes the manual pages.
pub fn pages(folder: &Path) -> Result<Exit, Failure> {
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    written.map_err(|error| Failure::new(format!("{} cannot be written: {error}", folder.display()), Exit::Failure))?;
    Ok(Exit::Success)
}
