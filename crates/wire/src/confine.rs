//! What a guest that shares the host's kernel keeps of root's power, as container engines have it by default.
//!
//! The agent confines itself before it serves, and where a platform's own program sets such things up it is given the same
//! lists: so every arm is confined alike.

/// The capabilities that container engines leave to root, each by its name and the kernel's number (capabilities(7)). Some engines
/// leave `CAP_MKNOD` as well and then filter devices by a control group; here, as with others, nobody makes device files.
pub const CAPABILITIES: [(&str, u32); 13] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_FSETID", 4),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_SETPCAP", 8),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_NET_RAW", 13),
    ("CAP_SYS_CHROOT", 18),
    ("CAP_AUDIT_WRITE", 29),
    ("CAP_SETFCAP", 31),
];

/// Those capabilities as a set of bits, as `/proc/PID/status` has it.
pub const fn capability_bits() -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < CAPABILITIES.len() {
        bits |= 1 << CAPABILITIES[at].1;
        at += 1;
    }
    bits
}

/// Files and directories of the kernel that are empty inside.
pub const MASKED: [&str; 11] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];

/// Directories and files of the kernel that cannot be written inside.
pub const READ_ONLY: [&str; 6] = ["/sys", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_is_that_of_container_engines() {
        assert_eq!(format!("{:016x}", capability_bits()), "00000000a00425fb");
    }
}
