//! `ssh`: a guest or a host that exists already, on any hypervisor and anywhere.
//!
//! The system's ssh with the user's own configuration copies the agent there and is its channel. tare makes nothing of
//! the machine and limits nothing there: it tells what the machine has. The user's own commands may start, restore
//! and stop it. So it is on a network of its own, and not on the lab's.

mod destination;
mod held;
mod key;
mod machine;
mod options;
mod pool;
mod program;
mod remote;
mod vsphere;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tare_lab::Resource;
use tare_model::Refusal;
use tare_model::guest::{GuestSpec, ParityRow};
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::units::ByteSize;
use tare_model::{Span, field::FieldError};
use tare_wire::AgentFacts;

use self::destination::{Destination, Failed};
use self::held::{Held, Stop};
use self::options::{Kind, Options};
use self::pool::Pool;
use self::remote::Place;
use self::vsphere::{Counters, Facts, Machine};
use crate::builder::{GuestBuilder, Particulars, absolute};
use crate::entry::{Entry, FromOptions};
use crate::error::Result;
use crate::held::Held as _;
use crate::{Guest, HostCounters, HostMetrics, HostView, Notes, Platform, Reach, Site, parity};

const NAME: &str = "ssh";

/// Where sshd listens unless something else is said.
const SSH_PORT: u16 = 22;
/// How long the check waits for an answer.
const CHECK_LIMIT: Duration = Duration::from_secs(15);
/// The same for one attempt at a machine that is starting.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(20);

pub(crate) const ENTRY: Entry = Entry {
    reap: crate::held::reap::<Held>,
    variants: &[],
    colon: Some("host"),
    ..Entry::of::<Ssh>(
        NAME,
        "a guest or host that exists already, on any hypervisor, reached by ssh; your commands may start and stop it",
        Span::from_secs(3),
    )
};

/// What helps where there is no ssh.
const NO_CLIENT: &str = "Install the OpenSSH client (Debian: `apt install openssh-client`)";

struct Ssh {
    options: Options,
    machines: Arc<Pool>,
    /// Counters of the machines, where vSphere has them.
    counters: Option<Arc<Counters>>,
}

impl FromOptions for Ssh {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        options::read(value)
    }

    fn new(options: Options) -> Self {
        let machines = Pool::new(options.machines);
        let counters = options.vsphere.as_ref().map(|of| Counters::new(of.url.clone()));
        Self { options, machines, counters }
    }
}

impl Platform for Ssh {
    fn look(&self, _: &HostView) -> std::result::Result<Notes, Refusal> {
        destination::program().map_err(|reason| Refusal::new(reason, NO_CLIENT))?;
        self.options.vsphere.as_ref().map_or(Ok(()), |_| vsphere::installed().map(drop))?;
        Ok(Vec::new())
    }

    fn named_programs(&self) -> Vec<String> {
        let Options { restore, start, ready, stop, host_metrics, .. } = &self.options;
        let own = [restore, start, ready, stop].into_iter().flatten();
        let all = own.chain(host_metrics.as_ref().map(|asked| &asked.command));
        all.filter_map(|argv| argv.first().cloned()).collect()
    }

    fn check(&self, _: &HostView) -> std::result::Result<Notes, Refusal> {
        let version = destination::version().map_err(|reason| Refusal::new(reason, NO_CLIENT))?;
        let mut notes = vec![version];
        let refused = |Failed { why, remedy, .. }: Failed| Refusal::new(why, remedy);
        if let Some(of) = &self.options.vsphere {
            let (client, answers) = (vsphere::version()?, vsphere::greet(of, CHECK_RUN).map_err(refused)?);
            notes.push(format!(
                "`{client}` will be run on this host to revert, start and stop its machines and to read their counters; there answers {answers}"
            ));
            notes.push("it is not asked before a run, as vSphere starts it".into());
        } else if self.options.begins_it() {
            notes.push("it is not asked before a run, as a command of yours starts it".into());
        }
        if let Some(asked) = &self.options.host_metrics {
            let program = asked.command.first().map_or("", String::as_str);
            notes.push(format!(
                "its `host-metrics` command, `{program}`, will be run on this host while its trials last"
            ));
        }
        let answers = |options: Options| {
            let to = Destination::of(&options);
            address(&options, &to, CHECK_RUN)?;
            match &options.vsphere {
                Some(of) => Machine::find(of, CHECK_RUN, CHECK_LIMIT)?.snapshot(CHECK_RUN, &of.snapshot).map(drop),
                None if options.begins_it() => Ok(()),
                None => remote::greet(&to, CHECK_RUN, CHECK_LIMIT),
            }
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> =
                (1..=self.options.machines).map(|n| scope.spawn(move || answers(self.options.of(n)))).collect();
            // All are waited for, whatever one says.
            let said: Vec<_> = asked.into_iter().filter_map(|thread| thread.join().ok()).collect();
            said.into_iter().collect::<std::result::Result<(), Failed>>()
        })
        .map_err(refused)?;
        Ok(notes)
    }

    fn disclosures(&self) -> Vec<String> {
        let what = match self.options.kind {
            Kind::Guest => "It is a guest that existed before the run, on a hypervisor that tare does not see.",
            Kind::Host => "It is a whole host that existed before the run.",
        };
        let mut all = vec![
            what.to_owned(),
            "It is reached over a network that was there before the run; what that network costs is in its figures."
                .into(),
            "tare limits nothing there: CPUs and memory are what the machine has, read from inside.".into(),
            "Its CPU figures are its own kernel's, also those of a load that is to keep its CPUs busy to a share: time that the hypervisor took \
             from it (steal) is seen there, and what the hypervisor itself does for it is not. The host that carries it is not sampled, so no \
             service demand is reported."
                .into(),
        ];
        let start = match (&self.options.vsphere, self.options.begins_it()) {
            (Some(_), _) => {
                all.push("vSphere reverts it to a snapshot before each trial, and starts and stops it.".into());
                "Its start time is that of vSphere's revert and power-on, of one ssh connection and of the agent."
            }
            (None, true) => {
                "Its start time is that of the user's own commands, of one ssh connection and of the agent."
            }
            (None, false) => {
                all.push("The machine is the same in every trial: only the agent in it is fresh.".into());
                "Its start time is that of one ssh connection and of the agent: the machine was up before."
            }
        };
        all.push(start.into());
        if self.options.host_metrics.is_some() {
            let reported = "Figures of the host under it are by the user's command: they are shown as it prints them, stamped when they come, and \
                            nothing is judged by them.";
            all.push(reported.into());
        }
        if self.options.vsphere.is_some() {
            let reported = "Figures of it and of the host under it are vSphere's performance counters: means or sums over 20 s by the hypervisor's \
                            own account, laid at the end of their interval. Nothing is judged by them.";
            all.push(reported.into());
        }
        all
    }

    fn exclusive(&self) -> Vec<(&'static str, String)> {
        let port = self.options.port.unwrap_or(SSH_PORT);
        let all = (1..=self.options.machines).map(|number| self.options.of(number).host.to_ascii_lowercase());
        let machines = all.map(|host| ("machine", format!("{host} at port {port}")));
        let named = |number| Some(("virtual machine", self.options.of(number).vsphere?.vm));
        machines.chain((1..=self.options.machines).filter_map(named)).collect()
    }

    fn machines(&self) -> Option<u32> {
        Some(self.options.machines)
    }

    fn host_metrics(&self) -> Option<HostMetrics> {
        let options::HostMetrics { command, interval } = self.options.host_metrics.clone()?;
        Some(HostMetrics { command, interval })
    }

    fn machine_address(&self) -> Option<IpAddr> {
        self.options.address.as_ref().and_then(|address| address.of(1))
    }

    fn host_counters(&self) -> Option<HostCounters> {
        self.counters.as_ref().map(Counters::of_trial)
    }

    fn attachment(&self, _: Attach) -> Attachment {
        Attachment::by("the machine's own network")
    }

    fn reach(&self) -> Reach {
        Reach::Outside
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        let why = "its guests' memory is another machine's, and what is merged is this host's";
        Some(Refusal::new(why, "leave `merging` out of this arm, or measure guests of this host"))
    }

    fn versions(&self) -> Vec<(String, String)> {
        let own = ("ssh".to_owned(), destination::version().unwrap_or_else(|why| why));
        let client = self.options.vsphere.as_ref().map(|_| {
            let version = vsphere::version().unwrap_or_else(|refusal| refusal.reason);
            (vsphere::CLIENT.to_owned(), version)
        });
        std::iter::once(own).chain(client).collect()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut builder = GuestBuilder::new(site, spec);
        let failed = |builder: &GuestBuilder<'_>, tried: &str, Failed { why, remedy, .. }: Failed| {
            builder.failed(tried, why, &remedy)
        };
        let claim = self.machines.take().map_err(|why| {
            builder.failed("choose a machine", why, "Name more by `machines`, or measure fewer guests at one time")
        })?;
        let options = self.options.of(claim.number);
        let to = Destination::of(&options);
        let address =
            address(&options, &to, site.run_id).map_err(|error| failed(&builder, "find its address", error))?;
        let below = &options.directory;
        let place = Place::new(below, site.run_id, &spec.name)
            .map_err(|why| builder.failed("choose a place for its agent", why, "Is /dev mounted?"))?;
        let limit = options.command_timeout.duration();
        let machine = builder
            .aside(|_| options.vsphere.as_ref().map(|of| Machine::find(of, site.run_id, limit)).transpose())
            .map_err(|error| failed(&builder, "find it in vSphere", error))?;
        let number = claim.number;
        let stop = machine.clone().map(Stop::Vsphere).or_else(|| options.stop.clone().map(Stop::Command));
        let held = Held::new(site.run_id, (to, claim), place, stop, limit);
        let (own, ledger) = (held.clone(), Arc::clone(builder.site.ledger));
        let undo = move || match own.take_away_or_lose()? {
            None => Ok(()),
            Some(lost) => {
                let lost = Resource::Held { platform: NAME.to_owned(), token: lost.token() };
                ledger.planned(&lost).map(drop).map_err(|error| error.to_string())
            }
        };
        builder.hold_until(NAME, held.token(), Box::new(undo))?;
        bring_up(&options, machine.as_ref(), &mut builder, &held)?;
        held.begin();
        let agent = self.agent(site);
        builder
            .aside(|_| remote::copy(&held.to, site.run_id, &held.place, &agent))
            .map_err(|error| failed(&builder, "copy the agent there", error))?;
        let mut command = remote::agent(&held.to, site.run_id, &held.place)
            .map_err(|error| failed(&builder, "start the agent there", error))?;
        builder.spawn_command(&mut command)?;
        builder.greet(site.timeout)?;
        let mut parity = rows(spec, &builder.facts()?);
        let mut hypervisor = Vec::new();
        if let (Some(of), Some(machine), Some(counters)) = (&options.vsphere, machine, &self.counters) {
            let facts = builder.aside(|_| Facts::read(of, &machine, spec, site.run_id));
            let facts = facts.map_err(|error| failed(&builder, "ask vSphere what it is", error))?;
            held.watch(counters.watch(site.run_id, number, machine, facts.host));
            parity.extend(facts.rows);
            hypervisor = facts.sections;
        }
        let listen = options.listen.and_then(|listen| listen.of(1));
        let (address, parity) = (Some(address), Some(parity));
        builder.finish(Particulars { address, listen, parity, hypervisor, ..Particulars::default() })
    }
}

/// Stands for the run where none is under way.
const CHECK_RUN: &str = "check";

/// Where the client reaches the servers of one machine.
fn address(options: &Options, to: &Destination, run_id: &str) -> std::result::Result<IpAddr, Failed> {
    options.address.as_ref().and_then(|address| address.of(1)).map_or_else(|| to.address(run_id), Ok)
}

impl Ssh {
    fn agent(&self, site: &Site<'_>) -> PathBuf {
        absolute(self.options.agent.as_deref().unwrap_or(site.agent as &Path))
    }
}

/// Restores and starts a machine by vSphere or by the user's commands, and waits until it is ready.
fn bring_up(options: &Options, machine: Option<&Machine>, builder: &mut GuestBuilder<'_>, held: &Held) -> Result<()> {
    let run_id = builder.site.run_id;
    let limit = options.command_timeout.duration();
    if let (Some(of), Some(machine)) = (&options.vsphere, machine) {
        let failed = |tried: &str, Failed { why, remedy, .. }: Failed| builder.failed(tried, why, &remedy);
        machine.revert(run_id, &of.snapshot, limit).map_err(|error| failed("revert it to its snapshot", error))?;
        machine.power_on(run_id, limit).map_err(|error| failed("power it on", error))?;
    }
    let failed = |what: &str, why| builder.failed(&format!("run its `{what}` command"), why, "Try the command by hand");
    for (what, argv) in [("restore", &options.restore), ("start", &options.start)] {
        if let Some(argv) = argv {
            held::command(run_id, what, argv, limit).map_err(|why| failed(what, why))?;
        }
    }
    if let Some(argv) = &options.ready {
        held::until(limit, |left| held::command(run_id, "ready", argv, left)).map_err(|why| failed("ready", why))?;
    }
    // Before anything is copied: so a machine that is not there, or is another, leaves nothing to be looked for.
    let attempt = |left: Duration| match remote::greet(&held.to, run_id, left.min(ATTEMPT_LIMIT)) {
        Err(failed) if failed.is_final() => Ok(Err(failed)),
        other => other.map(Ok),
    };
    let greeted =
        if options.begins_it() { held::until(limit, attempt) } else { builder.aside(|_| attempt(ATTEMPT_LIMIT)) };
    let greeted = greeted.and_then(|last| last);
    greeted.map_err(|Failed { why, remedy, .. }| builder.failed("reach it", why, &remedy))
}

/// What the machine has, beside what was asked.
fn rows(spec: &GuestSpec, facts: &AgentFacts) -> Vec<ParityRow> {
    let cpus = parity::cpus_online(facts);
    let memory = parity::fact(facts, "memory total").and_then(parity::kilobytes);
    let asked = spec.size.memory.0;
    // A kernel keeps a part for itself before it counts: page descriptors (1.6 %), its own image, a crash kernel.
    let least = asked - asked / 8 - (64 << 20).min(asked / 4);
    let most = asked + asked / 64;
    vec![
        parity::row(
            "cpus",
            spec.size.cpus.to_string(),
            cpus.map(|cpus| cpus.to_string()),
            "CPUs online in the machine; tare sets no limit there",
        ),
        ParityRow {
            resource: "memory".into(),
            asked: spec.size.memory.to_string(),
            granted: memory.map(|bytes| ByteSize(bytes).to_string()),
            equal: memory.is_some_and(|bytes| (least..=most).contains(&bytes)),
            note: format!(
                "what the machine's kernel counts; equal from {} to {}, as a kernel keeps a part; tare sets no limit there",
                ByteSize(least),
                ByteSize(most)
            ),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::guest::GuestSize;

    #[test]
    fn what_the_machine_has_is_compared_with_what_was_asked() {
        let equal = |cpus: &str, memory: &str| {
            let facts =
                vec![("cpus online".to_owned(), cpus.to_owned()), ("memory total".to_owned(), memory.to_owned())];
            let size = GuestSize { cpus: 2, memory: ByteSize(1 << 30) };
            let spec = GuestSpec { cpu_set: vec![0], ..GuestSpec::new("g", size) };
            rows(&spec, &AgentFacts { facts }).iter().map(|row| row.equal).collect::<Vec<_>>()
        };
        assert_eq!(equal("0-1", "1000000 kB"), [true, true]);
        assert_eq!(equal("0,2", "700000 kB"), [true, false], "far less than asked");
        assert_eq!(equal("0-3", "2000000 kB"), [false, false]);
        assert_eq!(equal("not readable: x", "not readable: x"), [false, false]);
    }
}
