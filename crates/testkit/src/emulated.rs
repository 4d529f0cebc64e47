//! An ordinary host, emulated whole: systemd, pure control groups of version 2, AppArmor, and a KVM that boots guests.
//!
//! QEMU emulates a processor with AMD's virtualisation (or arm64, without KVM), so what runs on the host 20 to 50 times slower than elsewhere is
//! otherwise as its users have it. Assert outcomes there, never speeds. The host reaches no network: files come in by ssh.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "part of the tests: what fails here fails a test"
)]

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a host may take to boot. It takes one minute on two cores at rest.
const BOOT: Duration = Duration::from_secs(400);
/// Its memory, as QEMU writes it.
const MEMORY: &str = "5G";

/// What a host is emulated with.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    program: &'static str,
    /// A processor that this QEMU must know, and how it is asked for.
    needs: &'static str,
    processor: &'static str,
    board: &'static str,
    console: &'static str,
}

/// A host whose processor has AMD's virtualisation, which KVM needs.
pub const AMD64: Machine = Machine {
    program: "qemu-system-x86_64",
    needs: "svm",
    processor: "EPYC,+svm,+npt",
    board: "q35",
    console: "ttyS0,115200",
};

/// A host without KVM.
pub const ARM64: Machine = Machine {
    program: "qemu-system-aarch64",
    needs: "cortex-a72",
    processor: "cortex-a72",
    board: "virt",
    console: "ttyAMA0",
};

/// What a host has beside what every one has.
#[derive(Debug, Default)]
pub struct Hardware {
    /// The QEMU that emulates it, with the arguments that come before all others; empty: the one in `PATH`.
    pub qemu: Vec<String>,
    /// Further arguments of QEMU's.
    pub devices: Vec<String>,
    /// Further words for the host's kernel.
    pub kernel: &'static str,
}

/// What QEMU printed, and the host's console.
const LOG: &str = "qemu.log";
const CONSOLE: &str = "console.log";

/// A host that is up. It ends with this value, and with this process however that ends.
#[derive(Debug)]
pub struct EmulatedHost {
    process: Child,
    port: u16,
    key: PathBuf,
    place: TempDir,
}

impl EmulatedHost {
    /// Boots what `scripts/test-host-disk.sh` made in `disk`, with a disk that keeps nothing, and waits until it answers.
    #[track_caller]
    pub fn boot(disk: &Path, machine: Machine, hardware: &Hardware) -> Self {
        let mut host = Self::begin(disk, machine, hardware);
        host.wait();
        host
    }

    /// The same without waiting. The host ends with the thread that this is called in.
    #[track_caller]
    pub fn begin(disk: &Path, machine: Machine, hardware: &Hardware) -> Self {
        let place = tempfile::tempdir().unwrap();
        let overlay = place.path().join("disk.qcow2");
        let mut made = Command::new("qemu-img");
        made.args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"]).arg(disk.join("disk.raw")).arg(&overlay);
        assert!(made.status().unwrap().success(), "qemu-img makes no disk");
        let port = free_port();
        let log = File::create(place.path().join(LOG)).unwrap();
        let console = place.path().join(CONSOLE);
        let (console_of, more) = (machine.console, hardware.kernel);
        let kernel = format!("root=/dev/vda rw console={console_of} net.ifnames=0 mitigations=off quiet {more}");
        // QEMU ends with the thread that started it: a test that is killed leaves no host.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL"]);
        match hardware.qemu.is_empty() {
            true => qemu.arg(machine.program),
            false => qemu.args(&hardware.qemu),
        };
        qemu.args(["-name", "tarehost", "-accel", "tcg,thread=multi,tb-size=512", "-smp", "2", "-m", MEMORY])
            .args(["-cpu", machine.processor, "-M", machine.board])
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            .arg("-kernel")
            .arg(disk.join("vmlinuz"))
            .arg("-initrd")
            .arg(disk.join("initrd"))
            .args(["-append", &kernel])
            .args(["-drive", &format!("file={},if=virtio,cache=unsafe,format=qcow2", overlay.display())])
            .args(["-netdev", &format!("user,id=n,hostfwd=tcp:127.0.0.1:{port}-:22,restrict=on")])
            .args(["-device", "virtio-net-pci,netdev=n,romfile=", "-device", "virtio-rng-pci"])
            .args(["-chardev", &format!("file,id=s,path={}", console.display()), "-serial", "chardev:s"])
            .args(&hardware.devices)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let process = qemu.spawn().unwrap();
        Self { process, port, key: disk.join("key"), place }
    }

    /// Waits until it answers.
    #[track_caller]
    pub fn wait(&mut self) {
        let deadline = Instant::now() + BOOT;
        while !self.run("root", "true").status.success() {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "the host ended while it booted: {}", self.last_words());
            assert!(Instant::now() < deadline, "the host did not answer within {BOOT:?}: {}", self.last_words());
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// The end of what QEMU and the host's console printed.
    fn last_words(&self) -> String {
        let end = |name| {
            let text = fs::read(self.place.path().join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            text.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
        };
        format!("{}\n{}", end(LOG), end(CONSOLE))
    }

    /// Whether it has ended, though nobody asked it to.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Runs a line of shell there as `user`.
    pub fn run(&self, user: &str, line: &str) -> Output {
        self.ssh(user).arg(line).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a line of shell there as root, fails unless it succeeds, and gives what it printed.
    #[track_caller]
    pub fn sh(&self, line: &str) -> String {
        let output = self.run("root", line);
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        // 255 is ssh's own: the host may be gone.
        let words = if output.status.code() == Some(255) { self.last_words() } else { String::new() };
        let status = output.status;
        assert!(status.success(), "`{line}` ended with {status}\n--- stdout\n{out}\n--- stderr\n{err}{words}");
        out
    }

    /// Copies a file to a path there.
    #[track_caller]
    pub fn put(&self, file: &Path, path: &str) {
        let file = File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let status = self.ssh("root").arg(format!("cat >{path}")).stdin(file).status().unwrap();
        assert!(status.success(), "{path} was not written");
    }

    /// Writes a text to a path there.
    #[track_caller]
    pub fn write(&self, text: &str, path: &str) {
        let file = self.place.path().join("text");
        fs::write(&file, text).unwrap();
        self.put(&file, path);
    }

    /// Copies a folder of there into `to`.
    #[track_caller]
    pub fn fetch(&self, path: &str, to: &Path) {
        let archive = self.place.path().join("archive.tar");
        let stdout = File::create(&archive).unwrap();
        let line = format!("tar -C {path} -cf - .");
        assert!(self.ssh("root").arg(&line).stdin(Stdio::null()).stdout(stdout).status().unwrap().success(), "{line}");
        fs::create_dir_all(to).unwrap();
        let status = Command::new("tar").arg("-C").arg(to).arg("-xf").arg(&archive).status().unwrap();
        assert!(status.success(), "{path} was not unpacked");
    }

    fn ssh(&self, user: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-i").arg(&self.key).args(["-p", &self.port.to_string()]);
        for option in [
            "IdentitiesOnly=yes",
            "BatchMode=yes",
            // The key of a host that was made a minute ago is known to nobody.
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ConnectTimeout=10",
            "ServerAliveInterval=20",
        ] {
            ssh.args(["-o", option]);
        }
        ssh.arg(format!("{user}@127.0.0.1"));
        ssh
    }
}

impl Drop for EmulatedHost {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Why this machine emulates no such host; `None` when it can.
pub fn unmet(machine: Machine) -> Option<String> {
    let Machine { program, needs, .. } = machine;
    let help = Command::new(program).args(["-cpu", "help"]).output();
    let Ok(help) = help else { return Some(format!("there is no {program}")) };
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    if !help.split_whitespace().any(|word| word == needs) {
        return Some(format!("this {program} does not emulate what the host needs ({needs})"));
    }
    let missing = ["qemu-img", "ssh", "setpriv", "tar"];
    let is_missing = |program: &&str| Command::new(program).arg("--version").output().is_err();
    missing.into_iter().find(is_missing).map(|program| format!("there is no {program}"))
}

/// A port of the loopback that nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
