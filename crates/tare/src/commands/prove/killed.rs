//! Runs whose controller is killed at a random moment: is the host as before, and is nothing lost?

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tare_analysis::Share;
use tare_lab::StateDir;
use tare_record::{RunFolder, layout};

use super::bar::Bar;
use super::ground::{Ground, Run, signal, tare};
use super::study;
use crate::exit::{Exit, Failure};

/// Kills in the short and in the long form.
const KILLS: (u32, u32) = (12, 1000);
/// How long it may take until nothing is left.
const GONE: Duration = Duration::from_secs(30);

/// Where runs make what carries their id, and how deep.
const PLACES: [(&str, u32); 6] = [
    ("/sys/fs/cgroup", 8),
    ("/var/lib/tare", 2),
    ("/var/lib/tare-data", 2),
    ("/tmp", 0),
    ("/var/tmp", 0),
    ("/dev/shm", 0),
];

/// What of these runs is on this host.
fn left(ids: &BTreeSet<String>, links: &BTreeSet<String>) -> Vec<String> {
    let is_theirs = |text: &str| ids.iter().any(|id| text.contains(id.as_str()));
    let mut found: Vec<String> = links_now().difference(links).map(|link| format!("link {link}")).collect();
    for (place, depth) in PLACES {
        below(Path::new(place), depth, &mut |path| {
            let named = path.file_name().is_some_and(|name| is_theirs(&name.to_string_lossy()));
            found.extend(named.then(|| path.display().to_string()));
        });
    }
    let states = StateDir::list().unwrap_or_default();
    found.extend(states.iter().filter(|run| ids.contains(&run.run_id)).map(|run| run.path.display().to_string()));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(mounts.lines().filter(|line| is_theirs(line)).map(|line| format!("mount {line}")));
    let is_of_them = |pid: u32, words: &str| is_theirs(words) || ids.iter().any(|id| tare_lab::is_of_run(pid, id));
    let alive = processes().filter(|(pid, words)| is_of_them(*pid, words));
    found.extend(alive.map(|(pid, words)| format!("process {pid}: {words}")));
    found
}

fn links_now() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    text.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

fn below(directory: &Path, depth: u32, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        visit(&entry.path());
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), depth - 1, visit);
        }
    }
}

/// All processes, each with its command line.
fn processes() -> impl Iterator<Item = (u32, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        Some((pid, String::from_utf8_lossy(&words).replace('\0', " ")))
    })
}

/// The ids of the runs into a folder that have a state directory.
fn ids_of(folder: &Path) -> BTreeSet<String> {
    let own = StateDir::list().unwrap_or_default().into_iter();
    let own = own.filter(|run| run.info.as_ref().is_some_and(|info| Path::new(&info.run_folder) == folder));
    own.map(|run| run.run_id).collect()
}

/// The trials that a run has acknowledged, with their digests, each as often as its journal does; none before it has a journal.
fn acknowledged(folder: &Path) -> Result<Vec<(u32, String)>, String> {
    if !folder.join(layout::JOURNAL).exists() {
        return Ok(Vec::new());
    }
    let opened = RunFolder::open(folder).map_err(|error| error.to_string())?;
    Ok(opened.journal().acknowledged().map(|(id, digest)| (id, digest.to_owned())).collect())
}

/// A run that is killed, and what came of it.
struct Killed<'g> {
    ground: &'g Ground<'g>,
    links: BTreeSet<String>,
    /// Whether its reaper is killed as well, so that another process has to take it down.
    with_reaper: bool,
    /// A kill comes at a random moment within this, from the start of the process on.
    within: Duration,
}

impl Killed<'_> {
    /// What was left; `None` if the run had not begun, or had ended, so that there was nothing to kill.
    fn kill(&self, run: &Run<'_>, child: &mut Child) -> Result<Option<Vec<String>>, Failure> {
        std::thread::sleep(self.within.mul_f64(rand::random()));
        let mut ids = ids_of(&run.folder());
        let ended = !matches!(child.try_wait(), Ok(None));
        signal(child, Signal::KILL);
        // It may have begun between the two, or have taken all down and be at its report.
        ids.extend(ids_of(&run.folder()));
        ids.extend(RunFolder::open(&run.folder()).map(|opened| opened.facts().run_id.clone()));
        if self.with_reaper {
            let is_reaper = |words: &str| ids.iter().any(|id| words.trim_end() == format!("tare reaper {id}"));
            let reapers = processes().filter(|(_, words)| is_reaper(words));
            for pid in reapers.filter_map(|(pid, _)| Pid::from_raw(i32::try_from(pid).ok()?)) {
                // It may have ended by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let failed = |error: std::io::Error| Failure::new(format!("a killed run is lost: {error}"), Exit::Failure);
        child.wait().map_err(failed)?;
        if self.with_reaper {
            let mut reap = tare();
            reap.arg("reap").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            reap.status().map_err(failed)?;
        }
        if ended || ids.is_empty() {
            return Ok(None);
        }
        let until = Instant::now() + GONE;
        loop {
            let left = left(&ids, &self.links);
            if left.is_empty() || Instant::now() > until || self.ground.is_stopped() {
                return Ok(Some(left));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Goes on with the run, and says what was lost or done twice.
    fn resume(&self, run: &Run<'_>, before: Result<Vec<(u32, String)>, String>) -> Result<Vec<String>, Failure> {
        let folder: PathBuf = run.folder();
        let there = folder.join(layout::JOURNAL).exists();
        if !there && folder.exists() {
            // Killed before its first line: nothing was acknowledged, and the folder is begun anew.
            fs::remove_dir_all(&folder).map_err(|error| Failure::new(error, Exit::Failure))?;
        }
        let ran = run.end(run.again(there)?)?;
        let mut wrong = Vec::new();
        // A trial of a busy host may be invalid; that is no loss.
        if !matches!(ran.code, Some(0 | 3)) {
            wrong.extend(ran.findings().err().or_else(|| Some(format!("its second part ended with {:?}", ran.code))));
        }
        let (before, after) = match (before, acknowledged(&folder)) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => {
                wrong.push(why);
                return Ok(wrong);
            }
        };
        let lost = before.iter().filter(|own| !after.contains(own)).map(|(id, _)| id);
        wrong.extend(lost.map(|id| format!("trial {id} was acknowledged and is lost or another one")));
        let different: BTreeSet<u32> = after.iter().map(|(id, _)| *id).collect();
        if different.len() != after.len() {
            wrong.push("a trial is acknowledged twice".to_owned());
        }
        match RunFolder::open(&folder) {
            Ok(opened) => wrong.extend(opened.verify().iter().map(ToString::to_string)),
            Err(error) => wrong.push(error.to_string()),
        }
        Ok(wrong)
    }
}

/// Whether killed runs leave nothing behind and lose nothing.
pub fn bars(ground: &Ground<'_>) -> Result<Vec<Bar>, Failure> {
    let (mut leaving, mut losing) = (Share::default(), Share::default());
    let (mut notes, mut lost) = (Vec::new(), Vec::new());
    // What runtimes make once on a host is there after this, and a kill comes within the time that this takes.
    let began = Instant::now();
    let whole = ground.study("killed-0", study::KILLED)?.run()?;
    let within = began.elapsed();
    let unfit = whole.findings().err();
    for kill in ground.numbered(KILLS).take_while(|_| ground.goes_on() && unfit.is_none()) {
        let killed = Killed { ground, links: links_now(), with_reaper: kill % 2 == 0, within };
        let run = ground.study(&format!("killed-{kill}"), study::KILLED)?;
        let mut child = run.begin()?;
        let left = killed.kill(&run, &mut child)?;
        let before = acknowledged(&run.folder());
        let wrong = killed.resume(&run, before)?;
        if ground.is_stopped() {
            break;
        }
        let Some(left) = left else {
            notes.push(format!(
                "killed-{kill} is not counted: the kill came before the run had begun, or after its end"
            ));
            continue;
        };
        leaving.add(!left.is_empty());
        notes.extend(left.into_iter().map(|what| format!("killed-{kill} left {what}")));
        losing.add(!wrong.is_empty());
        lost.extend(wrong.into_iter().map(|what| format!("killed-{kill}: {what}")));
    }
    notes.extend(unfit);
    let unit = "kills";
    Ok(vec![
        Bar::counted(
            "killed-leaves-nothing",
            "After kill -9 of the controller, half of the times also of its reaper, nothing that carries the run's id is left on the host, and no link",
            (0.0, unit),
            leaving,
            notes,
        ),
        Bar::counted(
            "killed-loses-nothing",
            "A killed run goes on to its end: no acknowledged trial is lost, changed or there twice",
            (0.0, unit),
            losing,
            lost,
        ),
    ])
}
