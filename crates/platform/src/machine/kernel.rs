//! What virtual machines need of the host's kernel: each is found out by opening it, for the kernel loads most of its
//! modules only then.

use std::path::Path;

use tare_lab::{device_refusal, open_device};
use tare_model::Refusal;

const KVM: &str = "/dev/kvm";
const VHOST: &str = "/dev/vhost-net";
const TUN: &str = "/dev/net/tun";

/// Whether KVM's device opens. That says little of whether it runs guests.
pub(crate) fn kvm() -> Result<(), Refusal> {
    let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open(KVM) else { return Ok(()) };
    Err(without_kvm(&error, &std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()))
}

/// Whether KVM's device opens and is of a kind that boots ordinary kernels: what can be seen at once.
pub(crate) fn kvm_is_ordinary() -> Result<(), String> {
    kvm().map_err(|Refusal { reason, remedy }| format!("{reason} ({remedy})"))?;
    match Path::new("/sys/module/kvm_pvm").exists() {
        true => Err("the host's KVM is of a kind (kvm_pvm) that boots no ordinary kernel".into()),
        false => Ok(()),
    }
}

/// Whether the kernel can move a machine's packets.
pub(crate) fn vhost() -> Result<(), Refusal> {
    open_device(Path::new(VHOST), "vhost_net").map(drop)
}

/// Whether taps can be made.
pub(crate) fn tun() -> Result<(), Refusal> {
    open_device(Path::new(TUN), "tun").map(drop)
}

/// What a reader of a report must know about how KVM waits for virtual CPUs that halt. It is the host's to set, for all its guests.
pub(crate) fn halt_polling() -> String {
    halt_polling_by(&std::fs::read_to_string("/sys/module/kvm/parameters/halt_poll_ns").unwrap_or_default())
}

fn halt_polling_by(parameter: &str) -> String {
    let waits = match parameter.trim() {
        "" => "this kernel does not tell for how long (kvm.halt_poll_ns)".to_owned(),
        "0" => "it does not poll (kvm.halt_poll_ns is 0)".to_owned(),
        ns => format!("it polls for up to {ns} ns (kvm.halt_poll_ns) before the CPU is free for others"),
    };
    format!(
        "When a virtual CPU halts, KVM may poll for its next wake-up: {waits}. The guest's own polling shows as its idle driver."
    )
}

/// Whether a processor has what KVM needs, by its flags.
pub(crate) fn has_extensions(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.flat_map(str::split_whitespace).any(|word| word == "vmx" || word == "svm")
}

/// Opening the device loads KVM's common part alone: the part of a processor's maker is not always loaded by itself.
fn without_kvm(error: &std::io::Error, cpuinfo: &str) -> Refusal {
    let what = format!("{KVM} cannot be opened");
    let missing = matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENOENT | libc::ENXIO));
    let module =
        match cpuinfo.lines().find(|line| line.starts_with("vendor_id")).and_then(|line| line.split(':').nth(1)) {
            Some(vendor) if ["AuthenticAMD", "HygonGenuine"].contains(&vendor.trim()) => "kvm_amd",
            Some(_) => "kvm_intel",
            None => "kvm",
        };
    if missing && module != "kvm" && !has_extensions(cpuinfo) {
        let remedy = "Switch virtualisation (VT-x, AMD-V) on in the host's firmware; where the host is itself a virtual machine, \
                      have its hypervisor pass it on";
        return Refusal::new(format!("{what}: {error}: the processor shows neither vmx nor svm"), remedy);
    }
    device_refusal(Path::new(KVM), error, module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_words_of_their_own() {
        assert!(has_extensions("processor : 0\nflags\t\t: fpu svm sse\n"));
        assert!(!has_extensions("model name : vmx\nflags : fpu svm_lock vmxx\n"));
    }

    #[test]
    fn halt_polling_is_reported_as_the_host_has_it() {
        assert!(halt_polling_by("200000\n").contains("up to 200000 ns"));
        assert!(halt_polling_by("0\n").contains("does not poll"));
        assert!(halt_polling_by("").contains("does not tell"));
    }

    #[test]
    fn the_module_is_that_of_the_processors_maker() {
        let gone = std::io::Error::from_raw_os_error(libc::ENODEV);
        let said = |vendor: &str, flags: &str| {
            let Refusal { reason, remedy } =
                without_kvm(&gone, &format!("vendor_id\t: {vendor}\nflags\t\t: fpu {flags}\n"));
            assert!(reason.contains("/dev/kvm") && reason.contains("os error 19"), "{reason}");
            format!("{reason} {remedy}")
        };
        let intel = said("GenuineIntel", "vmx");
        assert!(intel.contains("kvm_intel") && !intel.contains("kvm_amd"), "{intel}");
        let amd = said("AuthenticAMD", "svm");
        assert!(amd.contains("kvm_amd") && !amd.contains("kvm_intel"), "{amd}");
        let none = said("GenuineIntel", "sse");
        assert!(none.contains("firmware") && none.contains("neither vmx nor svm"), "{none}");
    }

    #[test]
    fn a_device_without_its_module_is_refused_with_the_module() {
        for (found, device, module) in [(vhost(), VHOST, "vhost_net"), (tun(), TUN, "tun")] {
            let opens = std::fs::OpenOptions::new().read(true).write(true).open(device).is_ok();
            assert_eq!(found.is_ok(), opens, "{found:?}");
            if let Err(Refusal { reason, remedy }) = found {
                assert!(
                    reason.starts_with(device) && format!("{reason} {remedy}").contains(module),
                    "{reason} {remedy}"
                );
            }
        }
    }
}
