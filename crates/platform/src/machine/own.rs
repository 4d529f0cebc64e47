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

    #[test]
    fn a_shell_takes_the_scripts() {
        for script in [BY_SERIAL, BY_SESSION] {
            let ran = std::process::Command::new("sh").args(["-n", "-c", &format!("{script}{MOUNT}")]).output();
            assert!(ran.is_ok_and(|ran| ran.status.success() && ran.stderr.is_empty()));
        }
    }
}
