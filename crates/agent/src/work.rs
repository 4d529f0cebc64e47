//! What an agent does for its controller: servers, drivers, busy loops, commands, memory and sampling, by number.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tare_driver::serve::{self, Door};
use tare_driver::{busy, drive};
use tare_model::Span;
use tare_model::drive::{BusyStretch, BusyWork, DriveSpec};
use tare_model::hold::HoldSpec;
use tare_model::packed::Packed;
use tare_model::token::Token;
use tare_probe::GuestProbe;
use tare_wire::{ExecSpec, Reply};

use crate::exec::Commands;
use crate::hold::Hold;
use crate::started::Started;

type Answer = Result<Reply, String>;

/// Everything that goes on in this agent.
#[derive(Default)]
pub struct Work {
    last_number: AtomicU64,
    /// Set once: an agent serves one trial.
    token: OnceLock<Token>,
    /// What shows, after a restore, that this memory was restored.
    secret: Mutex<Option<Token>>,
    servers: Mutex<HashMap<u64, serve::Server>>,
    busy: Mutex<HashMap<u64, Arc<busy::Busy>>>,
    drives: Mutex<HashMap<u64, drive::Prepared>>,
    /// Set once and for ever: an agent serves one trial, and what is cancelled is the trial.
    cancelled: AtomicBool,
    commands: Arc<Commands>,
    started: Arc<Started>,
    hold: Hold,
    probe: Mutex<Option<GuestProbe>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number of something that was never started, or is stopped already.
fn unknown(what: &str, number: u64) -> String {
    format!("there is no {what} with number {number}: it was never started or is stopped already")
}

impl Work {
    fn number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes the token that servers ask for from now on, and that drivers show.
    pub fn admit(&self, token: Token) -> Answer {
        match self.token.get_or_init(|| token) == &token {
            true => Ok(Reply::Done),
            false => Err("it has another token already".to_owned()),
        }
    }

    /// Keeps a secret in place of an earlier one.
    pub fn keep(&self, secret: Token) -> Answer {
        *lock(&self.secret) = Some(secret);
        Ok(Reply::Done)
    }

    /// The secret that is kept.
    pub fn kept(&self) -> Answer {
        Ok(Reply::Keeps { secret: *lock(&self.secret) })
    }

    /// Starts a server.
    pub fn serve(&self, task: &Packed, bind: IpAddr, from: Option<IpAddr>) -> Answer {
        let door = Door { bind, from, token: self.token.get().copied() };
        let server = serve::start(task, door).map_err(|error| error.to_string())?;
        let (number, address) = (self.number(), server.addr);
        lock(&self.servers).insert(number, server);
        Ok(Reply::Serving { server: number, address })
    }

    /// Stops a server.
    pub fn stop_serve(&self, number: u64) -> Answer {
        let server = lock(&self.servers).remove(&number).ok_or_else(|| unknown("server", number))?;
        Ok(Reply::Served(server.stop()))
    }

    /// Opens a driver's connections.
    pub fn prepare_drive(&self, spec: DriveSpec) -> Answer {
        let spec = DriveSpec { token: self.token.get().copied(), ..spec };
        let prepared = drive::prepare(&spec, &self.cancelled).map_err(|error| error.to_string())?;
        let number = self.number();
        lock(&self.drives).insert(number, prepared);
        Ok(Reply::Prepared { drive: number })
    }

    /// Runs a driver to its end.
    pub fn start_drive(&self, number: u64, start_at_ns: u64) -> Answer {
        let prepared = lock(&self.drives).remove(&number).ok_or_else(|| unknown("prepared driver", number))?;
        let result = prepared.run(start_at_ns, &|_| {}, &self.cancelled);
        result.map(|result| Reply::Driven(Box::new(result))).map_err(|error| error.to_string())
    }

    /// Does what a workload asks of its part in the agent.
    pub fn call(&self, task: &Packed) -> Answer {
        let outcome = tare_driver::call(task, &self.cancelled).map_err(|error| error.to_string())?;
        Ok(Reply::Called { outcome })
    }

    /// The commands that run.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Makes all drivers and commands end early, those of now and those of later, and stops busy loops.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        // Also those that are asked for something just now.
        lock(&self.busy).drain().for_each(|(_, busy)| drop(busy.stop()));
        self.commands.cancel();
    }

    /// Starts busy loops.
    pub fn busy(&self, threads: u32, work: BusyWork) -> Answer {
        let busy = busy::start(threads, &work).map_err(|error| error.to_string())?;
        let (number, address) = (self.number(), busy.address());
        lock(&self.busy).insert(number, Arc::new(busy));
        Ok(Reply::BusyStarted { busy: number, address })
    }

    fn busy_loops(&self, number: u64) -> Result<Arc<busy::Busy>, String> {
        lock(&self.busy).get(&number).map(Arc::clone).ok_or_else(|| unknown("busy loop", number))
    }

    /// How far busy loops have come.
    pub fn busy_iterations(&self, number: u64) -> Answer {
        let iterations = self.busy_loops(number)?.iterations();
        iterations.map(|iterations| Reply::BusyIterations { iterations }).map_err(|error| error.to_string())
    }

    /// Has busy loops compute through a stretch that was asked for at a moment of CLOCK_MONOTONIC.
    pub fn run_busy(&self, number: u64, asked_ns: u64, stretch: &BusyStretch) -> Answer {
        self.busy_loops(number)?.run(asked_ns, stretch).map(Reply::BusyRan).map_err(|error| error.to_string())
    }

    /// Stops busy loops.
    pub fn stop_busy(&self, number: u64) -> Answer {
        let busy = lock(&self.busy).remove(&number).ok_or_else(|| unknown("busy loop", number))?;
        let iterations = busy.stop();
        iterations.map(|iterations| Reply::BusyIterations { iterations }).map_err(|error| error.to_string())
    }

    /// Starts a command and leaves it running.
    pub fn start(&self, spec: ExecSpec) -> Answer {
        let number = self.number();
        let pid = self.started.start(number, spec, &self.commands)?;
        Ok(Reply::Started { command: number, pid })
    }

    /// What a started command has said and done so far.
    pub fn look(&self, number: u64) -> Answer {
        self.started.look(number).unwrap_or_else(|| Err(unknown("started command", number)))
    }

    /// Ends a started command.
    pub fn end(&self, number: u64) -> Answer {
        self.started.end(number, &self.commands).unwrap_or_else(|| Err(unknown("started command", number)))
    }

    /// Holds memory beside the started commands.
    pub fn hold(&self, spec: &HoldSpec) -> Answer {
        self.hold.take(spec, &self.started, &self.cancelled).map_err(|error| error.to_string())?;
        Ok(self.held())
    }

    /// How much memory is held.
    pub fn held(&self) -> Reply {
        let (bytes, first_bytes) = self.hold.bytes();
        Reply::Holding { bytes, first_bytes }
    }

    /// Begins to sample.
    pub fn start_sampling(&self, guest: &str, interval_ns: u64) -> Answer {
        let mut probe = lock(&self.probe);
        if probe.is_some() {
            return Err("it samples already".into());
        }
        *probe = Some(GuestProbe::start(guest, Span { ns: interval_ns }).map_err(|error| error.to_string())?);
        Ok(Reply::Done)
    }

    /// Ends sampling.
    pub fn stop_sampling(&self) -> Answer {
        let probe = lock(&self.probe).take().ok_or("it does not sample")?;
        let (samples, cpu_ns) = probe.stop().map_err(|error| error.to_string())?;
        Ok(Reply::Samples { samples, cpu_ns })
    }
}
