//! Putting this process into the namespaces, control groups and root file system of a guest.
//!
//! This runs while the process has one thread, and starts none.

use std::io;
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, setsid, waitpid};
use rustix::thread::{CpuSet, LinkNameSpaceType, UnshareFlags, move_into_link_name_space, sched_setaffinity, set_name};
use tare_wire::launch::{FIRST_DEVICE, Launch, Namespace};

use crate::error::{EnterError, during};
use crate::{confine, root, sys, user};

/// Which process came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered {
    /// The one that is in the guest.
    Inside,
    /// The one that stayed outside, after the one inside ended.
    Outside {
        /// How it ended, as a shell tells it: its code, or 128 and the signal.
        code: u8,
    },
}

fn impossible(what: &str, why: &str) -> EnterError {
    EnterError { what: what.into(), source: io::Error::new(io::ErrorKind::InvalidInput, why) }
}

/// Carries out a launch. Returns inside the guest when this agent is to serve there; a program that
/// was named replaces this one and nothing returns.
///
/// With a process namespace there are two processes: the outer one waits for the inner one, and
/// neither outlives the other.
///
/// # Errors
/// What could not be entered and why.
pub fn enter(launch: &Launch) -> Result<Entered, EnterError> {
    // Begun anew it would be called `exe`. A name is for people who look at processes, and may fail to be set.
    let _ = set_name(c"tare-agent");
    // Out of reach of the terminal of whoever started it, and a process group by itself. One that leads a session already stays what it is.
    let _ = setsid();
    let private = launch.root.is_some() || (!launch.mounts.is_empty() && !launch.mounts_stay);
    if private && !launch.unshare.contains(&Namespace::Mount) {
        return Err(impossible("mount", "mounts were asked for without a mount namespace to make them in"));
    }
    if launch.root.is_none() && !launch.shown.is_empty() {
        return Err(impossible("show directories", "they were asked for without a new root to show them in"));
    }
    if launch.hostname.is_some() && !launch.unshare.contains(&Namespace::Uts) {
        return Err(impossible("set the host name", "it was asked for without a UTS namespace to set it in"));
    }
    for procs in &launch.cgroup_procs {
        std::fs::write(procs, "0").map_err(during(format!("join the control group through {}", procs.display())))?;
    }
    if !launch.cgroup_procs.is_empty() && launch.argv.is_empty() {
        return Err(begin_anew(launch));
    }
    if launch.merge {
        open_to_merging()?;
    }
    if let Some(netns) = &launch.netns {
        let file =
            std::fs::File::open(netns).map_err(during(format!("open the network namespace {}", netns.display())))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(during(format!("enter the network namespace {}", netns.display())))?;
    }
    open_devices(&launch.devices)?;
    bind_to_cpus(&launch.cpu_set)?;
    if !launch.unshare.is_empty() {
        let flags = launch.unshare.iter().fold(UnshareFlags::empty(), |flags, &kind| flags | flag(kind));
        sys::unshare(flags).map_err(during(format!("make new namespaces {:?}", launch.unshare)))?;
    }
    if launch.unshare.contains(&Namespace::Pid) {
        if let sys::Forked::Parent { child } =
            sys::fork().map_err(during("start a process in the new process namespace"))?
        {
            return Ok(Entered::Outside { code: wait_outside(child)? });
        }
        // The outer process has one thread, so this fires when the process dies, and not before.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(during("ask to die with the outer process"))?;
    }
    settle(launch)?;
    if launch.keeps_groups {
        confine::keep_groups()?;
    }
    if let Some(user) = &launch.user {
        user::become_user(user)?;
    }
    if launch.argv.is_empty() { Ok(Entered::Inside) } else { Err(replace(&launch.argv)) }
}

/// Starts this program once more, in the control groups that it is in by now: what it had touched before stays charged
/// to whoever started it, and would be missing from the memory of the guest. Returns only why it could not.
fn begin_anew(launch: &Launch) -> EnterError {
    let rest = Launch { cgroup_procs: Vec::new(), ..launch.clone() };
    let json = match serde_json::to_string(&rest) {
        Ok(json) => json,
        Err(error) => return during("describe the rest of the launch")(io::Error::other(error)),
    };
    during("start the agent anew in its control groups")(begin_with(&["enter", &json]))
}

/// Starts this program once more in this process, with these arguments. Returns only why it could not.
pub fn begin_with(arguments: &[&str]) -> io::Error {
    // Found so also where its file was replaced meanwhile.
    let mut again = Command::new("/proc/self/exe");
    if let Some(name) = std::env::args_os().next() {
        again.arg0(name);
    }
    again.args(arguments).exec()
}

/// Opens the memory of this process, and of all that it starts, to merging with equal memory of others. Done before any
/// namespace is entered, where it might need rights that are gone inside.
fn open_to_merging() -> Result<(), EnterError> {
    sys::let_memory_merge().map_err(|error| {
        let why = format!(
            "the kernel refuses it: {error}; it takes Linux 6.4 with CONFIG_KSM, and 6.7 to hand it on to programs that are started; use such a kernel, or leave merging out of the study"
        );
        during("open its memory to merging (PR_SET_MEMORY_MERGE)")(io::Error::new(io::ErrorKind::Unsupported, why))
    })
}

/// Opens devices that the program finds open. They stay open for as long as this process lives.
fn open_devices(devices: &[PathBuf]) -> Result<(), EnterError> {
    for (number, device) in (FIRST_DEVICE..).zip(devices) {
        let tried = || format!("open the device {}", device.display());
        let opened = std::fs::File::options().read(true).write(true).open(device).map_err(during(tried()))?;
        let kept = rustix::io::fcntl_dupfd_cloexec(&opened, number).map_err(during(tried()))?;
        rustix::io::fcntl_setfd(&kept, FdFlags::empty()).map_err(during(tried()))?;
        if kept.into_raw_fd() != number {
            return Err(impossible(&tried(), &format!("the file number {number} is in use already")));
        }
    }
    Ok(())
}

const fn flag(kind: Namespace) -> UnshareFlags {
    match kind {
        Namespace::Mount => UnshareFlags::NEWNS,
        Namespace::Pid => UnshareFlags::NEWPID,
        Namespace::Ipc => UnshareFlags::NEWIPC,
        Namespace::Uts => UnshareFlags::NEWUTS,
        Namespace::Cgroup => UnshareFlags::NEWCGROUP,
        Namespace::Network => UnshareFlags::NEWNET,
    }
}

fn bind_to_cpus(cpus: &[u32]) -> Result<(), EnterError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(impossible(
                "bind to the CPUs",
                &format!("CPU {cpu} is beyond the {} that can be named", CpuSet::MAX_CPU),
            ));
        }
        set.set(cpu as usize);
    }
    sched_setaffinity(None, &set).map_err(during(format!("bind to the CPUs {cpus:?}")))
}

/// Mounts, root and name: all that must be done by the process that will live inside, because
/// `/proc` shows the process namespace of the one that mounts it.
fn settle(launch: &Launch) -> Result<(), EnterError> {
    if launch.unshare.contains(&Namespace::Mount) {
        root::make_private()?;
    }
    for mount in &launch.mounts {
        root::mount(mount)?;
    }
    if let Some(wanted) = &launch.root {
        root::change(wanted, &launch.shown, launch.unshare.contains(&Namespace::Cgroup))?;
    }
    if let Some(name) = &launch.hostname {
        rustix::system::sethostname(name.as_bytes()).map_err(during("set the host name"))?;
    }
    // Last: what was done so far takes what is given up now.
    launch.confine.as_ref().map_or(Ok(()), confine::confine)
}

/// Replaces this process by the program; returns only why it could not.
fn replace(argv: &[String]) -> EnterError {
    let source = Command::new(&argv[0]).args(&argv[1..]).exec();
    during(format!("run `{}`", argv.join(" ")))(source)
}

/// Lets go of the channel, so that its end is seen when the inner process ends, and waits for that.
fn wait_outside(child: Pid) -> Result<u8, EnterError> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open(PathBuf::from("/dev/null"));
    let null = null.map_err(during("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .map_err(during("let go of the channel"))?;
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                let code = status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0));
                return Ok(u8::try_from(code).unwrap_or(u8::MAX));
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(during("wait for the process inside")(error)),
        }
    }
}
