//! Sizes the balloons of all machines that stand, by a policy.

mod policy;

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tare_model::ballooning::{Ballooning, MachineMemory};

use crate::Kernel;
use crate::error::{MemoryError, Result};
use policy::{Policy, WINDOW};

/// Time between two samples (`host-monitor-interval` and `guest-monitor-interval` of MoM's configuration).
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// Samples between two decisions (`policy-engine-interval`, 10 s).
const SAMPLES_A_DECISION: usize = 2;

/// The machines whose balloons are sized.
pub trait Machines: Send + Sync {
    /// Names of those that stand.
    fn names(&self) -> Vec<String>;

    /// What each says of its memory. Those that do not answer are left out.
    fn look(&self) -> Vec<(String, MachineMemory)>;

    /// Asks a machine to have so many bytes. It takes its time, and may stop short of it.
    ///
    /// # Errors
    /// Why it was not asked.
    fn resize(&self, name: &str, bytes: u64) -> std::result::Result<(), String>;
}

/// What was done with balloons so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balloons {
    /// How often a machine was asked for another size.
    pub resized: u64,
    /// How often that could not be asked.
    pub refused: u64,
    /// Memory that machines were promised and do not have, all together, bytes, when last looked; `None` where one of them did not
    /// answer then, or nobody has looked yet.
    pub taken_bytes: Option<u64>,
}

#[derive(Default)]
struct State {
    done: Balloons,
    /// The machines that stood at the last sample.
    seen: Vec<String>,
    /// Samples since a machine last came, went or was asked for another size.
    quiet: usize,
}

/// Holds machines to the sizes that the policy wants, until it is dropped. Machines keep the size that they have then.
pub struct Manager {
    machines: Arc<dyn Machines>,
    state: Arc<Mutex<State>>,
    /// Dropped, it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Manager {
    /// Starts the thread that samples and decides.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(kernel: Kernel, asked: Ballooning, machines: Arc<dyn Machines>) -> Result<Self> {
        Self::start_every(SAMPLE_EVERY, kernel, asked, machines)
    }

    fn start_every(every: Duration, kernel: Kernel, asked: Ballooning, machines: Arc<dyn Machines>) -> Result<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let (end, ended) = mpsc::channel();
        let mut worker =
            Worker { kernel, machines: Arc::clone(&machines), state: Arc::clone(&state), policy: Policy::new(asked) };
        let thread = thread::Builder::new().name("tare-balloons".into()).spawn(move || {
            let mut samples = 0;
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                samples += 1;
                worker.sample(samples % SAMPLES_A_DECISION == 0);
            }
        });
        let thread = thread.map_err(|e| MemoryError::Unsupported {
            tried: "start the thread that sizes balloons".into(),
            why: e.to_string(),
            remedy: "Raise the limit of processes (ulimit -u)".into(),
        })?;
        Ok(Self { machines, state, end: Some(end), thread: Some(thread) })
    }

    /// Whether the policy leaves the machines that stand as they are: no machine came, went or was resized in a whole window of
    /// samples. Always where none stands.
    pub fn settled(&self) -> bool {
        let standing = self.machines.names();
        let state = lock(&self.state);
        standing.is_empty() || (state.seen == standing && state.quiet >= WINDOW)
    }

    /// What was done so far.
    pub fn done(&self) -> Balloons {
        lock(&self.state).done
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // What it saw is kept.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("done", &self.done()).finish_non_exhaustive()
    }
}

/// What the thread works with.
struct Worker {
    kernel: Kernel,
    machines: Arc<dyn Machines>,
    state: Arc<Mutex<State>>,
    policy: Policy,
}

impl Worker {
    /// Looks at host and machines, and resizes where it is time to. A sample that fails is left out.
    fn sample(&mut self, decide: bool) {
        let host = match self.kernel.memory() {
            Ok(host) => host,
            Err(error) => return tracing::warn!("{error}"),
        };
        let standing = self.machines.names();
        let looked = self.machines.look();
        self.policy.see(&host, &standing, &looked);
        let decided = if decide { self.policy.decide() } else { Vec::new() };
        let mut refused = 0;
        for (name, bytes) in &decided {
            tracing::debug!(machine = name, bytes, "its balloon is sized");
            if let Err(why) = self.machines.resize(name, *bytes) {
                tracing::debug!(machine = name, why, "its balloon was not sized");
                refused += 1;
            }
        }
        let mut state = lock(&self.state);
        let changed = !decided.is_empty() || state.seen != standing;
        state.quiet = if changed { 0 } else { state.quiet + 1 };
        let taken = looked.iter().map(|(_, seen)| seen.most.saturating_sub(seen.current)).sum();
        state.done.taken_bytes = (looked.len() == standing.len()).then_some(taken);
        state.seen = standing;
        state.done.resized += decided.len() as u64 - refused;
        state.done.refused += refused;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Instant;

    const GIB: u64 = 1 << 30;
    const EVERY: Duration = Duration::from_millis(5);

    /// Machines that have at once what they are asked for.
    #[derive(Default)]
    struct Obedient(Mutex<BTreeMap<String, MachineMemory>>);

    impl Obedient {
        fn set(&self, name: &str, unused: u64) {
            let memory = MachineMemory { current: 4 * GIB, most: 4 * GIB, unused };
            self.0.lock().unwrap().insert(name.to_owned(), memory);
        }
    }

    impl Machines for Obedient {
        fn names(&self) -> Vec<String> {
            self.0.lock().unwrap().keys().cloned().collect()
        }

        fn look(&self) -> Vec<(String, MachineMemory)> {
            self.0.lock().unwrap().iter().map(|(name, memory)| (name.clone(), *memory)).collect()
        }

        fn resize(&self, name: &str, bytes: u64) -> std::result::Result<(), String> {
            let mut all = self.0.lock().unwrap();
            let machine = all.get_mut(name).ok_or("it is gone")?;
            machine.unused -= machine.current - bytes;
            machine.current = bytes;
            Ok(())
        }
    }

    /// A host with so many of its 100 GiB free.
    fn host(free_gib: u64) -> (tempfile::TempDir, Kernel) {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("proc")).unwrap();
        let kib = free_gib * (GIB >> 10);
        let meminfo = format!(
            "MemTotal: {} kB\nMemFree: {kib} kB\nMemAvailable: {kib} kB\nBuffers: 0 kB\nCached: 0 kB\n",
            100 * (GIB >> 10)
        );
        std::fs::write(tree.path().join("proc/meminfo"), meminfo).unwrap();
        let kernel = Kernel::at(tree.path());
        (tree, kernel)
    }

    fn wait_for(what: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if what() {
                return true;
            }
            thread::sleep(EVERY);
        }
        false
    }

    #[test]
    fn machines_shrink_to_what_they_use_and_then_it_has_settled() {
        let (_tree, kernel) = host(10);
        let machines = Arc::new(Obedient::default());
        machines.set("a", 3 * GIB);
        let all: Arc<dyn Machines> = Arc::<Obedient>::clone(&machines);
        let manager = Manager::start_every(EVERY, kernel, Ballooning::MOM, all).unwrap();
        assert!(!manager.settled(), "nothing was decided yet");
        assert!(wait_for(|| manager.settled()));
        // It uses 1 GiB of what it has, and a tenth of that stays unused.
        let left = machines.look()[0].1.current as f64 / GIB as f64;
        assert!((1.0 / 0.9 - 0.02..1.0 / 0.9 + 0.02).contains(&left), "{left}");
        let done = manager.done();
        assert!(done.resized > 20 && done.refused == 0, "{done:?}");
        assert_eq!(done.taken_bytes, Some(4 * GIB - machines.look()[0].1.current));
        machines.set("b", 3 * GIB);
        assert!(!manager.settled(), "one more is there");
        drop(manager);
    }

    #[test]
    fn a_host_that_is_not_short_leaves_them_as_they_are() {
        let (_tree, kernel) = host(60);
        let machines = Arc::new(Obedient::default());
        let all: Arc<dyn Machines> = Arc::<Obedient>::clone(&machines);
        let manager = Manager::start_every(EVERY, kernel, Ballooning::MOM, all).unwrap();
        assert!(manager.settled(), "there is none");
        machines.set("a", 3 * GIB);
        assert!(wait_for(|| manager.settled()));
        assert_eq!(manager.done(), Balloons { resized: 0, refused: 0, taken_bytes: Some(0) });
    }
}
