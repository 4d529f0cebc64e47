//! Guests that are made at one time, and taken away once all of them have answered.

use std::sync::Barrier;
use std::time::Duration;

use tare_wire::ExecSpec;

use super::Parameters;
use crate::clock::monotonic_ns;
use crate::command::{self, OUTPUT_BYTES};
use crate::{Failure, PageFaults, StartedGuest, Starter, WorkloadError};

/// How long an agent may take to answer beyond the time of its command.
const GRACE: Duration = Duration::from_secs(10);

/// One start that came to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// From when it was due to when it was begun, nanoseconds; nothing where starts are not due at fixed times.
    pub wait_ns: u64,
    /// From the first act of making the guest to its agent's first answer, nanoseconds.
    pub start_ns: u64,
    /// From there to the end of the command, nanoseconds; nothing without one.
    pub command_ns: u64,
    /// From the call to its return, nanoseconds: what tare wrote down is in it as well.
    pub call_ns: u64,
    /// What it took to take the guest away, nanoseconds.
    pub stop_ns: u64,
    /// Parts of the start, seconds, of a guest with a kernel of its own.
    pub parts_s: Option<[f64; 3]>,
    /// Page faults from the first act to the first answer, and from there to the end of the command; of what was not run or is not known, `None`.
    pub faults: [Option<PageFaults>; 2],
}

/// What a burst came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Burst {
    /// From the first act until the last guest was gone, CLOCK_MONOTONIC nanoseconds.
    pub window_ns: (u64, u64),
    /// When the last guest had answered.
    pub answered_ns: u64,
    /// The starts that succeeded.
    pub started: Vec<Started>,
    /// Why others did not.
    pub failed: Vec<String>,
}

/// A guest that was made and has done its work.
struct Alive {
    guest: Box<dyn StartedGuest>,
    answered_ns: u64,
    call_ns: u64,
    command: Result<u64, String>,
    faults: [Option<PageFaults>; 2],
}

impl Started {
    /// From when it was due, or else its first act, to the first answer, nanoseconds.
    pub const fn answer_ns(&self) -> u64 {
        self.wait_ns + self.start_ns
    }

    /// The same to the end of its command.
    pub const fn task_ns(&self) -> u64 {
        self.answer_ns() + self.command_ns
    }
}

impl Burst {
    /// The same, of which every start was begun so long after it was due.
    #[must_use]
    pub fn waited(mut self, wait_ns: u64) -> Self {
        self.started.iter_mut().for_each(|one| one.wait_ns = wait_ns);
        self
    }

    /// Makes so many guests at one time, has each run the command, if there is one, and takes them away again. What they were started from is
    /// made ready again after that.
    ///
    /// # Errors
    /// When the run is to end, a guest could not be taken away, or nothing is ready: nothing more is to be made then.
    pub fn of(count: u32, starter: &dyn Starter, parameters: &Parameters) -> Result<Self, WorkloadError> {
        if let Some(why) = starter.ended() {
            return Err(WorkloadError::Command(format!("no further guest was started: {why}")));
        }
        let from_ns = monotonic_ns();
        let together = &Barrier::new(count.max(1) as usize);
        let made = side_by_side((0..count).map(|_| move || begin(starter, parameters, together)).collect::<Vec<_>>());
        let answered_ns = made.iter().filter_map(|made| Some(made.as_ref().ok()?.answered_ns)).max();
        let mut burst = Self { answered_ns: answered_ns.unwrap_or(from_ns), ..Self::default() };
        let (alive, failed): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
        burst.failed = failed.into_iter().filter_map(Result::err).collect();
        let ended =
            side_by_side(alive.into_iter().filter_map(Result::ok).map(|alive| move || end(alive)).collect::<Vec<_>>());
        let mut stayed = Vec::new();
        for ended in ended {
            match ended {
                Ok((started, Ok(()))) => burst.started.push(started),
                Ok((_, Err(why))) => burst.failed.push(why),
                Err(why) => stayed.push(why),
            }
        }
        burst.window_ns = (from_ns, monotonic_ns());
        if stayed.is_empty() {
            make_ready(starter)?;
            return Ok(burst);
        }
        let remedy = "`tare reap` tries again once the run has ended";
        Err(Failure::new("take a started guest away", stayed.join("; "), remedy).into())
    }

    /// Fails where more than half of the starts did.
    pub fn mostly_started(&self) -> Result<(), WorkloadError> {
        Self::mostly_started_in(std::slice::from_ref(self))
    }

    /// Fails where more than half of the starts of all these bursts did, in the words of the first.
    pub fn mostly_started_in(bursts: &[Self]) -> Result<(), WorkloadError> {
        let started: usize = bursts.iter().map(|burst| burst.started.len()).sum();
        let failed: Vec<&String> = bursts.iter().flat_map(|burst| &burst.failed).collect();
        match failed.first() {
            Some(why) if failed.len() > started => Err(WorkloadError::Command(format!(
                "{} of {} starts failed, the first because {why}",
                failed.len(),
                failed.len() + started
            ))),
            _ => Ok(()),
        }
    }
}

/// Makes a guest and has it run its command, at the same moment as the others of its burst.
fn begin(starter: &dyn Starter, parameters: &Parameters, together: &Barrier) -> Result<Alive, String> {
    together.wait();
    let from_ns = monotonic_ns();
    let guest = starter.start()?;
    let answered_ns = monotonic_ns();
    let started = guest.page_faults();
    let runs_ns = monotonic_ns();
    let command = run(&*guest, parameters).map(|()| monotonic_ns().saturating_sub(runs_ns));
    let ran = if parameters.command.is_empty() { None } else { guest.page_faults() };
    let of_command = started.zip(ran).map(|(started, ran)| PageFaults {
        all: ran.all.saturating_sub(started.all),
        major: ran.major.saturating_sub(started.major),
    });
    let (call_ns, faults) = (answered_ns.saturating_sub(from_ns), [started, of_command]);
    Ok(Alive { guest, answered_ns, call_ns, command, faults })
}

fn run(guest: &dyn StartedGuest, parameters: &Parameters) -> Result<(), String> {
    if parameters.command.is_empty() {
        return Ok(());
    }
    let spec = ExecSpec::new(&parameters.command, parameters.timeout.duration(), OUTPUT_BYTES);
    command::run(guest.link(), spec, GRACE).map(drop).map_err(|error| error.to_string())
}

/// Takes a guest away: the start, and whether its command succeeded.
///
/// # Errors
/// What did not go.
fn end(alive: Alive) -> Result<(Started, Result<(), String>), String> {
    let Alive { guest, call_ns, command, faults, .. } = alive;
    let (start_ns, parts_s) = ((guest.start_time_s() * 1e9) as u64, guest.parts_s());
    let from_ns = monotonic_ns();
    guest.destroy()?;
    let stop_ns = monotonic_ns().saturating_sub(from_ns);
    let command_ns = command.as_ref().map_or(0, |ns| *ns);
    Ok((Started { wait_ns: 0, start_ns, command_ns, call_ns, stop_ns, parts_s, faults }, command.map(drop)))
}

/// Makes ready what guests are started from.
///
/// # Errors
/// Why it is not.
pub fn make_ready(starter: &dyn Starter) -> Result<(), WorkloadError> {
    let remedy = "leave `start` out of the arm to make its guests from nothing";
    starter.make_ready().map_err(|why| Failure::new("make ready what guests are started from", why, remedy).into())
}

/// Does all of this at one time, in threads of their own; in this one where there is but one.
pub fn side_by_side<T: Send>(mut work: Vec<impl FnOnce() -> Result<T, String> + Send>) -> Vec<Result<T, String>> {
    if work.len() <= 1 {
        return work.pop().map(|one| one()).into_iter().collect();
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = work.into_iter().map(|one| scope.spawn(one)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|ended| ended.unwrap_or_else(|_| Err("a start panicked: a defect of tare".to_owned()))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(started: usize, failed: usize) -> Burst {
        let one = Started {
            wait_ns: 0,
            start_ns: 1,
            command_ns: 0,
            call_ns: 2,
            stop_ns: 1,
            parts_s: None,
            faults: [None; 2],
        };
        Burst { started: vec![one; started], failed: vec!["no memory".to_owned(); failed], ..Burst::default() }
    }

    #[test]
    fn a_trial_in_which_most_starts_fail_has_failed_and_says_why() {
        assert!(Burst::mostly_started_in(&[burst(1, 1), burst(3, 3)]).is_ok());
        let error = Burst::mostly_started_in(&[burst(1, 1), burst(0, 1)]).unwrap_err().to_string();
        assert_eq!(error, "2 of 3 starts failed, the first because no memory");
        assert!(burst(0, 1).mostly_started().is_err() && burst(1, 0).mostly_started().is_ok());
    }
}
