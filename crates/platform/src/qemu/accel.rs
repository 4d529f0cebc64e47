//! Whether KVM really runs guests here. That `/dev/kvm` opens says little: inside other hypervisors it may be there and
//! boot no ordinary kernel. So only a guest that answered is believed.

use std::cell::RefCell;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tare_image::{Boot, Extras, Kernel};
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::{ByteSize, Refusal};

use super::command::{self, Basics};
use super::options::{Accel, Machine, Memory, Options};
use super::start::has_ended;
use crate::builder::{absolute, environment};
use crate::channel::{Channel, kill_group};
use crate::machine::attempt::{self, Limits};
use crate::machine::kernel;
use crate::probe_cache::{Failure, identity, remembered};
use crate::program::find;

/// How long QEMU may take to be gone, once it has ended or was killed.
const ENDS: Duration = Duration::from_secs(5);
/// Memory of the probe's guest.
const PROBE_MEMORY: ByteSize = ByteSize(256 << 20);

/// What runs the instructions of guests here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The processor.
    Kvm,
    /// Software; why the processor does not, where that was wanted.
    Tcg(Option<String>),
}

impl Chosen {
    pub(super) fn is_kvm(&self) -> bool {
        *self == Self::Kvm
    }
}

/// Chooses. Boots a guest the first time that KVM looks usable, or is asked for by name: at most `boot-within`, and less
/// where its console stands still.
///
/// # Errors
/// When KVM is asked for and boots nothing.
pub(super) fn choose(options: &Options, agent: &Path) -> Result<Chosen, Refusal> {
    match options.accel {
        Accel::Tcg => Ok(Chosen::Tcg(None)),
        Accel::Kvm => {
            let emulated = "write accel = \"tcg\", whose figures are labelled as emulated";
            let refused = |Refusal { reason, remedy }| {
                Refusal::new(format!("KVM runs no guest here: {reason}"), format!("{remedy}; or {emulated}"))
            };
            kernel::kvm().map_err(refused)?;
            boots(options, agent).map_err(|why| refused(Refusal::new(why, "Use a host with KVM")))?;
            Ok(Chosen::Kvm)
        }
        Accel::Auto => Ok(match promising().and_then(|()| boots(options, agent)) {
            Ok(()) => Chosen::Kvm,
            Err(why) => Chosen::Tcg(Some(why)),
        }),
    }
}

/// What can be seen at once, before a guest is tried.
pub(super) fn promising() -> Result<(), String> {
    kernel::kvm_is_ordinary()?;
    let cpus = std::fs::read_to_string("/proc/cpuinfo").map_err(|error| format!("/proc/cpuinfo: {error}"))?;
    if kernel::has_extensions(&cpus) { Ok(()) } else { Err("the processor shows neither vmx nor svm".into()) }
}

/// Whether a guest boots to its agent, tried or remembered.
fn boots(options: &Options, agent: &Path) -> Result<(), String> {
    let program = find(&options.program).ok_or_else(|| format!("there is no {}", options.program))?;
    let kernel = Kernel::find(options.kernel.as_deref()).map_err(|error| error.to_string())?;
    let timeout = find("timeout").ok_or("there is no `timeout` to bound the attempt with")?;
    // What is missing on tare's side says nothing about KVM, and is not to be remembered as if it did.
    let boot = tare_image::boot(&kernel, &absolute(agent), &Extras::default()).map_err(|error| error.to_string())?;
    let cpu = options.cpu_model.as_deref().unwrap_or("host");
    let key = format!("KVM boots a guest\n{}\n{}\n{cpu}", identity(&program), identity(&kernel.image));
    let limits = Limits::within(options.boot_within.duration());
    remembered(&key, || try_to_boot(&timeout, &program, &boot, cpu, limits))
}

fn try_to_boot(timeout: &Path, program: &Path, boot: &Boot, cpu: &str, limits: Limits) -> Result<(), Failure> {
    let words = attempt::config("probe").command_line().map_err(|error| Failure::Passing(error.to_string()))?;
    let basics = Basics {
        machine: Machine::Q35,
        kvm: true,
        cpu,
        cpus: 1,
        boot: Some((boot, &words)),
        append: &[attempt::TALKS.to_owned()],
    };
    let mut command = Command::new(timeout);
    command.args(["-s", "KILL", &ends_after_s(limits)]).arg(program).args(command::basics(&basics));
    let spec = GuestSpec::new("probe", GuestSize { cpus: 1, memory: PROBE_MEMORY });
    command.args(command::memory(Machine::Q35, Memory::default(), false, &spec));
    command.env_clear().envs(environment("probe"));
    let channel = Channel::spawn(&mut command).map_err(|error| Failure::Passing(error.to_string()))?;
    let (console, pid) = (channel.tail(), channel.pid());
    let channel = RefCell::new(channel);
    let answered = attempt::answers(
        limits,
        &console,
        |within| channel.borrow_mut().open(tare_wire::Link::open, within, within),
        || kill_group(pid),
        || {
            wait_for_end(pid);
            let mut channel = channel.borrow_mut();
            channel.kill_group();
            channel.wait(ENDS).ok().flatten().and_then(ended)
        },
    );
    // `timeout` and QEMU are one process group.
    channel.borrow().kill_group();
    let _ = channel.borrow_mut().wait(ENDS);
    answered
}

/// Waits until a child has ended, and does not bury it: its number stays its own.
fn wait_for_end(pid: u32) {
    let deadline = Instant::now() + ENDS;
    while !has_ended(pid) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// After so long its QEMU ends by itself, whatever becomes of tare: later than tare would end it.
fn ends_after_s(limits: Limits) -> String {
    (limits.within + ENDS * 2).as_secs().to_string()
}

/// What QEMU's end says of KVM. Nothing where somebody ended it: the kernel for want of memory, an administrator, a shutdown.
/// It ends with 0 when the guest resets or powers off, and such a guest may boot the next time.
fn ended(status: ExitStatus) -> Option<Failure> {
    const SOMEBODYS: [Signal; 4] = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP];
    if status.success() {
        return Some(Failure::Passing("the guest reset or powered off".into()));
    }
    // `timeout` reports a signal as shells do.
    let signal = status.signal().or_else(|| status.code().map(|code| code - 128))?;
    let by_somebody = SOMEBODYS.iter().any(|somebodys| somebodys.as_raw() == signal);
    (!by_somebody).then(|| Failure::Lasting(status.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What an attempt finds with a script in the place of QEMU.
    fn tries(script: &str, limits: Limits) -> Failure {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let program = place.path().join("qemu");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let boot = Boot { kernel: "/dev/null".into(), initrd: "/dev/null".into() };
        try_to_boot(&find("timeout").unwrap(), &program, &boot, "host", limits).unwrap_err()
    }

    const LONG: Duration = Duration::from_secs(300);

    #[test]
    fn a_guest_that_still_prints_is_on_a_slow_host() {
        // It prints for longer than it may stand still.
        let limits = Limits { still: Duration::from_millis(700), within: Duration::from_secs(2) };
        let found = tries("while :; do echo probing >&2; sleep 0.05; done", limits);
        assert!(matches!(found, Failure::Passing(_)), "{found:?}");
        assert!(found.reason().contains("boot-within") && found.reason().contains("probing"), "{found:?}");
        assert_eq!(ends_after_s(Limits { within: LONG, ..limits }), "310", "QEMU's own end comes after tare's");
        assert_eq!(Limits::within(LONG).still, LONG / 2, "who gives guests more time has a slow host");
    }

    #[test]
    fn a_guest_that_stands_still_is_not_waited_for() {
        let began = Instant::now();
        let limits = Limits { still: Duration::from_millis(500), within: LONG };
        let found = tries("echo Linux version >&2; exec sleep 300", limits);
        assert!(matches!(found, Failure::Lasting(_)) && found.reason().contains("stood still"), "{found:?}");
        assert!(found.reason().contains("Linux version"), "{found:?}");
        assert!(began.elapsed() < LONG);
    }

    #[test]
    fn a_qemu_that_fails_is_believed_and_one_that_was_killed_or_whose_guest_reset_is_not() {
        let limits = Limits { still: LONG, within: LONG };
        for ends in ["exit 1", "kill -ABRT $$"] {
            let found = tries(&format!("echo kvm_buf_set_msrs >&2; {ends}"), limits);
            assert!(matches!(found, Failure::Lasting(_)), "{ends}: {found:?}");
            assert!(found.reason().contains("kvm_buf_set_msrs"), "{ends}: {found:?}");
        }
        for ends in ["kill -KILL $$", "kill -TERM $$", "exit 0"] {
            let found = tries(ends, limits);
            assert!(matches!(found, Failure::Passing(_)), "{ends}: {found:?}");
            assert_eq!(found.reason().contains("the guest reset"), ends == "exit 0", "{ends}: {found:?}");
        }
    }
}
