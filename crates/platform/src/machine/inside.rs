//! What was asked of a machine beyond processors and memory, read back from its kernel and from the host.

use tare_model::ByteSize;
use tare_model::guest::ParityRow;
use tare_wire::{AgentFacts, BALLOON_REPORTS};

use crate::parity::{self, owned};

/// What was asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked<'a> {
    /// Pairs of queues of its network card; 0 where that is not tare's to say.
    pub queues: u32,
    /// Whether it gives freed pages back.
    pub free_page_reporting: bool,
    /// Memory that is to lie in huge pages of the host's, bytes.
    pub huge_pages: Option<u64>,
    /// Words for its kernel.
    pub append: &'a [String],
}

/// The rows of what was asked; none of what is as usual. `process` is the hypervisor's program.
pub(crate) fn rows(asked: Asked<'_>, facts: &AgentFacts, process: u32) -> Vec<ParityRow> {
    let mut rows = Vec::new();
    let mut row = |resource: &str, asked: String, granted: Option<String>, note: &str| {
        rows.push(parity::row(resource, asked, granted, note));
    };
    if asked.queues > 1 {
        let granted = facts.facts.iter().find(|(name, _)| name.starts_with("queues ")).map(|(_, count)| count.clone());
        let note = "queues of the guest's interface; its driver uses no more than the guest has CPUs";
        row("pairs of queues", asked.queues.to_string(), granted, note);
    }
    if asked.free_page_reporting {
        let granted = owned(facts, "balloon");
        row("free page reporting", BALLOON_REPORTS.to_owned(), granted, "what the guest's driver has agreed to");
    }
    if let Some(bytes) = asked.huge_pages {
        let granted = in_huge_pages(process).map(|bytes| ByteSize(bytes).to_string());
        row("memory in huge pages", ByteSize(bytes).to_string(), granted, "smaps of the hypervisor's process");
    }
    if let Some(pages) = words_value(asked.append, "hugepages") {
        let granted = owned(facts, "huge pages reserved");
        row("huge pages of the guest's kernel", pages.to_owned(), granted, "/proc/meminfo of the guest");
    }
    rows
}

/// The value of a kernel's word: the last one counts.
fn words_value<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    let all = words.iter().flat_map(|word| word.split_whitespace());
    all.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).next_back()
}

/// How much of a process's address space is in pages larger than the processor's own.
fn in_huge_pages(process: u32) -> Option<u64> {
    Some(sum(&std::fs::read_to_string(format!("/proc/{process}/smaps")).ok()?, rustix::param::page_size() as u64))
}

/// Of mappings whose page the kernel says is larger than `page` bytes (proc_pid_smaps(5)).
fn sum(smaps: &str, page: u64) -> u64 {
    let (mut size, mut huge) = (0, 0);
    for line in smaps.lines() {
        let value =
            |key: &str| line.strip_prefix(key)?.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024);
        if let Some(bytes) = value("Size:") {
            size = bytes;
        } else if value("KernelPageSize:").is_some_and(|own| own > page) {
            huge += size;
        }
    }
    huge
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(of: &[(&str, &str)]) -> AgentFacts {
        AgentFacts { facts: of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect() }
    }

    #[test]
    fn what_was_asked_is_compared_with_what_the_guest_has() {
        let append = ["hugepages=4".to_owned(), "hugepages=8".to_owned()];
        let asked = Asked { queues: 2, free_page_reporting: true, huge_pages: None, append: &append };
        let equal =
            |of: &[(&str, &str)]| -> Vec<bool> { rows(asked, &facts(of), 0).iter().map(|row| row.equal).collect() };
        let had = [("queues eth0", "2"), ("balloon", BALLOON_REPORTS), ("huge pages reserved", "8")];
        assert_eq!(equal(&had), [true; 3]);
        assert_eq!(equal(&[("queues eth0", "1"), ("balloon", "no"), ("huge pages reserved", "4")]), [false; 3]);
        assert_eq!(equal(&[]), [false; 3]);
        assert_eq!(rows(Asked { queues: 1, ..Asked::default() }, &facts(&[]), 0), []);
        let none = rows(Asked { huge_pages: Some(1 << 30), ..Asked::default() }, &facts(&[]), std::process::id());
        assert!(matches!(none.as_slice(), [row] if !row.equal && row.granted.is_some()), "{none:?}");
    }

    #[test]
    fn mappings_of_huge_pages_are_summed() {
        let mapping = |kib: u32, page: u32| {
            format!(
                "7f00-7f01 rw-s 0 00:01 9 /memfd:ram (deleted)\nSize: {kib} kB\nKernelPageSize: {page} kB\nMMUPageSize: {page} kB\n"
            )
        };
        let smaps = [mapping(4096, 2048), mapping(100, 4), mapping(2048, 2048)].concat();
        assert_eq!(sum(&smaps, 4096), 6 << 20);
        assert_eq!(sum("", 4096), 0);
    }
}
