//! What the rules read: the files that git tracks, and would track if they were added, and the workspace's members.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use cargo_metadata::{MetadataCommand, Package};

use crate::error::Error;
use crate::source::Source;

/// One text file.
#[derive(Debug, Default)]
pub struct File {
    /// Path from the workspace's root, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its tokens, if it is Rust; none if the compiler will reject it.
    pub source: Source,
    /// Whether all of it is code that does not ship (tests, examples, benches), by where it lies or by the
    /// `#[cfg(test)]` before its `mod`.
    pub is_test: bool,
}

/// All text files of the workspace, and its members.
#[derive(Debug, Default)]
pub struct Tree {
    files: Vec<File>,
    packages: Vec<Package>,
}

impl Tree {
    /// Reads the work tree at `root`. Files that are not UTF-8 are left out: no rule is about them.
    ///
    /// # Errors
    /// When git cannot list the files, cargo cannot read the manifests, or a listed file cannot be read.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let mut files = Vec::new();
        for path in list(root)? {
            let full = root.join(&path);
            // A file that was removed and not yet committed is still listed; a symbolic link is read as its target.
            if !full.is_file() {
                continue;
            }
            let bytes = std::fs::read(&full).map_err(|error| Error::Read(full, error))?;
            files.extend(String::from_utf8(bytes).ok().map(|text| File::new(path, text)));
        }
        Ok(Self::new(files, members(root)?))
    }

    fn new(mut files: Vec<File>, packages: Vec<Package>) -> Self {
        let declared: BTreeSet<String> = files.iter().flat_map(File::test_modules).collect();
        for file in &mut files {
            file.is_test |= declared.contains(&file.path);
        }
        Self { files, packages }
    }

    /// All files, in the order of their paths.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The file at `path`.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// All Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The members of the workspace.
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// A tree made of (path, text), for tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)], packages: Vec<Package>) -> Self {
        Self::new(files.iter().map(|(path, text)| File::new((*path).into(), (*text).into())).collect(), packages)
    }
}

impl File {
    fn new(path: String, text: String) -> Self {
        let source = if path.ends_with(".rs") { Source::parse(&text).unwrap_or_default() } else { Source::default() };
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_test = name == "tests.rs"
            || name.ends_with("_tests.rs")
            || path.split('/').any(|part| matches!(part, "tests" | "examples" | "benches"));
        Self { path, text, source, is_test }
    }

    /// The paths that a `#[cfg(test)] mod name;` of this file may mean.
    fn test_modules(&self) -> Vec<String> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let folder = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
        };
        let declared = self.source.tokens.windows(3).filter_map(|tokens| match tokens {
            [word, name, end] if word.test && word.text == "mod" && end.text == ";" => Some(&name.text),
            _ => None,
        });
        declared.flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")]).collect()
    }
}

/// The workspace's members as cargo reads their manifests, whose paths are from the root.
///
/// # Errors
/// When cargo cannot read a manifest.
pub fn members(root: &Path) -> Result<Vec<Package>, Error> {
    let mut cargo = MetadataCommand::new();
    let read = cargo.current_dir(root).no_deps().other_options(["--offline".to_owned()]).exec();
    let metadata = read.map_err(|error| Error::Members(root.into(), error))?;
    let mut packages = metadata.packages;
    for package in &mut packages {
        if let Ok(path) = package.manifest_path.strip_prefix(&metadata.workspace_root) {
            package.manifest_path = path.to_owned();
        }
    }
    Ok(packages)
}

fn list(root: &Path) -> Result<Vec<String>, Error> {
    let failed = |why: String| Error::List { path: root.into(), why };
    let output = Command::new("git")
        // The clone may belong to another user than the one who checks it, as in a container.
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<String> = text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_are_known_by_their_place_and_by_their_declaration() {
        let tree = Tree::of(
            &[
                ("crates/a/src/lib.rs", "#[cfg(test)] mod kit; mod real;"),
                ("crates/a/src/kit.rs", ""),
                ("crates/a/src/real.rs", "#[cfg(test)] mod deep;"),
                ("crates/a/src/real/deep.rs", ""),
                ("crates/a/src/deep.rs", ""),
                ("crates/a/tests/e2e.rs", ""),
                ("crates/a/src/real/tests.rs", ""),
            ],
            Vec::new(),
        );
        let tests: Vec<&str> = tree.rust().filter(|file| file.is_test).map(|file| &file.path[9..]).collect();
        assert_eq!(tests, ["src/kit.rs", "src/real/deep.rs", "tests/e2e.rs", "src/real/tests.rs"]);
    }
}
