//! What a platform keeps elsewhere for a guest, as the ledger has it: enough to take it away from a fresh process.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ReapSite;
use crate::error::{PlatformError, Result};

/// What a platform keeps elsewhere for a guest.
pub(crate) trait Held: Clone + Serialize + DeserializeOwned + Send + 'static {
    /// What it is, such as `the container`.
    const WHAT: &'static str;
    /// What helps where it cannot be taken away.
    const REMEDY: &'static str;

    /// Refuses a note that is not of this run: what it names will be run, killed and removed.
    ///
    /// # Errors
    /// What in it is not the run's.
    fn check(&self, site: &ReapSite<'_>) -> std::result::Result<(), String>;

    /// Takes it away; does nothing when it is gone. `agent` is the agent's program, on the host.
    ///
    /// # Errors
    /// What is still there, and why.
    fn take_away(&self, agent: &Path) -> std::result::Result<(), String>;

    /// It as a token of the ledger.
    fn token(&self) -> Value {
        // Plain fields: this cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What a token names.
    ///
    /// # Errors
    /// When it is no such token.
    fn from_token(token: &Value) -> std::result::Result<Self, String> {
        serde_json::from_value(token.clone()).map_err(|error| format!("the note of it cannot be read: {error}"))
    }

    /// How an error names what a token is about.
    fn named(token: &Value) -> String {
        format!("{} {token}", Self::WHAT)
    }
}

/// Takes away what a run that is over left, by the token of it.
pub(crate) fn reap<H: Held>(site: &ReapSite<'_>, token: &Value) -> Result<()> {
    let held = H::from_token(token);
    held.and_then(|held| held.check(site).and_then(|()| held.take_away(site.agent))).map_err(|why| {
        PlatformError::Reap { tried: format!("take away {}", H::named(token)), why, remedy: H::REMEDY.into() }
    })
}

/// Refuses a container of another run, and a name that tare gives none.
///
/// # Errors
/// Which container, and of which run it is.
pub(crate) fn check_name(site: &ReapSite<'_>, run_id: &str, name: &str) -> std::result::Result<(), String> {
    let ours = name.strip_prefix(&format!("tare-{}-", site.run_id));
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if run_id != site.run_id || !ours.is_some_and(|guest| !guest.is_empty() && guest.bytes().all(plain)) {
        return Err(format!("`{name}` of run {run_id} is no container of run {}", site.run_id));
    }
    Ok(())
}
