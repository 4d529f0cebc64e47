//! The driver's end: an agent where it can reach the guests.

use std::net::IpAddr;
use std::sync::Arc;
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

/// Added to the lead of a driver on another machine: the word to start is on its way there for a while, and a start
/// in the past would cost a part of the first phase.
const LEAD_ELSEWHERE: Duration = Duration::from_millis(500);

/// An agent that drives load or serves guests, on the CPUs that the plan keeps for that. A fresh one for every trial: what
/// one driver left behind in its process cannot move the next one's figures.
pub struct Client {
    agent: Box<dyn Guest>,
    /// The clock of the host that it runs on, where that is another.
    clock: Option<ClientClock>,
    /// Its address as guests see it, and what it binds to there; `None` where that is not known.
    at: Option<(IpAddr, IpAddr)>,
}

impl Client {
    /// Starts the agent of a driver, counted over all guests of the trial, on the host that the study gives it, where guests of this
    /// reach can be reached.
    pub fn start(
        bench: &Bench<'_>,
        site: &Site<'_>,
        (driver, name): (usize, String),
        reach: Reach,
    ) -> Result<Self, String> {
        let place = bench.drivers.get(driver % bench.drivers.len().max(1)).copied().unwrap_or((LOCAL, None));
        Self::start_on(bench, site, place, name, reach)
    }

    /// Starts an agent on a host, where guests of this reach can be reached: in the lab's client namespace, on this host's own network, or on a
    /// machine beside it. It is under no limit, as the driver must never be what is measured.
    pub fn start_on(
        bench: &Bench<'_>,
        site: &Site<'_>,
        (host, machine): Place<'_>,
        name: String,
        reach: Reach,
    ) -> Result<Self, String> {
        match (machine, reach) {
            (None, Reach::Lab) => Self::start_in(bench, site, name, ClientPlace::Lab),
            (None, Reach::Outside) => Self::start_in(bench, site, name, ClientPlace::Host),
            (Some(_), Reach::Lab) if bench.plan.study.lab.wire.is_none() => {
                Err(format!("host `{host}` is another machine, which cannot reach guests on the lab's network"))
            }
            (Some(machine), Reach::Outside | Reach::Lab) => {
                let started = Self::start_in(bench, site, name, ClientPlace::Machine(machine));
                let mut client = started.map_err(|why| format!("on host `{host}`: {why}"))?;
                client.clock = Some(ClientClock::ask(host, client.link())?);
                let described = bench.machines.describe(
                    (bench.book, bench.redact),
                    &format!("host {host}"),
                    client.link(),
                    client.agent.hypervisor(),
                );
                described.map_err(|error| error.to_string())?;
                Ok(client)
            }
        }
    }

    /// Starts it in the lab's client namespace, whatever the study's client is.
    pub fn start_here(bench: &Bench<'_>, site: &Site<'_>, name: String) -> Result<Self, String> {
        Self::start_in(bench, site, name, ClientPlace::Lab)
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
        Ok(Self { agent, clock: None, at })
    }

    fn spec(bench: &Bench<'_>, name: String) -> GuestSpec {
        let cpus = &bench.plan.cpus.client;
        let cores = u32::try_from(cpus.len()).unwrap_or(u32::MAX).max(1);
        let size = GuestSize { cpus: cores, memory: ByteSize(1 << 30) };
        GuestSpec { cpu_set: cpus.clone(), ..GuestSpec::new(name, size) }
    }

    fn start_in(bench: &Bench<'_>, site: &Site<'_>, name: String, place: ClientPlace<'_>) -> Result<Self, String> {
        let spec = Self::spec(bench, name);
        let agent = tare_platform::client(site, &spec, place).map_err(|error| error.to_string())?;
        let at = match place {
            ClientPlace::Lab => Some((site.lab.client_address(), site.lab.client_address())),
            ClientPlace::Machine(_) => Some((agent.address(), agent.listen())),
            ClientPlace::Host => None,
        };
        Ok(Self { agent, clock: None, at })
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
}

/// The additional lead time where a driver is on another machine; zero where all are on this host.
pub fn further_lead(bench: &Bench<'_>) -> Duration {
    if bench.plan.study.roles.drives_locally() { Duration::ZERO } else { LEAD_ELSEWHERE }
}
