//! Disk that a study takes, by file system: the run folder, what is kept in the cache, the guests' data.

use std::collections::BTreeMap;

use tare_model::study::{Case, Study};
use tare_model::traits::Footprint;
use tare_model::units::ByteSize;

use super::{PlanRefusal, cost, hosts, human, sets};
use crate::catalog::Catalog;
use crate::host::{FileSystem, HostFacts};

/// Data that guests are given.
#[derive(Debug, Default)]
pub(super) struct Data<'a> {
    /// What is made once and kept, each with a case that needs it.
    kept: Vec<(&'a Case, u64)>,
    /// The case whose guests take most at one time, and what each of them takes.
    guests: Option<(&'a Case, u64)>,
    /// On so many arms at one time.
    arms: u64,
}

impl Data<'_> {
    /// Bytes of all that is kept.
    pub(super) fn kept(&self) -> u64 {
        self.kept.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    fn guests_of(&self, case: &Case) -> u64 {
        u64::from(case.load.most_guests()).saturating_mul(self.arms)
    }

    /// Most bytes of guests' data at one time.
    pub(super) fn restored(&self) -> u64 {
        self.guests.map_or(0, |(case, each)| each.saturating_mul(self.guests_of(case)))
    }
}

/// What a study's guests are given. Cases of one workload that keep equally much are taken to keep the same.
pub(super) fn data<'a>(study: &'a Study, host: &HostFacts, catalog: &dyn Catalog) -> Data<'a> {
    let mut data = Data::default();
    for case in &study.cases {
        let Footprint { kept, guest, .. } = catalog.footprint(&case.into());
        let known = data.kept.iter().any(|(other, bytes)| other.workload == case.workload && *bytes == kept.0);
        if kept.0 > 0 && !known {
            data.kept.push((case, kept.0));
        }
        let arms = sets::at_once(study, case, host, catalog);
        if of_guests(case, catalog).saturating_mul(arms) > data.restored() {
            (data.guests, data.arms) = (Some((case, guest.0)), arms);
        }
    }
    if hosts::all_outside(study, catalog) {
        // Their data are on disks of their own.
        data.guests = None;
    }
    data
}

/// Bytes of the data that the measured guests of one arm of a case are given.
pub(super) fn of_guests(case: &Case, catalog: &dyn Catalog) -> u64 {
    catalog.footprint(&case.into()).guest.0.saturating_mul(u64::from(case.load.most_guests()))
}

/// What is asked of one file system.
#[derive(Default)]
struct Asked {
    bytes: u64,
    parts: Vec<String>,
}

impl Asked {
    fn add(&mut self, bytes: u64, what: String) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.parts.push(what);
    }
}

/// The file systems on which there is not enough room.
pub(super) fn refusals(study: &Study, host: &HostFacts, catalog: &dyn Catalog) -> Vec<PlanRefusal> {
    let data = data(study, host, catalog);
    let mut asked: BTreeMap<Option<u64>, Asked> = BTreeMap::new();
    let number = |other: &Option<FileSystem>| other.as_ref().map(|other| other.device);
    let files = cost::cost(study, host, catalog).disk.0.saturating_sub(data.kept().saturating_add(data.restored()));
    asked.entry(None).or_default().add(files, "its folder and the guests' files".to_owned());
    let mut there = host.kept.0;
    let mut kept: Vec<(&Case, u64, usize)> = Vec::new();
    for &(case, bytes) in &data.kept {
        let missing = bytes.saturating_sub(there);
        there = there.saturating_sub(bytes);
        // One figure is reported for what all cases of a workload keep.
        match kept.iter_mut().find(|(other, ..)| other.workload == case.workload) {
            _ if missing == 0 => {}
            Some((_, sum, cases)) => (*sum, *cases) = (sum.saturating_add(missing), *cases + 1),
            None => kept.push((case, missing, 1)),
        }
    }
    for (case, missing, cases) in kept {
        let others = if cases > 1 { format!(" and {} more", cases - 1) } else { String::new() };
        let (workload, case) = (&case.workload, &case.id);
        let what = format!("what `{workload}` of case `{case}`{others} keeps in the cache ({})", size(missing));
        asked.entry(number(&host.cache)).or_default().add(missing, what);
    }
    if let Some((case, each)) = data.guests {
        let what = format!("the data of the guests of case `{}` ({} x {})", case.id, data.guests_of(case), size(each));
        asked.entry(number(&host.guests)).or_default().add(data.restored(), what);
    }
    asked.into_iter().filter_map(|(device, asked)| refusal(device, asked, host)).collect()
}

fn refusal(device: Option<u64>, asked: Asked, host: &HostFacts) -> Option<PlanRefusal> {
    let others = [&host.cache, &host.guests];
    let other = others.into_iter().flatten().find(|other| Some(other.device) == device);
    let free = other.map_or(host.disk_free, |other| other.free);
    if asked.bytes <= free.0 {
        return None;
    }
    let folder_only = device.is_none() && asked.parts.len() == 1;
    let remedy = match (folder_only, other) {
        (true, _) => "Free some, or write the run elsewhere (`--out`)",
        (false, None) => {
            "Free some, ask for less data or fewer guests, or put some of it on another file system: the run by `--out`, the cache by \
             TARE_CACHE, the guests' data by an option of the arm (`data`, `data-disk`; docs/reference/storage.md)"
        }
        (false, Some(_)) => {
            "Free some, ask for less data or fewer guests, or put some of it on another file system: the cache by TARE_CACHE, the guests' \
             data by an option of the arm (`data`, `data-disk`; docs/reference/storage.md)"
        }
    };
    let place = other.map(|other| format!(" (in {})", other.path.display())).unwrap_or_default();
    let parts = format!("{}{place}", asked.parts.join(" and "));
    let need = ByteSize(cost::whole_mebibytes(asked.bytes));
    Some(PlanRefusal::Disk { need, parts, free, remedy: remedy.to_owned() })
}

fn size(bytes: u64) -> String {
    human::size(ByteSize(bytes))
}
