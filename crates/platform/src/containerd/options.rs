//! Options of the platform, and what the name of a runtime means.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_model::ByteSize;
use tare_model::field::FieldError;

use crate::data_directory::DataDirectory;
use crate::options::Writes;
use crate::rootfs::RootFs;

/// What the control group grants beyond a machine's own memory unless the study says otherwise, bytes.
const ALLOWANCE: u64 = 512 << 20;

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Options {
    /// The runtime, as containerd names it, such as `"io.containerd.runc.v2"`; a short name such as `"kata"`, which means
    /// `io.containerd.kata.v2`; or the path of a shim.
    pub runtime: String,
    /// The daemon's socket, a path.
    pub address: PathBuf,
    /// The namespace of containerd that guests are made in.
    pub namespace: String,
    /// Where the guest's root file system comes from: `"overlay"` (the host's own), `{ directory = "PATH" }`,
    /// `{ archive = "FILE.tar" }`, or a container image: `{ image = "PATH" }`, `{ image = { path = "PATH", name = "app:1" } }`.
    /// The guest writes to an overlay in any case. Images that containerd keeps are not used.
    pub rootfs: RootFs,
    /// Where the guest's writes go: `memory` or `disk`.
    pub upper: Writes,
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest, and with `log-directory` another for the log of a database. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataDirectory>,
    /// Only with a runtime whose guests are machines: what the control group grants beyond the guest's own memory, for its
    /// kernel, the hypervisor and the file server. Left out: 512 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowance: Option<ByteSize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runtime: "io.containerd.runc.v2".into(),
            address: "/run/containerd/containerd.sock".into(),
            namespace: "tare".into(),
            rootfs: RootFs::Overlay,
            upper: Writes::Memory,
            data: None,
            allowance: None,
        }
    }
}

/// A runtime as containerd is asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runtime {
    /// What `--runtime` is given.
    pub name: String,
    /// The name of its shim's program, or its path.
    pub shim: String,
}

impl Runtime {
    /// What a name in a study means; `None` when it means none.
    fn named(written: &str) -> Option<Self> {
        let plain = |word: &str| {
            word.starts_with(|first: char| first.is_ascii_alphanumeric())
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if written.starts_with('/') {
            return Path::new(written).file_name().map(|_| Self { name: written.into(), shim: written.into() });
        }
        let words: Vec<&str> = written.split('.').collect();
        let (name, short, version) = match words.as_slice() {
            [short] => (format!("io.containerd.{short}.v2"), *short, "v2"),
            [_, .., short, version] if words.len() > 2 => (written.to_owned(), *short, *version),
            _ => return None,
        };
        words.iter().all(|word| plain(word)).then(|| Self { name, shim: format!("containerd-shim-{short}-{version}") })
    }

    /// Whether its guests are small virtual machines.
    pub(super) fn is_machine(&self) -> bool {
        self.is_of("kata")
    }

    fn is_of(&self, maker: &str) -> bool {
        self.shim.rsplit('/').next().is_some_and(|shim| shim.contains(maker))
    }
}

impl Options {
    /// The runtime that is named. Checked options name one.
    pub(super) fn runtime(&self) -> Runtime {
        let unknown = || Runtime { name: self.runtime.clone(), shim: self.runtime.clone() };
        Runtime::named(&self.runtime).unwrap_or_else(unknown)
    }

    /// What the control group grants beyond the memory of a machine.
    pub(super) fn allowance(&self) -> ByteSize {
        self.allowance.unwrap_or(ByteSize(ALLOWANCE))
    }

    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// Which option is wrong and why.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        let Some(runtime) = Runtime::named(&self.runtime) else {
            return Err(FieldError::new(&["runtime"], format!("`{}` is no runtime of containerd", self.runtime))
                .help("write a name such as \"runc\", \"kata\" or \"io.containerd.kata.v2\", or the path of a shim"));
        };
        if runtime.is_of("runsc") {
            let why = "gVisor's shim is not known here: its kernel is neither the host's nor a machine's";
            return Err(
                FieldError::new(&["runtime"], why).help("measure it by the platform `oci` with `runtime = \"runsc\"`")
            );
        }
        if !self.address.is_absolute() {
            return Err(FieldError::new(&["address"], format!("`{}` is no absolute path", self.address.display()))
                .help("write the daemon's socket, such as \"/run/containerd/containerd.sock\""));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let name = &self.namespace;
        if name.len() > 76 || !name.bytes().all(plain) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(FieldError::new(&["namespace"], format!("`{name}` is no namespace of containerd"))
                .help("write at most 76 letters and digits, with `-`, `_` or `.` between them"));
        }
        if self.allowance.is_some() && !runtime.is_machine() {
            return Err(FieldError::new(&["allowance"], format!("guests of `{}` are no machines", self.runtime))
                .help("leave it out"));
        }
        self.data.iter().try_for_each(DataDirectory::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry;
    use serde_json::{Value, json};

    fn check(options: &Value) -> Result<Value, FieldError> {
        entry::check::<super::super::Containerd>(options)
    }

    #[test]
    fn a_runtime_is_known_by_its_short_name_its_full_name_and_its_path() {
        let named = |written: &str| Runtime::named(written).map(|runtime| (runtime.name.clone(), runtime.shim));
        let both = |name: &str, shim: &str| Some((name.to_owned(), shim.to_owned()));
        assert_eq!(named("kata"), both("io.containerd.kata.v2", "containerd-shim-kata-v2"));
        assert_eq!(named("kata-qemu"), both("io.containerd.kata-qemu.v2", "containerd-shim-kata-qemu-v2"));
        assert_eq!(named("io.containerd.runc.v1"), both("io.containerd.runc.v1", "containerd-shim-runc-v1"));
        let path = "/opt/kata/bin/containerd-shim-kata-v2";
        assert_eq!(named(path), both(path, path));
        for wrong in ["", "-x", "a.b", "io.containerd..v2", "kata v2", "bin/shim", "/", "io.containerd.--x.v2"] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
        let is_machine = |written: &str| Runtime::named(written).unwrap().is_machine();
        assert!(
            is_machine("kata-clh") && is_machine(path) && !is_machine("runc") && !is_machine("/opt/kata/bin/other")
        );
    }

    #[test]
    fn a_wrong_option_is_named() {
        for (options, field) in [
            (json!({"runtime": "--help"}), "runtime"),
            (json!({"runtime": "runsc"}), "runtime"),
            (json!({"address": "containerd.sock"}), "address"),
            (json!({"namespace": "a/b"}), "namespace"),
            (json!({"namespace": "-n"}), "namespace"),
            (json!({"allowance": "1GiB"}), "allowance"),
            (json!({"image": "app:1"}), "image"),
        ] {
            let error = check(&options).unwrap_err();
            let named = error.path == [field] || error.to_string().contains(field);
            assert!(named, "{options}: {error}");
        }
        let filled = check(&json!({"runtime": "kata", "allowance": "1GiB"})).unwrap();
        assert_eq!((&filled["runtime"], &filled["namespace"]), (&json!("kata"), &json!("tare")));
    }
}
