//! As whom an application runs in a guest: never as root where the guest knows anybody else.

use tare_wire::{AgentFacts, Reply, Request};

use crate::{WorkSite, WorkloadError};

/// User and group of applications, servers and their data: nobody.
pub(crate) const NOBODY: (u32, u32) = (65534, 65534);

/// The user of applications in this guest: nobody where its agent is root and may become another. An agent that is no root, or is
/// root of a user namespace without other users, runs them as itself, who is no root of any host.
///
/// # Errors
/// When the agent cannot be asked.
pub(crate) fn user(site: &WorkSite<'_>) -> Result<Option<(u32, u32)>, WorkloadError> {
    match site.ask_guest(Request::Facts)? {
        Reply::Facts(facts) => Ok(knows_nobody(&facts).then_some(NOBODY)),
        _ => Err(WorkSite::unexpected("guest", "tell its facts")),
    }
}

/// `USER:GROUP` for a script of the guest's shell; empty where there is no other than the agent's own.
pub(crate) fn owner(user: Option<(u32, u32)>) -> String {
    user.map_or_else(String::new, |(user, group)| format!("{user}:{group}"))
}

fn knows_nobody(facts: &AgentFacts) -> bool {
    let fact = |name: &str| facts.facts.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
    // Lines of `/proc/PID/uid_map`: the first user inside, the first outside, how many.
    let has = |line: &str| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if (first..first.saturating_add(count)).contains(&NOBODY.0.into()))
    };
    fact("user id") == "0" && fact("user namespace map").split(';').any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_known_where_root_may_become_nobody() {
        let knows = |user: &str, map: &str| {
            let facts = [("user id", user), ("user namespace map", map)];
            knows_nobody(&AgentFacts { facts: facts.map(|(name, value)| (name.into(), value.into())).to_vec() })
        };
        assert!(knows("0", "0 0 4294967295") && knows("0", "0 1000 1; 1 100000 65536"));
        assert!(!knows("1000", "0 0 4294967295") && !knows("0", "0 1000 1") && !knows("0", "not readable"));
        assert_eq!((owner(Some(NOBODY)), owner(None)), ("65534:65534".to_owned(), String::new()));
    }
}
