//! Options of the platform.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_model::field::FieldError;

use super::gvisor::{Gvisor, is_gvisor};
use crate::data_directory::DataDirectory;
use crate::options::Writes;
use crate::rootfs::RootFs;

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Options {
    /// The runtime: the name of a program in PATH, or its path.
    pub runtime: String,
    /// Where the guest's root file system comes from: `"overlay"` (the host's own), `{ directory = "PATH" }`,
    /// `{ archive = "FILE.tar" }`, or a container image: `{ image = "PATH" }`, `{ image = { path = "PATH", name = "app:1" } }`.
    /// The guest writes to an overlay in any case.
    pub rootfs: RootFs,
    /// Where the guest's writes go: `memory` or `disk`.
    pub upper: Writes,
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest, and with `log-directory` another for the log of a database. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataDirectory>,
    /// Arguments of the runtime that come before its command. Left out: what is known to be right for that
    /// runtime.
    pub flags: Option<Vec<String>>,
    /// Settings of gVisor, for a runtime whose program is named `runsc` or begins so. Left out: `systrap`, its own
    /// network stack, its own overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gvisor: Option<Gvisor>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runtime: "runc".into(),
            rootfs: RootFs::Overlay,
            upper: Writes::Memory,
            data: None,
            flags: None,
            gvisor: None,
        }
    }
}

impl Options {
    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// Which option is wrong and why.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        if self.runtime.trim().is_empty() {
            return Err(
                FieldError::new(&["runtime"], "no runtime is named").help("write a name such as \"runc\", or a path")
            );
        }
        if self.runtime.starts_with('-') {
            return Err(FieldError::new(&["runtime"], format!("`{}` is no program", self.runtime))
                .help("arguments go into `flags`"));
        }
        if self.gvisor.is_some() && !is_gvisor(Path::new(&self.runtime)) {
            return Err(FieldError::new(&["gvisor"], format!("the runtime `{}` is not gVisor's", self.runtime))
                .help("leave it out, or write `runtime = \"runsc\"`"));
        }
        if self.gvisor.is_some() && self.flags.is_some() {
            return Err(FieldError::new(&["flags"], "`gvisor` says already with which arguments the runtime is run")
                .help("write all arguments into `flags`, or all settings into `gvisor`"));
        }
        self.data.iter().try_for_each(DataDirectory::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{entry, options as common};
    use serde_json::{Value, json};

    fn check(options: &Value) -> Result<Value, FieldError> {
        entry::check::<super::super::Oci>(options)
    }

    #[test]
    fn a_study_names_runtime_and_root() {
        let read = |value| common::read::<Options>(&value).unwrap();
        assert_eq!(read(json!({})).runtime, "runc");
        let options = read(json!({"runtime": "crun", "rootfs": {"archive": "x.tar"}, "upper": "disk"}));
        assert_eq!(options.rootfs, RootFs::Archive("x.tar".into()));
        assert_eq!(read(json!({"rootfs": "overlay"})).rootfs, RootFs::Overlay);
    }

    #[test]
    fn a_wrong_option_is_named() {
        let error = check(&json!({"rootfs": {"tar": "x"}})).unwrap_err();
        assert_eq!(error.path, ["rootfs"], "{error}");
        assert!(error.message.contains("tar"), "{error}");
        assert!(check(&json!({"rootfs": {"image": {"path": "x", "name": "app:1"}}})).is_ok());
        let error = check(&json!({"rootfs": {"image": {"path": "x", "tag": "1"}}})).unwrap_err();
        assert!(error.message.contains("tag"), "{error}");
        assert_eq!(check(&json!({"runtime": "--debug"})).unwrap_err().path, ["runtime"]);
        assert_eq!(check(&json!({"gvisor": {}})).unwrap_err().path, ["gvisor"]);
        let both = json!({"runtime": "/opt/runsc", "gvisor": {"platform": "kvm"}, "flags": []});
        assert_eq!(check(&both).unwrap_err().path, ["flags"]);
        let error = check(&json!({"runtime": "runsc", "gvisor": {"platform": "hvf"}})).unwrap_err();
        assert_eq!(error.path, ["gvisor", "platform"], "{error}");
    }
}
