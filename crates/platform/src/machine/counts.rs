//! KVM's counts of a guest from the kernel's debugfs, where root finds a directory for each machine. Its files are sums over the
//! virtual CPUs.

use std::io;
use std::path::{Path, PathBuf};

use tare_model::kvm::{COUNTS, series};

use crate::CountReader;
use crate::guest::Counts;

/// Where the kernel keeps them (Documentation/virt/kvm).
const MACHINES: &str = "/sys/kernel/debug/kvm";

/// What reads the counts of the machine of this process.
pub(crate) fn of_process(pid: u32) -> Counts {
    of_process_in(PathBuf::from(MACHINES), pid)
}

fn of_process_in(machines: PathBuf, pid: u32) -> Counts {
    Box::new(move || {
        let machines = machines.clone();
        Box::new(move || read(&machine(&machines, pid)?)) as CountReader
    })
}

/// The directory of the machine: `PID-` and a number of its own.
fn machine(machines: &Path, pid: u32) -> io::Result<PathBuf> {
    let missing = |why: String| io::Error::new(io::ErrorKind::NotFound, why);
    let found = std::fs::read_dir(machines).map_err(|error| {
        missing(format!("{}: {error}; `mount -t debugfs none /sys/kernel/debug` shows it", machines.display()))
    })?;
    let begin = format!("{pid}-");
    let of_process = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&begin);
    let machine = found.flatten().find(of_process);
    machine
        .map(|entry| entry.path())
        .ok_or_else(|| missing(format!("no machine of process {pid} in {}", machines.display())))
}

/// Those that this kernel keeps.
fn read(machine: &Path) -> io::Result<Vec<(String, f64)>> {
    let count = |&(name, _): &(&str, &str)| {
        let text = std::fs::read_to_string(machine.join(name)).ok()?;
        Some((series(name), text.trim().parse().ok()?))
    };
    let counts: Vec<(String, f64)> = COUNTS.iter().filter_map(count).collect();
    if counts.is_empty() { Err(io::Error::new(io::ErrorKind::NotFound, "KVM counts nothing")) } else { Ok(counts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_a_process_is_found_and_its_counts_are_read() {
        let machines = tempfile::tempdir().unwrap();
        let mut reader = of_process_in(machines.path().to_owned(), 7)();
        assert!(reader().unwrap_err().to_string().contains("no machine of process 7"));
        for (machine, exits) in [("7-12", "31"), ("71-3", "9")] {
            std::fs::create_dir(machines.path().join(machine)).unwrap();
            std::fs::write(machines.path().join(machine).join("exits"), format!("{exits}\n")).unwrap();
        }
        assert_eq!(reader().unwrap(), [("kvm_exits".to_owned(), 31.0)]);
        std::fs::remove_file(machines.path().join("7-12/exits")).unwrap();
        assert!(reader().is_err(), "none is no count of zero");
        let none = of_process_in(machines.path().join("none"), 7)();
        assert!({ none }().unwrap_err().to_string().contains("debugfs"));
    }
}
