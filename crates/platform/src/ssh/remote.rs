//! The agent on the other machine: copied there, run there, taken away from there.
//!
//! The scripts are for any POSIX shell, and pass through the user's login shell on their way. So they are one line each,
//! hold neither single quotes nor backslashes, and get everything that varies as arguments.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::destination::{Destination, Failed};
use super::machine;
use crate::program::PATH;

/// How long copying and taking away may take: a program of some MiB, over a slow line.
const COPY_LIMIT: Duration = Duration::from_secs(120);
const REMOVE_LIMIT: Duration = Duration::from_secs(60);

/// Exit codes of the scripts.
const OTHER_MACHINE: i32 = 71;
const NO_DIRECTORY: i32 = 72;
const DAMAGED: i32 = 73;
const NOT_RUNNABLE: i32 = 74;
const NOT_OURS: i32 = 75;
const STAYS: i32 = 76;

/// What the scripts say when they came to their end. A shell's start-up files may print things before it.
const DONE: &str = "tare-remote: done";

/// Copies the agent: directory, mark of the owner, SHA-256, machines that the agent runs on.
const COPY: &str = "umask 077; m=$(uname -m); \
    echo tare-remote: $(uname -s) $m; \
    case \" $(uname -s) \" in \" Linux \") ;; *) exit 71;; esac; \
    case \" $4 \" in *\" $m \"*) ;; *) exit 71;; esac; \
    mkdir -m 700 \"$1\" || exit 72; \
    echo \"$2\" > \"$1/owner\" && cat > \"$1/tare-agent\" || exit 72; \
    h=$(sha256sum < \"$1/tare-agent\"); \
    [ \"${h%% *}\" = \"$3\" ] || exit 73; \
    chmod 700 \"$1/tare-agent\" && \"$1/tare-agent\" --version || exit 74; \
    echo tare-remote: done";

/// Runs the agent and takes the copy away when it ended, however the connection ended: directory, run, PATH.
/// The agent itself ends with its standard input. The mark of the owner goes last, so that what is left is always known.
const RUN: &str = "cd /; env -i PATH=\"$3\" HOME=\"$HOME\" LANG=C.UTF-8 TARE_RUN=\"$2\" TARE_HOME=\"$1\" \"$1/tare-agent\"; \
    s=$?; rm -f \"$1/tare-agent\"; rm -rf \"$1\"; exit $s";

/// Kills what is left of the agent and takes the copy away: directory, mark of the owner. What is not marked as ours is
/// not touched. Everything that the agent started has its directory in its environment.
const REMOVE: &str = "d=$1; \
    if [ -e \"$d\" ] || [ -L \"$d\" ]; then \
      if [ ! -d \"$d\" ] || [ -L \"$d\" ] || [ ! -O \"$d\" ]; then exit 75; fi; \
      if [ -e \"$d/owner\" ]; then [ \"$(cat \"$d/owner\")\" = \"$2\" ] || [ ! -e \"$d/owner\" ] || exit 75; \
      else rmdir \"$d\" 2>/dev/null || [ ! -e \"$d\" ] || exit 75; fi; \
    fi; \
    i=0; while [ $i -lt 30 ]; do i=$((i+1)); \
      p=$(grep -lF -e \"TARE_HOME=$d\" /proc/[0-9]*/environ 2>/dev/null); \
      [ -z \"$p\" ] && break; \
      for f in $p; do f=${f#/proc/}; kill -9 ${f%/environ} 2>/dev/null; done; \
      sleep 0.1 2>/dev/null || sleep 1; \
    done; \
    [ -z \"$p\" ] || exit 76; \
    rm -rf \"$d\"; [ ! -e \"$d\" ] || exit 76; \
    echo tare-remote: done";

/// Says that a shell is there.
const GREET: &str = "echo tare-remote: done";

/// The place of the agent's copy.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Place {
    /// Its directory.
    pub directory: String,
    /// What is written in it, so that it is known again.
    pub mark: String,
}

impl Place {
    /// A place that nobody can know before it is made.
    pub(super) fn new(below: &Path, run_id: &str, guest: &str) -> Result<Self, String> {
        let mut random = [0; 16];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut random))
            .map_err(|error| format!("/dev/urandom cannot be read: {error}"))?;
        let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{}{}", prefix(run_id, guest), &hex[..16]);
        Ok(Self { directory: below.join(name).to_string_lossy().into_owned(), mark: format!("{run_id} {hex}") })
    }

    /// Whether it is one that a run of this id made.
    pub(super) fn is_of(&self, run_id: &str) -> bool {
        let path = Path::new(&self.directory);
        let plain = path.is_absolute() && path.components().all(|part| part.as_os_str() != "..");
        let named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix(run_id, "")));
        plain && named && self.mark.starts_with(&format!("{run_id} "))
    }
}

fn prefix(run_id: &str, guest: &str) -> String {
    format!("tare-{run_id}-{guest}{}", if guest.is_empty() { "" } else { "-" })
}

/// Whether a shell answers there.
pub(super) fn greet(to: &Destination, run_id: &str, limit: Duration) -> Result<(), Failed> {
    let ended = to.run(run_id, (GREET, &[]), Vec::new(), limit)?;
    if said_done(&ended.output) { Ok(()) } else { Err(no_shell(&ended.words())) }
}

/// Copies the agent, and sees that it runs there.
pub(super) fn copy(to: &Destination, run_id: &str, place: &Place, agent: &Path) -> Result<(), Failed> {
    let failed = |why: String, remedy: &str| Failed { why, remedy: remedy.to_owned(), unreached: false };
    let machines = machine::of_program(agent).map_err(|why| failed(why, "Name the agent's program as `agent`"))?;
    let bytes = std::fs::read(agent)
        .map_err(|error| failed(format!("{} cannot be read: {error}", agent.display()), "Is it readable?"))?;
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let arguments = [place.directory.as_str(), &place.mark, &hash, &machines.join(" ")];
    let ended = to.run(run_id, (COPY, &arguments), bytes, COPY_LIMIT)?;
    let words = ended.words();
    Err(match ended.code {
        Some(0) if said_done(&ended.output) => return Ok(()),
        Some(OTHER_MACHINE) => {
            let theirs = ended.output.lines().rev().find_map(|line| line.trim().strip_prefix("tare-remote: "));
            failed(
                format!(
                    "the machine is {}, and the agent {} is for Linux on {}",
                    super::program::shown(theirs.unwrap_or("of an unknown kind")),
                    agent.display(),
                    machines.join(" or ")
                ),
                "Name an agent for it as `agent`: `tare-agent-VERSION-linux-ARCH` of a release, which `make dist` makes",
            )
        }
        Some(NO_DIRECTORY) => failed(
            format!("{} could not be made or written there: {words}", place.directory),
            "Name a directory that the user may write to as `directory`",
        ),
        Some(DAMAGED) => failed(
            format!("what arrived there is not the agent that was sent: {words}"),
            "Is the disk full there, and is there a `sha256sum`?",
        ),
        Some(NOT_RUNNABLE) => failed(
            format!("the agent was copied and does not run there: {words}"),
            "Is the file system mounted noexec? Name another as `directory`; an agent with libraries takes the static build",
        ),
        _ => no_shell(&words),
    })
}

fn no_shell(words: &str) -> Failed {
    Failed {
        why: format!("what answers there is no POSIX shell that runs the commands it is given; it said: {words}"),
        remedy: "Let the user's login shell there run commands, without a forced command or menu".into(),
        unreached: false,
    }
}

/// Only the last line counts: what the shell's start-up files print comes before it.
fn said_done(output: &str) -> bool {
    output.lines().next_back().is_some_and(|line| line.trim_end() == DONE)
}

/// The command that runs the agent; its standard input and output are the channel.
pub(super) fn agent(to: &Destination, run_id: &str, place: &Place) -> Result<Command, Failed> {
    to.script(run_id, RUN, &[&place.directory, run_id, PATH])
}

/// Ends the agent and takes the copy away.
pub(super) fn remove(to: &Destination, run_id: &str, place: &Place) -> Result<(), Failed> {
    let arguments = [place.directory.as_str(), &place.mark];
    let ended = to.run(run_id, (REMOVE, &arguments), Vec::new(), REMOVE_LIMIT)?;
    let directory = &place.directory;
    let why = match ended.code {
        Some(0) if said_done(&ended.output) => return Ok(()),
        Some(NOT_OURS) => format!("{directory} there is not what this run made: it is left as it is"),
        Some(STAYS) => format!("the agent or its copy {directory} does not go: {}", ended.words()),
        _ => return Err(no_shell(&ended.words())),
    };
    Err(Failed { why, remedy: format!("Look at {directory} there, and remove it by hand"), unreached: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, arguments: &[&str], input: &[u8]) -> super::super::program::Ended {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "tare"]).args(arguments);
        super::super::program::run(&mut command, input.to_vec(), Duration::from_secs(20)).unwrap()
    }

    #[test]
    fn scripts_pass_through_any_login_shell() {
        for script in [COPY, RUN, REMOVE, GREET] {
            assert!(!script.contains(['\'', '\\', '\n']), "{script}");
        }
    }

    #[test]
    fn a_place_is_known_by_its_run_and_no_other() {
        let place = Place::new(Path::new("/tmp"), "run-1", "t0").unwrap();
        assert!(place.is_of("run-1") && !place.is_of("run") && !place.is_of("run-12"));
        assert_ne!(place, Place::new(Path::new("/tmp"), "run-1", "t0").unwrap());
        let elsewhere = |directory: &str| Place { directory: directory.into(), ..place.clone() };
        assert!(!elsewhere("/").is_of("run-1") && !elsewhere("/tmp/x/../tare-run-1-t0/..").is_of("run-1"));
        assert!(!Place { mark: "other".into(), ..place.clone() }.is_of("run-1"));
    }

    #[test]
    fn what_arrived_damaged_or_is_for_another_machine_is_refused() {
        let below = tempfile::tempdir().unwrap();
        let at = |name: &str| below.path().join(name).to_string_lossy().into_owned();
        let here = rustix::system::uname().machine().to_string_lossy().into_owned();
        let other = sh(COPY, &[&at("a"), "mark", "hash", "vax"], b"bytes");
        assert_eq!(other.code, Some(OTHER_MACHINE));
        assert!(!below.path().join("a").exists() && other.output.contains(&here));
        assert_eq!(sh(COPY, &[&at("b"), "mark", "hash", &here], b"bytes").code, Some(DAMAGED));
        assert_eq!(sh(COPY, &[&at("b"), "mark", "hash", &here], b"bytes").code, Some(NO_DIRECTORY), "there already");
        let program = b"#!/bin/sh\nexit 1\n";
        let hash: String = Sha256::digest(program).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sh(COPY, &[&at("c"), "mark", &hash, &here], program).code, Some(NOT_RUNNABLE));
        assert_eq!(sh(REMOVE, &[&at("c"), "another mark"], b"").code, Some(NOT_OURS));
        assert!(said_done(&sh(REMOVE, &[&at("c"), "mark"], b"").output));
        assert!(said_done(&sh(REMOVE, &[&at("c"), "mark"], b"").output), "twice");
        assert!(!below.path().join("c").exists());
    }

    #[test]
    fn what_is_not_ours_is_left_as_it_is() {
        let below = tempfile::tempdir().unwrap();
        let (full, link) = (below.path().join("full"), below.path().join("link"));
        std::fs::create_dir(&full).unwrap();
        std::fs::write(full.join("file"), "precious").unwrap();
        std::os::unix::fs::symlink(&full, &link).unwrap();
        for path in [&full, &link, &full.join("file")] {
            assert_eq!(sh(REMOVE, &[&path.to_string_lossy(), "mark"], b"").code, Some(NOT_OURS), "{}", path.display());
        }
        assert_eq!(std::fs::read_to_string(full.join("file")).unwrap(), "precious");
    }
}
