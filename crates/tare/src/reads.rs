//! Which paths a command that reads run folders needs: the rest of the host is kept from it.

use std::path::{Path, PathBuf};

use tare_lab::NamedPath;

use crate::args::{Command, GateArguments, HistoryCommand, ImportArguments};
use crate::commands::gate::step_summary;
use crate::commands::verify;
use crate::place;

/// The paths that a command names which reads what strangers may have made; `None` for every other command.
pub fn named(command: &Command) -> Option<Vec<NamedPath>> {
    let read = |path: &PathBuf| NamedPath::read(path);
    Some(match command {
        Command::Report(arguments) if arguments.format.is_none() => vec![NamedPath::written(&arguments.run)],
        Command::Report(arguments) => vec![read(&arguments.run)],
        Command::Compare(arguments) => arguments.before.iter().chain(&arguments.after).map(read).collect(),
        Command::Audit(arguments) => arguments.runs.iter().map(read).collect(),
        Command::Size(arguments) => vec![read(&arguments.run)],
        Command::Gate(arguments) => gate(arguments),
        Command::Export(arguments) => {
            let out = arguments.out.iter().map(|file| NamedPath::made(file));
            std::iter::once(read(&arguments.run)).chain(out).collect()
        }
        Command::Verify(arguments) => {
            let system =
                verify::SYSTEM.iter().filter(|_| arguments.recompute).map(|path| NamedPath::run(Path::new(path)));
            system.chain([read(&arguments.run)]).collect()
        }
        Command::History(arguments) => history(&arguments.command),
        Command::Import(arguments) => import(arguments),
        _ => return None,
    })
}

/// Run folders, and the files that are written.
fn gate(arguments: &GateArguments) -> Vec<NamedPath> {
    let summary = step_summary().filter(|_| arguments.github);
    let made = arguments.junit.iter().chain(&summary).map(|file| NamedPath::made(file));
    arguments.runs.iter().map(|run| NamedPath::read(run)).chain(made).collect()
}

/// A history with its folder, for SQLite keeps what it needs to take an addition back beside the file.
fn history(command: &HistoryCommand) -> Vec<NamedPath> {
    let folder = |file: &Path| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    match command {
        HistoryCommand::Add { runs, into, .. } => {
            let runs = runs.iter().map(|run| NamedPath::read(run));
            runs.chain([NamedPath::written(&folder(into))]).collect()
        }
        HistoryCommand::Show { chosen, .. } => vec![NamedPath::read(&folder(&chosen.from))],
        HistoryCommand::Export { chosen, out } => {
            vec![NamedPath::read(&folder(&chosen.from)), NamedPath::made(out)]
        }
    }
}

/// Files, what is claimed beside them, and the folder that is made.
fn import(arguments: &ImportArguments) -> Vec<NamedPath> {
    let mut paths: Vec<NamedPath> = arguments.from.iter().map(|path| NamedPath::read(path)).collect();
    let files = arguments.from.iter().filter(|path| !path.is_dir());
    let claims = files.map(|path| path.with_file_name(tare_import::CLAIMS_FILE));
    // A link there was made by whoever made the table: what it leads to is nothing that the user named.
    let plain = claims.filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_file()));
    paths.extend(plain.map(|path| NamedPath::read(&path)));
    paths.push(NamedPath::made(arguments.out.as_deref().unwrap_or(Path::new(place::RUNS))));
    paths
}
