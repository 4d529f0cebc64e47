//! What every platform must do, as checks that run on the real thing.
//!
//! A platform's own tests call [`check`] with the platform and the agent's program. It makes a lab of its
//! own and real guests, and says in words what does not hold.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tare_lab::{Lab, LabConfig, Ledger, LedgerError, RUN_VARIABLE, Resource};
use tare_model::drive::{DriveKind, DriveResult, DriveSpec, Exchange, ServeSpec, SocketOptions, Wait};
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::load::{LoadModel, Phases};
use tare_model::{ByteSize, Span};
use tare_wire::{ExecResult, ExecSpec, Reply, Request};

use crate::{Availability, Comparable, Guest, HostView, Platform, Site, registry};

const MTU: u32 = 1500;
const PATIENCE: Duration = Duration::from_secs(20);

/// Why a platform was not checked.
#[derive(Debug)]
pub struct Skipped(pub String);

/// What does not hold, in a sentence.
pub type Broken = String;

/// A ledger that remembers, as the journal does.
#[derive(Default)]
struct Notebook(Mutex<(u64, Vec<(u64, Resource)>)>);

impl Ledger for Notebook {
    fn planned(&self, resource: &Resource) -> Result<u64, LedgerError> {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.0 += 1;
        let number = notes.0;
        notes.1.push((number, resource.clone()));
        Ok(number)
    }

    fn released(&self, number: u64) -> Result<(), LedgerError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.retain(|(known, _)| *known != number);
        Ok(())
    }
}

impl Notebook {
    fn open(&self) -> Vec<Resource> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.iter().map(|(_, resource)| resource.clone()).collect()
    }
}

/// A place to make guests in.
struct Ground<'a> {
    platform: &'a dyn Platform,
    host: HostView,
    run_id: String,
    state: PathBuf,
    lab: Lab,
    notebook: Arc<Notebook>,
    ledger: Arc<dyn Ledger>,
}

/// Checks that guests of the platform start, are granted what was asked, run commands, answer over the
/// network, can be killed, and go without a trace, `cycles` times.
///
/// # Errors
/// `Ok(Err(_))`: what does not hold. `Err(_)`: the host lacks what the platform needs.
pub fn check(
    platform: &dyn Platform,
    agent: &Path,
    run_id: &str,
    state: &Path,
    cycles: u32,
) -> Result<Result<(), Broken>, Skipped> {
    let host = HostView::here(agent);
    if let Availability::Unavailable { reason, remedy } = platform.check(&host) {
        return Err(Skipped(format!("{reason}. {remedy}")));
    }
    let config = LabConfig { mtu: MTU, ..LabConfig::new(run_id) };
    let lab = Lab::create(config).map_err(|error| Skipped(error.to_string()))?;
    let notebook = Arc::new(Notebook::default());
    let ledger: Arc<dyn Ledger> = Arc::clone(&notebook) as Arc<dyn Ledger>;
    let ground = Ground { platform, host, run_id: run_id.to_owned(), state: state.to_owned(), lab, notebook, ledger };
    let result = ground
        .serves()
        .and_then(|()| ground.survives_its_death())
        .and_then(|()| ground.is_reaped())
        .and_then(|()| ground.leaves_nothing(cycles));
    // The run's own directory, which its end would remove.
    let swept = tare_lab::reap(run_id, &[], &mut |_, _| Ok(()));
    let result = result.and_then(|()| {
        let left = run_groups(run_id);
        hold(left.is_empty(), || format!("after the run, these control groups are still there: {left:?}"))?;
        let disk = tare_lab::disk_path(run_id);
        hold(!disk.exists(), || format!("after the run, {} is still there", disk.display()))
    });
    Ok(result.and_then(|()| {
        swept.left.first().map_or(Ok(()), |(resource, why)| Err(format!("{resource} could not be reaped: {why}")))
    }))
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
            lifetime: Duration::from_secs(300),
            patience: PATIENCE,
        }
    }

    fn reap_site(&self) -> crate::ReapSite<'_> {
        crate::ReapSite { run_id: &self.run_id, state: &self.state, agent: &self.host.agent }
    }

    fn start(&self, name: &str) -> Result<Box<dyn Guest>, Broken> {
        let size = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
        let spec = GuestSpec { name: name.to_owned(), size, cpu_set: vec![0] };
        self.platform.start(&self.site(), &spec).map_err(|error| format!("a guest did not start: {error}"))
    }

    /// The whole of a guest's use, and an orderly end.
    fn serves(&self) -> Result<(), Broken> {
        let mut guest = self.start("server")?;
        if guest.start_time_s() <= 0.0 {
            return Err("the start took no time".into());
        }
        if self.platform.comparable() == Comparable::Yes && self.host.limits_unavailable.is_none() {
            hold(guest.parity().len() >= 4, || format!("parity has only {} rows", guest.parity().len()))?;
            for row in guest.parity() {
                hold(row.equal, || format!("not granted as asked: {row:?}"))?;
            }
            hold(guest.groups().iter().all(|group| group.is_dir()), || {
                format!("groups {:?} are not there", guest.groups())
            })?;
            let inside = guest.groups().iter().any(|group| {
                std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|processes| !processes.trim().is_empty())
            });
            hold(inside, || "no process of the guest is in its control group".into())?;
        }
        hold(is_lab_address(guest.address()), || format!("its address {} is none of the lab's", guest.address()))?;
        let ran = exec(&*guest, &["true"])?;
        hold(ran.code == Some(0), || format!("`true` ended with {ran:?}"))?;
        self.writes_to_disk(&*guest)?;
        let result = self.exchange(guest.as_ref())?;
        hold(result.operations > 0 && result.errors.is_empty(), || format!("request and response: {result:?}"))?;
        guest.destroy().map_err(|error| error.to_string())?;
        guest.destroy().map_err(|error| format!("destroyed twice: {error}"))?;
        self.is_clean("after an orderly end")
    }

    /// What a guest with a place on disk writes is there, and nowhere in memory.
    fn writes_to_disk(&self, guest: &dyn Guest) -> Result<(), Broken> {
        let disk = tare_lab::disk_path(&self.run_id);
        for resource in self.notebook.open() {
            let Resource::Directory { path } = resource else { continue };
            if !path.starts_with(&disk) {
                continue;
            }
            tare_lab::check_on_disk(&path).map_err(|error| error.to_string())?;
            let ran = exec(guest, &["sh", "-c", "mkdir /tare-written"])?;
            hold(ran.code == Some(0), || format!("it cannot write: {ran:?}"))?;
            hold(!below(&path, "tare-written", 4).is_empty(), || {
                format!("what it wrote is not in {}", path.display())
            })?;
        }
        Ok(())
    }

    /// Request and response between an agent in the client's namespace and one in the guest.
    fn exchange(&self, guest: &dyn Guest) -> Result<DriveResult, Broken> {
        let socket = SocketOptions::default();
        let (exchange, wait) = (Exchange::TcpRr, Wait::Block);
        let spec = ServeSpec::Rr { exchange, request_bytes: 128, response_bytes: 128, wait, socket: socket.clone() };
        let target = match ask(guest, Request::Serve { spec, bind: guest.address() })? {
            Reply::Serving { address, .. } => address,
            other => return Err(format!("asked to serve, it answered {other:?}")),
        };
        let entry = registry::find("null").ok_or("there is no driver's place in the registry")?;
        let place = (entry.make)(&serde_json::json!({})).map_err(|error| error.to_string())?;
        let size = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
        let spec = GuestSpec { name: "driver".into(), size, cpu_set: Vec::new() };
        let mut driver = place.start(&self.site(), &spec).map_err(|error| error.to_string())?;
        let drive = DriveSpec {
            kind: DriveKind::Rr { exchange, request_bytes: 128, response_bytes: 128, wait },
            targets: vec![target],
            load: LoadModel::Closed { clients: 1, think_time: Span::ZERO },
            phases: Phases {
                warm_up: Span::ZERO,
                ramp_up: Span::ZERO,
                steady_state: Span::from_millis(200),
                ramp_down: Span::ZERO,
            },
            start_at_ns: 0,
            seed: 1,
            socket,
            record: true,
            loss_timeout_ns: 1_000_000_000,
            interval_ns: 100_000_000,
        };
        let Reply::Prepared { drive } = ask(&*driver, Request::PrepareDrive(Box::new(drive)))? else {
            return Err("asked to connect a driver, it answered something else".into());
        };
        let result = match ask(&*driver, Request::StartDrive { drive, start_at_ns: 0 })? {
            Reply::Driven(result) => *result,
            other => return Err(format!("asked to drive, it answered {other:?}")),
        };
        driver.destroy().map_err(|error| error.to_string())?;
        Ok(result)
    }

    /// A guest that is killed is seen to be gone, and can be taken away.
    fn survives_its_death(&self) -> Result<(), Broken> {
        let mut guest = self.start("victim")?;
        guest.kill().map_err(|error| error.to_string())?;
        let seen = guest.link().call(Request::Clock, PATIENCE);
        hold(seen.is_err(), || "a killed guest still answers".into())?;
        guest.destroy().map_err(|error| format!("destroyed after it was killed: {error}"))?;
        self.is_clean("after a kill")
    }

    /// What the platform keeps elsewhere is taken away from what was written down alone, as by a fresh
    /// process, any number of times.
    fn is_reaped(&self) -> Result<(), Broken> {
        let mut guest = self.start("orphan")?;
        for resource in self.notebook.open() {
            let Resource::Held { platform, token } = resource else { continue };
            let entry = registry::find(&platform)
                .ok_or_else(|| format!("`{platform}` holds something and is not in the registry"))?;
            for _ in 0..2 {
                (entry.reap)(&self.reap_site(), &token).map_err(|error| error.to_string())?;
            }
            hold(guest.link().call(Request::Clock, PATIENCE).is_err(), || "a reaped guest still answers".into())?;
        }
        guest.destroy().map_err(|error| format!("destroyed after it was reaped: {error}"))?;
        self.is_clean("after reaping")
    }

    /// Guests come and go, and neither we nor the host grow.
    fn leaves_nothing(&self, cycles: u32) -> Result<(), Broken> {
        let before = (entries("/proc/self/fd"), entries("/proc/self/task"), host_mounts());
        for cycle in 0..cycles {
            let mut guest = self.start("cycle")?;
            let ran = exec(guest.as_ref(), &["sh", "-c", "sleep 1000 & exit 7"])?;
            hold(ran.code == Some(7), || format!("cycle {cycle}: the command ended with {ran:?}"))?;
            guest.destroy().map_err(|error| format!("cycle {cycle}: {error}"))?;
        }
        self.is_clean("after many guests")?;
        // Threads and descriptors close a moment after the guest is gone.
        for _ in 0..100 {
            if (entries("/proc/self/fd"), entries("/proc/self/task")) <= (before.0, before.1) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let after = (entries("/proc/self/fd"), entries("/proc/self/task"), host_mounts());
        hold(after.0 <= before.0, || format!("file descriptors grew from {} to {}", before.0, after.0))?;
        hold(after.1 <= before.1, || format!("threads grew from {} to {}", before.1, after.1))?;
        hold(after.2 == before.2, || format!("mounts changed from {:?} to {:?}", before.2, after.2))
    }

    fn is_clean(&self, when: &str) -> Result<(), Broken> {
        let open = self.notebook.open();
        hold(open.is_empty(), || format!("{when}, these are still written down: {open:?}"))?;
        let processes = processes_of(&self.run_id);
        hold(processes.is_empty(), || format!("{when}, these processes are still there: {processes:?}"))?;
        let groups = groups_of(&self.run_id);
        hold(groups.is_empty(), || format!("{when}, these control groups are still there: {groups:?}"))?;
        let places = [self.state.join("guests"), tare_lab::disk_path(&self.run_id).join("guests")];
        let left = places.iter().flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten());
        let left: Vec<_> = left.map(|entry| entry.path()).collect();
        hold(left.is_empty(), || format!("{when}, these directories are still there: {left:?}"))
    }
}

fn hold(condition: bool, otherwise: impl FnOnce() -> String) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(otherwise()) }
}

fn ask(guest: &dyn Guest, request: Request) -> Result<Reply, Broken> {
    guest.link().call(request, PATIENCE).map_err(|error| format!("{error}. It said: {}", guest.diagnostics()))
}

fn exec(guest: &dyn Guest, argv: &[&str]) -> Result<ExecResult, Broken> {
    let spec = ExecSpec {
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        env: Vec::new(),
        directory: None,
        timeout_ns: 10_000_000_000,
        output_limit_bytes: 4096,
    };
    match ask(guest, Request::Exec(spec))? {
        Reply::Executed(result) => Ok(result),
        other => Err(format!("asked to run a command, it answered {other:?}")),
    }
}

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

fn host_mounts() -> BTreeSet<String> {
    std::fs::read_to_string("/proc/self/mounts").unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Processes that carry the run's id in their environment.
fn processes_of(run_id: &str) -> Vec<String> {
    let mark = format!("{RUN_VARIABLE}={run_id}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let marked = environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes());
            marked.then(|| {
                format!(
                    "{} {}",
                    entry.path().display(),
                    std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default()
                )
            })
        })
        .collect()
}

/// Control groups of guests of the run, in any hierarchy; the empty group of the run itself may stay to
/// its end.
fn groups_of(run_id: &str) -> Vec<PathBuf> {
    let runs = run_groups(run_id);
    let guests = runs.iter().flat_map(|run| std::fs::read_dir(run).into_iter().flatten().flatten());
    guests.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Control groups of the run itself.
fn run_groups(run_id: &str) -> Vec<PathBuf> {
    let mounts = host_mounts();
    let points = mounts.iter().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind) = (fields.next()?, fields.next()?);
        kind.starts_with("cgroup").then(|| PathBuf::from(point))
    });
    points.flat_map(|point| below(&point, &format!("tare-{run_id}"), 4)).collect()
}

fn below(directory: &Path, name: &str, depth: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in
        std::fs::read_dir(directory).into_iter().flatten().flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
    {
        if entry.file_name() == name {
            found.push(entry.path());
        } else if depth > 0 {
            found.extend(below(&entry.path(), name, depth - 1));
        }
    }
    found
}

/// An address from 198.18.0.0/15, which nothing outside routes, or loopback for what has no link.
fn is_lab_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || (v4.octets()[0] == 198 && v4.octets()[1] & 0xfe == 18),
        IpAddr::V6(v6) => v6.is_loopback(),
    }
}
