//! What was asked of a machine and what it got, read back from QEMU, the host's kernel and the guest.

use tare_model::ByteSize;
use tare_model::guest::{GuestSpec, ParityRow};
use tare_wire::AgentFacts;

use super::disk_probe::FALLS_BACK;
use super::disks::Asked;
use super::options::Aio;
use super::qmp::{DiskMade, Made};
use crate::machine::pinning;
use crate::machine::volume::{self, Part};
use crate::merging;
use crate::parity::{fact, owned, ranges, row};

/// The rows. `kvm` and `mtu` are what was asked for; `pin`: whether virtual CPUs were to be pinned.
pub(super) fn rows(
    spec: &GuestSpec,
    made: &Made,
    facts: &AgentFacts,
    kvm: bool,
    mtu: Option<u32>,
    pin: bool,
) -> Vec<ParityRow> {
    let cpus: Vec<u32> = (0..spec.size.cpus).collect();
    let total = fact(facts, "memory total").unwrap_or("unknown");
    let mut rows = vec![
        row("virtual CPUs", spec.size.cpus.to_string(), Some(made.vcpus.len().to_string()), "query-cpus-fast of QEMU"),
        row("CPUs online inside", ranges(&cpus), owned(facts, "cpus online"), "/sys of the guest"),
        row(
            "machine memory",
            spec.size.memory.to_string(),
            Some(ByteSize(made.memory_bytes).to_string()),
            format!("query-memory-size-summary of QEMU; the guest's kernel keeps some to itself: MemTotal is {total}"),
        ),
        row("acceleration", accel(kvm), Some(accel(made.kvm)), "query-kvm of QEMU"),
    ];
    if let Some(mtu) = mtu {
        rows.push(row("link mtu", mtu.to_string(), card_mtu(facts), "the guest's interface, asked inside"));
    }
    if spec.merge {
        let note = "query-memdev of QEMU, and ksm_mergeable of its process where the kernel tells (from Linux 6.12)";
        rows.push(merging::read_back(Some(made.merge), note.to_owned()));
    }
    if pin && !spec.cpu_set.is_empty() {
        rows.push(pinning::row(spec.size.cpus, &made.vcpus, &spec.cpu_set));
    }
    rows
}

/// The disk for a part of the data, as QEMU has it. `said` is what QEMU said: of asynchronous calls that the host refuses it only tells.
pub(super) fn disk(part: Part, asked: &Asked, made: &[DiskMade], said: &str) -> Vec<ParityRow> {
    let found = made.iter().find(|disk| disk.node == asked.made.node);
    let threads = Some(Aio::Threads).filter(|_| said.contains(FALLS_BACK));
    let granted = found.map(|disk| in_words(disk, asked.aio.map(|aio| threads.unwrap_or(aio))));
    let note = "query-block of QEMU, and what it says of calls that the host refuses";
    let mut rows = vec![row(part.disk(), in_words(&asked.made, asked.aio), granted, note)];
    rows.extend(found.filter(|disk| disk.no_flush).map(|_| volume::flushes_ignored(part)));
    rows
}

fn in_words(disk: &DiskMade, aio: Option<Aio>) -> String {
    let cache = if disk.direct { "past the host's cache" } else { "through the host's cache" };
    let flushes = if disk.write_back { "flushed when the guest asks" } else { "flushed at every write" };
    let aio = aio.map(|aio| format!(", aio={}", aio.name())).unwrap_or_default();
    format!("{}, {cache}, {flushes}{aio}", disk.driver)
}

fn accel(kvm: bool) -> String {
    if kvm { "kvm" } else { "tcg" }.to_owned()
}

/// MTU of the guest's one card, whatever it is called there.
fn card_mtu(facts: &AgentFacts) -> Option<String> {
    let mut cards = facts.facts.iter().filter_map(|(name, mtu)| Some((name.strip_prefix("mtu ")?, mtu)));
    cards.find(|(name, _)| *name != "lo").map(|(_, mtu)| mtu.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::guest::GuestSize;

    #[test]
    fn only_what_was_granted_is_equal() {
        let size = GuestSize { cpus: 2, memory: ByteSize(1 << 30) };
        let spec = GuestSpec { cpu_set: vec![3], ..GuestSpec::new("g", size) };
        let made = Made { vcpus: vec![1, 2], memory_bytes: 1 << 30, ..Made::default() };
        let text = |pairs: &[(&str, &str)]| AgentFacts {
            facts: pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        };
        let facts =
            text(&[("cpus online", "0-1"), ("mtu lo", "65536"), ("mtu ens3", "9000"), ("memory total", "1 kB")]);
        let unequal = |made: &Made, facts: &AgentFacts, kvm| {
            let rows = rows(&spec, made, facts, kvm, Some(9000), false);
            rows.into_iter().filter(|row| !row.equal).map(|row| row.resource).collect::<Vec<_>>()
        };
        assert!(unequal(&made, &facts, false).is_empty());
        assert_eq!(unequal(&made, &facts, true), ["acceleration"]);
        assert_eq!(unequal(&Made { memory_bytes: 1, ..made.clone() }, &facts, false), ["machine memory"]);
        assert_eq!(unequal(&Made { vcpus: vec![1], ..made.clone() }, &facts, false), ["virtual CPUs"]);
        assert_eq!(unequal(&made, &text(&[]), false), ["CPUs online inside", "link mtu"]);
        let merged = GuestSpec { merge: true, ..spec.clone() };
        let merging = |merge: bool| {
            let rows = rows(&merged, &Made { merge, ..made.clone() }, &facts, false, None, false);
            rows.into_iter().find(|row| row.resource == merging::RESOURCE).map(|row| row.equal)
        };
        assert_eq!((merging(true), merging(false)), (Some(true), Some(false)));
    }
    #[test]
    fn a_disk_is_what_qemu_says_that_it_is() {
        let made = DiskMade { node: "data".into(), driver: "qcow2".into(), direct: true, ..DiskMade::default() };
        let made = DiskMade { write_back: true, ..made };
        let asked = Asked { made: made.clone(), aio: Some(Aio::IoUring) };
        let equal = |made: &[DiskMade], said: &str| {
            disk(Part::Data, &asked, made, said).iter().map(|row| row.equal).collect::<Vec<_>>()
        };
        let disks = [DiskMade { node: "root".into(), ..made.clone() }, made.clone()];
        assert_eq!(equal(&disks, "all is well"), [true]);
        assert_eq!(equal(&disks, &format!("warning: x, {FALLS_BACK}")), [false], "it reads by threads");
        assert_eq!(equal(&disks[..1], ""), [false], "there is no such disk");
        assert_eq!(equal(&[DiskMade { direct: false, ..made.clone() }], ""), [false]);
        let rows = disk(
            Part::Log,
            &Asked { made: DiskMade { no_flush: true, ..made.clone() }, aio: None },
            &[DiskMade { no_flush: true, ..made }],
            "",
        );
        assert_eq!(rows.iter().map(|row| row.equal).collect::<Vec<_>>(), [true, false], "{rows:?}");
        assert_eq!((rows[0].resource.as_str(), rows[1].resource.as_str()), ("log disk", "flushes of the log disk"));
    }
}
