//! The balloon of a machine, sized over QEMU's monitor.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use qapi::qmp;
use serde_json::{Value, json};
use tare_model::ballooning::MachineMemory;

use super::command::BALLOON;
use super::qmp::{Monitor, SharedMonitor};
use crate::Balloon;

/// How often QEMU asks the guest's driver, seconds: as often as the policy samples.
const ASK_EVERY_S: u64 = 5;
/// How long the guest's driver may take for its first word: it is loaded while the guest boots, and an emulated one is slow.
const SPEAKS_WITHIN: Duration = Duration::from_secs(20);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What QEMU says of a figure that the driver does not give.
const NOT_GIVEN: u64 = u64::MAX;

/// A machine's balloon whose driver answers.
pub(super) struct MachineBalloon {
    monitor: SharedMonitor,
    /// What the machine was promised, bytes.
    most: u64,
}

impl MachineBalloon {
    /// The balloon of a machine to which `most` bytes were promised, once its driver has said something.
    ///
    /// # Errors
    /// When QEMU has no such device, or the driver says nothing in time.
    pub(super) fn inflatable(monitor: SharedMonitor, most: u64) -> Result<Self, String> {
        let balloon = Self { monitor, most };
        balloon.with(|monitor| monitor.ask(&property("guest-stats-polling-interval", json!(ASK_EVERY_S))))?;
        let deadline = Instant::now() + SPEAKS_WITHIN;
        loop {
            match balloon.seen() {
                Ok(_) => return Ok(balloon),
                Err(why) if Instant::now() >= deadline => return Err(why),
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Monitor) -> Result<T, String>) -> Result<T, String> {
        ask(&mut self.monitor.lock())
    }

    fn seen(&self) -> Result<MachineMemory, String> {
        let (path, name) = (device(), "guest-stats".to_owned());
        let said = self.with(|monitor| monitor.ask(&qmp::qom_get { path, property: name }))?;
        let unused = unused(&said).ok_or("the guest's driver has not said how much of its memory is free")?;
        let current = self.with(|monitor| monitor.ask(&qmp::query_balloon {}))?.actual;
        Ok(MachineMemory { current: u64::try_from(current).unwrap_or(0), most: self.most, unused })
    }
}

impl Balloon for MachineBalloon {
    fn memory(&self) -> io::Result<MachineMemory> {
        self.seen().map_err(io::Error::other)
    }

    fn resize(&self, bytes: u64) -> io::Result<()> {
        let value = i64::try_from(bytes).map_err(io::Error::other)?;
        self.with(|monitor| monitor.ask(&qmp::balloon { value })).map(drop).map_err(io::Error::other)
    }
}

impl fmt::Debug for MachineBalloon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineBalloon").field("most", &self.most).finish_non_exhaustive()
    }
}

/// Where QEMU keeps the device.
fn device() -> String {
    format!("/machine/peripheral/{BALLOON}")
}

fn property(name: &str, value: Value) -> qmp::qom_set {
    qmp::qom_set { path: device(), property: name.to_owned(), value }
}

/// Free memory of the guest, bytes; `None` where the driver has not given it (docs/interop/virtio-balloon-stats of QEMU).
fn unused(said: &Value) -> Option<u64> {
    said.get("last-update").and_then(Value::as_u64).filter(|&at| at > 0)?;
    said.pointer("/stats/stat-free-memory").and_then(Value::as_u64).filter(|&bytes| bytes != NOT_GIVEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_has_not_said_is_no_figure() {
        let said = |free: u64, at: u64| json!({"stats": {"stat-free-memory": free}, "last-update": at});
        assert_eq!(unused(&said(4096, 1_700_000_000)), Some(4096));
        assert_eq!(unused(&said(4096, 0)), None, "before the first word");
        assert_eq!(unused(&said(NOT_GIVEN, 1_700_000_000)), None);
        assert_eq!(unused(&json!({"stats": {}, "last-update": 1})), None);
    }
}
