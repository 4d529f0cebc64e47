//! The published study that a study repeats.

use tare_model::deviation::{Deviation, Original};
use tare_model::study::Arm;

use crate::file;
use crate::suggest;

/// What `[published]` says; `None` where it is not there, or wrong, which is reported.
pub(super) fn original(file: &file::Study<'_>, arms: &[Arm]) -> Option<Original> {
    let table = file.published.value.as_ref()?;
    let subject = table.subject.value.as_deref().unwrap_or_default();
    for field in subject {
        let Some(id) = field.value.filter(|id| arms.iter().all(|arm| arm.id != *id)) else { continue };
        let help = suggest::help(id, "arms of this study", arms.iter().map(|arm| arm.id.as_str()));
        field.wrong(&format!("is {id:?}, but no arm has that id"), help);
    }
    let rows = table.deviations.value.as_deref().unwrap_or_default();
    Some(Original {
        report: table.report.value?.to_owned(),
        subject: subject.iter().filter_map(|field| field.value).map(str::to_owned).collect(),
        deviations: rows.iter().filter_map(|row| deviation(row.value.as_ref()?)).collect(),
    })
}

fn deviation(row: &file::Deviates<'_>) -> Option<Deviation> {
    let texts = (row.published.value?, row.here.value?);
    Some(Deviation::new(row.what.value?, texts, row.why.value?, row.effect.value?))
}
