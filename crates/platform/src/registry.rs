//! All platforms.

use serde_json::Value;
use tare_model::Refusal;

pub use crate::entry::{Entry, Variant};
use crate::{
    Reach, bubblewrap, container, containerd, docker, libvirt, lxc, native, nspawn, null, oci, podman, qemu, ssh,
    systemd_run,
};

/// Every platform, the plainest first.
pub fn all() -> &'static [Entry] {
    const ALL: &[Entry] = &[
        null::ENTRY,
        native::ENTRY,
        container::ENTRY,
        lxc::ENTRY,
        nspawn::ENTRY,
        bubblewrap::ENTRY,
        systemd_run::ENTRY,
        oci::ENTRY,
        docker::ENTRY,
        podman::ENTRY,
        containerd::ENTRY,
        qemu::ENTRY,
        libvirt::ENTRY,
        ssh::ENTRY,
    ];
    ALL
}

/// The platform of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.name == name)
}

/// A platform with options, by one word: its name, that of a kind of it (`KIND` or `NAME/KIND`), and behind a colon the value of the
/// option that its entry names for that. A kind that several platforms have is that of the first one. `None` where there is no such name;
/// options that are missing or wrong are found where they are checked.
pub fn by_word(word: &str) -> Option<(&'static Entry, Value)> {
    let (name, value) = word.split_once(':').map_or((word, None), |(name, value)| (name, Some(value)));
    let own = find(name).map(|entry| (entry, "{}"));
    let kinds = || all().iter().flat_map(|entry| entry.variants.iter().map(move |variant| (entry, variant)));
    let is_kind = |entry: &Entry, kind: &str| kind == name || name.split_once('/') == Some((entry.name, kind));
    let kind = || kinds().find(|(entry, variant)| variant.word().is_some_and(|kind| is_kind(entry, kind)));
    let (entry, options) = own.or_else(|| kind().map(|(entry, variant)| (entry, variant.options)))?;
    let mut options: Value = serde_json::from_str(options).ok()?;
    if let Some(value) = value {
        options.as_object_mut()?.insert(entry.colon?.to_owned(), value.into());
    }
    Some((entry, options))
}

/// The words of what is compared where a user names nothing: what needs nothing to be installed, the baseline first.
pub const PLAINEST: [&str; 2] = [native::ENTRY.name, container::ENTRY.name];

/// The words that [`by_word`] knows, each once: platforms, and kinds of platforms that have several.
pub fn words() -> Vec<String> {
    let of = |entry: &'static Entry| {
        let own = [entry.name.to_owned()].into_iter().filter(|_| !entry.variants.is_empty());
        let kinds = entry.variants.iter().filter_map(Variant::word).map(move |kind| (entry, kind));
        let given = entry.colon.map(|option| format!("{}:{}", entry.name, option.to_uppercase()));
        own.chain(kinds.map(|(entry, kind)| format!("{}/{kind}", entry.name))).chain(given)
    };
    let short = |word: String| match word.split_once('/') {
        // A kind needs its platform's name only where another platform has it first.
        Some((name, kind)) if by_word(kind).is_some_and(|(entry, _)| entry.name == name) => kind.to_owned(),
        _ => word,
    };
    all().iter().flat_map(of).map(short).collect()
}

/// Whether what the platform provides are machines on a network of their own, whatever its options
/// ([`crate::Reach::Outside`]).
pub fn is_outside(name: &str) -> bool {
    name == ssh::ENTRY.name
}

/// Whether guests of the platform with these options are reached on a network of their own: those of some platforms are
/// for some options alone, such as a machine that is there already or a network card passed through.
pub fn reaches_outside(name: &str, options: &Value) -> bool {
    let made = find(name).and_then(|entry| (entry.make)(options).ok());
    made.map_or_else(|| is_outside(name), |platform| platform.reach() == Reach::Outside)
}

/// Why guests of the platform with these options can never have their memory merged, and the remedy; `None`: they can,
/// where the host's kernel does. `None` too for a name or options that are wrong, which others tell.
pub fn merging_refusal(name: &str, options: &Value) -> Option<Refusal> {
    find(name).and_then(|entry| (entry.make)(options).ok()).and_then(|platform| platform.merging_refusal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_unique_and_every_platform_works_without_options_or_names_the_one_it_needs() {
        let mut names: Vec<_> = all().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().len());
        for entry in all() {
            if let Some(needed) = (entry.schema)()["required"].as_array() {
                let error = (entry.check_options)(&json!({})).unwrap_err().to_string();
                assert!(needed.iter().any(|field| error.contains(field.as_str().unwrap())), "{}: {error}", entry.name);
                continue;
            }
            let filled = (entry.check_options)(&json!({})).unwrap();
            assert_eq!((entry.check_options)(&filled).unwrap(), filled, "{}: filled options are final", entry.name);
            assert!((entry.make)(&filled).is_ok(), "{}", entry.name);
            assert_eq!((entry.schema)()["type"], "object", "{}", entry.name);
        }
    }

    #[test]
    fn what_is_called_outside_is_reached_outside() {
        for entry in all() {
            let Ok(platform) = (entry.make)(&json!({})).or_else(|_| (entry.make)(&json!({"host": "x"}))) else {
                continue;
            };
            assert_eq!(platform.reach() == crate::Reach::Outside, is_outside(entry.name), "{}", entry.name);
        }
    }

    #[test]
    fn options_decide_where_guests_are_reached() {
        let card = json!({"device": "0000:01:00.1", "mac": "02:00:00:00:00:01", "address": "192.0.2.7/24"});
        let device = json!({"image": {"file": {"path": "/x", "format": "raw"}}, "network": {"vfio": card}});
        let there = json!({"domain": {"existing": "x", "address": "192.0.2.1"}});
        for (name, options, outside) in [
            ("qemu", json!({}), false),
            ("qemu", device, true),
            ("libvirt", json!({}), false),
            ("libvirt", there, true),
            ("ssh", json!({"host": "x"}), true),
            ("ssh", json!({"colour": "red"}), true),
            ("none", json!({}), false),
        ] {
            assert_eq!(reaches_outside(name, &options), outside, "{name} {options}");
        }
    }

    #[test]
    fn what_one_guest_alone_can_have_is_known_by_its_options() {
        let own = |name: &str, options: Value| (find(name).unwrap().make)(&options).ok().unwrap().exclusive();
        let machine = |options: Value| own("ssh", options);
        assert_eq!(machine(json!({"host": "VM1"})), machine(json!({"host": "vm1", "port": 22, "user": "me"})));
        assert_ne!(machine(json!({"host": "vm1"})), machine(json!({"host": "vm1", "port": 2222})));
        assert_ne!(machine(json!({"host": "vm1"})), machine(json!({"host": "vm2"})));
        let there = |uri: &str| json!({"uri": uri, "domain": {"existing": "x", "address": "192.0.2.1"}});
        assert_ne!(own("libvirt", there("qemu:///system")), own("libvirt", there("qemu+ssh://h/system")));
        let card = json!({"device": "0000:01:00.1", "mac": "02:00:00:00:00:01", "address": "192.0.2.7/24"});
        let file = json!({"file": {"path": "/x", "format": "raw"}});
        let passed_through = own("qemu", json!({"image": file, "network": {"vfio": card}}));
        assert_eq!(passed_through, [("network card", "0000:01:00.1".to_owned())]);
        for made in ["native", "container", "qemu", "libvirt"] {
            assert!(own(made, json!({})).is_empty(), "{made}");
        }
    }

    #[test]
    fn options_decide_whether_memory_can_be_merged() {
        let device = json!({"device": "0000:01:00.1", "mac": "02:00:00:00:00:01", "address": "192.0.2.7/24"});
        let file = json!({"file": {"path": "/x", "format": "raw"}});
        let there = json!({"domain": {"existing": "x", "address": "192.0.2.1"}});
        for (name, options, expected) in [
            ("null", json!({}), Some("no way")),
            ("native", json!({}), None),
            ("container", json!({}), None),
            ("lxc", json!({}), None),
            ("nspawn", json!({}), None),
            ("bubblewrap", json!({}), None),
            ("systemd-run", json!({}), Some("daemon")),
            ("oci", json!({}), None),
            ("oci", json!({"runtime": "crun"}), None),
            ("oci", json!({"runtime": "/opt/runsc-2026"}), Some("shared")),
            ("docker", json!({}), Some("daemon")),
            ("podman", json!({}), None),
            ("containerd", json!({}), Some("daemon")),
            ("qemu", json!({}), Some("shared")),
            ("qemu", json!({"image": {"debian": {}}}), None),
            ("qemu", json!({"image": {"debian": {}}, "memory": {"huge-pages": true}}), Some("huge pages")),
            ("qemu", json!({"image": file, "network": {"vfio": device}}), Some("passed through")),
            ("libvirt", json!({}), Some("shared")),
            ("libvirt", json!({"image": {"debian": {}}}), None),
            ("libvirt", json!({"image": {"debian": {}}, "memory": {"huge-pages": true}}), Some("huge pages")),
            ("libvirt", there, Some("before the run")),
            ("ssh", json!({"host": "x"}), Some("another machine")),
            ("none", json!({}), None),
        ] {
            let found = merging_refusal(name, &options);
            let fits = |refusal: &Refusal| {
                expected.is_some_and(|word| refusal.reason.contains(word) && !refusal.remedy.is_empty())
            };
            assert!(found.as_ref().map_or(expected.is_none(), fits), "{name} {options}: {found:?}");
        }
    }

    #[test]
    fn every_variant_has_a_name_of_its_own_and_options_that_its_platform_takes() {
        for entry in all() {
            let mut names: Vec<_> = entry.variants.iter().map(|variant| variant.name).collect();
            names.dedup();
            assert_eq!(names.len(), entry.variants.len(), "{}", entry.name);
            for variant in entry.variants {
                let options = variant.options(entry).unwrap();
                assert!((entry.make)(&options).is_ok(), "{} {}", entry.name, variant.name);
            }
            let needs = (entry.schema)()["required"].as_array().is_some_and(|needed| !needed.is_empty());
            assert_eq!(entry.variants.is_empty(), needs, "{}: a study is needed where options are", entry.name);
        }
    }

    #[test]
    fn a_word_names_a_platform_a_kind_of_it_and_the_one_option_behind_a_colon() {
        let found = |word| by_word(word).map(|(entry, options)| (entry.name, options));
        assert_eq!(found("native"), Some(("native", json!({}))));
        assert_eq!(found("runc"), Some(("oci", json!({"runtime": "runc"}))));
        assert_eq!(found("runsc"), Some(("oci", json!({"runtime": "runsc"}))));
        assert_eq!(found("containerd/runc"), Some(("containerd", json!({}))));
        assert_eq!(found("kvm"), found("qemu/kvm"));
        assert_eq!(found("docker:app:1"), Some(("docker", json!({"image": "app:1"}))));
        assert_eq!(found("ssh:vm1"), Some(("ssh", json!({"host": "vm1"}))));
        for wrong in ["", "dockr", "native:x", "containerd/crun", "/runc", "data"] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_word_that_is_offered_is_known_and_means_one_thing() {
        let words = words();
        let meant: Vec<_> =
            words.iter().map(|word| by_word(word).map(|(entry, o)| (entry.name, o.to_string()))).collect();
        assert!(meant.iter().all(Option::is_some), "{words:?} {meant:?}");
        let mut once = words.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), words.len(), "{words:?}");
        assert!(
            ["crun", "kvm", "docker:IMAGE", "ssh:HOST", "containerd/runc"].iter().all(|w| words.iter().any(|o| o == w)),
            "{words:?}"
        );
    }

    #[test]
    fn an_unknown_option_is_refused_by_its_name() {
        for entry in all() {
            let error = (entry.check_options)(&json!({"colour": "red"})).unwrap_err();
            assert!(error.to_string().contains("colour"), "{}: {error}", entry.name);
        }
    }
}
