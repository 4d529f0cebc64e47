//! Programs of the host's that a platform runs: found and run as those that make images are.

use std::io;
use std::process::Command;
use std::time::Duration;

pub(crate) use tare_image::{PATH, Ran, find_program as find};

/// Those of the programs that are named by a path, and not found by their name in the usual places.
pub(crate) fn named(programs: &[Option<&str>]) -> Vec<String> {
    programs.iter().flatten().filter(|program| program.contains('/')).map(|&program| program.to_owned()).collect()
}

/// Runs a command to its end, at most for `limit`; then it is killed with its children. What it said is fit for a
/// terminal.
///
/// # Errors
/// When it could not be started or took too long.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Ran> {
    let ran = tare_image::run_program(command, limit)?;
    Ok(Ran { output: tare_model::text::readable(&ran.output), ..ran })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_program_says_cannot_write_to_the_terminal() {
        let script = "printf 'a\\033[2Jb\\n'; echo err >&2; exit 1";
        let ran = run(Command::new(find("sh").unwrap()).args(["-c", script]), Duration::from_secs(20)).unwrap();
        assert!(!ran.success && !ran.output.contains('\u{1b}') && ran.output.ends_with("err\n"), "{ran:?}");
    }
}
