//! What every platform must do, as checks that run on the real thing.
//!
//! A platform's own tests call [`check`] with the platform and the agent's program. It makes a lab of its
//! own and real guests, and says in words what does not hold:
//!
//! - a guest starts, is granted what was asked, runs commands, takes files and gives them back, may print as much as it
//!   likes, answers over the network, has what it receives processed on its own CPUs, and goes when it is asked to, also twice;
//! - it finds the data that it is given as they are in the gold copy, writes to a copy of its own, and leaves nothing of it;
//! - it is shown data that nobody writes, cannot change them, and nothing of them is copied on the host;
//! - its memory is offered for merging when that is asked for, and only then;
//! - it has of root's power what container engines leave, unless its kernel is its own;
//! - it can be killed, and is taken away all the same;
//! - what its controller left when that was killed is found and taken away from what was written down;
//! - many guests come and go, and neither we nor the host grow.
//!
//! A part that cannot be tried here is printed as `SKIPPED: reason`, never passed over in silence.

mod confined;
mod data;
mod memory;
mod orphan;
mod traces;
mod traffic;
mod usage;

use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tare_lab::{Lab, LabConfig, Ledger, Resource, disk_path};
use tare_model::ByteSize;
use tare_model::guest::{GuestData, GuestSize, GuestSpec};
use tare_wire::{ExecResult, ExecSpec, Reply, Request};

use crate::{Guest, HostView, Platform, Reach, ReapSite, Site, registry};

pub use orphan::run_id;

use orphan::Notebook;

const MTU: u32 = 1500;

/// The CPU of the guests, and the one that receives for the client where there are two.
const GUEST_CPU: u32 = 0;
const CLIENT_CPU: u32 = 1;

/// Environment variable that says how many guests come and go, whatever a test says.
const CYCLES_VARIABLE: &str = "TARE_CYCLES";

/// Environment variable that says by how much longer everything may take than elsewhere: on a host that is emulated.
const SLOWER_VARIABLE: &str = "TARE_SLOWER";

/// So many times longer.
fn slower() -> u32 {
    number_in(SLOWER_VARIABLE).unwrap_or(1)
}

/// What a test gives a machine as its `boot-within`: so many seconds, or as many times more as this host is slower.
pub fn boot_within(seconds: u32) -> String {
    format!("{}s", seconds * slower())
}

fn number_in(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok()
}

/// What a platform claims, and how far it is tried.
#[derive(Debug, Clone)]
pub struct Expect {
    /// So many guests come and go one after the other. The environment's `TARE_CYCLES` takes precedence.
    pub cycles: u32,
    /// Whether it sets limits, where this host can: quota, memory and CPU set are then read back and must be equal.
    pub limits: bool,
    /// Size of its guests.
    pub guest: GuestSize,
    /// So many bytes a guest prints on its console, or standard error: they must be taken from it, and not be kept.
    pub printed_bytes: u64,
    /// Whether it hands data over to its guests: they are given some, and must find them.
    pub data: bool,
    /// Whether its guests have a kernel of their own, which confines them.
    pub own_kernel: bool,
    /// How long a guest may take to come up, an agent to answer, and a command to run in a guest. The environment's
    /// `TARE_SLOWER` multiplies it.
    pub timeout: Duration,
}

impl Default for Expect {
    /// What holds for a platform whose guests are processes of this host.
    fn default() -> Self {
        Self {
            cycles: 50,
            limits: true,
            guest: GuestSize { cpus: 1, memory: ByteSize(256 << 20) },
            printed_bytes: 50_000_000,
            data: true,
            own_kernel: false,
            timeout: Duration::from_secs(20),
        }
    }
}

impl Expect {
    /// What holds for guests with a kernel of their own, which may have to be emulated and take seconds to start, and
    /// whose console may be a serial line.
    pub fn machine() -> Self {
        Self {
            cycles: 5,
            guest: GuestSize { cpus: 1, memory: ByteSize(512 << 20) },
            printed_bytes: 1_000_000,
            data: false,
            own_kernel: true,
            timeout: Duration::from_secs(120),
            ..Self::default()
        }
    }

    fn cycles(&self) -> u32 {
        number_in(CYCLES_VARIABLE).unwrap_or(self.cycles)
    }
}

/// Why a platform was not checked.
#[derive(Debug)]
pub struct Skipped(pub String);

/// What does not hold, in a sentence.
pub type Broken = String;

/// A place to make guests in.
struct Ground<'a> {
    platform: &'a dyn Platform,
    expect: &'a Expect,
    host: HostView,
    run_id: String,
    state: PathBuf,
    lab: Lab,
    notebook: Arc<Notebook>,
    ledger: Arc<dyn Ledger>,
}

/// Checks the platform in a run of this id, which should come from [`run_id`] and has its state directory at `state`.
///
/// To see what a killed controller leaves, the test program is started once more for the calling test alone; there this
/// function makes a guest, says so, and is killed.
///
/// # Errors
/// `Ok(Err(_))`: what does not hold. `Err(_)`: the platform needs something that the host does not have.
pub fn check(
    platform: &dyn Platform,
    agent: &Path,
    run_id: &str,
    state: &Path,
    expect: &Expect,
) -> Result<Result<(), Broken>, Skipped> {
    let expect = &Expect { timeout: expect.timeout * slower(), ..expect.clone() };
    let host = HostView::here(agent);
    platform.check(&host).map_err(|refusal| Skipped(refusal.to_string()))?;
    let config =
        LabConfig { mtu: MTU, guest_cpus: vec![GUEST_CPU], client_cpus: vec![CLIENT_CPU], ..LabConfig::new(run_id) };
    let lab = Lab::create(config).map_err(|error| Skipped(error.to_string()))?;
    let notebook = Arc::new(Notebook::for_run(run_id).map_err(|error| Skipped(error.to_string()))?);
    let ledger: Arc<dyn Ledger> = Arc::clone(&notebook) as Arc<dyn Ledger>;
    let (run_id, state) = (run_id.to_owned(), state.to_owned());
    let ground = Ground { platform, expect, host, run_id, state, lab, notebook, ledger };
    if orphan::is_ordered(&ground.run_id) {
        return Ok(ground.wait_for_death());
    }
    let result = ground
        .serves()
        .and_then(|()| ground.gives_data())
        .and_then(|()| ground.gives_shared_data())
        .and_then(|()| ground.offers_memory())
        .and_then(|()| ground.is_confined())
        .and_then(|()| ground.survives_its_death())
        .and_then(|()| ground.is_reaped())
        .and_then(|()| ground.is_reaped_after_a_crash())
        .and_then(|()| ground.leaves_nothing());
    Ok(ground.end(result))
}

impl Ground<'_> {
    fn site(&self) -> Site<'_> {
        Site {
            run_id: &self.run_id,
            agent: &self.host.agent,
            lab: &self.lab,
            mtu: MTU,
            state: &self.state,
            ledger: &self.ledger,
            lifetime: Duration::from_secs(600),
            timeout: self.expect.timeout,
        }
    }

    /// Whether its guests are on the lab's network or on loopback; else the driver runs in the host's own namespace.
    fn is_in_lab(&self) -> bool {
        self.platform.reach() == Reach::Lab
    }

    fn start(&self, name: &str) -> Result<Box<dyn Guest>, Broken> {
        self.start_given(name, None)
    }

    fn start_given(&self, name: &str, data: Option<&GuestData>) -> Result<Box<dyn Guest>, Broken> {
        self.start_as(&GuestSpec { data: data.cloned(), ..self.spec(name) })
    }

    fn spec(&self, name: &str) -> GuestSpec {
        GuestSpec { cpu_set: vec![GUEST_CPU], ..GuestSpec::new(name, self.expect.guest) }
    }

    fn start_as(&self, spec: &GuestSpec) -> Result<Box<dyn Guest>, Broken> {
        self.platform.start(&self.site(), spec).map_err(|error| format!("a guest did not start: {error}"))
    }

    fn ask(&self, guest: &dyn Guest, request: Request) -> Result<Reply, Broken> {
        let answer = guest.link().call(request, self.expect.timeout);
        answer.map_err(|error| format!("{error}. It said: {}", guest.diagnostics()))
    }

    fn exec(&self, guest: &dyn Guest, argv: &[&str]) -> Result<ExecResult, Broken> {
        self.executed(guest, self.command(argv))
    }

    /// A command of the guest's root.
    fn command(&self, argv: &[&str]) -> ExecSpec {
        ExecSpec::new(argv, self.expect.timeout, 4096)
    }

    fn executed(&self, guest: &dyn Guest, spec: ExecSpec) -> Result<ExecResult, Broken> {
        match self.ask(guest, Request::Exec(spec))? {
            Reply::Executed(result) => Ok(result),
            other => Err(format!("asked to run a command, it answered {other:?}")),
        }
    }

    /// A guest that is killed is seen to be gone, and can be taken away.
    fn survives_its_death(&self) -> Result<(), Broken> {
        let mut guest = self.start("victim")?;
        guest.kill().map_err(|error| error.to_string())?;
        let seen = guest.link().call(Request::Clock, self.expect.timeout);
        hold(seen.is_err(), || "a killed guest still answers".into())?;
        guest.destroy().map_err(|error| format!("destroyed after it was killed: {error}"))?;
        self.is_clean("after a kill")
    }

    /// What the platform keeps elsewhere is taken away from what was written down alone, any number of times, also
    /// while the guest stands.
    fn is_reaped(&self) -> Result<(), Broken> {
        let mut guest = self.start_given("orphan", self.gold()?.as_ref())?;
        for resource in self.notebook.open() {
            let Resource::Held { platform, token } = resource else { continue };
            for _ in 0..2 {
                reap_held(
                    &ReapSite { run_id: &self.run_id, state: &self.state, agent: &self.host.agent },
                    &platform,
                    &token,
                )?;
            }
            let seen = guest.link().call(Request::Clock, self.expect.timeout);
            hold(seen.is_err(), || "a reaped guest still answers".into())?;
        }
        guest.destroy().map_err(|error| format!("destroyed after it was reaped: {error}"))?;
        self.is_clean("after reaping")
    }

    /// Takes away the run itself, and sees that nothing of it is left.
    fn end(self, result: Result<(), Broken>) -> Result<(), Broken> {
        let Self { run_id, state, lab, .. } = self;
        drop(lab);
        let swept = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(()));
        result?;
        hold(swept.is_clean(), || format!("these could not be reaped: {:?}", swept.left))?;
        // The state directory is its maker's, who may still hold it.
        let ours = format!("directory {}", state.display());
        let left: Vec<_> = tare_lab::leftovers(&run_id).into_iter().filter(|line| *line != ours).collect();
        hold(left.is_empty(), || format!("after the run, these are still there: {left:?}"))?;
        let disk = disk_path(&run_id);
        hold(!disk.exists(), || format!("after the run, {} is still there", disk.display()))
    }
}

/// Has the platform of that name take away what was written down of it.
fn reap_held(site: &ReapSite<'_>, platform: &str, token: &serde_json::Value) -> Result<(), Broken> {
    let entry =
        registry::find(platform).ok_or_else(|| format!("`{platform}` holds something and is not in the registry"))?;
    (entry.reap)(site, token).map_err(|error| error.to_string())
}

fn hold(condition: bool, otherwise: impl FnOnce() -> String) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(otherwise()) }
}

/// Tells that something is not tried here, in the form that `cargo xtask test` counts.
fn skip(reason: &str) {
    // Standard output that cannot be written must not fail the check that skips.
    let _ = writeln!(std::io::stdout(), "SKIPPED: {reason}");
}

/// An address from 198.18.0.0/15, which nothing outside routes, or loopback for what has no link.
fn is_lab_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || (v4.octets()[0] == 198 && v4.octets()[1] & 0xfe == 18),
        IpAddr::V6(v6) => v6.is_loopback(),
    }
}
