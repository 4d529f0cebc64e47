//! The freezer of version 2: all processes of a group stand still, and run again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Hierarchies, read, usage, write};
use crate::error::{LabError, Result};

/// Stops a group, from Linux 5.2.
const FREEZE: &str = "cgroup.freeze";
/// How long processes may take to stand still: one that waits for a device does so once it has what it waits for.
const STANDS: Duration = Duration::from_secs(5);
/// How often it is looked whether they do.
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// Why the processes of a guest cannot be stopped by their control group on this host; `None`: they can.
pub fn freezing_refusal() -> Option<String> {
    let hierarchies = Hierarchies::detect();
    if let Some(why) = hierarchies.unavailable() {
        return Some(why);
    }
    let none = hierarchies.dirs("tare", "guest").v2.is_none();
    none.then(|| "there are no control groups of version 2, whose freezer stops a guest".to_owned())
}

/// Stops all that is in the groups with these directories, or lets it run again. Returns once all stands still; that it runs again is not waited for.
///
/// # Errors
/// When there is no freezer among them, the kernel refuses, or something does not stand still in 5 s; it is then let run again.
pub fn freeze(directories: &[PathBuf], still: bool) -> Result<()> {
    let Some(group) = directories.iter().find(|directory| directory.join(FREEZE).exists()) else {
        return Err(LabError::Unavailable {
            tried: "stop a guest where it stands".into(),
            why: "it has no control group of version 2 of its own".into(),
            remedy: "Start its guests from nothing, or use a host with control groups of version 2".into(),
        });
    };
    let ordered = write(&group.join(FREEZE), if still { "1" } else { "0" });
    ordered.and_then(|()| if still { stands(group) } else { Ok(()) }).inspect_err(|_| {
        // Why it failed is what counts; a group that is gone needs no thawing.
        let _ = write(&group.join(FREEZE), "0");
    })
}

fn stands(group: &Path) -> Result<()> {
    let (began, file) = (Instant::now(), group.join("cgroup.events"));
    while usage::number(&read(&file)?, "frozen") != Some(1) {
        if began.elapsed() > STANDS {
            let why = std::io::Error::new(std::io::ErrorKind::TimedOut, format!("it still runs after {STANDS:?}"));
            return Err(LabError::system(format!("stop all that is in {}", group.display()), why));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
