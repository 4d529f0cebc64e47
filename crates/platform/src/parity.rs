//! What a guest sees of what was asked for it, beside what its control group grants.

use tare_model::guest::{GuestSpec, ParityRow};
use tare_wire::AgentFacts;

/// The value of a fact.
pub(crate) fn fact<'a>(facts: &'a AgentFacts, name: &str) -> Option<&'a str> {
    facts.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Rows read inside the guest. `link` is its interface on the lab's network and the MTU asked for.
pub(crate) fn inside(spec: &GuestSpec, facts: &AgentFacts, link: Option<(&str, u32)>) -> Vec<ParityRow> {
    let mut rows = Vec::new();
    if !spec.cpu_set.is_empty() {
        let asked = ranges(&spec.cpu_set);
        rows.push(row("cpus allowed inside", asked, fact(facts, "cpus allowed"), "sched_getaffinity in the guest"));
    }
    if let Some((interface, mtu)) = link {
        let granted = fact(facts, &format!("mtu {interface}"));
        rows.push(row("link mtu", mtu.to_string(), granted, "the guest's interface, asked inside"));
    }
    rows
}

/// Rows of a platform that sets no limits at all.
pub(crate) fn unlimited(spec: &GuestSpec) -> Vec<ParityRow> {
    let note = "this platform sets no limits: it shows the floor of the instrument";
    let not = |resource: &str, asked: String| ParityRow {
        resource: resource.to_owned(),
        asked,
        granted: None,
        equal: false,
        note: note.to_owned(),
    };
    vec![not("cpu quota", format!("{} CPUs", spec.size.cpus)), not("memory limit", spec.size.memory.to_string())]
}

fn row(resource: &str, asked: String, granted: Option<&str>, note: &str) -> ParityRow {
    let equal = granted == Some(asked.as_str());
    ParityRow {
        resource: resource.to_owned(),
        asked,
        granted: granted.map(str::to_owned),
        equal,
        note: note.to_owned(),
    }
}

/// CPU numbers as the kernel writes them: `0-3,6`.
pub(crate) fn ranges(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|a, b| a + 1 == *b);
    let written: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    written.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::ByteSize;
    use tare_model::guest::GuestSize;

    #[test]
    fn what_was_not_granted_is_not_called_equal() {
        let size = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
        let spec = GuestSpec {
            name: "g".into(),
            size,
            cpu_set: vec![3, 1, 2],
            data: None,
            merge: false,
            seccomp: tare_model::guest::Seccomp::Default,
        };
        let facts =
            AgentFacts { facts: vec![("cpus allowed".into(), "1-3".into()), ("mtu eth0".into(), "1500".into())] };
        let rows = inside(&spec, &facts, Some(("eth0", 9000)));
        assert_eq!(rows.iter().map(|row| row.equal).collect::<Vec<_>>(), [true, false]);
        assert!(unlimited(&spec).iter().all(|row| !row.equal && row.granted.is_none()));
    }
}
