//! Sets the host for an arm, carries out the arm's rule, and puts all back.

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tare_lab::{Ledger, Resource};
use tare_model::Refusal;
use tare_model::merging::{HostMemory, MergeCounters, MergeRule, Merging};

use crate::error::{MemoryError, Result};
use crate::rules::{self, Rule, Seen, Set};
use crate::settle::Settled;
use crate::{Guests, Kernel};

/// How often is looked whether merging has come to its end, and whether the rule wants to decide.
const TICK: Duration = Duration::from_millis(500);

/// Something that a rule set, and when.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decision {
    /// Seconds since the governor's start.
    pub at_s: f64,
    /// What was set.
    pub set: Set,
}

/// Holds the host as an arm wants it, from [`Governor::start`] to [`Governor::end`]. Dropped, it puts all back as well, and can
/// then only log what went wrong.
pub struct Governor {
    kernel: Kernel,
    merging: Option<(Arc<Merger>, Worker)>,
    held: Option<Held>,
}

/// The thread that carries out a rule, and what ends it.
struct Worker {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

/// What was found on the host, and where it is written down.
struct Held {
    ledger: Arc<dyn Ledger>,
    id: u64,
    root: PathBuf,
    found: Vec<(PathBuf, String)>,
}

/// A rule at work.
struct Merger {
    kernel: Kernel,
    guests: Arc<dyn Fn() -> Guests + Send + Sync>,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    rule: Box<dyn Rule>,
    settled: Settled,
    /// How often something new was seen, and of how much of it the rule has decided.
    news: u64,
    decided: u64,
    due_s: f64,
    decisions: Vec<Decision>,
    /// What went wrong since the start, if anything.
    failed: Option<MemoryError>,
}

impl Governor {
    /// Notes in the ledger what is found, sets the host as `wanted`, and starts the thread that carries out the rule. Where
    /// `wanted` does not merge and `stop_merging` is set, merging is stopped and what was merged before is taken apart.
    /// `guests` is called about twice a second, and by [`Governor::settled`].
    ///
    /// # Errors
    /// When the host cannot do what is asked, the ledger is not written, or a file is refused. All is put back then.
    pub fn start(
        kernel: Kernel,
        wanted: &HostMemory,
        stop_merging: bool,
        guests: Arc<dyn Fn() -> Guests + Send + Sync>,
        ledger: &Arc<dyn Ledger>,
    ) -> Result<Self> {
        if let Some(merging) = &wanted.merging {
            check(&kernel, merging)?;
        }
        let mut governor = Self { kernel, merging: None, held: None };
        let found = governor.kernel.found(wanted, stop_merging)?;
        if found.is_empty() {
            return Ok(governor);
        }
        let id = ledger.planned(&Resource::Settings { found: found.clone() })?;
        let root = governor.kernel.settings_root();
        governor.held = Some(Held { ledger: Arc::clone(ledger), id, root, found });
        match governor.set(wanted, stop_merging, guests) {
            Ok(()) => Ok(governor),
            Err(why) => {
                if let Err(e) = governor.finish() {
                    tracing::error!("{e}");
                }
                Err(why)
            }
        }
    }

    fn set(
        &mut self,
        wanted: &HostMemory,
        stop_merging: bool,
        guests: Arc<dyn Fn() -> Guests + Send + Sync>,
    ) -> Result<()> {
        if let Some(huge_pages) = wanted.huge_pages {
            self.kernel.write(&self.kernel.huge_pages(), huge_pages.word())?;
        }
        let Some(merging) = &wanted.merging else {
            return if stop_merging { self.kernel.stop_and_take_apart() } else { Ok(()) };
        };
        if self.kernel.has("use_zero_pages") {
            self.kernel.write(&self.kernel.ksm("use_zero_pages"), if merging.zero_pages { "1" } else { "0" })?;
        }
        let merger = Arc::new(Merger::begin(self.kernel.clone(), merging, guests)?);
        let (end, ended) = mpsc::channel();
        let at_work = Arc::clone(&merger);
        let thread = thread::Builder::new()
            .name("tare-merging".into())
            .spawn(move || {
                while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    at_work.tick();
                }
            })
            .map_err(|e| MemoryError::Unsupported {
                tried: "start the thread that governs merging".into(),
                why: e.to_string(),
                remedy: "Raise the limit of processes (ulimit -u)".into(),
            })?;
        self.merging = Some((merger, Worker { end, thread }));
        Ok(())
    }

    /// What the kernel counts now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn counters(&self) -> Result<MergeCounters> {
        self.kernel.counters()
    }

    /// Whether merging has come to its end, as seen now; always where nothing merges. Where its rule has stopped merging, or rests,
    /// that is the end as well, once the rule has seen the guests as they are.
    pub fn settled(&self) -> bool {
        self.merging.as_ref().is_none_or(|(merger, _)| match merger.look() {
            Ok((settled, ..)) => settled,
            Err(e) => {
                merger.state().failed.get_or_insert(e);
                false
            }
        })
    }

    /// What the rule has set so far, in order; what stayed as it was is left out.
    pub fn decisions(&self) -> Vec<Decision> {
        self.merging.as_ref().map(|(merger, _)| merger.state().decisions.clone()).unwrap_or_default()
    }

    /// Ends the rule, puts all back as it was found, and reads it back. What is merged stays so until its processes end: taking it
    /// apart could need more memory than there is.
    ///
    /// # Errors
    /// When something is not as it was found: each file is named. It then stays in the ledger for `tare reap`. Also when the
    /// rule could not be carried out to the end.
    pub fn end(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        let mut failed = None;
        if let Some((merger, worker)) = self.merging.take() {
            drop(worker.end);
            let panicked = worker.thread.join().is_err().then(|| MemoryError::Unsupported {
                tried: "carry out the rule of merging to the end".into(),
                why: "its thread panicked".into(),
                remedy: "Report this with what was said on standard error".into(),
            });
            failed = panicked.or_else(|| merger.state().failed.take());
        }
        if let Some(held) = self.held.take() {
            tare_lab::put_back_settings(&held.root, &held.found).map_err(|why| MemoryError::NotPutBack { why })?;
            held.ledger.released(held.id)?;
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        if let Err(e) = self.finish() {
            tracing::error!("{e}");
        }
    }
}

impl fmt::Debug for Governor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.held.as_ref().map(|held| &held.found);
        f.debug_struct("Governor").field("kernel", &self.kernel).field("found", &found).finish_non_exhaustive()
    }
}

impl Merger {
    /// Sets what the rule begins with.
    fn begin(kernel: Kernel, merging: &Merging, guests: Arc<dyn Fn() -> Guests + Send + Sync>) -> Result<Self> {
        let page = rustix::param::page_size() as u64;
        let mut rule = rules::of(merging, page);
        let seen = Seen { at_s: 0.0, memory: kernel.memory()?, guests: guests(), counters: kernel.counters()? };
        let set = rule.begin(&seen);
        kernel.apply(set)?;
        let mut settled = Settled::new(page);
        settled.see(&seen.counters, &seen.guests);
        let due_s = next(0.0, rule.as_ref());
        let decisions = vec![Decision { at_s: 0.0, set }];
        let state = State { rule, settled, news: 1, decided: 0, due_s, decisions, failed: None };
        Ok(Self { kernel, guests, started: Instant::now(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether merging has come to its end. Also what is seen for the rule, and how often something new had been seen by then:
    /// who else looks meanwhile may see more.
    fn look(&self) -> Result<(bool, Seen, u64)> {
        // Before the lock: whoever keeps the guests may hold a lock of theirs while asking here.
        let guests = (self.guests)();
        let counters = self.kernel.counters()?;
        let memory = self.kernel.memory()?;
        let at_s = self.started.elapsed().as_secs_f64();
        let mut state = self.state();
        let passed = state.settled.see(&counters, &guests);
        state.news += u64::from(state.settled.began_anew());
        let settled = passed || (state.news == state.decided && state.rule.is_at_rest());
        Ok((settled, Seen { at_s, memory, guests, counters }, state.news))
    }

    /// Looks, and lets the rule decide when it is due. What fails is kept for the end, and tried again.
    fn tick(&self) {
        if let Err(e) = self.look().and_then(|(_, seen, news)| self.decide_if_due(&seen, news)) {
            tracing::warn!("{e}");
            self.state().failed.get_or_insert(e);
        }
    }

    fn decide_if_due(&self, seen: &Seen, news: u64) -> Result<()> {
        let mut state = self.state();
        if seen.at_s < state.due_s {
            return Ok(());
        }
        state.due_s = next(seen.at_s, state.rule.as_ref());
        let set = state.rule.decide(seen);
        state.decided = news;
        if state.decisions.last().is_none_or(|last| last.set != set) {
            self.kernel.apply(set)?;
            state.decisions.push(Decision { at_s: seen.at_s, set });
        }
        Ok(())
    }
}

/// When a rule is due next.
fn next(at_s: f64, rule: &dyn Rule) -> f64 {
    let every = rule.every();
    // Half a tick early, or a rule of one second would decide after one and a half.
    if every.is_zero() { f64::INFINITY } else { at_s + every.saturating_sub(TICK / 2).as_secs_f64() }
}

/// Whether the kernel can do what the arm asks.
fn check(kernel: &Kernel, merging: &Merging) -> Result<()> {
    let tried = || format!("merge memory by the rule `{}`", merging.rule.name());
    if let Some(Refusal { reason: why, remedy }) = kernel.refusal() {
        return Err(MemoryError::Unsupported { tried: tried(), why, remedy });
    }
    if matches!(merging.rule, MergeRule::Advisor { .. }) && !kernel.has("advisor_mode") {
        let why = "this kernel has no advisor".into();
        return Err(MemoryError::Unsupported { tried: tried(), why, remedy: "Linux 6.8 or newer is needed".into() });
    }
    if merging.zero_pages && !kernel.has("use_zero_pages") {
        let why = "this kernel has no use_zero_pages".into();
        let remedy = "Set `zero-pages = false`: empty pages are then merged like others".into();
        return Err(MemoryError::Unsupported { tried: tried(), why, remedy });
    }
    Ok(())
}
