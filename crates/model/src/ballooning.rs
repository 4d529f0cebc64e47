//! Balloons of machines: who sizes them, and what a machine says of its memory.

use serde::{Deserialize, Serialize};

use crate::units::ByteSize;

/// Machines give memory back while the host is short of it, by the policy of the memory overcommit manager (MoM,
/// `doc/balloon.rules` of its sources).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ballooning {
    /// Free memory of the host (`MemFree`, `Buffers` and `Cached`), a share of all (0 to 1): below it machines shrink, else they
    /// grow.
    pub pressure: f64,
    /// The same: at it and below, machines keep less than they use.
    pub critical: f64,
    /// Unused memory that a machine keeps while the host is not short, a share of its own (0 to 1).
    pub guest_free: f64,
    /// Memory that a machine keeps whatever the host lacks.
    pub guaranteed: ByteSize,
}

impl Ballooning {
    /// The policy's own constants; nothing is guaranteed.
    pub const MOM: Self = Self { pressure: 0.2, critical: 0.05, guest_free: 0.2, guaranteed: ByteSize(0) };

    /// The policy with its figures, for people.
    pub fn words(&self) -> String {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        let (pressure, critical, free) = (percent(self.pressure), percent(self.critical), percent(self.guest_free));
        let kept = if self.guaranteed.0 > 0 { format!(", {} each kept", self.guaranteed) } else { String::new() };
        format!(
            "by the policy of MoM: machines shrink below {pressure} % of free memory, critical at {critical} %, and are left {free} % \
             unused otherwise{kept}"
        )
    }
}

/// What a machine with a balloon says of its memory, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineMemory {
    /// What it has now.
    pub current: u64,
    /// What it was promised: the most that it can have.
    pub most: u64,
    /// What of `current` is not used for anything, caches included in what is used.
    pub unused: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_described_with_its_figures() {
        let plain = Ballooning::MOM.words();
        assert!(
            plain.contains("below 20 %") && plain.contains("critical at 5 %") && !plain.contains("kept"),
            "{plain}"
        );
        let kept = Ballooning { guaranteed: ByteSize(256 << 20), ..Ballooning::MOM }.words();
        assert!(kept.ends_with("unused otherwise, 256MiB each kept"), "{kept}");
    }
}
