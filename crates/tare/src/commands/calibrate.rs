//! `tare calibrate`.

use crate::args::{CalibrateArguments, StudyArguments};
use crate::catalog::Registries;
use crate::commands::run::{self, How};
use crate::exit::{Exit, Failure};
use crate::{place, studies};

/// Runs the instrument's own study: the platform and the workload that do nothing.
pub fn command(arguments: &CalibrateArguments) -> Result<Exit, Failure> {
    let study = studies::CALIBRATE;
    let mut loaded = tare_study::parse(study.name, study.text, &Registries).map_err(|error| Failure::study(&error))?;
    let scale = StudyArguments {
        study: study.name.to_owned(),
        scale: arguments.scale,
        blocks: None,
        seed: None,
        without: Vec::new(),
    };
    loaded.study = studies::changed(loaded.study, &scale)?;
    let out = arguments.out.clone().unwrap_or_else(|| place::default_folder(study.name));
    let how = How { out: &out, resume: false, redact: true, alongside: arguments.alongside, without: &[] };
    run::execute(&loaded, &how)
}
