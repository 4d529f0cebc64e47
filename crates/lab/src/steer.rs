//! Which CPUs receive what a link delivers: RPS, receive packet steering (Documentation/networking/scaling.rst).
//!
//! A veth hands a frame to its other end on the CPU of the *sender*, which then also runs the receiver's IP and TCP.
//! So the guest's half of the network stack would run on the driver's CPUs, outside of what is charged to the
//! SUT, and the client's half on the guests'. With RPS each end receives on CPUs of its own.
//!
//! One link has it, the client's, as the wire between the two sides: whatever the guest's own link is, what comes over the
//! wire is received, bridged and delivered on the guests' CPUs, as where a card's interrupts go to them. What a guest
//! sends is bridged on the CPU on which it sends, until the client's end receives it.
//!
//! The setting is a file in sysfs, and a sysfs shows the links of the namespace it was mounted in: hence a
//! scratch thread with mounts of its own. The kernel gives it to root of the first user namespace alone, and refuses CPUs that are
//! isolated (isolcpus).

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

use crate::cpu::format_cpu_list;
use crate::sys;

/// Mounts a sysfs of the network namespace that this thread is in, seen by this thread alone. For scratch threads only.
pub(crate) fn mount_sysfs_here() -> io::Result<()> {
    sys::unshare(sys::Unshare::Mounts)?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("sysfs", "/sys", "sysfs", flags, None)?)
}

/// The files of a link's receive queues, in the sysfs that this thread sees.
fn queues(link: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for queue in fs::read_dir(format!("/sys/class/net/{link}/queues"))? {
        let queue = queue?;
        if queue.file_name().to_string_lossy().starts_with("rx-") {
            files.push(queue.path().join("rps_cpus"));
        }
    }
    Ok(files)
}

/// Lets `cpus` receive what `link` delivers.
///
/// # Errors
/// When the kernel has no RPS or does not allow it (only root of the host may set it).
pub(crate) fn set(link: &str, cpus: &[u32]) -> io::Result<()> {
    queues(link)?.iter().try_for_each(|file| fs::write(file, mask(cpus)))
}

/// The CPUs that receive what `link` delivers, ascending; none where that is the CPU of the sender.
///
/// # Errors
/// When the kernel has no RPS.
pub(crate) fn get(link: &str) -> io::Result<Vec<u32>> {
    let mut cpus = Vec::new();
    for file in queues(link)? {
        cpus.extend(parse_mask(&fs::read_to_string(file)?));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The same for people.
pub(crate) fn words(cpus: &[u32]) -> String {
    if cpus.is_empty() { "the sender's CPU".into() } else { format!("cpus {}", format_cpu_list(cpus)) }
}

/// CPUs as the kernel writes a set: words of 32 bits in hexadecimal, the highest first, between commas.
fn mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |last| last / 32 + 1);
    let word = |n: u32| cpus.iter().filter(|cpu| **cpu / 32 == n).fold(0u32, |bits, cpu| bits | 1 << (cpu % 32));
    (0..words).rev().map(|n| format!("{:08x}", word(n))).collect::<Vec<_>>().join(",")
}

fn parse_mask(text: &str) -> Vec<u32> {
    let words = text.trim().rsplit(',').zip(0u32..);
    let bits = words.flat_map(|(word, n)| {
        let bits = u32::from_str_radix(word, 16).unwrap_or(0);
        (0..32).filter(move |bit| bits & (1 << bit) != 0).map(move |bit| n * 32 + bit)
    });
    bits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_cpus_is_written_as_the_kernel_reads_it() {
        assert_eq!(mask(&[1]), "00000002");
        assert_eq!(mask(&[0, 33, 95]), "80000000,00000002,00000001");
        for cpus in [vec![1], vec![0, 33, 95], vec![31, 32], Vec::new()] {
            assert_eq!(parse_mask(&mask(&cpus)), cpus);
        }
        assert_eq!(parse_mask("3\n"), [0, 1]);
    }
}
