//! A throw-away server of PostgreSQL for tests: a cluster of its own below the temporary directory, a port of its own on the
//! loopback, ended and removed when it is dropped. Needs nothing but std, so that other crates can use it by `#[path]`.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The user whom the server runs as where the tests run as root: nobody.
const NOBODY: u32 = 65_534;
/// Superuser of the cluster, trusted on the loopback.
pub const USER: &str = "store";
/// An empty database.
pub const DATABASE: &str = "store";

/// A server that runs.
pub struct Postgres {
    bin: PathBuf,
    directory: PathBuf,
    settings: Vec<String>,
    address: SocketAddr,
    child: Option<Child>,
}

/// The directory of the newest installed server's programs.
pub fn programs() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let bin = entry.path().join("bin");
            Some((entry.file_name().to_str()?.parse().ok()?, bin)).filter(|(_, bin)| bin.join("initdb").exists())
        })
        .collect();
    found.sort();
    found.pop().map(|(_, bin)| bin)
}

/// A server with these settings (`name=value`), or `None` where none is installed, which is said.
pub fn start(settings: &[&str]) -> Option<Postgres> {
    let Some(bin) = programs() else {
        println!("SKIPPED: no PostgreSQL in /usr/lib/postgresql (apt-get install postgresql)");
        return None;
    };
    let template = template(&bin);
    let directory = fresh_directory();
    run(Command::new("cp").arg("-a").arg(&template).arg(directory.join("data")));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let settings = settings.iter().map(|s| (*s).to_owned()).collect();
    let mut server = Postgres { bin, directory, settings, address, child: None };
    server.start();
    Some(server)
}

impl Postgres {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// What it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Replaces the rules of who may log in how.
    pub fn set_access(&self, rules: &str) {
        fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
        self.signal("-HUP");
    }

    /// Starts it, after [`kill`](Self::kill) as well.
    pub fn start(&mut self) {
        // Somebody else may take the port between its being found and its being used.
        for _ in 0..5 {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.address.port()))
                .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
                .unwrap();
            self.address = listener.local_addr().unwrap();
            drop(listener);
            if self.try_start() {
                return;
            }
        }
        panic!("PostgreSQL did not start: {}", self.log());
    }

    fn try_start(&mut self) -> bool {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.directory.join("log")).unwrap();
        let mut command = as_nobody(&self.bin.join("postgres"));
        command.arg("-D").arg(self.data()).arg("-p").arg(self.address.port().to_string());
        for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=200"] {
            command.arg("-c").arg(setting);
        }
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60) {
            let state = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            let ours = state.lines().next() == Some(&child.id().to_string());
            if ours && state.lines().last().is_some_and(|line| line.trim() == "ready") {
                self.child = Some(child);
                return true;
            }
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child = Some(child);
        self.kill();
        false
    }

    /// Ends all its processes at once, as a power failure would; what is on disk stays.
    pub fn kill(&mut self) {
        // The postmaster first, so that it starts no others; its children end when they notice, or are ended.
        let children = self.child.as_ref().map(|c| children_of(c.id())).unwrap_or_default();
        self.signal("-KILL");
        for child in children {
            let _ = Command::new("kill").arg("-KILL").arg(child.to_string()).stderr(Stdio::null()).status();
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    fn signal(&self, signal: &str) {
        if let Some(child) = &self.child {
            let _ = Command::new("kill").arg(signal).arg(child.id().to_string()).stderr(Stdio::null()).status();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Immediate shutdown: nothing of it is kept.
        self.signal("-QUIT");
        if let Some(mut child) = self.child.take() {
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(10) && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn children_of(parent: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.env("LC_ALL", "C").current_dir("/");
    command
}

fn fresh_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("tare-test-pg-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let directory = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    if is_root() {
        chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    directory
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A cluster with an empty database, made once for all tests of this build: making one takes seconds, copying it a moment.
fn template(bin: &Path) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let version = bin.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let who = if is_root() { "root" } else { "user" };
    let template = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("postgres-{version}-{who}-1"));
    if template.exists() {
        return template;
    }
    let directory = fresh_directory();
    let data = directory.join("data");
    run(as_nobody(&bin.join("initdb"))
        .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", USER, "-D"])
        .arg(&data));
    let mut single = as_nobody(&bin.join("postgres"))
        .args(["--single", "-D"])
        .arg(&data)
        .arg("postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    single.stdin.take().unwrap().write_all(format!("CREATE DATABASE {DATABASE}\n").as_bytes()).unwrap();
    assert!(single.wait().unwrap().success());
    // By way of another name, so that nobody takes a half for a whole.
    let half = template.with_extension(std::process::id().to_string());
    run(Command::new("cp").arg("-a").arg(&data).arg(&half));
    if fs::rename(&half, &template).is_err() {
        let _ = fs::remove_dir_all(&half);
    }
    let _ = fs::remove_dir_all(&directory);
    template
}
