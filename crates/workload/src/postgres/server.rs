//! A server that tare starts: in a guest, or on this host to make a gold copy.

use std::time::{Duration, Instant};

use crate::Failure;
use crate::WorkloadError;
use crate::asked::{Asked, NOBODY, failure, tail};

/// Longest that a CHECKPOINT may take.
pub(crate) const CHECKPOINT: Duration = Duration::from_secs(600);
/// The settings that a running server was given, and those that matter in any case. Places and addresses are left out.
pub(crate) const SETTINGS: &str = "SELECT name, current_setting(name) FROM pg_settings \
     WHERE (source NOT IN ('default', 'override', 'client', 'session') \
            AND name NOT IN ('listen_addresses', 'config_file', 'data_directory', 'hba_file', 'ident_file', \
                             'external_pid_file', 'application_name', 'unix_socket_directories')) \
        OR name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums', 'wal_level', 'wal_sync_method', \
                    'io_method') \
     ORDER BY name";
/// Longest that a server may take to start, recovery included, or to stop.
const STARTING: Duration = Duration::from_secs(600);
/// Longest for what is short.
pub(crate) const SHORT: Duration = Duration::from_secs(60);
/// The log, in the directory of the data (PostgreSQL, "Database File Layout").
pub(crate) const WAL: &str = "pg_wal";
/// The server's settings beside its own file.
pub(crate) const CONF: &str = "tare.conf";
/// The server's log, beside its data.
pub(crate) const LOG: &str = "tare.log";
/// The superuser, who is trusted where the server runs.
pub(crate) const SUPERUSER: &str = "tare";

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

/// Tells `gone` where no server is at work on the data; one that is about to die is given two seconds. Of one that nobody has buried yet
/// the lock is removed, once its processes had the time to see that they are alone: they end by themselves then.
const IS_GONE: &str = r#"
p=$(head -n 1 "$1/postmaster.pid" 2>/dev/null)
n=0
while [ -n "$p" ] && [ -d "/proc/$p" ]; do
    if grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null; then
        sleep 1
        rm -f "$1/postmaster.pid"
        break
    fi
    n=$((n + 1))
    [ "$n" -lt 20 ] || exit 0
    sleep 0.1
done
echo gone
"#;

/// Has the log where it is given on its own, in the place of the one that is with the data, as `initdb --waldir` has it.
const LOG_APART: &str = r#"[ -d "$2" ] && rm -rf "$1" && ln -s "$2" "$1" && [ "$1/" -ef "$2/" ]"#;

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
            return Err(Failure::new(format!("make a database in {}", self.data), failure(&ran), remedy).into());
        }
        let script = "echo \"include_if_exists 'tare.conf'\" >>\"$1/postgresql.conf\"";
        asked.script("write the server's settings", script, &[&self.data], Some(NOBODY), SHORT).map(drop)
    }

    /// Takes the log that lies in a directory of its own, below `place`, before the server's first start.
    ///
    /// # Errors
    /// When there is none, or the server's user may not link to it.
    pub fn log_apart(&self, asked: Asked<'_>, place: &str) -> Result<(), WorkloadError> {
        let words = [format!("{}/{WAL}", self.data), format!("{place}/{WAL}")];
        asked.script("use the disk for the log", LOG_APART, &[&words[0], &words[1]], Some(NOBODY), SHORT).map(drop)
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
        let why = format!("{}; its log ends: {}", failure(&ran), self.log_end(asked));
        let remedy = "see its log, and check memory (`shared_buffers` is 40 % of the guest's), the settings in the \
                      study and the port";
        Err(Failure::new("start PostgreSQL", why, remedy).into())
    }

    /// Starts a server that died: what it began may still be at work for a moment, and a new one refuses to start beside that.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn restart(&self, asked: Asked<'_>) -> Result<f64, WorkloadError> {
        const TRIES: u32 = 50;
        let mut tries = 1;
        loop {
            match self.start(asked) {
                Err(error) if tries < TRIES && error.to_string().contains("still in use") => {
                    tries += 1;
                    asked.pause()?;
                }
                other => return other,
            }
        }
    }

    /// The end of its log, as far as it can be had.
    pub fn log_end(&self, asked: Asked<'_>) -> String {
        let said = asked.run(&["tail", "-n", "12", &format!("{}/{LOG}", self.data)], None, SHORT);
        said.map(|ran| tail(&ran.stdout)).unwrap_or_default()
    }

    /// Whether the server is gone, although nobody has stopped it.
    ///
    /// # Errors
    /// When the agent cannot tell.
    pub fn is_gone(&self, asked: Asked<'_>) -> Result<bool, WorkloadError> {
        let said = asked.script("see whether PostgreSQL runs", IS_GONE, &[&self.data], Some(NOBODY), SHORT)?;
        Ok(said == "gone")
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
        Err(Failure::new("stop PostgreSQL", failure(&ran), "see its log for what it was doing").into())
    }

    /// Kills the server with all its processes.
    ///
    /// # Errors
    /// When it was not running, or does not die.
    pub fn kill(&self, asked: Asked<'_>) -> Result<(), WorkloadError> {
        asked.script("kill PostgreSQL", KILL, &[&self.data], Some(NOBODY), SHORT).map(drop)
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
