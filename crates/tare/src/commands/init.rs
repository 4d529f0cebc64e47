//! `tare init`.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::args::InitArguments;
use crate::exit::{Exit, Failure};
use crate::output;

/// Writes a commented study file, and never over one that is there.
pub fn command(arguments: &InitArguments) -> Result<Exit, Failure> {
    if arguments.file == Path::new("-") {
        output::print(tare_study::template())?;
        return Ok(Exit::Success);
    }
    let file = arguments.file.display();
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&arguments.file)
        .and_then(|mut open| open.write_all(tare_study::template().as_bytes()));
    match written {
        Ok(()) => {
            output::print(&format!("wrote {file}; look at what it would do with `tare plan {file}`"))?;
            Ok(Exit::Success)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Failure::new(format!("{file} is there already and was left as it is; name another file"), Exit::Usage))
        }
        Err(error) => Err(Failure::new(format!("{file} cannot be written: {error}"), Exit::Failure)),
    }
}
