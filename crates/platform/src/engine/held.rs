//! A container as it is written down: enough to take it away from a fresh process.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Client;
use crate::ReapSite;
use crate::held::{self, check_name};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    client: Client,
    run_id: String,
    /// The container's name.
    pub name: String,
}

impl Held {
    /// The container of a guest.
    pub(super) fn new(client: &Client, run_id: &str, guest: &str) -> Self {
        Self { client: client.clone(), run_id: run_id.to_owned(), name: format!("tare-{run_id}-{guest}") }
    }

    fn remove(&self) -> Result<(), String> {
        let removed = self.client.run(&["rm", "--force", "--volumes", &self.name]);
        // Of one that is not there some engines say that this failed. Only the list tells.
        removed.map(drop).or_else(|why| if self.is_there()? { Err(why) } else { Ok(()) })
    }

    fn is_there(&self) -> Result<bool, String> {
        let filter = format!("name=^/?{}$", self.name);
        let listed = self.client.run(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter])?;
        // Ids and nothing else are 64 hexadecimal digits.
        let is_id = |line: &str| line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok(listed.lines().any(|line| is_id(line.trim())))
    }
}

impl held::Held for Held {
    const WHAT: &'static str = "the container";
    const REMEDY: &'static str =
        "Start the engine's daemon if it has one, then remove the container with the engine's own `rm --force`";

    fn check(&self, site: &ReapSite<'_>) -> Result<(), String> {
        check_name(site, &self.run_id, &self.name)
    }

    /// Kills the container and removes it with the volumes that the engine made for it alone.
    fn take_away(&self, _: &Path) -> Result<(), String> {
        // An engine whose monitor was killed with the guest waits for it a while, gives up, and removes the container only when
        // it is asked again.
        self.remove().or_else(|_| self.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::{Held as _, reap};

    fn held(client: Client) -> Held {
        Held { client, run_id: "r".into(), name: "tare-r-g".into() }
    }

    #[test]
    fn a_note_that_is_not_of_the_run_is_refused() {
        let site = ReapSite { run_id: "r", state: Path::new("/run/tare/r"), agent: Path::new("/agent") };
        let ours = held(Client::of("/bin/false", &[]));
        assert_eq!(ours.check(&site), Ok(()));
        assert_eq!(Held::from_token(&ours.token()).unwrap(), ours);
        for (name, run_id) in
            [("tare-r2-g", "r"), ("tare-r-g", "r2"), ("tare-r-", "r"), ("mine", "r"), ("tare-r-g.*", "r")]
        {
            let wrong = Held { name: name.into(), run_id: run_id.into(), ..ours.clone() };
            assert!(wrong.check(&site).unwrap_err().contains("no container of run r"), "{name}");
            let refused = reap::<Held>(&site, &wrong.token()).unwrap_err().to_string();
            assert!(refused.contains("no container of run r"), "{refused}");
        }
        assert!(Held::from_token(&serde_json::json!({"name": 1})).is_err());
    }

    #[test]
    fn a_container_that_is_gone_is_as_it_should_be_and_one_that_stays_is_reported() {
        // An engine that refuses to remove, and lists what `$0` prints.
        let engine = |listed: &str| {
            let script = format!("case $0 in rm) echo refused >&2; exit 1;; *) {listed};; esac");
            held(Client::of("/bin/sh", &["-c", &script])).take_away(Path::new("/agent"))
        };
        assert_eq!(engine("true"), Ok(()));
        assert!(engine("printf '%064d\\n' 7").unwrap_err().contains("refused"));
        assert!(engine("echo no daemon >&2; exit 1").unwrap_err().contains("no daemon"));
    }
}
