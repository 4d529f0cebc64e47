//! The environment of a run: everything about the host that can move a figure.

mod hardware;
mod inventory;
mod redact;
mod system;

use std::path::Path;

use tare_model::environment::{Environment, Section};

use crate::Ethtool;
use inventory::Place;
use redact::Redactor;

/// Title of the section that callers add the versions of programs to.
pub const SOFTWARE: &str = "Software";

/// Describes this host. A fact that cannot be read is there with the reason in place of its value, so this never
/// fails. `places`: what of the run's is where, in words such as `the run folder`, so that the disk under each is known.
///
/// With `redact`, host names, MAC and IP addresses, UUIDs and the values of kernel parameters that have no bearing on
/// performance are replaced. Serial numbers and asset tags are not read in either case.
pub fn capture(redact: bool, places: &[(&str, &Path)]) -> Environment {
    let ethtool = Ethtool::open().map_err(|error| reason(&error));
    // What is not there yet will be where the directory above it is.
    let disk = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        path.ancestors().find(|above| above.exists()).and_then(crate::disk_of)
    };
    let places: Vec<Place> = places.iter().map(|(place, path)| ((*place).to_owned(), disk(path))).collect();
    capture_in(Path::new("/"), redact, &ethtool, &places)
}

/// A network link of the namespace that this thread is in, and whose sysfs it sees: driver, speed, MTU in bytes, offloads that are on, rings and
/// queues, as name and value, where they are reported. A link that is no device's own, such as a bond, has them too.
pub fn card(interface: &str) -> Vec<(String, String)> {
    inventory::card(&View { root: Path::new("/") }, Ethtool::open().ok().as_ref(), interface)
}

/// The same of a copy of `/proc`, `/sys`, `/etc`, `/boot` and `/usr/share` under `root`.
fn capture_in(root: &Path, redact: bool, ethtool: &Result<Ethtool, String>, places: &[Place]) -> Environment {
    let view = View { root };
    let sections = vec![
        hardware::cpu(&view),
        hardware::memory(&view),
        system::kernel(&view, redact),
        hardware::virtualisation(&view),
        system::network(&view),
        system::scheduler(&view),
        system::limits(&view),
        system::software(&view),
    ];
    let hardware = inventory::read(&view, ethtool, places);
    let mut environment = Environment { sections, hardware, machines: Vec::new(), redacted: redact };
    if redact {
        let redactor = Redactor::new(view.text("proc/sys/kernel/hostname").unwrap_or_default());
        for (_, value) in environment.sections.iter_mut().flat_map(|section| &mut section.facts) {
            *value = redactor.redact(value);
        }
        let cells = environment.hardware.iter_mut().flat_map(|table| table.rows.iter_mut().flatten());
        cells.for_each(|cell| *cell = redactor.redact_device(cell));
    }
    environment
}

/// Adds the version of a program (tare itself, a container runtime) to the section [`SOFTWARE`].
pub fn add_software(environment: &mut Environment, name: &str, version: &str) {
    let fact = (name.to_owned(), version.to_owned());
    match environment.sections.iter_mut().find(|section| section.title == SOFTWARE) {
        Some(section) => section.facts.push(fact),
        None => environment.sections.push(Section { title: SOFTWARE.to_owned(), facts: vec![fact] }),
    }
}

/// The files of a host.
struct View<'a> {
    root: &'a Path,
}

impl View<'_> {
    /// A file's text without the spaces around it, or why it cannot be read, fit to stand in its place.
    fn text(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(self.root.join(path))
            .map(|text| text.trim().to_owned())
            .map_err(|error| format!("not available: {} (/{path})", reason(&error)))
    }

    /// Names in a directory, sorted.
    fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let entries = std::fs::read_dir(self.root.join(path))
            .map_err(|error| format!("not available: {} (/{path})", reason(&error)))?;
        let mut names: Vec<_> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

/// The system's reason in words, without the number that Rust adds.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "not present on this host".to_owned(),
        std::io::ErrorKind::PermissionDenied => "not readable for this user".to_owned(),
        _ => error.to_string(),
    }
}

/// A section in the making.
struct Facts(Section);

impl Facts {
    fn new(title: &str) -> Self {
        Self(Section { title: title.to_owned(), facts: Vec::new() })
    }

    fn put(&mut self, name: &str, value: impl Into<String>) {
        self.0.facts.push((name.to_owned(), value.into()));
    }

    /// A value or the reason why there is none.
    fn put_result(&mut self, name: &str, value: Result<String, String>) {
        let value = value.unwrap_or_else(|reason| reason);
        self.put(name, if value.is_empty() { "empty".to_owned() } else { value });
    }

    /// The text of a file, its lines and tabs as single spaces.
    fn file(&mut self, view: &View<'_>, name: &str, path: &str) {
        self.put_result(name, view.text(path).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture_in(root: &Path, redact: bool) -> Environment {
        super::capture_in(root, redact, &Err("a copy of a host has none".to_owned()), &[])
    }

    /// A host with every kind of secret in the places where hosts keep them.
    fn fake_root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/hostname", "db7.prod.example.com\n");
        write("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
        write("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (built on db7)\n");
        write(
            "proc/cmdline",
            "BOOT_IMAGE=/vmlinuz root=UUID=0a1b2c3d-1111-2222-3333-444455556666 ro mitigations=off isolcpus=2-7 \
             ip=10.20.30.40::10.20.30.1:255.255.255.0:db7 systemd.hostname=db7 token=s3cr3t quiet -- --key s3cr3t2\n",
        );
        write("proc/cpuinfo", include_str!("../../tests/fixtures/cpuinfo"));
        write("proc/stat", "cpu  100 0 50 900 1 40 40 0 0 0\n");
        write("sys/class/dmi/id/sys_vendor", "QEMU\n");
        write("sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009) 52:54:00:ab:cd:ef\n");
        write("sys/class/dmi/id/product_serial", "VMware-56-4d\n");
        write("sys/class/dmi/id/product_uuid", "0a1b2c3d-9999-2222-3333-444455556666\n");
        write("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
        write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        write("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n");
        write("etc/os-release", "NAME=Debian\nPRETTY_NAME=\"Debian on fe80::1ff:fe23:4567:890a\"\n");
        root
    }

    fn fact<'a>(environment: &'a Environment, title: &str, name: &str) -> &'a str {
        let section = environment.sections.iter().find(|section| section.title == title).unwrap();
        &section.facts.iter().find(|(key, _)| key == name).unwrap().1
    }

    #[test]
    fn nothing_that_names_the_host_gets_through() {
        let root = fake_root();
        let environment = capture_in(root.path(), true);
        let all = format!("{environment:?}");
        let secrets =
            ["db7", "example.com", "10.20.30", "52:54:00", "0a1b2c3d", "s3cr3t", "fe80::", "VMware-56", "444455556666"];
        for secret in secrets {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        assert!(environment.redacted);
    }

    #[test]
    fn what_matters_survives_redaction() {
        let root = fake_root();
        let environment = capture_in(root.path(), true);
        let command_line = fact(&environment, "Kernel", "command line");
        for kept in ["mitigations=off", "isolcpus=2-7", "quiet", "root=(redacted)", "ro"] {
            assert!(command_line.split(' ').any(|word| word == kept), "{kept} in {command_line}");
        }
        assert_eq!(fact(&environment, "Kernel", "release"), "6.1.0-28-amd64");
        assert_eq!(fact(&environment, "CPU", "vulnerability: meltdown"), "Mitigation: PTI");
        assert_eq!(fact(&environment, "CPU", "model"), "AMD EPYC");
        assert_eq!(fact(&environment, "Memory", "transparent huge pages"), "always [madvise] never");
        assert_eq!(fact(&environment, "Network", "net.ipv4.tcp_congestion_control"), "bbr");
        assert!(fact(&environment, "Virtualisation", "this host is a virtual machine").starts_with("yes"));
    }

    #[test]
    fn without_redaction_it_is_shown_as_it_is() {
        let root = fake_root();
        let environment = capture_in(root.path(), false);
        assert!(fact(&environment, "Kernel", "command line").contains("systemd.hostname=db7"));
        assert!(!environment.redacted);
    }

    #[test]
    fn a_fact_that_cannot_be_read_says_why() {
        let root = tempfile::tempdir().unwrap();
        let environment = capture_in(root.path(), true);
        assert_eq!(
            fact(&environment, "Kernel", "clock source"),
            "not available: not present on this host (/sys/devices/system/clocksource/clocksource0/current_clocksource)"
        );
        assert!(environment.sections.iter().all(|section| !section.facts.is_empty()));
        assert!(environment.sections.iter().flat_map(|section| &section.facts).all(|(_, value)| !value.is_empty()));
    }

    #[test]
    fn a_processor_without_a_name_is_described_by_its_numbers() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let one = "BogoMIPS\t: 125.00\nFeatures\t: fp asimd crc32\nCPU implementer\t: 0x41\nCPU architecture: 8\n\
                   CPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n";
        let text = format!("processor\t: 0\n{one}\nprocessor\t: 1\n{one}\n");
        std::fs::write(root.path().join("proc/cpuinfo"), text).unwrap();
        let environment = capture_in(root.path(), true);
        let numbers = "implementer/part/variant/revision 0x41/0xd08/0x0/3";
        assert_eq!(fact(&environment, "CPU", "model"), numbers);
        assert_eq!(fact(&environment, "CPU", "flags that matter"), "fp asimd crc32");
    }

    #[test]
    fn a_place_that_is_not_there_yet_is_on_the_disk_above_it() {
        let said = |place: &str| format!("{:?}", capture(true, &[("it", Path::new(place))]).hardware);
        let here = std::env::current_dir().unwrap();
        assert_eq!(said("to/be/made"), said(here.to_str().unwrap()));
        assert!(said("/proc/self").contains("The disk under it is not known"));
    }

    #[test]
    fn this_host_is_described_without_its_name() {
        let environment = capture(true, &[("the root", Path::new("/"))]);
        assert!(!fact(&environment, "Kernel", "release").starts_with("not available"));
        let mut with_tools = environment.clone();
        add_software(&mut with_tools, "tare", "0.1.0");
        assert_eq!(fact(&with_tools, SOFTWARE, "tare"), "0.1.0");
    }
}
