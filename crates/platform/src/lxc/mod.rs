//! `lxc`: system containers started by LXC's own `lxc-execute`, without its daemon.
//!
//! The program runs in the guest's control groups and its network namespace, and in a mount namespace of its own,
//! where the guest's overlay is mounted and the host's control group hierarchies are out of sight: LXC then makes no
//! groups of its own, and all that it starts stays in the guest's.

mod config;

use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::{Refusal, Span};
use tare_wire::launch::PrivateMount;

use self::config::{Config, Shown};
use crate::data::DataDirectory;
use crate::error::Result;
use crate::groups::Hierarchy;
use crate::making::{absolute, confined};
use crate::options as common;
use crate::registry::{Entry, PLAIN, nothing_held};
use crate::rootfs::overlay;
use crate::system::{AGENT, Begun, Options, Starter, private_state};
use crate::{Availability, Comparable, DataWanted, Guest, HostView, Platform, Site};

const STARTER: Starter = Starter { program: "lxc-execute", package: "lxc" };

/// Where the program keeps locks of its containers.
const STATE: &str = "/run/lxc";

pub(crate) const ENTRY: Entry = Entry {
    name: "lxc",
    summary: "system containers of LXC, by lxc-execute, over the host's root, a directory, an archive or a container image",
    schema: common::schema::<Options>,
    check_options: common::fill::<Options>,
    make,
    start_estimate: Span::from_millis(60),
    reap: nothing_held,
    variants: PLAIN,
};

fn make(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    common::read(value).map(|options| Box::new(Lxc { options }) as Box<dyn Platform>)
}

struct Lxc {
    options: Options,
}

impl Platform for Lxc {
    fn look(&self, host: &HostView) -> Availability {
        STARTER.look(host, &self.options)
    }

    fn check(&self, host: &HostView) -> Availability {
        STARTER.check(host, &self.options)
    }

    fn disclosures(&self) -> Vec<String> {
        let mut sentences = vec![
            self.options.rootfs.disclosure(self.options.upper),
            "The guest is a process below LXC's small init, as root. Its capabilities and its filter of system calls are not \
             those of LXC's common configuration but those of every arm: the guest's agent sees to them."
                .into(),
            "The control groups are tare's, as on every arm: LXC sets no limits and no filter of devices.".into(),
        ];
        if config::apparmor_is_on() {
            sentences.push("LXC's profile for AppArmor is left out: no other arm has one.".into());
        }
        sentences.extend(self.options.data.as_ref().and_then(DataDirectory::disclosure));
        sentences
    }

    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        None
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        STARTER.versions()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let Begun { mut making, program, lower, data, mut launch, netns, folder } =
            STARTER.begin(&self.options, site, spec)?;
        launch.netns = Some(netns);
        let (root, file) = (folder.join("root"), folder.join("config"));
        let agent = absolute(site.agent);
        let mounted = Hierarchy::mounted();
        let shown = Shown::of(&making.groups(), &mounted, &folder);
        let config = Config {
            guest: &spec.name,
            root: &root,
            agent: &agent,
            data: data.as_deref(),
            read_only: making.is_data_shared(),
            run_id: site.run_id,
            groups: &shown,
            apparmor: config::apparmor_is_on(),
        };
        let places = shown.iter().map(|shown| &shown.from).chain([&root]);
        let state = { places }
            .try_for_each(std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&file, config.text()))
            .map_err(|error| error.to_string())
            .and_then(|()| private_state(&folder, STATE))
            .map_err(|why| {
                let tried = format!("make its configuration in {}", folder.display());
                making.failed(&tried, why, "Is the file system full or read-only?")
            })?;
        launch.mounts = vec![overlay(&mut making, lower, &root, self.options.upper)?, state];
        launch.mounts.extend(shown.into_iter().map(|shown| PrivateMount::Bind { from: shown.group, at: shown.from }));
        launch.mounts.extend(mounted.into_iter().map(|hierarchy| PrivateMount::Hide { at: hierarchy.at }));
        let (file, folder) = (file.to_string_lossy(), folder.to_string_lossy());
        let argv = [&program.to_string_lossy(), "--name", &spec.name, "--rcfile", &file, "--lxcpath", &folder];
        launch.argv = argv.map(str::to_owned).to_vec();
        launch.argv.extend(["--logfile", "/dev/stderr", "--logpriority", "ERROR", "--", AGENT].map(str::to_owned));
        launch.argv.extend(confined(making.confine()));
        making.start(&launch)
    }
}
