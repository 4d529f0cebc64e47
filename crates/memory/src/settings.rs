//! What the kernel is set to, as `tare ksm status` shows it.

use serde::Serialize;

/// The kernel's settings of merging and huge pages. What a kernel does not have is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// 0: stopped, what is merged stays so; 1: running; 2: stopped, and everything was taken apart.
    pub run: u32,
    /// Pages scanned at a time. While the advisor is on, it is the advisor's.
    pub pages_to_scan: u32,
    /// Pause between two times, milliseconds.
    pub sleep_ms: u32,
    /// Whether empty pages are merged with the kernel's own page of zeros.
    pub use_zero_pages: Option<bool>,
    /// Whether pages that found no equal are looked at less often (from 6.7).
    pub smart_scan: Option<bool>,
    /// Whether pages of different nodes are merged; only on hosts with nodes.
    pub merge_across_nodes: Option<bool>,
    /// Most places that may use one page.
    pub max_page_sharing: Option<u32>,
    /// How often chains of equal pages are pruned, milliseconds.
    pub stable_node_chains_prune_ms: Option<u32>,
    /// The kernel's advisor (from 6.8).
    pub advisor: Option<AdvisorSettings>,
    /// Where transparent huge pages are used, in the kernel's word.
    pub huge_pages: Option<String>,
}

/// Settings of the kernel's advisor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AdvisorSettings {
    /// `none` or `scan-time`.
    pub mode: String,
    /// How long one pass is to take, seconds.
    pub target_scan_time_s: u32,
    /// Most CPU of the kernel's thread, percent of one CPU.
    pub max_cpu: u32,
    /// Fewest pages it scans at a time.
    pub min_pages_to_scan: u32,
    /// Most pages it scans at a time.
    pub max_pages_to_scan: u32,
}
