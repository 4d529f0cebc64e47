//! What of a host makes runs of one series, and what is only noted of each run.

use tare_model::environment::{Environment, Section};

/// Title and name of the facts that split series: what a host is, and not what runs on it.
const SPLIT: [(&str, &str); 7] = [
    ("CPU", "model"),
    ("CPU", "family/model/stepping"),
    ("CPU", "sockets / cores / threads"),
    ("CPU", "online CPUs"),
    ("Memory", MEMORY),
    ("Virtualisation", VIRTUAL),
    ("Virtualisation", "DMI product"),
];
const MEMORY: &str = "total (KiB)";
const VIRTUAL: &str = "this host is a virtual machine";

/// Facts that a change of an effect may come from, and that may change within a series.
const NOTED: [(&str, &str); 11] = [
    ("CPU", "microcode"),
    ("CPU", "SMT"),
    ("CPU", "frequency driver"),
    ("CPU", "frequency governor"),
    ("CPU", "boost"),
    ("CPU", "turbo off (intel_pstate)"),
    ("Memory", "transparent huge pages"),
    KERNEL,
    ("Kernel", "version"),
    ("Kernel", "command line"),
    ("Virtualisation", "hypervisor type"),
];
/// The kernel's release.
pub(super) const KERNEL: (&str, &str) = ("Kernel", "release");
/// The section of which every fact is noted: versions of programs.
const SOFTWARE: &str = "Software";
/// Beginning of the names of the facts about a CPU's flaws.
const FLAW: &str = "vulnerability: ";
/// The version of tare is one of the run.
const OWN: &str = "tare";

/// Facts by name.
pub(super) type Facts = Vec<(String, String)>;

/// Name of a fact in a history, of the host itself.
pub(super) fn name((title, name): (&str, &str)) -> String {
    format!("{title}, {name}")
}

/// The facts that split series, and those that are noted; of each machine beside the host, too.
pub(super) fn facts(environment: &Environment) -> (Facts, Facts) {
    let (mut split, mut noted) = (Facts::new(), Facts::new());
    let own = std::iter::once(("", &environment.sections));
    for (machine, sections) in own.chain(environment.machines.iter().map(|own| (own.name.as_str(), &own.sections))) {
        for (section, fact, value) in sections.iter().flat_map(all) {
            let place = (section, fact);
            let named = if machine.is_empty() { name(place) } else { format!("{machine}: {}", name(place)) };
            let is_noted = NOTED.contains(&place) || section == SOFTWARE && fact != OWN || fact.starts_with(FLAW);
            if SPLIT.contains(&place) {
                split.push((named, steady(fact, value)));
            } else if is_noted && !is_missing(value) {
                noted.push((named, value.to_owned()));
            }
        }
    }
    (split, noted)
}

fn all(section: &Section) -> impl Iterator<Item = (&str, &str, &str)> {
    section.facts.iter().map(|(name, value)| (section.title.as_str(), name.as_str(), value.as_str()))
}

/// Whether a fact could not be read.
fn is_missing(value: &str) -> bool {
    value.starts_with("not available: ")
}

/// The value without how it was found out.
fn steady(name: &str, value: &str) -> String {
    match name {
        // Why differs between users.
        _ if is_missing(value) => "not known".to_owned(),
        VIRTUAL => value.split_whitespace().next().unwrap_or_default().to_owned(),
        _ => value.to_owned(),
    }
}

/// How much the memory of one host differs from kernel to kernel, which keep more or less of it for themselves.
const MEMORY_SHARE: f64 = 0.05;

/// Whether facts that split are those of one host.
pub(super) fn is_same(a: &[(String, String)], b: &[(String, String)]) -> bool {
    let alike = |((name, x), (other, y)): (&(String, String), &(String, String))| {
        let near = |x: f64, y: f64| (x - y).abs() <= MEMORY_SHARE * x.max(y);
        let memory = || name.ends_with(MEMORY) && x.parse().ok().zip(y.parse().ok()).is_some_and(|(x, y)| near(x, y));
        name == other && (x == y || memory())
    };
    a.len() == b.len() && a.iter().zip(b).all(alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(kib: &str, release: &str) -> Environment {
        let section = |title: &str, facts: &[(&str, &str)]| Section {
            title: title.to_owned(),
            facts: facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        let cpu = [("model", "AMD EPYC"), ("clock now (MHz)", "2596.130"), ("vulnerability: mds", "Not affected")];
        let sections = vec![
            section("CPU", &cpu),
            section("Memory", &[(MEMORY, kib)]),
            section("Kernel", &[("release", release)]),
            section(
                "Virtualisation",
                &[
                    (VIRTUAL, "yes (the CPU has the flag `hypervisor`)"),
                    ("DMI product", "not available: not present on this host"),
                ],
            ),
            section(SOFTWARE, &[("runc", "1.1.5"), ("tare", "0.1.0")]),
        ];
        Environment { sections, ..Environment::default() }
    }

    #[test]
    fn hardware_splits_and_software_is_noted() {
        let (split, noted) = facts(&host("24684084", "6.18.44"));
        let said = |facts: &Facts| facts.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
        assert_eq!(
            said(&split),
            [
                "CPU, model: AMD EPYC",
                "Memory, total (KiB): 24684084",
                "Virtualisation, this host is a virtual machine: yes",
                "Virtualisation, DMI product: not known",
            ]
        );
        let expected = ["CPU, vulnerability: mds: Not affected", "Kernel, release: 6.18.44", "Software, runc: 1.1.5"];
        assert_eq!(said(&noted), expected);
        // Another kernel that keeps more of the memory is the same host.
        for (kib, same) in [("24590000", true), ("32684084", false), ("not available: x", false)] {
            assert_eq!(is_same(&split, &facts(&host(kib, "6.19.1")).0), same, "{kib}");
        }
        assert!(is_same(&[], &[]) && !is_same(&split, &split[1..]));
    }
}
