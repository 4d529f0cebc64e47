//! `tare list`.

use serde::Serialize;
use tare_report::Page;
use tare_study::{Catalog, CatalogEntry};

use crate::args::{ListArguments, Listed};
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::{forms, studies};

/// What there is of each kind; nothing of a kind that was not asked for.
#[derive(Serialize)]
struct All {
    #[serde(skip_serializing_if = "Option::is_none")]
    platforms: Option<Vec<One>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads: Option<Vec<One>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    studies: Option<Vec<One>>,
}

#[derive(Serialize)]
struct One {
    name: String,
    /// What it is; the question of a study.
    summary: String,
}

/// Lists platforms, workloads and studies.
pub fn command(arguments: &ListArguments) -> Result<Exit, Failure> {
    let wanted = |what| arguments.what.is_none_or(|only| only == what);
    let listed = |entries: Vec<CatalogEntry>| {
        entries.into_iter().map(|entry| One { name: entry.name, summary: entry.summary }).collect()
    };
    let shipped = || studies::SHIPPED.iter().map(|study| One { name: study.name.to_owned(), summary: question(study) });
    let all = All {
        platforms: wanted(Listed::Platforms).then(|| listed(Registries.platforms())),
        workloads: wanted(Listed::Workloads).then(|| listed(Registries.workloads())),
        studies: wanted(Listed::Studies).then(|| shipped().collect()),
    };
    forms::print(arguments.shown.format, &all, |_| page(&all, arguments.what))?;
    Ok(Exit::Success)
}

fn page(all: &All, what: Option<Listed>) -> Page {
    let mut page = Page::new("What this tare has");
    for (title, column, entries) in [
        ("Platforms", "What it is", &all.platforms),
        ("Workloads", "What it is", &all.workloads),
        ("Studies", "Its question", &all.studies),
    ] {
        let rows = |entries: &Vec<One>| entries.iter().map(|one| vec![one.name.clone(), one.summary.clone()]).collect();
        if let Some(entries) = entries {
            page.heading(title).rows(&["Name", column], rows(entries));
        }
    }
    page.heading(match what {
        Some(Listed::Studies) => "`tare init mine.toml --from STUDY` copies one, to be changed",
        Some(_) => "`tare schema NAME` says what each takes",
        None => {
            "`tare schema NAME` says what a platform or a workload takes; `tare init mine.toml --from STUDY` copies a study, to be changed"
        }
    });
    page
}

/// What a shipped study answers.
fn question(study: &studies::ShippedStudy) -> String {
    match tare_study::parse(study.name, study.text, &Registries) {
        Ok(loaded) => loaded.study.question,
        Err(error) => format!("(broken: {error})"),
    }
}
