//! What was asked of the confinement of a guest that shares the host's kernel, and what holds inside.

use tare_model::guest::{ParityRow, Seccomp};
use tare_wire::AgentFacts;
use tare_wire::confine::{Confinement, capability_bits};

use crate::parity::{fact, owned, row};

/// The rows of a guest whose agent has confined itself, read inside.
pub(crate) fn rows(asked: &Confinement, facts: &AgentFacts) -> Vec<ParityRow> {
    let own = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok());
    let mut rows = rows_beside(asked.seccomp, facts, own.unwrap_or(0));
    rows.extend(asked.landlock.as_ref().map(|_| {
        let version = fact(facts, "landlock version").unwrap_or("not known");
        let note = format!("version {version} of its interface; the agent tries inside what the rules refuse");
        row("Landlock", "in force", owned(facts, "landlock"), note)
    }));
    rows
}

/// The same where tare itself is under so many filters.
fn rows_beside(level: Seccomp, facts: &AgentFacts, own: u32) -> Vec<ParityRow> {
    let status = "/proc/PID/status of the agent, read inside";
    let bits = format!("{:016x}", capability_bits());
    let capabilities = match (fact(facts, "capabilities bounding"), fact(facts, "capabilities effective")) {
        (Some(bounding), Some(effective)) if bounding == effective => Some(bounding.to_owned()),
        (Some(bounding), Some(effective)) => Some(format!("{effective}, of {bounding} that programs may gain")),
        _ => None,
    };
    let privileges = fact(facts, "no new privileges").map(|on| if on == "1" { "none" } else { "some" }.to_owned());
    vec![
        row("capabilities", bits, capabilities, format!("{status}: those that container engines leave to root")),
        row("new privileges", "none", privileges, format!("{status}: by set-user-id programs and the like")),
        row("system call filter", level.name(), filter(level, facts, own), status),
        row(
            "open paths of the kernel",
            "none",
            owned(facts, "open paths of the kernel"),
            "those that container engines hide or make read-only, looked at inside",
        ),
    ]
}

/// The filter as it holds: its level, where it is the only one beside those that tare itself is under.
fn filter(level: Seccomp, facts: &AgentFacts, own: u32) -> Option<String> {
    let mode = fact(facts, "seccomp mode")?;
    let count = fact(facts, "seccomp filters").and_then(|count| count.parse::<u32>().ok());
    let asked = u32::from(level == Seccomp::Default);
    Some(match (mode, count) {
        ("0", _) => Seccomp::Off.name().to_owned(),
        (_, Some(count)) if count.saturating_sub(own) == asked => level.name().to_owned(),
        (_, Some(count)) => format!("{count} filters, {own} of them tare's own"),
        // Before Linux 5.10 they are not counted.
        (_, None) => Seccomp::Default.name().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use tare_wire::confine::Landlock;

    use super::*;

    fn facts(values: [&str; 6]) -> AgentFacts {
        let names = [
            "capabilities bounding",
            "capabilities effective",
            "no new privileges",
            "seccomp mode",
            "seccomp filters",
            "open paths of the kernel",
        ];
        let facts = names.into_iter().zip(values).filter(|(_, value)| !value.is_empty());
        AgentFacts { facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
    }

    const SET: &str = "00000000a00425fb";

    #[test]
    fn what_is_as_asked_is_equal_and_nothing_else() {
        let equal = |level, values, own| {
            rows_beside(level, &facts(values), own).iter().map(|row| row.equal).collect::<Vec<_>>()
        };
        assert_eq!(equal(Seccomp::Default, [SET, SET, "1", "2", "1", "none"], 0), [true; 4]);
        assert_eq!(equal(Seccomp::Default, [SET, SET, "1", "2", "3", "none"], 2), [true; 4]);
        assert_eq!(equal(Seccomp::Off, [SET, SET, "1", "0", "0", "none"], 0), [true; 4]);
        let all = "000001ffffffffff";
        assert_eq!(equal(Seccomp::Default, [all, all, "0", "0", "0", "/proc/sys"], 0), [false; 4]);
        assert_eq!(equal(Seccomp::Off, [all, SET, "", "2", "1", ""], 0), [false; 4]);
        assert_eq!(equal(Seccomp::Default, [""; 6], 0), [false; 4], "an agent that says nothing");
    }

    #[test]
    fn landlock_is_shown_where_it_was_asked_for_and_as_the_agent_found_it() {
        let landlock = Landlock { write: Vec::new(), tcp_bind: None, tcp_connect: None };
        let asked = Confinement { seccomp: Seccomp::Default, landlock: Some(landlock) };
        let found = |asked: &Confinement, said: Option<&str>| {
            let facts = said.map(|said| ("landlock".to_owned(), said.to_owned())).into_iter().collect();
            let rows = rows(asked, &AgentFacts { facts });
            rows.iter().find(|row| row.resource == "Landlock").map(|row| row.equal)
        };
        assert_eq!(found(&asked, Some("in force")), Some(true));
        assert_eq!(found(&asked, Some("not in force: it can make a directory in the root")), Some(false));
        assert_eq!(found(&asked, None), Some(false));
        assert_eq!(found(&Seccomp::Default.into(), None), None);
    }
}
