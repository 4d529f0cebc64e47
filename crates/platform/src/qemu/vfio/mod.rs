//! Whether the kernel hands a device over to a guest: it is asked for it as QEMU asks, and has it back at once.
//!
//! That the device is in an IOMMU group says nothing of interrupt remapping, without which the kernel refuses. No file says
//! whether it is in force, so the refusal itself is looked for.

mod sys;

use std::fs;
use std::io;
use std::path::Path;

use tare_lab::{open_device, refusal};
use tare_model::Refusal;

use self::sys::Step;

const CONTAINER: &str = "/dev/vfio/vfio";

/// Takes the device's group with its IOMMU, and gives it back.
///
/// # Errors
/// Why the kernel refuses. `group` is its number and `tree` a tree like `/sys`.
pub(super) fn hands_over(device: &str, group: &str, tree: &Path) -> Result<(), Refusal> {
    let path = Path::new("/dev/vfio").join(group);
    let opened = open_device(&path, "vfio_pci")?;
    let container = open_device(Path::new(CONTAINER), "vfio")?;
    sys::attach(&container, &opened)
        .map_err(|(step, error)| refused(device, step, &error, &tree.join("kernel/iommu_groups").join(group), tree))
}

fn refused(device: &str, step: Step, error: &io::Error, group: &Path, tree: &Path) -> Refusal {
    let what = format!("the device {device} cannot be handed to a guest");
    let denied = error.raw_os_error() == Some(libc::EPERM);
    match step {
        Step::Viable => Refusal::new(
            format!("{what}: other devices of its IOMMU group are bound to drivers of the host's"),
            format!(
                "Bind all that are in {}/devices to vfio-pci, or use a slot with a group of its own",
                group.display()
            ),
        ),
        Step::Iommu if denied && is_firmwares(group) => Refusal::new(
            format!("{what}: the firmware keeps a part of its memory for itself (RMRR): {error}"),
            "Look for a setting of the firmware that shares the device with it, and switch that off",
        ),
        Step::Iommu if denied && !allows_unsafe_interrupts(tree) => Refusal::new(
            format!("{what}: the host has no interrupt remapping: {error}"),
            "Switch it on in the firmware (VT-d, or AMD's IOMMU, with x2APIC), and leave `intremap=off` out of the kernel's \
             words. Or do without: `echo 1 > /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts`; a guest can \
             then send the host any interrupt by its device, and stop or take over the host, so only for guests that you \
             trust",
        ),
        Step::Group | Step::Iommu => refusal(&what, error, "vfio_iommu_type1"),
    }
}

/// Whether the firmware goes on using the device's memory, as the kernel says of its group.
fn is_firmwares(group: &Path) -> bool {
    let regions = fs::read_to_string(group.join("reserved_regions")).unwrap_or_default();
    regions.lines().any(|line| line.split_whitespace().nth(2) == Some("direct"))
}

/// Whether a setting of the kernel does without interrupt remapping, in either of the modules that may provide the container.
fn allows_unsafe_interrupts(tree: &Path) -> bool {
    ["vfio_iommu_type1", "iommufd"].iter().any(|module| {
        let file = tree.join("module").join(module).join("parameters/allow_unsafe_interrupts");
        fs::read_to_string(file).is_ok_and(|text| text.trim() == "Y")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_interrupt_remapping_is_distinguished_from_other_refusals() {
        let tree = tempfile::tempdir().unwrap();
        let group = tree.path().join("kernel/iommu_groups/7");
        let parameters = tree.path().join("module/vfio_iommu_type1/parameters");
        fs::create_dir_all(&group).unwrap();
        fs::create_dir_all(&parameters).unwrap();
        let said = |step, errno| {
            let refusal = refused("0000:01:00.1", step, &io::Error::from_raw_os_error(errno), &group, tree.path());
            assert!(refusal.reason.contains("0000:01:00.1"), "{refusal}");
            refusal.to_string()
        };
        fs::write(parameters.join("allow_unsafe_interrupts"), "N\n").unwrap();
        let missing = said(Step::Iommu, libc::EPERM);
        assert!(
            missing.contains("has no interrupt remapping") && missing.contains("allow_unsafe_interrupts"),
            "{missing}"
        );
        assert!(missing.contains("firmware") && missing.contains("trust"), "{missing}");
        for (step, errno) in [(Step::Iommu, libc::EBUSY), (Step::Group, libc::EPERM), (Step::Viable, libc::EPERM)] {
            let other = said(step, errno);
            assert!(!other.contains("remapping"), "{other}");
        }
        fs::write(group.join("reserved_regions"), "0x0 0xfff direct-relaxable\n0xfee00000 0xfeefffff msi\n").unwrap();
        assert!(said(Step::Iommu, libc::EPERM).contains("remapping"));
        fs::write(group.join("reserved_regions"), "0x0000 0x0fff direct\n").unwrap();
        assert!(said(Step::Iommu, libc::EPERM).contains("RMRR"));
        fs::remove_file(group.join("reserved_regions")).unwrap();
        fs::write(parameters.join("allow_unsafe_interrupts"), "Y\n").unwrap();
        assert!(!said(Step::Iommu, libc::EPERM).contains("remapping"), "it is allowed, so that is not why");
    }
}
