//! Whether KVM really runs guests here. That `/dev/kvm` opens says little: inside other hypervisors it may be there and
//! boot no ordinary kernel. So only a guest that answered is believed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tare_image::{Boot, GuestConfig, Kernel, Root};
use tare_model::ByteSize;

use super::Lack;
use super::command::{self, Basics};
use super::options::{Accel, Machine, Memory, Options};
use crate::channel::Channel;
use crate::machine::kernel;
use crate::making::{absolute, environment};
use crate::program::find;
use crate::remembered::{identity, remembered};

/// How long the probe's guest may take to answer.
const PROBE: Duration = Duration::from_secs(20);
/// After so long its QEMU ends by itself, whatever becomes of tare, seconds.
const PROBE_ENDS_S: u64 = 25;
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

/// Chooses. Takes up to 20 s the first time that KVM looks usable, or is asked for by name.
///
/// # Errors
/// When KVM is asked for and boots nothing.
pub(super) fn choose(options: &Options, agent: &Path) -> Result<Chosen, Lack> {
    match options.accel {
        Accel::Tcg => Ok(Chosen::Tcg(None)),
        Accel::Kvm => {
            let emulated = "write accel = \"tcg\", whose figures are labelled as emulated";
            let lack =
                |(why, remedy)| Lack::new(format!("KVM runs no guest here: {why}"), format!("{remedy}; or {emulated}"));
            kernel::kvm().map_err(lack)?;
            boots(options, agent).map_err(|why| lack((why, "Use a host with KVM".to_owned())))?;
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
    kernel::kvm().map_err(|(why, remedy)| format!("{why} ({remedy})"))?;
    if Path::new("/sys/module/kvm_pvm").exists() {
        return Err("the host's KVM is of a kind (kvm_pvm) that boots no ordinary kernel".into());
    }
    let cpus = std::fs::read_to_string("/proc/cpuinfo").map_err(|error| format!("/proc/cpuinfo: {error}"))?;
    if kernel::has_extensions(&cpus) { Ok(()) } else { Err("the processor shows neither vmx nor svm".into()) }
}

/// Whether a guest boots to its agent, tried or remembered.
fn boots(options: &Options, agent: &Path) -> Result<(), String> {
    let program = find(&options.program).ok_or_else(|| format!("there is no {}", options.program))?;
    let kernel = Kernel::find(options.kernel.as_deref()).map_err(|error| error.to_string())?;
    let timeout = find("timeout").ok_or("there is no `timeout` to bound the attempt with")?;
    // What is missing on tare's side says nothing about KVM, and is not to be remembered as if it did.
    let boot = tare_image::boot(&kernel, &absolute(agent)).map_err(|error| error.to_string())?;
    let cpu = options.cpu_model.as_deref().unwrap_or("host");
    let key = format!("KVM boots a guest\n{}\n{}\n{cpu}", identity(&program), identity(&kernel.image));
    remembered(&key, || try_to_boot(&timeout, &program, &boot, cpu))
}

fn try_to_boot(timeout: &Path, program: &Path, boot: &Boot, cpu: &str) -> Result<(), String> {
    let config = GuestConfig {
        hostname: "probe".into(),
        run_id: "probe".into(),
        root: Root::Initrd,
        address: None,
        mtu: 1500,
        congestion_control: None,
        data_disks: Vec::new(),
        iscsi: None,
    };
    let told = config.command_line().map_err(|error| error.to_string())?;
    let basics = Basics {
        machine: Machine::Q35,
        kvm: true,
        cpu,
        cpus: 1,
        memory: PROBE_MEMORY,
        boot: Some((boot, &told)),
        append: &[],
    };
    let mut command = Command::new(timeout);
    command.args(["-s", "KILL", &PROBE_ENDS_S.to_string()]).arg(program).args(command::basics(&basics));
    command.args(command::memory(Machine::Q35, PROBE_MEMORY, Memory::default(), false, false));
    command.env_clear().envs(environment("probe"));
    let mut channel = Channel::spawn(&mut command).map_err(|error| error.to_string())?;
    let answered = channel.open(PROBE, PROBE);
    // `timeout` and QEMU are one process group.
    if let Some(group) = i32::try_from(channel.pid()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = channel.wait(Duration::from_secs(5));
    answered.map(drop).map_err(|error| {
        let said = channel.diagnostics();
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("nothing");
        format!("/dev/kvm opens, but a guest did not come up: {error}; the last it said: {last}")
    })
}
