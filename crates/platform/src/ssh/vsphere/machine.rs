//! One virtual machine: found, reverted to its snapshot, started and stopped.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Vsphere;
use super::govc::{call, properties};
use crate::ssh::destination::Failed;

/// A machine that was found, with all that it takes to stop it from a fresh process. A login is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::ssh) struct Machine {
    /// As the study names it.
    name: String,
    /// What vSphere calls it, such as `VirtualMachine:vm-62`: it means this machine, whatever its name becomes.
    pub(super) object: String,
    /// Where vSphere is, where the study says it.
    pub(super) url: Option<String>,
}

/// A snapshot of a machine.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    /// Its name, behind those of the snapshots that it was made on, with `/` between them.
    path: String,
    /// What vSphere calls it.
    id: String,
}

fn failed(why: String, remedy: &str) -> Failed {
    Failed { why, remedy: remedy.to_owned(), unreached: false }
}

impl Machine {
    /// Looks for it.
    ///
    /// # Errors
    /// When there is none of that name, or more than one.
    pub(in crate::ssh) fn find(of: &Vsphere, run_id: &str, limit: Duration) -> Result<Self, Failed> {
        let (name, url) = (of.vm.as_str(), of.url.clone());
        let arguments = if name.contains('/') {
            vec!["ls", "-i", "-t", "VirtualMachine", name]
        } else {
            vec!["find", "-i", "-type", "m", "/", "-name", name]
        };
        let ended = call(url.as_deref(), run_id, &arguments, limit)?;
        let found: Vec<&str> =
            ended.output.lines().map(str::trim).filter(|line| line.starts_with("VirtualMachine:")).collect();
        match found.as_slice() {
            [object] => Ok(Self { name: name.to_owned(), object: (*object).to_owned(), url }),
            [] => Err(failed(
                format!("vSphere has no virtual machine {name:?} that the user may see"),
                "Write its name as vSphere shows it, or its inventory path, as `vm`: `govc find / -type m` lists them",
            )),
            several => Err(failed(
                format!("vSphere has {} virtual machines {name:?}", several.len()),
                "Write the inventory path of one as `vm`: `govc find / -type m` lists them",
            )),
        }
    }

    fn properties(&self, run_id: &str, names: &[&str]) -> Result<serde_json::Map<String, Value>, Failed> {
        properties(self.url.as_deref(), run_id, &self.object, names)
    }

    /// The one snapshot that is meant.
    ///
    /// # Errors
    /// When there is none of that name, or more than one.
    pub(in crate::ssh) fn snapshot(&self, run_id: &str, wanted: &str) -> Result<String, Failed> {
        let read = self.properties(run_id, &["snapshot"])?;
        let mut all = Vec::new();
        if let Some(list) = read.get("snapshot").and_then(|snapshot| snapshot.get("rootSnapshotList")) {
            gather(list, "", &mut all);
        }
        let is_meant =
            |snapshot: &&Snapshot| snapshot.path == wanted || snapshot.path.rsplit('/').next() == Some(wanted);
        let meant: Vec<&Snapshot> = all.iter().filter(is_meant).collect();
        let paths =
            |of: &mut dyn Iterator<Item = &Snapshot>| of.map(|one| one.path.as_str()).collect::<Vec<_>>().join(", ");
        match meant.as_slice() {
            [one] => Ok(one.id.clone()),
            [] if all.is_empty() => Err(failed(
                format!("the virtual machine {:?} has no snapshot, {wanted:?} neither", self.name),
                "Make it: `govc snapshot.create -vm VM NAME` of the machine as each trial is to find it, best while it is off",
            )),
            [] => Err(failed(
                format!(
                    "the virtual machine {:?} has no snapshot {wanted:?}; it has: {}",
                    self.name,
                    paths(&mut all.iter())
                ),
                "Write one of these as `snapshot`, or make it: `govc snapshot.create -vm VM NAME`",
            )),
            several => Err(failed(
                format!(
                    "{wanted:?} may be several snapshots of {:?}: {}",
                    self.name,
                    paths(&mut several.iter().copied())
                ),
                "Write the path of one as `snapshot`, or give them different names",
            )),
        }
    }

    /// Brings it back to a snapshot.
    pub(in crate::ssh) fn revert(&self, run_id: &str, wanted: &str, limit: Duration) -> Result<(), Failed> {
        let id = self.snapshot(run_id, wanted)?;
        self.act(run_id, &["snapshot.revert", "-vm", &self.object, &id], limit)
    }

    /// Starts it. A snapshot with the machine's memory has done that already.
    pub(in crate::ssh) fn power_on(&self, run_id: &str, limit: Duration) -> Result<(), Failed> {
        self.bring_to("poweredOn", "-on", run_id, limit)
    }

    /// Switches it off, as by its plug.
    pub(in crate::ssh) fn power_off(&self, run_id: &str, limit: Duration) -> Result<(), Failed> {
        self.bring_to("poweredOff", "-off", run_id, limit)
    }

    /// Brings it to a power state, unless it is in that one.
    fn bring_to(&self, state: &str, flag: &str, run_id: &str, limit: Duration) -> Result<(), Failed> {
        if self.power_state(run_id)? == state {
            return Ok(());
        }
        let acted = self.act(run_id, &["vm.power", flag, &self.object], limit);
        match acted {
            // Somebody else, or the machine itself, may have come first.
            Err(failed) if self.power_state(run_id).map_or(true, |now| now != state) => Err(failed),
            _ => Ok(()),
        }
    }

    fn power_state(&self, run_id: &str) -> Result<String, Failed> {
        let read = self.properties(run_id, &["runtime.powerState"])?;
        let state = read.get("runtime.powerState").and_then(Value::as_str);
        let unknown =
            || failed(format!("vSphere does not tell whether {:?} is on", self.name), "Is it connected to its host?");
        state.map(str::to_owned).ok_or_else(unknown)
    }

    fn act(&self, run_id: &str, arguments: &[&str], limit: Duration) -> Result<(), Failed> {
        let done = call(self.url.as_deref(), run_id, arguments, limit);
        done.map(drop).map_err(|error| Failed { why: format!("{:?}: {}", self.name, error.why), ..error })
    }
}

/// Snapshots of a tree, each with its path.
fn gather(list: &Value, above: &str, into: &mut Vec<Snapshot>) {
    for node in list.as_array().into_iter().flatten() {
        let text = |pointer: &str| node.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = text("/name");
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        if let Some(below) = node.get("childSnapshotList") {
            gather(below, &path, into);
        }
        into.push(Snapshot { path, id: text("/snapshot/value").to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn snapshots_are_known_by_their_paths() {
        let node =
            |name: &str, id: &str| json!({"name": name, "snapshot": {"type": "VirtualMachineSnapshot", "value": id}});
        let mut base = node("base", "snapshot-1");
        base["childSnapshotList"] = json!([node("clean", "snapshot-2")]);
        let mut all = Vec::new();
        gather(&json!([base, node("other", "snapshot-3")]), "", &mut all);
        let found: Vec<(&str, &str)> = all.iter().map(|one| (one.path.as_str(), one.id.as_str())).collect();
        assert_eq!(found, [("base/clean", "snapshot-2"), ("base", "snapshot-1"), ("other", "snapshot-3")]);
    }
}
