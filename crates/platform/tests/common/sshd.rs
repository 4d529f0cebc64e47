//! Real sshds for tests, on the loopback of a network namespace of the test's own.
#![allow(dead_code, reason = "the tests of two crates share it")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// Set in the process that runs inside: the folder of its sshds.
const FOLDER: &str = "TARE_TEST_SSHD";

/// An sshd as everybody has it.
pub const PLAIN: u16 = 2201;
/// Prints without end, whatever it is asked.
pub const ENDLESS: u16 = 2202;
/// Closes at once, whatever it is asked.
pub const CLOSES: u16 = 2203;
/// Says that it is another machine.
pub const OTHER_MACHINE: u16 = 2204;
/// Has megabytes to say before it does what it is asked, as a shell's start-up files may.
pub const CHATTY: u16 = 2205;
/// Nobody listens there.
pub const NOBODY: u16 = 2299;

/// The sshds of one test.
pub struct Sshd {
    folder: PathBuf,
}

impl Sshd {
    /// Options with which the platform reaches one of them.
    pub fn options(&self, port: u16) -> Value {
        json!({
            "host": "127.0.0.1", "port": port, "user": "root", "config": "/dev/null",
            "identity": self.folder.join("user"), "host-key": self.host_key(),
        })
    }

    /// The host's public key.
    pub fn host_key(&self) -> String {
        std::fs::read_to_string(self.folder.join("host.pub")).unwrap().trim().to_owned()
    }

    /// Its fingerprint.
    pub fn fingerprint(&self) -> String {
        let printed = Command::new("ssh-keygen").arg("-lf").arg(self.folder.join("host.pub")).output().unwrap();
        String::from_utf8(printed.stdout).unwrap().split(' ').nth(1).unwrap().to_owned()
    }

    /// A folder for the test's own files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Runs `body` in a process of its own, in a network namespace where the sshds listen. `test` is the calling test's name;
/// that process runs nothing else. Why not, where that cannot be done here.
pub fn apart(skipped: fn(&str), body: impl FnOnce(&Sshd)) {
    apart_with(skipped, &[], body);
}

/// Whether this is the process that runs inside.
pub fn is_inside() -> bool {
    std::env::var_os(FOLDER).is_some()
}

/// The same, with variables in the environment of that process.
pub fn apart_with(skipped: fn(&str), variables: &[(&str, String)], body: impl FnOnce(&Sshd)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return body(&Sshd { folder: folder.into() });
    }
    let root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n");
    let has = |program: &&str| {
        Command::new("sh").args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin; command -v {program}")]).output()
    };
    let needed = ["sshd", "ssh", "ssh-keygen", "unshare", "ip"];
    if let Some(missing) = needed.iter().find(|program| !has(program).is_ok_and(|out| out.status.success())) {
        return skipped(&format!("there is no {missing} here"));
    }
    if !root {
        return skipped("sshd and a network namespace need root");
    }
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let thread = std::thread::current();
    let test = thread.name().unwrap();
    // The daemons end with the test, however it ends: they are killed by their numbers.
    let script = "ip link set lo up && mkdir -p /run/sshd || exit 99; pids=; \
        for config in \"$1\"/*.conf; do /usr/sbin/sshd -D -e -f \"$config\" 2>\"$config.log\" & pids=\"$pids $!\"; done; \
        for config in \"$1\"/*.conf; do until grep -q listening \"$config.log\"; do \
            n=$((n+1)); [ $n -lt 500 ] || exit 98; sleep 0.02; done; done; \
        \"$2\" --exact --nocapture \"$3\"; status=$?; kill $pids; exit $status";
    let ran = Command::new("unshare")
        .args(["--net", "sh", "-c", script, "apart"])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(FOLDER, folder.path())
        .env("HOME", folder.path())
        .env_remove("SSH_AUTH_SOCK")
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()
        .unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let _ = writeln!(std::io::stdout(), "{said}");
    match ran.status.code() {
        Some(98 | 99) => skipped(&format!("a network namespace with an sshd cannot be had here: {said}")),
        code => assert_eq!(code, Some(0), "{said}"),
    }
    assert!(said.contains("1 passed"), "no such test: {test}");
}

fn prepare(folder: &Path) {
    for key in ["host", "user"] {
        let made =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key)).output();
        assert!(made.unwrap().status.success());
    }
    std::fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
    let uname = folder.join("uname");
    std::fs::write(&uname, "#!/bin/sh\nif [ \"$1\" = -m ]; then echo vax; else echo Linux; fi\n").unwrap();
    std::fs::set_permissions(&uname, std::fs::Permissions::from_mode(0o755)).unwrap();
    let at = folder.display();
    let forced = [
        (PLAIN, String::new()),
        (ENDLESS, "ForceCommand yes welcome to this machine".into()),
        (CLOSES, "ForceCommand exit 0".into()),
        (OTHER_MACHINE, format!("ForceCommand PATH={at}:$PATH sh -c \"$SSH_ORIGINAL_COMMAND\"")),
        (CHATTY, "ForceCommand yes motd | head -c 4000000; sh -c \"$SSH_ORIGINAL_COMMAND\"".into()),
    ];
    for (port, force) in forced {
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\nMaxStartups 100\n{force}\n"
        );
        std::fs::write(folder.join(format!("{port}.conf")), config).unwrap();
    }
}
