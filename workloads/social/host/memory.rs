//! Whether guests have the memory that their instances take, and whether heaps find large pages in them.

use tare_model::guest::GuestSize;
use tare_wire::{Reply, Request};

use super::parameters::{LargePages, METASPACE_BYTES, Parameters, SYSTEM_BYTES};
use crate::{Failure, WorkSite, WorkloadError};

const MIB: u64 = 1 << 20;
/// Where a system tells how many large pages it has set aside.
const MEMINFO: &str = "/proc/meminfo";
/// Longest that is read of it, bytes.
const MEMINFO_BYTES: u64 = 16 << 10;

/// What one instance takes, bytes: heap, classes with their code, stacks of its threads.
pub(super) fn of_instance(parameters: &Parameters, cpus: u32) -> u64 {
    let stacks = u64::from(parameters.threads).saturating_mul(parameters.java.stack.0);
    parameters.heap_bytes(cpus).saturating_add(METASPACE_BYTES).saturating_add(stacks)
}

/// Refuses more instances than a guest has memory for, by the published rule: the guest's system, and for each instance heap, metaspace and
/// threads x stack.
///
/// # Errors
/// The figures, with what would fit.
pub(super) fn fit(parameters: &Parameters, guest: &GuestSize, instances: u32) -> Result<(), Failure> {
    let each = of_instance(parameters, guest.cpus);
    let all = each.saturating_mul(instances.into()).saturating_add(SYSTEM_BYTES);
    if all <= guest.memory.0 {
        return Ok(());
    }
    let mib = |bytes: u64| format!("{} MiB", bytes.div_ceil(MIB));
    let stacks = u64::from(parameters.threads).saturating_mul(parameters.java.stack.0);
    let why = format!(
        "{} for the guest's system and {instances} times {} (heap {}, classes and code {}, {} threads of {} KiB stack) are {}, and the guest \
         has {}",
        mib(SYSTEM_BYTES),
        mib(each),
        mib(parameters.heap_bytes(guest.cpus)),
        mib(METASPACE_BYTES),
        parameters.threads,
        parameters.java.stack.0 >> 10,
        mib(all),
        mib(guest.memory.0)
    );
    let room = guest.memory.0.saturating_sub(SYSTEM_BYTES) / u64::from(instances.max(1));
    let most = room.saturating_sub(METASPACE_BYTES + stacks) / MIB;
    let fewer = guest.memory.0.saturating_sub(SYSTEM_BYTES) / each.max(1);
    let remedy = match (most >= 64, fewer > 0) {
        (true, _) => {
            format!("write java = {{ heap = \"{most}MiB\" }} at most, ask for fewer `instances`, or for larger guests")
        }
        (false, true) => format!("ask for {fewer} `instances` at most, or for larger guests"),
        (false, false) => "ask for larger guests".to_owned(),
    };
    Err(Failure::new(format!("start {instances} instances of the social application in one guest"), why, remedy))
}

/// What was decided of large pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pages {
    /// Whether heaps are to lie in them.
    pub large: bool,
    /// Why, for people.
    pub why: String,
}

/// Decides whether heaps lie in large pages of the guest's.
///
/// # Errors
/// When they are asked for and there are too few, or the guest's agent is gone.
pub(super) fn pages(site: &WorkSite<'_>, parameters: &Parameters) -> Result<Pages, WorkloadError> {
    let needed = parameters.heap_bytes(site.size.cpus).saturating_mul(site.instances.into());
    if parameters.java.large_pages == LargePages::Off {
        return Ok(Pages { large: false, why: "none, as `large-pages` asks".to_owned() });
    }
    let request = Request::GetFile { path: MEMINFO.to_owned(), offset: 0, limit_bytes: MEMINFO_BYTES };
    let free = match site.ask_guest(request) {
        Ok(Reply::File { bytes, .. }) => free(&String::from_utf8_lossy(&bytes)),
        Ok(_) => return Err(WorkSite::unexpected("guest", "read a file")),
        Err(error) if error.guest_lost() => return Err(error),
        Err(_) => None,
    };
    Ok(decided(parameters.java.large_pages, free, needed)?)
}

/// Bytes of large pages that nobody uses or has been promised, and the size of one; `None`: the system has none.
fn free(meminfo: &str) -> Option<(u64, u64)> {
    let number = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let page = number("Hugepagesize")?.checked_mul(1024)?;
    let pages = number("HugePages_Free")?.saturating_sub(number("HugePages_Rsvd").unwrap_or(0));
    Some((pages.checked_mul(page)?, page))
}

fn decided(asked: LargePages, free: Option<(u64, u64)>, needed: u64) -> Result<Pages, Failure> {
    let there = match free {
        Some((bytes, page)) => format!("{} MiB free in large pages of {} KiB", bytes / MIB, page >> 10),
        None => "no large pages".to_owned(),
    };
    if free.is_some_and(|(bytes, _)| bytes >= needed) {
        return Ok(Pages { large: true, why: format!("used for heaps; the guest had {there}") });
    }
    let why = format!("the guest has {there}, and the heaps take {} MiB", needed / MIB);
    match asked {
        LargePages::On => {
            let remedy =
                "set some aside where the guest's system finds them (vm.nr_hugepages), or write large-pages = \"auto\"";
            Err(Failure::new("put heaps into large pages", why, remedy))
        }
        LargePages::Auto | LargePages::Off => {
            Ok(Pages { large: false, why: format!("none: {why}; published: large pages") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::social::parameters::Java;
    use tare_model::ByteSize;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_published_guests_hold_ten_instances_and_small_ones_are_refused_with_what_fits() {
        let plain = Parameters::default();
        let guest = |cpus, memory| GuestSize { cpus, memory: ByteSize(memory) };
        fit(&plain, &guest(1, 24 * GIB), 10).unwrap();
        fit(&plain, &guest(2, 32 * GIB), 10).unwrap();
        let error = fit(&plain, &guest(1, 8 * GIB), 10).unwrap_err();
        assert!(error.why.contains("10 times 1830 MiB") && error.why.contains("8192 MiB"), "{error}");
        let most: u64 = error.remedy.split('"').nth(1).unwrap().trim_end_matches("MiB").parse().unwrap();
        let with =
            |mib| Parameters { java: Java { heap: Some(ByteSize(mib * MIB)), ..Java::default() }, ..plain.clone() };
        fit(&with(most), &guest(1, 8 * GIB), 10).unwrap();
        assert!(fit(&with(most + 1), &guest(1, 8 * GIB), 10).is_err(), "{most} is the most");
        let error = fit(&with(256), &guest(1, GIB), 10).unwrap_err();
        assert!(error.remedy.contains("1 `instances` at most"), "{error}");
    }

    #[test]
    fn large_pages_are_those_that_nobody_uses() {
        let text = "MemTotal: 9 kB\nHugePages_Total:     600\nHugePages_Free:      512\nHugePages_Rsvd:       12\nHugepagesize:       2048 kB\n";
        assert_eq!(free(text), Some((500 * 2 * MIB, 2 * MIB)));
        assert_eq!(free("MemTotal: 9 kB\n"), None);
        let some = Some((1000 * MIB, 2 * MIB));
        assert!(decided(LargePages::Auto, some, 1000 * MIB).unwrap().large);
        let none = decided(LargePages::Auto, some, 1001 * MIB).unwrap();
        assert!(!none.large && none.why.contains("1000 MiB free") && none.why.contains("1001 MiB"), "{none:?}");
        let error = decided(LargePages::On, None, MIB).unwrap_err().to_string();
        assert!(error.contains("no large pages") && error.contains("nr_hugepages"), "{error}");
    }
}
