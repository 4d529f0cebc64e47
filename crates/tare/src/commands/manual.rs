//! `tare completions` and `tare man`: generated from the one definition of the command line.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Arguments;
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints shell completions.
pub fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "tare", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}

/// Writes the manual pages.
pub fn pages(folder: &Path) -> Result<Exit, Failure> {
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    written.map_err(|error| Failure::new(format!("{} cannot be written: {error}", folder.display()), Exit::Failure))?;
    Ok(Exit::Success)
}
