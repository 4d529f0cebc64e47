//! What the tests of workloads with an agent share.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tare_model::guest::{DataPlace, GuestData, GuestSize};
use tare_model::load::{LoadModel, Phases};
use tare_model::traits::TurnTraits;
use tare_model::turns::{TurnSpec, Turns, Waiting};
use tare_wire::Link;
use tare_workload::{
    BackendSite, Driven, DriverSite, Prepared, SameClock, Schedule, SetupSite, WorkSite, Workload, WorkloadError,
};

/// Where an agent's guest is: see [`Agent::start_hiding`].
pub const GUEST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 97, 0, 2));

/// How long an agent may take for anything that is short.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The agent's program, if this is root and it was built. Otherwise the reason for skipping is printed.
pub fn agent() -> Option<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return missing("not root: an agent with a network of its own cannot be started");
    }
    let beside = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("tare-agent");
    let agent = std::env::var_os("TARE_AGENT").map_or(beside, PathBuf::from);
    if agent.exists() { Some(agent) } else { missing("there is no tare-agent: build it first") }
}

/// Tells why a test is skipped.
pub fn missing<T>(what: &str) -> Option<T> {
    println!("SKIPPED: {what}");
    None
}

/// An agent with a loopback of its own. It ends with its stream, and all that it started with it.
pub struct Agent {
    child: Child,
    link: Option<Link>,
}

impl Agent {
    pub fn start(program: &Path) -> Self {
        Self::start_hiding(program, &[])
    }

    /// One to whom these directories are empty and its own.
    pub fn start_hiding(program: &Path, hidden: &[&str]) -> Self {
        let script = "ip link set lo up && ip addr add 10.97.0.2/32 dev lo || exit 1
            program=$0
            for hidden; do mkdir -p \"$hidden\" && mount -t tmpfs -o mode=755 none \"$hidden\" || exit 1; done
            exec \"$program\"";
        let mut child = Command::new("unshare")
            .args(["-n", "-m", "--propagation", "private", "--", "sh", "-c", script])
            .arg(program)
            .args(hidden)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let link = Link::open(Box::new(reader), Box::new(writer), TIMEOUT, Duration::from_secs(600)).unwrap();
        Self { child, link: Some(link) }
    }

    /// Has it, with all its threads, stand still for so long.
    pub fn stand_still(&self, time: Duration) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        std::thread::sleep(time);
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    }

    pub fn link(&self) -> &Link {
        self.link.as_ref().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.link.take();
        let _ = self.child.wait();
    }
}

/// A site on which a workload prepares for one guest.
pub fn setup_site<'a>(
    agent: &'a Agent,
    cache: &'a Path,
    size: GuestSize,
    note: &'a (dyn Fn(&str) + Sync),
) -> SetupSite<'a> {
    SetupSite { here: agent.link(), client: agent.link(), cache, size, guests: 1, instances: 1, timeout: TIMEOUT, note }
}

/// Data as a platform shows them that shows the gold copy itself.
pub fn shown(data: &GuestData) -> DataPlace {
    DataPlace {
        path: data.gold.display().to_string(),
        storage: "directory of a test".into(),
        on_host: Some(data.gold.clone()),
        restore_s: 0.0,
        restored_by: "shown".into(),
        log: None,
    }
}

/// The data of the one guest of a workload whose gold copy is shown.
pub fn shown_by(workload: &dyn Workload, site: &SetupSite<'_>) -> DataPlace {
    let data = workload.set_up_once(site).unwrap().guest(0).cloned().unwrap();
    assert!(data.shared && data.size.0 > 64 << 20, "{data:?}");
    shown(&data)
}

/// A guest that is the agent itself, and so is the client's host.
pub fn work_site<'a>(
    agent: &'a Agent,
    drivers: &'a [DriverSite<'a>],
    data: Option<&'a DataPlace>,
    size: GuestSize,
    load: LoadModel,
) -> WorkSite<'a> {
    WorkSite {
        guest: agent.link(),
        guest_address: GUEST,
        guest_listen: GUEST,
        client: agent.link(),
        client_clock: &SameClock,
        drivers,
        index: 0,
        size,
        data,
        load,
        rate_per_s: None,
        merge: false,
        timeout: TIMEOUT,
        backend: BackendSite { link: agent.link(), address: None, listen: None, host: None },
        instances: 1,
        commands: None,
        services: None,
        starter: None,
        slowed_permille: None,
    }
}

/// The turns of one of three arms, of which the others do nothing.
pub fn in_turns(TurnTraits { turn, warm_up, gap, .. }: TurnTraits, phases: &Phases) -> Arc<Turns> {
    let spec = TurnSpec { turn, warm_up, gap, waiting: Waiting::Idle, commands: None };
    Arc::new(Turns { spec, arms: 3, places: (0..spec.rounds(phases)).map(|round| round % 3).collect() })
}

/// One drive, and what was wrong with it.
pub fn drive(
    site: &WorkSite<'_>,
    prepared: &mut dyn Prepared,
    schedule: &Schedule,
) -> Result<(Driven, Option<String>), WorkloadError> {
    prepared.connect(site, schedule)?;
    let mut driven = prepared.drive(site, schedule)?;
    let wrong = prepared.verify(site, &mut driven)?;
    Ok((driven, wrong))
}
