//! The server in a guest: started, seen to answer, and filled.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tare_wire::Request;

use super::parameters::Parameters;
use super::served::{Served, Server};
use super::spec::{KvAsk, KvFailure, KvFound, KvSweep, Protocol};
use crate::application::{PAUSE, explained, gone, look, start};
use crate::asked::{Asked, failure};
use crate::limits::Allowed;
use crate::{Failure, WorkSite, WorkloadError, unprivileged};

/// Longest that a question may take: an emulated guest is slow.
const ASKING: Duration = Duration::from_secs(20);
/// Longest that a server may take to answer at first.
const STARTING: Duration = Duration::from_secs(120);
/// Longest for a program to tell its version.
const SHORT: Duration = Duration::from_secs(60);
/// Connections beside those of the drivers: tare's own.
const OTHER_CONNECTIONS: u32 = 64;
/// Slower than this no sweep is: keys a second, and bytes.
const SWEEP: (u64, u64) = (2_000, 1_000_000);

/// A server that is at work in a guest, with all keys set.
#[derive(Debug)]
pub(super) struct Started {
    /// Its number, for the guest's agent.
    command: u64,
    /// Its name, for people.
    name: &'static str,
    /// How it speaks.
    protocol: Protocol,
    /// Where it listens, as drivers see it.
    pub address: SocketAddr,
    /// What there is to tell.
    pub facts: BTreeMap<String, String>,
}

/// Starts the server as nobody, on the guest's own address, and sets all keys.
///
/// # Errors
/// When the guest does not have the program, the server does not come to answer, or does not hold what was set.
pub(super) fn started(site: &WorkSite<'_>, parameters: &Parameters) -> Result<Started, WorkloadError> {
    let drivers = u32::try_from(site.drivers.len()).unwrap_or(u32::MAX).max(1);
    let connections = site.load.connections().saturating_mul(drivers).saturating_add(OTHER_CONNECTIONS);
    Allowed::of(site.guest, site.timeout).refuse_server(connections.into(), connections)?;
    let user = unprivileged::user(site)?;
    let said = version(site, parameters, user)?;
    let port = match parameters.server {
        Protocol::Redis => 6379,
        Protocol::Memcached => 11211,
    };
    let listen = SocketAddr::new(site.guest_listen, port);
    let threads = parameters.threads_in(&site.size);
    let command = start(site, argv(parameters, listen, connections, threads, user.is_none()), user)?;
    let mut started = Started {
        command,
        name: parameters.package(),
        protocol: parameters.server,
        address: SocketAddr::new(site.guest_address, port),
        facts: BTreeMap::from([("server program".to_owned(), format!("{}: {said}", parameters.program()))]),
    };
    match started.ready(site).and_then(|()| started.fill(site, parameters)) {
        Ok(()) => Ok(started),
        Err(error) => {
            let error = started.explained(site, error);
            // Why it failed is what matters; the guest is thrown away.
            let _ = started.end(site);
            Err(error)
        }
    }
}

/// What the guest's program says that it is.
fn version(site: &WorkSite<'_>, parameters: &Parameters, user: Option<(u32, u32)>) -> Result<String, WorkloadError> {
    let asked = Asked { link: site.guest, side: "guest", timeout: site.timeout };
    let (program, name) = (parameters.program(), parameters.package());
    let ran = asked.run(&["sh", "-c", r#"exec "$1" --version"#, "tare", program], user, SHORT)?;
    if ran.code == Some(0) {
        return Ok(String::from_utf8_lossy(&ran.stdout).lines().next().unwrap_or_default().trim().to_owned());
    }
    let remedy = format!(
        "install {name} in the guest's image, name the program that it has (program = \"...\"), or let guests boot this host's own root"
    );
    Err(Failure::new(format!("run {name} in the guest from {program}"), failure(&ran), remedy).into())
}

/// The command that starts the server: nothing is written to a disk, and nothing but the one address is listened on.
fn argv(parameters: &Parameters, listen: SocketAddr, connections: u32, threads: u32, as_agent: bool) -> Vec<String> {
    let Parameters { memory, eviction, .. } = parameters;
    let (address, port) = (listen.ip(), listen.port());
    let options = match parameters.server {
        Protocol::Redis => {
            let policy = if *eviction { "allkeys-lru" } else { "noeviction" };
            // A word with spaces is several; `save` is followed by an empty one.
            format!(
                "--bind {address} --port {port} --protected-mode no --daemonize no --dir / --appendonly no --databases 1 \
                 --maxmemory {} --maxmemory-policy {policy} --maxclients {connections} --io-threads {threads} --save",
                memory.0
            )
        }
        Protocol::Memcached => {
            let refuse = if *eviction { "" } else { " -M" };
            // Root of a namespace without other users has to say that it is to stay that.
            let user = if as_agent { " -u root" } else { "" };
            format!("-l {address} -p {port} -U 0 -m {} -c {connections} -t {threads}{refuse}{user}", memory.0 >> 20)
        }
    };
    let mut argv = vec![parameters.program().to_owned()];
    argv.extend(options.split_whitespace().map(str::to_owned));
    if parameters.server == Protocol::Redis {
        argv.push(String::new());
    }
    argv
}

impl Started {
    /// Asks the server about itself from where load comes from.
    fn try_asking(&self, site: &WorkSite<'_>) -> Result<Result<Server, KvFailure>, WorkloadError> {
        let ask = KvAsk { server: self.address, protocol: self.protocol, timeout_ns: ns(ASKING) };
        let said = site.client.perform(&ask, ASKING + site.timeout);
        said.map(|said| said.map(Server::of)).map_err(|source| WorkloadError::Agent { side: "client", source })
    }

    /// What the server says of itself.
    ///
    /// # Errors
    /// When it does not answer; as the loss of the guest's server where that has ended.
    pub fn ask(&self, site: &WorkSite<'_>) -> Result<Server, WorkloadError> {
        self.try_asking(site)?.map_err(|failure| self.failed(site, "read what the server counts", failure.why))
    }

    /// Its counters.
    ///
    /// # Errors
    /// As for [`Self::ask`].
    pub fn served(&self, site: &WorkSite<'_>) -> Result<Served, WorkloadError> {
        self.ask(site).map(|server| server.served(self.protocol))
    }

    /// Looks, again and again, whether it answers, and whether it is still there.
    fn ready(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        let (began, mut pause) = (Instant::now(), PAUSE.0);
        loop {
            let failure = match self.try_asking(site)? {
                Ok(_) => break,
                Err(failure) => failure,
            };
            if let Some(gone) = gone(self.name, &look(site, self.command)?) {
                return Err(gone.lost(false).into());
            }
            if !failure.unreachable || began.elapsed() > STARTING + site.timeout {
                let remedy = "see what it says, and whether the guest's network is up";
                return Err(Failure::new(format!("start {} in the guest", self.name), failure.why, remedy).into());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE.1);
        }
        self.facts.insert("server started in".to_owned(), format!("{:.2} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Sets all keys, reads them, and counts them in the server.
    fn fill(&mut self, site: &WorkSite<'_>, parameters: &Parameters) -> Result<(), WorkloadError> {
        let began = Instant::now();
        let found = self.sweep(site, parameters, true)?;
        let server = self.ask(site)?;
        let items = server.served(self.protocol).items;
        if let Some(why) = unfilled(&found, items, parameters) {
            let remedy = "give the server more `memory`, or ask for fewer or smaller keys; if it has enough, it loses what it is given";
            return Err(Failure::new(format!("set {} keys", parameters.keys), why, remedy).into());
        }
        let took = began.elapsed().as_secs_f64();
        self.facts.insert("keys set and read in".to_owned(), format!("{took:.2} s"));
        self.facts.extend(server.facts(self.protocol));
        Ok(())
    }

    /// Reads all keys, from where load comes from; sets them before it, if they are to be filled.
    ///
    /// # Errors
    /// When the server refuses a key or does not answer.
    pub fn sweep(&self, site: &WorkSite<'_>, parameters: &Parameters, fill: bool) -> Result<KvFound, WorkloadError> {
        let longest = SHORT + Duration::from_secs(parameters.keys / SWEEP.0 + parameters.plain_bytes() / SWEEP.1);
        let (server, protocol) = (self.address, self.protocol);
        let sweep = KvSweep { server, protocol, keys: parameters.keys(), fill, timeout_ns: ns(longest) };
        let found = site.client.perform(&sweep, longest + site.timeout);
        let found = found.map_err(|source| WorkloadError::Agent { side: "client", source })?;
        let tried = if fill { "set all keys" } else { "read all keys" };
        found.map_err(|failure| self.failed(site, tried, failure.why))
    }

    /// A failure of the server's, as its loss where it has ended.
    fn failed(&self, site: &WorkSite<'_>, tried: &str, why: String) -> WorkloadError {
        let remedy = "see what the server says; where it has no room left, give it more `memory` or ask for fewer or smaller keys";
        self.explained(site, Failure::new(tried, why, remedy).into())
    }

    /// An error, with what became of the server where it is no more.
    pub fn explained(&self, site: &WorkSite<'_>, error: WorkloadError) -> WorkloadError {
        if error.guest_lost() {
            return error;
        }
        match look(site, self.command) {
            Ok(seen) if seen.ended.is_some() => explained(site, &[(self.name, self.command)], error),
            _ => error,
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// When the agent cannot.
    pub fn end(&self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        site.ask_guest(Request::End { command: self.command }).map(drop)
    }
}

/// Why a server is not one with all keys set, if it is not.
fn unfilled(found: &KvFound, items: u64, parameters: &Parameters) -> Option<String> {
    let KvFound { sound, missing, wrong, first_wrong } = found;
    let keys = parameters.keys;
    if *wrong > 0 {
        return Some(format!("{wrong} keys had another value than was set; the first: {first_wrong}"));
    }
    let whole = *sound == keys && items == keys;
    (!whole && !parameters.eviction).then(|| {
        format!("{sound} of them had the value that was set, {missing} had none, and the server counts {items}")
    })
}

fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "../tests/start.rs"]
mod tests;
