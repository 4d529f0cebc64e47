//! Whether the guests of a run that goes on are really gone.

use std::fs;

use crate::cgroup::find_run_groups;
use crate::data::data_path;
use crate::disk::disk_path;
use crate::error::Result;
use crate::name::check_run_id;
use crate::process;
use crate::state::state_path;

/// What guests of this run left on the host, in words: processes that carry the run's id (not our own),
/// control groups of guests, directories of guests. Empty between two trials, or the next one would not
/// begin on the host that the last one began on. What belongs to the run itself is not listed.
///
/// # Errors
/// When that is no run id.
pub fn left_by_guests(run_id: &str) -> Result<Vec<String>> {
    check_run_id(run_id)?;
    let mut left: Vec<String> =
        process::of_run(run_id).into_iter().map(|(pid, seen)| format!("process {pid} ({})", seen.name)).collect();
    // Guests' groups stand beside each other, below the run's own, in every hierarchy.
    for run_group in find_run_groups(run_id) {
        let below = fs::read_dir(run_group).into_iter().flatten().flatten();
        let groups = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(groups.map(|entry| format!("control group {}", entry.path().display())));
    }
    let places = [state_path(run_id), disk_path(run_id)];
    let directories =
        places.iter().flat_map(|place| fs::read_dir(place.join("guests")).into_iter().flatten().flatten());
    let data = fs::read_dir(data_path(run_id, None)).into_iter().flatten().flatten();
    left.extend(directories.chain(data).map(|entry| format!("directory {}", entry.path().display())));
    Ok(left)
}
