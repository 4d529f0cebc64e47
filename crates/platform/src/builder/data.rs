//! Data that a guest is given in directories of the host's.

use std::path::{Path, PathBuf};

use tare_lab::{Resource, closed_data_path, data_path, is_in_memory, make_closed_data_directory, make_data_directory};
use tare_model::guest::DataPlace;
use tare_wire::launch::Shown;

use super::GuestBuilder;
use crate::data::{self, Gold};
use crate::data_directory::{DataDirectory, closed_to_nobody};
use crate::error::Result;
use crate::guest_setup::{DATA, LOG};

/// One directory of the guest's own, which is to be made.
struct Wanted<'a> {
    /// What is restored in it.
    gold: Gold<'a>,
    /// The directory of the user's that it is in, as the study names it and without links on the way.
    within: Option<(&'a Path, &'a Path)>,
    /// Where the guest will see it; without that where the host does.
    inside: Option<&'a str>,
}

impl GuestBuilder<'_> {
    /// Restores the guest's data in directories of the host's, which is no part of its start, and gives what is to be shown to
    /// the guest: in the directories that the study names, or in the run's own for data. The guest will see them at places of
    /// their own with `apart`, or without that where the host does, and only then may others on the host pass through to
    /// them. Nothing where it has none, and without root, where owners of files cannot be kept. What nobody writes is the gold
    /// copy itself, wherever the study wants data.
    pub(crate) fn data_directories(&mut self, named: Option<&DataDirectory>, apart: bool) -> Result<Vec<Shown>> {
        let at = |place| apart.then_some(place);
        let spec = self.spec;
        let Some(wanted) = &spec.data else { return Ok(Vec::new()) };
        if wanted.shared {
            let (from, place) = data::as_it_is(wanted, at(DATA))
                .map_err(|error| self.failed("show the guest its data", error.to_string(), error.remedy()))?;
            self.data = Some(place);
            return Ok(vec![Shown { from, at: DATA.into(), read_only: true }]);
        }
        if tare_lab::is_rootless() {
            return Ok(Vec::new());
        }
        let own = named.map(|named| named.of_guest(&spec.name));
        let places = own.as_ref().map(DataDirectory::places).transpose();
        let places = places.map_err(|refusal| self.refused("find a place for its data", refusal))?;
        let within = own.as_ref().zip(places.as_ref()).map(|(own, places)| (&*own.directory, &*places.data));
        let log_within = own.as_ref().and_then(|own| own.log_directory.as_deref());
        let log_within = log_within.zip(places.as_ref().and_then(|places| places.log.as_deref()));
        let log = wanted.log.as_ref().filter(|_| log_within.is_some());
        let size = if log.is_some() { wanted.size } else { wanted.with_log() };
        let gold = Gold { gold: &wanted.gold, size };
        let (from, mut place) = self.restored(Wanted { gold, within, inside: at(DATA) })?;
        let mut shown = vec![Shown { from, at: DATA.into(), read_only: false }];
        if let Some(log) = log {
            let gold = Gold { gold: &log.gold, size: log.size };
            let (from, of_log) = self.restored(Wanted { gold, within: log_within, inside: at(LOG) })?;
            place.log = Some(Box::new(of_log));
            shown.push(Shown { from, at: LOG.into(), read_only: false });
        }
        self.data = Some(place);
        Ok(shown)
    }

    /// Makes a directory of the guest's own in the one that a study names, closed to others. It goes with the guest.
    pub(crate) fn directory_in(&mut self, named: &DataDirectory) -> Result<PathBuf> {
        let places = named.of_guest(&self.spec.name).places();
        let places = places.map_err(|refusal| self.refused("find a place for its data", refusal))?;
        self.make_within(Some(&places.data), true)
    }

    /// Makes a directory of the guest's own in that of the run: within one of the user's that is there, or in the run's own for data.
    fn make_within(&mut self, within: Option<&Path>, closed: bool) -> Result<PathBuf> {
        let run_id = self.site.run_id;
        // With it all that is in it.
        let place = data_path(run_id, within);
        self.write_down(&Resource::Directory { path: place.clone() })?;
        self.parts.passages.push(place);
        self.aside(|builder| {
            let make = if closed { make_closed_data_directory } else { make_data_directory };
            let made = data::make_own(|| make(run_id, within), &builder.spec.name);
            let copy = made.map_err(|source| builder.lab_error(source))?;
            // Only what was made here is ever taken away, the inner one first.
            builder.parts.directories.push(copy.clone());
            if closed {
                builder.parts.passages.insert(0, closed_data_path(run_id, within));
            }
            Ok(copy)
        })
    }

    /// Makes one of the directories, and restores in it what belongs there.
    fn restored(&mut self, wanted: Wanted<'_>) -> Result<(PathBuf, DataPlace)> {
        let Wanted { gold, within, inside } = wanted;
        let (named, within) = (within.map(|(named, _)| named), within.map(|(_, within)| within));
        let copy = self.make_within(within, inside.is_some())?;
        self.aside(|builder| {
            check_way(builder, copy.parent().unwrap_or(&copy), named, inside)?;
            let restored = data::restore(gold, &copy, named, inside).map_err(|error| {
                let tried = format!("restore its data in {}", copy.display());
                builder.failed(&tried, error.to_string(), error.remedy())
            })?;
            Ok((copy, restored))
        })
    }
}

/// Refuses a place for data that is in memory and not said to be, and one that the guest's servers cannot get to.
fn check_way(builder: &GuestBuilder<'_>, place: &Path, named: Option<&Path>, inside: Option<&str>) -> Result<()> {
    let tried = format!("use {} for its data", place.display());
    // Of the one that the study names this was asked before.
    if named.is_none() && is_in_memory(place).map_err(|source| builder.lab_error(source))? {
        let remedy = "Name a directory on a disk in the study: `data = { directory = \"PATH\" }`";
        return Err(builder.failed(&tried, "it is on a tmpfs: what is written there is in memory".into(), remedy));
    }
    let Some(closed) = closed_to_nobody(place).filter(|_| inside.is_none()) else { return Ok(()) };
    let why = format!("its servers run as nobody, who may not pass through {}", closed.display());
    let remedy = "Open it with `chmod o+x`, or name another directory for the data in the study";
    Err(builder.failed(&tried, why, remedy))
}
