//! Further guests like the measured one, for workloads whose operation is a start.

use tare_wire::Link;

/// Makes guests like the measured one: of the same platform, size and CPUs. From what it makes them the arm says: from nothing, from a pool of
/// guests that stand ready, or of a snapshot.
pub trait Starter: std::fmt::Debug + Sync {
    /// Makes ready what guests are started from: takes the snapshot, or makes guests until the pool is as full as it was. To be called before the
    /// first start, and after starts outside of what is measured.
    ///
    /// # Errors
    /// Why it could not. No further guest is to be started then.
    fn make_ready(&self) -> Result<(), String> {
        Ok(())
    }

    /// Makes a guest and waits for its agent's first answer.
    ///
    /// # Errors
    /// Why there is none. What had been made of it is gone then, or stays on the run's list of what must be taken away.
    fn start(&self) -> Result<Box<dyn StartedGuest>, String>;

    /// What making ready took so far, by names for people.
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Why nothing further is to be started, if the run is to end.
    fn ended(&self) -> Option<String>;
}

/// Page faults of the processes of this host's that a guest is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageFaults {
    /// All of them.
    pub all: u64,
    /// Those for which something was read from a disk.
    pub major: u64,
}

/// A guest that a [`Starter`] has made.
pub trait StartedGuest: Send {
    /// The channel to its agent.
    fn link(&self) -> &Link;

    /// Seconds from the first act of making it (or of letting it run, or restoring it) to its agent's first answer; what tare wrote down meanwhile is
    /// not in it.
    fn start_time_s(&self) -> f64;

    /// Seconds of that until its kernel's clock began, until user space began, and until its agent answered; `None` of a guest without a
    /// kernel of its own.
    fn parts_s(&self) -> Option<[f64; 3]>;

    /// Page faults since the start began; `None` where they are not known.
    fn page_faults(&self) -> Option<PageFaults> {
        None
    }

    /// Takes it away. Returns when all of it is gone.
    ///
    /// # Errors
    /// What did not go.
    fn destroy(self: Box<Self>) -> Result<(), String>;
}
