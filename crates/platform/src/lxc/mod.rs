//! `lxc`: system containers started by LXC's own `lxc-execute`, without its daemon.
//!
//! The program runs in the guest's control groups and its network namespace, and in a mount namespace of its own,
//! where the guest's overlay is mounted and the host's control group hierarchies are out of sight: LXC then makes no
//! groups of its own, and all that it starts stays in the guest's.

mod config;

use tare_model::Span;
use tare_wire::launch::PrivateMount;

use self::config::{Config, Shown};
use crate::Guest;
use crate::builder::absolute;
use crate::entry::Entry;
use crate::error::Result;
use crate::groups::Hierarchy;
use crate::guest_setup::AGENT;
use crate::rootfs::overlay;
use crate::system::{Begun, Options, Starter, SystemContainers, private_state};

/// Where the program keeps locks of its containers.
const STATE: &str = "/run/lxc";

pub(crate) const ENTRY: Entry = Entry::of::<SystemContainers<Lxc>>(
    "lxc",
    "system containers of LXC, by lxc-execute, over the host's root, a directory, an archive or a container image",
    Span::from_millis(60),
);

struct Lxc;

impl Starter for Lxc {
    const PROGRAM: &'static str = "lxc-execute";
    const PACKAGE: &'static str = "lxc";

    fn disclosures() -> Vec<String> {
        let mut sentences = vec![
            "The guest is a process below LXC's small init, as root. Its capabilities and its filter of system calls are not \
             those of LXC's common configuration but those of every arm: the guest's agent sees to them."
                .into(),
            "The control groups are tare's, as on every arm: LXC sets no limits and no filter of devices.".into(),
        ];
        if config::apparmor_is_on() {
            sentences.push("LXC's profile for AppArmor is left out: no other arm has one.".into());
        }
        sentences
    }

    fn start(begun: Begun<'_>, options: &Options) -> Result<Box<dyn Guest>> {
        let Begun { mut builder, program, lower, data, confinement, mut launch, netns, folder } = begun;
        let (site, spec) = (builder.site, builder.spec);
        launch.netns = Some(netns);
        let (root, file) = (folder.join("root"), folder.join("config"));
        let agent = absolute(site.agent);
        let mounted = Hierarchy::mounted();
        let shown = Shown::of(&builder.groups(), &mounted, &folder);
        let setup = builder.setup(&agent, &data, &confinement);
        let config = Config { setup, root: &root, groups: &shown, apparmor: config::apparmor_is_on() };
        let places = shown.iter().map(|shown| &shown.from).chain([&root]);
        let state = { places }
            .try_for_each(std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&file, config.text()))
            .map_err(|error| error.to_string())
            .and_then(|()| private_state(&folder, STATE))
            .map_err(|why| {
                let tried = format!("make its configuration in {}", folder.display());
                builder.failed(&tried, why, "Is the file system full or read-only?")
            })?;
        launch.mounts = vec![overlay(&mut builder, lower, &root, options.upper)?, state];
        launch.mounts.extend(shown.into_iter().map(|shown| PrivateMount::Bind { from: shown.group, at: shown.from }));
        launch.mounts.extend(mounted.into_iter().map(|hierarchy| PrivateMount::Hide { at: hierarchy.at }));
        let (file, folder) = (file.to_string_lossy(), folder.to_string_lossy());
        let argv = [&program.to_string_lossy(), "--name", &spec.name, "--rcfile", &file, "--lxcpath", &folder];
        launch.argv = argv.map(str::to_owned).to_vec();
        launch.argv.extend(["--logfile", "/dev/stderr", "--logpriority", "ERROR", "--", AGENT].map(str::to_owned));
        launch.argv.extend(setup.confined());
        builder.start(&launch)
    }
}
