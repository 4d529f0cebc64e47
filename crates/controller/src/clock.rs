//! The clock of a machine beside this one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tare_model::trial::Flag;
use tare_wire::Link;
use tare_workload::{Clock, Departure, Offset, Relation};

use crate::time_limits::TIMEOUT;

/// The flag of a trial in which the clock of a host beside this one did not keep to what was measured of it.
const HOST_CLOCK: &str = "host-clock";

/// The clock of the machine of a driver, or of what serves guests. What it says after a load is asked for when the first of that load's stamps
/// is translated back, or when it is described.
#[derive(Debug)]
pub struct ClientClock {
    /// Id of the host.
    host: String,
    link: Arc<Link>,
    seen: Mutex<Seen>,
}

impl ClientClock {
    /// Asks the agent there, before the load.
    pub fn ask(host: &str, link: &Arc<Link>) -> Result<Self, String> {
        let seen = Mutex::new(Seen::new(Offset::ask(link, TIMEOUT)?));
        Ok(Self { host: host.to_owned(), link: Arc::clone(link), seen })
    }

    /// What is known of it, for disclosure.
    pub fn describe(&self) -> String {
        self.measured().describe()
    }

    /// What a reader must know of it.
    pub fn flag(&self) -> Option<Flag> {
        let detail = format!("host `{}`: {}", self.host, self.measured().trouble()?);
        Some(Flag { kind: HOST_CLOCK.to_owned(), detail })
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With a measurement after the last load.
    fn measured(&self) -> MutexGuard<'_, Seen> {
        let mut seen = self.lock();
        if seen.after.is_none() {
            seen.end(Offset::ask(&self.link, TIMEOUT));
        }
        seen
    }
}

impl Clock for ClientClock {
    fn host(&self) -> Option<&str> {
        Some(&self.host)
    }

    fn theirs(&self, ours_ns: u64) -> u64 {
        let mut seen = self.lock();
        seen.begin();
        seen.relation().to_theirs(ours_ns)
    }

    fn ours(&self, theirs_ns: u64) -> u64 {
        self.measured().relation().to_ours(theirs_ns)
    }
}

/// What was measured of a clock: before the first load, and after each.
#[derive(Debug)]
struct Seen {
    first: Offset,
    /// Before the load that is under way, or the last one.
    before: Offset,
    /// After that load; `None`: not asked for yet.
    after: Option<Result<Offset, String>>,
    /// The largest departure over any load.
    departed: Option<Departure>,
    /// Why it could not be measured after a load.
    unread: Option<String>,
}

impl Seen {
    const fn new(first: Offset) -> Self {
        Self { first, before: first, after: None, departed: None, unread: None }
    }

    /// A load is about to begin: what was measured last is what holds.
    fn begin(&mut self) {
        if let Some(Ok(last)) = self.after.take() {
            self.before = last;
        }
    }

    /// What was measured after a load.
    fn end(&mut self, after: Result<Offset, String>) {
        match &after {
            Ok(after) => {
                let new = Relation::new(self.before, Some(*after)).departure();
                self.departed = self.departed.into_iter().chain(new).max_by_key(|found| found.ns.unsigned_abs());
            }
            Err(why) => drop(self.unread.get_or_insert_with(|| why.clone())),
        }
        self.after = Some(after);
    }

    /// Around the load. Without a second measurement the first has to do.
    fn relation(&self) -> Relation {
        Relation::new(self.before, self.last())
    }

    fn last(&self) -> Option<Offset> {
        self.after.as_ref().and_then(|after| after.as_ref().ok()).copied()
    }

    fn describe(&self) -> String {
        Relation::new(self.first, self.last()).describe()
    }

    /// What it did that it should not have, and what that means for the trial's figures.
    fn trouble(&self) -> Option<String> {
        if let Some(Departure { ns, allowed_ns, over_ns }) = self.departed {
            let ms = |ns: f64| format!("{:.3} ms", ns / 1e6);
            let way = if ns < 0 { "fell behind this host's" } else { "went ahead of this host's" };
            let by = ms(ns.unsigned_abs() as f64);
            return Some(format!(
                "its clock {way} by {by} over {:.3} s, more than the {} that {} ppm and the measurements' uncertainty explain: the machine stood still or was moved, or its clock was being set. Moments that its drivers report are uncertain by that much, so is which operations lie in the measured window, and response times that they measured meanwhile may be wrong by that much",
                over_ns as f64 / 1e9,
                ms(allowed_ns as f64),
                Departure::FREE_PPM,
            ));
        }
        let why = self.unread.as_ref()?;
        Some(format!(
            "its clock could not be asked for after the load, so a jump of it would not have been seen: {why}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// A clock that began an hour before ours, as it is seen over a way of 100 us, and so much further.
    fn seen(at_s: u64, further_ns: i64) -> Offset {
        Offset { at_ns: at_s * S, ns: 3600 * S.cast_signed() + further_ns, uncertainty_ns: 50_000 }
    }

    #[test]
    fn a_clock_that_jumps_during_a_load_is_reported_with_how_far_and_what_that_means() {
        let after = |further_ns| {
            let mut clock = Seen::new(seen(100, 0));
            clock.begin();
            clock.end(Ok(seen(110, further_ns)));
            clock.trouble()
        };
        assert_eq!((after(0), after(2_000_000), after(-2_000_000)), (None, None, None), "200 ppm");
        let said = after(-4_321_000_000).unwrap();
        assert!(said.starts_with("its clock fell behind this host's by 4321.000 ms over 10.000 s"), "{said}");
        assert!(said.contains("more than the 2.100 ms that 200 ppm") && said.contains("response times"), "{said}");
        let said = after(7_000_000).unwrap();
        assert!(said.starts_with("its clock went ahead of this host's by 7.000 ms"), "{said}");
    }

    #[test]
    fn each_load_is_begun_by_what_was_measured_last_and_the_largest_jump_stays() {
        let mut clock = Seen::new(seen(100, 0));
        for (at_s, further_ns) in [(110, 5_000_000), (120, 5_000_000), (130, 25_000_000), (140, 25_500_000)] {
            clock.begin();
            clock.end(Ok(seen(at_s, further_ns)));
        }
        assert_eq!(clock.departed.map(|found| (found.ns, found.over_ns)), Some((20_000_000, 10 * S)));
        clock.begin();
        let ours_ns = 141 * S;
        assert_eq!(clock.relation().to_theirs(ours_ns), ours_ns + 3600 * S + 25_500_000);
        assert!(clock.describe().starts_with("its own, +3600.000000000 s"), "{}", clock.describe());
    }

    #[test]
    fn a_clock_that_cannot_be_read_after_the_load_is_reported_as_unknown_and_the_first_measurement_holds() {
        let mut clock = Seen::new(seen(100, 3));
        clock.begin();
        clock.end(Err("it is gone".to_owned()));
        assert_eq!(clock.relation().to_ours(3700 * S + 3), 100 * S);
        let said = clock.trouble().unwrap();
        assert!(said.contains("could not be asked for") && said.ends_with("it is gone"), "{said}");
    }
}
