//! The contract of a platform and of its guests.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tare_lab::{Lab, Ledger, PageFaults};
use tare_model::ballooning::MachineMemory;
use tare_model::environment::Section;
use tare_model::guest::{CommandDefaults, DataPlace, GuestSpec, ParityRow};
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{ByteSize, Refusal};
use tare_wire::{AgentFacts, Link};

use crate::error::{PlatformError, Result};
use crate::{HostCounters, HostMetrics, HostView, Notes};

/// Whether figures of a platform may be compared with those of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparable {
    /// They may.
    Yes,
    /// They may not, and why. Reports show them apart and never as an answer.
    No(String),
}

/// The data of guests that stand at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataWanted {
    /// How many guests.
    pub guests: u32,
    /// What the data of each may grow to, bytes, with their log; zero: they are given none.
    pub size: ByteSize,
    /// How much of that is the log, bytes.
    pub log: ByteSize,
}

impl DataWanted {
    /// The data without the log, and the log, each on its own.
    pub(crate) fn apart(self) -> (Self, Self) {
        let none = ByteSize(0);
        let data = Self { size: ByteSize(self.size.0.saturating_sub(self.log.0)), log: none, ..self };
        (data, Self { size: self.log, log: none, ..self })
    }
}

/// Where a guest is made.
pub struct Site<'a> {
    /// The run.
    pub run_id: &'a str,
    /// The agent's program, on the host.
    pub agent: &'a Path,
    /// The lab.
    pub lab: &'a Lab,
    /// MTU that the lab was asked for, bytes.
    pub mtu: u32,
    /// The run's state directory.
    pub state: &'a Path,
    /// Where everything is written down before it is made.
    pub ledger: &'a Arc<dyn Ledger>,
    /// How long a guest's agent may live, whatever happens.
    pub lifetime: Duration,
    /// How long a guest may take from its creation to its agent's first answer.
    pub timeout: Duration,
}

/// What provides guests.
pub trait Platform: Send + Sync {
    /// Whether it looks usable here. Runs no program, connects to nothing and makes no guest: files, devices and the
    /// kernel are looked at, and nothing else. A study that somebody else wrote may be planned, so nothing that it
    /// names is run by this.
    ///
    /// # Errors
    /// Why it is not usable, and the remedy.
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal>;

    /// Whether it is usable here: quick, and without making a guest. Asked before any run. May run programs, those
    /// that the study names among them ([`Self::named_programs`]).
    ///
    /// # Errors
    /// Why it is not usable, and the remedy.
    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        self.look(host)
    }

    /// Programs of this host that the options name by path, and that [`Self::check`] or a run runs.
    fn named_programs(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a reader of a report must know about this platform, each in a sentence.
    fn disclosures(&self) -> Vec<String>;

    /// Whether its figures may be compared with those of other platforms.
    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    /// Why its guests would be emulated on this host although the options leave that open; `None` where they would not be,
    /// and where the options ask for emulation. With `boot` a guest may be booted to find out; otherwise only what can be
    /// seen at once counts.
    fn emulated_unasked(&self, _host: &HostView, _boot: bool) -> Option<String> {
        None
    }

    /// Whether the options ask for emulation.
    fn emulation_asked(&self) -> bool {
        false
    }

    /// What its options name that one guest alone can have at a time, such as a block device or a machine: what kind of thing, in words for
    /// people, and which. Arms that name the same are never alive at one time.
    fn exclusive(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// How many guests there are, where they exist already and are not made; `None`: as many as are asked for.
    fn machines(&self) -> Option<u32> {
        None
    }

    /// A command of the user's that tells of the host under the guests while they are measured; `None`: there is none.
    fn host_metrics(&self) -> Option<HostMetrics> {
        None
    }

    /// Counters of the host under the guests that the platform itself reads while they are measured, from the moment at which this is
    /// asked; `None`: there are none.
    fn host_counters(&self) -> Option<HostCounters> {
        None
    }

    /// Where its guests are reached, if they exist already and the options say so; of several the first.
    fn machine_address(&self) -> Option<IpAddr> {
        None
    }

    /// How its guests are attached to the network and what their data lie on, as the options say. Pure: it looks at nothing on the host.
    fn attachment(&self, attach: Attach) -> Attachment {
        Attachment::by(attach.link())
    }

    /// Why its guests cannot be attached to a card so, and the remedy; `None`: they can. Asked only where they are reached in the lab.
    fn attach_refusal(&self, attach: Attach) -> Option<Refusal> {
        let _ = attach;
        None
    }

    /// Whether it sets limits on the memory and the processes of its guests: what takes all that it gets may run in them alone.
    fn limits_guests(&self) -> bool {
        true
    }

    /// Where its guests are reached: asked before a run, for the driver must be there too.
    fn reach(&self) -> Reach {
        Reach::Lab
    }

    /// Why the memory of its guests cannot be merged with equal memory of others, and the remedy; `None`: it can
    /// ([`GuestSpec::merge`]), as guests can that are processes started from here. Quick, and asked before any run in which this
    /// platform's arm merges.
    fn merging_refusal(&self) -> Option<Refusal> {
        None
    }

    /// Why its guests have no balloon that can be sized, and the remedy; `None`: they have, where their specification asks for one
    /// ([`GuestSpec::balloon`]). Quick.
    fn ballooning_refusal(&self) -> Option<Refusal> {
        Some(Refusal::new(
            "its guests have no balloon that tare can size",
            "leave `ballooning` out, or use a platform of machines that tare starts by itself",
        ))
    }

    /// Why its guests cannot be stopped where they stand and let run again ([`Guest::pause`]), and the remedy; `None`: they can, where the host
    /// can. Pure: it looks at nothing on the host.
    fn pool_refusal(&self) -> Option<Refusal> {
        let remedy = "leave `start` out of this arm, or use a platform that makes guests with limits";
        let refused = |why: &str| Some(Refusal::new(why, remedy));
        match self.machines() {
            Some(_) => refused("its guests exist already: none is made for a pool"),
            None if !self.limits_guests() => {
                refused("its guests are in no control group by which they could be stopped")
            }
            None => None,
        }
    }

    /// Whether it stops its guests by itself, and not by the freezer of the host's control groups.
    fn pauses_by_itself(&self) -> bool {
        false
    }

    /// Why no snapshot of its guests can be taken and restored ([`Guest::snapshot`], [`Self::restore`]), and the remedy; `None`: it can. Pure.
    fn snapshot_refusal(&self) -> Option<Refusal> {
        Some(Refusal::new(
            "tare takes no snapshots of its guests",
            "write `start = { pool = N }`, leave `start` out, or use a platform whose guests can be restored: docs/reference/starts.md names them",
        ))
    }

    /// Whether the program that holds its guests' memory asks the kernel to merge it (`madvise`), as hypervisors do. Where it does
    /// not, tare opens the memory of the guests' processes to merging, which takes Linux 6.4.
    fn asks_for_merging(&self) -> bool {
        false
    }

    /// Why guests cannot be given such data on the storage that the options say, and the remedy; `None`: they can, as far
    /// as that can be seen before a run. Quick, and asked before any run of a platform that is usable; also where guests
    /// have no data, for they may have disks of their own all the same.
    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        let _ = wanted;
        None
    }

    /// Programs that it runs guests with, and their versions.
    fn versions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Makes a guest and waits until its agent answers.
    ///
    /// # Errors
    /// When the guest cannot be made or does not answer in time. Whatever had been made is gone then.
    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>>;

    /// Makes a guest of what [`Guest::snapshot`] wrote of another one of this platform, of the same size, and waits until its agent answers. The
    /// snapshot stays as it is, and several may be made of it at one time. Inside, a guest has the name and the address of the first.
    ///
    /// # Errors
    /// As [`Self::start`]; and where there are no snapshots ([`Self::snapshot_refusal`]).
    fn restore(&self, site: &Site<'_>, spec: &GuestSpec, snapshot: &Path) -> Result<Box<dyn Guest>> {
        let _ = (site, snapshot);
        Err(refused(spec, "restore it", self.snapshot_refusal()))
    }
}

/// The error of a guest of which something was asked that its platform does not do.
fn refused(spec: &GuestSpec, tried: &str, refusal: Option<Refusal>) -> PlatformError {
    let nothing = || Refusal::new("its platform has no way to do that", "report it: it should have been refused");
    let Refusal { reason, remedy } = refusal.unwrap_or_else(nothing);
    PlatformError::of_guest(&spec.name, tried, reason, remedy)
}

/// The balloon of a machine, by which it gives memory back to its host.
pub trait Balloon: Send + Sync {
    /// What the machine says of its memory.
    ///
    /// # Errors
    /// When it does not answer, or its driver has not said anything yet.
    fn memory(&self) -> std::io::Result<MachineMemory>;

    /// Asks the machine to have so many bytes. It takes its time, and may stop short of it.
    ///
    /// # Errors
    /// When it could not be asked.
    fn resize(&self, bytes: u64) -> std::io::Result<()>;
}

/// One guest. Dropping it takes it away as [`Guest::destroy`] does, but nobody hears of failures.
pub trait Guest: Send {
    /// What was asked for.
    fn spec(&self) -> &GuestSpec;

    /// The channel to its agent.
    fn link(&self) -> &Arc<Link>;

    /// Where its servers listen, as the client sees them.
    fn address(&self) -> IpAddr;

    /// What its servers bind to: another address where the client's packets are translated on their way.
    fn listen(&self) -> IpAddr {
        self.address()
    }

    /// Directories of its control group, one for each hierarchy; none without limits.
    fn groups(&self) -> Vec<PathBuf>;

    /// What was asked and what was granted, read back when the guest was ready.
    fn parity(&self) -> Vec<ParityRow>;

    /// The guest from inside, read when it was ready.
    fn facts(&self) -> &AgentFacts;

    /// What the hypervisor under it says of itself and of the guest, where it is asked.
    fn hypervisor(&self) -> &[Section] {
        &[]
    }

    /// Where it finds the data that its specification gives it. `None` without such data, and where this platform has no
    /// way to hand data over: the workload then makes its own inside.
    fn data(&self) -> Option<&DataPlace> {
        None
    }

    /// What holds for commands of a study's in it, where it was made of an image that says so.
    fn commands(&self) -> Option<&CommandDefaults> {
        None
    }

    /// Seconds from the first act of making the guest to its agent's first answer: its link, control group and
    /// root file system are in it, on every platform alike. What tare writes down for its own sake (which waits
    /// for the disk) and what is done once a run (unpacking an archive) is not.
    fn start_time_s(&self) -> f64;

    /// What the start of a machine was made of; `None` of a guest without a kernel of its own that was booted for it, and
    /// where the guest does not tell.
    fn start_parts(&self) -> Option<StartParts> {
        None
    }

    /// Both ends of the guest's link, or the one that it has on this host, to be watched while the guest stands; none without a link of its
    /// own.
    fn links(&self) -> Vec<GuestLink> {
        Vec::new()
    }

    /// Packets dropped or damaged so far on the guest's link, both ends; `None` without a link of its own.
    fn drops(&self) -> Option<u64>;

    /// CPU time that the guest has used so far, by kind of thread, where it has several (virtual CPUs, I/O,
    /// a file server of its own); all of it is in its control group too. Empty where there is nothing to tell apart.
    fn charges(&self) -> Vec<Charge> {
        Vec::new()
    }

    /// A reader of what is counted of the guest outside its control group, each count with the name of its series and growing only:
    /// those of KVM ([`tare_model::kvm`]). `None` where nothing counts.
    fn counts(&self) -> Option<CountReader> {
        None
    }

    /// Its balloon. `None` where its specification asked for none.
    fn balloon(&self) -> Option<Arc<dyn Balloon>> {
        None
    }

    /// The end of what the guest printed on standard error or its console.
    fn diagnostics(&self) -> String;

    /// Stops all of the guest where it stands: it takes no CPU and keeps its memory. Returns once it stands still.
    ///
    /// # Errors
    /// When it cannot be stopped; it runs then.
    fn pause(&self) -> Result<()> {
        frozen(&self.groups(), &self.spec().name, true)
    }

    /// Lets the guest run again.
    ///
    /// # Errors
    /// When it cannot be let run.
    fn resume(&self) -> Result<()> {
        frozen(&self.groups(), &self.spec().name, false)
    }

    /// Writes all of the guest, its memory with what goes on in it, into an empty directory, for [`Platform::restore`]. The guest has ended by
    /// then, and has still to be destroyed. No request to its agent may be without an answer.
    ///
    /// # Errors
    /// When it could not be written; the guest must not be used any more.
    fn snapshot(&mut self, into: &Path) -> Result<()> {
        let _ = into;
        Err(refused(self.spec(), "take a snapshot of it", None))
    }

    /// Page faults, so far, of the processes of this host's that the guest is made of; `None` where they are not in a control group of its own.
    fn page_faults(&self) -> Option<PageFaults> {
        tare_lab::page_faults_in(&self.groups())
    }

    /// Kills the guest without a warning, as a crash would. It still has to be destroyed.
    ///
    /// # Errors
    /// When it could not be killed.
    fn kill(&mut self) -> Result<()>;

    /// Takes away the guest and everything that was made for it. May be called again, also after a
    /// failure, and takes a bounded time.
    ///
    /// # Errors
    /// What is still there, and why.
    fn destroy(&mut self) -> Result<()>;
}

/// Stops a guest by its control group, or lets it run again.
pub(crate) fn frozen(groups: &[PathBuf], guest: &str, still: bool) -> Result<()> {
    tare_lab::freeze(groups, still).map_err(|source| PlatformError::Lab { guest: guest.to_owned(), source })
}

/// Reads counts by the names of their series.
pub type CountReader = Box<dyn FnMut() -> std::io::Result<Vec<(String, f64)>> + Send>;

/// The parts of a machine's start, seconds, split by its own kernel's clock. They add up to the whole start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StartParts {
    /// From the first act of making the guest to the beginning of its kernel's clock: what the host makes for it, the
    /// hypervisor, its firmware, and the loading and unpacking of the kernel.
    pub firmware_s: f64,
    /// From there to the beginning of user space.
    pub kernel_s: f64,
    /// From there to the agent's first answer. In an image with an init of its own, that is in it.
    pub agent_s: f64,
}

impl StartParts {
    /// Splits a start by the age of the guest's kernel at its end, and at the beginning of user space. `None` where these do not
    /// fit together: the guest says what it likes, and one that was resumed from a snapshot is older than its start.
    pub(crate) fn split(start: Duration, kernel_age: Duration, user_space_began: Duration) -> Option<Self> {
        Some(Self {
            firmware_s: start.checked_sub(kernel_age)?.as_secs_f64(),
            kernel_s: user_space_began.as_secs_f64(),
            agent_s: kernel_age.checked_sub(user_space_began)?.as_secs_f64(),
        })
    }
}

/// Where guests are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// On the lab's network.
    Lab,
    /// On a network that was there before the run.
    Outside,
}

/// CPU time of one kind of a guest's threads on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// The kind, such as `virtual CPUs` or `I/O threads`.
    pub kind: String,
    /// CPU seconds since the guest was started.
    pub cpu_s: f64,
}

/// One end of a guest's link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestLink {
    /// Its name in its namespace.
    pub name: String,
    /// A path to its network namespace, good while the guest stands.
    pub netns: PathBuf,
    /// Which end it is.
    pub end: LinkEnd,
}

/// Which end of a guest's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEnd {
    /// The guest's own.
    Guest,
    /// The port of the lab's bridge, or what a machine's card is on.
    Bridge,
}

/// What is at hand when a run that is over is cleaned up.
#[derive(Debug, Clone, Copy)]
pub struct ReapSite<'a> {
    /// The run. What is noted of another one is not touched.
    pub run_id: &'a str,
    /// The run's state directory ([`tare_lab::state_path`]), whether it is there or not.
    pub state: &'a Path,
    /// The agent's program, on the host.
    pub agent: &'a Path,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_split_by_the_clock_of_its_kernel() {
        let split = |start, age, began| {
            let [start, age, began] = [start, age, began].map(Duration::from_millis);
            StartParts::split(start, age, began)
        };
        let parts = split(5000, 3500, 3000).unwrap();
        assert_eq!((parts.firmware_s, parts.kernel_s, parts.agent_s), (1.5, 3.0, 0.5));
        assert_eq!(split(5000, 90_000, 3000), None, "a kernel that is older than its start was resumed");
        assert_eq!(split(5000, 3500, 3600), None, "user space begins before its agent answers");
    }
}
