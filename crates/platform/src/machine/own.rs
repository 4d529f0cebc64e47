//! Data disks in a guest that boots an image of the user's: its agent is asked to mount them, with what the image has.

use std::time::Duration;

use tare_wire::{ExecSpec, Link, Reply, Request};

use super::target::Unit;
use super::volume::Part;

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(60);
const OUTPUT_BYTES: u64 = 8192;

/// Waits for the disk with the serial number, as udev has nothing to say in every image.
const BY_SERIAL: &str = r#"
find_disk() {
    for disk in /sys/block/*; do
        [ "$(tr -d '\0\n' <"$disk/serial" 2>/dev/null)" = "$1" ] && echo "/dev/${disk##*/}" && return
    done
    return 1
}"#;

/// Logs in to the target, once for all of its units, and finds the unit, whose place in sysfs is below the session. `$7` has settings.
const BY_SESSION: &str = r#"
modprobe -a iscsi_tcp sd_mod || exit 1
grep -qxF "$4" /sys/class/iscsi_session/session*/targetname 2>/dev/null ||
    iscsistart -i "$3" -t "$4" -g 1 -a "$5" -p "$6" -P 'node.conn[0].timeo.noop_out_interval=0' \
        -P 'node.conn[0].timeo.noop_out_timeout=0' $7 || exit 1
find_disk() {
    for disk in /sys/block/sd*; do
        place=$(readlink -f "$disk/device")
        case $place in
        */session*:"$1")
            session=${place#*/session}
            [ "$(cat "/sys/class/iscsi_session/session${session%%/*}/targetname" 2>/dev/null)" = "$2" ] &&
                (: <"/dev/${disk##*/}") 2>/dev/null && echo "/dev/${disk##*/}" && return
            ;;
        esac
    done
    return 1
}"#;

/// Mounts what was found.
const MOUNT: &str = r#"
n=0
until device=$(find_disk "$1" "$4"); do
    n=$((n + 1))
    [ "$n" -lt 400 ] || { echo "the disk did not appear" >&2; exit 1; }
    sleep 0.025
done
mkdir -p "$2" && mount -t ext4 -o noatime "$device" "$2"
"#;

/// What is mounted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'a> {
    /// The virtio disk with the serial number of a part.
    Serial(Part),
    /// A unit that the guest logs in to by itself.
    Unit(&'a Unit),
}

/// Has the guest mount the disk at a place; why it could not.
pub(crate) fn mount(link: &Link, which: Which<'_>, at: &str) -> Result<(), String> {
    let (script, words) = match which {
        Which::Serial(part) => (format!("{BY_SERIAL}{MOUNT}"), vec![part.serial().to_owned(), at.to_owned()]),
        Which::Unit(unit) => {
            let place = (unit.portal.ip().to_string(), unit.portal.port().to_string());
            let queue = unit.queue.map(|queue| {
                format!("-P node.session.queue_depth={} -P node.session.cmds_max={}", queue.depth, queue.commands)
            });
            let (initiator, target) = (unit.initiator.clone(), unit.target.clone());
            let words =
                [unit.lun.to_string(), at.to_owned(), initiator, target, place.0, place.1, queue.unwrap_or_default()];
            (format!("{BY_SESSION}{MOUNT}"), words.to_vec())
        }
    };
    let argv = [vec!["sh".to_owned(), "-c".into(), script, "mount".into()], words].concat();
    let spec = ExecSpec::new(&argv, LIMIT, OUTPUT_BYTES);
    match link.call(Request::Exec(spec), LIMIT + LIMIT) {
        Ok(Reply::Executed(ran)) if ran.code == Some(0) => Ok(()),
        Ok(Reply::Executed(ran)) => {
            let said = [ran.stdout, ran.stderr].concat();
            Err(String::from_utf8_lossy(&said).trim().to_owned())
        }
        Ok(_) => Err("it answered something else".into()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a tree of a test's own, in the place of the kernel's.
    #[test]
    fn a_unit_is_found_by_its_target_and_its_number() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        let disk = |name: &str, session: &str, lun: u32| {
            let device = at(&format!("devices/host2/{session}/target2:0:0/2:0:0:{lun}"));
            std::fs::create_dir_all(&device).unwrap();
            std::fs::create_dir_all(at(&format!("sys/block/{name}"))).unwrap();
            std::os::unix::fs::symlink(device, at(&format!("sys/block/{name}/device"))).unwrap();
            std::fs::create_dir_all(at("dev")).unwrap();
            std::fs::write(at(&format!("dev/{name}")), "").unwrap();
        };
        for (session, target) in [("session1", "iqn.x:a"), ("session2", "iqn.x:b")] {
            let of = at(&format!("sys/class/iscsi_session/{session}"));
            std::fs::create_dir_all(&of).unwrap();
            std::fs::write(of.join("targetname"), format!("{target}\n")).unwrap();
        }
        let disks = [("sda", "session1", 1), ("sdb", "session1", 2), ("sdc", "session2", 1), ("sdd", "pci", 1)];
        disks.into_iter().for_each(|(name, session, lun)| disk(name, session, lun));
        let (_, function) = BY_SESSION.split_once("|| exit 1\nfind_disk()").unwrap();
        let ours = |text: &str, place: &str| text.replace(place, &at(&place[1..]).display().to_string());
        let script = format!("find_disk(){}\nfind_disk \"$1\" \"$2\"", ours(&ours(function, "/sys/"), "/dev/"));
        let found = |lun: &str, target: &str| {
            let ran = std::process::Command::new("sh").args(["-c", &script, "find", lun, target]).output().unwrap();
            String::from_utf8_lossy(&ran.stdout).trim().rsplit('/').next().unwrap_or_default().to_owned()
        };
        let units = [("1", "iqn.x:a"), ("2", "iqn.x:a"), ("1", "iqn.x:b"), ("2", "iqn.x:b")];
        assert_eq!(units.map(|(lun, target)| found(lun, target)), ["sda", "sdb", "sdc", ""]);
    }

    #[test]
    fn a_shell_takes_the_scripts() {
        for script in [BY_SERIAL, BY_SESSION] {
            let ran = std::process::Command::new("sh").args(["-n", "-c", &format!("{script}{MOUNT}")]).output();
            assert!(ran.is_ok_and(|ran| ran.status.success() && ran.stderr.is_empty()));
        }
    }
}
