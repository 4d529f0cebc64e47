//! The driver's end: an agent where it can reach the guests.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tare_model::fact;
use tare_model::guest::{DataPlace, GuestData, GuestSize, GuestSpec};
use tare_model::study::LOCAL;
use tare_model::trial::Flag;
use tare_model::units::ByteSize;
use tare_platform::{ClientPlace, Guest, Reach, Site};
use tare_wire::Link;
use tare_workload::{BackendSite, Clock, SameClock};

use crate::bench::{Bench, Place};
use crate::clock::ClientClock;
use crate::parallel;

/// Added to the lead of a driver on another machine: the word to start is on its way there for a while, and a start
/// in the past would cost a part of the first phase.
const LEAD_ELSEWHERE: Duration = Duration::from_millis(500);

/// A driver's number, counted over all guests of the trial, and what its agent is called.
pub type Named = (usize, String);

/// An agent that drives load or serves guests, on the CPUs that the plan keeps for that. A fresh one for every trial: what
/// one driver left behind in its process cannot move the next one's figures.
pub struct Client {
    agent: Box<dyn Guest>,
    /// The clock of the host that it runs on, where that is another.
    clock: Option<ClientClock>,
    /// Its address as guests see it, and what it binds to there; `None` where that is not known.
    at: Option<(IpAddr, IpAddr)>,
    /// The id of its host.
    host: String,
}

impl Client {
    /// Starts the agents of drivers, each on the host that the study gives it, where guests of this reach can be reached: in the lab's client
    /// namespace, on this host's own network, or on a machine beside it. All hosts start theirs at one time. They are under no limit, as the driver
    /// must never be what is measured.
    ///
    /// # Errors
    /// Once one fails, no further one is started. Each host that failed is named, with why; what was started is taken away.
    pub fn start_all(
        bench: &Bench<'_>,
        site: &Site<'_>,
        drivers: Vec<Named>,
        reach: Reach,
    ) -> Result<Vec<Self>, String> {
        let wired = bench.plan.study.lab.wire.is_some();
        let failed = AtomicBool::new(false);
        let cancel = bench.cancel;
        let stops = || failed.load(Relaxed) || cancel.reason().is_some();
        let start =
            |(to, spec)| Self::start(site, to, spec, (reach, wired)).inspect_err(|_| failed.store(true, Relaxed));
        let all = drivers.into_iter().map(|(driver, name)| (Self::host_of(bench, driver), Self::spec(bench, name)));
        let all: Vec<(Place<'_>, GuestSpec)> = all.collect();
        let hosts: Vec<&str> = all.iter().map(|((host, _), _)| *host).collect();
        let items = all.into_iter().map(|item| (item.0.0, item));
        let started = Self::all_or_none(bench, &hosts, parallel::on_hosts(items, stops, start))?;
        // Asked for once no host is at work any more, for these ask how long a message takes.
        let asked = started.into_iter().map(|client| (client.host.clone(), client));
        let asked = parallel::on_hosts(asked, || false, |client| client.ask_clock());
        let clients = Self::all_or_none(bench, &hosts, asked)?;
        clients.iter().try_for_each(|client| client.describe(bench))?;
        Ok(clients)
    }

    /// Starts the agent that serves guests on a host, as those of drivers are started.
    ///
    /// # Errors
    /// Why there is none.
    pub fn start_on(
        bench: &Bench<'_>,
        site: &Site<'_>,
        place: Place<'_>,
        name: String,
        reach: Reach,
    ) -> Result<Self, String> {
        let wired = bench.plan.study.lab.wire.is_some();
        let client = Self::start(site, place, Self::spec(bench, name), (reach, wired))?.ask_clock()?;
        client.describe(bench)?;
        Ok(client)
    }

    /// Notes what its host is, once a run, where that is another.
    fn describe(&self, bench: &Bench<'_>) -> Result<(), String> {
        if self.clock.is_none() {
            return Ok(());
        }
        let name = format!("host {}", self.host);
        let (book, machines) = ((bench.book, bench.redact), &bench.machines);
        machines.describe(book, &name, self.link(), self.agent.hypervisor()).map_err(|error| error.to_string())
    }

    /// All of so many, or why not: each host that failed once.
    fn all_or_none(
        bench: &Bench<'_>,
        hosts: &[&str],
        results: Vec<Option<Result<Self, String>>>,
    ) -> Result<Vec<Self>, String> {
        let (mut clients, mut failures) = (Vec::new(), BTreeMap::new());
        for (host, result) in hosts.iter().zip(results) {
            match result {
                Some(Ok(client)) => clients.push(client),
                Some(Err(why)) => drop(failures.entry(*host).or_insert(why)),
                None => {}
            }
        }
        if clients.len() == hosts.len() {
            return Ok(clients);
        }
        let left = Self::end_all(clients);
        let all: Vec<String> = failures.into_values().chain(left).collect();
        match bench.cancel.reason() {
            Some(reason) if all.is_empty() => Err(format!("stopped by {reason}")),
            _ => Err(crate::text::together(&all)),
        }
    }

    /// The host of a driver, and what leads there; `None`: this host.
    fn host_of<'a>(bench: &Bench<'a>, driver: usize) -> Place<'a> {
        bench.drivers.get(driver % bench.drivers.len().max(1)).copied().unwrap_or((LOCAL, None))
    }

    /// Starts one.
    fn start(
        site: &Site<'_>,
        (host, machine): Place<'_>,
        spec: GuestSpec,
        (reach, wired): (Reach, bool),
    ) -> Result<Self, String> {
        match (machine, reach) {
            (None, Reach::Lab) => Self::start_in(site, &spec, ClientPlace::Lab),
            (None, Reach::Outside) => Self::start_in(site, &spec, ClientPlace::Host),
            (Some(_), Reach::Lab) if !wired => {
                Err(format!("host `{host}` is another machine, which cannot reach guests on the lab's network"))
            }
            (Some(machine), Reach::Outside | Reach::Lab) => {
                let started = Self::start_in(site, &spec, ClientPlace::Machine(machine));
                let started = started.map(|client| Self { host: host.to_owned(), ..client });
                started.map_err(|why| format!("on host `{host}`: {why}"))
            }
        }
    }

    /// Asks for the clock of its host, where that is another.
    fn ask_clock(mut self) -> Result<Self, String> {
        if self.host != LOCAL {
            let asked = ClientClock::ask(&self.host, self.link());
            self.clock = Some(asked.map_err(|why| format!("the clock of host `{}`: {why}", self.host))?);
        }
        Ok(self)
    }

    /// Starts it in the lab's client namespace, whatever the study's client is.
    pub fn start_here(bench: &Bench<'_>, site: &Site<'_>, name: String) -> Result<Self, String> {
        Self::start_in(site, &Self::spec(bench, name), ClientPlace::Lab)
    }

    /// Starts an agent for what a guest uses, with a namespace and an address of its own on the lab's network, on the CPUs that the plan
    /// keeps for drivers.
    pub fn start_services(
        bench: &Bench<'_>,
        site: &Site<'_>,
        name: String,
        data: Option<GuestData>,
    ) -> Result<Self, String> {
        let spec = GuestSpec { data, ..Self::spec(bench, name) };
        let agent = tare_platform::services(site, &spec).map_err(|error| error.to_string())?;
        let at = Some((agent.address(), agent.listen()));
        Ok(Self { agent, clock: None, at, host: LOCAL.to_owned() })
    }

    fn spec(bench: &Bench<'_>, name: String) -> GuestSpec {
        let cpus = &bench.plan.cpus.client;
        let cores = u32::try_from(cpus.len()).unwrap_or(u32::MAX).max(1);
        let size = GuestSize { cpus: cores, memory: ByteSize(1 << 30) };
        GuestSpec { cpu_set: cpus.clone(), ..GuestSpec::new(name, size) }
    }

    fn start_in(site: &Site<'_>, spec: &GuestSpec, place: ClientPlace<'_>) -> Result<Self, String> {
        let agent = tare_platform::client(site, spec, place).map_err(|error| error.to_string())?;
        let at = match place {
            ClientPlace::Lab => Some((site.lab.client_address(), site.lab.client_address())),
            ClientPlace::Machine(_) => Some((agent.address(), agent.listen())),
            ClientPlace::Host => None,
        };
        Ok(Self { agent, clock: None, at, host: LOCAL.to_owned() })
    }

    /// The channel to it.
    pub fn link(&self) -> &Arc<Link> {
        self.agent.link()
    }

    /// Its address as guests see it; `None` where that is not known.
    pub fn address(&self) -> Option<IpAddr> {
        self.at.map(|(address, _)| address)
    }

    /// It as a place for what a guest asks the driver's side for.
    pub fn backend(&self) -> BackendSite<'_> {
        let listen = self.at.map(|(_, listen)| listen);
        BackendSite { link: self.link(), address: self.address(), listen, host: self.clock().host() }
    }

    /// The clock of its machine.
    pub fn clock(&self) -> &dyn Clock {
        match &self.clock {
            Some(clock) => clock,
            None => &SameClock,
        }
    }

    /// What is known of a clock that is not the controller's: name and value of a fact.
    pub fn clock_fact(&self) -> Option<(String, String)> {
        let clock = self.clock.as_ref()?;
        Some((fact::clock_of(clock.host()?), clock.describe()))
    }

    /// What a reader must know of that clock, with the host's id.
    pub fn clock_flag(&self) -> Option<(&str, Flag)> {
        let clock = self.clock.as_ref()?;
        Some((clock.host()?, clock.flag()?))
    }

    /// Where it finds the data that it was given.
    pub fn data(&self) -> Option<&DataPlace> {
        self.agent.data()
    }

    /// Ends it.
    pub fn end(mut self) -> Result<(), String> {
        self.agent.destroy().map_err(|error| error.to_string())
    }

    /// Ends all, on all hosts at one time; why those did not go that did not.
    pub fn end_all(clients: Vec<Self>) -> Vec<String> {
        let clients = clients.into_iter().map(|client| (client.host.clone(), client));
        parallel::on_hosts(clients, || false, Self::end).into_iter().flatten().filter_map(Result::err).collect()
    }
}

/// The additional lead time where a driver is on another machine; zero where all are on this host.
pub fn further_lead(bench: &Bench<'_>) -> Duration {
    if bench.plan.study.roles.drives_locally() { Duration::ZERO } else { LEAD_ELSEWHERE }
}
