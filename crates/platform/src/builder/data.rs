//! Data that a guest is given in a directory of the host's.

use std::path::{Path, PathBuf};

use tare_lab::{Resource, closed_data_path, data_path, is_in_memory, make_closed_data_directory, make_data_directory};

use super::GuestBuilder;
use crate::data::{self, DataDirectory};
use crate::error::Result;

impl GuestBuilder<'_> {
    /// Restores the guest's data in a directory of the host's, which is no part of its start, and gives that: in the
    /// directory that the study names, or in the run's own for data. The guest will see it at `inside`, or without that
    /// where the host does, and only then may others on the host pass through to it. `None` where it has none, and without
    /// root, where owners of files cannot be kept. What nobody writes is the gold copy itself, wherever the study wants data.
    pub(crate) fn data_directory(
        &mut self,
        named: Option<&DataDirectory>,
        inside: Option<&str>,
    ) -> Result<Option<PathBuf>> {
        if let Some(shared) = self.spec.data.as_ref().filter(|_| self.is_data_shared()) {
            let (gold, place) = data::as_it_is(shared, inside)
                .map_err(|error| self.failed("show the guest its data", error.to_string(), error.remedy()))?;
            self.data = Some(place);
            return Ok(Some(gold));
        }
        let Some(wanted) = self.spec.data.as_ref().filter(|_| !tare_lab::is_rootless()) else { return Ok(None) };
        let within = named.map(DataDirectory::place).transpose();
        let within = within.map_err(|refusal| self.refused("find a place for its data", refusal))?;
        let (run_id, within) = (self.site.run_id, within.as_deref());
        // With it all that is in it.
        let place = data_path(run_id, within);
        self.write_down(&Resource::Directory { path: place.clone() })?;
        self.parts.passages.push(place);
        self.aside(|builder| {
            let closed = inside.is_some();
            let make = if closed { make_closed_data_directory } else { make_data_directory };
            let made = data::make_own(|| make(run_id, within), &builder.spec.name);
            let copy = made.map_err(|source| builder.lab_error(source))?;
            // Only what was made here is ever taken away, the inner one first.
            builder.parts.directories.push(copy.clone());
            if closed {
                builder.parts.passages.insert(0, closed_data_path(run_id, within));
            }
            check_way(builder, copy.parent().unwrap_or(&copy), named, inside)?;
            let restored = data::restore(wanted, &copy, named, inside).map_err(|error| {
                let tried = format!("restore its data in {}", copy.display());
                builder.failed(&tried, error.to_string(), error.remedy())
            })?;
            builder.data = Some(restored);
            Ok(Some(copy))
        })
    }

    /// Whether its data are shown to it as they are, and nobody is to write to them.
    pub(crate) fn is_data_shared(&self) -> bool {
        self.spec.data.as_ref().is_some_and(|data| data.shared)
    }
}

/// Refuses a place for data that is in memory and not said to be, and one that the guest's servers cannot get to.
fn check_way(
    builder: &GuestBuilder<'_>,
    place: &Path,
    named: Option<&DataDirectory>,
    inside: Option<&str>,
) -> Result<()> {
    let tried = format!("use {} for its data", place.display());
    // Of the one that the study names this was asked before.
    if named.is_none() && is_in_memory(place).map_err(|source| builder.lab_error(source))? {
        let remedy = "Name a directory on a disk in the study: `data = { directory = \"PATH\" }`";
        return Err(builder.failed(&tried, "it is on a tmpfs: what is written there is in memory".into(), remedy));
    }
    let Some(closed) = data::closed_to_nobody(place).filter(|_| inside.is_none()) else { return Ok(()) };
    let why = format!("its servers run as nobody, who may not pass through {}", closed.display());
    let remedy = "Open it with `chmod o+x`, or name another directory for the data in the study";
    Err(builder.failed(&tried, why, remedy))
}
