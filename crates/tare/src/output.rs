//! Standard output.

use std::io::{ErrorKind, Write};

use crate::exit::{Exit, Failure};

/// Prints to standard output. A reader that has had enough (`| head`) is no error.
///
/// # Errors
/// When standard output cannot be written for any other reason.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(newline.as_bytes())) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output cannot be written: {error}"), Exit::Failure))
        }
        _ => Ok(()),
    }
}
