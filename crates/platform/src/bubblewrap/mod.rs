//! `bubblewrap`: sandboxes of bubblewrap's `bwrap`, as Flatpak and agents' tools use it.
//!
//! The program runs in the guest's control groups and its network namespace, and in a mount namespace of its own where
//! the guest's overlay is mounted. It makes the other namespaces and a root of bind mounts, and leaves nothing of its own on the host.

use std::path::Path;

use tare_model::Span;

use crate::Guest;
use crate::builder::{absolute, environment};
use crate::entry::Entry;
use crate::error::Result;
use crate::guest_setup::{AGENT, GuestSetup};
use crate::rootfs::overlay;
use crate::system::{Begun, Options, Starter, SystemContainers};

pub(crate) const ENTRY: Entry = Entry::of::<SystemContainers<Bubblewrap>>(
    "bubblewrap",
    "sandboxes of bubblewrap (bwrap), over the host's root, a directory, an archive or a container image",
    Span::from_millis(50),
);

struct Bubblewrap;

impl Starter for Bubblewrap {
    const PROGRAM: &'static str = "bwrap";
    const PACKAGE: &'static str = "bubblewrap";
    const ROOTLESS: bool = true;

    fn disclosures() -> Vec<String> {
        vec![
            "The guest is a process below bubblewrap's small init, as root, which without root is that of a user namespace. Its capabilities and its filter of system calls are \
             those of every arm, not a profile of bubblewrap's: the guest's agent sees to them."
                .into(),
            "It has no control group namespace, and its /sys is the host's, read-only.".into(),
        ]
    }

    fn start(begun: Begun<'_>, options: &Options) -> Result<Box<dyn Guest>> {
        let Begun { mut builder, program, lower, data, confinement, mut launch, netns, folder } = begun;
        launch.netns = Some(netns);
        let root = folder.join("root");
        std::fs::create_dir(&root).map_err(|error| {
            let why = format!("{}: {error}", root.display());
            builder.failed("make its directory", why, "Is the file system full or read-only?")
        })?;
        launch.mounts = vec![overlay(&mut builder, lower, &root, options.upper)?];
        let agent = absolute(builder.site.agent);
        launch.argv = arguments(&program, &builder.setup(&agent, &data, &confinement), &root);
        builder.start(&launch)
    }
}

/// The program with its arguments. It is not to die with whoever starts it (`--die-with-parent`): that is a thread, which ends once the guest
/// answers.
fn arguments(program: &Path, setup: &GuestSetup<'_>, root: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut argv = vec![text(program)];
    let mut say = |words: &[&str]| argv.extend(words.iter().map(|&word| word.to_owned()));
    say(&["--bind", &text(root), "/", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]);
    say(&["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", &setup.spec.name, "--chdir", "/"]);
    // Left to itself the program lets nobody but root through it.
    say(&["--perms", "0755", "--dir", "/.tare", "--ro-bind", &text(setup.agent), AGENT]);
    for data in setup.data {
        say(&[if data.read_only { "--ro-bind" } else { "--bind" }, &text(&data.from), &text(&data.at)]);
    }
    say(&["--clearenv"]);
    for (name, value) in environment(setup.run_id) {
        say(&["--setenv", name, value]);
    }
    say(&["--", AGENT]);
    argv.extend(setup.confined());
    argv
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_setup::shown;
    use tare_model::ByteSize;
    use tare_model::guest::{GuestSize, GuestSpec, Seccomp};

    #[test]
    fn data_are_shown_as_they_may_be_used_and_the_agent_confines_itself() {
        let size = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
        let spec = GuestSpec { seccomp: Seccomp::Off, ..GuestSpec::new("g", size) };
        for (read_only, bind) in [(false, "--bind"), (true, "--ro-bind")] {
            let data = shown("/mnt/a b", read_only);
            let argv =
                arguments(Path::new("/usr/bin/bwrap"), &GuestSetup::of(&spec, "/agent", &data), Path::new("/g/root"));
            let joined = argv.join("|");
            assert!(joined.contains(&format!("|{bind}|/mnt/a b|/.tare/data|")), "{joined}");
            assert!(joined.starts_with("/usr/bin/bwrap|--bind|/g/root|/|") && joined.contains("|--setenv|TARE_RUN|r|"));
            assert!(joined.ends_with("|--|/.tare/agent|--confine|off"), "{joined}");
            assert!(!joined.contains("die-with-parent"));
        }
    }
}
