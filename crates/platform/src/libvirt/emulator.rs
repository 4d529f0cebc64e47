//! The process that carries a domain on this host: found, put under tare's limits, its CPU time by kind of thread.
//!
//! libvirt puts it into a group of its own, with no limits. It is moved to the guest's before it has run an
//! instruction, so that the same limits hold for every arm, and all of its time is charged to the guest.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Charge;

/// Nanoseconds in a second.
const NS_PER_S: f64 = 1e9;

/// The emulator of the domain with that UUID that this run has made, if it runs here.
pub(super) fn find(run_id: &str, uuid: &str) -> Option<u32> {
    with_uuid(uuid).filter(|&pid| tare_lab::is_of_run(pid, run_id))
}

/// The emulator of the domain with that UUID, if it runs here: by its command line.
pub(super) fn with_uuid(uuid: &str) -> Option<u32> {
    processes().find(|pid| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments: Vec<&[u8]> = arguments.split(|&byte| byte == 0).collect();
        arguments.windows(2).any(|pair| pair == [b"-uuid".as_slice(), uuid.as_bytes()])
    })
}

/// Moves the emulator, and the kernel's threads that work for it, into the groups.
pub(super) fn join(pid: u32, procs_files: &[PathBuf]) -> io::Result<()> {
    for file in procs_files {
        // Not fs::write, which would make a file where the kernel has none.
        let add = |pid: u32| fs::OpenOptions::new().write(true).open(file)?.write_all(pid.to_string().as_bytes());
        add(pid)?;
        for helper in kernel_threads(pid) {
            add(helper)?;
        }
    }
    Ok(())
}

/// Threads of the kernel that move packets for the process (`vhost-PID`), where they are processes of their own (before
/// Linux 6.4); later they are among its own.
fn kernel_threads(pid: u32) -> Vec<u32> {
    let name = format!("vhost-{pid}");
    processes().filter(|other| comm(Path::new(&format!("/proc/{other}"))) == name).collect()
}

/// The CPU time of the process so far, by kind of thread.
pub(super) fn charges(pid: u32) -> Vec<Charge> {
    let mut charges: Vec<Charge> = Vec::new();
    let mut add = |kind: &str, cpu_s: f64| match charges.iter_mut().find(|charge| charge.kind == kind) {
        Some(charge) => charge.cpu_s += cpu_s,
        None => charges.push(Charge { kind: kind.to_owned(), cpu_s }),
    };
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        add(kind(&comm(&task.path())), cpu_s(&task.path()));
    }
    for helper in kernel_threads(pid) {
        add(VHOST, cpu_s(Path::new(&format!("/proc/{helper}"))));
    }
    charges
}

/// The threads that carry its virtual CPUs, in their order.
pub(super) fn vcpus(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let vcpu = |task: fs::DirEntry| Some((vcpu(&comm(&task.path()))?, task.file_name().to_str()?.parse().ok()?));
    let mut threads: Vec<(u32, u32)> = tasks.filter_map(vcpu).collect();
    threads.sort_unstable();
    threads.into_iter().map(|(_, thread)| thread).collect()
}

/// The virtual CPU that a thread of this name carries: "CPU 3/KVM".
fn vcpu(comm: &str) -> Option<u32> {
    comm.strip_prefix("CPU ")?.split('/').next()?.parse().ok()
}

/// The CPU time of all threads of a process so far, seconds.
pub(super) fn cpu(pid: u32) -> f64 {
    charges(pid).iter().map(|charge| charge.cpu_s).sum()
}

const VHOST: &str = "vhost threads";

/// What a thread of QEMU's does, by its name; libvirt starts QEMU so that it names them.
fn kind(comm: &str) -> &'static str {
    match comm {
        _ if comm.starts_with("CPU ") => "virtual CPUs",
        _ if comm.starts_with("vhost-") => VHOST,
        _ if comm.starts_with("IO ") || comm.starts_with("worker") || comm.starts_with("iou-") => "I/O threads",
        _ => "emulator",
    }
}

fn comm(process: &Path) -> String {
    fs::read_to_string(process.join("comm")).unwrap_or_default().trim_end().to_owned()
}

/// Time on a CPU, the first number in `schedstat` (Documentation/scheduler/sched-stats.rst), seconds.
fn cpu_s(task: &Path) -> f64 {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / NS_PER_S
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_distinguished_by_their_names() {
        let kinds = ["CPU 0/KVM", "CPU 1/TCG", "vhost-123", "IO iothread1", "worker", "qemu-system-x86", "call_rcu"];
        let expected = ["virtual CPUs", "virtual CPUs", VHOST, "I/O threads", "I/O threads", "emulator", "emulator"];
        assert_eq!(kinds.map(kind), expected);
        assert_eq!(["CPU 11/KVM", "CPU x", "worker"].map(vcpu), [Some(11), None, None]);
        let own = charges(std::process::id());
        assert!(own.iter().map(|charge| charge.cpu_s).sum::<f64>() > 0.0, "{own:?}");
        assert_eq!(find("no-such-run", "no-such-uuid"), None);
    }
}
