//! The configuration of a container (lxc.container.conf(5)).

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::builder::environment;
use crate::groups::Hierarchy;
use crate::guest_setup::{AGENT, GuestSetup};

/// What a configuration is written from.
pub(super) struct Config<'a> {
    pub setup: GuestSetup<'a>,
    /// Where the guest's root will be mounted.
    pub root: &'a Path,
    /// The guest's own control groups, shown at their places inside.
    pub groups: &'a [Shown],
    /// Whether AppArmor is on (see [`apparmor_is_on`]).
    pub apparmor: bool,
}

/// Whether the kernel confines programs by AppArmor, and so LXC its containers by a profile of its own, under which the
/// agent could not confine itself as it does on every other arm. LXC may be built without AppArmor, and then refuses
/// the profile's key; distributions that switch AppArmor on build it in.
pub(super) fn apparmor_is_on() -> bool {
    std::fs::read_to_string("/sys/module/apparmor/parameters/enabled").is_ok_and(|text| text.trim() == "Y")
}

/// A control group of the guest's that it sees as the root of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// The group's directory.
    pub group: PathBuf,
    /// Where that is bound, out of the way of the hierarchies that are hidden.
    pub from: PathBuf,
    /// The mount point of the hierarchy, on the host and inside.
    pub place: PathBuf,
}

impl Shown {
    /// The groups of a guest whose files are in `folder`.
    pub(super) fn of(groups: &[PathBuf], mounted: &[Hierarchy], folder: &Path) -> Vec<Self> {
        let shown = groups.iter().enumerate().filter_map(|(number, group)| {
            let around = mounted.iter().filter(|hierarchy| group.starts_with(&hierarchy.at));
            let hierarchy = around.max_by_key(|hierarchy| hierarchy.at.components().count())?;
            let from = folder.join("groups").join(number.to_string());
            Some(Self { group: group.clone(), from, place: hierarchy.at.clone() })
        });
        shown.collect()
    }
}

impl Config<'_> {
    /// The configuration as a file.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "lxc.rootfs.path = dir:{}\n\
             lxc.uts.name = {}\n\
             lxc.net.0.type = none\n\
             lxc.mount.auto = proc:mixed sys:ro\n\
             lxc.cap.drop = mac_admin mac_override sys_module sys_rawio sys_time\n",
            self.root.display(),
            self.setup.spec.name
        );
        if self.apparmor {
            text.push_str("lxc.apparmor.profile = unconfined\n");
        }
        let mut entry = |line: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "lxc.mount.entry = {line} 0 0");
        };
        let agent = inside(Path::new(AGENT));
        entry(&format!("{} {agent} none bind,ro,nosuid,nodev,create=file", field(self.setup.agent)));
        for data in self.setup.data {
            let (from, at, mode) = (field(&data.from), inside(&data.at), if data.read_only { "ro" } else { "rw" });
            entry(&format!("{from} {at} none bind,{mode},nosuid,nodev,create=dir"));
        }
        entry("tmpfs dev/shm tmpfs nosuid,nodev,create=dir");
        // Several hierarchies lie in one directory, which sysfs has no room for.
        let mut parents: Vec<&Path> = self.groups.iter().filter_map(|shown| shown.place.parent()).collect();
        parents.retain(|parent| *parent != Path::new("/sys/fs"));
        parents.sort_unstable();
        parents.dedup();
        for parent in parents {
            entry(&format!("tmpfs {} tmpfs nosuid,nodev,noexec,mode=755", inside(parent)));
        }
        for Shown { from, place, .. } in self.groups {
            let flags = "bind,ro,nosuid,nodev,noexec,create=dir";
            entry(&format!("{} {} none {flags}", field(from), inside(place)));
        }
        for (name, value) in environment(self.setup.run_id) {
            // As above.
            let _ = writeln!(text, "lxc.environment = {name}={value}");
        }
        text
    }
}

/// A path inside as LXC wants it: from the guest's root, without the first `/`.
fn inside(path: &Path) -> String {
    field(path.strip_prefix("/").unwrap_or(path))
}

/// A path as a field of an fstab line: what would end the field or the line is written by its octal number (fstab(5)).
fn field(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'!'..=b'~' if *byte != b'\\' && *byte != b'#' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_setup::shown;
    use tare_model::ByteSize;
    use tare_model::guest::{GuestSize, GuestSpec};

    #[test]
    fn the_guests_groups_are_shown_where_the_host_has_its_hierarchies() {
        let at = |name: &str| Path::new("/sys/fs/cgroup").join(name);
        let hierarchy = |name: &str, version_2| Hierarchy { at: at(name), version_2 };
        let hybrid = [hierarchy("memory", false), hierarchy("pids", false), hierarchy("unified", true)];
        let groups = [at("memory/box/tare-r/g"), at("unified/tare-r/g")];
        let of_host = Shown::of(&groups, &hybrid, Path::new("/run/tare/r/guests/g"));
        let spec = GuestSpec::new("g", GuestSize { cpus: 1, memory: ByteSize(1 << 30) });
        let root = Path::new("/run/tare/r/guests/g/root");
        let config = |groups, read_only| {
            let data = shown("/mnt/a b/tare-r/g", read_only);
            Config { setup: GuestSetup::of(&spec, "/a b#\\c\n/agent", &data), root, groups, apparmor: read_only }.text()
        };
        let text = config(&of_host, false);
        let bound = "lxc.mount.entry = /run/tare/r/guests/g/groups/0 sys/fs/cgroup/memory none bind,ro";
        let tmpfs = "tmpfs sys/fs/cgroup tmpfs";
        assert!(text.contains(bound), "{text}");
        assert!(text.find(tmpfs) < text.find(bound) && text.matches(tmpfs).count() == 1, "{text}");
        assert!(text.contains("= /a\\040b\\043\\134c\\012/agent .tare/agent none"), "{text}");
        assert!(text.contains("= /mnt/a\\040b/tare-r/g .tare/data none bind,rw,"), "{text}");
        assert!(text.contains("lxc.environment = TARE_RUN=r\n"), "{text}");
        assert!(!text.contains("apparmor"), "LXC without AppArmor refuses the key: {text}");
        let text = config(&of_host, true);
        assert!(text.contains(" .tare/data none bind,ro,"), "{text}");
        assert!(text.contains("\nlxc.apparmor.profile = unconfined\n"), "{text}");

        let shown = Shown::of(&[at("tare-r/g")], &[hierarchy("", true)], Path::new("/f"));
        let text = config(&shown, false);
        assert!(text.contains("/f/groups/0 sys/fs/cgroup none bind") && !text.contains(tmpfs), "{text}");
    }
}
