//! Taking out of a text what names a host.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What stands in the place of what was taken out.
pub(super) const REDACTED: &str = "(redacted)";

/// Kernel parameters whose values are shown, because they can move a figure and cannot name a host. A name that ends
/// with `*` covers all that begin so.
const SHOWN: [&str; 44] = [
    "mitigations",
    "spectre*",
    "spec_*",
    "l1tf",
    "mds",
    "tsx*",
    "retbleed",
    "srso",
    "pti",
    "nopti",
    "isolcpus",
    "nohz*",
    "rcu_nocbs",
    "rcu*",
    "irqaffinity",
    "skew_tick",
    "threadirqs",
    "preempt",
    "intel_pstate",
    "amd_pstate",
    "intel_idle*",
    "processor.max_cstate",
    "idle",
    "cpuidle*",
    "cpufreq*",
    "haltpoll*",
    "clocksource",
    "tsc",
    "transparent_hugepage*",
    "hugepages",
    "hugepagesz",
    "default_hugepagesz",
    "numa*",
    "psi",
    "cgroup*",
    "systemd.unified_cgroup_hierarchy",
    "maxcpus",
    "nr_cpus",
    "mem",
    "kvm*",
    "intel_iommu",
    "amd_iommu",
    "iommu*",
    "nosmt",
];

/// A kernel command line without the values of parameters that are not known to be harmless, and without what
/// follows `--`, which is for the first process.
pub(super) fn command_line(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        if word == "--" {
            words.push(format!("-- {REDACTED}"));
            break;
        }
        words.push(match word.split_once('=') {
            Some((name, _)) if !is_shown(name) => format!("{name}={REDACTED}"),
            _ => word.to_owned(),
        });
    }
    words.join(" ")
}

fn is_shown(name: &str) -> bool {
    SHOWN.iter().any(|shown| match shown.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => *shown == name,
    })
}

/// Knows the names of this host.
pub(super) struct Redactor {
    names: Vec<String>,
}

impl Redactor {
    /// For a host of this name: the full name and its first part are taken out where they stand as words.
    pub fn new(hostname: String) -> Self {
        let first = hostname.split('.').next().unwrap_or_default().to_owned();
        let mut names = vec![hostname, first];
        // A name that says nothing about the host is left alone: it is a word of the text more often than a name.
        names.retain(|name| !name.is_empty() && !["localhost", "vm", "linux", "host"].contains(&name.as_str()));
        Self { names }
    }

    /// The text with every word that names the host replaced.
    pub fn redact(&self, text: &str) -> String {
        self.without(text, |word| self.names_host(word))
    }

    /// The same of what a device says of itself: there, four numbers with full stops between them are the version of a firmware, and no
    /// address.
    pub fn redact_device(&self, text: &str) -> String {
        self.without(text, |word| self.is_name(word) || is_mac(word) || is_uuid(word))
    }

    fn without(&self, text: &str, goes: impl Fn(&str) -> bool) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(length);
            out.push_str(if goes(word) { REDACTED } else { word });
            let separators = after.find(is_word).unwrap_or(after.len());
            out.push_str(&after[..separators]);
            rest = &after[separators..];
        }
        out
    }

    fn names_host(&self, word: &str) -> bool {
        // A full stop or a colon at the end belongs to the sentence.
        let word = word.trim_end_matches(['.', ':']);
        self.is_name(word) || is_address(word) || is_mac(word) || is_uuid(word)
    }

    fn is_name(&self, word: &str) -> bool {
        self.names.iter().any(|name| name.eq_ignore_ascii_case(word))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_')
}

/// IPv4 or IPv6, with or without a port. Loopback and "any" name nobody.
fn is_address(word: &str) -> bool {
    let host = word.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(word, |(host, _)| host);
    let v4 = |text: &str| text.parse::<Ipv4Addr>().is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified());
    v4(host)
        || word.split(':').any(v4)
        || word.parse::<Ipv6Addr>().is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

fn is_mac(word: &str) -> bool {
    [':', '-'].into_iter().any(|separator| has_groups(word, separator, &[2; 6]))
}

fn is_uuid(word: &str) -> bool {
    has_groups(word, '-', &[8, 4, 4, 4, 12])
}

/// Whether a word is hexadecimal groups of these lengths.
fn has_groups(word: &str, separator: char, lengths: &[usize]) -> bool {
    let mut groups = word.split(separator);
    let fits = |&length: &usize| {
        groups.next().is_some_and(|group| group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    lengths.iter().all(fits) && groups.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_names_and_uuids_are_words_that_go() {
        let redactor = Redactor::new("db7.example.com".into());
        for secret in [
            "10.1.2.3",
            "10.1.2.3:8080",
            "fe80::1",
            "52:54:00:ab:cd:ef",
            "52-54-00-AB-CD-EF",
            "0a1b2c3d-1111-2222-3333-444455556666",
            "db7",
            "DB7.example.com",
        ] {
            assert_eq!(redactor.redact(&format!("at {secret}, up")), "at (redacted), up", "{secret}");
        }
    }

    #[test]
    fn the_version_of_a_firmware_is_no_address() {
        let redactor = Redactor::new("db7".into());
        assert_eq!(redactor.redact_device("22.31.10.14 db7 52:54:00:ab:cd:ef"), "22.31.10.14 (redacted) (redacted)");
    }

    #[test]
    fn ordinary_words_and_versions_stay() {
        let redactor = Redactor::new("db7".into());
        for text in
            ["6.1.0-28-amd64", "#1 SMP @ 12:30:45 db77", "127.0.0.1", "Mitigation: PTI", "0-3,8", "52:54", "cubic"]
        {
            assert_eq!(redactor.redact(text), text);
        }
    }

    #[test]
    fn a_command_line_keeps_what_moves_figures() {
        assert_eq!(
            command_line("root=/dev/sda1 nohz_full=1-3 quiet password=x spectre_v2=off -- secret"),
            "root=(redacted) nohz_full=1-3 quiet password=(redacted) spectre_v2=off -- (redacted)"
        );
    }
}
