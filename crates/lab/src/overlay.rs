//! Whether overlays can be mounted here: one is, where nobody else sees it.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use tare_model::Refusal;

use crate::feature::refusal;
use crate::sys::{self, Unshare};

/// Where the attempt is made: something that is there to mount on, with its four directories in it.
const PLACES: [(&CStr, [&CStr; 4]); 3] = [
    (c"/tmp", [c"/tmp/lower", c"/tmp/upper", c"/tmp/work", c"/tmp/merged"]),
    (c"/run", [c"/run/lower", c"/run/upper", c"/run/work", c"/run/merged"]),
    (c"/mnt", [c"/mnt/lower", c"/mnt/upper", c"/mnt/work", c"/mnt/merged"]),
];

/// What cannot be done, by the step that fails.
const STEPS: [&str; 6] = [
    "no mount namespace can be made, and every guest has one",
    "no users can be mapped in a user namespace",
    "mounts cannot be made private",
    "no tmpfs can be mounted",
    "no directory can be made in a tmpfs",
    "an overlay cannot be mounted",
];

/// Why overlays cannot be mounted on this host, and the remedy; `None`: one was. Tried once in this process, by a mount in a
/// mount namespace of a process of its own (without root: in a user namespace too), which both end with it. The kernel loads
/// the module for it.
pub fn overlay_refusal() -> Option<Refusal> {
    static FOUND: OnceLock<Option<Refusal>> = OnceLock::new();
    FOUND.get_or_init(|| refused(c"overlay")).clone()
}

/// Why a file system of this type cannot be mounted as an overlay is.
fn refused(kind: &CStr) -> Option<Refusal> {
    let module = kind.to_string_lossy();
    let attempt = match Attempt::new(kind) {
        Ok(attempt) => attempt,
        Err(error) => return Some(refusal("no mount can be tried", &error, &module)),
    };
    match sys::in_child(|| attempt.run()) {
        Ok(Ok(())) => None,
        Ok(Err((step, errno))) => {
            let what = STEPS.get(usize::from(step)).copied().unwrap_or("an overlay cannot be mounted");
            Some(refusal(what, &io::Error::from_raw_os_error(errno), &module))
        }
        Err(error) => Some(refusal("no process can be started that mounts an overlay", &error, &module)),
    }
}

/// All that the attempt needs, made before its process: that may allocate nothing.
struct Attempt<'a> {
    kind: &'a CStr,
    /// The user and the group outside, as the kernel takes their maps; `None`: no user namespace is needed.
    maps: Option<[(&'static CStr, String); 3]>,
    place: &'static CStr,
    directories: [&'static CStr; 4],
    options: CString,
}

impl<'a> Attempt<'a> {
    fn new(kind: &'a CStr) -> io::Result<Self> {
        let there = |(place, _): &&(&CStr, _)| place.to_str().is_ok_and(|place| Path::new(place).is_dir());
        let (place, directories) = *PLACES.iter().find(there).ok_or(io::ErrorKind::NotFound)?;
        let user = rustix::process::geteuid();
        let group = rustix::process::getegid().as_raw();
        let maps = (!user.is_root()).then(|| {
            let user = user.as_raw();
            [
                (c"/proc/self/setgroups", "deny".to_owned()),
                (c"/proc/self/uid_map", format!("0 {user} 1")),
                (c"/proc/self/gid_map", format!("0 {group} 1")),
            ]
        });
        let [lower, upper, work, _] = directories.map(CStr::to_string_lossy);
        // trusted.* attributes are for the host's root alone, as the agent's own mounts have it.
        let attributes = if maps.is_some() || !is_initial_user_namespace() { ",userxattr" } else { "" };
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}{attributes}");
        Ok(Self { kind, maps, place, directories, options: CString::new(options)? })
    }

    /// Mounts one, or gives the step that failed with the kernel's answer. Allocates nothing.
    fn run(&self) -> Result<(), (u8, i32)> {
        let failed = |step| move |error: Errno| (step, error.raw_os_error());
        let kinds = if self.maps.is_some() { Unshare::UserAndMounts } else { Unshare::Mounts };
        sys::unshare(kinds).map_err(|error| (0, error.raw_os_error().unwrap_or(0)))?;
        for (file, text) in self.maps.iter().flatten() {
            let opened = openat(CWD, *file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed(1))?;
            rustix::io::write(&opened, text.as_bytes()).map_err(failed(1))?;
        }
        mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).map_err(failed(2))?;
        mount(c"tmpfs", self.place, c"tmpfs", MountFlags::empty(), None).map_err(failed(3))?;
        for directory in self.directories {
            mkdirat(CWD, directory, Mode::RWXU).map_err(failed(4))?;
        }
        let [.., merged] = self.directories;
        mount(self.kind, merged, self.kind, MountFlags::empty(), self.options.as_c_str()).map_err(failed(5))
    }
}

fn is_initial_user_namespace() -> bool {
    // The initial namespace maps all of the ids onto themselves (user_namespaces(7)).
    fs::read_to_string("/proc/self/uid_map").map_or(true, |map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_is_mounted_where_nobody_sees_it() {
        let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let root = rustix::process::geteuid().is_root();
        let attributes = if root { "" } else { ",userxattr" };
        let script = format!(
            "mount --make-rprivate / && mount -t tmpfs x /tmp && cd /tmp && mkdir l u w m && \
             mount -t overlay x -o lowerdir=l,upperdir=u,workdir=w{attributes} m"
        );
        let by_hand = std::process::Command::new("unshare")
            .args(if root { &["--mount"][..] } else { &["--map-root-user", "--mount"] })
            .args(["sh", "-c", &script])
            .output();
        match by_hand {
            Ok(output) => {
                assert_eq!(overlay_refusal().is_none(), output.status.success(), "{output:?} {:?}", overlay_refusal())
            }
            Err(error) => println!("SKIPPED: unshare: {error}"),
        }
        assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), before);
        assert!(PLACES[0].1.iter().all(|directory| !Path::new(directory.to_str().unwrap()).exists()));
    }

    #[test]
    fn what_is_missing_in_the_kernel_is_reported_with_its_answer() {
        let Refusal { reason, remedy } = refused(c"tare-none").unwrap();
        if !reason.starts_with("an overlay cannot be mounted") {
            return println!("SKIPPED: {reason}");
        }
        assert!(reason.contains("No such device (os error 19)") && !remedy.is_empty(), "{reason} {remedy}");
    }
}
