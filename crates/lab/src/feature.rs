//! What the kernel was asked for and refused: why that is likely so, and the remedy.
//!
//! Whether a kernel has a feature is found out by using it. The kernel loads most of its modules by itself when they are
//! needed, so lists of what is loaded (/proc/filesystems, /proc/modules, /sys/module) say nothing about what can be had.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::system::uname;
use tare_model::Refusal;

use crate::rootless::{is_rootless, user_name};

/// What groups that are not mapped into a user namespace are shown as (/proc/sys/kernel/overflowgid).
const OVERFLOW_GID: u32 = 65_534;

/// Opens a device for reading and writing. The kernel loads the module of one that has a node from the start.
///
/// # Errors
/// The reason, with the kernel's answer, and the remedy. `module` is what provides the device.
pub fn open_device(path: &Path, module: &str) -> Result<File, Refusal> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|error| device_refusal(path, &error, module))
}

/// Why a device could not be opened, and the remedy: that of a user who is not root is one command for root.
pub fn device_refusal(path: &Path, error: &io::Error, module: &str) -> Refusal {
    let refused = refusal(&format!("{} cannot be opened", path.display()), error, module);
    let denied = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) && is_rootless();
    let groups = || fs::read_to_string("/etc/group").unwrap_or_default();
    match fs::metadata(path).ok().filter(|_| denied) {
        Some(seen) => {
            Refusal { remedy: admitting(path, (seen.mode(), seen.gid()), &groups(), &user_name()), ..refused }
        }
        None => refused,
    }
}

/// How root admits a user to a device of this mode and group.
fn admitting(path: &Path, (mode, gid): (u32, u32), groups: &str, user: &str) -> String {
    let called = |line: &str| {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse::<u32>().ok()?))
    };
    let named: Vec<_> = groups.lines().filter_map(called).collect();
    let of = |number: u32| named.iter().find(|(_, gid)| *gid == number);
    // In a user namespace every other group has this number; devices of machines are the group `kvm`'s (udev's own rules).
    let group = if gid == OVERFLOW_GID { named.iter().find(|(name, _)| name == "kvm") } else { of(gid) };
    match group.filter(|(_, gid)| mode & 0o060 == 0o060 && *gid != 0) {
        Some((group, _)) => format!("Root runs `usermod -aG {group} {user}`; log in anew then"),
        None => format!("Root runs `setfacl -m u:{user}:rw {}`, which holds until the next boot", path.display()),
    }
}

/// Why the kernel refused a feature, and the remedy. `what` is a clause, such as "an overlay cannot be mounted"; `module` is
/// what provides it.
pub fn refusal(what: &str, error: &io::Error, module: &str) -> Refusal {
    let Refusal { reason, remedy } = Host::here().likely(error, module);
    Refusal::new(format!("{what}: {error}: {reason}"), remedy)
}

/// The same in a sentence, as a remedy of the lab's errors.
pub(crate) fn remedy(error: &io::Error, module: &str) -> String {
    let Refusal { reason, remedy } = Host::here().likely(error, module);
    format!("Here {reason}: {remedy}")
}

/// What usually helps against an error number of the calls that this crate makes.
pub(crate) fn remedy_for(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "Run as root, or on a kernel that allows unprivileged user namespaces (sysctl \
             kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, and \
             kernel.apparmor_restrict_unprivileged_userns=0 where AppArmor restricts them)"
        }
        Some(libc::EMFILE | libc::ENFILE) => "Raise the limit of open files (ulimit -n)",
        Some(libc::ENOSPC) => {
            "A limit of the kernel is reached: see sysctl user.max_net_namespaces, user.max_user_namespaces, or the \
             space on the file system"
        }
        Some(libc::EROFS) => "The file system is mounted read-only here: run where it can be written",
        Some(libc::EBUSY) => "Something still uses it: `tare reap` ends what earlier runs left, then try again",
        Some(libc::ENOSYS | libc::EOPNOTSUPP) => "This kernel does not have the call: Linux 5.10 or newer is needed",
        _ => "`tare doctor` tells what this host can do",
    }
}

/// What an answer of the kernel's depends on.
struct Host {
    /// The kernel that runs.
    release: String,
    /// Where modules of kernels are, a directory for each.
    modules: PathBuf,
    /// Whether this user is root, and in no user namespace of tare's.
    root: bool,
}

impl Host {
    fn here() -> Self {
        let release = uname().release().to_string_lossy().into_owned();
        Self { release, modules: "/lib/modules".into(), root: !is_rootless() }
    }

    /// Why it is likely so, and the remedy.
    fn likely(&self, error: &io::Error, module: &str) -> Refusal {
        match error.raw_os_error() {
            Some(libc::ENODEV | libc::ENOENT | libc::ENXIO | libc::EOPNOTSUPP) => self.without(module),
            Some(libc::EACCES) if self.root => Refusal::new(
                "root itself is refused, which is mostly the doing of SELinux or AppArmor",
                "Look for the denial (`ausearch -m avc -ts recent`, or `journalctl -k | grep -i denied`) and allow it there",
            ),
            Some(libc::EPERM) if self.root => Refusal::new(
                "root itself is refused, as in a container or a sandbox that withholds the right",
                "Run tare on the host itself, or in a container with all rights (`--privileged`)",
            ),
            Some(libc::EPERM | libc::EACCES) => Refusal::new("this user may not", remedy_for(error)),
            Some(libc::EBUSY) => Refusal::new("somebody else uses it", "End whoever uses it (`fuser -v` names them)"),
            _ => Refusal::new("the kernel's log may say why", "Look into it with `dmesg | tail`"),
        }
    }

    /// The same where nothing in the kernel answered.
    fn without(&self, module: &str) -> Refusal {
        let (release, modules) = (&self.release, self.modules.display());
        if self.modules.join(release).is_dir() {
            return Refusal::new(
                format!("the running kernel {release} has loaded no module {module}"),
                format!(
                    "`modprobe {module}` loads it or says why not; some distributions have it in a package of its own \
                     (Ubuntu: linux-modules-extra-{release})"
                ),
            );
        }
        let mut others: Vec<String> = fs::read_dir(&self.modules)
            .map(|found| found.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
            .unwrap_or_default();
        others.sort_unstable();
        if others.is_empty() {
            return Refusal::new(
                format!("it is not built into the running kernel {release}, which has no modules in {modules}"),
                format!("Install the modules of this kernel, or run one that has {module}"),
            );
        }
        Refusal::new(
            format!(
                "{modules}/{release} is missing, so the running kernel can load no module {module}; there are modules of \
                 {}, as after an upgrade of the kernel",
                others.join(", ")
            ),
            "Reboot into the kernel that is installed",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(modules: &Path, root: bool) -> Host {
        Host { release: "6.1.0-9".into(), modules: modules.into(), root }
    }

    fn likely(host: &Host, errno: i32) -> Refusal {
        host.likely(&io::Error::from_raw_os_error(errno), "overlay")
    }

    #[test]
    fn modules_that_went_with_an_upgrade_are_distinguished_from_one_that_is_not_loaded() {
        let modules = tempfile::tempdir().unwrap();
        let host = host(modules.path(), true);
        let found = likely(&host, libc::ENODEV);
        assert!(found.reason.contains("no modules in") && found.remedy.contains("Install"), "{found}");
        fs::create_dir(modules.path().join("6.1.0-10")).unwrap();
        let Refusal { reason, remedy } = likely(&host, libc::ENODEV);
        assert!(reason.contains("6.1.0-9 is missing") && reason.contains("6.1.0-10"), "{reason}");
        assert!(remedy.contains("Reboot"), "{remedy}");
        fs::create_dir(modules.path().join("6.1.0-9")).unwrap();
        for errno in [libc::ENODEV, libc::ENOENT, libc::EOPNOTSUPP] {
            let found = likely(&host, errno);
            assert!(found.reason.contains("no module overlay"), "{found}");
            assert!(found.remedy.contains("`modprobe overlay`"), "{found}");
        }
    }

    #[test]
    fn who_refuses_root_is_distinguished_from_what_a_user_may_not() {
        let modules = tempfile::tempdir().unwrap();
        let said = |root, errno| likely(&host(modules.path(), root), errno);
        assert!(said(true, libc::EACCES).reason.contains("SELinux or AppArmor"));
        assert!(said(true, libc::EPERM).reason.contains("container"));
        assert!(said(false, libc::EPERM).remedy.contains("user namespaces"));
        assert!(said(true, libc::EBUSY).reason.contains("somebody else"));
    }

    #[test]
    fn a_user_is_admitted_to_a_device_by_its_group_or_alone() {
        let groups = "root:x:0:\nkvm:x:105:\ntun:x:9:\n";
        let remedy = |seen| admitting(Path::new("/dev/d"), seen, groups, "ada");
        assert!(remedy((0o20660, 105)).contains("`usermod -aG kvm ada`"));
        assert!(remedy((0o20660, OVERFLOW_GID)).contains("`usermod -aG kvm ada`"));
        assert!(remedy((0o20660, 9)).contains("usermod -aG tun ada"));
        for seen in [(0o20600, 105), (0o20660, 0), (0o20660, 7)] {
            assert!(remedy(seen).contains("`setfacl -m u:ada:rw /dev/d`"));
        }
    }

    #[test]
    fn a_device_that_does_not_open_is_named_with_the_kernels_answer() {
        let Refusal { reason, remedy } = open_device(Path::new("/dev/none/at/all"), "none_such").unwrap_err();
        assert!(reason.contains("/dev/none/at/all cannot be opened") && reason.contains("os error 2"), "{reason}");
        assert!(!remedy.is_empty() && (reason.contains("none_such") || remedy.contains("none_such")), "{remedy}");
        assert!(open_device(Path::new("/dev/null"), "none").is_ok());
    }
}
