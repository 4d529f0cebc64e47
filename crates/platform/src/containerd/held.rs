//! A container as it is written down: enough to take it away from a fresh process.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::options::Options;
use crate::ReapSite;
use crate::groups::{Hierarchy, Strays};
use crate::held::{self, check_name};
use crate::program::{self, PATH};

/// How long the program may take for anything but running a guest.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long containerd may take to forget a container whose processes were killed.
const GONE: Duration = Duration::from_secs(20);

/// A container of containerd's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    program: PathBuf,
    address: PathBuf,
    namespace: String,
    run_id: String,
    /// The container's name.
    pub id: String,
    /// Control groups that the runtime makes for it.
    strays: Strays,
}

impl Held {
    /// The container of a guest.
    pub(super) fn new(program: PathBuf, options: &Options, run_id: &str, guest: &str) -> Self {
        let at = |hierarchy: &Hierarchy| hierarchy.at.join(group(run_id, guest).trim_start_matches('/'));
        Self {
            program,
            address: options.address.clone(),
            namespace: options.namespace.clone(),
            run_id: run_id.to_owned(),
            id: format!("tare-{run_id}-{guest}"),
            strays: Strays(Hierarchy::mounted().iter().map(at).collect()),
        }
    }

    /// The program with these arguments.
    pub(super) fn argv(&self, arguments: &[&str]) -> Vec<String> {
        let (program, address) = (self.program.to_string_lossy(), self.address.to_string_lossy());
        let fixed = [program.as_ref(), "--address", address.as_ref(), "--namespace", &self.namespace];
        fixed.iter().chain(arguments).map(|&argument| argument.to_owned()).collect()
    }

    /// Runs a command to its end; what it printed.
    ///
    /// # Errors
    /// What it said when it failed.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let argv = self.argv(arguments);
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env_clear().env("PATH", PATH);
        let tried = || format!("`{} {}`", self.program.display(), arguments.join(" "));
        let ran = program::run(&mut command, TIMEOUT).map_err(|error| format!("{} failed: {error}", tried()))?;
        if ran.success {
            return Ok(ran.output);
        }
        let last = ran.output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim();
        Err(format!("{} failed: {last}", tried()))
    }

    /// The socket of its shim, which every shim of version 2 names so.
    fn socket(&self) -> PathBuf {
        let whose = self.address.join(&self.namespace).join(&self.id);
        let digest = Sha256::digest(whose.as_os_str().as_encoded_bytes());
        let name = digest.iter().fold(String::new(), |name, byte| format!("{name}{byte:02x}"));
        Path::new("/run/containerd/s").join(name)
    }

    fn is_there(&self) -> Result<bool, String> {
        let listed =
            |list: &str| Ok::<_, String>(self.run(&[list, "ls", "-q"])?.lines().any(|line| line.trim() == self.id));
        Ok(listed("containers")? || listed("tasks")?)
    }
}

impl held::Held for Held {
    const WHAT: &'static str = "the container";
    const REMEDY: &'static str =
        "Start containerd, then remove the container with `ctr tasks rm --force` and `ctr containers rm`";

    fn check(&self, site: &ReapSite<'_>) -> Result<(), String> {
        check_name(site, &self.run_id, &self.id)?;
        self.strays.check(site.run_id)
    }

    fn take_away(&self, _: &Path) -> Result<(), String> {
        let deadline = Instant::now() + GONE;
        let mut pause = Duration::from_millis(5);
        // Whether it is there is for the lists to say: what is just going is refused in many words.
        while self.is_there()? {
            let deleted = self.run(&["tasks", "rm", "--force", &self.id]);
            let removed = self.run(&["containers", "rm", &self.id]);
            if Instant::now() > deadline {
                let why = removed.and(deleted).err().unwrap_or_else(|| "containerd does not say why".into());
                return Err(format!("the container {} is still there: {why}", self.id));
            }
            // A shim that was killed is noticed a moment later.
            if removed.is_err() {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(500));
            }
        }
        // A shim that was killed leaves its socket behind.
        match std::fs::remove_file(self.socket()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(format!("the socket {} could not be removed: {error}", self.socket().display()));
            }
            _ => {}
        }
        self.strays.remove()
    }
}

/// The group that the runtime is given, from the root of each hierarchy: beside the guest's own, with a name that no guest has.
pub(super) fn group(run_id: &str, guest: &str) -> String {
    format!("/tare-{run_id}/{guest}.runtime")
}

/// The number that a program has written to that file.
pub(super) fn number_in(file: &Path) -> Option<u32> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok().filter(|&number| number > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::Held as _;
    use std::os::unix::fs::PermissionsExt;

    fn held(program: &str) -> Held {
        Held {
            program: program.into(),
            address: "/run/x.sock".into(),
            namespace: "tare".into(),
            run_id: "r".into(),
            id: "tare-r-g".into(),
            strays: Strays::default(),
        }
    }

    #[test]
    fn a_note_that_is_not_of_the_run_is_refused() {
        let site = ReapSite { run_id: "r", state: Path::new("/run/tare/r"), agent: Path::new("/agent") };
        let ours = Held::new("/bin/false".into(), &Options::default(), "r", "g");
        assert_eq!((ours.check(&site), ours.id.as_str()), (Ok(()), "tare-r-g"));
        assert_eq!(Held::from_token(&ours.token()).unwrap(), ours);
        for (id, run_id) in
            [("tare-r2-g", "r"), ("tare-r-g", "r2"), ("tare-r-", "r"), ("mine", "r"), ("tare-r-a/b", "r")]
        {
            let wrong = Held { id: id.into(), run_id: run_id.into(), ..ours.clone() };
            assert!(wrong.check(&site).unwrap_err().contains("no container of run r"), "{id}");
            let refused = (super::super::ENTRY.reap)(&site, &wrong.token()).unwrap_err().to_string();
            assert!(refused.contains("no container of run r"), "{refused}");
        }
        let strays = Strays(vec!["/sys/fs/cgroup/system.slice".into()]);
        assert!(Held { strays, ..ours }.check(&site).unwrap_err().contains("not of run r"));
        assert!(Held::from_token(&serde_json::json!({"id": 1})).is_err());
    }

    #[test]
    fn a_container_that_is_gone_is_as_it_should_be_and_one_that_stays_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("ctr");
        let take_away = |script: &str| {
            std::fs::write(&program, format!("#!/bin/sh\nshift 4\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            held(&program.to_string_lossy()).take_away(Path::new("/agent"))
        };
        assert_eq!(take_away("case $2 in ls) echo tare-r-g2;; esac"), Ok(()), "another's");
        let file = place.path().join("there");
        std::fs::write(&file, "").unwrap();
        let removes = format!(
            "f={}; case \"$1 $2\" in 'containers rm') rm $f;; *ls) ls $f | sed s/.*/tare-r-g/;; esac",
            file.display()
        );
        assert_eq!(take_away(&removes), Ok(()));
        assert!(!file.exists(), "it was asked to remove it");
        let why = take_away("echo 'no daemon' >&2; exit 1").unwrap_err();
        assert!(why.contains("containers ls -q") && why.contains("no daemon"), "{why}");
    }

    #[test]
    fn the_number_of_a_process_is_read() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("pid");
        assert_eq!(number_in(&file), None);
        for (text, number) in [("417", Some(417)), ("417\n", Some(417)), ("", None), ("1", None), ("x", None)] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(number_in(&file), number, "{text}");
        }
    }
}
