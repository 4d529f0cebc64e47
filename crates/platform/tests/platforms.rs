//! Every platform of the registry, for real, against the conformance checks.

use serde_json::json;
use tare_platform::conformance::Expect;
use tare_platform::{HostView, registry};

use crate::common::{agent, archive_of, conforms, skipped, small_root, this_test};

/// For variants of what another test lets come and go often enough.
fn some() -> Expect {
    Expect { cycles: 10, ..Expect::default() }
}

#[test]
fn null_conforms() {
    let expect = Expect { limits: false, data: false, ..Expect::default() };
    conforms("null", "null", &json!({}), &expect);
}

#[test]
fn native_conforms() {
    conforms("native", "native", &json!({}), &Expect::default());
}

#[test]
fn container_conforms() {
    conforms("container", "container", &json!({}), &Expect::default());
}

#[test]
fn container_on_disk_conforms() {
    // Also with data in a directory that the study names.
    let options = json!({"upper": "disk", "data": {"directory": "/var/tmp"}});
    conforms("disk", "container", &options, &some());
}

/// Runs itself again in a mount namespace where the place for layers is in memory.
#[test]
fn layers_and_data_on_disk_are_refused_where_that_is_memory() {
    match std::env::var("TEST_APART").as_deref() {
        Ok("layers") => return conforms("memory", "container", &json!({"upper": "disk"}), &Expect::default()),
        Ok(_) => return conforms("memory-data", "native", &json!({}), &Expect::default()),
        Err(_) => {}
    }
    if agent().is_none() || tare_lab::is_rootless() {
        return skipped("needs the agent, and root for mounts");
    }
    let script = "mount -t tmpfs -o mode=755 none /var/lib && exec \"$0\" --exact --nocapture \"$1\"";
    for (what, remedy) in [("layers", "upper = "), ("data", "data = ")] {
        let inner = std::process::Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(this_test())
            .env("TEST_APART", what)
            .output();
        let Ok(inner) = inner else {
            return skipped("needs unshare");
        };
        let said = [inner.stdout, inner.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        if said.contains("SKIPPED") {
            return skipped(&said);
        }
        assert!(!inner.status.success(), "{what} in memory were taken for some on disk: {said}");
        assert!(said.contains("it is on a tmpfs") && said.contains(remedy), "{said}");
    }
}

/// Runs itself again where the lists of what the kernel has loaded show no overlay, and where nobody may mount one.
#[test]
fn an_overlay_is_tried_and_not_looked_up_in_a_list() {
    if std::env::var_os("TEST_APART").is_some() {
        let entry = registry::find("container").unwrap();
        let host = HostView::here(std::path::Path::new("/none"));
        let looked = (entry.make)(&json!({})).unwrap().look(&host);
        return eprintln!("LOOKED: {looked:?}");
    }
    let unlisted = "grep -v overlay /proc/filesystems >/dev/shm/tare-filesystems; \
                    mount --bind /dev/shm/tare-filesystems /proc/filesystems && rm /dev/shm/tare-filesystems && \
                    mount -t tmpfs none /sys/module && exec \"$0\" --exact --nocapture \"$1\"";
    let forbidden = "exec setpriv --bounding-set -sys_admin --inh-caps -sys_admin \"$0\" --exact --nocapture \"$1\"";
    if tare_lab::is_rootless() || tare_lab::overlay_refusal().is_some() {
        return skipped("needs root, and a kernel that mounts overlays");
    }
    for (script, there) in [(unlisted, true), (forbidden, false)] {
        let inner = std::process::Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(this_test())
            .env("TEST_APART", "1")
            .output();
        let Ok(inner) = inner else {
            return skipped("needs unshare");
        };
        let said = String::from_utf8_lossy(&inner.stderr).into_owned();
        if !said.contains("LOOKED: ") {
            return skipped(&format!("cannot be set apart: {said}"));
        }
        assert_eq!(said.contains("LOOKED: Ok"), there, "{said}");
        assert!(there || said.contains("Operation not permitted (os error 1)"), "{said}");
    }
}

#[test]
fn oci_conforms_with_the_first_runtime() {
    conforms("runc", "oci", &json!({"runtime": "runc"}), &Expect::default());
}

#[test]
fn oci_conforms_with_the_second_runtime() {
    conforms("crun", "oci", &json!({"runtime": "crun", "upper": "disk"}), &some());
}

#[test]
fn oci_conforms_on_a_directory_and_on_an_archive() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    if small_root(&root).is_none() {
        return;
    }
    let archive = archive_of(&root);
    conforms("directory", "oci", &json!({"rootfs": {"directory": root}}), &some());
    conforms("archive", "oci", &json!({"rootfs": {"archive": archive}}), &some());
}
