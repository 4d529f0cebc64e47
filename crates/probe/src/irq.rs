//! Whether the kernel measures interrupts apart from the tasks they interrupt.

use std::path::Path;

use procfs::{ConfigSetting, FromRead, KernelConfig};

use crate::text;

/// How it was found out, with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IrqTime {
    /// The kernel's configuration says so.
    Configured(bool),
    /// `/proc/stat`'s `irq` column tells: without accounting only an interrupt that a timer tick interrupts counts,
    /// and interrupts run with interrupts off; with it every timer tick counts a microsecond or more.
    Seen(bool),
}

/// Share of busy time above which the `irq` column is taken to be measured. A tick of 1 us at the lowest usual rate,
/// 100 a second, is just that; a stray sampled one in an hour is far less.
const IRQ_SHARE: f64 = 1e-4;

impl IrqTime {
    /// Whether interrupts are measured apart.
    pub const fn apart(self) -> bool {
        match self {
            Self::Configured(apart) | Self::Seen(apart) => apart,
        }
    }

    /// Finds it out. A kernel that is configured for it but was seen to count nothing has it switched off: accounting is
    /// off when the clock is unstable or `tsc=noirqtime` was given at boot.
    pub fn detect(root: &Path) -> Self {
        let seen = irq_share(root).is_some_and(|share| share >= IRQ_SHARE);
        match kernel_config(root) {
            Some(config) => {
                let on = |key: &str| matches!(config.0.get(key), Some(ConfigSetting::Yes));
                // VIRT_CPU_ACCOUNTING_NATIVE (s390, powerpc) measures everything.
                let configured = on("CONFIG_IRQ_TIME_ACCOUNTING") || on("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE");
                if configured && !seen { Self::Seen(false) } else { Self::Configured(configured) }
            }
            None => Self::Seen(seen),
        }
    }
}

fn irq_share(root: &Path) -> Option<f64> {
    let stat = std::fs::read_to_string(root.join("proc/stat")).ok()?;
    // user, nice, system, irq, softirq
    let busy: f64 = [1, 2, 3, 6, 7].into_iter().filter_map(|column| text::cell(&stat, "cpu", 0, column)).sum();
    Some(text::cell(&stat, "cpu", 0, 6)? / busy.max(1.0))
}

/// The configuration of the running kernel, from `/proc/config.gz` or `/boot`.
pub(crate) fn kernel_config(root: &Path) -> Option<KernelConfig> {
    if root == Path::new("/") {
        return procfs::kernel_config().ok().map(KernelConfig);
    }
    let release = std::fs::read_to_string(root.join("proc/sys/kernel/osrelease")).ok()?;
    KernelConfig::from_file(root.join(format!("boot/config-{}", release.trim()))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(irq: u64, config: Option<&str>) -> IrqTime {
        let root = tempfile::tempdir().unwrap();
        for dir in ["proc/sys/kernel", "boot"] {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        let stat = format!("cpu  100000 0 50000 900000 10 {irq} 4000 30 0 0\n");
        std::fs::write(root.path().join("proc/stat"), stat).unwrap();
        std::fs::write(root.path().join("proc/sys/kernel/osrelease"), "6.1.0\n").unwrap();
        if let Some(config) = config {
            std::fs::write(root.path().join("boot/config-6.1.0"), config).unwrap();
        }
        IrqTime::detect(root.path())
    }

    #[test]
    fn without_a_configuration_the_irq_column_tells() {
        assert_eq!(detect(0, None), IrqTime::Seen(false));
        assert_eq!(detect(2, None), IrqTime::Seen(false), "a stray sampled interrupt is not accounting");
        assert_eq!(detect(400, None), IrqTime::Seen(true));
    }

    #[test]
    fn a_configured_kernel_that_counts_nothing_has_it_off() {
        assert_eq!(detect(400, Some("CONFIG_IRQ_TIME_ACCOUNTING=y\n")), IrqTime::Configured(true));
        assert_eq!(detect(0, Some("CONFIG_IRQ_TIME_ACCOUNTING=y\n")), IrqTime::Seen(false));
        assert_eq!(detect(0, Some("# CONFIG_IRQ_TIME_ACCOUNTING is not set\n")), IrqTime::Configured(false));
    }
}
