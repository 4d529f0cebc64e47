//! A domain as it is written down, and its end.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tare_model::guest::GuestSpec;

use super::connection::{open, within};
use super::error::LibvirtError;
use super::log;
use super::sys::{Connection, Domain};
use super::uri::CALL_LIMIT;
use crate::{ReapSite, held};

/// `VIR_DOMAIN_UNDEFINE_*`: with a managed save, with snapshots' and checkpoints' metadata, with NVRAM. Drivers that do
/// not know all of them know fewer.
const UNDEFINE: [u32; 4] = [1 | 2 | 4 | 16, 1 | 2 | 4, 1 | 2, 0];

/// A domain that a run has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Held {
    /// The connection.
    pub uri: String,
    /// The domain's name.
    pub name: String,
    /// Its UUID, by which it is found: a name may be somebody else's by now.
    pub uuid: String,
    /// The run.
    pub run: String,
    /// Whether the run made it; else it was there before, and is stopped and stays.
    pub made: bool,
}

impl Held {
    /// A domain that is about to be made.
    pub(super) fn new(uri: &str, run_id: &str, spec: &GuestSpec) -> std::io::Result<Self> {
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned();
        let name = format!("{}{}", prefix(run_id), spec.name);
        Ok(Self { uri: uri.to_owned(), name, uuid, run: run_id.to_owned(), made: true })
    }

    /// Stops the domain as pulling the plug would; no error when it does not run or is not there.
    pub(super) fn stop(&self) -> Result<(), String> {
        self.end(|_, domain| stop(domain))
    }

    /// Does something to the domain, over a connection of its own: the guest's may be broken.
    fn end(&self, work: fn(&Self, &Domain) -> Result<(), LibvirtError>) -> Result<(), String> {
        let connection = open(&self.uri).map_err(|error| error.to_string())?;
        let held = self.clone();
        let done =
            within(CALL_LIMIT, &format!("end the domain {}", self.name), move || match held.find(&connection)? {
                Some(domain) => work(&held, &domain),
                None => Ok(()),
            });
        done.map_err(|error| format!("the domain {}: {error}", self.name))
    }

    /// The domain, if it is there.
    fn find(&self, connection: &Connection) -> Result<Option<Domain>, LibvirtError> {
        match connection.by_uuid(&self.uuid) {
            Ok(domain) if domain.name()? == self.name => Ok(Some(domain)),
            Ok(_) => Err(LibvirtError::Refused {
                tried: format!("find the domain {}", self.name),
                code: 0,
                message: format!("{} has another name", self.uuid),
            }),
            Err(error) if error.is_no_domain() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl held::Held for Held {
    const WHAT: &'static str = "the domain";
    const REMEDY: &'static str = "Remove it with `virsh destroy` and `virsh undefine --nvram --managed-save`";

    fn check(&self, site: &ReapSite<'_>) -> Result<(), String> {
        let ours = self.run == site.run_id && (!self.made || self.name.starts_with(&prefix(site.run_id)));
        if ours { Ok(()) } else { Err(format!("the domain {} is not of the run {}", self.name, site.run_id)) }
    }

    /// Stops the domain, and undefines it and removes its log when the run made it.
    fn take_away(&self, _: &Path) -> Result<(), String> {
        self.end(|held, domain| {
            stop(domain)?;
            if held.made { undefine(domain) } else { Ok(()) }
        })?;
        if self.made { log::remove(&self.uri, &self.name) } else { Ok(()) }
    }
}

/// How domains of a run begin.
fn prefix(run_id: &str) -> String {
    format!("tare-{run_id}-")
}

fn stop(domain: &Domain) -> Result<(), LibvirtError> {
    match domain.destroy() {
        Err(error) if !error.is_wrong_state() && !error.is_no_domain() => Err(error),
        _ => Ok(()),
    }
}

fn undefine(domain: &Domain) -> Result<(), LibvirtError> {
    let mut last = Ok(());
    for flags in UNDEFINE {
        match domain.undefine(flags) {
            Err(error) if error.is_no_domain() => return Ok(()),
            Err(error) if error.is_flag_refused() => last = Err(error),
            other => return other,
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::Held as _;
    use tare_model::ByteSize;
    use tare_model::guest::GuestSize;

    #[test]
    fn what_is_not_of_the_run_is_not_touched() {
        let size = GuestSize { cpus: 1, memory: ByteSize(1 << 28) };
        let spec = GuestSpec::new("g", size);
        let held = Held::new("test:///default", "r", &spec).unwrap();
        assert_eq!(Held::from_token(&held.token()).unwrap(), held);
        let site = |run_id| ReapSite { run_id, state: Path::new("/s"), agent: Path::new("/a") };
        assert!(held.check(&site("r")).is_ok());
        assert!(held.check(&site("other")).is_err());
        let forged = Held { name: "somebody".into(), ..held.clone() };
        assert!(forged.check(&site("r")).unwrap_err().contains("somebody"));
        let there = Held { made: false, name: "somebody".into(), ..held };
        assert!(there.check(&site("r")).is_ok() && there.check(&site("other")).is_err());
        assert!(Held::from_token(&serde_json::json!({"uri": "x"})).is_err());
    }
}
