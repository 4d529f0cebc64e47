//! A simulated vCenter for tests, beside real sshds that stand for its machines.
#![allow(dead_code, reason = "the tests of two crates share it")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::sshd::{Sshd, apart_with, is_inside};

/// Where it listens in the test's namespace.
const LISTEN: &str = "127.0.0.1:2290";
/// Its only user.
const USER: &str = "tester";
/// And that one's password, as it is to be found nowhere.
pub const PASSWORD: &str = "hunter2-of-the-simulator";

/// The simulator. It ends with this value.
pub struct Vcsim {
    child: Child,
}

/// Where `scripts/vsphere.sh` puts govc and vcsim.
fn tools() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("tare/vsphere")
}

/// Runs `body` as [`super::sshd::apart`] does, with a vCenter of two machines, `web-1` and `web-2`, and an environment in which govc
/// reaches it by this password. Why not, where that cannot be done here.
pub fn apart(skipped: fn(&str), password: &str, body: impl FnOnce(&Sshd, &Vcsim)) {
    let tools = tools();
    if !is_inside() && !["govc", "vcsim"].iter().all(|program| tools.join(program).is_file()) {
        return skipped("there is no govc and no vcsim here: scripts/vsphere.sh builds them, and takes Go");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let variables = [
        ("PATH", format!("{}:{path}", tools.display())),
        ("GOVC_URL", format!("http://{LISTEN}/sdk")),
        ("GOVC_USERNAME", USER.to_owned()),
        ("GOVC_PASSWORD", password.to_owned()),
    ];
    apart_with(skipped, &variables, |sshd| body(sshd, &Vcsim::start()));
}

impl Vcsim {
    fn start() -> Self {
        let mut command = Command::new("vcsim");
        command.args(["-listen", LISTEN, "-username", USER]).env("VCSIM_PASSWORD", PASSWORD);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said.trim(), format!("http://{LISTEN}/sdk"));
        let started = Self { child };
        for (was, is) in [("DC0_H0_VM0", "web-1"), ("DC0_H0_VM1", "web-2")] {
            started.govc(&["object.rename", &format!("/DC0/vm/{was}"), is]);
            started.govc(&["vm.power", "-off", is]);
        }
        started
    }

    /// What govc prints, by the right password, whatever the one of the test is.
    pub fn govc(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("govc");
        // A session of its own: one of the test's would stand for the password.
        command.args(arguments).env("GOVC_PASSWORD", PASSWORD).env("GOVC_PERSIST_SESSION", "false");
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    /// Whether a machine is on.
    pub fn is_on(&self, vm: &str) -> bool {
        match self.govc(&["object.collect", "-s", &format!("/DC0/vm/{vm}"), "runtime.powerState"]).trim() {
            "poweredOn" => true,
            "poweredOff" => false,
            other => panic!("{other}"),
        }
    }

    /// Makes a snapshot: what vSphere calls it.
    pub fn make_snapshot(&self, vm: &str, name: &str) -> String {
        self.govc(&["snapshot.create", "-m=false", "-vm", vm, name]);
        self.current_snapshot(vm)
    }

    /// The snapshot that a machine is at.
    pub fn current_snapshot(&self, vm: &str) -> String {
        let current = ["object.collect", "-s", &format!("/DC0/vm/{vm}"), "snapshot.currentSnapshot"];
        self.govc(&current).trim().to_owned()
    }
}

impl Drop for Vcsim {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
