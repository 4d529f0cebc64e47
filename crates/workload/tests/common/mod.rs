//! What the tests of workloads with an agent share.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tare_wire::Link;

/// How long an agent may take for anything that is short.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The agent's program, if this is root and it was built. Otherwise the reason for skipping is printed.
pub fn agent() -> Option<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return missing("not root: an agent with a network of its own cannot be started");
    }
    let beside = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("tare-agent");
    let agent = std::env::var_os("TARE_AGENT").map_or(beside, PathBuf::from);
    if agent.exists() { Some(agent) } else { missing("there is no tare-agent: build it first") }
}

/// Tells why a test is skipped.
pub fn missing<T>(what: &str) -> Option<T> {
    println!("SKIPPED: {what}");
    None
}

/// An agent with a loopback of its own. It ends with its stream, and all that it started with it.
pub struct Agent {
    child: Child,
    link: Option<Link>,
}

impl Agent {
    pub fn start(program: &Path) -> Self {
        Self::start_hiding(program, &[])
    }

    /// One to whom these directories are empty and its own.
    pub fn start_hiding(program: &Path, hidden: &[&str]) -> Self {
        let script = "ip link set lo up && ip addr add 10.97.0.2/32 dev lo || exit 1
            program=$0
            for hidden; do mkdir -p \"$hidden\" && mount -t tmpfs -o mode=755 none \"$hidden\" || exit 1; done
            exec \"$program\"";
        let mut child = Command::new("unshare")
            .args(["-n", "-m", "--propagation", "private", "--", "sh", "-c", script])
            .arg(program)
            .args(hidden)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let link = Link::open(Box::new(reader), Box::new(writer), TIMEOUT, Duration::from_secs(600)).unwrap();
        Self { child, link: Some(link) }
    }

    pub fn link(&self) -> &Link {
        self.link.as_ref().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.link.take();
        let _ = self.child.wait();
    }
}
