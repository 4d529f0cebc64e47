//! `tare ksm status`.

use std::fmt::Write;

use serde_json::{Value, json};
use tare_memory::cost::{self, Merger};
use tare_memory::{Kernel, Settings};
use tare_model::Refusal;
use tare_model::merging::MergeCounters;
use tare_report::Page;

use super::holders::{self, Holder};
use super::look::{pace, saved, state};
use super::{SIDE_CHANNELS, mib, unseen};
use crate::args::Format;
use crate::exit::{Exit, Failure};
use crate::forms;

/// Processes that are listed.
const LISTED: usize = 20;

/// Everything that is shown.
struct Status {
    settings: Settings,
    counters: MergeCounters,
    mergers: Vec<Merger>,
    holders: Vec<Holder>,
    refusal: Option<Refusal>,
}

/// Shows it.
pub fn command(format: Format) -> Result<Exit, Failure> {
    let kernel = Kernel::host();
    let unseen = |error| unseen(&kernel, &error);
    let status = Status {
        settings: kernel.settings().map_err(unseen)?,
        counters: kernel.counters().map_err(unseen)?,
        mergers: cost::mergers().map_err(unseen)?,
        holders: holders::all()?,
        refusal: kernel.refusal(),
    };
    forms::print(format, &status.json(), |_| Page::of_lines("Merging of equal memory", status.text()))?;
    Ok(Exit::Success)
}

impl Status {
    /// What the kernel's bookkeeping takes, as it reckons itself.
    fn bookkeeping(&self) -> i128 {
        (i128::from(saved(&self.counters)) - i128::from(self.counters.profit_bytes)).max(0)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        self.of_the_host(&mut text);
        self.of_processes(&mut text);
        // Writing to a string cannot fail.
        for holder in &self.holders {
            let (run, pid) = (&holder.run.run_id, holder.pid());
            let _ = match holder.is_alive() {
                true => writeln!(text, "Governed by {run}, process {pid}, until it ends"),
                false => writeln!(text, "Changed by {run}, process {pid}, which is gone: `tare ksm restore` puts back"),
            };
        }
        if self.holders.is_empty() {
            text.push_str("Governed by no run and no `tare ksm tune` of this user\n");
        }
        if let Some(Refusal { reason, remedy }) = &self.refusal {
            let _ = writeln!(text, "It cannot be governed from here: {reason}\n  remedy: {remedy}");
        }
        let _ = write!(text, "Side channels: {SIDE_CHANNELS}");
        text
    }

    fn of_the_host(&self, text: &mut String) {
        let (set, counted) = (&self.settings, &self.counters);
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<22} {value}");
        };
        row("merging", state(set.run).to_owned());
        row("pages/pause", pace(set));
        let yes =
            |flag: Option<bool>| flag.map_or("not in this kernel", |flag| if flag { "yes" } else { "no" }).to_owned();
        row("kernel's zero page", yes(set.use_zero_pages));
        row("smart scan", yes(set.smart_scan));
        match &set.advisor {
            Some(advisor) => {
                let (mode, target, most) = (&advisor.mode, advisor.target_scan_time_s, advisor.max_cpu);
                row("advisor", format!("{mode} (a pass in {target} s, at most {most} % of a CPU)"));
            }
            None => row("advisor", "not in this kernel".to_owned()),
        }
        row("huge pages", set.huge_pages.clone().unwrap_or_else(|| "not in this kernel".to_owned()));
        row("saved", mib(saved(counted).into()));
        row("bookkeeping", mib(self.bookkeeping()));
        row("profit", mib(counted.profit_bytes.into()));
        let kept = format!("{} kept for {} more places", counted.pages_shared, counted.pages_sharing);
        row("merged pages", format!("{kept}, {} empty with the kernel's own", counted.zero_pages));
        row("other pages", format!("{} without equal, {} volatile", counted.pages_unshared, counted.pages_volatile));
        row("scanned", format!("{} pages, {} whole passes", counted.pages_scanned, counted.full_scans));
        row("ksmd CPU", format!("{:.1} s since the host started", counted.scanner_cpu_s));
    }

    fn of_processes(&self, text: &mut String) {
        if self.mergers.is_empty() {
            text.push_str("No process that this user may look at is open to merging\n");
            return;
        }
        let _ = writeln!(text, "Processes that are open to merging or merged ({})", self.mergers.len());
        let _ = writeln!(
            text,
            "  {:>8}  {:<15}  {:>9}  {:>9}  {:>12}  all memory",
            "pid", "name", "merged", "empty", "profit"
        );
        for merger in self.mergers.iter().take(LISTED) {
            let (pid, name, all) = (merger.pid, &merger.name, merger.merge_any);
            let all = all.map_or("unknown", |all| if all { "yes" } else { "parts" });
            let (merged, empty, profit) = (merger.merging_pages, merger.zero_pages, mib(merger.profit_bytes.into()));
            let _ = writeln!(text, "  {pid:>8}  {name:<15}  {merged:>9}  {empty:>9}  {profit:>12}  {all}");
        }
        if let Some(more) = self.mergers.len().checked_sub(LISTED).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {more} more: --format json lists all");
        }
    }

    fn json(&self) -> Value {
        let holder = |holder: &Holder| {
            let settings: Vec<_> =
                holder.settings.iter().map(|(path, was)| json!({"file": path, "found": was})).collect();
            json!({
                "run": holder.run.run_id,
                "pid": holder.run.info.as_ref().map(|info| info.controller_pid),
                "alive": holder.is_alive(),
                "settings": settings,
            })
        };
        json!({
            "settings": self.settings,
            "counters": self.counters,
            "saved_bytes": saved(&self.counters),
            "bookkeeping_bytes": u64::try_from(self.bookkeeping()).unwrap_or(0),
            "profit_bytes": self.counters.profit_bytes,
            "processes": self.mergers,
            "changed_by": self.holders.iter().map(holder).collect::<Vec<_>>(),
            "refusal": self.refusal.as_ref().map(|Refusal { reason, remedy }| json!({"reason": reason, "remedy": remedy})),
            "side_channels": SIDE_CHANNELS,
        })
    }
}
