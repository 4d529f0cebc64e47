//! Taking away what a run has left, from any process, any number of times.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::mount::{UnmountFlags, unmount};
use serde_json::Value;

use crate::error::{LabError, Result};
use crate::name::{check_run_id, run_group};
use crate::netlink::Netlink;
use crate::netns::scratch;
use crate::resource::Resource;
use crate::state::{LOCK_FILE, RunInfo, StateDir};
use crate::trust::{check_passage, check_private};
use crate::{cgroup, data, disk, ledger, mounts, process, settings, state, tree};

/// How long killed processes may take to go.
const LIMIT: Duration = Duration::from_secs(5);
/// How long the lock of a run may be held by another process that reaps it, or is about to begin as a program of its own.
const LET_GO_WITHIN: Duration = Duration::from_secs(10);

/// A process that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Killed {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel keeps it (15 characters).
    pub name: String,
}

/// What reaping did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReapReport {
    /// Processes ended.
    pub killed: Vec<Killed>,
    /// What was there and is gone.
    pub removed: Vec<Resource>,
    /// What is still there, and why. A process that did not go is `Held` by the platform `process`.
    pub left: Vec<(Resource, String)>,
}

impl ReapReport {
    /// Whether nothing is left.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty()
    }

    fn note(&mut self, resource: Resource, outcome: std::result::Result<bool, String>) {
        match outcome {
            Ok(true) => self.removed.push(resource),
            Ok(false) => {}
            Err(why) => self.left.push((resource, why)),
        }
    }
}

/// Ends the processes of a run and removes what is on the list and what is found by the run's id: control groups,
/// mounts, directories, and at last the state directory. `held` ends what platforms keep elsewhere.
///
/// `resources` is what the run's ledger holds ([`still_planned`](crate::still_planned)), the last first. Idempotent, and needs
/// no list: with none, whatever carries the run's id still goes. Nothing is touched that is not below the state directory or
/// where tare makes things of this run, and of the host's settings only those that tare changes. Refuses as long as another
/// process's controller is alive; waits for another process that reaps the run.
///
/// The state directory with its ledger stays as long as anything is left, so that reaping can be tried again.
pub fn reap(
    run_id: &str,
    resources: &[Resource],
    held: &mut dyn FnMut(&str, &Value) -> std::result::Result<(), String>,
) -> ReapReport {
    let mut report = ReapReport::default();
    let state = state::state_path(run_id);
    // Held until all is gone, so that no other reaper comes between.
    let _lock = match may_reap(run_id, &state) {
        Ok(Claim::Ours(lock)) => lock,
        Ok(Claim::Done) => return report,
        Err(why) => {
            report.left.push((Resource::Directory { path: state }, why));
            return report;
        }
    };
    kill_processes(run_id, &mut report);
    let groups = groups(run_id, resources, &mut report);
    for group in &groups {
        if let Err(e) = kill_group(group, &mut report) {
            report.left.push((Resource::Cgroup { paths: vec![group.clone()] }, e.to_string()));
        }
    }
    for resource in resources {
        if let Resource::Held { platform, token } = resource {
            report.note(resource.clone(), held(platform, token).map(|()| true));
        }
    }
    // A platform's own ending may have started helpers in these groups.
    for group in &groups {
        report.note(Resource::Cgroup { paths: vec![group.clone()] }, remove_group(group));
    }
    if let Err(e) = cgroup::remove_run_groups(run_id) {
        report.left.push((Resource::Cgroup { paths: cgroup::find_run_groups(run_id) }, e.to_string()));
    }
    // After the guests: what was merged for them may have to be taken apart, and they are what it would need memory for.
    put_settings_back(resources, &mut report);
    unmount_all(resources, &state, &mut report);
    remove_directories(run_id, resources, &state, &mut report);
    report
}

/// Deepest first: one mount may lie inside another.
fn unmount_all(resources: &[Resource], state: &Path, report: &mut ReapReport) {
    let mut mounts: Vec<&PathBuf> = resources.iter().filter_map(mount_path).collect();
    mounts.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    for path in mounts {
        report.note(Resource::Mount { path: path.clone() }, unmount_exact(path, state));
    }
}

/// Those on the list, then the run's own.
fn remove_directories(run_id: &str, resources: &[Resource], state: &Path, report: &mut ReapReport) {
    for resource in resources {
        if let Resource::Directory { path } = resource {
            report.note(resource.clone(), remove_directory(path, state, run_id));
        }
    }
    if let Err(why) = ledger::still_planned(state) {
        report.left.push((Resource::Directory { path: state.join(ledger::FILE) }, why.to_string()));
    }
    for path in [data::data_path(run_id, None), disk::disk_path(run_id)] {
        report.note(Resource::Directory { path: path.clone() }, remove_own(&path, state, run_id));
        state::remove_base_if_empty(&path);
    }
    // Last, and not while anything is left: as long as it is there the run is found, and its ledger alone knows the rest.
    if report.is_clean() {
        report.note(Resource::Directory { path: state.to_owned() }, remove_own(state, state, run_id));
        state::remove_base_if_empty(state);
    }
}

/// The latest first, which is how the list comes: what it found was set by an earlier one.
fn put_settings_back(resources: &[Resource], report: &mut ReapReport) {
    for resource in resources {
        if let Resource::Settings { found } = resource {
            let put_back = settings::put_back_settings(Path::new(settings::ROOT), found);
            report.note(resource.clone(), put_back);
        }
    }
}

fn mount_path(resource: &Resource) -> Option<&PathBuf> {
    match resource {
        Resource::Mount { path } => Some(path),
        _ => None,
    }
}

/// Whether a run is to be reaped.
enum Claim {
    /// By us, under this lock if it has one. A controller reaps its own run under the lock that it holds already.
    Ours(Option<OwnedFd>),
    /// Another process has done it while we waited.
    Done,
}

/// Takes the run's lock, if it has one, so that it may be reaped: its id is one, its directory is ours alone, and no
/// other process's controller is alive.
fn may_reap(run_id: &str, state: &Path) -> std::result::Result<Claim, String> {
    check_run_id(run_id).map_err(|e| e.to_string())?;
    for directory in state.parent().into_iter().chain([state]) {
        check_private(directory).map_err(|e| e.to_string())?;
    }
    let locked = state.join(LOCK_FILE).exists();
    // Read before waiting, too: whoever removes the directory may remove the file long before the lock.
    let (mut info, mut answer) = (RunInfo::read(state), None);
    process::wait_until(LET_GO_WITHIN, || {
        info = info.take().or_else(|| RunInfo::read(state));
        answer = claim(state, locked, info.as_ref());
        answer.is_some()
    });
    answer.unwrap_or_else(|| match state.join(LOCK_FILE).exists() {
        true => Err("another process holds its lock: is it reaping the run at this moment?".into()),
        // Whoever was removing the directory did not come to its end.
        false => Ok(Claim::Ours(None)),
    })
}

/// One look at the lock; `None` when another process reaps the run at this moment: the lock is held although the controller is
/// gone, or was removed and the directory is not yet. `locked`: there was one to begin with.
fn claim(state: &Path, locked: bool, info: Option<&RunInfo>) -> Option<std::result::Result<Claim, String>> {
    match StateDir::lock_dead(state) {
        Err(e) => return Some(Err(e.to_string())),
        Ok(Some(None)) if locked => return (!state.exists()).then_some(Ok(Claim::Done)),
        Ok(Some(lock)) => return Some(Ok(Claim::Ours(lock))),
        Ok(None) => {}
    }
    let info = info.filter(|info| info.controller_lives())?;
    if info.controller_pid == std::process::id() {
        return Some(Ok(Claim::Ours(None)));
    }
    Some(Err(format!("its controller, process {}, is alive: stop it first", info.controller_pid)))
}

/// Kills until none is found: one may have been starting another.
fn kill_processes(run_id: &str, report: &mut ReapReport) {
    let mut seen = BTreeMap::new();
    let mut left = BTreeMap::new();
    process::wait_until(LIMIT, || {
        left = process::of_run(run_id);
        for (pid, stat) in &left {
            process::kill(*pid, stat);
            seen.insert((*pid, stat.started), stat.name.clone());
        }
        left.is_empty()
    });
    for pid in left.into_keys() {
        let what = Resource::Held { platform: "process".into(), token: pid.into() };
        report.left.push((what, "it did not go within 5 s after SIGKILL".into()));
    }
    report.killed.extend(seen.into_iter().map(|((pid, _), name)| Killed { pid, name }));
}

/// The groups of the run, from the list and as found by name. What is on the list but not the run's is refused.
fn groups(run_id: &str, resources: &[Resource], report: &mut ReapReport) -> Vec<PathBuf> {
    let mut groups = Vec::new();
    for resource in resources {
        let Resource::Cgroup { paths } = resource else { continue };
        for path in paths.iter().filter(|path| path.exists()) {
            if cgroup::is_tare_group(path, run_id) {
                groups.push(path.clone());
            } else {
                let what = Resource::Cgroup { paths: vec![path.clone()] };
                report.left.push((what, format!("it is not in a control group named {}", run_group(run_id))));
            }
        }
    }
    for run in cgroup::find_run_groups(run_id) {
        let children = fs::read_dir(&run).into_iter().flatten().flatten();
        groups.extend(children.filter(|c| c.file_type().is_ok_and(|kind| kind.is_dir())).map(|c| c.path()));
    }
    groups.sort();
    groups.dedup();
    groups
}

fn kill_group(group: &PathBuf, report: &mut ReapReport) -> Result<()> {
    let names: BTreeMap<u32, String> = cgroup::processes_below(std::slice::from_ref(group))
        .into_iter()
        .filter_map(|pid| Some((pid, process::stat(pid)?.name)))
        .collect();
    for pid in cgroup::kill(std::slice::from_ref(group))? {
        report.killed.push(Killed { pid, name: names.get(&pid).cloned().unwrap_or_default() });
    }
    Ok(())
}

fn remove_group(group: &PathBuf) -> std::result::Result<bool, String> {
    if !group.exists() {
        return Ok(false);
    }
    cgroup::kill_and_remove(std::slice::from_ref(group)).map(|_| true).map_err(|e| e.to_string())
}

/// Unmounts what is mounted exactly there, with all below it, if it is below the run's state directory. Whether anything was.
///
/// # Errors
/// Why it is still there, or was not touched.
pub fn unmount_exact(path: &Path, state: &Path) -> std::result::Result<bool, String> {
    if !path.starts_with(state) || has_parent_component(path) {
        return Err(format!("it is not below {}", state.display()));
    }
    let mut any = false;
    // Mounts may lie on top of each other.
    while mount_points()?.iter().any(|point| point == path) {
        unmount(path, UnmountFlags::NOFOLLOW)
            .or_else(|_| unmount(path, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH))
            .map_err(|e| LabError::system(format!("unmount {}", path.display()), e).to_string())?;
        any = true;
    }
    Ok(any)
}

/// Removes one of the run's own directories, where nobody else can have made it.
fn remove_own(path: &Path, state: &Path, run_id: &str) -> std::result::Result<bool, String> {
    if path == data::data_path(run_id, None) {
        data::check_base().map_err(|e| e.to_string())?;
    } else if let Some(base) = path.parent() {
        check_private(base).map_err(|e| e.to_string())?;
    }
    // What failed because another process removed it at the same time is no failure.
    remove_directory(path, state, run_id).or_else(|why| if path.exists() { Err(why) } else { Ok(false) })
}

/// Removes a directory that is where tare makes those of this run.
fn remove_directory(path: &Path, state: &Path, run_id: &str) -> std::result::Result<bool, String> {
    if !path.is_absolute() || has_parent_component(path) {
        return Err("its path is not absolute and plain".into());
    }
    let own = [state, &disk::disk_path(run_id), &data::data_path(run_id, None)];
    if !own.iter().any(|own| path.starts_with(own)) {
        // The one place elsewhere: a directory for data within one that the study names, with others passing through at most.
        if path.file_name() != Some(run_group(run_id).as_ref()) {
            return Err(format!("it is neither below {} nor named {}", state.display(), run_group(run_id)));
        }
        check_passage(path).map_err(|e| e.to_string())?;
    }
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e.to_string()),
        Ok(_) => {}
    }
    // What a link on the way leads to may be neither.
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    let real = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    if real.as_deref() != Some(path) {
        return Err("a link is on its way".into());
    }
    if mount_points()?.iter().any(|point| point == path) {
        return Err("something is mounted there".into());
    }
    tree::remove(path).map(|()| true).map_err(|e| e.to_string())
}

fn has_parent_component(path: &Path) -> bool {
    path.components().any(|c| c == Component::ParentDir)
}

fn mount_points() -> std::result::Result<Vec<PathBuf>, String> {
    let all = mounts::all().map_err(|e| format!("the mounts cannot be listed: {e}"))?;
    Ok(all.into_iter().map(|mount| mount.point).collect())
}

/// What of this run is still there: processes, control groups, mounts, links in this network namespace, the state
/// directory. Empty on a clean host; otherwise the next trial must not start.
pub fn leftovers(run_id: &str) -> Vec<String> {
    if let Err(e) = check_run_id(run_id) {
        return vec![e.to_string()];
    }
    let mut found = Vec::new();
    found.extend(process::of_run(run_id).iter().map(|(pid, seen)| format!("process {pid} ({})", seen.name)));
    found.extend(cgroup::find_run_groups(run_id).iter().map(|path| format!("control group {}", path.display())));
    let state = state::state_path(run_id);
    match mount_points() {
        Ok(points) => {
            let ours = points.iter().filter(|point| point.starts_with(&state));
            found.extend(ours.map(|point| format!("mount {}", point.display())));
        }
        Err(why) => found.push(why),
    }
    match links_named(&run_group(run_id)) {
        Ok(names) => found.extend(names.iter().map(|name| format!("link {name}"))),
        Err(e) => found.push(format!("the links cannot be listed: {e}")),
    }
    let places = [state, disk::disk_path(run_id), data::data_path(run_id, None)];
    found.extend(places.iter().filter(|path| path.exists()).map(|path| format!("directory {}", path.display())));
    found
}

/// The links of this network namespace that carry the run's alias.
fn links_named(alias: &str) -> Result<Vec<String>> {
    let links = scratch("tare-links", || {
        let netlink = Netlink::new()?;
        let links = netlink.open()?;
        netlink.wait(links.all())
    })??;
    Ok(links.into_iter().filter(|link| link.alias.as_deref() == Some(alias)).map(|link| link.name).collect())
}
