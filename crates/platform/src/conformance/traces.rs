//! What guests leave on the host and in this process.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tare_lab::{disk_path, left_by_guests};

use super::{Broken, Ground, hold, slower};

/// Threads and descriptors close, and kernel objects go, a moment after the guest is gone. Other programs of the host, such as engines of
/// containers, mount meanwhile, and what they mount goes within this time.
const SETTLED: Duration = Duration::from_secs(20);

/// What must be the same before and after guests came and went.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Traces {
    descriptors: usize,
    threads: usize,
    children: usize,
    mounts: BTreeSet<String>,
    lab_links: BTreeSet<String>,
}

impl Ground<'_> {
    /// Guests come and go, and neither we nor the host grow.
    pub(super) fn leaves_nothing(&self) -> Result<(), Broken> {
        let before = self.traces()?;
        for cycle in 0..self.expect.cycles() {
            let mut guest = self.start("cycle")?;
            let ran = self.exec(guest.as_ref(), &["sh", "-c", "sleep 1000 & exit 7"])?;
            hold(ran.code == Some(7), || format!("cycle {cycle}: the command ended with {ran:?}"))?;
            guest.destroy().map_err(|error| format!("cycle {cycle}: {error}"))?;
        }
        self.is_clean("after many guests")?;
        let deadline = Instant::now() + SETTLED * slower();
        let mut after = self.traces()?;
        while after.grown_from(&before).is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
            after = self.traces()?.without_passing(&before, &after);
        }
        after.grown_from(&before).map_or(Ok(()), |grown| Err(format!("after many guests, {grown}")))
    }

    fn traces(&self) -> Result<Traces, Broken> {
        let links = self.lab.sut().run(|| lines_of("/proc/thread-self/net/dev")).map_err(|error| error.to_string())?;
        Ok(Traces {
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            children: children(),
            mounts: lines_of("/proc/self/mounts"),
            lab_links: links.iter().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect(),
        })
    }

    /// Nothing that was made for a guest is there any more.
    pub(super) fn is_clean(&self, when: &str) -> Result<(), Broken> {
        let open = self.notebook.open();
        hold(open.is_empty(), || format!("{when}, these are still written down: {open:?}"))?;
        let left = left_by_guests(&self.run_id).map_err(|error| error.to_string())?;
        hold(left.is_empty(), || format!("{when}, these are still there: {left:?}"))?;
        // Of the run itself only its own directories and the control group above its guests' may stay to its end.
        let places = [self.state.clone(), disk_path(&self.run_id)];
        let ours = |line: &String| {
            line.starts_with("control group")
                || places.iter().any(|path| *line == format!("directory {}", path.display()))
        };
        let left: Vec<_> = tare_lab::leftovers(&self.run_id).into_iter().filter(|line| !ours(line)).collect();
        hold(left.is_empty(), || format!("{when}, these are still there: {left:?}"))
    }
}

impl Traces {
    /// These without mounts that an earlier look did not see: what guests left behind is seen by every look.
    fn without_passing(mut self, before: &Self, earlier: &Self) -> Self {
        self.mounts.retain(|mount| before.mounts.contains(mount) || earlier.mounts.contains(mount));
        self
    }

    /// What there is more of than before, in words.
    fn grown_from(&self, before: &Self) -> Option<String> {
        let counts = [
            ("file descriptors", self.descriptors, before.descriptors),
            ("threads", self.threads, before.threads),
            ("child processes", self.children, before.children),
        ];
        let count = counts.into_iter().find(|(_, now, then)| now > then);
        let sets = [("mounts", &self.mounts, &before.mounts), ("links of the lab", &self.lab_links, &before.lab_links)];
        let set = || sets.into_iter().find(|(_, now, then)| !now.is_subset(then));
        count.map(|(what, now, then)| format!("{what} grew from {then} to {now}")).or_else(|| {
            set().map(|(what, now, then)| {
                format!("there are new {what}: {:?}", now.difference(then).collect::<Vec<_>>())
            })
        })
    }
}

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

fn lines_of(file: &str) -> BTreeSet<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Child processes of this one, also those that ended and were not waited for.
fn children() -> usize {
    let us = std::process::id().to_string();
    let parent = |stat: &str| Some(stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.to_owned());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| parent(stat).as_deref() == Some(us.as_str())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_others_make_and_undo_are_no_traces_and_what_stays_is_one() {
        let with = |mounts: &[&str]| Traces {
            descriptors: 5,
            threads: 2,
            children: 0,
            mounts: mounts.iter().map(|&mount| mount.to_owned()).collect(),
            lab_links: BTreeSet::new(),
        };
        let (before, first) = (with(&["/"]), with(&["/", "/left", "/one"]));
        let second = with(&["/", "/left", "/two"]).without_passing(&before, &first);
        assert_eq!(second.grown_from(&before).as_deref(), Some("there are new mounts: [\"/left\"]"));
        let third = with(&["/", "/three"]).without_passing(&before, &second);
        assert_eq!(third.grown_from(&before), None);
    }

    #[test]
    fn what_grew_is_named_and_what_went_is_no_fault() {
        let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<BTreeSet<_>>();
        let before =
            Traces { descriptors: 5, threads: 2, children: 0, mounts: set(&["/", "/a"]), lab_links: set(&["lo"]) };
        let mut after = Traces { descriptors: 4, mounts: set(&["/"]), ..before.clone() };
        assert_eq!(after.grown_from(&before), None);
        after.lab_links = set(&["lo", "p7"]);
        assert_eq!(after.grown_from(&before).as_deref(), Some("there are new links of the lab: [\"p7\"]"));
        after.children = 1;
        assert_eq!(after.grown_from(&before).as_deref(), Some("child processes grew from 0 to 1"));
    }
}
