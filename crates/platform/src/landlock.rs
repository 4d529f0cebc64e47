//! Landlock as an option of an arm: the rules, whether this kernel takes them, and what a reader must know of them.

use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_wire::confine::{Landlock, landlock_version};

/// Where the guest's programs may write in any case: devices, which are few in a guest, and its data.
const ALWAYS: [&str; 2] = ["/dev", "/.tare"];

/// Where programs write by the Filesystem Hierarchy Standard, if nothing else is said.
const USUAL: [&str; 8] = ["/home", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/var"];

/// The option `landlock` of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "takes `true`, `false`, or a table with `write`, `tcp-bind` and `tcp-connect`")]
pub(crate) enum LandlockOption {
    /// `true`: the guest's programs read and run all files that they see and write beneath `/dev`, `/home`, `/mnt`, `/opt`, `/root`, `/run`,
    /// `/srv`, `/tmp`, `/var` and their data alone. `false`: they are under no rules of Landlock.
    Switch(bool),
    /// The same with rules of the arm's own.
    Rules(Rules),
}

/// Rules of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Rules {
    /// The directories that the guest's programs may write beneath, beside `/dev` and their data.
    pub write: Vec<PathBuf>,
    /// The TCP ports that they may bind to; 0 is one that the kernel chooses. Left out: all. Takes Linux 6.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_bind: Option<Vec<u16>>,
    /// The TCP ports that they may connect to. Left out: all. Takes Linux 6.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_connect: Option<Vec<u16>>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { write: USUAL.map(PathBuf::from).to_vec(), tcp_bind: None, tcp_connect: None }
    }
}

impl LandlockOption {
    /// The rules for the agent; `None`: there are none.
    pub(crate) fn rules(&self) -> Option<Landlock> {
        let Rules { write, tcp_bind, tcp_connect } = match self {
            Self::Switch(false) => return None,
            Self::Switch(true) => Rules::default(),
            Self::Rules(rules) => rules.clone(),
        };
        let write = ALWAYS.map(PathBuf::from).into_iter().chain(write).collect();
        Some(Landlock { write, tcp_bind, tcp_connect })
    }

    /// Checks what can be checked of the option alone.
    ///
    /// # Errors
    /// Which field is wrong and why.
    pub(crate) fn check(&self) -> Result<(), FieldError> {
        let Self::Rules(rules) = self else { return Ok(()) };
        let is_plain = |path: &Path| path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
        if rules.write.iter().any(|path| path.parent().is_none()) {
            let why = "`/` would let the guest write everywhere, so that nothing shows whether the rules are in force";
            return Err(FieldError::new(&["landlock", "write"], why).help("name the directories that it writes in"));
        }
        let Some(wrong) = rules.write.iter().find(|path| !is_plain(path)) else { return Ok(()) };
        let why =
            format!("`{}` is no absolute path without `..`: give directories as the guest sees them", wrong.display());
        Err(FieldError::new(&["landlock", "write"], why))
    }

    /// Whether this kernel takes the rules.
    ///
    /// # Errors
    /// Why it does not, and the remedy.
    pub(crate) fn look(&self) -> Result<(), Refusal> {
        self.rules().map_or(Ok(()), |rules| look_at(&rules, landlock_version()))
    }

    /// What a reader must know of the rules, with what this kernel makes of them.
    pub(crate) fn disclosure(&self) -> Option<String> {
        let rules = self.rules()?;
        let version = landlock_version().unwrap_or(0);
        let places: Vec<_> = rules.write.iter().map(|path| path.display().to_string()).collect();
        let mut said = format!(
            "Landlock (version {version} of its interface) confines the guest's programs and its agent: they read and run all files that they \
             see, and write beneath {} alone.",
            places.join(", ")
        );
        for (what, ports) in [("bind to", &rules.tcp_bind), ("connect to", &rules.tcp_connect)] {
            let Some(ports) = ports else { continue };
            let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
            let only = if ports.is_empty() { "none".to_owned() } else { ports.join(", ") };
            said.push_str(&format!(" TCP ports that they may {what}: {only}."));
        }
        for (since, has, has_not) in [
            (3, "", " It does not refuse to truncate files by name: that came with version 3."),
            (5, "", " It does not refuse commands to devices (ioctl): that came with version 5."),
            (6, " Signals and abstract sockets reach nobody outside of the guest.", ""),
        ] {
            said.push_str(if version >= since { has } else { has_not });
        }
        Some(said)
    }
}

fn look_at(rules: &Landlock, version: std::io::Result<u32>) -> Result<(), Refusal> {
    let least = rules.least_version();
    let release = if least > 2 { "6.7" } else { "5.19" };
    let (reason, remedy) = match version {
        Ok(version) if version >= least => return Ok(()),
        Ok(version) => {
            let reason = format!(
                "the option `landlock` takes version {least} of Landlock's interface; this kernel has version {version}"
            );
            let ports = if least > 2 { ", or leave `tcp-bind` and `tcp-connect` out" } else { "" };
            (reason, format!("Use Linux {release} or later{ports}"))
        }
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => (
            "the option `landlock` is given, and this kernel was booted without Landlock".to_owned(),
            "Put `landlock` into the list of security modules, `lsm=landlock,...` on the kernel's command line"
                .to_owned(),
        ),
        Err(error) => (
            format!("the option `landlock` is given, and this kernel has no Landlock ({error})"),
            format!("Use Linux {release} or later with CONFIG_SECURITY_LANDLOCK"),
        ),
    };
    Err(Refusal::new(reason, format!("{remedy}; or leave the option out")))
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde_json::json;

    use super::*;

    fn option(value: serde_json::Value) -> LandlockOption {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn rules_are_on_off_or_the_arms_own() {
        assert_eq!(option(json!(false)).rules(), None);
        let usual = option(json!(true)).rules().unwrap();
        assert!(["/.tare", "/dev", "/tmp", "/var"].iter().all(|path| usual.write.contains(&path.into())), "{usual:?}");
        assert!(!usual.write.iter().any(|path| ["/", "/usr", "/etc"].map(Path::new).contains(&path.as_path())));
        assert_eq!(option(json!({})).rules(), Some(usual), "a table without a field is as `true`");
        let own = option(json!({"write": ["/data"], "tcp-bind": [0], "tcp-connect": []})).rules().unwrap();
        assert_eq!(own.write, ["/dev", "/.tare", "/data"].map(PathBuf::from));
        assert_eq!((own.tcp_bind, own.tcp_connect), (Some(vec![0]), Some(Vec::new())));
        let wrong = serde_json::from_value::<LandlockOption>(json!({"colour": "red"})).unwrap_err().to_string();
        assert!(wrong.contains("tcp-connect"), "{wrong}");
        for path in ["tmp", "/a/../etc"] {
            let wrong = option(json!({"write": ["/tmp", path]})).check().unwrap_err().to_string();
            assert!(wrong.contains(path) && wrong.contains("write"), "{wrong}");
        }
        assert!(option(json!({"write": ["/tmp"]})).check().is_ok());
    }

    #[test]
    fn a_kernel_without_what_the_rules_take_is_refused_with_what_helps() {
        let files = option(json!(true)).rules().unwrap();
        let ports = option(json!({"tcp-connect": []})).rules().unwrap();
        let failed = |number| Err(io::Error::from_raw_os_error(number));
        assert_eq!(look_at(&files, Ok(2)), Ok(()));
        assert_eq!(look_at(&ports, Ok(4)), Ok(()));
        for (rules, version, help) in [
            (&files, Ok(1), "Linux 5.19"),
            (&ports, Ok(3), "tcp-connect"),
            (&files, failed(libc::EOPNOTSUPP), "lsm=landlock"),
            (&files, failed(libc::ENOSYS), "CONFIG_SECURITY_LANDLOCK"),
        ] {
            let refusal = look_at(rules, version).unwrap_err();
            assert!(refusal.remedy.contains(help) && refusal.reason.contains("landlock"), "{refusal:?}");
        }
    }

    #[test]
    fn a_reader_is_shown_the_rules() {
        assert_eq!(option(json!(false)).disclosure(), None);
        let said = option(json!({"write": ["/data"], "tcp-connect": []})).disclosure().unwrap();
        assert!(said.contains("/data") && said.contains("connect to: none") && !said.contains("bind to"), "{said}");
    }
}
