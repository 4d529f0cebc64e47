//! Programs of the host's that a platform runs: found and run as those that make images are.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tare_model::Refusal;

pub(crate) use tare_image::{PATH, Ran, find_program as find};

/// The agent's program: TARE_AGENT, else `tare-agent` beside this program, else where packages put it: `../lib/tare` from there.
pub fn agent() -> PathBuf {
    std::env::var_os("TARE_AGENT").map_or_else(|| agent_of(&std::env::current_exe().unwrap_or_default()), Into::into)
}

fn agent_of(program: &Path) -> PathBuf {
    let beside = program.with_file_name("tare-agent");
    let packaged = program.ancestors().nth(2).map(|prefix| prefix.join("lib/tare/tare-agent"));
    match packaged {
        Some(packaged) if !beside.exists() && packaged.exists() => packaged,
        _ => beside,
    }
}

/// How long a program may take to print its version.
const VERSION_WITHIN: Duration = Duration::from_secs(10);

/// The absolute path of a program that a package of Debian's has.
///
/// # Errors
/// That it is not here, and the remedy.
pub(crate) fn installed(name: &str, package: &str) -> Result<PathBuf, Refusal> {
    let found = find(name).ok_or_else(|| {
        let remedy = format!("Install it: on Debian and Ubuntu, `apt-get install {package}`");
        Refusal::new(format!("there is no `{name}` here"), remedy)
    })?;
    Ok(std::path::absolute(&found).unwrap_or(found))
}

/// The first line of what a program prints for `--version`.
///
/// # Errors
/// When it does not run, and how to see why.
pub(crate) fn version(program: &Path) -> Result<String, Refusal> {
    let command = format!("`{} --version`", program.display());
    let failed = |why: &str| Refusal::new(format!("{command} failed: {why}"), format!("Try {command} by hand"));
    let ran =
        run(Command::new(program).arg("--version"), VERSION_WITHIN).map_err(|error| failed(&error.to_string()))?;
    let mut lines = ran.output.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty()).unwrap_or("it printed nothing");
    if ran.success { Ok(first.to_owned()) } else { Err(failed(first)) }
}

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
    use super::*;

    #[test]
    fn the_agent_is_found_wherever_the_programs_were_unpacked() {
        let place = tempfile::tempdir().unwrap();
        let (program, beside) = (place.path().join("bin/tare"), place.path().join("bin/tare-agent"));
        let packaged = place.path().join("lib/tare/tare-agent");
        for agent in [&packaged, &beside] {
            std::fs::create_dir_all(agent.parent().unwrap()).unwrap();
        }
        assert_eq!(agent_of(&program), beside);
        std::fs::write(&packaged, "").unwrap();
        assert_eq!(agent_of(&program), packaged);
        std::fs::write(&beside, "").unwrap();
        assert_eq!(agent_of(&program), beside);
    }

    #[test]
    fn what_a_program_says_cannot_write_to_the_terminal() {
        let script = "printf 'a\\033[2Jb\\n'; echo err >&2; exit 1";
        let ran = run(Command::new(find("sh").unwrap()).args(["-c", script]), Duration::from_secs(20)).unwrap();
        assert!(!ran.success && !ran.output.contains('\u{1b}') && ran.output.ends_with("err\n"), "{ran:?}");
    }
}
