//! Rules of merging beside each other on the same memory: how soon nine tenths of what can be saved are saved, for how much CPU of
//! the kernel's thread, and what that takes afterwards. Run by `bench/merging.sh`, as root.
//!
//! usage: bench_merging [--rounds N] [--processes N] [--megabytes EACH] [--limit S] [--rest S] [--fill mixed|distinct] [--lock FILE]
//! [RULE...]
//! RULE: tare published-script ksmtuned advisor-200 advisor-20 fixed-PAGES-MS; left out: all but fixed.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tare_lab::{Ledger, NoLedger};
use tare_memory::{Governor, Guests, Kernel};
use tare_model::merging::{HostMemory, MergeCounters, MergeRule, Merging};
use tare_model::units::Span;

const PAGE: u64 = 4096;
/// What the host seems to have available when all is filled: short by every rule's measure.
const AVAILABLE: u64 = 3 << 30;
/// Every so often is looked.
const LOOK: Duration = Duration::from_millis(100);
/// Longest wait for a rule to settle after all was saved, before what it takes at rest is measured.
const SETTLE: Duration = Duration::from_secs(10);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "fill") {
        return fill(&arguments[1..]);
    }
    let plan = Plan::of(&arguments);
    let kernel = Kernel::host();
    if let Some(refusal) = kernel.refusal().or_else(|| kernel.opening_refusal()) {
        eprintln!("memory cannot be merged here: {refusal}");
        std::process::exit(1);
    }
    let outcomes = plan.run(&kernel);
    plan.print(&outcomes);
}

/// KSM is the whole host's: one at a time.
fn lock(path: &String) -> File {
    let file = File::create(path).unwrap();
    file.lock().unwrap();
    file
}

/// In a process of its own: holds memory, a third of it empty, a third that all have alike, a third that nobody else has, until
/// its standard input ends. Says `ready` when it is filled.
fn fill(arguments: &[String]) {
    let [index, megabytes, kind] = arguments else { panic!("fill INDEX MEGABYTES KIND") };
    let (index, megabytes): (u64, usize) = (index.parse().unwrap(), megabytes.parse().unwrap());
    tare_memory::open_to_merging().unwrap();
    // A page more, for the allocator begins in the middle of one.
    let mut memory = vec![0_u64; (megabytes << 17) + 512];
    let first = memory.as_ptr().align_offset(4096);
    for (number, page) in memory[first..].chunks_exact_mut(512).enumerate() {
        let seed = match (kind.as_str(), number % 3) {
            ("mixed", 0) => None,
            ("mixed", 1) => Some(number as u64),
            _ => Some((number as u64) | (index + 1) << 40),
        };
        let mut state = seed.unwrap_or(0);
        for word in page.iter_mut() {
            *word = std::hint::black_box(seed.map_or(0, |_| next(&mut state)));
        }
    }
    println!("ready");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    std::hint::black_box(&memory);
}

/// Splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

struct Plan {
    rounds: usize,
    processes: u64,
    megabytes: u64,
    limit_s: f64,
    rest: Duration,
    kind: String,
    rules: Vec<String>,
    locks: Vec<String>,
}

/// What one rule did in one round: the course of seconds, bytes saved and CPU seconds, and CPU seconds at rest.
struct Outcome {
    rule: usize,
    round: usize,
    course: Vec<(f64, f64, f64)>,
    settled: bool,
    rest_cpu_s: f64,
}

impl Plan {
    fn of(arguments: &[String]) -> Self {
        let mut plan = Self {
            rounds: 3,
            processes: 6,
            megabytes: 384,
            limit_s: 150.0,
            rest: Duration::from_secs(20),
            kind: "mixed".into(),
            rules: Vec::new(),
            locks: vec!["/run/lock/tare-ksm-test.lock".into()],
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value")).clone();
            match argument.as_str() {
                "--rounds" => plan.rounds = value().parse().unwrap(),
                "--processes" => plan.processes = value().parse().unwrap(),
                "--megabytes" => plan.megabytes = value().parse().unwrap(),
                "--limit" => plan.limit_s = value().parse().unwrap(),
                "--rest" => plan.rest = Duration::from_secs(value().parse().unwrap()),
                "--lock" => plan.locks.push(value()),
                "--fill" => plan.kind = value(),
                rule => plan.rules.push(rule.into()),
            }
        }
        if plan.rules.is_empty() {
            let all = ["tare", "published-script", "ksmtuned", "advisor-200", "advisor-20"];
            plan.rules = all.map(Into::into).into();
        }
        plan
    }

    /// Most that can be saved, bytes: what is empty, and all but one of what is alike.
    fn most(&self) -> f64 {
        let pages = (self.megabytes << 20).div_ceil(PAGE);
        let third = |n: u64| (0..pages).filter(|page| page % 3 == n).count() as u64;
        let saved = if self.kind == "mixed" { third(0) * self.processes + third(1) * (self.processes - 1) } else { 0 };
        (saved * PAGE) as f64
    }

    fn run(&self, kernel: &Kernel) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for round in 0..self.rounds {
            for place in 0..self.rules.len() {
                let rule = (place + round) % self.rules.len();
                let outcome = self.one(kernel, rule, round);
                let (at_s, saved, cpu_s) = outcome.course.last().unwrap();
                eprintln!(
                    "round {round} {}: {:.0} of {:.0} MB after {at_s:.1} s for {cpu_s:.2} s CPU, settled {}, then {:.3} s",
                    self.rules[rule],
                    saved / 1e6,
                    self.most() / 1e6,
                    outcome.settled,
                    outcome.rest_cpu_s
                );
                outcomes.push(outcome);
            }
        }
        outcomes
    }

    /// One rule on new processes.
    fn one(&self, kernel: &Kernel, rule: usize, round: usize) -> Outcome {
        let _locks: Vec<File> = self.locks.iter().map(lock).collect();
        let found = kernel.settings().unwrap();
        wait_until_none_is_merged(kernel);
        let mut children: Vec<Child> = (0..self.processes).map(|index| self.child(index)).collect();
        for child in &mut children {
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
        }
        let held = available().saturating_sub(AVAILABLE);
        let size = self.processes * (self.megabytes << 20) + held;
        let guests = Guests { promised_bytes: size, virtual_bytes: size, resident_bytes: size, waiting_bytes: 0 };
        let wanted = HostMemory {
            merging: Some(Merging { rule: parse(&self.rules[rule]), zero_pages: true }),
            huge_pages: None,
            ballooning: None,
        };
        let before = kernel.counters().unwrap();
        let ledger: Arc<dyn Ledger> = Arc::new(NoLedger);
        let started = Instant::now();
        let seeming = kernel.clone().with_held_by_others(held);
        // Zero pages that were merged are no longer resident.
        let looked = kernel.clone();
        let zeros = move || looked.counters().map_or(0, |now| (now.zero_pages - before.zero_pages) * PAGE);
        let guests = Arc::new(move || Guests { resident_bytes: size - zeros(), ..guests });
        let governor = Governor::start(seeming, &wanted, false, guests, &ledger).unwrap();
        let course = self.course(&governor, &before, started);
        let waiting = Instant::now();
        while !governor.settled() && waiting.elapsed() < SETTLE {
            sleep(LOOK);
        }
        let settled = governor.settled();
        // The rule must have seen it.
        sleep(Duration::from_millis(1500));
        let rest_before = governor.counters().unwrap().scanner_cpu_s;
        sleep(self.rest);
        let rest_cpu_s = governor.counters().unwrap().scanner_cpu_s - rest_before;
        if std::env::var_os("SHOW_DECISIONS").is_some() {
            eprintln!("{:?}", governor.decisions());
        }
        governor.end().unwrap();
        assert_eq!(kernel.settings().unwrap(), found, "all is as it was");
        for mut child in children {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        Outcome { rule, round, course, settled, rest_cpu_s }
    }

    fn child(&self, index: u64) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["fill", &index.to_string(), &self.megabytes.to_string(), &self.kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Looks until all is saved, or nothing more comes, or time is up.
    fn course(&self, governor: &Governor, before: &MergeCounters, started: Instant) -> Vec<(f64, f64, f64)> {
        let mut course = Vec::new();
        loop {
            let now = governor.counters().unwrap();
            let at_s = started.elapsed().as_secs_f64();
            let saved = now.saved(PAGE).0 as f64 - before.saved(PAGE).0 as f64;
            course.push((at_s, saved, now.scanner_cpu_s - before.scanner_cpu_s));
            let all = self.kind == "mixed" && saved >= 0.995 * self.most();
            if all || at_s >= self.limit_s || governor.settled() {
                return course;
            }
            sleep(LOOK);
        }
    }

    fn print(&self, outcomes: &[Outcome]) {
        println!(
            "{} processes of {} MB ({}), {} rounds; seconds and CPU seconds of the kernel's thread until 90 % are saved; CPU seconds in {} s at rest",
            self.processes,
            self.megabytes,
            self.kind,
            self.rounds,
            self.rest.as_secs()
        );
        println!("| rule | time, s | CPU, s | saved, MB | at rest, CPU s | time, tare to it | CPU, tare to it |");
        println!("|---|---|---|---|---|---|---|");
        let reached = |outcome: &Outcome| self.reached(outcomes, outcome);
        let ours = self.rules.iter().position(|rule| rule == "tare");
        for (rule, name) in self.rules.iter().enumerate() {
            let of_rule: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.rule == rule).collect();
            let times: Vec<f64> = of_rule.iter().map(|outcome| reached(outcome).0).collect();
            let cpus: Vec<f64> = of_rule.iter().map(|outcome| reached(outcome).1).collect();
            let ratio = |which: fn((f64, f64)) -> f64| {
                let ratios: Vec<f64> = of_rule
                    .iter()
                    .filter_map(|outcome| {
                        let mine =
                            outcomes.iter().find(|other| Some(other.rule) == ours && other.round == outcome.round)?;
                        Some(which(reached(mine)) / which(reached(outcome)))
                    })
                    .collect();
                ranged(&ratios, 3)
            };
            println!(
                "| {name} | {} | {} | {} | {} | {} | {} |",
                ranged(&times, 1),
                ranged(&cpus, 2),
                ranged(&of_rule.iter().map(|o| o.course.last().unwrap().1 / 1e6).collect::<Vec<_>>(), 0),
                ranged(&of_rule.iter().map(|o| o.rest_cpu_s).collect::<Vec<_>>(), 3),
                ratio(|(time, _)| time),
                ratio(|(_, cpu)| cpu),
            );
        }
    }

    /// Seconds and CPU seconds until nine tenths of the largest saving of the round; up to the limit where it never came to that.
    fn reached(&self, outcomes: &[Outcome], of: &Outcome) -> (f64, f64) {
        let of_round = outcomes.iter().filter(|outcome| outcome.round == of.round);
        let largest =
            of_round.flat_map(|outcome| outcome.course.iter().map(|(_, saved, _)| *saved)).fold(0.0, f64::max);
        let goal = 0.9 * largest;
        let (last_s, _, last_cpu_s) = *of.course.last().unwrap();
        let Some(after) = of.course.iter().position(|(_, saved, _)| *saved >= goal) else {
            return (last_s, last_cpu_s);
        };
        let Some(before) = after.checked_sub(1) else { return (of.course[0].0, of.course[0].2) };
        let ((s0, saved0, cpu0), (s1, saved1, cpu1)) = (of.course[before], of.course[after]);
        let part = if saved1 > saved0 { (goal - saved0) / (saved1 - saved0) } else { 1.0 };
        (part.mul_add(s1 - s0, s0), part.mul_add(cpu1 - cpu0, cpu0))
    }
}

/// Median, and the range where there is one.
fn ranged(values: &[f64], digits: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some((low, high)) = sorted.first().zip(sorted.last()) else { return "-".into() };
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    format!("{median:.digits$} ({low:.digits$} to {high:.digits$})")
}

fn parse(rule: &str) -> MergeRule {
    let numbers: Vec<u32> = rule.split('-').filter_map(|part| part.parse().ok()).collect();
    match (rule.split('-').next().unwrap(), numbers.as_slice()) {
        ("tare", _) => MergeRule::Tare { free_goal: 0.2, max_cpu: 0.7 },
        ("published", _) => MergeRule::PublishedScript,
        ("ksmtuned", _) => MergeRule::Ksmtuned,
        ("advisor", [s]) => MergeRule::Advisor { target_scan_time: Span::from_secs((*s).into()), max_cpu: 70 },
        ("fixed", [pages, ms]) => MergeRule::Fixed { pages_to_scan: *pages, sleep: Span::from_millis((*ms).into()) },
        _ => panic!("no rule `{rule}`"),
    }
}

fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|line| line.starts_with("MemAvailable")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Each rule begins with nothing merged. What the last one's processes left goes as the kernel finds them gone.
fn wait_until_none_is_merged(kernel: &Kernel) {
    let wanted = HostMemory::default();
    let ledger: Arc<dyn Ledger> = Arc::new(NoLedger);
    let none = Governor::start(kernel.clone(), &wanted, true, Arc::new(Guests::default), &ledger).unwrap();
    let started = Instant::now();
    while kernel.counters().unwrap().saved(PAGE).0 > 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "pages are still merged");
        sleep(LOOK);
    }
    none.end().unwrap();
}
