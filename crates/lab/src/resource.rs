//! What will be torn down, and who keeps the list.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Something that a run makes and that must not outlive it. Written down before it is made.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// A directory, removed with all in it. Never across a mount point, never through a link.
    Directory {
        /// Absolute path.
        path: PathBuf,
    },
    /// A control group: its directory in every hierarchy. Processes inside are killed first.
    Cgroup {
        /// Absolute paths.
        paths: Vec<PathBuf>,
    },
    /// A mount in the host's own mount namespace. tare's own guests do without.
    Mount {
        /// Absolute path of the mount point.
        path: PathBuf,
    },
    /// What a platform keeps elsewhere, such as a container in an engine: its platform knows how to end it.
    Held {
        /// Id of the platform.
        platform: String,
        /// What the platform finds it by.
        token: serde_json::Value,
    },
    /// Settings of the whole host that were changed, to be put back as found, in this order.
    Settings {
        /// File below `/sys/kernel/mm` and what is to be written to it.
        found: Vec<(PathBuf, String)>,
    },
}

/// Of what is held: the field of a token that says whether it is on a machine that does not answer.
const LOST: &str = "lost";
/// The field that says in words what is held, where there is one.
const WHAT: &str = "what";

impl Resource {
    /// Whether it is on another machine that did not answer when it was to be taken away. It stays on the list and is tried again, and
    /// is no part of this host.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Held { token, .. } if token.get(LOST).is_some_and(|lost| lost.as_bool() == Some(true)))
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory { path } => write!(f, "directory {}", path.display()),
            Self::Cgroup { paths } => {
                f.write_str("control group")?;
                paths.iter().try_for_each(|path| write!(f, " {}", path.display()))
            }
            Self::Mount { path } => write!(f, "mount {}", path.display()),
            // A token may be long, and hold what is for its platform alone.
            Self::Held { platform, token } => match token.get(WHAT).and_then(serde_json::Value::as_str) {
                Some(what) => write!(f, "{what} ({platform})"),
                None => write!(f, "{platform} {token}"),
            },
            Self::Settings { found } => {
                f.write_str("settings of the host")?;
                found.iter().try_for_each(|(path, was)| write!(f, " {}={was}", path.display()))
            }
        }
    }
}

/// Why the list could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("the list of what must be torn down could not be written: {0}. Nothing is made that is not on it")]
pub struct LedgerError(pub String);

/// The list of what must be torn down: [`FileLedger`](crate::FileLedger) keeps it.
pub trait Ledger: Send + Sync {
    /// Writes down that `resource` is about to be made. It is on disk when this returns; the number finds it again.
    ///
    /// # Errors
    /// When it is not on disk: then the resource must not be made.
    fn planned(&self, resource: &Resource) -> Result<u64, LedgerError>;

    /// Writes down that the resource is gone.
    ///
    /// # Errors
    /// When it is not written; the resource is then looked for once more when the run is reaped, which is harmless.
    fn released(&self, id: u64) -> Result<(), LedgerError>;
}

/// A list that forgets: for tests, and for work that cleans up after itself within one call.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn planned(&self, _: &Resource) -> Result<u64, LedgerError> {
        Ok(0)
    }

    fn released(&self, _: u64) -> Result<(), LedgerError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_of_today_stays_readable() {
        let all = [
            (Resource::Directory { path: "/run/tare/r/a".into() }, r#"{"directory":{"path":"/run/tare/r/a"}}"#),
            (Resource::Cgroup { paths: vec!["/c".into()] }, r#"{"cgroup":{"paths":["/c"]}}"#),
            (Resource::Mount { path: "/m".into() }, r#"{"mount":{"path":"/m"}}"#),
            (
                Resource::Held { platform: "p".into(), token: serde_json::json!({"id": 1}) },
                r#"{"held":{"platform":"p","token":{"id":1}}}"#,
            ),
        ];
        for (resource, text) in all {
            assert_eq!(serde_json::to_string(&resource).unwrap(), text);
            assert_eq!(serde_json::from_str::<Resource>(text).unwrap(), resource);
        }
    }
}
