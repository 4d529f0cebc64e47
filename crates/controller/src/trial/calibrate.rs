//! What load each guest is to be offered, found before the first trial in one guest that is alone on the host.

use tare_model::trial::Phase;
use tare_workload::{Calibration, DriverSite, WorkSite};

use super::drive::cancel;
use super::target::Target;
use super::{Gathered, Stop, Task, Trial};
use crate::bench::Bench;
use crate::client::Client;
use crate::host::cpu_s;
use crate::neighbours;
use crate::parallel;
use crate::text::fit;

/// Finds the load of a case on the baseline: the planned trial of `task` names the arm and is none of the plan's.
///
/// # Errors
/// What was tried and why it failed, or what could not be taken away or put back.
pub fn calibrate(bench: &Bench<'_>, task: Task<'_>) -> Result<Calibration, String> {
    let trial = Trial::new(bench, task);
    let mut gathered = Gathered { halt: bench.cancel.clone(), ..Gathered::default() };
    let governed = trial.govern(&gathered.standing).map_err(|stop| stop.reason)?;
    let found = trial.find_load(&mut gathered);
    let failures = neighbours::destroy(&mut gathered.guests);
    let put_back = governed.end();
    let found = found.map_err(|stop| format!("{} ({})", stop.reason, stop.phase))?;
    put_back?;
    if failures.is_empty() { Ok(found) } else { Err(failures.join("; ")) }
}

impl Trial<'_> {
    fn find_load(&self, gathered: &mut Gathered) -> Result<Calibration, Stop> {
        self.provision(gathered)?;
        let targets = self.connect(gathered)?;
        let drivers: Vec<Vec<DriverSite<'_>>> = targets.iter().map(Target::drivers).collect();
        let given = self.given(targets.len());
        let sites: Vec<WorkSite<'_>> =
            targets.iter().zip(&drivers).filter_map(|(target, drivers)| target.site(drivers, &given)).collect();
        let mut prepared = self.prepare(&sites, gathered)?;
        let groups: Vec<_> = gathered.measured().iter().map(|guest| guest.groups()).collect();
        let used = || cpu_s(groups.first()?);
        let find = |n: usize, ready: &mut super::drive::Ready| {
            let found = self.task.workload.calibrate(&sites[n], &mut **ready, &used);
            found.map_err(|error| fit(&error.to_string()))
        };
        let found = parallel::each(&gathered.halt, prepared.iter_mut().take(1), find, |n| cancel(&sites[n]))
            .map_err(|(n, error)| self.stop(Phase::Drive, n, &error, gathered))?;
        let left = Client::end_all(targets.into_iter().flat_map(Target::into_clients).collect());
        left.into_iter().next().map_or(Ok(()), |reason| Err(Stop { phase: Phase::Teardown, reason }))?;
        let none = || Stop { phase: Phase::Drive, reason: "there was no guest to try it in".to_owned() };
        found.into_iter().next().ok_or_else(none)
    }
}
