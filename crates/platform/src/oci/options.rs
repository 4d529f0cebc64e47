//! Options of the platform.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;

use crate::options::{self as common, Writes};

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Options {
    /// The runtime: the name of a program in PATH, or its path.
    pub runtime: String,
    /// Where the guest's root file system comes from: `"overlay"` (the host's own), `{ directory = "PATH" }` or
    /// `{ archive = "FILE.tar" }`. The guest writes to an overlay in any case.
    pub rootfs: RootFs,
    /// Where the guest's writes go: `memory` or `disk`.
    pub upper: Writes,
    /// Arguments of the runtime that come before its command. Left out: what is known to be right for that
    /// runtime.
    pub flags: Option<Vec<String>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { runtime: "runc".into(), rootfs: RootFs::Overlay, upper: Writes::Memory, flags: None }
    }
}

/// Where a root file system comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RootFs {
    /// The host's root.
    Overlay,
    /// A directory on the host.
    Directory(PathBuf),
    /// A tar archive on the host, not compressed.
    Archive(PathBuf),
}

impl RootFs {
    /// The path on the host, other than its root.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Overlay => None,
            Self::Directory(path) | Self::Archive(path) => Some(path),
        }
    }
}

/// Checks options and fills in what was left out.
pub(super) fn check(value: &Value) -> Result<Value, FieldError> {
    let options: Options = common::read(value)?;
    if options.runtime.trim().is_empty() {
        return Err(
            FieldError::new(&["runtime"], "no runtime is named").help("write a name such as \"runc\", or a path")
        );
    }
    if options.runtime.starts_with('-') {
        return Err(FieldError::new(&["runtime"], format!("`{}` is no program", options.runtime))
            .help("arguments go into `flags`"));
    }
    common::fill::<Options>(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_study_names_runtime_and_root() {
        let read = |value| common::read::<Options>(&value).unwrap();
        assert_eq!(read(json!({})).runtime, "runc");
        let options = read(json!({"runtime": "crun", "rootfs": {"archive": "x.tar"}, "upper": "disk"}));
        assert_eq!(options.rootfs.path(), Some(Path::new("x.tar")));
        assert_eq!(read(json!({"rootfs": "overlay"})).rootfs, RootFs::Overlay);
    }

    #[test]
    fn a_wrong_option_is_named() {
        let error = check(&json!({"rootfs": {"image": "x"}})).unwrap_err();
        assert_eq!(error.path, ["rootfs"], "{error}");
        assert!(error.message.contains("image"), "{error}");
        assert_eq!(check(&json!({"runtime": "--debug"})).unwrap_err().path, ["runtime"]);
    }
}
