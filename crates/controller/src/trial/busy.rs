//! How busy the guests' CPUs were: as the host counts it, or, of machines elsewhere, as their own kernels do.

use tare_model::sample::{Sample, Source};
use tare_model::study::CaseLoad;
use tare_model::units::Span;

use super::target::{source, target_name};
use super::turns::length;
use super::{Gathered, Trial};
use crate::remote_guests;

/// The CPU of a control group in the samples, seconds since it was made.
const USED: &str = "cpu_total_s";
/// The same as columns of work make it, of a guest that is counted by its own kernel: it used no less.
const WORKED: &str = "cpu_worked_s";
/// Shortest interval of a course, but in windows that have fewer of them than [`FEWEST`].
const INTERVAL: Span = Span::from_secs(1);
/// Intervals of a course: at least so many where the samples allow it, and at most.
const FEWEST: u64 = 10;
const MOST: u64 = 300;

/// Whose account of the guests' CPUs is read.
pub(super) enum Account {
    /// This host's, of their control groups.
    Host,
    /// Their own kernels', which have so many CPUs each.
    Guests(Vec<usize>),
}

/// What all measured guests have used over time.
pub(super) struct Busy {
    /// Of each guest.
    used: Vec<(Source, Vec<Sample>)>,
    /// CPUs that all guests together can use.
    cpus: f64,
    /// How often it was sampled, nanoseconds.
    sampled_ns: u64,
}

impl Trial<'_> {
    /// Whose account there is of the CPUs of the measured guests; `None`: of one of them there is none. That of a guest's own kernel counts
    /// only where a share is held: in other cases it would stand beside shares that this host counts.
    pub(super) fn account(&self, gathered: &Gathered) -> Option<Account> {
        let measured = gathered.measured();
        if measured.iter().all(|guest| !guest.groups().is_empty()) {
            return Some(Account::Host);
        }
        let is_held = matches!(self.case.load, CaseLoad::CpuTarget { .. });
        let cpus: Option<Vec<usize>> = measured.iter().map(|guest| tare_platform::cpus_online(guest.facts())).collect();
        cpus.filter(|_| is_held && remote_guests::are_elsewhere(self.task.platform)).map(Account::Guests)
    }

    /// What the measured guests have used, from the samples of the host's probe or, of machines elsewhere, from those of the guests' own that
    /// were gathered.
    pub(super) fn busy(&self, samples: &[Sample], gathered: &Gathered) -> Busy {
        let sampled_ns = self.bench.plan.study.lab.sample_interval.ns;
        if let Some(Account::Guests(cpus)) = self.account(gathered) {
            let used = cpus.iter().enumerate().map(|(n, cpus)| {
                let name = target_name(n);
                let own = remote_guests::used(&gathered.samples, &name, *cpus, [USED, WORKED]);
                (Source::InGuest(name), own)
            });
            return Busy { used: used.collect(), cpus: cpus.iter().sum::<usize>() as f64, sampled_ns };
        }
        let asked = gathered.measured().iter().map(|guest| guest.spec().size.cpus);
        let cpus = usable(asked, self.bench.plan.cpus.guests.len());
        let sources = (0..gathered.targets).map(|n| source(n, gathered.targets));
        Busy::of(samples, sources, f64::from(cpus), sampled_ns)
    }
}

/// CPUs that guests of so many CPUs each can use together: no more than there are for guests, all of which they share. With none set
/// aside for them, what they asked.
fn usable(asked: impl Iterator<Item = u32>, set: usize) -> u32 {
    let asked = asked.fold(0_u32, u32::saturating_add);
    match u32::try_from(set) {
        Ok(0) | Err(_) => asked,
        Ok(set) => asked.min(set),
    }
}

impl Busy {
    fn of(samples: &[Sample], sources: impl Iterator<Item = Source>, cpus: f64, sampled_ns: u64) -> Self {
        let own = |source: Source| {
            let own =
                samples.iter().filter(|sample| sample.series == USED && sample.source == source).cloned().collect();
            (source, own)
        };
        Self { used: sources.map(own).collect(), cpus, sampled_ns }
    }

    /// The busy share of the guests' CPUs in a window, 0 to 1, a little more where a quota lets a guest catch up; `None` where nobody counts
    /// a guest's, or its samples do not reach over the window.
    pub(super) fn share(&self, window: (u64, u64)) -> Option<f64> {
        self.share_of(&[window])
    }

    /// The same in several windows together.
    pub(super) fn share_of(&self, windows: &[(u64, u64)]) -> Option<f64> {
        let seconds = Some(length(windows)).filter(|ns| *ns > 0)? as f64 / 1e9;
        let used = self.used.iter().map(|(source, own)| {
            let gain = |series: &str| tare_probe::gain_over(own, source, series, windows);
            Some(gain(USED)?.max(gain(WORKED).unwrap_or(0.0)))
        });
        let used: f64 = used.sum::<Option<f64>>().filter(|_| !self.used.is_empty() && self.cpus > 0.0)?;
        Some(used / (seconds * self.cpus))
    }

    /// The share by interval of a window: seconds from its start to the middle of each, and the share. Intervals are of equal length, a
    /// second or more; shorter, but no shorter than samples are apart, in a window of less than ten seconds.
    pub(super) fn course(&self, (start, end): (u64, u64)) -> Vec<(f64, f64)> {
        let window = end.saturating_sub(start);
        let longest = (window / FEWEST).min(INTERVAL.ns).max(self.sampled_ns).max(window / MOST).max(1);
        let count = (window / longest).min(MOST);
        let at = |n: u64| start + (u128::from(window) * u128::from(n) / u128::from(count.max(1))) as u64;
        let one = |n: u64| {
            let (from, to) = (at(n), at(n + 1));
            let middle = (from - start) as f64 / 2e9 + (to - start) as f64 / 2e9;
            Some((middle, self.share((from, to))?))
        };
        (0..count).filter_map(one).collect()
    }
}

/// Standard deviation of the shares of a course; `None` with fewer than two.
pub(super) fn spread(course: &[(f64, f64)]) -> Option<f64> {
    let count = course.len() as f64;
    if course.len() < 2 {
        return None;
    }
    let mean = course.iter().map(|(_, share)| share).sum::<f64>() / count;
    let squares: f64 = course.iter().map(|(_, share)| (share - mean).powi(2)).sum();
    Some((squares / (count - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A guest that is busy half of the time for ten seconds, then all of it, sampled every 200 ms.
    fn samples(name: &str) -> Vec<Sample> {
        let used = |n: u64| if n <= 50 { n as f64 * 0.1 } else { 5.0 + (n - 50) as f64 * 0.2 };
        let source = Source::Guest(name.to_owned());
        (0..=100)
            .map(|n| Sample { at_ns: n * SECOND / 5, source: source.clone(), series: USED.into(), value: used(n) })
            .collect()
    }

    fn guests(names: &[&str]) -> impl Iterator<Item = Source> {
        names.iter().map(|name| Source::Guest((*name).to_owned())).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn the_share_is_of_all_guests_cpus() {
        let mut both = samples("target");
        both.extend(samples("target-2"));
        let one = Busy::of(&both, guests(&["target"]), 1.0, SECOND / 5);
        assert!((one.share((0, 10 * SECOND)).unwrap_or(0.0) - 0.5).abs() < 1e-9);
        assert!((one.share((5 * SECOND, 15 * SECOND)).unwrap_or(0.0) - 0.75).abs() < 1e-9);
        let two = Busy::of(&both, guests(&["target", "target-2"]), 4.0, SECOND / 5);
        assert!((two.share((10 * SECOND, 20 * SECOND)).unwrap_or(0.0) - 0.5).abs() < 1e-9);
        let without = Busy::of(&both, guests(&["target", "target-3"]), 2.0, SECOND / 5);
        assert_eq!(without.share((0, SECOND)), None, "a guest without a group of its own");
        let worked: Vec<Sample> = samples("target")
            .into_iter()
            .map(|own| Sample { series: WORKED.into(), value: own.value * 1.5, ..own })
            .collect();
        let floored = Busy::of(&both, guests(&["target"]), 1.0, SECOND / 5);
        let (source, own) = floored.used[0].clone();
        let floored = Busy { used: vec![(source, [own, worked].concat())], ..floored };
        let share = floored.share((0, 10 * SECOND)).unwrap_or(0.0);
        assert!((share - 0.75).abs() < 1e-9, "{share}: no less than it worked");
        assert_eq!((one.share((15 * SECOND, 25 * SECOND)), one.share((SECOND, SECOND))), (None, None));
        assert_eq!(Busy::of(&both, guests(&[]), 1.0, 1).share((0, SECOND)), None);
    }

    #[test]
    fn guests_have_no_more_cpus_than_there_are_for_them() {
        assert_eq!(usable([2].into_iter(), 1), 1, "asked two, granted one");
        assert_eq!(usable([1, 2, 4].into_iter(), 16), 7, "guests of different sizes");
        assert_eq!(usable([1, 2, 4].into_iter(), 4), 4);
        assert_eq!(usable([2, 1].into_iter(), 0), 3, "no CPUs are set aside for guests");
    }

    #[test]
    fn a_course_has_intervals_of_a_second_or_what_samples_allow() {
        let busy = Busy::of(&samples("target"), guests(&["target"]), 1.0, SECOND / 5);
        let course = busy.course((0, 20 * SECOND));
        let at: Vec<u64> = course.iter().map(|(at, _)| (at * 10.0).round() as u64).collect();
        assert_eq!((at.len(), at[0], at[19]), (20, 5, 195));
        assert!((course[3].1 - 0.5).abs() < 1e-9 && (course[19].1 - 1.0).abs() < 1e-9);
        // Half and whole: the deviation of ten each.
        assert!((spread(&course).unwrap_or(0.0) - (20.0 * 0.0625_f64 / 19.0).sqrt()).abs() < 1e-9);
        assert_eq!(busy.course((0, SECOND)).len(), 5);
        assert_eq!((busy.course((0, 0)), spread(&course[..1])), (Vec::new(), None));
        let slow = Busy { sampled_ns: 3 * SECOND, ..busy };
        assert_eq!(slow.course((0, 20 * SECOND)).len(), 6);
    }
}
