//! Connections that work side by side on a list of jobs, and how they are stopped.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tare_model::sql::{SqlFailure, SqlServer};

use crate::pg::{Connection, PgError};

/// Longest that connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for the connection that has the server end the others.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// How often it is looked whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// A connection and what is needed to end it.
struct Member {
    connection: Connection,
    socket: Arc<OwnedFd>,
    /// Number of the server's process that serves it.
    process: String,
}

/// Connections that work side by side.
pub struct Crew {
    server: SqlServer,
    members: Vec<Member>,
}

/// Connects, with a failure that tells which server.
pub fn connect(server: &SqlServer) -> Result<Connection, SqlFailure> {
    Ok(Connection::connect(server, CONNECT_TIMEOUT)?)
}

/// What a statement failed at, with what it was for.
pub fn failed_at(what: &str) -> impl FnOnce(PgError) -> SqlFailure + '_ {
    move |error| error.while_trying(what).into()
}

/// That nobody wants it any more.
pub fn cancelled() -> SqlFailure {
    SqlFailure { sqlstate: None, message: "filling the database was cancelled".to_owned() }
}

impl Crew {
    /// Opens so many connections and has each run `settings`.
    pub fn new(server: &SqlServer, connections: u32, settings: &str) -> Result<Self, SqlFailure> {
        let mut members = Vec::new();
        for _ in 0..connections.max(1) {
            let mut connection = connect(server)?;
            connection.simple(settings)?;
            let said = connection.simple("SELECT pg_backend_pid()")?;
            let process = said.first().and_then(|r| r.rows.first()?.first()?.clone()).unwrap_or_default();
            members.push(Member { socket: connection.socket(), connection, process });
        }
        Ok(Self { server: server.clone(), members })
    }

    /// Has the jobs done, each by whoever is free: the first of the list whose needs are met. At the first failure, and when
    /// `cancel` is set, all that is under way is ended, by the server as well, and nothing more begun.
    ///
    /// A job may look at the flag that it is given: set, nobody needs its result.
    pub fn run<T: Sync>(
        &mut self,
        jobs: &[Job<T>],
        cancel: &AtomicBool,
        work: impl Fn(&mut Connection, &T, &AtomicBool) -> Result<(), SqlFailure> + Sync,
    ) -> Result<(), SqlFailure> {
        let stop = AtomicBool::new(false);
        let dealer =
            Dealer { jobs, state: Mutex::new(State::of(jobs.len(), self.members.len())), changed: Condvar::new() };
        let ends: Vec<_> = self.members.iter().map(|m| (Arc::clone(&m.socket), m.process.clone())).collect();
        thread::scope(|scope| {
            let (dealer, stop, work) = (&dealer, &stop, &work);
            for member in &mut self.members {
                scope.spawn(move || {
                    while let Some(job) = dealer.take() {
                        let result = work(&mut member.connection, &jobs[job].work, stop);
                        dealer.done(job, result);
                    }
                    dealer.leave();
                });
            }
            if !dealer.watch(cancel) {
                stop.store(true, Ordering::SeqCst);
                end(&self.server, &ends);
            }
        });
        dealer.state.into_inner().unwrap_or_else(PoisonError::into_inner).failure.map_or(Ok(()), Err)
    }
}

/// Something to be done.
pub struct Job<T> {
    /// What it is part of; that is there once all jobs of this name are done.
    pub makes: String,
    /// What must be there before it begins.
    pub needs: Vec<String>,
    /// What it is.
    pub work: T,
}

/// Who deals the jobs.
struct Dealer<'a, T> {
    jobs: &'a [Job<T>],
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    begun: Vec<bool>,
    done: Vec<bool>,
    workers: usize,
    failure: Option<SqlFailure>,
}

impl State {
    fn of(jobs: usize, workers: usize) -> Self {
        Self { begun: vec![false; jobs], done: vec![false; jobs], workers, failure: None }
    }

    fn fail(&mut self, why: SqlFailure) {
        self.failure.get_or_insert(why);
    }
}

impl<T> Dealer<'_, T> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job that can begin; waits for one. `None` when there is nothing more to do.
    fn take(&self) -> Option<usize> {
        let mut state = self.state();
        loop {
            if state.failure.is_some() || state.begun.iter().all(|begun| *begun) {
                return None;
            }
            let there =
                |need: &String| self.jobs.iter().zip(&state.done).all(|(job, done)| *done || job.makes != *need);
            let next = (0..self.jobs.len()).find(|n| !state.begun[*n] && self.jobs[*n].needs.iter().all(there));
            if let Some(next) = next {
                state.begun[next] = true;
                return Some(next);
            }
            if state.begun == state.done {
                let message = "the steps wait for each other".to_owned();
                state.fail(SqlFailure { sqlstate: None, message });
                self.changed.notify_all();
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, job: usize, result: Result<(), SqlFailure>) {
        let mut state = self.state();
        state.done[job] = true;
        if let Err(why) = result {
            state.fail(why);
        }
        self.changed.notify_all();
    }

    /// A worker has nothing more to do.
    fn leave(&self) {
        self.state().workers -= 1;
        self.changed.notify_all();
    }

    /// Waits until all workers have left. Not so, and at once, after a failure, or when it is cancelled, which is one.
    fn watch(&self, cancel: &AtomicBool) -> bool {
        let mut state = self.state();
        while state.workers > 0 {
            if cancel.load(Ordering::SeqCst) {
                state.fail(cancelled());
                self.changed.notify_all();
            }
            if state.failure.is_some() {
                return false;
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Has the server end what the connections are at, and cuts them, so that those who wait for an answer wait no longer.
fn end(server: &SqlServer, ends: &[(Arc<OwnedFd>, String)]) {
    // First the server: it would not notice a lost client before an index is made.
    if let Ok(mut connection) = Connection::connect(server, STOP_TIMEOUT)
        && connection.bound(Some(STOP_TIMEOUT)).is_ok()
    {
        for (_, process) in ends.iter().filter(|(_, process)| !process.is_empty()) {
            // One that has ended already is fine, and the cut below ends the work in any case.
            let _ = connection.simple(&format!("SELECT pg_terminate_backend({process})"));
        }
    }
    for (socket, _) in ends {
        let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
    }
}
