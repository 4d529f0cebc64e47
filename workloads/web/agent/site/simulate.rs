//! A site walked through without a server: what mix of requests its tables make.

use crate::web::spec::WebDrive;

use super::compile::Site;
use super::user::{Next, User};
use crate::DriverError;

/// Requests of one session after which it is taken to have no end. The longest published site has a mean of 15.
const ENDLESS: u64 = 1_000_000;

/// What simulated sessions asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Simulated {
    /// Sessions, each from its first request to its end.
    pub sessions: u64,
    /// Requests by state, in the order of the site's states.
    pub states: Vec<u64>,
    /// Requests that the user thought before, however short.
    pub thinks: u64,
    /// Sum of the think times, nanoseconds.
    pub think_ns: u128,
}

impl Simulated {
    /// Requests of all states. Embedded files are part of their page's request.
    pub fn requests(&self) -> u64 {
        self.states.iter().sum()
    }

    /// Share of a state in all requests, 0 to 1; 0 of a state that there is not.
    pub fn share(&self, state: usize) -> f64 {
        self.states.get(state).map_or(0.0, |count| *count as f64 / self.requests().max(1) as f64)
    }

    /// Share of all requests that the user thought before, 0 to 1.
    pub fn thinking_share(&self) -> f64 {
        self.thinks as f64 / self.requests().max(1) as f64
    }
}

/// Has users walk through a site as a driver does, but ask nobody and wait for nothing. The same seed has the same result.
///
/// # Errors
/// [`DriverError::Invalid`] when the site cannot be driven, or its sessions have no end.
pub fn simulate(drive: &WebDrive, sessions: u64, seed: u64) -> Result<Simulated, DriverError> {
    let site = Site::compile(drive)?;
    let mut seen = Simulated { sessions, states: vec![0; site.states()], ..Simulated::default() };
    for session in 0..sessions {
        let mut user = User::fresh(&site, seed, session);
        let mut requests = 0;
        while let Next::State(state) = user.next(&site) {
            seen.states[usize::from(state)] += 1;
            if user.thinks(&site) {
                seen.thinks += 1;
                seen.think_ns += u128::from(user.think_ns(&site));
            }
            requests += 1;
            if requests > ENDLESS {
                return Err(DriverError::invalid(
                    format!("a session of the site {} did not end", drive.site.name),
                    "leave a part of the probabilities of what comes next to the end of the session",
                ));
            }
        }
    }
    Ok(seen)
}
