//! Memory that the kernel merges: how it is governed, and what it is set to on the host.

use serde::{Deserialize, Serialize};

use crate::ballooning::Ballooning;
use crate::units::{ByteSize, Span};

/// How the host treats its guests' memory while an arm is measured. What was found before is put back after the trial.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostMemory {
    /// Merging of equal pages (KSM); `None`: it is stopped if any arm of the study merges, else left as found.
    pub merging: Option<Merging>,
    /// Transparent huge pages; `None`: as found.
    pub huge_pages: Option<HugePages>,
    /// Balloons by which machines give memory back; `None`: none is sized.
    pub ballooning: Option<Ballooning>,
}

impl HostMemory {
    /// Whether nothing is asked of the host.
    pub const fn is_as_found(&self) -> bool {
        self.merging.is_none() && self.huge_pages.is_none() && self.ballooning.is_none()
    }

    /// What is asked, for people; `None` where nothing is.
    pub fn words(&self) -> Option<String> {
        let merging = self.merging.map(|merging| format!("merging {}", merging.words()));
        let huge = self.huge_pages.map(|huge| format!("huge pages `{}`", huge.word()));
        let balloons = self.ballooning.map(|ballooning| format!("ballooning {}", ballooning.words()));
        let all: Vec<String> = merging.into_iter().chain(huge).chain(balloons).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Where the kernel uses transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HugePages {
    /// Wherever they fit.
    Always,
    /// Where a program asks for them.
    Madvise,
    /// Nowhere.
    Never,
}

impl HugePages {
    /// As the kernel spells it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Madvise => "madvise",
            Self::Never => "never",
        }
    }
}

/// Kernel samepage merging, and who governs it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Merging {
    /// Who sets how fast pages are scanned.
    pub rule: MergeRule,
    /// Whether empty pages are merged with the kernel's own page of zeros (`use_zero_pages`).
    pub zero_pages: bool,
}

impl Merging {
    /// The rule with its figures, for people.
    pub fn words(&self) -> String {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        let rule = match self.rule {
            MergeRule::Fixed { pages_to_scan, sleep } => {
                format!("fixed at {pages_to_scan} pages, then {sleep} of sleep")
            }
            MergeRule::PublishedScript => "by the published script".to_owned(),
            MergeRule::Ksmtuned => "by the rule of ksmtuned".to_owned(),
            MergeRule::Advisor { target_scan_time, max_cpu } => {
                format!("by the kernel's advisor, a pass in {target_scan_time}, at most {max_cpu} % of a CPU")
            }
            MergeRule::Tare { free_goal, max_cpu } => {
                let (goal, most) = (percent(free_goal), percent(max_cpu));
                format!("by tare's own rule, {goal} % of memory kept available, at most {most} % of a CPU")
            }
        };
        let zeros = if self.zero_pages { ", empty pages with the kernel's page of zeros" } else { "" };
        format!("{rule}{zeros}")
    }
}

/// Who sets how fast the kernel scans for equal pages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeRule {
    /// Nobody: these values stay.
    Fixed {
        /// Pages scanned at a time.
        pages_to_scan: u32,
        /// Pause between two times; whole milliseconds.
        sleep: Span,
    },
    /// The script of the published study (2009), as `shared/published` has it: every 60 s, +300 or -50 pages.
    PublishedScript,
    /// The rule of today's ksmtuned: every 60 s, +300 or -50 pages, by the resident memory of the guests.
    Ksmtuned,
    /// The kernel's own advisor (from 6.8).
    Advisor {
        /// How long one pass over all memory is to take; whole seconds.
        target_scan_time: Span,
        /// Most CPU that the kernel's thread is to take, percent of one CPU.
        max_cpu: u32,
    },
    /// tare's own: fast while memory is short and scanning pays, and at rest once nothing more is gained.
    Tare {
        /// Memory of the host that is to stay available, a share of all (0 to 1): below it, merging is in haste.
        free_goal: f64,
        /// Most CPU that the kernel's thread may take in haste, a share of one CPU (0 to 1).
        max_cpu: f64,
    },
}

impl MergeRule {
    /// Its name in study files and reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fixed { .. } => "fixed",
            Self::PublishedScript => "published-script",
            Self::Ksmtuned => "ksmtuned",
            Self::Advisor { .. } => "advisor",
            Self::Tare { .. } => "tare",
        }
    }
}

/// What the kernel counts of merging, host-wide (`/sys/kernel/mm/ksm`), and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MergeCounters {
    /// Pages that are kept once for others.
    pub pages_shared: u64,
    /// Places that use them beyond the first: pages saved.
    pub pages_sharing: u64,
    /// Pages looked at that have no equal.
    pub pages_unshared: u64,
    /// Pages that change too often.
    pub pages_volatile: u64,
    /// Pages left out by the smart scan.
    pub pages_skipped: u64,
    /// Pages scanned since the kernel started; wraps never in practice.
    pub pages_scanned: u64,
    /// Empty pages that were merged with the kernel's page of zeros.
    pub zero_pages: u64,
    /// Passes over all memory that is open to merging.
    pub full_scans: u64,
    /// Bytes won minus bytes of bookkeeping, as the kernel reckons; may be negative.
    pub profit_bytes: i64,
    /// CPU that the kernel's thread has taken since it was started, seconds.
    pub scanner_cpu_s: f64,
}

impl MergeCounters {
    /// Bytes that merging saves: `pages_sharing` and zero pages, of 4 KiB each (`shared/specs/ksm.md`).
    pub const fn saved(&self, page: u64) -> ByteSize {
        ByteSize((self.pages_sharing + self.zero_pages) * page)
    }
}

/// What was saved, by what it was (bytes). The kinds add up to all that was saved, where all of it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SavedFrom {
    /// Empty pages.
    pub zero_bytes: u64,
    /// Code and libraries: private copies of what is mapped from files.
    pub code_bytes: u64,
    /// Data: anonymous memory that is not empty.
    pub data_bytes: u64,
    /// What could not be identified, such as what lies inside a machine's memory.
    pub unknown_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_described_with_its_figures() {
        let described = |rule, zero_pages| Merging { rule, zero_pages }.words();
        let fixed = MergeRule::Fixed { pages_to_scan: 8000, sleep: Span::from_millis(10) };
        assert_eq!(described(fixed, false), "fixed at 8000 pages, then 10ms of sleep");
        let own = MergeRule::Tare { free_goal: 0.2, max_cpu: 0.07 };
        let words = "by tare's own rule, 20 % of memory kept available, at most 7 % of a CPU";
        assert_eq!(described(own, true), format!("{words}, empty pages with the kernel's page of zeros"));
    }
}
