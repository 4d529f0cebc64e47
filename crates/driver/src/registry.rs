//! Who does what the tool asks of an agent: drivers, servers and calls by their kind.
//!
//! The tool's part and the agent's part of a workload agree on a [`Task`](tare_model::packed::Task); nothing between them knows what it is.

use std::sync::atomic::AtomicBool;

use tare_model::drive::DriveSpec;
use tare_model::packed::Packed;

use crate::course::Drive;
use crate::door::Door;
use crate::server::Server;
use crate::task::Kind;
use crate::{DriverError, workloads};

/// What the kind of a task does in a role.
fn find<T>(role: &'static str, task: &Packed, part: impl Fn(&Kind) -> Option<T>) -> Result<T, DriverError> {
    let mut named = workloads::ALL.iter().copied().flatten().filter(|known| known.name == task.kind);
    let unknown = || DriverError::Unknown { role, kind: tare_model::clean::clipped(&task.kind) };
    named.find_map(part).ok_or_else(unknown)
}

/// See [`Drives::prepare`](crate::task::Drives::prepare).
pub(crate) fn prepare(spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
    find("driver", &spec.task, |kind| kind.prepare)?(spec, cancel)
}

/// See [`Serves::serve`](crate::task::Serves::serve).
pub(crate) fn serve(task: &Packed, door: Door) -> Result<Server, DriverError> {
    find("server", task, |kind| kind.serve)?(task, door)
}

/// Does what a workload asks of its part in the agent, and returns what came of it, packed. Setting `cancel` ends it early.
///
/// # Errors
/// When nobody here does such a task, or its bytes are none.
pub fn call(task: &Packed, cancel: &AtomicBool) -> Result<Vec<u8>, DriverError> {
    find("call", task, |kind| kind.call)?(task, cancel)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_one_name_in_its_role() {
        let role = |kind: &Kind| (kind.prepare.is_some(), kind.serve.is_some(), kind.call.is_some());
        let all: Vec<_> = workloads::ALL.iter().copied().flatten().map(|kind| (role(kind), kind.name)).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
    }

    #[test]
    fn an_unknown_kind_and_bytes_of_no_task_are_refused_by_name() {
        let cancel = AtomicBool::new(false);
        let refused = |kind: &str| {
            let task = Packed { kind: kind.to_owned(), body: vec![0xff; 3] };
            call(&task, &cancel).unwrap_err().to_string()
        };
        let unknown = refused("make\u{1b} coffee");
        assert!(unknown.contains("no call `make\u{fffd} coffee`"), "{unknown}");
        assert!(refused("store").contains("no call `store`"), "a driver is no call");
        assert!(refused("fill the store").contains("`fill the store` cannot be unpacked"));
    }
}
