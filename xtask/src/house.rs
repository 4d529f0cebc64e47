//! The house rules as data: `xtask/house.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::error::Error;

/// Where the table is, from the workspace's root. It has to name what it forbids, so the rules
/// about words leave this one file alone.
pub const PATH: &str = "xtask/house.toml";

/// The whole table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct House {
    /// Which crate may use which.
    pub dependencies: Dependencies,
    /// Which words belong to which platform.
    pub platforms: Platforms,
    /// Where the workloads are.
    pub workloads: Workloads,
    /// How long a file may be.
    pub sizes: Sizes,
    /// Where `unsafe` may be.
    #[serde(rename = "unsafe")]
    pub unsafe_code: UnsafeCode,
    /// Which lints no code may switch off.
    pub lints: Lints,
    /// What no text may say.
    pub text: Text,
}

/// Which crate of the workspace may use which other.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dependencies {
    /// Crates that may use any other, save those of `dev_only`.
    pub unrestricted: Vec<String>,
    /// Crates that others may use in tests alone.
    pub dev_only: Vec<String>,
    /// Crates whose tests, too, keep to the table.
    pub strict: Vec<String>,
    /// For each other crate, the crates that it may use. Names without the prefix `tare-`.
    pub allowed: BTreeMap<String, Vec<String>>,
}

/// Where the workloads are, and who may reach into their folders.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workloads {
    /// The folder whose sub-folders are the workloads.
    pub folder: String,
    /// For a sub-folder of a workload, the folder of the crate that compiles it (ending in `/`).
    pub parts: BTreeMap<String, String>,
    /// Files that may.
    pub exempt: Vec<String>,
    /// Folders in which no workload is named (ending in `/`).
    #[serde(default)]
    pub nameless: Vec<String>,
    /// Workloads whose name is also an everyday word.
    #[serde(default)]
    pub everyday: Vec<String>,
    /// Workloads whose name means something else in `nameless`.
    #[serde(default)]
    pub elsewhere: Vec<String>,
}

/// Words that may appear in one platform's folder and nowhere else.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platforms {
    /// The folder whose sub-folders are the platforms.
    pub folder: String,
    /// Sub-folders that are no platform but what platforms share.
    #[serde(default)]
    pub shared: Vec<String>,
    /// Files, or folders (ending in `/`), where any platform may be named.
    pub exempt: Vec<String>,
    /// For a word, folders (ending in `/`) where it names something else that has the same name.
    #[serde(default)]
    pub elsewhere: BTreeMap<String, Vec<String>>,
    /// For a platform, words besides its folder's name that give it away.
    #[serde(default)]
    pub words: BTreeMap<String, Vec<String>>,
    /// Platforms whose name is also an everyday word, and what of it is looked for.
    #[serde(default)]
    pub everyday: BTreeMap<String, Everyday>,
}

/// What is looked for of a word that has another meaning as well.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Everyday {
    /// A string that is the word and nothing else: `"native"`.
    pub literal: bool,
    /// A path through a module of that name: `native::start`.
    pub module: bool,
    /// An identifier that is the word in camel case: `Native`.
    pub type_name: bool,
}

/// Limits in lines; comments and blank lines count, for they too have to be read.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// A file, its test modules left out.
    pub file_lines: usize,
    /// A file of nothing but tests.
    pub test_file_lines: usize,
}

/// Where `unsafe` may be.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnsafeCode {
    /// Names of files.
    pub file_names: Vec<String>,
    /// Further files, each with its reason.
    #[serde(default)]
    pub files: Vec<Reasoned>,
}

/// A file and the reason for which a rule leaves it alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasoned {
    /// File, from the workspace's root.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Lints that have to be on in the workspace and may be switched off only in tests, or with a reason.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lints {
    /// Names, with their tool: `clippy::unwrap_used`.
    pub required: Vec<String>,
}

/// What no tracked text may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// Words of unfinished work.
    pub leftovers: Vec<String>,
    /// Beginnings of paths that exist on one developer's machine only.
    pub host_paths: Vec<String>,
}

impl House {
    /// Reads the table.
    ///
    /// # Errors
    /// When the file cannot be read or has an unknown or missing field.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::Read(path.into(), error))?;
        toml::from_str(&text).map_err(|error| Error::House(path.into(), Box::new(error)))
    }
}
