//! `tare ksm tune`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tare_controller::Cancel;
use tare_lab::{FileLedger, Ledger, StateDir};
use tare_memory::{Governor, Guests, Kernel, cost};
use tare_model::merging::{HostMemory, MergeRule, Merging};
use tare_model::units::Span;

use super::holders;
use super::look::{HEAD, Look};
use super::{SIDE_CHANNELS, mib, refused, unseen};
use crate::args::{Rule, TuneArguments};
use crate::exit::{Exit, Failure};
use crate::{output, place};

/// Governs merging until it is asked to stop.
pub fn command(arguments: &TuneArguments) -> Result<Exit, Failure> {
    let merging = merging(arguments)?;
    let domain = trust_domain(arguments)?;
    if arguments.every.ns == 0 {
        return Err(usage("--every is no time at all; write `10s`, say"));
    }
    let watched = Watched::of(arguments)?;
    let kernel = Kernel::host();
    if let Some(refusal) = kernel.refusal() {
        return Err(refused(&refusal));
    }
    clean_up(arguments.alongside)?;
    let cancel = Cancel::new();
    let uncaught = |error| Failure::new(format!("signals cannot be caught: {error}"), Exit::Failure);
    cancel.on_signals_with_message("stopping: every setting is put back as it was found").map_err(uncaught)?;
    let run_id = format!("ksm-{}", place::new_run_id());
    // There are no results to be kept.
    let state = StateDir::create(&run_id, &tare_lab::state_path(&run_id)).map_err(failed)?;
    let begun = format!(
        "{run_id} governs merging by the rule `{}` for: {domain}\nwarning: {SIDE_CHANNELS}\n{HEAD}",
        merging.rule.name()
    );
    let tune = Tune { kernel: &kernel, arguments, watched, begun };
    let ended = tune.run(merging, state.ledger(), &cancel);
    // What could not be put back keeps its ledger: `tare ksm restore` and `tare reap` try again.
    if state.ledger().held().is_empty() {
        state.remove().map_err(failed)?;
    }
    ended
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(error, Exit::Failure)
}

fn usage(text: impl std::fmt::Display) -> Failure {
    Failure::new(text, Exit::Usage)
}

/// Puts back what dead runs left, so that what is found is what was there before them, and makes sure that nobody else governs.
fn clean_up(alongside: bool) -> Result<(), Failure> {
    for reaped in tare_controller::reap_dead(&place::agent()).map_err(failed)? {
        output::print(&crate::commands::reap::summary(&reaped))?;
        if !reaped.report.is_clean() {
            let text = format!("the dead run {} left what could not be taken away; see above", reaped.run_id);
            return Err(Failure::new(text, Exit::HostUnfit));
        }
    }
    if let Some(holder) = holders::governing()? {
        let (run, pid) = (&holder.run.run_id, holder.pid());
        let text = format!("{run}, process {pid}, governs this host's memory: two cannot; wait for it, or end it");
        return Err(Failure::new(text, Exit::HostUnfit));
    }
    let alive = StateDir::list().map_err(failed)?.into_iter().find(|found| found.live);
    match alive {
        Some(other) if !alongside => {
            let pid = other.info.as_ref().map_or_else(|| "unknown".to_owned(), |info| info.controller_pid.to_string());
            let text = format!(
                "the run {}, process {pid}, is alive on this host, and merging would change what it measures; wait for it, \
                 or say --alongside",
                other.run_id
            );
            Err(Failure::new(text, Exit::HostUnfit))
        }
        _ => Ok(()),
    }
}

/// To whom all belongs that shares memory.
fn trust_domain(arguments: &TuneArguments) -> Result<&str, Failure> {
    let domain = arguments.trust_domain.as_deref().map(str::trim).filter(|domain| !domain.is_empty());
    domain.ok_or_else(|| {
        usage(format!(
            "merging lets every program whose memory is open to it share equal pages with all others: {SIDE_CHANNELS}. If all \
             that runs on this host may know what the others hold, say in your words to whom it belongs: \
             --trust-domain \"this team's guests alone\""
        ))
    })
}

/// Most pages at a time: 4 GiB, which takes seconds.
const MOST_PAGES: u32 = 1 << 20;
/// Longest pause and longest pass that make sense.
const LONGEST_SLEEP: Span = Span::from_secs(60);
const LONGEST_SCAN: Span = Span::from_secs(24 * 3600);

/// The rule with its figures; those that belong to another rule are refused.
fn merging(arguments: &TuneArguments) -> Result<Merging, Failure> {
    let TuneArguments { rule, pages_to_scan, sleep, target_scan_time, free_goal, max_cpu, .. } = arguments;
    let given = [
        ("--pages-to-scan", pages_to_scan.is_some(), &[Rule::Fixed][..]),
        ("--sleep", sleep.is_some(), &[Rule::Fixed]),
        ("--target-scan-time", target_scan_time.is_some(), &[Rule::Advisor]),
        ("--free-goal", free_goal.is_some(), &[Rule::Tare]),
        ("--max-cpu", max_cpu.is_some(), &[Rule::Tare, Rule::Advisor]),
    ];
    if let Some((option, ..)) = given.iter().find(|(_, given, rules)| *given && !rules.contains(rule)) {
        return Err(usage(format!("{option} says nothing to this rule; `tare ksm tune --help` tells whose it is")));
    }
    let max_cpu = share("--max-cpu", max_cpu.unwrap_or(0.7))?;
    let rule = match rule {
        Rule::Fixed => MergeRule::Fixed {
            pages_to_scan: within("--pages-to-scan", pages_to_scan.unwrap_or(100), 1, MOST_PAGES)?,
            sleep: whole("--sleep", sleep.unwrap_or(Span::from_millis(20)), Span::from_millis(1), LONGEST_SLEEP)?,
        },
        Rule::PublishedScript => MergeRule::PublishedScript,
        Rule::Ksmtuned => MergeRule::Ksmtuned,
        Rule::Advisor => {
            let target = target_scan_time.unwrap_or(Span::from_secs(200));
            let target_scan_time = whole("--target-scan-time", target, Span::from_secs(1), LONGEST_SCAN)?;
            MergeRule::Advisor { target_scan_time, max_cpu: ((max_cpu * 100.0).round() as u32).max(1) }
        }
        Rule::Tare => MergeRule::Tare { free_goal: share("--free-goal", free_goal.unwrap_or(0.2))?, max_cpu },
    };
    Ok(Merging { rule, zero_pages: arguments.zero_pages })
}

fn share(option: &str, value: f64) -> Result<f64, Failure> {
    let right = value > 0.0 && value <= 1.0;
    right.then_some(value).ok_or_else(|| usage(format!("{option} is {value}; it is a share, above 0 and at most 1")))
}

fn within(option: &str, value: u32, least: u32, most: u32) -> Result<u32, Failure> {
    let right = (least..=most).contains(&value);
    right.then_some(value).ok_or_else(|| usage(format!("{option} is {value}; write {least} to {most}")))
}

fn whole(option: &str, value: Span, unit: Span, longest: Span) -> Result<Span, Failure> {
    let right = value.ns > 0 && value.ns.is_multiple_of(unit.ns) && value <= longest;
    right.then_some(value).ok_or_else(|| {
        usage(format!("{option} is {value}; the kernel takes whole multiples of {unit}, at most {longest} here"))
    })
}

/// Whose memory the rule reckons with.
#[derive(Debug, Clone, Default)]
struct Watched {
    pids: Vec<u32>,
    groups: Vec<PathBuf>,
}

impl Watched {
    fn of(arguments: &TuneArguments) -> Result<Self, Failure> {
        for pid in &arguments.pid {
            if !Path::new("/proc").join(pid.to_string()).exists() {
                return Err(usage(format!("--pid: there is no process {pid}")));
            }
        }
        for group in &arguments.group {
            if !group.join("cgroup.procs").exists() {
                let text = format!("--group: {} is no control group: it has no cgroup.procs", group.display());
                return Err(usage(format!("{text}; write a directory such as /sys/fs/cgroup/machine.slice")));
            }
        }
        Ok(Self { pids: arguments.pid.clone(), groups: arguments.group.clone() })
    }

    /// The processes now. Of a host that cannot be looked at for a moment, none: a rule then takes memory for free.
    fn processes(&self) -> Vec<u32> {
        if self.pids.is_empty() && self.groups.is_empty() {
            return cost::mergers().unwrap_or_default().iter().map(|merger| merger.pid).collect();
        }
        let mut all = self.pids.clone();
        self.groups.iter().for_each(|group| below(group, &mut all));
        all.sort_unstable();
        all.dedup();
        all
    }

    fn guests(&self) -> Guests {
        cost::sizes(&self.processes()).unwrap_or_default()
    }
}

/// The processes of a control group and of those below it.
fn below(group: &Path, pids: &mut Vec<u32>) {
    let listed = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    pids.extend(listed.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), pids);
        }
    }
}

/// One tuning, from its first line to its last.
struct Tune<'a> {
    kernel: &'a Kernel,
    arguments: &'a TuneArguments,
    watched: Watched,
    begun: String,
}

impl Tune<'_> {
    fn run(self, merging: Merging, ledger: &Arc<FileLedger>, cancel: &Cancel) -> Result<Exit, Failure> {
        let ledger: Arc<dyn Ledger> = Arc::<FileLedger>::clone(ledger);
        let wanted = HostMemory { merging: Some(merging), ..HostMemory::default() };
        let watched = self.watched.clone();
        let guests = Arc::new(move || watched.guests());
        let governor = Governor::start(self.kernel.clone(), &wanted, false, guests, &ledger)
            .map_err(|error| unseen(self.kernel, &error))?;
        let looked = self.look_on(&governor, cancel);
        // Everything is put back before anything is reported.
        governor.end().map_err(failed)?;
        let (exit, last) = looked?;
        output::print(&format!("every setting is as it was found; {last}"))?;
        Ok(exit)
    }

    /// Prints lines until it is asked to stop, or the time is over; the last words.
    fn look_on(&self, governor: &Governor, cancel: &Cancel) -> Result<(Exit, String), Failure> {
        let look = || Look::take(self.kernel).map_err(|error| unseen(self.kernel, &error));
        let began = Instant::now();
        output::print(&self.begun)?;
        let first = look()?;
        output::print(&first.line(None))?;
        let mut before = None;
        let mut settled = None;
        let lasts = self.arguments.lasts.map(Span::duration);
        let exit = loop {
            let left = lasts.map(|lasts| lasts.saturating_sub(began.elapsed()));
            let every = self.arguments.every.duration();
            if cancel.wait(left.map_or(every, |left| left.min(every))).is_some() {
                break Exit::Interrupted;
            }
            let now = look()?;
            output::print(&now.line(Some(before.as_ref().unwrap_or(&first))))?;
            before = Some(now);
            if settled.is_none() && governor.settled() {
                settled = Some(began.elapsed().as_secs());
                output::print(&format!("settled: {} s after the start", began.elapsed().as_secs()))?;
            }
            if lasts.is_some_and(|lasts| began.elapsed() >= lasts) {
                break Exit::Success;
            }
        };
        let last = look()?;
        let cpu_s = last.counters.scanner_cpu_s - first.counters.scanner_cpu_s;
        let profit = mib(last.counters.profit_bytes.into());
        let words =
            format!("{} were saved at the end (profit {profit}), for {cpu_s:.1} s of CPU", mib(last.saved().into()));
        Ok((exit, words))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command, KsmCommand};

    fn asked(options: &[&str]) -> TuneArguments {
        let arguments = ["tare", "ksm", "tune"].iter().chain(options);
        match Arguments::try_parse_from(arguments).unwrap().command {
            Command::Ksm(ksm) => match ksm.command {
                KsmCommand::Tune(tune) => tune,
                other => unreachable!("{other:?}"),
            },
            other => unreachable!("{other:?}"),
        }
    }

    fn rule(options: &[&str]) -> Option<MergeRule> {
        merging(&asked(options)).ok().map(|merging| merging.rule)
    }

    #[test]
    fn every_rule_has_what_it_needs_by_itself() {
        assert_eq!(rule(&[]), Some(MergeRule::Tare { free_goal: 0.2, max_cpu: 0.7 }));
        let advisor = MergeRule::Advisor { target_scan_time: Span::from_secs(100), max_cpu: 50 };
        assert_eq!(rule(&["--rule", "advisor", "--target-scan-time", "100s", "--max-cpu", "0.5"]), Some(advisor));
        let fixed = MergeRule::Fixed { pages_to_scan: 8000, sleep: Span::from_millis(10) };
        assert_eq!(rule(&["--rule", "fixed", "--pages-to-scan", "8000", "--sleep", "10ms"]), Some(fixed));
        assert_eq!(rule(&["--rule", "ksmtuned"]), Some(MergeRule::Ksmtuned));
        assert_eq!(rule(&["--rule", "published-script"]), Some(MergeRule::PublishedScript));
    }

    #[test]
    fn figures_that_mean_nothing_are_refused() {
        for wrong in [
            &["--rule", "ksmtuned", "--max-cpu", "0.5"][..],
            &["--pages-to-scan", "100"],
            &["--free-goal", "20"],
            &["--free-goal", "NaN"],
            &["--rule", "advisor", "--max-cpu", "0"],
            &["--rule", "fixed", "--pages-to-scan", "0"],
            &["--rule", "fixed", "--sleep", "1500us"],
            &["--rule", "advisor", "--target-scan-time", "1500ms"],
        ] {
            assert_eq!(rule(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn nobody_merges_without_a_trust_domain() {
        assert!(trust_domain(&asked(&[])).is_err() && trust_domain(&asked(&["--trust-domain", " "])).is_err());
        assert_eq!(trust_domain(&asked(&["--trust-domain", "ours"])).unwrap(), "ours");
    }

    #[test]
    fn whose_memory_is_reckoned_with_must_be_there() {
        let me = std::process::id();
        let watched = Watched::of(&asked(&["--pid", &me.to_string()])).unwrap();
        assert_eq!(watched.processes(), [me]);
        assert!(watched.guests().resident_bytes > 0);
        assert!(Watched::of(&asked(&["--pid", "2147483647"])).is_err());
        assert!(Watched::of(&asked(&["--group", "/proc"])).is_err());
    }

    #[test]
    fn a_group_counts_with_those_below_it() {
        let group = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(group.path().join("a/b")).unwrap();
        for (at, pids) in [("", "1\n"), ("a", ""), ("a/b", "2\n3\n")] {
            std::fs::write(group.path().join(at).join("cgroup.procs"), pids).unwrap();
        }
        let watched = Watched { pids: vec![2], groups: vec![group.path().to_owned()] };
        assert_eq!(watched.processes(), [1, 2, 3]);
    }
}
