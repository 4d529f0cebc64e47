//! What a guest sees of what was asked for it, beside what its control group grants.

use tare_model::ByteSize;
use tare_model::guest::{GuestSpec, ParityRow};
use tare_wire::AgentFacts;

/// The value of a fact.
pub(crate) fn fact<'a>(facts: &'a AgentFacts, name: &str) -> Option<&'a str> {
    facts.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The same to keep.
pub(crate) fn owned(facts: &AgentFacts, name: &str) -> Option<String> {
    fact(facts, name).map(str::to_owned)
}

/// Rows read inside the guest. `link` is its interface on the lab's network and the MTU asked for.
pub(crate) fn inside(spec: &GuestSpec, facts: &AgentFacts, link: Option<(&str, u32)>) -> Vec<ParityRow> {
    let mut rows = Vec::new();
    if !spec.cpu_set.is_empty() {
        let (asked, granted) = (ranges(&spec.cpu_set), owned(facts, "cpus allowed"));
        rows.push(row("cpus allowed inside", asked, granted, "sched_getaffinity in the guest"));
    }
    if let Some((interface, mtu)) = link {
        let granted = owned(facts, &format!("mtu {interface}"));
        rows.push(row("link mtu", mtu.to_string(), granted, "the guest's interface, asked inside"));
    }
    rows
}

/// Rows of what a guest with a kernel of its own shows, which numbers its CPUs from 0, tells its own memory and may have a
/// congestion control of its own; `cpus` is how many of them it should see, `congestion` is the one asked for.
pub(crate) fn in_own_kernel(
    spec: &GuestSpec,
    cpus: Option<usize>,
    facts: &AgentFacts,
    mtu: u32,
    congestion: Option<&str>,
) -> Vec<ParityRow> {
    let mut rows = Vec::new();
    if let Some(wanted) = cpus {
        let seen = fact(facts, "cpus allowed").and_then(count).map(|seen| seen.to_string());
        let note = "sched_getaffinity in the guest, whose own kernel numbers its CPUs from 0: which of the host's they \
                    are is the control group's to say";
        rows.push(row("cpus seen inside", wanted.to_string(), seen, note));
    }
    let without_cpus = GuestSpec { cpu_set: Vec::new(), ..spec.clone() };
    rows.extend(inside(&without_cpus, facts, Some(("eth0", mtu))));
    let total = fact(facts, "memory total").and_then(kilobytes);
    let shown = total.map(|bytes| ByteSize(bytes).to_string());
    let memory = row("memory seen inside", spec.size.memory.to_string(), shown, "MemTotal in the guest");
    // Rounded for the eye, two amounts may look alike.
    rows.push(ParityRow { equal: total == Some(spec.size.memory.0), ..memory });
    if let Some(asked) = congestion {
        let note = "net.ipv4.tcp_congestion_control in the guest, whose network stack sets it by itself";
        rows.push(row("congestion control", asked, owned(facts, "congestion control"), note));
    }
    rows
}

/// CPUs that are online in a guest with a kernel of its own, by that kernel; `None` where it does not tell.
pub fn cpus_online(facts: &AgentFacts) -> Option<usize> {
    fact(facts, "cpus online").and_then(count)
}

/// How many CPUs a list such as `0-3,6` has.
pub(crate) fn count(list: &str) -> Option<usize> {
    list.split(',').try_fold(0, |sum, run| {
        let (from, to) = run.split_once('-').unwrap_or((run, run));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        Some(sum + to.checked_sub(from)? + 1)
    })
}

/// `NUMBER kB` (proc(5)), in bytes.
pub(crate) fn kilobytes(value: &str) -> Option<u64> {
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Rows of a platform that sets no limits at all.
pub(crate) fn unlimited(spec: &GuestSpec) -> Vec<ParityRow> {
    let note = "this platform sets no limits: it shows the floor of the instrument";
    let (cpus, memory) = (format!("{} CPUs", spec.size.cpus), spec.size.memory.to_string());
    vec![row("cpu quota", cpus, None, note), row("memory limit", memory, None, note)]
}

/// A row of what was asked and what was granted, which is equal where the words are; `note`: how it was read back.
pub(crate) fn row(
    resource: impl Into<String>,
    asked: impl Into<String>,
    granted: Option<String>,
    note: impl Into<String>,
) -> ParityRow {
    let (asked, resource, note) = (asked.into(), resource.into(), note.into());
    let equal = granted.as_ref() == Some(&asked);
    ParityRow { resource, asked, granted, equal, note }
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
    use tare_model::guest::GuestSize;

    #[test]
    fn what_was_not_granted_is_not_called_equal() {
        let size = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
        let spec = GuestSpec { cpu_set: vec![3, 1, 2], ..GuestSpec::new("g", size) };
        let facts =
            AgentFacts { facts: vec![("cpus allowed".into(), "1-3".into()), ("mtu eth0".into(), "1500".into())] };
        let rows = inside(&spec, &facts, Some(("eth0", 9000)));
        assert_eq!(rows.iter().map(|row| row.equal).collect::<Vec<_>>(), [true, false]);
        assert!(unlimited(&spec).iter().all(|row| !row.equal && row.granted.is_none()));
    }

    #[test]
    fn what_the_guests_own_kernel_shows_is_compared_with_what_it_can_show() {
        let size = GuestSize { cpus: 2, memory: ByteSize(1 << 30) };
        let spec = GuestSpec { cpu_set: vec![4, 6], ..GuestSpec::new("g", size) };
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let facts = |cpus, memory| AgentFacts {
            facts: vec![fact("cpus allowed", cpus), fact("mtu eth0", "1500"), fact("memory total", memory)],
        };
        let rows = |facts, congestion| in_own_kernel(&spec, Some(2), &facts, 1500, congestion);
        let equal = |facts| rows(facts, None).iter().map(|row| row.equal).collect::<Vec<_>>();
        assert_eq!(equal(facts("0-1", "1048576 kB")), [true, true, true]);
        assert_eq!(equal(facts("0-3", "24684096 kB")), [false, true, false]);
        assert_eq!(equal(facts("0-1", "1048580 kB")), [true, true, false], "which looks like 1 GiB");
        assert_eq!(equal(facts("not readable", "kB")), [false, true, false]);
        let own = || AgentFacts { facts: vec![fact("congestion control", "reno")] };
        let last = |asked| rows(own(), Some(asked)).pop().is_some_and(|row| row.equal);
        assert!(last("reno") && !last("cubic"));
        assert_eq!((count("0-3,6"), count("3-1"), count("")), (Some(5), None, None));
    }
}
