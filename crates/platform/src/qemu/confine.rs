//! QEMU with as few rights as it can work with: it opens what it needs as root, then becomes a user of its own in an empty root
//! directory, behind a filter of system calls.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::command::escaped;
use super::disk_probe::TAKEN;
use crate::program::run;

/// What a reader of a report must know about it.
const DISCLOSURE: &str = "QEMU runs as a user of its own without capabilities, in an empty root directory and in mount, IPC and UTS namespaces of \
     its own, behind its filter of system calls; it stays in the host's process namespace.";
/// How long QEMU may take to tell what it has.
const ASKED: Duration = Duration::from_secs(10);
/// The filter. `elevateprivileges=deny` would forbid the change of users itself, which comes after it; with neither capabilities
/// nor the right to gain any (no_new_privs, which the filter sets) nothing is left that it would deny.
const FILTER: &str = "on,obsolete=deny,spawn=deny,resourcecontrol=deny";
/// The same where there are no users to change to.
const FILTER_ROOTLESS: &str = "on,obsolete=deny,spawn=deny,resourcecontrol=deny,elevateprivileges=deny";
/// What a reader of a report must know about it without root.
const DISCLOSURE_ROOTLESS: &str = "QEMU runs as the user who runs tare, without capabilities, in mount, IPC and UTS namespaces of its own, from which all files are \
     taken away before the guest runs, behind its filter of system calls; it stays in the host's process namespace.";

/// What a reader of a report must know about it here.
pub(super) fn disclosure() -> &'static str {
    if tare_lab::is_rootless() { DISCLOSURE_ROOTLESS } else { DISCLOSURE }
}

/// What a QEMU has to confine itself with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Means {
    /// Whether `-run-with` takes the user, from 9.1; else `-runas` does.
    run_with_user: bool,
    /// Whether `-run-with` takes the root directory, from 8.1; else `-chroot` does.
    run_with_root: bool,
    /// Whether it was built with its filter of system calls.
    filter: bool,
}

impl Means {
    /// Asks the program.
    pub(super) fn of(program: &Path) -> Self {
        let said = |arguments: &[&str]| {
            let ran = run(Command::new(program).args(arguments), ASKED);
            ran.map(|ran| ran.output).unwrap_or_default()
        };
        // Nothing else ends it: the second disk is refused for its name.
        let tried = ["-M", "none", "-display", "none", "-sandbox", "on", "-blockdev", TAKEN, "-blockdev", TAKEN];
        Self::from_output(&said(&["-help"]), &said(&tried))
    }

    fn from_output(help: &str, tried: &str) -> Self {
        let (_, run_with) = help.split_once("\n-run-with ").unwrap_or_default();
        let run_with = run_with.split("\n-").next().unwrap_or_default();
        let has = |word: &str| run_with.contains(word);
        Self { run_with_user: has("user="), run_with_root: has("chroot="), filter: !tried.contains("sandbox") }
    }

    /// QEMU's words without root: it starts as who it is to be, and its files are taken away by tare.
    pub(super) fn words_rootless(self) -> Vec<String> {
        if self.filter { vec!["-sandbox".to_owned(), FILTER_ROOTLESS.to_owned()] } else { Vec::new() }
    }

    /// QEMU's words. `root` is an empty directory.
    pub(super) fn words(self, user: u32, root: &Path) -> Vec<String> {
        let (mut words, mut run_with) = (Vec::new(), Vec::new());
        let mut pair = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if self.filter {
            pair("-sandbox", FILTER.to_owned());
        }
        match self.run_with_root {
            true => run_with.push(format!("chroot={}", escaped(root))),
            false => pair("-chroot", root.display().to_string()),
        }
        match self.run_with_user {
            true => run_with.push(format!("user={user}:{user}")),
            false => pair("-runas", format!("{user}:{user}")),
        }
        if !run_with.is_empty() {
            pair("-run-with", run_with.join(","));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &str = "qemu: Duplicate nodes with node-name='x'";

    fn words(help: &str, tried: &str) -> String {
        Means::from_output(help, tried).words(7, Path::new("/e,f")).join(" ")
    }

    #[test]
    fn every_version_is_asked_in_its_own_words() {
        let older = words("-runas user     change to user\n-sandbox on[,...]\n", REFUSED);
        assert_eq!(older, format!("-sandbox {FILTER} -chroot /e,f -runas 7:7"));
        let between = "-runas user\n-run-with [async-teardown=on|off][,chroot=dir]\n    Set misc\n-x user=y\n";
        assert_eq!(words(between, REFUSED), format!("-sandbox {FILTER} -runas 7:7 -run-with chroot=/e,,f"));
        let newer = "x\n-run-with [async-teardown=on|off][,chroot=dir][user=username|uid:gid]\n  Set\n";
        assert_eq!(words(newer, REFUSED), format!("-sandbox {FILTER} -run-with chroot=/e,,f,user=7:7"));
    }

    #[test]
    fn a_qemu_without_a_filter_is_not_asked_for_it() {
        let tried = "qemu: -sandbox on: sandbox option is not supported";
        assert_eq!(words("-runas user\n", tried), "-chroot /e,f -runas 7:7");
    }
}
