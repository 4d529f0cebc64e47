//! The test programs: those that cargo builds, and the scripts that test what is not Rust.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::{Artifact, Message, MetadataCommand};
use serde::Deserialize;

use crate::error::Error;

/// One program of tests, or one module of the program that holds all of a package's tests: each module runs in a process of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Folder of its package, and its name or that of the module: `platform/machines`; `lab/lib` for the tests beside a library's code;
    /// `scripts/test-apt` for a script.
    pub name: String,
    /// What is started.
    pub file: PathBuf,
    /// Where it is started: the folder of its package.
    pub folder: PathBuf,
    /// The tests of the module; none: all that the program has.
    pub tests: Vec<String>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cargo,
    Script,
}

impl Program {
    /// Whether tests of it can be chosen by their names.
    pub fn takes_names(&self) -> bool {
        self.kind == Kind::Cargo
    }

    fn read(artifact: &Artifact) -> Option<Self> {
        let file = artifact.executable.as_ref().filter(|_| artifact.profile.test)?;
        let folder = artifact.manifest_path.parent()?;
        let target = if artifact.target.is_lib() { "lib" } else { &artifact.target.name };
        let name = format!("{}/{target}", folder.file_name()?);
        Some(Self { name, file: file.into(), folder: folder.into(), tests: Vec::new(), kind: Kind::Cargo })
    }

    /// A program for each module of the one that holds all of a package's tests, and any other as it is.
    fn modules(self) -> Result<Vec<Self>, Error> {
        let package = self.name.split('/').next().unwrap_or_default();
        if self.name != format!("{package}/{package}-tests") {
            return Ok(vec![self]);
        }
        let failed = |error| Error::Read(self.file.clone(), error);
        let listed = Command::new(&self.file).args(["--list", "--format", "terse"]).output().map_err(failed)?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        Ok(by_module(&listed)
            .map(|(module, tests)| Self { name: format!("{package}/{module}"), tests, ..self.clone() })
            .collect())
    }

    #[cfg(test)]
    pub fn of_cargo(name: &str) -> Self {
        let (file, folder, tests) = Default::default();
        Self { name: name.into(), file, folder, tests, kind: Kind::Cargo }
    }
}

/// The tests of each module, of the list that a test program prints. A test outside of any module is in one called `main`.
fn by_module(listed: &str) -> impl Iterator<Item = (String, Vec<String>)> {
    let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in listed.lines().filter_map(|line| line.strip_suffix(": test")) {
        let module = test.split_once("::").map_or("main", |(module, _)| module);
        modules.entry(module.to_owned()).or_default().push(test.to_owned());
    }
    modules.into_iter()
}

/// How the programs are run: `workspace.metadata.tests` of the workspace's manifest.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The slowest, which begin first.
    first: Vec<String>,
    /// Those that no other program may run beside.
    alone: Vec<String>,
    /// Scripts that count their tests as cargo's programs do.
    scripts: Vec<String>,
}

impl Settings {
    /// Reads them from the manifest of the workspace at `root`.
    ///
    /// # Errors
    /// When cargo cannot read the manifest, or the settings are missing or wrong.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let manifest = root.join("Cargo.toml");
        let metadata = MetadataCommand::new().manifest_path(&manifest).no_deps().exec();
        let metadata = metadata.map_err(|error| Error::Members(manifest.clone(), error))?;
        let settings = metadata.workspace_metadata.get("tests");
        let settings = settings.ok_or_else(|| "there is no table [workspace.metadata.tests]".to_owned());
        let read = settings.and_then(|table| Self::deserialize(table).map_err(|error| error.to_string()));
        read.map_err(|why| Error::Settings(manifest, why))
    }

    /// Those that run alone, and all others with the slowest first, of the programs whose names contain one of the words, or
    /// of all.
    ///
    /// # Errors
    /// When the settings name a program that does not exist, or no program's name contains any of the words.
    pub fn arrange(&self, programs: Vec<Program>, words: &[&str]) -> Result<(Vec<Program>, Vec<Program>), Error> {
        let exists = |name: &&String| programs.iter().any(|program| program.name == **name);
        if let Some(name) = self.first.iter().chain(&self.alone).find(|name| !exists(name)) {
            return Err(Error::NoProgram(format!("{name}, which [workspace.metadata.tests] of Cargo.toml names")));
        }
        let wanted = |program: &Program| words.is_empty() || words.iter().any(|word| program.name.contains(word));
        let wanted: Vec<Program> = programs.into_iter().filter(wanted).collect();
        if wanted.is_empty() {
            return Err(Error::NoProgram(format!("with any of these in its name: {}", words.join(", "))));
        }
        let (alone, mut together): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|program| self.alone.contains(&program.name));
        together.sort_by_key(|program| {
            let place = self.first.iter().position(|name| *name == program.name);
            place.unwrap_or(self.first.len())
        });
        Ok((alone, together))
    }
}

/// Builds all test programs of the workspace, with the example that some start.
///
/// # Errors
/// When they cannot be built; the compiler has said why.
pub fn build(root: &Path, settings: &Settings) -> Result<Vec<Program>, Error> {
    let cargo = || {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root).stdin(Stdio::null());
        cargo
    };
    // A test of the lab starts this example. Lints have looked at the other examples, and no comment holds a test.
    let example = cargo().args(["build", "--quiet", "--workspace", "--example", "lab", "--locked"]).status();
    let failed = |error| Error::Read("cargo".into(), error);
    if !example.map_err(failed)?.success() {
        return Err(Error::Build);
    }
    let mut tests = cargo()
        .args(["test", "--workspace", "--lib", "--bins", "--tests", "--locked", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut built = Vec::new();
    if let Some(messages) = tests.stdout.take() {
        for message in Message::parse_stream(BufReader::new(messages)) {
            if let Message::CompilerArtifact(artifact) = message.map_err(failed)? {
                built.extend(Program::read(&artifact));
            }
        }
    }
    if !tests.wait().map_err(failed)?.success() {
        return Err(Error::Build);
    }
    let mut programs = Vec::new();
    for program in built {
        programs.extend(program.modules()?);
    }
    programs.extend(settings.scripts.iter().map(|name| Program {
        name: format!("scripts/{name}"),
        file: root.join(format!("scripts/{name}.sh")),
        folder: root.into(),
        tests: Vec::new(),
        kind: Kind::Script,
    }));
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(programs: &[Program]) -> Vec<&str> {
        programs.iter().map(|program| program.name.as_str()).collect()
    }

    fn all() -> Vec<Program> {
        ["lab/lib", "tare/run", "platform/machines", "driver/truth"].map(Program::of_cargo).to_vec()
    }

    fn settings() -> Settings {
        Settings { first: vec!["platform/machines".into()], alone: vec!["driver/truth".into()], scripts: Vec::new() }
    }

    #[test]
    fn the_slowest_begin_first_and_some_run_alone() {
        let (alone, together) = settings().arrange(all(), &[]).unwrap();
        assert_eq!(names(&alone), ["driver/truth"]);
        assert_eq!(names(&together), ["platform/machines", "lab/lib", "tare/run"]);
    }

    #[test]
    fn the_tests_of_a_program_are_divided_by_module() {
        let listed = "run::small: test\nmain_one: test\nrun::deep::large: test\nstore::a: test\nstore::b: bench\n";
        let modules: Vec<(String, Vec<String>)> = by_module(listed).collect();
        let expected =
            [("main", &["main_one"][..]), ("run", &["run::small", "run::deep::large"]), ("store", &["store::a"])];
        assert_eq!(
            modules,
            expected.map(|(module, tests)| (module.to_owned(), tests.iter().map(|&test| test.to_owned()).collect()))
        );
    }

    #[test]
    fn words_choose_programs() {
        let (alone, together) = settings().arrange(all(), &["lab/", "run"]).unwrap();
        assert_eq!((names(&alone), names(&together)), (vec![], vec!["lab/lib", "tare/run"]));
        assert!(settings().arrange(all(), &["nothing"]).unwrap_err().to_string().contains("nothing"));
    }

    #[test]
    fn a_program_that_the_settings_name_and_that_is_gone_is_an_error() {
        let gone = Settings { alone: vec!["driver/gone".into()], ..settings() };
        assert!(gone.arrange(all(), &[]).unwrap_err().to_string().contains("driver/gone"));
    }

    #[test]
    fn the_settings_of_this_workspace_are_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let settings = Settings::read(root).unwrap();
        assert!(settings.scripts.iter().all(|name| root.join(format!("scripts/{name}.sh")).is_file()));
    }
}
