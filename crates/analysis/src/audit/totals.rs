//! Whether totals add up to what they are totals of.

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::published::{self, Place, PrintedTotal};
use tare_model::trial::RequestType;

use super::tables::{Iteration, Table};
use super::{Run, entry, figure, with};

/// Most figures of one arm that are listed one by one where they do not add up.
const LISTED_MAX: usize = 4;
/// What a figure without a printed last digit is taken to be off by, seconds.
const RESPONSE_ROUNDING_S: f64 = 0.000_5;

/// One figure beside what it recomputes to.
struct Checked {
    what: String,
    /// Whether it is of one type: what is of all types is listed first.
    of_type: bool,
    printed: f64,
    /// Where it is printed.
    place: Option<Place>,
    places: usize,
    /// `None`: it is of nothing that the run tells.
    recomputed: Option<f64>,
    allowed: f64,
}

impl Checked {
    fn holds(&self) -> Option<bool> {
        // A last digit in binary is never exact.
        self.recomputed.map(|value| (value - self.printed).abs() <= self.allowed * (1.0 + 1e-9) + 1e-9)
    }

    fn sentence(&self) -> String {
        let printed = figure(self.printed, self.places);
        let place = self.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let what = &self.what;
        match self.recomputed {
            Some(value) => {
                let value = figure(value, self.places);
                format!("{what}: {printed} is printed, but its parts add up to {value}{place}")
            }
            None => format!("{what}: {printed} is printed, but what it is computed from is not reported{place}"),
        }
    }
}

/// One entry for each figure that does not add up, and one for all that do, by case and arm.
pub(super) fn check(run: &Run<'_>) -> Vec<AuditEntry> {
    let mut found = Vec::new();
    for case in &run.study.cases {
        for arm in &run.study.arms {
            let printed: Vec<&PrintedTotal> = run
                .published()
                .map(|published| &published.printed[..])
                .unwrap_or_default()
                .iter()
                .filter(|total| total.case == case.id && total.arm == arm.id)
                .collect();
            let table = run.table(case, arm);
            let mut checked: Vec<Checked> = printed.iter().map(|total| total_of(run, table, &printed, total)).collect();
            let rows = table.map(|table| rows(table, &printed)).unwrap_or_default();
            let looked_at = checked.len() + rows.len();
            checked.extend(rows);
            checked.retain(|own| own.holds() != Some(true));
            checked.sort_by_key(|own| own.of_type);
            let (unknown, broken): (Vec<Checked>, Vec<Checked>) =
                checked.into_iter().partition(|own| own.recomputed.is_none());
            let place = (case.id.as_str(), arm.id.as_str());
            found.extend(faults(place, &broken));
            found.extend(
                unknown
                    .iter()
                    .map(|own| entry(AuditCheck::Totals, AuditOutcome::Unknown, place.0, &[place.1], own.sentence())),
            );
            let fine = looked_at - broken.len() - unknown.len();
            if fine > 0 && broken.is_empty() {
                let totals = if fine == 1 { "1 total adds".to_owned() } else { format!("{fine} totals add") };
                let detail = format!("{totals} up to rounding on {}", arm.label);
                found.push(entry(AuditCheck::Totals, AuditOutcome::Holds, place.0, &[place.1], detail));
            }
            found.extend(without_totals(run, table));
        }
    }
    found
}

fn faults((case, arm): (&str, &str), broken: &[Checked]) -> Vec<AuditEntry> {
    let consequence = "The table is incomplete or was altered: do not base a comparison on it.";
    let fault =
        |detail: String| with(entry(AuditCheck::Totals, AuditOutcome::Broken, case, &[arm], detail), consequence);
    let mut found: Vec<AuditEntry> = broken.iter().take(LISTED_MAX).map(|own| fault(own.sentence())).collect();
    if broken.len() > LISTED_MAX {
        found.push(fault(format!("{} more totals do not add up", broken.len() - LISTED_MAX)));
    }
    found
}

/// Iterations of a published table without a printed total.
fn without_totals(run: &Run<'_>, table: Option<&Table<'_>>) -> Option<AuditEntry> {
    let (published, table) = (run.published()?, table?);
    let of_all = |number: u32| {
        published.printed.iter().any(|total| {
            total.case == table.case
                && total.arm == table.arm
                && total.iteration == number
                && !total.figure.contains('.')
        })
    };
    let missing: Vec<String> =
        table.iterations.iter().map(|own| own.number).filter(|own| !of_all(*own)).map(|own| own.to_string()).collect();
    (!missing.is_empty()).then(|| {
        let detail = format!("no total is printed on {} for iteration {}", run.label(table.arm), missing.join(", "));
        entry(AuditCheck::Totals, AuditOutcome::Unknown, table.case, &[table.arm], detail)
    })
}

/// Each type's requests beside what is good, tolerable and failed of them. One line an iteration, of its first misfit.
fn rows(table: &Table<'_>, printed: &[&PrintedTotal]) -> Vec<Checked> {
    let parts = |own: &RequestType| own.good as f64 + own.tolerable as f64 + own.failed as f64;
    let of = |own: &Iteration<'_>| {
        let worst = own.types.iter().find(|own| parts(own) != own.requests as f64).or(own.types.first())?;
        // The line is that of any printed figure of the type.
        let line = |total: &&&PrintedTotal| {
            total.iteration == own.number && total.figure.rsplit_once('.').is_some_and(|(name, _)| name == worst.name)
        };
        let place = printed.iter().find(line).and_then(|total| total.place.clone());
        Some(Checked {
            what: format!("block {}, iteration {}, {}, good, tolerable and failed", own.block, own.number, worst.name),
            of_type: true,
            printed: worst.requests as f64,
            place: place.map(|place| Place { field: published::figure::REQUESTS.to_owned(), ..place }),
            places: 0,
            recomputed: Some(parts(worst)),
            allowed: 0.0,
        })
    };
    table.iterations.iter().filter_map(of).collect()
}

/// A printed total beside what it is of.
fn total_of(run: &Run<'_>, table: Option<&Table<'_>>, printed: &[&PrintedTotal], total: &PrintedTotal) -> Checked {
    let places = (0..6).find(|places| total.rounding * 10f64.powi(*places) >= 0.25).unwrap_or(6);
    let what = match total.iteration {
        0 => total.figure.clone(),
        number => format!("iteration {number}, {}", total.figure),
    };
    let mut checked = Checked {
        what,
        of_type: total.figure.contains('.'),
        printed: total.value,
        place: total.place.clone(),
        places: places as usize,
        recomputed: None,
        allowed: total.rounding,
    };
    let computed = if total.iteration == 0 {
        of_parts(run, total)
    } else {
        let own = |table: &&Table<'_>| table.iterations.iter().any(|own| own.number == total.iteration);
        table.filter(own).and_then(|table| {
            let iteration = table.iterations.iter().find(|own| own.number == total.iteration)?;
            of_requests(iteration, printed, total)
        })
    };
    if let Some((value, allowed)) = computed {
        (checked.recomputed, checked.allowed) = (Some(value), allowed);
    }
    checked
}

/// A metric of a whole run: the sum over its parts, each of which was rounded as the total was; else the metric itself.
fn of_parts(run: &Run<'_>, total: &PrintedTotal) -> Option<(f64, f64)> {
    let (_, measurement) = run.completed(&total.case, &total.arm).next()?;
    let of = |driver: bool| -> Vec<f64> {
        let own = measurement.parts.iter().filter(|part| part.driver.is_some() == driver);
        own.filter_map(|part| part.metrics.get(&total.figure).copied()).collect()
    };
    let (drivers, guests) = (of(true), of(false));
    let parts = if drivers.is_empty() { guests } else { drivers };
    if parts.is_empty() {
        return Some((*measurement.metrics.get(&total.figure)?, total.rounding));
    }
    Some((parts.iter().sum(), total.rounding * (parts.len() as f64 + 1.0)))
}

/// What a figure of one iteration comes to, and by how much it may be off: counts not at all; a mean of rounded means twice its
/// rounding; sums of rounded rates by the rounding of each.
fn of_requests(iteration: &Iteration<'_>, printed: &[&PrintedTotal], total: &PrintedTotal) -> Option<(f64, f64)> {
    // `byte_rate` of all, `login.byte_rate` of one type; names of types may have points in them.
    let (name, what) = match total.figure.rsplit_once('.') {
        Some((name, what)) => (Some(name), what),
        None => (None, total.figure.as_str()),
    };
    let own = || iteration.types.iter().filter(|own| name.is_none_or(|name| own.name == name));
    let sum = |of: fn(&RequestType) -> f64| own().map(of).sum::<f64>();
    let requests = sum(|own| own.requests as f64);
    own().next()?;
    let mean = |sum: f64| (requests > 0.0).then(|| (sum / requests, 2.0 * total.rounding));
    match what {
        published::figure::REQUESTS => Some((requests, 0.0)),
        published::figure::GOOD => Some((sum(|own| own.good as f64), 0.0)),
        published::figure::TOLERABLE => Some((sum(|own| own.tolerable as f64), 0.0)),
        published::figure::FAILED => Some((sum(|own| own.failed as f64), 0.0)),
        published::figure::RESPONSE => mean(sum(|own| own.response_s)),
        published::figure::BYTES_EACH => mean(sum(|own| own.bytes as f64)),
        published::figure::BYTE_RATE if name.is_none() => rates(iteration, printed, total)
            .or_else(|| byte_rate(iteration, sum(|own| own.bytes as f64), printed, total)),
        published::figure::BYTE_RATE => byte_rate(iteration, sum(|own| own.bytes as f64), printed, total),
        _ => None,
    }
}

/// The printed rates of all types together, where each is printed.
fn rates(iteration: &Iteration<'_>, printed: &[&PrintedTotal], total: &PrintedTotal) -> Option<(f64, f64)> {
    let of = |own: &RequestType| {
        let printed_as = format!("{}.{}", own.name, published::figure::BYTE_RATE);
        printed
            .iter()
            .find(|rate| rate.iteration == total.iteration && rate.figure == printed_as)
            .map(|rate| rate.value)
    };
    let all: Option<Vec<f64>> = iteration.types.iter().map(of).collect();
    let all = all?;
    Some((all.iter().sum(), total.rounding * (all.len() as f64 + 1.0)))
}

/// So many bytes over the response time of all requests, bytes a second. The mean response times that this is made from
/// are cut off, not rounded, after their last printed digit: all 18 published tables come out up to 0.13 % too high, by as
/// much as half a last digit makes of the response time.
fn byte_rate(
    iteration: &Iteration<'_>,
    bytes: f64,
    printed: &[&PrintedTotal],
    total: &PrintedTotal,
) -> Option<(f64, f64)> {
    let response: f64 = iteration.types.iter().map(|own| own.response_s).sum();
    let requests: f64 = iteration.types.iter().map(|own| own.requests as f64).sum();
    if !(response > 0.0 && requests > 0.0) {
        return None;
    }
    let own =
        printed.iter().find(|other| other.iteration == total.iteration && other.figure == published::figure::RESPONSE);
    let digit = 2.0 * own.map_or(RESPONSE_ROUNDING_S, |own| own.rounding);
    let rate = bytes / response;
    Some((rate, rate * digit / (response / requests) + total.rounding))
}
