//! What the kernels on both sides allow: open files, and ports to connect from. Limits that are too low are
//! reported before load, not as faults during it.

use std::time::Duration;

use tare_model::flag;
use tare_model::trial::Flag;
use tare_wire::{ExecSpec, Link, Reply, Request};

use crate::Failure;

/// Files that a driver or a server has open beside the connections of its users: jars, pipes, the backend's connections come on top.
const OTHER_FILES: u64 = 256;
/// How long Linux keeps the port of a connection that this end has closed, seconds (TIME_WAIT).
const CLOSED_S: f64 = 60.0;
/// Prints the hard limit of open files, then the first and the last port.
const ASK: &str = "ulimit -Hn; cat /proc/sys/net/ipv4/ip_local_port_range";
/// Longest that asking may take beyond an agent's timeout.
const ASKING: Duration = Duration::from_secs(30);

/// What a kernel allows the processes of an agent; `None`: no limit, or it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Allowed {
    files: Option<u64>,
    ports: Option<u64>,
}

impl Allowed {
    /// Asks an agent. What cannot be asked is no limit: load will tell.
    pub fn of(agent: &Link, timeout: Duration) -> Self {
        let spec = ExecSpec { directory: Some("/".to_owned()), ..ExecSpec::new(&["sh", "-c", ASK], ASKING, 1024) };
        match agent.call(Request::Exec(spec), timeout + ASKING) {
            Ok(Reply::Executed(ran)) => Self::read(&String::from_utf8_lossy(&ran.stdout)),
            _ => Self::default(),
        }
    }

    fn read(said: &str) -> Self {
        let mut lines = said.lines();
        let files = lines.next().and_then(|line| line.trim().parse().ok());
        let mut ports = lines.next().unwrap_or_default().split_whitespace().map(str::parse::<u64>);
        let ports = match (ports.next(), ports.next()) {
            (Some(Ok(first)), Some(Ok(last))) if last >= first => Some(last - first + 1),
            _ => None,
        };
        Self { files, ports }
    }

    /// Refuses more connections than a driver can have: each is an open file, and has a port of its own.
    pub fn refuse_driver(&self, users: u32, connections: u8) -> Result<(), Failure> {
        let all = u64::from(users) * u64::from(connections);
        let tried = || format!("offer {users} sessions of {connections} connections");
        if let Some(most) = self.files.filter(|most| all + OTHER_FILES > *most) {
            let why = format!(
                "{} open files are needed where load comes from, and the hard limit there is {most}",
                all + OTHER_FILES
            );
            let remedy = "raise the limit (ulimit -Hn, or LimitNOFILE= of a unit), offer fewer sessions, or share them among `drivers`";
            return Err(Failure::new(tried(), why, remedy));
        }
        if let Some(most) = self.ports.filter(|most| all > *most) {
            let why = format!("each of the {all} needs a port to connect from, and there are {most}");
            let remedy = "widen net.ipv4.ip_local_port_range where load comes from, or offer fewer sessions";
            return Err(Failure::new(tried(), why, remedy));
        }
        Ok(())
    }

    /// Refuses more connections than a server can accept.
    pub fn refuse_server(&self, files: u64, users: u32) -> Result<(), Failure> {
        let needed = files + OTHER_FILES;
        let Some(most) = self.files.filter(|most| needed > *most) else { return Ok(()) };
        let why = format!("it needs {needed} open files, and the hard limit in the guest is {most}");
        let remedy =
            "raise the limit (for guests on this host it is that of tare itself, ulimit -Hn), or offer fewer sessions";
        Err(Failure::new(format!("serve {users} sessions"), why, remedy))
    }

    /// The limit of open files, where it is below what is wished.
    pub fn files_up_to(&self, wished: u64) -> u64 {
        self.files.map_or(wished, |most| most.min(wished))
    }

    /// Tells where ports may run out because those of users who have left are not free at once. `session_s` is how long a user stays.
    pub fn few_ports(&self, users: u32, connections: u8, session_s: f64) -> Option<Flag> {
        let all = f64::from(users) * f64::from(connections);
        let most = self.ports?;
        let needed = all * (1.0 + CLOSED_S / session_s.max(1.0));
        (needed > most as f64).then(|| Flag {
            kind: flag::DRIVER_PORTS.to_owned(),
            detail: format!(
                "{most} ports to connect from may not suffice: {all:.0} connections and those that ended in the last {CLOSED_S:.0} s need \
                 about {needed:.0}; faults `no free local port` are of this. Widen net.ipv4.ip_local_port_range where load comes from"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_one_that_is_unknown_is_none() {
        assert_eq!(Allowed::read("20000\n32768\t60999\n"), Allowed { files: Some(20_000), ports: Some(28_232) });
        assert_eq!(Allowed::read("unlimited\n"), Allowed::default());
        assert_eq!(Allowed::read(""), Allowed::default());
    }

    #[test]
    fn loads_that_cannot_have_their_connections_are_refused_with_the_figures() {
        let narrow = Allowed { files: Some(20_000), ports: Some(28_232) };
        narrow.refuse_driver(9800, 2).unwrap();
        let error = narrow.refuse_driver(10_000, 2).unwrap_err().to_string();
        assert!(error.contains("20256") && error.contains("limit there is 20000"), "{error}");
        let ports = Allowed { files: None, ports: Some(28_232) };
        let error = ports.refuse_driver(15_000, 2).unwrap_err().to_string();
        assert!(error.contains("30000") && error.contains("28232"), "{error}");
        let error = narrow.refuse_server(25_000, 12_500).unwrap_err().to_string();
        assert!(error.contains("25256") && error.contains("20000"), "{error}");
        Allowed::default().refuse_driver(1_000_000, 16).unwrap();
        assert_eq!((narrow.files_up_to(30_000), Allowed::default().files_up_to(7)), (20_000, 7));
    }

    #[test]
    fn ports_of_users_who_left_are_reckoned_with() {
        let ports = Allowed { files: None, ports: Some(28_232) };
        // A user of the bank stays about 29 s: two more connections for each that there is are on their way out.
        assert!(ports.few_ports(4000, 2, 29.0).is_none());
        let flag = ports.few_ports(5000, 2, 29.0).unwrap();
        assert!(flag.detail.contains("28232") && flag.detail.contains("10000 connections"), "{}", flag.detail);
        assert!(Allowed::default().few_ports(1_000_000, 2, 1.0).is_none());
    }
}
