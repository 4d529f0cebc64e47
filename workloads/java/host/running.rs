//! An application that is driven, again and again while other guests are added, and then checked.

use std::time::Duration;

use crate::application::{explained, gone, look};
use crate::java::spec::{JavaDone, JavaDrive};
use tare_model::Span;
use tare_model::deviation::Deviation;
use tare_model::drive::SocketOptions;
use tare_model::load::{Arrivals, LoadModel};
use tare_model::packed::Packed;
use tare_model::units::Rate;

use super::deviations::deviations;
use super::figures::{HELD, RESIDENT, of_guest};
use super::parameters::Parameters;
use super::start::{Started, held, longer};
use crate::site::Drive;
use crate::{Driven, Failure, Prepared, Schedule, WorkSite, WorkloadError};

/// What it is called in messages.
const APPLICATION: &str = "the Java application";
/// Longest wait for an answer of the application's: in a guest that is starved of CPU or memory it takes long, and what is
/// measured there is that it does.
const ANSWERING: Duration = Duration::from_secs(120);
/// The driver asks no more often than this how far the application has come.
const ASK_EVERY_MIN_NS: u64 = 100_000_000;
/// The deck of 33 transactions that every thread deals itself from.
const DECK: [(&str, u64); 6] = [
    ("new-order", 10),
    ("payment", 10),
    ("customer-report", 10),
    ("order-status", 1),
    ("delivery", 1),
    ("stock-level", 1),
];

/// An application at work, its driver, and what it did.
pub(super) struct Running {
    /// Whether the rate was to be found before the first trial.
    calibrated: bool,
    /// Whether the guest's system holds memory.
    holds: bool,
    groups: u32,
    /// What differs from the published original.
    deviations: Vec<Deviation>,
    started: Started,
    /// Number of the connected driver.
    driver: Option<u64>,
    /// What the application had counted when it was last driven.
    counted: JavaDone,
    /// Whether that was looked at.
    checked: bool,
    /// Operations that the drivers have seen answered since it was started.
    answered: u64,
    /// How often it was driven.
    drives: u64,
}

impl Running {
    pub fn new(parameters: &Parameters, groups: u32, started: Started) -> Self {
        Self {
            calibrated: parameters.cpu_share.is_some(),
            holds: parameters.memory.is_touched(),
            groups,
            deviations: deviations(parameters, groups),
            started,
            driver: None,
            counted: JavaDone::default(),
            checked: true,
            answered: 0,
            drives: 0,
        }
    }

    /// The load: the study's, or the rate that was found before. A rate of 0 is as fast as it goes.
    fn load(&self, site: &WorkSite<'_>) -> Result<LoadModel, Failure> {
        let closed = LoadModel::Closed { clients: self.groups, think_time: Span::ZERO };
        match site.rate_per_s {
            None if self.calibrated => {
                let why = "the rate for `cpu-share` was not found before";
                Err(Failure::new("drive the Java application", why, "report this: it is a defect of tare"))
            }
            Some(rate) if self.calibrated && rate > 0.0 => {
                Ok(LoadModel::Open { rate: Rate(rate), arrivals: Arrivals::Poisson, connections: self.groups })
            }
            Some(_) if self.calibrated => Ok(closed),
            _ => Ok(site.load),
        }
    }

    fn drive_of(&self, interval_ns: u64) -> Result<Drive, WorkloadError> {
        let ask_every_ns = interval_ns.max(ASK_EVERY_MIN_NS);
        let timeout_ns = u64::try_from(ANSWERING.as_nanos()).unwrap_or(u64::MAX);
        Ok(Drive {
            task: Packed::of(&JavaDrive { timeout_ns, ask_every_ns })?,
            targets: vec![self.started.address],
            socket: SocketOptions::default(),
            record: true,
            loss_timeout: Span { ns: timeout_ns },
        })
    }
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        let drive = self.drive_of(schedule.interval_ns)?;
        let connected = site.connect_with(self.load(site)?, drive, schedule, 2 * ANSWERING + site.timeout);
        self.driver = Some(connected.map_err(|error| explained(site, &[(APPLICATION, self.started.command)], error))?);
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        // What ends a drive, and its result, are answers too.
        let driven = longer(site, 3 * ANSWERING).drive(self.driver.take(), schedule);
        let result = driven.map_err(|error| explained(site, &[(APPLICATION, self.started.command)], error))?;
        self.answered += result.answered_total;
        self.drives += 1;
        let counted = result.outcome::<JavaDrive>()?;
        let mut driven = of_guest(result, &counted, &self.counted);
        driven.facts.extend(self.started.facts.clone());
        driven.deviations.clone_from(&self.deviations);
        self.counted = counted;
        self.checked = false;
        Ok(driven)
    }

    /// The application is left as it is: it may be driven again, and ends with its guest.
    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let seen = look(site, self.started.command)?;
        if let Some(gone) = gone(APPLICATION, &seen) {
            return Err(gone.into());
        }
        if std::mem::replace(&mut self.checked, true) {
            return Err(WorkSite::unexpected("client", "drive load"));
        }
        driven.measurement.counts.extend(seen.resident_peak_bytes.map(|bytes| (RESIDENT.to_owned(), bytes)));
        if self.holds {
            driven.measurement.counts.insert(HELD.to_owned(), held(site)?);
        }
        Ok(wrong(&self.counted, self.answered, self.groups, self.drives))
    }
}

/// What is wrong with what the application did, if anything is: its own books, the number of its operations, or their mix.
/// `answered` were seen by the drivers, in so many drives since its start.
fn wrong(counted: &JavaDone, answered: u64, groups: u32, drives: u64) -> Option<String> {
    if let Some(wrong) = &counted.wrong {
        return Some(format!("the application's books do not add up: {wrong}"));
    }
    if counted.groups != groups {
        return Some(format!("the application has {} data groups, {groups} were asked for", counted.groups));
    }
    let done: u64 = counted.transactions.values().sum();
    if done != answered {
        return Some(format!("the application counts {done} transactions, its drivers saw {answered} operations"));
    }
    let other = counted.transactions.keys().find(|kind| DECK.iter().all(|(name, _)| name != kind));
    if let Some(other) = other {
        return Some(format!("the application did transactions of a kind that there is not: {other}"));
    }
    let deck: u64 = DECK.iter().map(|(_, cards)| cards).sum();
    DECK.into_iter().find_map(|(kind, cards)| {
        let did = counted.transactions.get(kind).copied().unwrap_or(0);
        let due = done as f64 * cards as f64 / deck as f64;
        // Each thread may be in the midst of a deck, and may have begun another in every drive.
        let most_off = (u64::from(groups) * drives.max(1) * cards) as f64;
        let off = (did as f64 - due).abs();
        (off > most_off).then(|| {
            format!(
                "of {done} transactions {did} were {kind}; with {cards} of {deck} cards it should be about {due:.0}"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// So many whole decks.
    fn whole_decks(decks: u64) -> JavaDone {
        let transactions = DECK.into_iter().map(|(kind, cards)| (kind.to_owned(), cards * decks)).collect();
        JavaDone { transactions, groups: 6, ..JavaDone::default() }
    }

    #[test]
    fn work_that_adds_up_is_right_and_each_kind_of_wrong_is_reported() {
        assert_eq!(wrong(&whole_decks(100), 3300, 6, 1), None);
        let mut half = whole_decks(100);
        *half.transactions.get_mut("payment").unwrap() += 40;
        assert_eq!(wrong(&half, 3340, 6, 1), None, "six threads are in the midst of a deck");
        *half.transactions.get_mut("payment").unwrap() += 400;
        let mixed = wrong(&half, 3740, 6, 1).unwrap();
        assert!(mixed.contains("payment") || mixed.contains("new-order"), "{mixed}");
        assert!(wrong(&whole_decks(100), 3299, 6, 1).unwrap().contains("3299"));
        assert!(wrong(&whole_decks(100), 3300, 4, 1).unwrap().contains("6 data groups"));
        let stock = JavaDone { wrong: Some("stock of item 3".into()), ..whole_decks(1) };
        assert!(wrong(&stock, 33, 6, 1).unwrap().contains("stock of item 3"));
        let mut other = whole_decks(1);
        other.transactions.insert("refund".into(), 1);
        assert!(wrong(&other, 34, 6, 1).unwrap().contains("refund"));
        let none = JavaDone { transactions: BTreeMap::new(), ..whole_decks(1) };
        assert_eq!(wrong(&none, 0, 6, 1), None, "too few to tell, and no figure rests on them");
    }
}
