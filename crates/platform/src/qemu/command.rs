//! QEMU's command line.

use std::path::Path;

use tare_image::{Boot, CHANNEL_PORT};
use tare_model::guest::GuestSpec;

use super::network::on;
use super::options::{Machine, Memory};
use super::sys;

/// Memory of the host's for translated code, MiB. Beyond it translations are thrown away and made again.
const TRANSLATED_MIB: u32 = 64;
/// Timer interrupts a second of distributions' kernels (CONFIG_HZ), by which `lpj` is reckoned.
const HZ: u64 = 250;

/// Name of the machine's memory, for QEMU.
pub(super) const BACKEND: &str = "ram";
/// Name of its balloon.
pub(super) const BALLOON: &str = "balloon";

/// What every machine has.
pub(super) struct Basics<'a> {
    pub machine: Machine,
    pub kvm: bool,
    pub cpu: &'a str,
    pub cpus: u32,
    /// What it boots, and the agent's words for the kernel command line; none boots from its disk.
    pub boot: Option<(&'a Boot, &'a str)>,
    pub append: &'a [String],
}

impl Machine {
    /// The end of the names of devices on the machine's bus.
    pub(super) const fn bus(self) -> &'static str {
        match self {
            Self::Q35 => "pci",
            Self::Microvm => "device",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Q35 => "q35",
            Self::Microvm => "microvm",
        }
    }
}

/// A value within one of QEMU's lists: a comma is written twice.
pub(super) fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// The words without which there is no guest: processor, kernel, console and channel.
pub(super) fn basics(basics: &Basics<'_>) -> Vec<String> {
    let mut words: Vec<String> =
        ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"].map(str::to_owned).to_vec();
    let accel = if basics.kvm { "kvm".to_owned() } else { format!("tcg,thread=multi,tb-size={TRANSLATED_MIB}") };
    let bus = basics.machine.bus();
    let mut pair = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if basics.machine == Machine::Microvm {
        // Its bus is that of virtio 0.9 by default; the file server and the MTU need virtio 1.
        pair("-global", "virtio-mmio.force-legacy=false".into());
    }
    pair("-accel", accel);
    pair("-cpu", basics.cpu.to_owned());
    pair("-smp", format!("{n},sockets=1,cores={n},threads=1", n = basics.cpus));
    // The console goes where a program's complaints go, so that both are shown together.
    pair("-chardev", "file,id=console,path=/dev/fd/2".into());
    pair("-serial", "chardev:console".into());
    pair("-chardev", "stdio,id=agent,signal=off".into());
    pair("-device", format!("virtio-serial-{bus}"));
    pair("-device", format!("virtserialport,chardev=agent,name={CHANNEL_PORT}"));
    if let Some((boot, agent_words)) = basics.boot {
        pair("-kernel", boot.kernel.to_string_lossy().into_owned());
        pair("-initrd", boot.initrd.to_string_lossy().into_owned());
        pair("-append", format!("{} {agent_words}", kernel_words(basics).join(" ")));
    }
    words
}

/// Words for the guest's kernel, tare's own and the study's.
pub(super) fn kernel_words(basics: &Basics<'_>) -> Vec<String> {
    // A kernel that panics ends its machine, and with it the wait for its agent. Each byte on the serial line costs an exit from
    // the guest, so the kernel prints errors only, which a panic is.
    let mut words: Vec<String> = ["console=ttyS0", "panic=-1", "quiet"].map(str::to_owned).to_vec();
    if !basics.kvm {
        words.extend(["mitigations=off", "tsc=reliable", "random.trust_cpu=on"].map(str::to_owned));
        // Without a timer of its own to go by, this machine's kernel now and then hangs when it measures the clock.
        if let (Machine::Microvm, Some(khz)) = (basics.machine, sys::tsc_khz()) {
            words.extend([format!("tsc_early_khz={khz}"), format!("lpj={}", khz * 1000 / HZ)]);
        }
    }
    words.extend_from_slice(basics.append);
    words
}

/// The machine and its memory. `shared`: with a file server.
pub(super) fn memory(machine: Machine, memory: Memory, shared: bool, spec: &GuestSpec) -> Vec<String> {
    let (size, merge) = (spec.size.memory, spec.merge);
    let kind = if shared || memory.huge_pages { "memfd" } else { "ram" };
    let mut backend = format!("memory-backend-{kind},id={BACKEND},size={},merge={}", size.0, on(merge));
    if shared {
        backend.push_str(",share=on");
    }
    if memory.huge_pages {
        backend.push_str(",hugetlb=on");
    }
    // The machine's own setting counts for all of its memory, whatever the backend's is, and is on by default.
    let machine_word = format!("{},memory-backend={BACKEND},mem-merge={}", machine.name(), on(merge));
    let size_word = format!("{}B", size.0);
    let mut words = ["-M", &machine_word, "-m", &size_word, "-object", &backend].map(str::to_owned).to_vec();
    if memory.free_page_reporting || spec.balloon {
        let reporting = on(memory.free_page_reporting);
        let balloon = format!("virtio-balloon-{},id={BALLOON},free-page-reporting={reporting}", machine.bus());
        words.extend(["-device".to_owned(), balloon]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::ByteSize;
    use tare_model::guest::GuestSize;

    fn words_for(machine: Machine, kvm: bool) -> String {
        let basics = Basics { machine, kvm, cpu: "max", cpus: 2, boot: None, append: &["x".into()] };
        kernel_words(&basics).join(" ")
    }

    #[test]
    fn a_guest_that_is_compared_keeps_its_mitigations() {
        assert!(!words_for(Machine::Q35, true).contains("mitigations"));
        assert!(words_for(Machine::Q35, false).contains("mitigations=off"));
        assert!(words_for(Machine::Q35, false).ends_with(" x"), "the study has the last word");
        assert!([true, false].into_iter().all(|kvm| words_for(Machine::Q35, kvm).contains(" quiet")));
        assert_eq!(words_for(Machine::Microvm, false).contains("tsc_early_khz="), cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn memory_is_shared_only_with_a_file_server() {
        let spec = GuestSpec::new("a", GuestSize { cpus: 1, memory: ByteSize(1 << 30) });
        let of = |memory, shared, spec: &GuestSpec| super::memory(Machine::Q35, memory, shared, spec).join(" ");
        let words = |memory, shared, merge| of(memory, shared, &GuestSpec { merge, ..spec.clone() });
        let said = |memory, shared| words(memory, shared, false);
        let sized = of(Memory::default(), false, &GuestSpec { balloon: true, ..spec.clone() });
        assert!(sized.contains("virtio-balloon-pci,id=balloon,free-page-reporting=off"), "{sized}");
        assert!(said(Memory::default(), true).contains("memfd") && said(Memory::default(), true).contains("share=on"));
        let own = words(Memory { free_page_reporting: true, ..Memory::default() }, false, true);
        assert!(
            own.contains("memory-backend-ram") && own.contains(",merge=on") && own.contains("mem-merge=on"),
            "{own}"
        );
        let apart = said(Memory::default(), false);
        assert!(apart.contains(",merge=off") && apart.contains("mem-merge=off"), "{apart}");
        assert!(own.contains("free-page"), "{own}");
        assert!(said(Memory { huge_pages: true, ..Memory::default() }, false).contains("hugetlb=on"));
    }

    #[test]
    fn a_comma_in_a_path_stays_in_the_path() {
        assert_eq!(escaped(Path::new("/a,readonly=off")), "/a,,readonly=off");
    }
}
