//! The studies that ship with tare, and where a study comes from.

use std::path::Path;

use tare_study::{LoadedStudy, Selection};

use crate::args::StudyArguments;
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::output;

/// A study that is built into the program.
pub struct ShippedStudy {
    /// Name on the command line.
    pub name: &'static str,
    /// The study file.
    pub text: &'static str,
}

/// Studies by their names, which are those of their files.
macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(ShippedStudy { name: $name, text: include_str!(concat!("../../../studies/", $name, ".toml")) }),+]
    };
}

/// All of them, in the order in which they are listed.
pub const SHIPPED: &[ShippedStudy] = &shipped![
    "quickstart",
    "two-settings",
    "platforms",
    "sandbox-density",
    "sandbox-start",
    "sandbox-restore",
    "isolation",
    "response-time",
    "response-time-as-published",
    "throughput",
    "throughput-as-published",
    "order-entry",
    "order-entry-as-published",
    "order-entry-levels",
    "java-density",
    "java-density-as-published",
    "java-density-rules",
    "web-serving",
    "web-serving-as-published",
    "java-density-machines",
    "jvm-consolidation",
    "jvm-consolidation-as-published",
    "tiles",
];

/// The instrument's own study: not listed, as `tare calibrate` runs it.
pub const CALIBRATE: ShippedStudy =
    ShippedStudy { name: "calibrate", text: include_str!("../../../studies/calibrate.toml") };

/// Reads the study that the user named: a shipped one by its name, or a file. A plain name always means a shipped study, so
/// that no file in the working directory takes its place; a file is meant by a `/` or the end `.toml`.
///
/// # Errors
/// When there is none, or it is wrong; the error shows where.
pub fn load(arguments: &StudyArguments) -> Result<LoadedStudy, Failure> {
    let path = Path::new(&arguments.study);
    let read = if is_name(&arguments.study) {
        let study = shipped(&arguments.study)?;
        Ok((study.name.to_owned(), study.text.to_owned()))
    } else if path.join("study.toml").is_file() {
        let message = format!(
            "{0} is a folder, such as that of a run: its study is {0}/study.toml, or go on with it by --resume --out {0}",
            path.display()
        );
        return Err(Failure::new(message, Exit::Usage));
    } else {
        tare_study::read(path)
    };
    let hosts = arguments.hosts.as_deref().map(tare_study::read).transpose();
    let loaded = read.and_then(|(name, text)| match hosts? {
        None => tare_study::parse(&name, &text, &Registries),
        Some((own, hosts)) => tare_study::parse_on_hosts((&name, &text), (&own, &hosts), &Registries),
    });
    changed(loaded.map_err(|error| output::wrong_study(&error))?, arguments)
}

/// The study of this name that ships with tare.
///
/// # Errors
/// When there is none.
pub fn shipped(name: &str) -> Result<&'static ShippedStudy, Failure> {
    SHIPPED.iter().find(|study| study.name == name).ok_or_else(|| unknown(name))
}

/// Whether what the user wrote is the name of a shipped study, and no file.
fn is_name(study: &str) -> bool {
    !study.contains('/') && !study.ends_with(".toml")
}

fn unknown(name: &str) -> Failure {
    let meant = tare_study::nearest(name, SHIPPED.iter().map(|study| study.name));
    let meant = meant.map_or_else(String::new, |meant| format!(" Did you mean `{meant}`?"));
    let file = if Path::new(name).exists() {
        format!(" A file is named with its path: `./{name}`.")
    } else {
        " A file is named by its path or ends with .toml.".to_owned()
    };
    let message =
        format!("no study of the name `{name}` ships with tare.{meant} `tare list studies` has all that ship.{file}");
    Failure::new(message, Exit::Usage)
}

/// The study with what the command line changes.
///
/// # Errors
/// When a value means nothing.
pub fn changed(mut loaded: LoadedStudy, arguments: &StudyArguments) -> Result<LoadedStudy, Failure> {
    let mut study = loaded.study;
    if let Some(factor) = arguments.scale {
        study = tare_study::scale(study, factor).map_err(|error| Failure::new(error, Exit::Usage))?;
    }
    let selection = Selection {
        only_arms: &arguments.only_arm,
        without_arms: &arguments.without,
        only_cases: &arguments.only_case,
        without_cases: &arguments.without_case,
    };
    let (study, reduced) = tare_study::select(study, &selection).map_err(|error| Failure::new(error, Exit::Usage))?;
    (loaded.study, loaded.reduced) = (study, reduced);
    if let Some(blocks) = arguments.blocks {
        if blocks == 0 {
            return Err(Failure::new("--blocks 0 would measure nothing", Exit::Usage));
        }
        (loaded.study.blocks, loaded.study.spare_blocks, loaded.study.precision) = (blocks, 0, None);
    }
    if let Some(seed) = arguments.seed {
        (loaded.study.seed, loaded.draws_seed) = (seed, false);
    }
    Ok(loaded)
}
