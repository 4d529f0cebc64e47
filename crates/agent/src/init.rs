//! The agent as the first process of a virtual machine: it makes a guest of a bare kernel, then serves.
//!
//! The first process itself stays small and outlives everything: it prepares the machine, forks the one that serves,
//! collects orphans, and switches the machine off when that one ends, however it ends. Nothing here waits longer than
//! for what it needs, since the time until the agent answers is measured.

mod config;
mod iscsi;
mod modules;
mod network;
mod root;
mod sys;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit, setsid, wait};
use rustix::system::RebootCommand;

use crate::{age, channel, exit, session};
use config::GuestConfig;

/// Name of the virtio port that is the channel.
const CHANNEL_PORT: &str = "org.tare.agent.0";

/// How the initial file system calls the agent.
const CALLED: &str = "/init";

/// How long a device may take to appear after its driver was loaded. It takes milliseconds.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// How many files the processes of a guest may open: what systemd grants services at most.
const OPEN_FILES: u64 = 524_288;

/// PATH of everything in a guest, the same on every platform.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What of a guest could not be made, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried}: {why}")]
struct InitError {
    tried: String,
    why: String,
}

type Result<T> = std::result::Result<T, InitError>;

/// Adds what was tried to an error.
fn during<E: std::fmt::Display>(tried: impl Into<String>) -> impl FnOnce(E) -> InitError {
    let tried = tried.into();
    move |error| InitError { tried, why: error.to_string() }
}

/// Whether this process is the first of a machine, started from the initial file system.
pub fn is_wanted() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == CALLED)
}

/// Makes the guest, serves, and switches the machine off. Every failure is printed on the console.
pub fn run() -> ! {
    age::begins_first();
    match prepare().and_then(serve_apart) {
        Ok(server) => wait_for(server),
        Err(error) => tell(&error.to_string()),
    }
    switch_off()
}

/// Does everything until the channel is found.
fn prepare() -> Result<PathBuf> {
    root::mount_views()?;
    let words = std::fs::read_to_string("/proc/cmdline").map_err(during("read the kernel's command line"))?;
    let config = config::parse(&words).map_err(during("understand what the kernel's command line tells the guest"))?;
    let mut modules = modules::Modules::read(&words)?;
    modules.load_for_devices()?;
    let limit = Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) };
    setrlimit(Resource::Nofile, limit).map_err(during("let processes open more files"))?;
    rustix::system::sethostname(config.hostname.as_bytes()).map_err(during("set the host name"))?;
    network::bring_up(&config, &mut modules)?;
    iscsi::load(&config, &mut modules)?;
    root::change(&config, &mut modules)?;
    iscsi::attach(&config)?;
    sys::set_environment(&environment(&config));
    find_channel()
}

/// As the platforms set it for whatever they start themselves.
fn environment(config: &GuestConfig) -> [(&'static str, &str); 4] {
    [("PATH", PATH), ("HOME", "/root"), ("LANG", "C.UTF-8"), ("TARE_RUN", &config.run_id)]
}

/// The device file of the virtio port with the channel's name.
fn find_channel() -> Result<PathBuf> {
    let port = || {
        let ports = std::fs::read_dir("/sys/class/virtio-ports").ok()?;
        let ours = ports.filter_map(io::Result::ok).find(|port| {
            std::fs::read_to_string(port.path().join("name")).is_ok_and(|name| name.trim() == CHANNEL_PORT)
        })?;
        Some(Path::new("/dev").join(ours.file_name())).filter(|device| device.exists())
    };
    wait_until(port).ok_or_else(|| InitError {
        tried: format!("find the virtio port {CHANNEL_PORT}, the channel to tare"),
        why: format!("it did not appear within {DEVICE_TIMEOUT:?}; there is {}", modules::devices()),
    })
}

/// Looks again and again until something is there, at most for [`DEVICE_TIMEOUT`].
fn wait_until<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + DEVICE_TIMEOUT;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= deadline {
            return seen;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Starts the process that serves. It may end in any way, and the machine is still switched off in order.
fn serve_apart(port: PathBuf) -> Result<Pid> {
    match crate::sys::fork().map_err(during("start the process that serves"))? {
        crate::sys::Forked::Parent { child } => Ok(child),
        crate::sys::Forked::Child => {
            // In a session of its own; nothing depends on it.
            let _ = setsid();
            serve(&port)
        }
    }
}

fn serve(port: &Path) -> ! {
    match channel::open(port) {
        Ok((reader, writer)) => {
            let ended = session::run(reader, writer);
            match &ended {
                session::Ended::Bye => {}
                session::Ended::Closed => tell("the other end closed the channel"),
                session::Ended::Broken(error) => tell(&error.to_string()),
            }
            exit::now(ended.exit_code())
        }
        Err(error) => {
            tell(&format!("cannot open the channel {}: {error}", port.display()));
            exit::now(exit::BAD_CHANNEL)
        }
    }
}

/// Collects orphans until the server has ended, and tells an end that is not its own. Without that the machine would be gone
/// without a word where the server was killed.
fn wait_for(server: Pid) {
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == server => break status,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return tell(&format!("lost sight of the process that serves: {error}")),
        }
    };
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => {}
        (Some(code), _) => tell(&format!("the process that serves ended with code {code}")),
        (None, signal) => tell(&format!("the process that serves was ended by signal {}", signal.unwrap_or_default())),
    }
}

/// Tells the console. Without one there is nobody to tell.
fn tell(message: &str) {
    let mut console = io::stderr();
    let _ = writeln!(console, "tare-agent: {message}");
    // A serial line is slow, and the machine is about to be switched off.
    let _ = rustix::termios::tcdrain(&console);
}

/// Ends the machine at once. Nothing is written back first: a guest's disks go with it.
fn switch_off() -> ! {
    // An x86 machine without ACPI cannot be switched off, only reset, upon which its monitor ends.
    let only_reset = cfg!(target_arch = "x86_64") && !Path::new("/sys/firmware/acpi").exists();
    let order = if only_reset { RebootCommand::Restart } else { RebootCommand::PowerOff };
    let _ = rustix::system::reboot(order);
    // Refused only where this is not the first process. Its end makes the kernel panic, which is an end too.
    std::process::exit(i32::from(exit::DONE))
}
