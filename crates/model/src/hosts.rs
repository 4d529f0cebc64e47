//! The hosts that take part in a study, and what each does.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Id of the host that tare is started on.
pub const LOCAL: &str = "local";

/// A machine that takes part beside the host that tare is started on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Host {
    /// Id, unique in the study; never [`LOCAL`].
    pub id: String,
    /// The platform that leads to it, by its name in the registry.
    pub platform: String,
    /// The platform's own options, checked by the platform.
    pub options: Value,
}

/// Who does what, by the ids of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Roles {
    /// Hosts that offer load, each once: driver k, counted over all guests of a case, is on number k modulo their count. Never empty.
    pub drivers: Vec<String>,
    /// The host that serves what guests ask the driver's side for, for each guest by an agent of its own; `None`: that of each guest's first driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<String>,
}

impl Default for Roles {
    fn default() -> Self {
        Self { drivers: vec![LOCAL.to_owned()], services: None }
    }
}

impl Roles {
    /// Whether all load comes from the host that tare is started on.
    pub fn drives_locally(&self) -> bool {
        self.drivers.iter().all(|host| host == LOCAL)
    }
}
