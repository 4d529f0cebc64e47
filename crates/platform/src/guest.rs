//! A guest that stands, and its teardown.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tare_lab::{Cgroup, Ledger, NetNs, Port, Tap};
use tare_model::environment::Section;
use tare_model::guest::{CommandDefaults, DataPlace, GuestSpec, ParityRow};
use tare_wire::{AgentFacts, Link, Request};

use crate::channel::{Channel, Tail};
use crate::error::{PlatformError, Result};
use crate::platform::frozen;
use crate::{Balloon, Charge, CountReader, Guest, GuestLink, LinkEnd, StartParts};

/// How long a guest has to say goodbye before it is killed.
const GOODBYE: Duration = Duration::from_millis(500);
/// How long a process that was killed may take to be gone.
const GONE: Duration = Duration::from_secs(5);

/// Takes away what a platform keeps elsewhere; may be called again after a failure.
pub(crate) type Undo = Box<dyn FnMut() -> std::result::Result<(), String> + Send>;

/// Tells the CPU time of the guest's threads, by kind.
pub(crate) type Charges = Box<dyn Fn() -> Vec<Charge> + Send + Sync>;

/// Makes readers of what is counted of the guest.
pub(crate) type Counts = Box<dyn Fn() -> CountReader + Send + Sync>;

/// Stops the guest where it stands (true), or lets it run again.
pub(crate) type Pause = Box<dyn Fn(bool) -> std::result::Result<(), String> + Send + Sync>;

/// Writes the guest into an empty directory, and ends it.
pub(crate) type Snapshot = Box<dyn FnMut(&Path) -> std::result::Result<(), String> + Send>;

/// Everything that was made for a guest and has to be taken away.
pub(crate) struct Parts {
    guest: String,
    ledger: Arc<dyn Ledger>,
    pub written_down: Vec<u64>,
    /// What holds for commands in it, where it is made of an image that says so.
    pub commands: Option<CommandDefaults>,
    pub link: Option<Arc<Link>>,
    pub channel: Option<Channel>,
    /// Processes that the guest needs beside the one that is the channel.
    pub beside: Vec<Channel>,
    /// Consoles that are no process's standard error.
    pub consoles: Vec<Tail>,
    /// Kills what is neither in the control group nor a process of ours.
    pub killer: Option<Undo>,
    pub undo: Option<Undo>,
    pub port: Option<Port>,
    pub tap: Option<Tap>,
    pub cgroup: Option<Cgroup>,
    /// Groups and places of servers beside the guest.
    pub groups_beside: Vec<Cgroup>,
    pub ports_beside: Vec<Port>,
    pub directories: Vec<PathBuf>,
    /// Directories that guests have in common: each goes with the last of them.
    pub passages: Vec<PathBuf>,
}

impl Parts {
    pub(crate) fn new(guest: &str, ledger: &Arc<dyn Ledger>) -> Self {
        Self {
            guest: guest.to_owned(),
            ledger: Arc::clone(ledger),
            written_down: Vec::new(),
            commands: None,
            link: None,
            channel: None,
            beside: Vec::new(),
            consoles: Vec::new(),
            killer: None,
            undo: None,
            port: None,
            tap: None,
            cgroup: None,
            groups_beside: Vec::new(),
            ports_beside: Vec::new(),
            directories: Vec::new(),
            passages: Vec::new(),
        }
    }

    /// Kills everything in the guest.
    fn kill(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        for cgroup in self.cgroup.iter().chain(&self.groups_beside) {
            failures.extend(cgroup.kill().err().map(|error| error.to_string()));
        }
        for process in self.channel.iter_mut().chain(&mut self.beside) {
            failures.extend(process.kill().err().map(|error| format!("its process could not be killed: {error}")));
        }
        if let Some(killer) = &mut self.killer {
            failures.extend(killer().err());
        }
        failures
    }

    /// What the guest's processes and its consoles said last.
    pub(crate) fn diagnostics(&self) -> String {
        let processes = self.channel.iter().chain(&self.beside).map(Channel::diagnostics);
        let said: Vec<String> = processes.chain(self.consoles.iter().map(Tail::text)).collect();
        said.into_iter().filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Waits for killed processes to be gone; why one is not.
    fn bury(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        let mut gone = |process: &mut Channel| match process.wait(GONE) {
            Ok(Some(_)) => true,
            Ok(None) => {
                failures.push(format!("its process was killed and is still there after {GONE:?}"));
                false
            }
            Err(error) => {
                failures.push(format!("its process could not be waited for: {error}"));
                false
            }
        };
        if self.channel.as_mut().is_some_and(&mut gone) {
            self.channel = None;
        }
        self.beside.retain_mut(|process| !gone(process));
        failures
    }

    /// Takes everything away that is still there. What could be taken away is forgotten, so that the
    /// next call goes on with the rest.
    fn take_away(&mut self) -> Result<()> {
        self.say_goodbye();
        let mut failures = Vec::new();
        if let Some(undo) = &mut self.undo {
            match undo() {
                Ok(()) => (self.undo, self.killer) = (None, None),
                Err(error) => failures.push(error),
            }
        }
        failures.extend(self.kill());
        failures.extend(self.bury());
        if let Some(tap) = self.tap.take() {
            failures.extend(tap.detach().err().map(|error| error.to_string()));
        }
        for port in self.port.take().into_iter().chain(self.ports_beside.drain(..)) {
            failures.extend(port.detach().err().map(|error| error.to_string()));
        }
        if let Some(cgroup) = &mut self.cgroup {
            match cgroup.remove() {
                Ok(()) => self.cgroup = None,
                Err(error) => failures.push(error.to_string()),
            }
        }
        self.groups_beside.retain_mut(|cgroup| {
            let failure = cgroup.remove().err();
            let stays = failure.is_some();
            failures.extend(failure.map(|error| error.to_string()));
            stays
        });
        self.directories.retain(|directory| {
            let failure = remove_directory(directory);
            let stays = failure.is_some();
            failures.extend(failure);
            stays
        });
        for passage in &self.passages {
            // Refused as long as another guest's is in it.
            let _ = std::fs::remove_dir(passage);
        }
        if !failures.is_empty() {
            return Err(PlatformError::Destroy { guest: self.guest.clone(), failures });
        }
        for number in self.written_down.drain(..) {
            let released = self.ledger.released(number);
            released.map_err(|source| PlatformError::Ledger { guest: self.guest.clone(), source })?;
        }
        Ok(())
    }

    /// An agent that says goodbye has killed everything that it started, also where there is no control
    /// group to do that.
    fn say_goodbye(&mut self) {
        let Some(link) = self.link.take() else { return };
        let heard = link.ended().is_none() && link.call(Request::Bye, GOODBYE).is_ok();
        if let Some(channel) = self.channel.as_mut().filter(|_| heard) {
            // If it stays all the same, it is killed next.
            let _ = channel.wait(GOODBYE);
        }
    }
}

/// Why a directory could not be removed; `None` when it is gone.
fn remove_directory(directory: &Path) -> Option<String> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Some(format!("its directory {} could not be removed: {error}", directory.display()))
        }
        _ => None,
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // Whoever wants to hear of failures calls destroy; what stays is on the ledger.
        let _ = self.take_away();
    }
}

/// A guest that stands.
pub(crate) struct RunningGuest {
    pub spec: GuestSpec,
    pub link: Arc<Link>,
    pub address: IpAddr,
    pub listen: IpAddr,
    pub parity: Vec<ParityRow>,
    pub facts: AgentFacts,
    /// What the hypervisor under it says.
    pub hypervisor: Vec<Section>,
    /// Seconds that the start took, and its parts.
    pub times: (f64, Option<StartParts>),
    pub charges: Option<Charges>,
    pub counts: Option<Counts>,
    pub balloon: Option<Arc<dyn Balloon>>,
    pub data: Option<DataPlace>,
    /// Stops it otherwise than by its control group.
    pub pause: Option<Pause>,
    pub snapshot: Option<Snapshot>,
    /// Whether it was stopped and not let run again.
    pub still: AtomicBool,
    pub parts: Parts,
}

impl RunningGuest {
    /// Stops it, or lets it run, in the way of its platform, or by its control group.
    fn stand(&self, still: bool) -> Result<()> {
        let tried = if still { "stop it where it stands" } else { "let it run again" };
        match &self.pause {
            None => frozen(&self.groups(), &self.spec.name, still)?,
            Some(pause) => pause(still)
                .map_err(|why| PlatformError::of_guest(&self.spec.name, tried, why, "See what it said".into()))?,
        }
        self.still.store(still, Ordering::Relaxed);
        Ok(())
    }
}

impl Guest for RunningGuest {
    fn spec(&self) -> &GuestSpec {
        &self.spec
    }

    fn link(&self) -> &Arc<Link> {
        &self.link
    }

    fn address(&self) -> IpAddr {
        self.address
    }

    fn listen(&self) -> IpAddr {
        self.listen
    }

    fn groups(&self) -> Vec<PathBuf> {
        self.parts.cgroup.as_ref().map(|cgroup| cgroup.paths().to_vec()).unwrap_or_default()
    }

    fn parity(&self) -> Vec<ParityRow> {
        self.parity.clone()
    }

    fn facts(&self) -> &AgentFacts {
        &self.facts
    }

    fn hypervisor(&self) -> &[Section] {
        &self.hypervisor
    }

    fn data(&self) -> Option<&DataPlace> {
        self.data.as_ref()
    }

    fn commands(&self) -> Option<&CommandDefaults> {
        self.parts.commands.as_ref()
    }

    fn start_time_s(&self) -> f64 {
        self.times.0
    }

    fn start_parts(&self) -> Option<StartParts> {
        self.times.1
    }

    fn links(&self) -> Vec<GuestLink> {
        let ends = self.parts.port.as_ref().map(|port| {
            let end = |name: &str, netns: &NetNs, end| GuestLink { name: name.to_owned(), netns: netns.path(), end };
            let beyond = port.bridge_end().map(|(name, netns)| end(name, netns, LinkEnd::Bridge));
            std::iter::once(end(Port::LINK, &port.netns, LinkEnd::Guest)).chain(beyond)
        });
        let tap = self.parts.tap.as_ref().map(|tap| {
            let (name, netns) = (tap.link().to_owned(), tap.netns().path());
            GuestLink { name, netns, end: LinkEnd::Bridge }
        });
        ends.into_iter().flatten().chain(tap).collect()
    }

    fn drops(&self) -> Option<u64> {
        match (&self.parts.port, &self.parts.tap) {
            (Some(port), _) => port.drops().ok(),
            (None, Some(tap)) => tap.drops().ok(),
            (None, None) => None,
        }
    }

    fn charges(&self) -> Vec<Charge> {
        self.charges.as_ref().map(|charges| charges()).unwrap_or_default()
    }

    fn counts(&self) -> Option<CountReader> {
        self.counts.as_ref().map(|counts| counts())
    }

    fn balloon(&self) -> Option<Arc<dyn Balloon>> {
        self.balloon.clone()
    }

    fn diagnostics(&self) -> String {
        self.parts.diagnostics()
    }

    fn pause(&self) -> Result<()> {
        self.stand(true)
    }

    fn resume(&self) -> Result<()> {
        self.stand(false)
    }

    fn snapshot(&mut self, into: &Path) -> Result<()> {
        let guest = self.spec.name.clone();
        let failed = |why, remedy: &str| PlatformError::of_guest(&guest, "take a snapshot of it", why, remedy.into());
        let Some(snapshot) = &mut self.snapshot else {
            return Err(failed("there is no way to".into(), "Report it: the study should have been refused"));
        };
        snapshot(into).map_err(|why| failed(why, "Is the file system full?"))
    }

    fn kill(&mut self) -> Result<()> {
        let failures = self.parts.kill();
        if failures.is_empty() {
            Ok(())
        } else {
            Err(PlatformError::Destroy { guest: self.spec.name.clone(), failures })
        }
    }

    fn destroy(&mut self) -> Result<()> {
        if self.still.load(Ordering::Relaxed) {
            // What stands still says no goodbye, and some runtimes wait for it. It is killed in any case.
            let _ = self.stand(false);
        }
        self.parts.take_away()
    }
}
