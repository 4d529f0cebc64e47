//! What a guest's drivers came to.

use tare_model::drive::DriveResult;

use super::spec::HttpDone;
use crate::operations;
use crate::yields::from_result;
use crate::{Driven, UnitOfWork};

/// The figures of a guest, whose drivers' results are merged. `names` are those of the requests.
pub(super) fn yields<'a>(result: DriveResult, done: &HttpDone, names: impl Iterator<Item = &'a str>) -> Driven {
    let (late, failed) = (operations::late(&result), operations::failed(&result));
    let mut driven = from_result(result, UnitOfWork::Operation);
    driven.count([
        ("refused (429, 503)", done.refused),
        ("wrong answers", done.wrong),
        ("connections opened, all phases", done.connections),
        ("requests sent again after a kept connection was closed", done.reconnected),
    ]);
    let counts = &mut driven.measurement.counts;
    counts.extend(late.map(|late| (operations::LATE.to_owned(), late)));
    for (name, answered) in names.zip(&done.answered) {
        // Requests that differ in their bodies have one name.
        *counts.entry(format!("answered: {name}")).or_default() += answered;
    }
    let wrong = || format!("{} answers were wrong; the first: {}", done.wrong, done.first_wrong);
    driven.invalid = (done.wrong > 0).then(wrong).or(failed);
    driven
}

#[cfg(test)]
#[path = "../tests/figures.rs"]
mod tests;
