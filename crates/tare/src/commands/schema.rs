//! `tare schema`.

use serde_json::json;
use tare_report::{Page, PagePart};
use tare_study::{Catalog, CatalogEntry};

use crate::args::{Format, SchemaArguments};
use crate::catalog::Registries;
use crate::commands::fields;
use crate::exit::{Exit, Failure};
use crate::forms::{self, Terminal};
use crate::output;

/// Prints the JSON schema of study files, or what one platform or workload takes.
pub fn command(arguments: &SchemaArguments) -> Result<Exit, Failure> {
    match (&arguments.of, arguments.format) {
        (None, None | Some(Format::Json)) => {
            let schema = tare_study::schema(&Registries);
            output::print(&serde_json::to_string_pretty(&schema).map_err(|error| Failure::new(error, Exit::Failure))?)?;
        }
        (None, Some(format)) => {
            let schema = tare_study::schema(&Registries);
            let page = |Terminal { width, .. }| Page::of_lines("Study files", fields::words(&schema, width));
            forms::print(format, &schema, page)?;
        }
        (Some(name), format) => {
            let taken = taken_by(name)?;
            let json = |Taken { kind, entry, .. }: &Taken| json!({ "kind": kind, "name": entry.name, "summary": entry.summary, "takes": entry.schema });
            let all = json!({ "of": taken.iter().map(json).collect::<Vec<_>>() });
            forms::print(format.unwrap_or_default(), &all, |Terminal { width, .. }| page(name, &taken, width))?;
        }
    }
    Ok(Exit::Success)
}

/// A platform or a workload, and what its field of a study takes.
struct Taken {
    kind: &'static str,
    field: &'static str,
    entry: CatalogEntry,
}

fn page(name: &str, taken: &[Taken], width: usize) -> Page {
    let mut page = Page::new(format!("What {name} takes"));
    for Taken { kind, field, entry: CatalogEntry { name, summary, schema, .. } } in taken {
        page.heading(format!("{kind} `{name}`: {summary}")).heading(format!("`{field}` of it, in a study:"));
        page.parts.push(PagePart::Lines(fields::words(schema, width)));
    }
    page
}

/// Platforms and workloads of this name: there may be one of each.
fn taken_by(name: &str) -> Result<Vec<Taken>, Failure> {
    let (platforms, workloads) = (Registries.platforms(), Registries.workloads());
    let kinds = [("platform", "options", &platforms), ("workload", "parameters", &workloads)];
    let taken = kinds.into_iter().flat_map(|(kind, field, entries)| {
        let own = entries.iter().filter(|entry| entry.name == name);
        own.map(move |entry| Taken { kind, field, entry: entry.clone() })
    });
    let taken: Vec<Taken> = taken.collect();
    if taken.is_empty() {
        let all: Vec<&str> = platforms.iter().chain(&workloads).map(|entry| entry.name.as_str()).collect();
        let meant = tare_study::nearest(name, all.iter().copied())
            .map_or_else(|| format!("there are: {}", all.join(", ")), |meant| format!("did you mean `{meant}`?"));
        return Err(Failure::new(format!("there is no platform and no workload `{name}`; {meant}"), Exit::Usage));
    }
    Ok(taken)
}
