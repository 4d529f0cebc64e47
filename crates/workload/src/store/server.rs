//! A server that tare starts: in a guest, or on this host to make a gold copy.

use std::path::Path;
use std::time::{Duration, Instant};

use super::asked::{Asked, NOBODY, failure};
use super::error::StoreError;
use crate::WorkloadError;

/// Longest that a server may take to start, recovery included, or to stop.
const STARTING: Duration = Duration::from_secs(600);
/// Longest for what is short.
pub(crate) const SHORT: Duration = Duration::from_secs(60);
/// The server's settings beside its own file.
const CONF: &str = "tare.conf";
/// The server's log, beside its data.
const LOG: &str = "tare.log";
/// The superuser, who is trusted where the server runs.
pub(crate) const SUPERUSER: &str = "tare";
/// The user and the database of the store.
pub(crate) const STORE: &str = "store";

/// Ends a server and all its processes at once. Its parent is stopped first, so that it does not see its children die and
/// begins nothing; then all are waited for until they are gone. One that is dead and that nobody has buried yet counts as gone,
/// but not to a new server, which would take it for alive: hence its lock is removed.
const KILL: &str = r#"
d=$1
p=$(head -n 1 "$d/postmaster.pid") || exit 1
kill -STOP "$p" || exit 1
c=
for s in /proc/[0-9]*/stat; do
    read -r line <"$s" || continue
    set -- ${line##*) }
    [ "$2" = "$p" ] || continue
    s=${s#/proc/}
    c="$c ${s%/stat}"
done 2>/dev/null
kill -KILL $c "$p"
n=0
for q in $c "$p"; do
    while [ -d "/proc/$q" ] && ! grep -q '^State:.Z' "/proc/$q/status" 2>/dev/null; do
        n=$((n + 1))
        [ "$n" -lt 2000 ] || exit 1
        sleep 0.01
    done
done
rm -f "$d/postmaster.pid"
echo "$p and its processes:$c"
"#;

/// Programs and data of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// Directory of the programs.
    pub bin: String,
    /// Directory of the data.
    pub data: String,
}

impl Server {
    fn program(&self, name: &str) -> String {
        format!("{}/{name}", self.bin)
    }

    /// Makes an empty cluster, whose settings and rules of access come from files of tare's.
    ///
    /// # Errors
    /// When the program fails.
    pub fn init(&self, asked: Asked<'_>, major: u32) -> Result<(), WorkloadError> {
        let program = self.program("initdb");
        let mut argv = vec![program.as_str(), "-D", &self.data];
        argv.extend(init_options(major));
        let ran = asked.run(&argv, Some(NOBODY), STARTING)?;
        if ran.code != Some(0) {
            let remedy = "see what it says; the directory must be one that nobody (65534) may enter and write to";
            return Err(StoreError::new(format!("make a database in {}", self.data), failure(&ran), remedy).into());
        }
        let script = "echo \"include_if_exists 'tare.conf'\" >>\"$1/postgresql.conf\"";
        asked.script("write the server's settings", script, &[&self.data], Some(NOBODY), SHORT).map(drop)
    }

    /// Writes settings and, where given, who may come in.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn configure(&self, asked: Asked<'_>, conf: &str, hba: Option<&str>) -> Result<(), WorkloadError> {
        asked.put(&format!("{}/{CONF}", self.data), conf, SHORT)?;
        hba.map_or(Ok(()), |hba| asked.put(&format!("{}/pg_hba.conf", self.data), hba, SHORT))
    }

    /// Starts the server and waits until it takes connections; how long that took, seconds.
    ///
    /// # Errors
    /// When it does not start, with the end of its log.
    pub fn start(&self, asked: Asked<'_>) -> Result<f64, WorkloadError> {
        let (program, log) = (self.program("pg_ctl"), format!("{}/{LOG}", self.data));
        let wait = STARTING.as_secs().to_string();
        let argv = [program.as_str(), "start", "-w", "-s", "-t", &wait, "-D", &self.data, "-l", &log];
        let began = Instant::now();
        let ran = asked.run(&argv, Some(NOBODY), STARTING)?;
        if ran.code == Some(0) {
            return Ok(began.elapsed().as_secs_f64());
        }
        let said = asked.run(&["tail", "-n", "12", &log], None, SHORT);
        let said = said.map(|ran| String::from_utf8_lossy(&ran.stdout).trim().to_owned()).unwrap_or_default();
        let why = format!("{}; its log ends: {said}", failure(&ran));
        let remedy = "see its log: memory (`shared_buffers` is 40 % of the guest's), a setting of the study's, or the port \
                      may be what it lacks";
        Err(StoreError::new("start PostgreSQL", why, remedy).into())
    }

    /// Stops the server, with a checkpoint.
    ///
    /// # Errors
    /// When it does not stop.
    pub fn stop(&self, asked: Asked<'_>) -> Result<(), WorkloadError> {
        let (program, wait) = (self.program("pg_ctl"), STARTING.as_secs().to_string());
        let argv = [program.as_str(), "stop", "-w", "-s", "-m", "fast", "-t", &wait, "-D", &self.data];
        let ran = asked.run(&argv, Some(NOBODY), STARTING)?;
        if ran.code == Some(0) {
            return Ok(());
        }
        Err(StoreError::new("stop PostgreSQL", failure(&ran), "see its log for what it was doing").into())
    }

    /// Kills the server with all its processes.
    ///
    /// # Errors
    /// When it was not running, or does not die.
    pub fn kill(&self, asked: Asked<'_>) -> Result<(), WorkloadError> {
        asked.script("kill PostgreSQL", KILL, &[&self.data], Some(NOBODY), SHORT).map(drop)
    }

    /// Takes away what a server leaves beside its data that a copy of them should not have.
    ///
    /// # Errors
    /// When it is still running, or a file cannot be removed.
    pub fn tidy(&self) -> Result<(), StoreError> {
        let data = Path::new(&self.data);
        if data.join("postmaster.pid").exists() {
            let why = "postmaster.pid is still there";
            return Err(StoreError::new("stop PostgreSQL", why, "look for a server that runs there"));
        }
        for name in [CONF, LOG, "postmaster.opts"] {
            let path = data.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(super::error::file("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// How an empty cluster is made, beside its place. Sorting by bytes and no locale of the host's, so that every version and every
/// guest orders alike; no checksums of pages, as in the published study, which newer versions would make by themselves.
pub(crate) fn init_options(major: u32) -> Vec<&'static str> {
    let mut options = vec![
        "--username",
        SUPERUSER,
        "--auth",
        "trust",
        "--encoding",
        "UTF8",
        "--locale",
        "C",
        "--text-search-config",
        "english",
        // It is made durable once, when it is whole.
        "--no-sync",
    ];
    if major >= 18 {
        options.push("--no-data-checksums");
    }
    options
}
