//! gVisor, a runtime that brings a kernel of its own: its settings, whether it works here, and what its guests show.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_lab::StateDir;
use tare_model::Refusal;
use tare_wire::launch::Namespace;

use crate::builder::{absolute, environment, plain_launch};
use crate::probe_cache::{Failure, identity, remembered};
use crate::program;

/// The name of its program; `runsc-2026` is one, too.
const PROGRAM: &str = "runsc";

/// The mode of gVisor that needs nothing of the processor.
const WORKS_EVERYWHERE: &str = "--platform=systrap";

/// How long the smallest program may take in a sandbox.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// How gVisor works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Gvisor {
    /// How it takes over the guest's system calls: `systrap` (works everywhere), `kvm` (needs a `/dev/kvm` that runs
    /// guests) or `ptrace` (the old and slow way).
    pub platform: Trap,
    /// Whose network stack the guest has: gVisor's own (`sandbox`) or the host's (`host`).
    pub network: Network,
    /// Where writes to the guest's root go inside the sandbox: to a file of gVisor's own in the guest's overlay
    /// (`self`, as gVisor has it by default), to its memory (`memory`), or, one by one, to the guest's overlay
    /// (`none`).
    pub overlay: Overlay,
    /// Whose the files of the guest's data are to gVisor: `shared` with the host (it looks there at each use, as it does
    /// by default) or `exclusive`ly its own (kept in the sandbox until they are flushed), which is true of data that
    /// are restored for one guest.
    pub data: Access,
}

/// How system calls are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trap {
    /// By seccomp and shared memory.
    #[default]
    Systrap,
    /// By hardware virtualization.
    Kvm,
    /// By ptrace(2).
    Ptrace,
}

/// Whose network stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Network {
    /// gVisor's own, on the guest's link.
    #[default]
    Sandbox,
    /// The host's.
    Host,
}

/// Where writes to the root go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Overlay {
    /// A file of gVisor's own.
    #[default]
    #[serde(rename = "self")]
    Itself,
    /// Memory of the sandbox.
    Memory,
    /// The guest's overlay on the host.
    None,
}

/// Whose the files of a guest's data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Access {
    /// The host's, which may change them.
    #[default]
    Shared,
    /// The guest's alone.
    Exclusive,
}

/// Whether a program is gVisor's, by its name.
pub(super) fn is_gvisor(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PROGRAM))
}

/// Why the memory of its guests is never merged, and the remedy.
pub(super) fn merging_refusal() -> Refusal {
    let why =
        "gVisor keeps its guests' memory in a file of its sandbox (memfd), and the kernel merges no shared memory";
    Refusal::new(why, "use `runtime = \"runc\"` or `\"crun\"`, or leave `merging` out of this arm")
}

impl Gvisor {
    /// The arguments that say so.
    pub(super) fn flags(self) -> Vec<String> {
        let overlay = match self.overlay {
            Overlay::Itself => "root:self",
            Overlay::Memory => "root:memory",
            Overlay::None => "none",
        };
        let network = match self.network {
            Network::Sandbox => "sandbox",
            Network::Host => "host",
        };
        let mut flags = vec![
            format!("--platform={}", self.platform.name()),
            format!("--network={network}"),
            format!("--overlay2={overlay}"),
            // It warns at every start that the host's memory map limit could be higher.
            "--host-settings=ignore".into(),
        ];
        if self.data == Access::Exclusive {
            flags.push("--file-access-mounts=exclusive".into());
        }
        flags
    }

    /// What a reader must know.
    pub(super) fn disclosures(self) -> Vec<String> {
        let network = match self.network {
            Network::Sandbox => {
                "network stack of gVisor's own on the guest's link, with its own sizes of socket buffers and offloads"
            }
            Network::Host => "network stack of the host's",
        };
        let overlay = match self.overlay {
            Overlay::Itself => "Writes to its root are kept by gVisor in one file in the guest's overlay.",
            Overlay::Memory => "Writes to its root are kept in gVisor's memory, wherever the guest's overlay is.",
            Overlay::None => "Each write to its root goes to the guest's overlay.",
        };
        let mut all = vec![
            format!(
                "The guest runs on gVisor's kernel (platform {}) with the {network}; its sandbox and its file server \
                 are in the guest's control group.",
                self.platform.name()
            ),
            overlay.into(),
        ];
        if self.data == Access::Exclusive {
            all.push("gVisor takes the files of the guest's data for its own and does not look whether the host changed them.".into());
        }
        all
    }
}

impl Trap {
    const fn name(self) -> &'static str {
        match self {
            Self::Systrap => "systrap",
            Self::Kvm => "kvm",
            Self::Ptrace => "ptrace",
        }
    }
}

/// Whether a sandbox with these flags runs the smallest program here: tried once, then remembered for this kernel
/// and this program.
///
/// # Errors
/// Why not.
pub(super) fn works(program: &Path, flags: &[String], agent: &Path) -> Result<(), String> {
    let flags: Vec<&str> = flags.iter().map(String::as_str).filter(|flag| !flag.starts_with("--network")).collect();
    let written = flags.join(" ");
    remembered(&format!("a sandbox with {written}, by {}", identity(program)), || {
        let tried = format!("`{} {written}` did not run /bin/true", program.display());
        match try_out(program, &flags, agent, ANSWERS_WITHIN) {
            Ok(()) => Ok(()),
            Err(Tried::Failed(why)) => Err(Failure::Lasting(format!("{tried}: {why}"))),
            Err(Tried::Prevented(why)) => Err(Failure::Passing(format!("{tried}: {why}"))),
            // It tells nothing while it starts. So it hangs only where the mode that works everywhere is quick at the same time.
            Err(Tried::Slow(why)) => match try_out(program, &[WORKS_EVERYWHERE], agent, ANSWERS_WITHIN / 4) {
                Ok(()) => Err(Failure::Lasting(format!("{tried}: {why}"))),
                Err(_) => Err(Failure::Passing(format!(
                    "{tried}: {why}; this host is slow or busy now, as `{WORKS_EVERYWHERE}` took long, too, and that is not remembered"
                ))),
            },
        }
    })
}

/// What came of a trial of a sandbox that was no success.
enum Tried {
    /// It failed.
    Failed(String),
    /// It was not done in time.
    Slow(String),
    /// It could not be tried.
    Prevented(String),
}

fn try_out(program: &Path, flags: &[&str], agent: &Path, limit: Duration) -> Result<(), Tried> {
    // A run of its own, so that whatever stays behind is found and ended.
    let run_id = format!("probe-{}-{:?}", std::process::id(), std::thread::current().id());
    let run_id: String = run_id.to_lowercase().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let state = StateDir::create(&run_id, Path::new("/")).map_err(|error| Tried::Prevented(error.to_string()))?;
    let place = state.path().display().to_string();
    // What it mounts and writes for a moment stays behind when it is killed: the mounts are seen by nobody else and go
    // with its processes, the files go with the run's directory.
    let mut launch = plain_launch();
    launch.unshare = vec![Namespace::Mount];
    launch.argv = vec![program.to_string_lossy().into_owned()];
    launch.argv.extend(flags.iter().map(|&flag| flag.to_owned()));
    let fixed = ["--network=none", "--ignore-cgroups", "--root", &format!("{place}/sandbox"), "do", "/bin/true"];
    launch.argv.extend(fixed.map(str::to_owned));
    let description = serde_json::to_string(&launch).map_err(|error| Tried::Prevented(error.to_string()))?;
    let mut command = Command::new(absolute(agent));
    command.arg("enter").arg(description).env_clear().envs(environment(&run_id)).env("TMPDIR", place);
    let ran = program::run(&mut command, limit);
    let left = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(())).left;
    match ran {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Err(Tried::Slow(error.to_string())),
        Err(error) => Err(Tried::Prevented(error.to_string())),
        Ok(ran) if !ran.success => Err(Tried::Failed(last_line(&ran.output))),
        Ok(_) if !left.is_empty() => Err(Tried::Failed(format!("it left something behind: {left:?}"))),
        Ok(_) => Ok(()),
    }
}

fn last_line(output: &str) -> String {
    let line = output.lines().rfind(|line| !line.trim().is_empty());
    line.map_or_else(|| "it failed without a word".into(), |line| line.trim().chars().take(500).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_flags() {
        let set =
            Gvisor { platform: Trap::Kvm, network: Network::Host, overlay: Overlay::None, data: Access::Exclusive };
        let flags = set.flags();
        assert!(flags.contains(&"--file-access-mounts=exclusive".into()), "{flags:?}");
        assert_eq!(flags[..3], ["--platform=kvm", "--network=host", "--overlay2=none"]);
        assert!(Gvisor::default().flags().contains(&"--overlay2=root:self".into()));
        assert!(is_gvisor(Path::new("/opt/runsc-2026")) && !is_gvisor(Path::new("/usr/sbin/runc")));
    }

    #[test]
    fn a_program_that_is_no_sandbox_is_refused_with_what_it_said() {
        let why = works(Path::new("/bin/false"), &["--platform=x".into()], Path::new("/bin/false")).unwrap_err();
        assert!(why.contains("/bin/false --platform=x") && why.contains("without a word"), "{why}");
        assert_eq!(last_line("a\nthe reason\n\n"), "the reason");
    }
}
