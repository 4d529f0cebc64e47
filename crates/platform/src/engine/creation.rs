//! The arguments with which an engine makes a guest's container.

use std::path::Path;

use tare_wire::confine::CAPABILITIES;

use super::image::Image;
use crate::builder::{environment, limits};
use crate::guest_setup::{AGENT, GuestSetup};

/// A container that is to be made.
pub(super) struct Creation<'a> {
    pub name: &'a str,
    pub setup: GuestSetup<'a>,
    /// The namespace of its link; without it, it gets one without a link.
    pub netns: Option<&'a Path>,
    pub image: &'a Image,
    pub runtime: Option<&'a str>,
    /// How a bind mount is made without what is mounted below: that would stay open to writing.
    pub alone: &'a str,
    /// What this engine needs besides.
    pub further: Vec<String>,
}

impl Creation<'_> {
    /// The engine's command with all its arguments.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut all: Vec<String> = [
            "create",
            "--interactive",
            "--pull=never",
            "--log-driver=none",
            "--restart=no",
            "--no-healthcheck",
            "--ipc=private",
            "--user=0:0",
            "--workdir=/",
            // No filter and no profile of the engine's: every arm has those of the agent.
            "--security-opt=seccomp=unconfined",
            "--security-opt=apparmor=unconfined",
            "--security-opt=label=disable",
            "--security-opt=no-new-privileges",
            "--cap-drop=ALL",
        ]
        .map(str::to_owned)
        .into();
        all.extend(CAPABILITIES.iter().map(|(name, _)| format!("--cap-add={}", name.trim_start_matches("CAP_"))));
        all.push(format!("--name={}", self.name));
        all.push(format!("--hostname={}", self.setup.spec.name));
        all.push(format!("--label=tare.run={}", self.setup.run_id));
        let network = self.netns.map(|netns| format!("ns:{}", netns.display()));
        all.push(format!("--network={}", network.as_deref().unwrap_or("none")));
        all.extend(self.runtime.map(|runtime| format!("--runtime={runtime}")));
        // As large as on every other arm: half of the memory there is.
        all.push(format!("--shm-size={}", half_of_memory()));
        all.extend(environment(self.setup.run_id).map(|(name, value)| format!("--env={name}={value}")));
        // Engines know no limit on the address space.
        all.extend(limits().into_iter().filter(|(name, _)| *name != "AS").map(|(name, limit)| {
            // An engine may have lowered its own to as many as there can be, and then may set no more.
            let most = if name == "NPROC" { most_processes() } else { None };
            let number = |limit: Option<u64>| match limit.into_iter().chain(most).min() {
                Some(limit) => limit.to_string(),
                None => "-1".to_owned(),
            };
            format!("--ulimit={}={}:{}", name.to_ascii_lowercase(), number(limit.current), number(limit.maximum))
        }));
        all.push(self.bind(self.setup.agent, AGENT, true));
        let data = self.setup.data.iter();
        all.extend(data.map(|data| self.bind(&data.from, &data.at.to_string_lossy(), data.read_only)));
        all.extend(self.image.shown.iter().map(|from| self.bind(from, &from.to_string_lossy(), true)));
        all.extend(self.further.iter().cloned());
        all.push(format!("--entrypoint={AGENT}"));
        all.push(self.image.reference.clone());
        // It begins when it is in its control groups.
        all.push("wait".into());
        all.extend(self.setup.confined());
        all
    }

    /// A bind mount. Its fields are those of a line of CSV.
    fn bind(&self, from: &Path, at: &str, read_only: bool) -> String {
        let quoted = |field: String| match field.contains([',', '"']) {
            true => format!("\"{}\"", field.replace('"', "\"\"")),
            false => field,
        };
        let (source, target) = (format!("source={}", from.display()), format!("target={at}"));
        let access = if read_only { ",readonly" } else { "" };
        format!("--mount=type=bind,{},{}{access},{}", quoted(source), quoted(target), self.alone)
    }
}

/// How many processes the host can have.
fn most_processes() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse().ok()
}

/// Half of the host's memory, bytes.
fn half_of_memory() -> u64 {
    let total = rustix::system::sysinfo();
    total.totalram.saturating_mul(u64::from(total.mem_unit)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_setup::shown;
    use tare_model::ByteSize;
    use tare_model::guest::{GuestSize, GuestSpec};

    #[test]
    fn a_container_is_closed_and_linked_as_on_every_arm() {
        let spec = GuestSpec::new("g", GuestSize { cpus: 1, memory: ByteSize(1 << 30) });
        let image = Image { reference: "localhost/app:1".into(), shown: vec!["/usr".into()] };
        let [open, closed] = [false, true].map(|read_only| shown("/mnt/data", read_only));
        let mut creation = Creation {
            name: "tare-r-g",
            setup: GuestSetup::of(&spec, "/opt/a,b\"c/agent", &open),
            netns: Some(Path::new("/proc/7/fd/9")),
            image: &image,
            runtime: Some("youki"),
            alone: "bind-nonrecursive",
            further: vec!["--userns=host".into()],
        };
        let all = creation.arguments();
        let has = |word: &str| all.iter().any(|argument| argument == word);
        for word in [
            "--network=ns:/proc/7/fd/9",
            "--pull=never",
            "--cap-drop=ALL",
            "--cap-add=CHOWN",
            "--security-opt=no-new-privileges",
            "--env=TARE_RUN=r",
            "--label=tare.run=r",
            "--runtime=youki",
            "--userns=host",
            "--mount=type=bind,\"source=/opt/a,b\"\"c/agent\",target=/.tare/agent,readonly,bind-nonrecursive",
            "--mount=type=bind,source=/mnt/data,target=/.tare/data,bind-nonrecursive",
            "--mount=type=bind,source=/usr,target=/usr,readonly,bind-nonrecursive",
        ] {
            assert!(has(word), "{word}: {all:?}");
        }
        assert!(all.ends_with(&["localhost/app:1", "wait", "--confine", "default"].map(str::to_owned)), "{all:?}");
        assert!(!all.iter().any(|argument| argument.starts_with("--ulimit=as=") || argument.contains("--privileged")));
        (creation.netns, creation.setup.data) = (None, &closed);
        let all = creation.arguments();
        assert!(all.contains(&"--network=none".to_owned()), "{all:?}");
        assert!(
            all.contains(
                &"--mount=type=bind,source=/mnt/data,target=/.tare/data,readonly,bind-nonrecursive".to_owned()
            )
        );
    }
}
