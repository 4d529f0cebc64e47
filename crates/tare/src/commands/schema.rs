//! `tare schema`.

use tare_study::{Catalog, CatalogEntry};

use crate::args::SchemaArguments;
use crate::catalog::Registries;
use crate::commands::{fields, report};
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints the JSON schema of study files, or what one platform or workload takes.
pub fn command(arguments: &SchemaArguments) -> Result<Exit, Failure> {
    if let Some(name) = &arguments.of {
        output::print(&taken_by(name)?)?;
        return Ok(Exit::Success);
    }
    let schema = tare_study::schema(&Registries);
    let text = serde_json::to_string_pretty(&schema).map_err(|error| Failure::new(error, Exit::Failure))?;
    output::print(&text)?;
    Ok(Exit::Success)
}

/// What platforms and workloads of this name take: there may be one of each.
fn taken_by(name: &str) -> Result<String, Failure> {
    let (platforms, workloads) = (Registries.platforms(), Registries.workloads());
    let mut text = String::new();
    for (kind, field, entries) in [("platform", "options", &platforms), ("workload", "parameters", &workloads)] {
        for CatalogEntry { name, summary, schema } in entries.iter().filter(|entry| entry.name == name) {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{kind} `{name}`: {summary}\n\n`{field}` of it, in a study:\n\n"));
            text.push_str(&fields::words(schema, report::width()));
        }
    }
    if text.is_empty() {
        let all: Vec<&str> = platforms.iter().chain(&workloads).map(|entry| entry.name.as_str()).collect();
        let meant = tare_study::nearest(name, all.iter().copied())
            .map_or_else(|| format!("there are: {}", all.join(", ")), |meant| format!("did you mean `{meant}`?"));
        return Err(Failure::new(format!("there is no platform and no workload `{name}`; {meant}"), Exit::Usage));
    }
    Ok(text)
}
