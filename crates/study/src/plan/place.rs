//! Which CPUs the driver and the guests get on a host.

use std::collections::BTreeMap;

use tare_model::plan::CpuPlacement;
use tare_model::study::{Placement, Study};

use super::{PlanRefusal, cpu_words};
use crate::cpus;
use crate::host::HostFacts;

/// A placement with what in it differs from what the study asks.
pub(super) struct Placed {
    pub(super) cpus: CpuPlacement,
    pub(super) differences: Vec<String>,
}

/// One CPU in so many goes to the driver, at least one.
const DRIVER_SHARE: usize = 4;

pub(super) fn place(placement: &Placement, host: &HostFacts) -> Result<Placed, PlanRefusal> {
    let mut placed = sides(placement, host)?;
    if !placed.cpus.are_separate() {
        placed.cpus.note.push_str("; what an operation costs in CPU time is then not measured");
    }
    Ok(placed)
}

fn sides(placement: &Placement, host: &HostFacts) -> Result<Placed, PlanRefusal> {
    let Some(&highest) = host.cpus.last() else { return Err(PlanRefusal::NoCpu) };
    let all = |client: Vec<u32>, guests: Vec<u32>, note: String| Placed {
        cpus: CpuPlacement { client, guests, note },
        differences: Vec::new(),
    };
    match placement {
        Placement::Separate if host.cpus.len() == 1 => {
            let note = format!(
                "the study asks for separate CPUs, but this host has one: driver and guests share CPU {highest}"
            );
            let mut placed = all(vec![highest], vec![highest], note.clone());
            placed.differences.push(note);
            Ok(placed)
        }
        Placement::Separate => Ok(separate(host)),
        Placement::SameCpu => {
            let note = format!("driver and guests share CPU {highest}, as the study asks");
            Ok(all(vec![highest], vec![highest], note))
        }
        Placement::Unpinned => {
            Ok(all(Vec::new(), Vec::new(), "the scheduler places driver and guests, as the study asks".to_owned()))
        }
        Placement::Explicit { client_cpus, guest_cpus } => {
            let named = client_cpus.iter().chain(guest_cpus);
            let absent: Vec<u32> = named.copied().filter(|cpu| !host.cpus.contains(cpu)).collect();
            if !absent.is_empty() {
                return Err(PlanRefusal::Cpus { absent: cpus::list(&absent), present: cpu_words(&host.cpus) });
            }
            Ok(all(client_cpus.clone(), guest_cpus.clone(), "as the study lists them".to_owned()))
        }
    }
}

/// The highest cores to the driver, the others to the guests: interrupts and housekeeping gather on the lowest CPUs,
/// and they are part of what the guests' host costs, not of what the driver costs. Whole cores, because threads
/// of one core slow each other down.
fn separate(host: &HostFacts) -> Placed {
    let wanted = (host.cpus.len() / DRIVER_SHARE).max(1);
    let mut client: Vec<u32> = Vec::new();
    for &cpu in host.cpus.iter().rev() {
        if client.len() >= wanted {
            break;
        }
        if !client.contains(&cpu) {
            client.extend(core_of(cpu, host));
        }
    }
    let mut differences = Vec::new();
    if client.len() == host.cpus.len() {
        // One core is all there is: its threads are better than nothing.
        client = host.cpus.last().copied().into_iter().collect();
        let text =
            "driver and guests have CPUs of their own, but these are threads of one core and slow each other down";
        differences.push(text.to_owned());
    }
    client.sort_unstable();
    let guests: Vec<u32> = host.cpus.iter().copied().filter(|cpu| !client.contains(cpu)).collect();
    let note = format!(
        "separate CPUs: {} of the {} that this host lets tare use for the driver, the others for the guests",
        client.len(),
        host.cpus.len()
    );
    Placed { cpus: CpuPlacement { client, guests, note }, differences }
}

fn core_of(cpu: u32, host: &HostFacts) -> Vec<u32> {
    host.shared_cores.iter().find(|set| set.contains(&cpu)).cloned().unwrap_or_else(|| vec![cpu])
}

/// So many times the CPUs for guests a guest may ask: published studies ask 4, and a host of one CPU runs them with a note.
pub(super) const MOST_TIMES: usize = 4;

/// Cases whose guests ask for more than [`MOST_TIMES`] times the CPUs that there are for guests.
pub(super) fn too_wide(study: &Study, placed: &CpuPlacement, host: &HostFacts) -> Vec<PlanRefusal> {
    let there = if placed.guests.is_empty() { host.cpus.len() } else { placed.guests.len() };
    let wide = study.cases.iter().filter(|case| case.guest.cpus as usize > there * MOST_TIMES);
    wide.map(|case| PlanRefusal::GuestCpus { case: case.id.clone(), asked: case.guest.cpus, there }).collect()
}

/// Guests that ask more CPUs than there are for guests, in a sentence for each number asked.
pub(super) fn crowded(study: &Study, placed: &CpuPlacement, host: &HostFacts) -> Vec<String> {
    let there = if placed.guests.is_empty() { host.cpus.len() } else { placed.guests.len() };
    let mut asked: BTreeMap<(bool, u32, u32), Vec<String>> = BTreeMap::new();
    for case in &study.cases {
        let neighbours = case.neighbours.map(|neighbours| (true, 1, neighbours.guest.cpus));
        for key in [Some((false, case.load.guests().count, case.guest.cpus)), neighbours].into_iter().flatten() {
            if key.1 as usize * key.2 as usize > there {
                asked.entry(key).or_default().push(format!("`{}`", case.id));
            }
        }
    }
    let sentence = |((neighbour, guests, cpus), cases): ((bool, u32, u32), Vec<String>)| {
        let who = match (neighbour, guests) {
            (true, _) => format!("each neighbour asks {cpus} CPUs"),
            (false, 1) => format!("the measured guest asks {cpus} CPUs"),
            (false, several) => {
                let all = u64::from(several) * u64::from(cpus);
                format!("the {several} measured guests ask {all} CPUs, {cpus} each")
            }
        };
        format!("in {} {who}, and this host has {there} for guests: every arm gets the same {there}", cases.join(", "))
    };
    asked.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cpus: std::ops::Range<u32>, shared_cores: &[&[u32]]) -> HostFacts {
        let shared_cores = shared_cores.iter().map(|set| set.to_vec()).collect();
        HostFacts { cpus: cpus.collect(), shared_cores, ..HostFacts::default() }
    }

    fn both(placement: &Placement, host: &HostFacts) -> (String, String, usize) {
        let placed = place(placement, host).unwrap();
        (cpus::list(&placed.cpus.client), cpus::list(&placed.cpus.guests), placed.differences.len())
    }

    #[test]
    fn the_driver_gets_a_quarter_of_the_cpus_and_the_guests_the_rest() {
        let separate = Placement::Separate;
        assert_eq!(both(&separate, &host(0..2, &[])), ("1".into(), "0".into(), 0));
        assert_eq!(both(&separate, &host(0..8, &[])), ("6-7".into(), "0-5".into(), 0));
        assert_eq!(both(&separate, &host(3..6, &[])), ("5".into(), "3-4".into(), 0));
    }

    #[test]
    fn threads_of_one_core_stay_on_one_side() {
        let two_cores = host(0..4, &[&[0, 2], &[1, 3]]);
        assert_eq!(both(&Placement::Separate, &two_cores), ("1,3".into(), "0,2".into(), 0));
        let one_core = host(0..2, &[&[0, 1]]);
        assert_eq!(both(&Placement::Separate, &one_core), ("1".into(), "0".into(), 1));
    }

    #[test]
    fn one_cpu_is_shared_and_the_plan_says_so() {
        let placed = place(&Placement::Separate, &host(5..6, &[])).unwrap();
        assert_eq!((placed.cpus.client, placed.cpus.guests), (vec![5], vec![5]));
        assert_eq!(
            placed.differences,
            ["the study asks for separate CPUs, but this host has one: driver and guests share CPU 5"]
        );
    }

    #[test]
    fn what_the_study_asks_is_no_deviation() {
        assert_eq!(both(&Placement::SameCpu, &host(0..4, &[])), ("3".into(), "3".into(), 0));
        assert_eq!(both(&Placement::Unpinned, &host(0..4, &[])), ("none".into(), "none".into(), 0));
        let explicit = Placement::Explicit { client_cpus: vec![0], guest_cpus: vec![1, 2] };
        assert_eq!(both(&explicit, &host(0..4, &[])), ("0".into(), "1-2".into(), 0));
    }

    #[test]
    fn cpus_that_are_not_there_are_refused_by_number() {
        let explicit = Placement::Explicit { client_cpus: vec![0, 9], guest_cpus: vec![1] };
        let refusal = place(&explicit, &host(0..4, &[])).err().unwrap();
        assert_eq!(refusal, PlanRefusal::Cpus { absent: "9".into(), present: "CPU 0-3".into() });
    }
}
