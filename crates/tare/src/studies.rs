//! The studies that ship with tare, and where a study comes from.

use std::path::Path;

use tare_model::study::Study;
use tare_study::LoadedStudy;

use crate::args::StudyArguments;
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};

/// A study that is built into the program.
pub struct ShippedStudy {
    /// Name on the command line.
    pub name: &'static str,
    /// The study file.
    pub text: &'static str,
}

/// All of them, in the order in which they are listed.
pub const SHIPPED: &[ShippedStudy] = &[
    ShippedStudy { name: "quickstart", text: include_str!("../../../studies/quickstart.toml") },
    ShippedStudy { name: "platforms", text: include_str!("../../../studies/platforms.toml") },
    ShippedStudy { name: "response-time", text: include_str!("../../../studies/response-time.toml") },
    ShippedStudy {
        name: "response-time-as-published",
        text: include_str!("../../../studies/response-time-as-published.toml"),
    },
    ShippedStudy { name: "throughput", text: include_str!("../../../studies/throughput.toml") },
    ShippedStudy { name: "order-entry", text: include_str!("../../../studies/order-entry.toml") },
    ShippedStudy {
        name: "order-entry-as-published",
        text: include_str!("../../../studies/order-entry-as-published.toml"),
    },
    ShippedStudy { name: "order-entry-levels", text: include_str!("../../../studies/order-entry-levels.toml") },
    ShippedStudy { name: "java-density", text: include_str!("../../../studies/java-density.toml") },
    ShippedStudy {
        name: "java-density-as-published",
        text: include_str!("../../../studies/java-density-as-published.toml"),
    },
    ShippedStudy { name: "java-density-rules", text: include_str!("../../../studies/java-density-rules.toml") },
    ShippedStudy { name: "web-serving", text: include_str!("../../../studies/web-serving.toml") },
    ShippedStudy {
        name: "web-serving-as-published",
        text: include_str!("../../../studies/web-serving-as-published.toml"),
    },
    ShippedStudy { name: "java-density-machines", text: include_str!("../../../studies/java-density-machines.toml") },
    ShippedStudy { name: "jvm-consolidation", text: include_str!("../../../studies/jvm-consolidation.toml") },
    ShippedStudy {
        name: "jvm-consolidation-as-published",
        text: include_str!("../../../studies/jvm-consolidation-as-published.toml"),
    },
    ShippedStudy { name: "tiles", text: include_str!("../../../studies/tiles.toml") },
];

/// The instrument's own study: not listed, as `tare calibrate` runs it.
pub const CALIBRATE: ShippedStudy =
    ShippedStudy { name: "calibrate", text: include_str!("../../../studies/calibrate.toml") };

/// Reads the study that the user named: a file, or a shipped one by name.
///
/// # Errors
/// When there is none, or it is wrong; the error shows where.
pub fn load(arguments: &StudyArguments) -> Result<LoadedStudy, Failure> {
    let path = Path::new(&arguments.study);
    let shipped = SHIPPED.iter().find(|study| study.name == arguments.study);
    let loaded = match shipped {
        Some(study) if !path.exists() => tare_study::parse(study.name, study.text, &Registries),
        None if !path.exists() && !arguments.study.contains(['/', '.']) => return Err(unknown(&arguments.study)),
        _ if path.join("study.toml").is_file() => {
            let message = format!(
                "{0} is a folder, such as that of a run: its study is {0}/study.toml, or go on with it by --resume --out {0}",
                path.display()
            );
            return Err(Failure::new(message, Exit::Usage));
        }
        _ => tare_study::load(path, &Registries),
    };
    let mut loaded = loaded.map_err(|error| Failure::study(&error))?;
    loaded.study = changed(loaded.study, arguments)?;
    Ok(loaded)
}

/// The study of this name that ships with tare.
///
/// # Errors
/// When there is none.
pub fn shipped(name: &str) -> Result<&'static ShippedStudy, Failure> {
    SHIPPED.iter().find(|study| study.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    let meant = tare_study::nearest(name, SHIPPED.iter().map(|study| study.name));
    let meant = meant.map_or_else(String::new, |meant| format!(" Did you mean `{meant}`?"));
    let message = format!(
        "there is no file `{name}`, and no shipped study of that name.{meant} `tare list studies` has all that ship"
    );
    Failure::new(message, Exit::Usage)
}

/// The study with what the command line changes.
///
/// # Errors
/// When a value means nothing.
pub fn changed(mut study: Study, arguments: &StudyArguments) -> Result<Study, Failure> {
    if let Some(factor) = arguments.scale {
        study = tare_study::scale(study, factor).map_err(|error| Failure::new(error, Exit::Usage))?;
    }
    for id in &arguments.without {
        let found = study.arms.iter().any(|arm| arm.id == *id);
        if !found || study.baseline == *id {
            let others = study.arms.iter().filter(|arm| arm.id != study.baseline && arm.replica_of.is_none());
            let others: Vec<String> = others.map(|arm| format!("`{}`", arm.id)).collect();
            let why =
                if found { "is the baseline, which all others are compared with" } else { "is no arm of the study" };
            let which = format!("arms that can be left out: {}", others.join(", "));
            return Err(Failure::new(format!("--without {id}: `{id}` {why}; {which}"), Exit::Usage));
        }
        study.arms.retain(|arm| arm.id != *id);
    }
    if let Some(blocks) = arguments.blocks {
        if blocks == 0 {
            return Err(Failure::new("--blocks 0 would measure nothing", Exit::Usage));
        }
        study.blocks = blocks;
    }
    if let Some(seed) = arguments.seed {
        study.seed = seed;
    }
    Ok(study)
}
