//! The bundle of a guest for a runtime of containers: `config.json` and the place where its root will be mounted.

use std::collections::HashSet;
use std::path::Path;

use oci_spec::OciSpecError;
use oci_spec::runtime::{
    Capability, LinuxBuilder, LinuxCapabilitiesBuilder, LinuxCpuBuilder, LinuxMemoryBuilder, LinuxNamespaceBuilder,
    LinuxNamespaceType, LinuxResourcesBuilder, MountBuilder, PosixRlimitBuilder, PosixRlimitType, Process,
    ProcessBuilder, RootBuilder, Spec, SpecBuilder, get_default_mounts,
};
use rustix::process::Rlimit;
use tare_wire::confine::{CAPABILITIES, MASKED, READ_ONLY};
use tare_wire::launch::Shown;

use crate::builder::{environment, limits};
use crate::guest_setup::{AGENT, GuestSetup};
use crate::parity::ranges;

/// One period of CPU quota, microseconds, as the lab sets it for every arm.
const PERIOD_US: u64 = 100_000;

/// What a bundle is written from.
pub(crate) struct Bundle<'a> {
    pub setup: GuestSetup<'a>,
    pub netns: &'a Path,
    /// Where the guest's root will be mounted.
    pub rootfs: &'a Path,
    /// The control group, from the root of each hierarchy.
    pub group: &'a str,
    /// Whether the agent begins only when it is let, once its process was taken in.
    pub waits: bool,
}

impl Bundle<'_> {
    /// Writes the bundle into a folder that is there.
    ///
    /// # Errors
    /// What could not be written, and why.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), String> {
        std::fs::create_dir_all(self.rootfs).map_err(|error| format!("{}: {error}", self.rootfs.display()))?;
        let config = folder.join("config.json");
        let spec = self.config().map_err(|error| format!("its description does not hold together: {error}"))?;
        spec.save(&config).map_err(|error| format!("{}: {error}", config.display()))
    }

    fn config(&self) -> Result<Spec, OciSpecError> {
        let mut mounts = get_default_mounts();
        for mount in mounts.iter_mut().filter(|mount| mount.destination() == Path::new("/dev/shm")) {
            // As large as on every other arm: half of the memory there is, within the guest's limit.
            let kept =
                mount.options().iter().flatten().filter(|option| !option.starts_with("size=")).cloned().collect();
            mount.set_options(Some(kept));
        }
        let options: Vec<String> = ["bind", "ro", "nosuid", "nodev"].map(str::to_owned).into();
        mounts.push(
            MountBuilder::default().destination(AGENT).typ("bind").source(self.setup.agent).options(options).build()?,
        );
        for Shown { from, at, read_only } in self.setup.data {
            let mode = if *read_only { "ro" } else { "rw" };
            let options: Vec<String> = ["bind", mode, "nosuid", "nodev"].map(str::to_owned).into();
            mounts.push(MountBuilder::default().destination(at).typ("bind").source(from).options(options).build()?);
        }
        let root = RootBuilder::default().path(self.rootfs).readonly(false).build()?;
        SpecBuilder::default()
            .version("1.0.2")
            .hostname(self.setup.spec.name.as_str())
            .root(root)
            .mounts(mounts)
            .process(self.process()?)
            .linux(self.linux()?)
            .build()
    }

    fn process(&self) -> Result<Process, OciSpecError> {
        let known = |(name, _): (&str, u32)| serde_json::from_value::<Capability>(name.into());
        let all: HashSet<Capability> = CAPABILITIES.map(known).into_iter().collect::<Result<_, _>>()?;
        let capabilities = LinuxCapabilitiesBuilder::default()
            .bounding(all.clone())
            .effective(all.clone())
            .permitted(all)
            // Engines pass on none of them by themselves.
            .inheritable(HashSet::new())
            .ambient(HashSet::new())
            .build()?;
        // What tare itself has, as on every other arm: a runtime with a kernel of its own has others by itself. Never
        // more than the hard limit, which nobody without CAP_SYS_RESOURCE may raise.
        let limit = |(name, limit): (&str, Rlimit)| {
            let kind: PosixRlimitType = serde_json::from_value(format!("RLIMIT_{name}").into())?;
            let hard = limit.maximum.unwrap_or(u64::MAX);
            PosixRlimitBuilder::default().typ(kind).hard(hard).soft(limit.current.unwrap_or(hard).min(hard)).build()
        };
        let limits = limits().map(limit).into_iter().collect::<Result<Vec<_>, _>>()?;
        ProcessBuilder::default()
            .terminal(false)
            .args(self.arguments())
            .env(environment(self.setup.run_id).map(|(name, value)| format!("{name}={value}")).to_vec())
            .cwd("/")
            .capabilities(capabilities)
            .rlimits(limits)
            .no_new_privileges(true)
            .build()
    }

    fn arguments(&self) -> Vec<String> {
        let wait = self.waits.then(|| "wait".to_owned());
        [AGENT.to_owned()].into_iter().chain(wait).chain(self.setup.confined()).collect()
    }

    fn linux(&self) -> Result<oci_spec::runtime::Linux, OciSpecError> {
        let kinds = [
            LinuxNamespaceType::Pid,
            LinuxNamespaceType::Ipc,
            LinuxNamespaceType::Uts,
            LinuxNamespaceType::Mount,
            LinuxNamespaceType::Cgroup,
        ];
        let mut namespaces = kinds
            .map(|kind| LinuxNamespaceBuilder::default().typ(kind).build())
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        namespaces.push(LinuxNamespaceBuilder::default().typ(LinuxNamespaceType::Network).path(self.netns).build()?);
        let mut cpu = LinuxCpuBuilder::default()
            .period(PERIOD_US)
            .quota(i64::from(self.setup.spec.size.cpus) * PERIOD_US.cast_signed());
        if !self.setup.spec.cpu_set.is_empty() {
            cpu = cpu.cpus(ranges(&self.setup.spec.cpu_set));
        }
        let memory = self.setup.spec.size.memory.0;
        let memory = LinuxMemoryBuilder::default().limit(i64::try_from(memory).unwrap_or(i64::MAX)).build()?;
        let resources = LinuxResourcesBuilder::default().cpu(cpu.build()?).memory(memory).build()?;
        let paths = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect::<Vec<_>>();
        // /sys is mounted read-only. What holds the hierarchies of version 1 below it is not, where the runtime makes that.
        let read_only = READ_ONLY.map(|path| if path == "/sys" { "/sys/fs/cgroup" } else { path });
        LinuxBuilder::default()
            .namespaces(namespaces)
            .cgroups_path(self.group)
            .resources(resources)
            .masked_paths(paths(&MASKED))
            .readonly_paths(paths(&read_only))
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_setup::{DATA, shown};
    use tare_model::ByteSize;
    use tare_model::guest::{GuestSize, GuestSpec, Seccomp};

    #[test]
    fn a_bundle_says_what_was_asked() {
        let size = GuestSize { cpus: 2, memory: ByteSize(1 << 30) };
        let spec = GuestSpec { cpu_set: vec![1, 2], ..GuestSpec::new("target", size) };
        let folder = tempfile::tempdir().unwrap();
        let rootfs = folder.path().join("rootfs");
        let netns = Path::new("/proc/1/fd/9");
        let [open, closed] = [false, true].map(|read_only| shown("/mnt/san/tare-r/target", read_only));
        let setup = GuestSetup { seccomp: Seccomp::Off, ..GuestSetup::of(&spec, "/opt/agent", &open) };
        let bundle = Bundle { setup, netns, rootfs: &rootfs, group: "/tare-r/target", waits: false };
        bundle.write(folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["linux"]["cgroupsPath"], "/tare-r/target");
        assert_eq!(config["linux"]["resources"]["cpu"]["quota"], 200_000);
        assert_eq!(config["linux"]["resources"]["cpu"]["cpus"], "1-2");
        assert_eq!(config["linux"]["resources"]["memory"]["limit"], 1 << 30);
        let mounts = config["mounts"].as_array().unwrap();
        let bound = mounts.iter().find(|mount| mount["source"] == "/mnt/san/tare-r/target").unwrap();
        assert_eq!(bound["destination"], DATA);
        assert!(bound["options"].as_array().unwrap().contains(&"rw".into()), "{bound}");
        let closed = Bundle { setup: GuestSetup { data: &closed, ..setup }, waits: true, ..bundle }.config().unwrap();
        let args = closed.process().as_ref().unwrap().args().clone().unwrap();
        assert_eq!(args, ["/.tare/agent", "wait", "--confine", "off"]);
        let closed = serde_json::to_string(&closed).unwrap();
        assert!(!closed.contains("\"rw\"") && closed.contains("/mnt/san/tare-r/target"), "{closed}");
        let limits = config["process"]["rlimits"].as_array().unwrap();
        assert!(limits.iter().all(|limit| limit["soft"].as_u64() <= limit["hard"].as_u64()), "{limits:?}");
        assert!(limits.iter().any(|limit| limit["type"] == "RLIMIT_MEMLOCK"), "{limits:?}");
        let process = &config["process"];
        assert_eq!(process["args"], serde_json::json!(["/.tare/agent", "--confine", "off"]));
        assert_eq!(process["noNewPrivileges"], true);
        assert_eq!(process["capabilities"]["bounding"].as_array().unwrap().len(), CAPABILITIES.len(), "{process}");
        assert!(config["linux"]["maskedPaths"].as_array().unwrap().contains(&"/proc/kcore".into()), "{config}");
        for path in ["/proc/sys", "/sys/fs/cgroup"] {
            assert!(config["linux"]["readonlyPaths"].as_array().unwrap().contains(&path.into()), "{config}");
        }
        let namespaces = config["linux"]["namespaces"].as_array().unwrap();
        assert!(namespaces.iter().any(|n| n["type"] == "network" && n["path"] == "/proc/1/fd/9"), "{namespaces:?}");
        assert!(config["process"]["env"].as_array().unwrap().contains(&"TARE_RUN=r".into()));
    }
}
