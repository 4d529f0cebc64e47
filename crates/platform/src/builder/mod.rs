//! A guest that is being made, step by step. Each step writes down what it is about to make; a step that
//! fails takes back everything before it.

mod adoption;
mod data;
mod greeting;
mod launches;
mod services;

use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tare_lab::{
    Cgroup, LabError, Limits, NetNs, PROCESSES, Place, PromptJoins, Resource, Tap, check_on_disk, make_disk_directory,
};
use tare_model::environment::Section;
use tare_model::guest::{DataPlace, GuestSpec, ParityRow};
use tare_model::{ByteSize, Refusal};
use tare_wire::confine::Confinement;
use tare_wire::launch::Launch;
use tare_wire::{AgentFacts, Link, Reply, Request, USER_SPACE_BEGAN, WireError};

use crate::channel::{Channel, Tail};
use crate::error::{PlatformError, Result};
use crate::guest::{Charges, Counts, Parts, Pause, RunningGuest, Snapshot, Undo};
use crate::held::Held;
use crate::{Balloon, Guest, Site, StartParts, confinement, guest_mount, merging, parity};

pub(crate) use self::adoption::parent_named;
pub(crate) use crate::launch::{absolute, environment, limits, plain_launch};

/// What is asked of a balloon, and granted where the guest's driver answers for it.
const SIZED: &str = "by the arm's policy";
/// The guest's interface on the lab's network.
const GUEST_LINK: &str = "eth0";

/// A guest that is being made.
pub(crate) struct GuestBuilder<'a> {
    pub site: &'a Site<'a>,
    pub spec: &'a GuestSpec,
    pub parts: Parts,
    began: Instant,
    /// Held until the guest has started, so that no start waits for the kernel where another does not.
    joins: Option<PromptJoins>,
    /// What went by since then and is no part of the start.
    aside: Duration,
    /// Memory that the host gives beyond the guest's own, bytes.
    allowance: u64,
    /// From the beginning to the agent's first answer, once it came.
    start_time: Duration,
    /// Where the guest finds its data, once they were restored for it.
    data: Option<DataPlace>,
    /// What was read back of programs that carry the guest.
    noted: Vec<ParityRow>,
    /// Whether what serves the guest beside its virtual CPUs is outside its CPU quota.
    outside_quota: bool,
    /// How its agent confines itself, where it does.
    confined: Option<Confinement>,
}

/// What a guest that stands has beside what every guest has.
#[derive(Default)]
pub(crate) struct Particulars {
    /// Where its servers listen, when that is not on the lab's network.
    pub address: Option<IpAddr>,
    /// What its servers bind to, when that is another address.
    pub listen: Option<IpAddr>,
    /// What the platform itself read back of what was asked, instead of what [`parity::inside`] reads in a guest
    /// whose kernel is the host's.
    pub parity: Option<Vec<ParityRow>>,
    /// Tells its CPU time by kind of thread.
    pub charges: Option<Charges>,
    /// Reads what KVM counts of it.
    pub counts: Option<Counts>,
    /// Its balloon, or why it has none; `None` where none was asked for, or cannot be had.
    pub balloon: Option<std::result::Result<Arc<dyn Balloon>, String>>,
    /// Where it finds its data, when these are not in directories of the host's ([`GuestBuilder::data_directories`]).
    pub data: Option<DataPlace>,
    /// What the hypervisor under it says, where it is asked.
    pub hypervisor: Vec<Section>,
    /// Whether a machine was booted for it: its kernel's clock began in this start.
    pub booted: bool,
    /// Stops it and lets it run, where that is not by its control group.
    pub pause: Option<Pause>,
    /// Takes a snapshot of it; `None` where none can be taken.
    pub snapshot: Option<Snapshot>,
}

impl<'a> GuestBuilder<'a> {
    /// Nothing is made yet. The guest's start counts from here, so this is the first line of every platform's
    /// [`crate::Platform::start`].
    pub(crate) fn new(site: &'a Site<'a>, spec: &'a GuestSpec) -> Self {
        let parts = Parts::new(&spec.name, site.ledger);
        let joins = Some(PromptJoins::begin());
        let (began, aside) = (Instant::now(), Duration::ZERO);
        Self {
            site,
            spec,
            parts,
            began,
            joins,
            aside,
            allowance: 0,
            start_time: Duration::ZERO,
            data: None,
            noted: Vec::new(),
            outside_quota: false,
            confined: None,
        }
    }

    /// Does what is no part of a guest's start: tare's own bookkeeping, and work that is done once a run.
    pub(crate) fn aside<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let began = Instant::now();
        let done = work(self);
        self.aside += began.elapsed();
        done
    }

    /// The link to the lab's network.
    pub(crate) fn attach(&mut self) -> Result<PathBuf> {
        let port = self.site.lab.attach(&self.spec.name).map_err(|source| self.lab_error(source))?;
        Ok(self.parts.port.insert(port).netns.path())
    }

    /// A tap on the lab's network, for a guest that has a network card of its own. The program that opens it must
    /// be in the namespace that the tap is in.
    pub(crate) fn tap(&mut self, queues: u32) -> Result<&Tap> {
        let tap = self.site.lab.tap(&self.spec.name, queues).map_err(|source| self.lab_error(source))?;
        Ok(self.parts.tap.insert(tap))
    }

    /// An address on the lab's network for a guest whose link another program makes.
    pub(crate) fn reserve(&self) -> Result<Place> {
        self.site.lab.reserve(&self.spec.name).map_err(|source| self.lab_error(source))
    }

    /// Takes a link that another program made in the namespace `from` into the lab.
    pub(crate) fn adopt(&mut self, place: Place, from: &NetNs, name: &str) -> Result<&Tap> {
        let tap = self.site.lab.adopt(place, from, name).map_err(|source| self.lab_error(source))?;
        Ok(self.parts.tap.insert(tap))
    }

    /// As [`Self::limit`], for a guest that carries a kernel and devices of its own: the limit on memory is so much
    /// higher than what the guest itself is promised.
    pub(crate) fn limit_machine(&mut self, allowance: ByteSize) -> Result<Vec<PathBuf>> {
        self.allowance = allowance.0;
        self.limit()
    }

    /// Takes the CPU quota off: a machine's virtual CPUs are bounded by their number, and what serves them beside is then not. To be
    /// called before [`Self::limit_machine`].
    pub(crate) fn lift_quota(&mut self) {
        self.outside_quota = true;
    }

    /// The control group with the guest's limits; the files through which a process joins it.
    pub(crate) fn limit(&mut self) -> Result<Vec<PathBuf>> {
        let plan = Cgroup::plan(self.site.run_id, &self.spec.name).map_err(|source| self.lab_error(source))?;
        self.write_down(&plan.resource())?;
        let limits = Limits {
            cpu_quota_cpus: (!self.outside_quota).then_some(self.spec.size.cpus),
            cpu_set: self.spec.cpu_set.clone(),
            memory_bytes: Some(self.spec.size.memory.0.saturating_add(self.allowance)),
            processes: Some(PROCESSES),
        };
        let cgroup = Cgroup::create(plan, &limits).map_err(|source| self.lab_error(source))?;
        Ok(self.parts.cgroup.insert(cgroup).procs_files())
    }

    /// An address on the lab's network for what carries the guest.
    pub(crate) fn sut_address(&self) -> Result<IpAddr> {
        self.site.lab.sut_address().map_err(|source| self.lab_error(source))
    }

    /// The directories of the control group.
    pub(crate) fn groups(&self) -> Vec<PathBuf> {
        self.parts.cgroup.as_ref().map(|cgroup| cgroup.paths().to_vec()).unwrap_or_default()
    }

    /// A directory of the guest's own in the run's state directory.
    pub(crate) fn directory(&mut self) -> Result<PathBuf> {
        let state = self.site.state.to_owned();
        self.make_directory(&state)
    }

    /// The run's directory on a disk.
    pub(crate) fn disk(&self) -> Result<PathBuf> {
        make_disk_directory(self.site.run_id).map_err(|source| self.lab_error(source))
    }

    /// A directory of the guest's own on a disk, for what it writes.
    pub(crate) fn layers(&mut self) -> Result<PathBuf> {
        let run = self.disk()?;
        check_on_disk(&run).map_err(|source| self.lab_error(source))?;
        self.make_directory(&run)
    }

    /// A directory of the guest's own in one of the run's. The run's own is never made here: after a teardown it would
    /// come back, open to others, and stop every run after it.
    fn make_directory(&mut self, run: &Path) -> Result<PathBuf> {
        let guests = run.join("guests");
        let path = guests.join(&self.spec.name);
        self.write_down(&Resource::Directory { path: path.clone() })?;
        self.parts.directories.push(path.clone());
        [&guests, &path].into_iter().try_for_each(|directory| make_unless_there(directory)).map_err(|error| {
            let tried = format!("make its directory {}", path.display());
            self.failed(&tried, error.to_string(), "Is the file system full or read-only?")
        })?;
        Ok(path)
    }

    /// What the platform keeps elsewhere. It goes when the guest goes.
    pub(crate) fn hold(&mut self, platform: &str, held: impl Held) -> Result<()> {
        let (token, agent) = (held.token(), absolute(self.site.agent));
        self.hold_until(platform, token, Box::new(move || held.take_away(&agent)))
    }

    /// The same where more has to be undone than a token says.
    pub(crate) fn hold_until(&mut self, platform: &str, token: serde_json::Value, undo: Undo) -> Result<()> {
        self.write_down(&Resource::Held { platform: platform.to_owned(), token })?;
        self.parts.undo = Some(undo);
        Ok(())
    }

    /// Starts the agent by a launch and waits until it answers.
    pub(crate) fn start(mut self, launch: &Launch) -> Result<Box<dyn Guest>> {
        self.spawn(launch)?;
        self.greet(self.site.timeout)?;
        self.finish(Particulars::default())
    }

    /// Starts the process whose standard input and output are the channel.
    pub(crate) fn spawn(&mut self, launch: &Launch) -> Result<()> {
        let mut command = self.entering(launch)?;
        let channel = Channel::spawn_entering(&mut command).map_err(|error| self.not_started(&command, &error))?;
        self.parts.channel = Some(channel);
        Ok(())
    }

    /// The same by a command of the platform's own, which runs outside all namespaces and control groups of the
    /// guest's. Its environment is the caller's business.
    pub(crate) fn spawn_command(&mut self, command: &mut Command) -> Result<()> {
        let channel = Channel::spawn(command).map_err(|error| self.not_started(command, &error))?;
        self.parts.channel = Some(channel);
        Ok(())
    }

    /// Notes what was read back, for the report.
    pub(crate) fn note(&mut self, row: ParityRow) {
        self.noted.push(row);
    }

    /// The process whose standard input and output are the channel.
    pub(crate) fn channel_pid(&self) -> Option<u32> {
        self.parts.channel.as_ref().map(Channel::pid)
    }

    /// Keeps the end of what a console says.
    pub(crate) fn console(&mut self, stream: impl Read + Send + 'static) {
        self.parts.consoles.push(Tail::follow(stream).0);
    }

    /// How the guest is killed where it is neither in the control group nor a process that was started here.
    pub(crate) fn kill_by(&mut self, killer: Undo) {
        self.parts.killer = Some(killer);
    }

    /// The guest from inside.
    pub(crate) fn facts(&mut self) -> Result<AgentFacts> {
        let answer = self.link()?.call(Request::Facts, self.site.timeout);
        match answer {
            Ok(Reply::Facts(facts)) => Ok(facts),
            Ok(_) => Err(self.no_answer(&WireError::Unexpected { request: "tell its facts" })),
            Err(error) => Err(self.no_answer(&error)),
        }
    }

    /// The channel to its agent, which has answered.
    pub(crate) fn link(&self) -> Result<Arc<Link>> {
        self.parts.link.clone().ok_or_else(|| {
            self.failed("reach its agent", "there is no channel".into(), "Report this: it should not happen")
        })
    }

    /// The rows of the control group, read back.
    fn group_rows(&self) -> Vec<ParityRow> {
        let Some(cgroup) = &self.parts.cgroup else { return parity::unlimited(self.spec) };
        let mut size = self.spec.size;
        size.memory.0 = size.memory.0.saturating_add(self.allowance);
        let mut rows = cgroup.parity(&size, &self.spec.cpu_set);
        for row in rows.iter_mut().filter(|row| self.outside_quota && row.resource == "cpu quota") {
            row.asked = format!("none: {} virtual CPUs, and beside them what serves the guest", size.cpus);
            row.equal = row.granted.as_deref() == Some("no limit");
        }
        if self.allowance > 0 {
            for row in rows.iter_mut().filter(|row| row.resource.contains("memory")) {
                row.note = format!(
                    "{}; {} beyond the guest's own memory are for what carries it",
                    row.note,
                    ByteSize(self.allowance)
                );
            }
        }
        rows
    }

    /// Reads back what was granted. The guest stands.
    pub(crate) fn finish(mut self, particulars: Particulars) -> Result<Box<dyn Guest>> {
        let link = self.link()?;
        let facts = self.facts()?;
        let mut rows =
            if self.parts.cgroup.is_none() && particulars.parity.is_some() { Vec::new() } else { self.group_rows() };
        let mtu = self.parts.port.as_ref().map(|_| (GUEST_LINK, self.site.mtu));
        rows.extend(particulars.parity.unwrap_or_else(|| parity::inside(self.spec, &facts, mtu)));
        rows.append(&mut self.noted);
        rows.extend(self.confined.iter().flat_map(|asked| confinement::rows(asked, &facts)));
        if self.spec.merge && !merging::is_read_back(&rows) {
            rows.push(merging::row(self.channel_pid()));
        }
        if self.spec.balloon {
            let (sized, note) = match &particulars.balloon {
                Some(Ok(_)) => {
                    (Some(SIZED.to_owned()), "its driver says what of the guest's memory is unused".to_owned())
                }
                Some(Err(why)) => (None, why.clone()),
                None => (None, "this platform has none that is sized".to_owned()),
            };
            rows.push(parity::row("balloon that is sized", SIZED.to_owned(), sized, note));
        }
        let Parts { port, tap, .. } = &self.parts;
        let in_lab = port.as_ref().map(|port| port.address).or(tap.as_ref().map(|tap| tap.place().address));
        let address = particulars.address.or(in_lab).unwrap_or_else(|| IpAddr::from([127, 0, 0, 1]));
        let listen = particulars.listen.unwrap_or(address);
        let parts = std::mem::replace(&mut self.parts, Parts::new(&self.spec.name, self.site.ledger));
        let (spec, charges, counts) = (self.spec.clone(), particulars.charges, particulars.counts);
        let balloon = particulars.balloon.and_then(std::result::Result::ok);
        let start_parts = particulars.booted.then(|| self.start_parts(&link, &facts)).flatten();
        let mut data = particulars.data.or(self.data);
        rows.extend(data.as_mut().and_then(|place| guest_mount::look(&link, place, self.site.timeout)));
        let (times, parity) = ((self.start_time.as_secs_f64(), start_parts), rows);
        Ok(Box::new(RunningGuest {
            spec,
            link,
            address,
            listen,
            parity,
            facts,
            hypervisor: particulars.hypervisor,
            times,
            charges,
            counts,
            balloon,
            data,
            pause: particulars.pause,
            snapshot: particulars.snapshot,
            still: AtomicBool::new(false),
            parts,
        }))
    }

    /// What the start was made of, by the clock of the guest's kernel.
    fn start_parts(&self, link: &Link, facts: &AgentFacts) -> Option<StartParts> {
        let began_ns = parity::fact(facts, USER_SPACE_BEGAN)?.parse().ok()?;
        StartParts::split(self.start_time, link.kernel_age(), Duration::from_nanos(began_ns))
    }

    /// The command that has the agent's program carry out a launch. A platform may add to its environment what the program that
    /// it starts reads there.
    pub(crate) fn entering(&self, launch: &Launch) -> Result<Command> {
        let description = serde_json::to_string(launch).map_err(|error| {
            self.failed("describe its start", error.to_string(), "Report this: it should not happen")
        })?;
        let mut command = Command::new(self.site.agent);
        command.arg("enter").arg(description);
        // No variable of the user's shell may make one arm differ from another.
        command.env_clear().envs(environment(self.site.run_id));
        Ok(command)
    }

    pub(crate) fn not_started(&self, command: &Command, error: &std::io::Error) -> PlatformError {
        let tried = format!("start {}", Path::new(command.get_program()).display());
        self.failed(&tried, error.to_string(), "Is the program there and executable?")
    }

    pub(crate) fn write_down(&mut self, resource: &Resource) -> Result<()> {
        // The ledger waits for its file: that time is tare's own and differs from one platform to the next.
        let number = self.aside(|builder| builder.site.ledger.planned(resource));
        let number = number.map_err(|source| PlatformError::Ledger { guest: self.spec.name.clone(), source })?;
        self.parts.written_down.push(number);
        Ok(())
    }

    pub(crate) fn lab_error(&self, source: LabError) -> PlatformError {
        PlatformError::Lab { guest: self.spec.name.clone(), source }
    }

    /// The agent did not answer: says how the process ended, if it did, and what it printed.
    pub(crate) fn no_answer(&mut self, error: &WireError) -> PlatformError {
        let mut why = error.to_string();
        if let Some(channel) = &mut self.parts.channel {
            // An end is near when the channel broke; a guest that hangs is not waited for.
            let timeout = Duration::from_millis(if matches!(error, WireError::Timeout { .. }) { 0 } else { 500 });
            if let Ok(Some(status)) = channel.wait(timeout) {
                why = format!("{why} ({status})");
            }
        }
        let memory = self.parts.cgroup.as_ref().and_then(|group| group.memory().ok());
        if let Some(memory) = memory.filter(|memory| memory.oom_kills > 0) {
            // Who is killed so says nothing, and neither does a machine that is gone with its monitor.
            why = format!("{why}; the kernel killed {} of its processes for want of memory", memory.oom_kills);
        }
        self.failed(
            "reach the agent inside",
            why,
            "See below what was said; `tare doctor` tries the platform by itself. A virtual machine on a busy host may need \
             a longer `boot-within`; its kernel prints only errors unless the arm's `append` has \"loglevel=7\"",
        )
    }

    /// The end of what its processes and consoles said so far.
    pub(crate) fn diagnostics(&self) -> String {
        self.parts.diagnostics()
    }

    /// An error of this guest, with what was said so far.
    pub(crate) fn failed(&self, tried: &str, why: String, remedy: &str) -> PlatformError {
        PlatformError::Start {
            guest: self.spec.name.clone(),
            tried: tried.to_owned(),
            why,
            remedy: remedy.to_owned(),
            diagnostics: self.parts.diagnostics(),
        }
    }

    /// The same of what this host refuses.
    pub(crate) fn refused(&self, tried: &str, Refusal { reason, remedy }: Refusal) -> PlatformError {
        self.failed(tried, reason, &remedy)
    }
}

/// Makes one directory in one that is there; another guest may have made it.
fn make_unless_there(directory: &Path) -> std::io::Result<()> {
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
