//! What is held on the other machine and by the user's own commands, and how it is taken away.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_lab::RUN_VARIABLE;
use tare_model::redact::{REDACTED, masked};

use super::destination::{Destination, Failed};
use super::pool::Claim;
use super::program::{self, Ended};
use super::remote::{self, Place};
use super::vsphere::{Machine, Watched};
use crate::ReapSite;

/// Everything that has to be undone after a guest, as it is written down before anything is done.
///
/// Taking it away runs the command in `stop`, with this user's rights. So a token is acted on only if it comes from the ledger in
/// the state directory of the run, which nobody else can write to; a token from a run folder never is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Held {
    /// What it is, for people.
    what: String,
    /// The run.
    run: String,
    /// The machine.
    pub to: Destination,
    /// Where the agent's copy is.
    pub place: Place,
    /// What stops the guest.
    stop: Option<Stop>,
    /// How long that may take, nanoseconds.
    limit_ns: u64,
    /// Whether the copying has begun, as far as this process knows; what was read from a ledger may have.
    #[serde(skip, default = "may_have")]
    begun: Arc<AtomicBool>,
    /// Whether the machine did not answer when this was to be taken away. It is then no part of this host, and tried again later.
    #[serde(default)]
    lost: bool,
    /// What keeps the machine from being another guest meanwhile; none of what was read from a ledger.
    #[serde(skip)]
    _claim: Option<Arc<Claim>>,
    /// Whose counters are read until the guest is stopped.
    #[serde(skip)]
    watched: Arc<Mutex<Option<Watched>>>,
}

/// What stops a guest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stop {
    /// The user's command.
    Command(Vec<String>),
    /// vSphere.
    Vsphere(Machine),
}

impl Stop {
    fn run(&self, run_id: &str, limit: Duration) -> Result<(), String> {
        match self {
            Self::Command(argv) => command(run_id, "stop", argv, limit).map(drop),
            Self::Vsphere(machine) => {
                machine.power_off(run_id, limit).map_err(|failed| format!("{}. {}", failed.why, failed.remedy))
            }
        }
    }
}

fn may_have() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(true))
}

impl Held {
    pub(super) fn new(
        run: &str,
        (to, claim): (Destination, Claim),
        place: Place,
        stop: Option<Stop>,
        limit: Duration,
    ) -> Self {
        let _claim = Some(Arc::new(claim));
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let begun = Arc::new(AtomicBool::new(false));
        Self {
            what: format!("the agent on {}", to.host()),
            run: run.to_owned(),
            to,
            place,
            stop,
            limit_ns,
            begun,
            lost: false,
            _claim,
            watched: Arc::default(),
        }
    }

    /// Its counters are read until it is stopped.
    pub(super) fn watch(&self, watched: Watched) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
    }

    /// From now on there may be a copy.
    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Takes it away; from a machine that does not answer, what to write down in its place.
    pub(super) fn take_away_or_lose(&self) -> Result<Option<Self>, String> {
        match self.try_to_take_away() {
            Ok(()) => Ok(None),
            Err(failed) if failed.unreached => Ok(Some(Self { lost: true, ..self.clone() })),
            Err(failed) => Err(failed.why),
        }
    }

    /// Takes the copy away and stops the guest. A guest that cannot be reached and was then stopped keeps no process; that its
    /// file system still holds the copy is no error.
    fn try_to_take_away(&self) -> Result<(), Failed> {
        let removed =
            if self.begun.load(Ordering::Relaxed) { remote::remove(&self.to, &self.run, &self.place) } else { Ok(()) };
        // A machine that is off has no counters.
        drop(self.watched.lock().unwrap_or_else(PoisonError::into_inner).take());
        let stopped = self.stop.as_ref().map(|stop| stop.run(&self.run, self.limit()));
        let failed = |why, unreached| Err(Failed { why, remedy: String::new(), unreached });
        match (removed, stopped) {
            (Ok(()), None | Some(Ok(()))) => {
                self.begun.store(false, Ordering::Relaxed);
                Ok(())
            }
            (Err(failed), Some(Ok(()))) if failed.unreached => Ok(()),
            (Err(error), None | Some(Ok(()))) => failed(format!("{}. {}", error.why, error.remedy), error.unreached),
            (Ok(()), Some(Err(why))) => failed(why, false),
            (Err(error), Some(Err(why))) => failed(format!("{}; {why}", error.why), false),
        }
    }

    fn limit(&self) -> Duration {
        Duration::from_nanos(self.limit_ns)
    }
}

impl crate::held::Held for Held {
    const WHAT: &'static str = "the agent from another machine, and stop that";
    const REMEDY: &'static str = "Make the machine answer again and run `tare reap`; if it is gone for good, `tare reap --forget RUN` strikes it from the list";

    fn check(&self, site: &ReapSite<'_>) -> Result<(), String> {
        if self.run != site.run_id || !self.place.is_of(site.run_id) {
            return Err(format!("it is not of the run {}", site.run_id));
        }
        Ok(())
    }

    fn take_away(&self, _: &Path) -> Result<(), String> {
        self.try_to_take_away().map_err(|failed| failed.why)
    }

    /// Commands of the user's are in it.
    fn named(_: &Value) -> String {
        Self::WHAT.to_owned()
    }
}

/// Runs a command of the user's on this host, with the user's own environment: what it needs is the user's to say.
///
/// # Errors
/// When it fails or takes too long, with what it said.
pub(super) fn command(run_id: &str, what: &str, argv: &[String], limit: Duration) -> Result<Ended, String> {
    let Some((program, arguments)) = argv.split_first() else { return Err(format!("`{what}` names no program")) };
    let mut command = Command::new(program);
    command.args(arguments).env(RUN_VARIABLE, run_id);
    let ended = program::run(&mut command, Vec::new(), limit).map_err(|why| format!("the `{what}` command: {why}"))?;
    match ended.code {
        Some(0) => Ok(ended),
        code => {
            let how =
                code.map_or_else(|| "was killed by a signal".to_owned(), |code| format!("ended with code {code}"));
            Err(format!(
                "the `{what}` command `{}` {how}; it said: {}",
                masked(&argv.join(" "), REDACTED),
                ended.words()
            ))
        }
    }
}

/// Tries again and again until it succeeds, at most for `limit`; then the last error.
pub(super) fn until<T, E>(limit: Duration, mut attempt: impl FnMut(Duration) -> Result<T, E>) -> Result<T, E> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        match attempt(left) {
            Err(_) if Instant::now() + PAUSE < deadline => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
}

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::Held as _;
    use crate::ssh::pool::Pool;
    use serde_json::json;

    const AGENT: &str = "/agent";

    fn held(stop: Option<&[String]>) -> Held {
        let options = crate::options::read(&json!({"host": "127.0.0.1", "port": 1, "config": "/dev/null"})).unwrap();
        let place = Place::new(Path::new("/tmp"), "run-1", "t0").unwrap();
        Held::new(
            "run-1",
            (Destination::of(&options), Pool::new(1).take().unwrap()),
            place,
            stop.map(|argv| Stop::Command(argv.to_vec())),
            Duration::from_secs(20),
        )
    }

    #[test]
    fn a_token_of_another_run_is_refused() {
        let check = |token: &Value, run_id| {
            let site = ReapSite { run_id, state: Path::new("/run/tare/r"), agent: Path::new(AGENT) };
            Held::from_token(token).and_then(|held| held.check(&site))
        };
        let token = held(None).token();
        assert_eq!(check(&token, "run-1"), Ok(()));
        assert!(check(&token, "run-2").unwrap_err().contains("run-2"));
        let mut elsewhere = token;
        elsewhere["place"]["directory"] = json!("/home");
        assert!(check(&elsewhere, "run-1").is_err());
        assert!(check(&json!({"run": "run-1"}), "run-1").is_err());
    }

    #[test]
    fn what_was_never_copied_takes_no_connection_and_the_stop_command_runs_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log").to_string_lossy().into_owned();
        let stop = ["sh", "-c", "echo stopped >> \"$0\"", log.as_str()].map(str::to_owned);
        held(Some(&stop)).take_away(Path::new(AGENT)).unwrap();
        // From the ledger: nobody answers there, and the guest is stopped all the same.
        let token = held(Some(&stop)).token();
        if crate::program::find("ssh").is_some() {
            Held::from_token(&token).unwrap().take_away(Path::new(AGENT)).unwrap();
            assert_eq!(std::fs::read_to_string(&log).unwrap(), "stopped\nstopped\n");
            let alone = Held::from_token(&held(None).token()).unwrap();
            assert!(alone.take_away(Path::new(AGENT)).unwrap_err().contains("127.0.0.1"));
        }
    }

    #[test]
    fn a_command_that_fails_is_reported_with_what_it_said() {
        let argv = ["sh", "-c", "echo no such machine >&2; exit 7"].map(str::to_owned);
        let error = command("r", "start", &argv, Duration::from_secs(20)).unwrap_err();
        assert!(error.contains("`start`") && error.contains("code 7") && error.contains("no such machine"), "{error}");
        let slow = ["sleep", "100"].map(str::to_owned);
        let error = command("r", "ready", &slow, Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("did not end within"), "{error}");
    }
}
