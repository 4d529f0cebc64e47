//! What is done once a run, before its first trial: the data that guests are given, and what only a try can tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use tare_model::guest::GuestSize;
use tare_model::study::Case;
use tare_platform::{Reach, Site};
use tare_wire::{Link, Request};
use tare_workload::{Data, SetupSite, Workload, WorkloadError};

use crate::bench::Bench;
use crate::client::Client;
use crate::error::ControllerError;
use crate::text::fit;
use crate::time_limits::TIMEOUT;

/// How long an agent may live that makes data, whatever happens: loading 100 GB on a slow disk takes hours.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// How soon a wish to stop is seen.
const WATCH_EVERY: Duration = Duration::from_millis(200);
/// How long an agent may take to answer a request to stop.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// Silence for so long is explained.
const SILENCE: Duration = Duration::from_secs(2);

/// Where the gold copies of guests' data are kept from run to run.
pub fn gold_directory() -> PathBuf {
    tare_platform::cache_directory().join("gold")
}

/// Data by case; cases without data are not in it.
pub type DataOf = BTreeMap<String, Data>;

/// Cases for which the same is done.
struct Work<'a> {
    /// The first of them, which errors name.
    first: &'a Case,
    /// All of them.
    cases: Vec<&'a str>,
    /// Most guests at one time.
    guests: u32,
    workload: &'a dyn Workload,
}

/// Does it for every case that still has trials to come (`left`); equal cases share it. `in_lab`: some arm is on the
/// lab's network. `None` when somebody wished to stop.
///
/// # Errors
/// What would make every trial of a case fail.
pub fn all(
    bench: &Bench<'_>,
    in_lab: bool,
    workloads: &BTreeMap<String, Box<dyn Workload>>,
    left: &BTreeSet<&str>,
) -> Result<Option<DataOf>, ControllerError> {
    let mut data = DataOf::new();
    let work = distinct(&bench.plan.study.cases, workloads, left);
    if work.is_empty() {
        return Ok(Some(data));
    }
    let cache = tare_platform::cache_directory();
    let failed = |case: &str, reason: String| ControllerError::Setup { case: case.to_owned(), reason };
    let first = work.first().map_or("", |work| work.first.id.as_str());
    std::fs::create_dir_all(&cache).map_err(|error| {
        let place = cache.display();
        failed(first, format!("the directory {place} cannot be made: {error}. TARE_CACHE names another place"))
    })?;
    let agents = Agents::start(bench, in_lab).map_err(|reason| failed(first, reason))?;
    for work in work {
        let made = agents.run(bench, &work, &cache);
        if bench.cancel.reason().is_some() {
            return agents.end().map(|()| None).map_err(|reason| failed(&work.first.id, reason));
        }
        let made = made.map_err(|error| failed(&work.first.id, fit(&error.to_string())))?;
        data.extend(work.cases.iter().map(|case| ((*case).to_owned(), made.clone())));
    }
    agents.end().map_err(|reason| failed(first, reason))?;
    Ok(Some(data))
}

/// The work to be done: once for equal workload, parameters, load, size and instances.
fn distinct<'a>(
    cases: &'a [Case],
    workloads: &'a BTreeMap<String, Box<dyn Workload>>,
    left: &BTreeSet<&str>,
) -> Vec<Work<'a>> {
    let mut all: Vec<Work<'a>> = Vec::new();
    for case in cases.iter().filter(|case| left.contains(case.id.as_str())) {
        let same = |work: &&mut Work<'a>| {
            let other = work.first;
            let alike = other.workload == case.workload && other.parameters == case.parameters;
            // A workload may make as much data as its load needs.
            let load = other.load.largest() == case.load.largest();
            alike && load && other.guest == case.guest && other.instances == case.instances
        };
        if let Some(work) = all.iter_mut().find(same) {
            work.cases.push(&case.id);
            work.guests = work.guests.max(case.load.most_guests());
        } else if let Some(workload) = workloads.get(&case.id) {
            all.push(Work {
                first: case,
                cases: vec![&case.id],
                guests: case.load.most_guests(),
                workload: &**workload,
            });
        }
    }
    all
}

/// What the working thread reports.
enum Progress {
    Note(String),
    Done(Result<Data, WorkloadError>),
}

/// The agents that do the work, under no limit. They run as long as it takes, and end with their channels.
struct Agents {
    here: Client,
    /// Where the first driver's load comes from, if that is elsewhere.
    client: Option<Client>,
}

impl Agents {
    /// Starts them: one in the lab's client namespace, where guests in the lab are reached, and where no arm is in the lab
    /// one more, where such arms are reached.
    fn start(bench: &Bench<'_>, in_lab: bool) -> Result<Self, String> {
        let site = Site { lifetime: LIFETIME, ..bench.site };
        let failed = |reason: String| format!("an agent to make ready what trials need: {}", fit(&reason));
        let here = Client::start_here(bench, &site, "setup".into()).map_err(failed)?;
        let client = if in_lab {
            None
        } else {
            let started = Client::start_all(bench, &site, vec![(0, "setup-client".into())], Reach::Outside);
            started.map_err(failed)?.pop()
        };
        Ok(Self { here, client })
    }

    fn links(&self) -> [&Link; 2] {
        [self.here.link(), self.client.as_ref().unwrap_or(&self.here).link()]
    }

    /// Does the work of one case on a thread of its own, and tells the user what it tells.
    fn run(&self, bench: &Bench<'_>, work: &Work<'_>, cache: &Path) -> Result<Data, WorkloadError> {
        let [here, client] = self.links();
        let (tell, progress) = mpsc::channel();
        let (workload, guests, instances) = (work.workload, work.guests, work.first.instances.max(1));
        let size: GuestSize = work.first.guest;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // Nobody goes away before the work is done.
                let note = |text: &str| drop(tell.send(Progress::Note(text.to_owned())));
                let site = SetupSite { here, client, cache, size, guests, instances, timeout: TIMEOUT, note: &note };
                let done = workload.set_up_once(&site);
                let _ = tell.send(Progress::Done(done));
            });
            let (mut silent_since, mut cancelled) = (Some(Instant::now()), false);
            loop {
                match progress.recv_timeout(WATCH_EVERY) {
                    Ok(Progress::Note(text)) => {
                        silent_since = None;
                        bench.observer.note(&format!("case {}: {text}", work.first.id));
                    }
                    Ok(Progress::Done(done)) => return done,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(WorkloadError::Command("it panicked: a bug in tare".into()));
                    }
                }
                if silent_since.is_some_and(|since| since.elapsed() > SILENCE) {
                    silent_since = None;
                    let Case { id, workload, .. } = work.first;
                    bench.observer.note(&format!("case {id}: `{workload}` makes ready what its trials need"));
                }
                if !cancelled && bench.cancel.reason().is_some() {
                    cancelled = true;
                    // What they are asked later ends at once too. One that is gone has ended.
                    scope.spawn(move || [here, client].map(|agent| drop(agent.call(Request::Cancel, CANCEL_TIMEOUT))));
                }
            }
        })
    }

    fn end(self) -> Result<(), String> {
        let ended: Vec<Result<(), String>> =
            [Some(self.here), self.client].into_iter().flatten().map(Client::end).collect();
        ended.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use tare_model::Span;
    use tare_model::load::{LoadModel, Phases};
    use tare_model::study::{CaseLoad, Guests};
    use tare_model::units::ByteSize;

    use super::*;

    fn case(id: &str, record: &str, cpus: u32, count: u32) -> Case {
        let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
        let load = CaseLoad::Fixed { load, guests: Guests { count, drivers: 1 } };
        let size = GuestSize { cpus, memory: ByteSize(1 << 20) };
        let parameters = serde_json::json!({ "record": record });
        Case { parameters, ..Case::new(id, "null", load, Phases::measuring(Span::from_secs(1)), size) }
    }

    #[test]
    fn equal_cases_share_the_work_and_finished_ones_need_none() {
        let cases = [
            case("a", "x", 1, 1),
            case("b", "x", 1, 4),
            case("c", "y", 1, 1),
            case("d", "x", 2, 1),
            case("e", "z", 1, 1),
            Case { load: LoadModel::Closed { clients: 9, think_time: Span::ZERO }.into(), ..case("f", "x", 1, 1) },
            Case { instances: 4, ..case("g", "x", 1, 1) },
        ];
        let workloads: BTreeMap<String, Box<dyn Workload>> = cases
            .iter()
            .map(|case| {
                let entry = tare_workload::registry::find("null").unwrap();
                (case.id.clone(), (entry.make)(&serde_json::json!({}), &case.load.largest()).unwrap())
            })
            .collect();
        let left = BTreeSet::from(["a", "b", "c", "d", "f", "g"]);
        let work = distinct(&cases, &workloads, &left);
        let grouped: Vec<_> = work.iter().map(|work| (work.cases.clone(), work.guests)).collect();
        assert_eq!(grouped, [(vec!["a", "b"], 4), (vec!["c"], 1), (vec!["d"], 1), (vec!["f"], 1), (vec!["g"], 1)]);
    }
}
