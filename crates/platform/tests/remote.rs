//! Machines that exist already, for real: against sshd in a network namespace of each test's own.

use crate::common::sshd;

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{self, Ground, agent, conforms, platform, skipped};
use serde_json::{Value, json};
use sshd::{CHATTY, CLOSES, ENDLESS, NOBODY, OTHER_MACHINE, PLAIN, Sshd, apart};
use tare_lab::Resource;
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::{ByteSize, Refusal};
use tare_platform::conformance::Expect;
use tare_platform::{ClientPlace, Guest, HostView, PlatformError, Reach, ReapSite, Site, client, registry};

pub(crate) const PLATFORM: &str = "ssh";

pub(crate) fn with(mut options: Value, field: &str, value: impl Into<Value>) -> Value {
    options[field] = value.into();
    options
}

/// A run in which guests are made.
pub(crate) struct Run(pub Ground);

impl Run {
    pub(crate) fn new(label: &str) -> Option<Self> {
        Ground::new(label, agent()?).map(Self)
    }

    pub(crate) fn site(&self) -> Site<'_> {
        Site { timeout: Duration::from_secs(20), ..self.0.site() }
    }

    pub(crate) fn start(&self, options: &Value) -> Result<Box<dyn Guest>, PlatformError> {
        let size = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
        platform(PLATFORM, options).start(&self.site(), &GuestSpec { cpu_set: vec![0], ..GuestSpec::new("t0", size) })
    }

    pub(crate) fn error(&self, options: &Value) -> String {
        match self.start(options) {
            Ok(_) => panic!("a guest came up with {options}"),
            Err(error) => error.to_string(),
        }
    }

    /// What was written down and not taken away, by the platform's own name for it.
    pub(crate) fn tokens(&self) -> Vec<Value> {
        let held = self.0.notes.left().into_iter().filter_map(|resource| match resource {
            Resource::Held { token, .. } => Some(token),
            _ => None,
        });
        held.collect()
    }

    pub(crate) fn reap(&self, token: &Value) -> Result<(), PlatformError> {
        let site = ReapSite { run_id: &self.0.run_id, state: self.0.state.path(), agent: &self.0.agent };
        (registry::find(PLATFORM).unwrap().reap)(&site, token)
    }

    /// Copies of the agent that the run left on the "other" machine.
    fn copies(&self) -> Vec<String> {
        let entries = std::fs::read_dir("/tmp").unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(&format!("tare-{}-", self.0.run_id))).collect()
    }

    /// Processes of the run, here and on the "other" machine.
    pub(crate) fn processes(&self) -> Vec<String> {
        tare_lab::leftovers(&self.0.run_id).into_iter().filter(|left| left.starts_with("process")).collect()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.copies().is_empty() && self.processes().is_empty()
    }

    pub(crate) fn end(self) {
        assert_eq!((self.copies(), self.tokens()), (Vec::new(), Vec::new()));
        drop(self.0.lab);
        self.0.state.remove().unwrap();
    }
}

#[track_caller]
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < deadline, "waited half a minute for: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn exec(guest: &dyn Guest, argv: &[&str]) -> String {
    String::from_utf8(common::exec(guest, argv).stdout).unwrap()
}

#[test]
fn a_machine_behind_ssh_conforms() {
    apart(skipped, |sshd| {
        let expect = Expect { cycles: 2, limits: false, data: false, ..Expect::default() };
        conforms("remote", PLATFORM, &sshd.options(PLAIN), &expect);
    });
}

#[test]
fn a_pinned_key_is_the_only_one_that_is_accepted() {
    apart(skipped, |sshd| {
        let Some(run) = Run::new("pinned") else { return };
        let view = HostView::here(&run.0.agent);
        let check = |options: &Value| platform(PLATFORM, options).check(&view);
        let options = sshd.options(PLAIN);
        assert!(check(&options).is_ok(), "{:?}", check(&options));
        let by_fingerprint = with(options.clone(), "host-key", sshd.fingerprint());
        assert!(check(&by_fingerprint).is_ok(), "{:?}", check(&by_fingerprint));

        let other = std::fs::read_to_string(sshd.folder().join("user.pub")).unwrap();
        let zeros = format!("SHA256:{}", "A".repeat(43));
        let mut unpinned = options.clone();
        unpinned.as_object_mut().unwrap().remove("host-key");
        for (wrong, help) in [
            (with(options.clone(), "host-key", other.trim()), "`host-key` pins"),
            (with(options.clone(), "host-key", zeros), "`host-key` pins"),
            (unpinned.clone(), "not in your known_hosts"),
        ] {
            let Err(Refusal { reason, remedy }) = check(&wrong) else { panic!("accepted: {wrong}") };
            assert!(reason.contains("Host key verification failed"), "{reason}");
            assert!(remedy.contains(help), "{remedy}");
            assert!(run.error(&wrong).contains("Host key verification failed"));
        }
        // By the user's own configuration and known_hosts, through an alias.
        let known = format!("[127.0.0.1]:{PLAIN} {}\n", sshd.host_key());
        std::fs::write(sshd.folder().join("known"), known).unwrap();
        let config = format!(
            "Host vm1\nHostName 127.0.0.1\nPort {PLAIN}\nUser root\nIdentityFile {0}/user\nUserKnownHostsFile {0}/known\n",
            sshd.folder().display()
        );
        std::fs::write(sshd.folder().join("config"), config).unwrap();
        let alias = json!({"host": "vm1", "config": sshd.folder().join("config")});
        let mut guest = run.start(&alias).unwrap();
        assert_eq!(guest.address().to_string(), "127.0.0.1");
        guest.destroy().unwrap();
        run.end();
    });
}

#[test]
fn what_is_no_machine_of_ours_is_refused_at_once_and_in_clear_words() {
    apart(skipped, |sshd| {
        let Some(run) = Run::new("hostile") else { return };
        let began = Instant::now();
        let refused = |port: u16, word: &str| {
            let error = run.error(&sshd.options(port));
            assert!(error.contains(word) && error.len() < 8000, "{port}: {error}");
        };
        refused(NOBODY, "Connection refused");
        refused(CLOSES, "no POSIX shell");
        refused(OTHER_MACHINE, "the machine is Linux vax");
        let unknown = with(sshd.options(PLAIN), "user", "nobody-of-that-name");
        assert!(run.error(&unknown).contains("Permission denied"));
        let nowhere = with(sshd.options(PLAIN), "directory", "/nonexistent/place");
        assert!(run.error(&nowhere).contains("/nonexistent/place"));
        let script = with(sshd.options(PLAIN), "agent", "/etc/passwd");
        assert!(run.error(&script).contains("no Linux program"));
        let wrong_build = with(sshd.options(PLAIN), "agent", "/bin/true");
        assert!(run.error(&wrong_build).contains("greet"), "{}", run.error(&wrong_build));
        assert!(began.elapsed() < Duration::from_secs(60), "no refusal waits for anything");
        // Megabytes before the greeting: it is no tare that speaks.
        refused(CHATTY, "not tare");
        run.end();
    });
}

#[test]
fn a_machine_that_never_stops_talking_is_given_up() {
    apart(skipped, |sshd| {
        let Some(run) = Run::new("endless") else { return };
        let view = HostView::here(&run.0.agent);
        let Err(Refusal { reason, .. }) = platform(PLATFORM, &sshd.options(ENDLESS)).check(&view) else {
            panic!("it was taken for a machine")
        };
        assert!(reason.contains("did not end within") && reason.contains("welcome"), "{reason}");
        assert!(reason.len() < 4000, "{}", reason.len());
        assert!(run.is_clean());
        run.end();
    });
}

/// Commands that write down that they were run.
fn commands(sshd: &Sshd) -> (Value, std::path::PathBuf) {
    let log = sshd.folder().join("log");
    let command = |word: &str| json!(["sh", "-c", format!("echo {word} >> {}", log.display())]);
    let mut options = sshd.options(PLAIN);
    for word in ["restore", "start", "stop"] {
        options[word] = command(word);
    }
    // Not ready at first.
    let ready = format!("echo ready >> {0}; [ $(grep -c ready {0}) -ge 2 ]", log.display());
    (with(options, "ready", json!(["sh", "-c", ready])), log)
}

#[test]
fn the_users_commands_run_in_order_and_stop_also_when_the_start_failed() {
    apart(skipped, |sshd| {
        let Some(run) = Run::new("commands") else { return };
        let (options, log) = commands(sshd);
        let mut guest = run.start(&options).unwrap();
        assert_eq!(run.tokens().len(), 1, "on the ledger while it stands");
        guest.destroy().unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "restore\nstart\nready\nready\nstop\n");
        std::fs::remove_file(&log).unwrap();
        let failing = with(options, "start", json!(["sh", "-c", "echo no such machine >&2; exit 3"]));
        let error = run.error(&failing);
        assert!(error.contains("`start`") && error.contains("no such machine"), "{error}");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "restore\nstop\n");
        run.end();
    });
}

#[test]
fn what_a_killed_controller_left_goes_and_the_machine_is_stopped() {
    apart(skipped, |sshd| {
        let Some(run) = Run::new("killed") else { return };
        let (options, log) = commands(sshd);
        let guest = run.start(&options).unwrap();
        exec(&*guest, &["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! "]);
        let token = run.tokens().remove(0);
        // As after kill -9: nobody takes anything away, only the connection dies, which here is the ssh process.
        let ssh: Vec<String> = run.processes().into_iter().filter(|left| left.contains("(ssh)")).collect();
        let pid = ssh[0].split(' ').nth(1).unwrap();
        assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
        until("the agent to end and its copy to go with the connection", || run.is_clean());
        std::mem::forget(guest);
        assert!(!std::fs::read_to_string(&log).unwrap().contains("stop"));
        run.reap(&token).unwrap();
        assert!(std::fs::read_to_string(&log).unwrap().ends_with("stop\n"));
        run.reap(&token).unwrap();

        // Another run's, and a place that is not tare's, are not touched.
        let mut theirs = token.clone();
        theirs["run"] = json!("other");
        assert!(run.reap(&theirs).unwrap_err().to_string().contains("not of the run"));
        let mut elsewhere = token;
        elsewhere["place"]["directory"] = json!("/tmp");
        assert!(run.reap(&elsewhere).is_err());
        drop(run.0.lab);
        run.0.state.remove().unwrap();
        assert_eq!(tare_lab::leftovers(&run.0.run_id), Vec::<String>::new());
    });
}

#[test]
fn what_the_machine_has_is_reported_and_a_client_may_be_on_it() {
    apart(skipped, |sshd| {
        let Some(run) = Run::new("facts") else { return };
        let made = platform(PLATFORM, &with(sshd.options(PLAIN), "listen", "127.0.0.2"));
        assert_eq!(made.reach(), Reach::Outside);
        let size = GuestSize { cpus: 1000, memory: ByteSize(1 << 50) };
        let spec = GuestSpec { cpu_set: vec![0], ..GuestSpec::new("c0", size) };
        let mut guest = client(&run.site(), &spec, ClientPlace::Machine(&*made)).unwrap();
        assert_eq!((guest.address().to_string(), guest.listen().to_string()), ("127.0.0.1".into(), "127.0.0.2".into()));
        let rows = guest.parity();
        assert_eq!(rows.iter().map(|row| row.equal).collect::<Vec<_>>(), [false, false], "{rows:?}");
        assert!(rows.iter().all(|row| row.granted.is_some()), "{rows:?}");
        assert!(guest.groups().is_empty() && guest.drops().is_none());
        assert!(exec(&*guest, &["sh", "-c", "echo $TARE_RUN"]).contains(&run.0.run_id));
        guest.destroy().unwrap();
        run.end();
    });
}
