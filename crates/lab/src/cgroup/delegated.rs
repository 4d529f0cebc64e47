//! Groups for a user who is not root, and for root in a container: a group of version 2 that is tare's own.
//!
//! A group with processes cannot give its controllers to groups below it. So tare moves into a group of its own below, [`LEAF`],
//! before anything else: the group above is then empty, and guests' groups are made there. That is done only where nobody else
//! is in that group and whoever manages the host has handed it out (systemd says so by an attribute). Without root
//! systemd is asked for such a group, by beginning anew through `systemd-run --user --scope`, which keeps process, terminal,
//! environment and exit code. systemd removes the group with all in it when its last process is gone.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::Access;

use super::hierarchy::{NEEDED_V2, closed, crowded, missing};
use super::{Hierarchies, make_dir, write};
use crate::{process, rootless};

/// Name of the group that tare moves into. It does not begin as those of runs do.
pub(super) const LEAF: &str = "controller.tare";
/// There while systemd manages the host (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";
/// systemd marks so a group that it leaves to others (since version 251).
const DELEGATED_ATTRIBUTE: &str = "user.delegate";
/// How long systemd may take to make a scope.
const SCOPE_WITHIN: Duration = Duration::from_secs(10);

/// Why systemd gave this user no group.
static REFUSED: OnceLock<String> = OnceLock::new();

/// Finds this process a group below which limits can be set, where it has none yet. `arguments` are those that this program was
/// started with: it may have to begin anew in another group, and then this does not return.
///
/// Call it first thing in `main`, before anything is made or entered. What could not be had, [`Hierarchies::unavailable`] says.
pub fn settle_in_own_group(arguments: impl Iterator<Item = OsString>) {
    let found = Hierarchies::detect();
    let Some(base) = found.v2_base() else { return };
    let rootless = rootless::is_rootless();
    // Root on the host itself: the root of the hierarchy may have processes and groups with limits.
    if crowded(base).is_none() && (!rootless || found.unavailable().is_none()) {
        return;
    }
    if is_ours_alone(base, Path::new(SYSTEMD).exists()) {
        // Where it fails the group stays crowded, which is what is said then.
        let _ = move_below(base, std::process::id());
    } else if rootless && Path::new(SYSTEMD).exists() && !base.ends_with(scope()) {
        let _ = REFUSED.set(begin_anew(arguments));
    }
}

/// Whether groups may be made in `base`, by its rights, its controllers and whoever manages it, and this process alone is in it.
fn is_ours_alone(base: &Path, under_systemd: bool) -> bool {
    let writable = |file: &str| rustix::fs::access(base.join(file), Access::WRITE_OK).is_ok();
    let members = fs::read_to_string(base.join("cgroup.procs")).unwrap_or_default();
    let alone = members.lines().eq([std::process::id().to_string().as_str()]);
    let handed_out = || base.ends_with(scope()) || is_marked(base);
    alone
        && closed(base).is_none()
        && writable("cgroup.procs")
        && writable("cgroup.subtree_control")
        && missing(base, &NEEDED_V2).is_empty()
        && (!under_systemd || handed_out())
}

fn is_marked(base: &Path) -> bool {
    let mut value = [0; 8];
    rustix::fs::getxattr(base, DELEGATED_ATTRIBUTE, &mut value[..]).is_ok_and(|length| value[..length] == *b"1")
}

/// Moves a process of `base` into tare's own group below it.
fn move_below(base: &Path, pid: u32) -> crate::Result<()> {
    let leaf = base.join(LEAF);
    make_dir(&leaf)?;
    write(&leaf.join("cgroup.procs"), &pid.to_string())
}

/// The scope that this process asks for. A program that begins anew keeps number and start: so it knows that it has asked.
fn scope() -> String {
    let pid = std::process::id();
    format!("tare-{pid}-{}.scope", process::stat(pid).map_or(0, |stat| stat.started))
}

/// Begins this program anew in a scope of its own. Returns only where that is not possible: why.
fn begin_anew(arguments: impl Iterator<Item = OsString>) -> String {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return format!("tare's own program cannot be found again: {error}"),
    };
    // Tried first: once replaced, this program could not go on without.
    if let Err(why) = try_scope() {
        return why;
    }
    let error = scoped(Some(&scope())).arg(program).args(arguments).exec();
    format!("systemd-run cannot be started: {error}")
}

/// `systemd-run` up to the program that it starts. The limit on processes of a scope is not for guests, whose groups have their own.
fn scoped(unit: Option<&str>) -> Command {
    let mut command = Command::new("systemd-run");
    command.args(["--user", "--scope", "--quiet", "--collect", "--no-ask-password"]);
    command.args(["--property=Delegate=yes", "--property=TasksMax=infinity"]);
    command.args(unit.map(|unit| format!("--unit={unit}"))).arg("--");
    command
}

/// Whether systemd gives this user a scope, or why not.
fn try_scope() -> Result<(), String> {
    let mut command = scoped(None);
    command.arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| format!("`systemd-run --user --scope` cannot be started: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let mut ended = Ok(None);
    process::wait_until(SCOPE_WITHIN, || {
        ended = child.try_wait();
        !matches!(ended, Ok(None))
    });
    let Some(status) = ended.map_err(failed)? else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("`systemd-run --user --scope` did not answer within {} s", SCOPE_WITHIN.as_secs()));
    };
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        // What it says is shown to people, and may be nothing.
        let _ = stderr.take(1000).read_to_string(&mut said);
    }
    let said = said.trim().replace('\n', "; ");
    if status.success() { Ok(()) } else { Err(format!("`systemd-run --user --scope` failed: {said}")) }
}

/// What helps a user whose own group can have none below it.
pub(super) fn remedy() -> String {
    let uid = rootless::outer_uid();
    match REFUSED.get() {
        Some(why) => format!(
            "A group of this user's own could not be had: {why}. Log in as this user from elsewhere or at a console: `su` and `sudo` make no \
             session. Or have root run `loginctl enable-linger {uid}`, and set XDG_RUNTIME_DIR=/run/user/{uid} here. Or run as root"
        ),
        None => "Run as root to give every arm equal limits".to_owned(),
    }
}

/// Why a group of this user's own does for no limits.
pub(super) fn refused(base: &Path, missing: &[&str]) -> String {
    let (base, missing) = (base.display(), missing.join(" and "));
    format!("the control group {base} does not have {missing}: this user was not given it. {}", remedy_for_missing())
}

/// How a user is given every controller that tare uses.
pub(super) fn remedy_for_missing() -> String {
    if !rootless::is_rootless() {
        return "Mount cgroup2 with these controllers, or run on the host instead of in a container".to_owned();
    }
    if REFUSED.get().is_some() || !Path::new(SYSTEMD).exists() {
        return remedy();
    }
    format!("To have them, root runs: {}", command_for_all(rootless::outer_uid()))
}

/// One line for root's shell: systemd gives each user's manager all controllers that tare uses, and that of this user learns of it.
fn command_for_all(uid: u32) -> String {
    format!(
        "mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset memory pids\\n' \
         > /etc/systemd/system/user@.service.d/tare.conf && systemctl daemon-reload && \
         systemctl --user --machine={uid}@.host daemon-reexec"
    )
}

/// Where this process is kept by the user's own manager: when that ends, and how it is kept. `None` elsewhere, and where it is
/// kept already.
pub fn ends_with_session() -> Option<String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let uid = rootless::outer_uid();
    let name = rootless::name_of(&users, uid)?;
    let ends = is_managed(&own, uid) && !Path::new("/var/lib/systemd/linger").join(name).exists();
    ends.then(|| {
        format!(
            "a run is stopped when this user's last session ends, also in the background. To keep it, root runs: \
             loginctl enable-linger {uid}"
        )
    })
}

/// Whether `/proc/self/cgroup` shows a process of a user's own manager.
fn is_managed(own: &str, uid: u32) -> bool {
    let manager = format!("user@{uid}.service");
    own.lines().any(|line| line.starts_with("0::") && line.split('/').any(|part| part == manager))
}

#[cfg(test)]
mod tests;
