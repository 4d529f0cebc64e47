//! Further guests like the measured one, for workloads whose operation is a start.

use tare_wire::Link;

/// Makes guests like the measured one: of the same platform, size and CPUs.
pub trait Starter: std::fmt::Debug + Sync {
    /// Makes a guest and waits for its agent's first answer.
    ///
    /// # Errors
    /// Why there is none. What had been made of it is gone then, or stays on the run's list of what must be taken away.
    fn start(&self) -> Result<Box<dyn StartedGuest>, String>;

    /// Why nothing further is to be started, if the run is to end.
    fn ended(&self) -> Option<String>;
}

/// A guest that a [`Starter`] has made.
pub trait StartedGuest: Send {
    /// The channel to its agent.
    fn link(&self) -> &Link;

    /// Seconds from the first act of making it to its agent's first answer; what tare wrote down meanwhile is not in it.
    fn start_time_s(&self) -> f64;

    /// Seconds of that until its kernel's clock began, until user space began, and until its agent answered; `None` of a guest without a
    /// kernel of its own.
    fn parts_s(&self) -> Option<[f64; 3]>;

    /// Takes it away. Returns when all of it is gone.
    ///
    /// # Errors
    /// What did not go.
    fn destroy(self: Box<Self>) -> Result<(), String>;
}
