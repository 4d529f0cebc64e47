//! `tare init`.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::args::InitArguments;
use crate::exit::{Exit, Failure};
use crate::{output, studies};

/// Writes a study file, and never over one that is there.
pub fn command(arguments: &InitArguments) -> Result<Exit, Failure> {
    let text = match &arguments.from {
        None => tare_study::template().to_owned(),
        Some(name) => copied(studies::shipped(name)?.text),
    };
    if arguments.file == Path::new("-") {
        output::print(&text)?;
        return Ok(Exit::Success);
    }
    let file = arguments.file.display();
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&arguments.file)
        .and_then(|mut open| open.write_all(text.as_bytes()));
    match written {
        Ok(()) => {
            output::print(&format!("wrote {file}; look at what it would do with `tare plan {file}`"))?;
            Ok(Exit::Success)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Failure::new(format!("{file} is there already and was left as it is; name another file"), Exit::Usage))
        }
        Err(error) => {
            let message =
                format!("{file} cannot be written: {error}; name a file in a folder that is there and is yours");
            Err(Failure::new(message, Exit::Failure))
        }
    }
}

/// A study that ships, without the line by which editors find its schema beside it: the copy lies elsewhere.
fn copied(text: &str) -> String {
    let rest = text.strip_prefix("#:schema").and_then(|rest| rest.split_once('\n'));
    rest.map_or(text, |(_, rest)| rest.trim_start_matches('\n')).to_owned()
}
