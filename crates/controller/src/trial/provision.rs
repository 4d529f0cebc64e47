//! The measured guests and all that surrounds them, up to where the workload is set up.

use std::sync::Arc;

use tare_model::fact;
use tare_model::guest::{GuestData, GuestSize, GuestSpec};
use tare_model::token::Token;
use tare_model::trial::Phase;
use tare_platform::{Guest, Reach};
use tare_wire::Request;
use tare_workload::Data;

use super::target::{Target, named, where_they_differ};
use super::{Gathered, Stop, Trial};
use crate::client::Client;
use crate::idle::IdleMemory;
use crate::neighbours;
use crate::parallel;
use crate::text::fit;
use crate::time_limits::TIMEOUT;

/// Facts of a guest that may name the host that carries it.
const NAMES_THE_HOST: [&str; 2] = ["host name", "control groups"];

impl Trial<'_> {
    /// What is asked for the n-th measured guest.
    pub(super) fn target_spec(&self, n: usize, name: String) -> GuestSpec {
        let traits = self.task.workload.traits_in(self.case);
        let own = traits.guest(u32::try_from(n).unwrap_or(u32::MAX));
        let size = own.map_or(self.case.guest, |guest| guest.size);
        self.guest_spec(name, size, self.task.data.and_then(|data| data.guest(n)))
    }

    pub(super) fn guest_spec(&self, name: String, size: GuestSize, data: Option<&GuestData>) -> GuestSpec {
        let cpu_set = self.bench.plan.cpus.guests.clone();
        let (data, seccomp) = (data.cloned(), self.case.seccomp);
        GuestSpec { name, size, cpu_set, data, merge: self.merges(), balloon: self.balloons(), seccomp }
    }

    /// Makes the measured guests, side by side, and notes what is known of them.
    pub(super) fn provision(&self, gathered: &mut Gathered) -> Result<(), Stop> {
        let (stem, count) = (self.stem(), self.case.load.guests().count as usize);
        let name = |n: usize| if count == 1 { format!("t{stem}") } else { format!("t{stem}x{n}") };
        let specs: Vec<GuestSpec> = (0..count).map(|n| self.target_spec(n, name(n))).collect();
        let what = |n: usize| match count {
            1 => String::new(),
            all => format!("{}: ", named(n, all, &specs[n].name)),
        };
        let started = neighbours::start(self.task.platform, &self.bench.site, &specs, what, &mut gathered.guests);
        // Those that came up are taken away whatever became of the others.
        gathered.targets = gathered.guests.len();
        started.map_err(|reason| Stop { phase: Phase::Provision, reason })?;
        gathered.guests.iter().for_each(|target| gathered.starts.add(&**target));
        self.tell_standing(gathered);
        self.tell_facts(gathered)
    }

    /// Tells whoever governs the host's memory which guests stand.
    pub(super) fn tell_standing(&self, gathered: &Gathered) {
        let groups = gathered.guests.iter().map(|guest| guest.groups()).collect();
        let promised = gathered.guests.iter().map(|guest| guest.spec().size.memory.0).sum();
        gathered.standing.set(groups, promised);
        let balloons = gathered.guests.iter().filter_map(|guest| Some((guest.spec().name.clone(), guest.balloon()?)));
        gathered.standing.set_balloons(balloons.collect());
    }

    /// Notes the first guest from inside, its machine where that is not of this host's lab, and where the guests' data are.
    pub(super) fn tell_facts(&self, gathered: &mut Gathered) -> Result<(), Stop> {
        let Some(first) = gathered.guests.first() else { return Ok(()) };
        if self.task.platform.reach() == Reach::Outside {
            let (bench, name) = (self.bench, format!("arm {}", self.planned.arm));
            let described =
                bench.machines.describe((bench.book, bench.redact), &name, first.link(), first.hypervisor());
            described.map_err(|error| Stop { phase: Phase::Provision, reason: error.to_string() })?;
        }
        let facts = first.facts().facts.iter();
        let shown = facts.filter(|(name, _)| !self.bench.redact || !NAMES_THE_HOST.contains(&&**name));
        gathered.facts.extend(shown.map(|(name, value)| (format!("guest {name}"), value.clone())));
        let data = self.data_facts(&gathered.guests);
        gathered.facts.extend(data);
        Ok(())
    }

    /// What the guests' data lie on, and how they got there.
    fn data_facts(&self, targets: &[Box<dyn Guest>]) -> Vec<(String, String)> {
        if !self.task.data.is_some_and(Data::to_guests) {
            return Vec::new();
        }
        let places: Vec<_> = targets.iter().filter_map(|target| target.data()).collect();
        if places.len() < targets.len() {
            let none = "nothing that was handed over: this platform cannot, so each guest makes its own";
            return vec![(fact::DATA_ON.to_owned(), none.to_owned())];
        }
        let facts: Vec<_> = places.into_iter().map(fact::of_data).collect();
        let of_first = facts.iter().take(1).flatten();
        let rows = of_first.map(|(name, _)| {
            let values = facts.iter().flatten().filter(|(other, _)| other == name).map(|(_, value)| value.clone());
            (name, values.collect::<Vec<_>>())
        });
        rows.flat_map(|(name, values)| where_they_differ(name, &values)).collect()
    }

    /// Sees that every measured guest answers, notes what it takes of memory, and starts its drivers' agents.
    pub(super) fn connect(&self, gathered: &mut Gathered) -> Result<Vec<Target>, Stop> {
        for (n, target) in gathered.measured().iter().enumerate() {
            let asked = target.link().call(Request::Clock, TIMEOUT);
            asked.map_err(|error| self.stop(Phase::Connect, n, &error, gathered))?;
        }
        weigh_idle(gathered);
        let guests = gathered.measured();
        let mut clients = self.start_clients(0, guests.len())?.into_iter();
        let drivers = self.case.load.guests().drivers as usize;
        let targets = guests.iter().enumerate().map(|(index, guest)| {
            let own = clients.by_ref().take(drivers).collect();
            self.target((index, index), &**guest, own)
        });
        targets.collect()
    }

    /// A guest with its drivers' agents. `serial`: which it is of all that the trial has had.
    pub(super) fn target(
        &self,
        (index, serial): (usize, usize),
        guest: &dyn Guest,
        clients: Vec<Client>,
    ) -> Result<Target, Stop> {
        let token = random_token().map_err(|reason| Stop { phase: Phase::Connect, reason })?;
        self.target_by((index, serial), guest, clients, token)
    }

    /// The same, whose servers and drivers have this token.
    pub(super) fn target_by(
        &self,
        (index, serial): (usize, usize),
        guest: &dyn Guest,
        clients: Vec<Client>,
        token: Token,
    ) -> Result<Target, Stop> {
        let (services, backend) = (self.start_services(index, serial)?, self.start_backend(index, serial)?);
        let others = clients.iter().chain(&services).chain(&backend);
        admit(token, guest, others).map_err(|reason| Stop { phase: Phase::Connect, reason })?;
        Ok(Target {
            index,
            token,
            link: Arc::clone(guest.link()),
            address: guest.address(),
            listen: guest.listen(),
            data: guest.data().cloned(),
            commands: guest.commands().cloned(),
            size: guest.spec().size,
            clients,
            services,
            backend,
        })
    }

    /// The name of an agent beside the guests, the `serial`-th of its kind that the trial has had.
    fn agent_name(&self, kind: char, serial: usize) -> String {
        let stem = self.stem();
        if serial == 0 { format!("{kind}{stem}") } else { format!("{kind}{stem}x{serial}") }
    }

    /// Starts what a guest uses, where its workload asks for that and the guest can reach it.
    fn start_services(&self, index: usize, serial: usize) -> Result<Option<Client>, Stop> {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let traits = self.task.workload.traits_in(self.case);
        if !traits.guest(number).is_some_and(|guest| guest.work.has_services_beside())
            || self.task.platform.reach() != Reach::Lab
        {
            return Ok(None);
        }
        let name = self.agent_name('s', serial);
        let data = self.task.data.and_then(|data| data.service(index));
        let started = Client::start_services(self.bench, &self.bench.site, name, data.cloned());
        let failed = |reason: String| Stop {
            phase: Phase::Connect,
            reason: format!("what the guest uses on the host: {}", fit(&reason)),
        };
        started.map(Some).map_err(failed)
    }

    /// Starts what serves a guest that asks the driver's side for something, where the study names a host for that.
    fn start_backend(&self, index: usize, serial: usize) -> Result<Option<Client>, Stop> {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let traits = self.task.workload.traits_in(self.case);
        let asks = traits.guest(number).is_some_and(|guest| guest.work.asks_driver_side());
        let Some(place) = self.bench.services.filter(|_| asks) else { return Ok(None) };
        let (name, reach) = (self.agent_name('b', serial), self.task.platform.reach());
        let failed = |reason: String| Stop {
            phase: Phase::Connect,
            reason: format!("what the guest asks the driver's side for: {}", fit(&reason)),
        };
        Client::start_on(self.bench, &self.bench.site, place, name, reach).map(Some).map_err(failed)
    }

    /// Starts the agents of the drivers of so many guests, the first of which is the trial's guest of this number.
    pub(super) fn start_clients(&self, first: usize, guests: usize) -> Result<Vec<Client>, Stop> {
        let drivers = self.case.load.guests().drivers as usize;
        let named = |driver: usize| (driver, self.agent_name('c', driver));
        let all = (first * drivers..(first + guests) * drivers).map(named).collect();
        Client::start_all(self.bench, &self.bench.site, all, self.task.platform.reach()).map_err(|reason| {
            let reason = format!("the driver's agent: {}", fit(&reason));
            Stop { phase: Phase::Connect, reason }
        })
    }

    /// Reads back what was granted; what is not what was asked becomes a flag, never an assumption.
    pub(super) fn check_parity(&self, gathered: &mut Gathered) {
        (0..gathered.targets).for_each(|n| self.check_parity_of(n, gathered));
    }

    /// The same of one guest. The rows of the first are kept, and there is one flag for all.
    pub(super) fn check_parity_of(&self, n: usize, gathered: &mut Gathered) {
        let all = gathered.targets;
        let Some(target) = gathered.measured().get(n) else { return };
        let mut rows = target.parity();
        if n == 0 && self.task.platform.reach() == Reach::Lab {
            rows.extend(self.bench.site.lab.parity());
        }
        let who = if all > 1 { format!("{}: ", named(n, all, &target.spec().name)) } else { String::new() };
        let unequal: Vec<String> = rows
            .iter()
            .filter(|row| !row.equal)
            .map(|row| {
                let granted = row.granted.as_deref().unwrap_or("nothing");
                format!("{who}{}: asked {}, granted {granted} ({})", row.resource, row.asked, row.note)
            })
            .collect();
        if n == 0 {
            gathered.parity = rows;
        }
        if unequal.is_empty() {
            return;
        }
        let unequal = unequal.join("; ");
        match gathered.flags.iter_mut().find(|flag| flag.kind == "parity") {
            Some(flag) => flag.detail = format!("{}; {unequal}", flag.detail),
            None => gathered.flag("parity", unequal),
        }
    }

    /// Starts the neighbours, if the trial has any of its own, and busy loops in them and, if the case says so, in the measured guests. Where
    /// the case is a condition, what neighbours do is for later.
    pub(super) fn make_busy(&self, gathered: &mut Gathered, own_neighbours: bool) -> Result<(), String> {
        if let Some(wanted) = self.case.neighbours.filter(|_| own_neighbours) {
            let specs: Vec<GuestSpec> = (0..wanted.count)
                .map(|n| self.guest_spec(format!("n{}x{n}", self.stem()), wanted.guest, None))
                .collect();
            let what = |n: usize| format!("neighbour {}: ", specs[n].name);
            neighbours::start(self.task.platform, &self.bench.site, &specs, what, &mut gathered.guests)?;
            self.tell_standing(gathered);
        }
        if self.case.schedule.condition().is_some() {
            return Ok(());
        }
        let first = if self.case.busy_target { 0 } else { gathered.targets };
        gathered.busy = neighbours::keep_busy(&gathered.guests, first)?;
        Ok(())
    }
}

/// A token that nobody else has.
pub(super) fn random_token() -> Result<Token, String> {
    let mut bits = [0; Token::LEN];
    let drawn = rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::empty());
    if drawn != Ok(bits.len()) {
        return Err(format!("the kernel gives no random bits for a token: {drawn:?}"));
    }
    Ok(Token::new(bits))
}

/// Gives all agents of a guest its token: who does not show it is let into none of their servers.
fn admit<'a>(token: Token, guest: &'a dyn Guest, others: impl Iterator<Item = &'a Client>) -> Result<(), String> {
    let links = others.map(Client::link).chain([guest.link()]);
    let asked = parallel::on_hosts(
        links.enumerate(),
        || false,
        |link| link.call(Request::Admit { token }, TIMEOUT).map(drop).map_err(|error| error.to_string()),
    );
    asked.into_iter().flatten().collect()
}

/// Notes what a guest takes of the host's memory, before anything was asked of it but whether it is there: the mean
/// where several are measured.
pub(super) fn weigh_idle(gathered: &mut Gathered) {
    let groups: Vec<_> = gathered.measured().iter().map(|target| target.groups()).collect();
    // Side by side, for each may have to wait until the kernel's books are settled.
    let read: Vec<Option<IdleMemory>> = std::thread::scope(|scope| {
        let reading: Vec<_> = groups.iter().map(|groups| scope.spawn(|| crate::idle::read(groups))).collect();
        reading.into_iter().map(|thread| thread.join().ok().flatten()).collect()
    });
    let Some(idle) = read.into_iter().collect::<Option<Vec<_>>>().and_then(|all| IdleMemory::mean(&all)) else {
        return;
    };
    gathered.idle_memory_bytes = Some(idle.bytes());
    gathered.facts.extend(idle.facts());
}
