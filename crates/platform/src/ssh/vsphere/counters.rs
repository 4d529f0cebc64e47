//! vSphere's performance counters of machines and of the hosts that carry them, while trials last.
//!
//! Hosts count over intervals of 20 s, and keep the last hour of it. What is new is asked for every ten seconds, and once more before a
//! machine is switched off, since a machine that is off has none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::govc::ask;
use super::machine::Machine;
use crate::{HostCounters, HostFigure, HostReading};

/// From one question to the next: half of the interval of the counters.
const INTERVAL: Duration = Duration::from_secs(10);
/// Intervals that are asked for at a time: those of two minutes, since an answer may take a while.
const SAMPLES: &str = "6";
/// Objects of one question: so its answer stays well below what is kept of a program's output.
const OBJECTS: usize = 4;
/// How far figures may lie ahead, and how far behind, before the clocks are taken to differ.
const AHEAD: Duration = Duration::from_secs(2);
const BEHIND: Duration = Duration::from_secs(120);

/// How a counter becomes a figure.
#[derive(Debug, Clone, Copy)]
enum Unit {
    /// Milliseconds of an interval: percent of one CPU's time.
    Percent,
    /// The same: CPUs.
    Cpus,
    /// KiB, or KiB/s: bytes, or bytes a second.
    Kibi,
    /// Hundredths of a percent: percent.
    Hundredths,
}

/// Counters, their series and units.
type Known = [(&'static str, &'static str, Unit)];

/// Of a machine: all its virtual CPUs together.
const OF_MACHINE: &Known = &[
    ("cpu.ready.summation", "cpu_ready_percent", Unit::Percent),
    ("cpu.costop.summation", "cpu_costop_percent", Unit::Percent),
    ("cpu.used.summation", "cpu_used_cpus", Unit::Cpus),
    ("mem.consumed.average", "memory_consumed_bytes", Unit::Kibi),
    ("mem.active.average", "memory_active_bytes", Unit::Kibi),
    ("mem.vmmemctl.average", "memory_ballooned_bytes", Unit::Kibi),
    ("mem.swapped.average", "memory_swapped_bytes", Unit::Kibi),
    ("net.received.average", "net_received_bytes_per_s", Unit::Kibi),
    ("net.transmitted.average", "net_transmitted_bytes_per_s", Unit::Kibi),
];
/// Of a machine's disks: there is none of all together, so they are added up.
const OF_DISKS: &Known = &[
    ("virtualDisk.read.average", "disk_read_bytes_per_s", Unit::Kibi),
    ("virtualDisk.write.average", "disk_write_bytes_per_s", Unit::Kibi),
];
/// Of a host.
const OF_HOST: &Known = &[
    ("cpu.usage.average", "cpu_used_percent", Unit::Hundredths),
    ("mem.consumed.average", "memory_consumed_bytes", Unit::Kibi),
    ("mem.vmmemctl.average", "memory_ballooned_bytes", Unit::Kibi),
    ("mem.swapused.average", "memory_swapped_bytes", Unit::Kibi),
    ("disk.read.average", "disk_read_bytes_per_s", Unit::Kibi),
    ("disk.write.average", "disk_write_bytes_per_s", Unit::Kibi),
    ("net.received.average", "net_received_bytes_per_s", Unit::Kibi),
    ("net.transmitted.average", "net_transmitted_bytes_per_s", Unit::Kibi),
];

/// What is asked for together.
struct Question {
    known: &'static Known,
    /// Of which parts of an object: of all together (`-`), or of each.
    instance: &'static str,
    /// Objects, and what their series begin with.
    objects: Vec<(String, String)>,
}

/// The counters of an arm's machines.
#[derive(Debug)]
pub(in crate::ssh) struct Counters {
    url: Option<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    run_id: String,
    /// Machines that are up, by number, each with its host.
    up: BTreeMap<u32, (Machine, Option<String>)>,
    /// Hosts in the order in which they were seen, for their names say whose they are.
    hosts: Vec<String>,
    /// When the trial began: what was counted before is not its.
    since: Option<SystemTime>,
    /// The end of the last interval of each series' object that was taken.
    taken: BTreeMap<String, Timestamp>,
    /// What was read and not yet handed over.
    reading: HostReading,
}

/// A machine whose counters are read. Dropped, they are read once more and then no longer.
#[derive(Debug)]
pub(in crate::ssh) struct Watched {
    counters: Arc<Counters>,
    number: u32,
}

/// The answer of `govc metric.sample -json`.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    sample: Vec<OfObject>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfObject {
    entity: Reference,
    #[serde(default)]
    sample_info: Option<Vec<Interval>>,
    #[serde(default)]
    value: Option<Vec<OfCounter>>,
}

#[derive(Debug, Deserialize)]
struct Reference {
    r#type: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct Interval {
    /// Its end, by the clock of the host or of vCenter.
    #[serde(deserialize_with = "moment")]
    timestamp: Timestamp,
    /// Seconds.
    interval: u32,
}

fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

#[derive(Debug, Deserialize)]
struct OfCounter {
    name: String,
    /// One for each interval; -1 where there is none.
    value: Option<Vec<i64>>,
}

impl Counters {
    pub(in crate::ssh) fn new(url: Option<String>) -> Arc<Self> {
        Arc::new(Self { url, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a trial reads.
    pub(in crate::ssh) fn of_trial(self: &Arc<Self>) -> HostCounters {
        let own = Arc::clone(self);
        {
            let mut state = own.state();
            (state.since, state.reading) = (Some(SystemTime::now()), HostReading::default());
        }
        let read = move || {
            own.read();
            std::mem::take(&mut own.state().reading)
        };
        HostCounters { what: "vSphere's performance counters".to_owned(), interval: INTERVAL, read: Box::new(read) }
    }

    /// From now on those of this machine and of its host are read, too.
    pub(in crate::ssh) fn watch(
        self: &Arc<Self>,
        run_id: &str,
        number: u32,
        machine: Machine,
        host: Option<String>,
    ) -> Watched {
        let mut state = self.state();
        run_id.clone_into(&mut state.run_id);
        if let Some(host) = host.as_ref().filter(|host| !state.hosts.contains(host)).cloned() {
            state.hosts.push(host);
        }
        state.up.insert(number, (machine, host));
        drop(state);
        Watched { counters: Arc::clone(self), number }
    }

    /// Takes in what is new. Nobody waits for the answers but who asks.
    fn read(&self) {
        let (run_id, questions) = {
            let state = self.state();
            (state.run_id.clone(), state.questions())
        };
        for Question { known, instance, objects } in questions {
            for part in objects.chunks(OBJECTS) {
                let names = part.iter().map(|(object, _)| object.as_str()).chain(known.iter().map(|(name, ..)| *name));
                let fixed = ["metric.sample", "-json", "-i", "real", "-n", SAMPLES, "-instance", instance];
                let arguments: Vec<&str> = fixed.into_iter().chain(names).collect();
                let answer = ask(self.url.as_deref(), &run_id, &arguments)
                    .map_err(|failed| format!("{}. {}", failed.why, failed.remedy));
                let answer = answer.and_then(|json| {
                    serde_json::from_value(json).map_err(|error| format!("the counters are not understood: {error}"))
                });
                self.state().take(answer, part, known);
            }
        }
    }
}

impl State {
    fn questions(&self) -> Vec<Question> {
        let machines: Vec<_> =
            self.up.iter().map(|(number, (machine, _))| (machine.object.clone(), format!("vm{number}_"))).collect();
        let carries = |host: &String| self.up.values().any(|(_, carrier)| carrier.as_ref() == Some(host));
        let hosts = self.hosts.iter().enumerate().filter(|(_, host)| carries(host));
        let hosts = hosts.map(|(n, host)| (host.clone(), format!("esx{}_", n + 1))).collect();
        let all = [
            Question { known: OF_MACHINE, instance: "-", objects: machines.clone() },
            Question { known: OF_DISKS, instance: "*", objects: machines },
            Question { known: OF_HOST, instance: "-", objects: hosts },
        ];
        all.into_iter().filter(|question| !question.objects.is_empty()).collect()
    }

    fn take(&mut self, answer: Result<Answer, String>, objects: &[(String, String)], known: &Known) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                self.reading.wrong = Some(why);
                return;
            }
        };
        for of in answer.sample {
            let object = format!("{}:{}", of.entity.r#type, of.entity.value);
            if let Some((_, prefix)) = objects.iter().find(|(asked, _)| *asked == object) {
                self.take_object(&object, prefix, &of, known);
            }
        }
    }

    /// Takes in the intervals of one object that have ended in the trial and were not taken before.
    fn take_object(&mut self, object: &str, prefix: &str, of: &OfObject, known: &Known) {
        let (now, instant) = (SystemTime::now(), Instant::now());
        let intervals = of.sample_info.as_deref().unwrap_or_default();
        let Some(newest) = intervals.iter().map(|interval| interval.timestamp).max() else { return };
        let key = format!("{object} {}", known.first().map_or("", |(name, ..)| *name));
        let last = self.taken.get(&key).copied();
        let (ahead, behind) = apart(now, newest.into());
        let differs = ahead > AHEAD || behind > BEHIND;
        if differs {
            self.reading.wrong = Some(format!(
                "the clock of the hypervisor is {:.0} s {} this host's, so its figures are laid by when they came. Set both by NTP",
                ahead.max(behind).as_secs_f64(),
                if ahead > AHEAD { "ahead of" } else { "behind" }
            ));
        }
        for (n, interval) in intervals.iter().enumerate() {
            let ended: SystemTime = interval.timestamp.into();
            // With clocks that differ, the newest ended just now.
            let ago = if differs { apart(newest.into(), ended).1 } else { apart(now, ended).1 };
            let is_ours = self.since.is_some_and(|since| now.checked_sub(ago).is_some_and(|ended| ended > since));
            let is_new = last.is_none_or(|last| interval.timestamp > last);
            let Some(at) = instant.checked_sub(ago).filter(|_| is_ours && is_new) else { continue };
            self.reading.figures.extend(figures(of, n, interval.interval, known).map(|(series, value)| HostFigure {
                at,
                series: format!("{prefix}{series}"),
                value,
            }));
        }
        self.taken.insert(key, last.map_or(newest, |last| last.max(newest)));
    }
}

/// How far a moment lies ahead of another, and how far behind.
fn apart(now: SystemTime, then: SystemTime) -> (Duration, Duration) {
    (then.duration_since(now).unwrap_or_default(), now.duration_since(then).unwrap_or_default())
}

/// The figures of one interval: the parts of an object are added up.
fn figures<'a>(
    of: &'a OfObject,
    n: usize,
    seconds: u32,
    known: &'a Known,
) -> impl Iterator<Item = (&'static str, f64)> + 'a {
    known.iter().filter_map(move |(counter, series, unit)| {
        let parts = of.value.iter().flatten().filter(|value| value.name == *counter);
        let values = parts.filter_map(|value| value.value.as_ref()?.get(n).copied()).filter(|value| *value >= 0);
        let sum = values.fold(None, |sum: Option<f64>, value| Some(sum.unwrap_or(0.0) + value as f64))?;
        Some((*series, unit.of(sum, seconds)))
    })
}

impl Unit {
    fn of(self, value: f64, seconds: u32) -> f64 {
        let milliseconds = f64::from(seconds.max(1)) * 1000.0;
        match self {
            Self::Percent => value / milliseconds * 100.0,
            Self::Cpus => value / milliseconds,
            Self::Kibi => value * 1024.0,
            Self::Hundredths => value / 100.0,
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.counters.read();
        self.counters.state().up.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The answer of one machine for intervals that ended so many seconds ago.
    fn answer(ended_ago_s: &[i64]) -> Answer {
        let times: Vec<_> = ended_ago_s
            .iter()
            .map(|ago| json!({"timestamp": (Timestamp::now() - jiff::SignedDuration::from_secs(*ago)).to_string(), "interval": 20}))
            .collect();
        let values = |of: i64| vec![of; times.len()];
        serde_json::from_value(json!({"sample": [{
            "entity": {"type": "VirtualMachine", "value": "vm-1"}, "sampleInfo": times,
            "value": [
                {"name": "cpu.ready.summation", "unit": "millisecond", "instance": "", "value": values(500)},
                {"name": "cpu.used.summation", "unit": "millisecond", "instance": "", "value": values(30_000)},
                {"name": "mem.active.average", "unit": "kiloBytes", "instance": "", "value": values(-1)},
                {"name": "mem.consumed.average", "unit": "kiloBytes", "instance": "", "value": values(2048)},
                {"name": "virtualDisk.read.average", "instance": "scsi0:0", "value": values(3)},
                {"name": "virtualDisk.read.average", "instance": "scsi0:1", "value": null},
                {"name": "virtualDisk.read.average", "instance": "scsi0:2", "value": values(4)},
            ],
        }]}))
        .unwrap()
    }

    fn trial(began_ago_s: u64) -> State {
        State { since: SystemTime::now().checked_sub(Duration::from_secs(began_ago_s)), ..State::default() }
    }

    fn take(state: &mut State, ended_ago_s: &[i64], known: &Known) -> HostReading {
        let object = [("VirtualMachine:vm-1".to_owned(), "vm1_".to_owned())];
        state.take(Ok(answer(ended_ago_s)), &object, known);
        std::mem::take(&mut state.reading)
    }

    #[test]
    fn each_interval_of_the_trial_is_taken_once() {
        let mut state = trial(50);
        let first = take(&mut state, &[3, 23, 43, 63], OF_MACHINE);
        assert_eq!(
            (first.figures.len(), first.wrong),
            (3 * 3, None),
            "three that are there, of three intervals of the trial"
        );
        let ago = first.figures[0].at.elapsed().as_secs_f64();
        assert!((3.0..5.0).contains(&ago), "{ago}");
        assert!(take(&mut state, &[3, 23, 43, 63], OF_MACHINE).figures.len() < 9, "seen before");
        let none = State::default();
        assert!(none.questions().is_empty());
    }

    #[test]
    fn counters_become_figures_with_units_and_disks_are_added_up() {
        let mut state = trial(50);
        let read = take(&mut state, &[3], OF_MACHINE);
        let of = |name: &str| read.figures.iter().find(|figure| figure.series == name).map(|figure| figure.value);
        assert_eq!(of("vm1_cpu_ready_percent"), Some(2.5));
        assert_eq!(of("vm1_cpu_used_cpus"), Some(1.5));
        assert_eq!(of("vm1_memory_consumed_bytes"), Some(2.0 * 1024.0 * 1024.0));
        assert_eq!(of("vm1_memory_active_bytes"), None, "there is none");
        let disks = take(&mut state, &[3], OF_DISKS);
        assert_eq!((disks.figures.len(), disks.figures[0].value), (1, 7.0 * 1024.0));
    }

    #[test]
    fn a_clock_that_differs_is_reported_and_its_figures_are_laid_by_when_they_came() {
        for (ended_ago_s, words) in [([-3600, -3580], "ahead of"), ([3600, 3620], "behind")] {
            let mut state = trial(50);
            let read = take(&mut state, &ended_ago_s, OF_DISKS);
            assert!(read.wrong.unwrap().contains(words));
            let latest = read.figures.iter().map(|figure| figure.at.elapsed()).min().unwrap();
            assert!(latest < Duration::from_secs(2), "{latest:?}");
        }
        let mut state = trial(50);
        state.take(Err("nobody answers".into()), &[], OF_HOST);
        assert_eq!(state.reading.wrong.as_deref(), Some("nobody answers"));
    }
}
