//! The walk over a study file that makes a `Study` of it.
//!
//! After a problem the walk goes on with a stand-in value, so that later problems are found too. A study
//! is returned only when there was none, so no stand-in ever leaves this module.

mod capacity;
mod case;
mod cpu_target;
mod density;
mod hosts;
mod instances;
mod lab;
mod load;
mod memory;
mod size;

use serde_json::{Value as Json, json};
use tare_model::load::LoadModel;
use tare_model::merging::HostMemory;
use tare_model::study::{Arm, STUDY_SCHEMA, Study};
use tare_model::traits::{ANY_SIZE, Traits};
use tare_model::units::Span;

use crate::catalog::{Catalog, CatalogEntry, WorkloadAsked};
use crate::fields;
use crate::suggest;
use crate::tree::{Cursor, Table};

pub(crate) use capacity::{FEWEST_ITERATIONS, MAX_SHARE, MOST_ITERATIONS};
pub(crate) use case::{MAX_DRIVERS, MAX_GUESTS};
pub(crate) use cpu_target::{FEWEST_STEPS, MOST_STEPS, SHARES, TOLERANCES};
pub(crate) use density::MAX_LISTED;
pub(crate) use instances::MAX_INSTANCES;
pub(crate) use load::MAX_CONNECTIONS;
pub(crate) use memory::rules;

/// Most blocks: beyond it the plan would be the problem, not the noise.
const MAX_BLOCKS: u32 = 10_000;
/// Longest id; ids become file and interface names.
const MAX_ID: usize = 40;
/// Longest name of a study.
const MAX_NAME: usize = 64;
/// What is added to the baseline's id for the arm that repeats it.
const REPLICA_SUFFIX: &str = "-again";

/// What the walk needs everywhere.
struct Context<'c> {
    catalog: &'c dyn Catalog,
    platforms: Vec<CatalogEntry>,
    workloads: Vec<CatalogEntry>,
}

impl Context<'_> {
    /// The end of a remedy: the workloads that can do it as they are by themselves; empty where none can.
    fn others(&self, how: &str, can: impl Fn(&Traits) -> bool) -> String {
        let (parameters, load) = (json!({}), LoadModel::Closed { clients: 1, think_time: Span::ZERO });
        let able = |entry: &&CatalogEntry| {
            let (name, parameters) = (entry.name.as_str(), &parameters);
            can(&self.catalog.traits(&WorkloadAsked { name, parameters, load, guest: ANY_SIZE, instances: 1 }))
        };
        let names: Vec<String> = self.workloads.iter().filter(able).map(|entry| format!("`{}`", entry.name)).collect();
        if names.is_empty() { String::new() } else { format!("; {how} {}", names.join(", ")) }
    }
}

/// The study in a file's tree. Meaningless unless the cursor's sink stayed empty.
pub(crate) fn study(root: &Cursor<'_>, catalog: &dyn Catalog) -> Option<Study> {
    if written_by_a_newer_tare(root) {
        return None;
    }
    let table = root.table(fields::STUDY)?;
    let context = Context { catalog, platforms: catalog.platforms(), workloads: catalog.workloads() };
    let schema = table.require("schema").and_then(|c| c.integer32(1..=STUDY_SCHEMA)).unwrap_or(STUDY_SCHEMA);
    let name = table.require("name").and_then(|c| name(&c, MAX_NAME)).unwrap_or_default();
    let question = table.require("question").and_then(|c| c.text().map(str::to_owned)).unwrap_or_default();
    let blocks = table.require("blocks").and_then(|c| c.integer32(1..=MAX_BLOCKS));
    let seed = table.get("seed").and_then(|c| c.integer(0..=i64::MAX as u64)).unwrap_or(1);
    let (mut arms, baseline) = arms(&table, &context);
    noise_floor(&table, blocks, &baseline, &mut arms);
    let guest = size::default_guest(&table);
    let phases = size::default_phases(&table);
    let lab = lab::lab(&table);
    let cases = case::cases(&table, &context, guest, phases);
    let score = capacity::score(&table, &cases);
    let client = hosts::client(&table, &context, &arms);
    hosts::in_numbers(&table, &context, &arms, &cases);
    let skip_unavailable = table.get("skip-unavailable").and_then(|c| c.boolean()).unwrap_or(false);
    let trust_domain = memory::trust_domain(&table, &arms);
    let (blocks, scale) = (blocks.unwrap_or(1), 1.0);
    Some(Study {
        schema,
        name,
        question,
        blocks,
        seed,
        baseline,
        arms,
        cases,
        lab,
        scale,
        skip_unavailable,
        client,
        trust_domain,
        published: None,
        score,
    })
}

/// A newer file may be wrong in every line to this tare: only its schema number is worth reporting.
fn written_by_a_newer_tare(root: &Cursor<'_>) -> bool {
    let newer = root.named().and_then(|fields| fields.into_iter().find(|field| field.key() == "schema"));
    let Some(field) = newer else { return false };
    let number = field.json().and_then(|number| number.as_i64()).unwrap_or(0);
    if number <= i64::from(STUDY_SCHEMA) {
        return false;
    }
    let what = format!("is {number}: this study was written by a newer tare; this one reads up to {STUDY_SCHEMA}");
    field.wrong(&what, "update tare, or write the study for this version (`tare init`)");
    true
}

/// A name that is fit for a folder, a file and part of an interface's name.
fn name(cursor: &Cursor<'_>, longest: usize) -> Option<String> {
    let text = cursor.text()?;
    match unfit(text, longest) {
        None => Some(text.to_owned()),
        Some(why) => {
            cursor.wrong(&format!("is not fit for the name of a folder: {why}"), fit_help(text));
            None
        }
    }
}

/// Reports an id (a key of the user's own) that is unfit.
fn check_id(cursor: &Cursor<'_>) {
    if let Some(why) = unfit(cursor.key(), MAX_ID) {
        cursor.wrong_key(&format!("has an id that is not fit for a file name: {why}"), fit_help(cursor.key()));
    }
}

fn unfit(text: &str, longest: usize) -> Option<String> {
    if let Some(bad) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
        return Some(format!("it has {bad:?} in it"));
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Some("it does not start with a letter or a digit".to_owned());
    }
    (text.len() > longest).then(|| format!("it is longer than {longest} characters"))
}

/// What was refused, made fit, as a proposal.
fn fit_help(text: &str) -> String {
    let rule = "use lower case letters, digits and `-`, a letter or digit first";
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let proposal: String = words.join("-").chars().take(MAX_ID).collect();
    if proposal.is_empty() { rule.to_owned() } else { format!("{rule}: `{}`", proposal.trim_end_matches('-')) }
}

/// Most arms, and most cases, of a study: hundreds of times what anybody compared.
const MOST: usize = 1000;

/// What a table names; more than any study has is an error, and not looked at.
fn few<'a>(field: &Cursor<'a>, what: &str) -> Option<Vec<Cursor<'a>>> {
    let mut named = field.named()?;
    if named.len() > MOST {
        field.wrong_key(&format!("names {} {what}, and a study has {MOST} at most", named.len()), "split the study");
        named.truncate(1);
    }
    Some(named)
}

/// The arms as written, and the id of the baseline.
fn arms(table: &Table<'_>, context: &Context<'_>) -> (Vec<Arm>, String) {
    let field = table.require("arms");
    let cursors = field.as_ref().and_then(|field| few(field, "arms")).unwrap_or_default();
    if let (Some(field), true) = (&field, cursors.is_empty())
        && field.is_table()
    {
        field.wrong_key("names no arm", "add at least one: `[arms.native]` and below it `platform = \"native\"`");
    }
    let arms: Vec<Arm> = cursors.iter().map(|cursor| arm(cursor, context)).collect();
    let baseline = table.require("baseline").and_then(|cursor| {
        let id = cursor.text()?;
        if !arms.is_empty() && arms.iter().all(|arm| arm.id != id) {
            let help = suggest::help(id, "arms of this study", arms.iter().map(|arm| arm.id.as_str()));
            cursor.wrong(&format!("is {id:?}, but no arm has that id"), help);
        }
        Some(id.to_owned())
    });
    (arms, baseline.unwrap_or_default())
}

fn arm(cursor: &Cursor<'_>, context: &Context<'_>) -> Arm {
    check_id(cursor);
    let id = cursor.key().to_owned();
    let (platform, options) = (String::new(), Json::Null);
    let host_memory = HostMemory::default();
    let stand_in = Arm { id: id.clone(), label: id, platform, options, replica_of: None, host_memory };
    let Some(table) = cursor.table(fields::ARM) else { return stand_in };
    let label = table.get("label").and_then(|c| c.text().map(str::to_owned));
    let field = table.get("options");
    let options = field.as_ref().map_or_else(|| Some(Json::Object(serde_json::Map::new())), options_of);
    let platform = table.require("platform").and_then(|c| {
        let name = c.text()?;
        known(&c, name, "platform", &context.platforms).then(|| name.to_owned())
    });
    let checked = platform.as_ref().zip(options).and_then(|(platform, options)| {
        let checked = context.catalog.check_platform(platform, &options);
        checked.map_err(|error| cursor.foreign(&["options"], error, schema_of(platform, &context.platforms))).ok()
    });
    let host_memory = memory::of_arm(&table, context, platform.as_deref().zip(checked.as_ref()));
    Arm {
        label: label.unwrap_or(stand_in.label),
        platform: platform.unwrap_or_default(),
        options: checked.unwrap_or_default(),
        host_memory,
        ..stand_in
    }
}

/// The user's own table of options or parameters, as JSON.
fn options_of(cursor: &Cursor<'_>) -> Option<Json> {
    cursor.named()?;
    cursor.json()
}

/// What a platform or a workload says about its own fields.
fn schema_of<'e>(name: &str, entries: &'e [CatalogEntry]) -> Option<&'e Json> {
    entries.iter().find(|entry| entry.name == name).map(|entry| &entry.schema)
}

/// Whether the catalog lists a name; if not, that is reported.
fn known(cursor: &Cursor<'_>, name: &str, kind: &str, entries: &[CatalogEntry]) -> bool {
    let there = entries.iter().any(|entry| entry.name == name);
    if !there {
        let help = suggest::help(name, &format!("{kind}s"), entries.iter().map(|entry| entry.name.as_str()));
        cursor.wrong(&format!("is {name:?}, but there is no such {kind}"), help);
    }
    there
}

/// Adds the second baseline, unless it was switched off.
fn noise_floor(table: &Table<'_>, blocks: Option<u32>, baseline: &str, arms: &mut Vec<Arm>) {
    let field = table.get("noise-floor");
    if !field.as_ref().map_or(Some(true), Cursor::boolean).unwrap_or(false) {
        return;
    }
    if blocks == Some(1) {
        let what = "is 1, but a noise floor takes at least 2: one pair of equal arms shows no spread";
        let help =
            "ask for more blocks (6 give an interval of 95 % without assumptions), or write `noise-floor = false`";
        if let Some(blocks) = table.get("blocks") {
            blocks.wrong(what, help);
        }
    }
    let Some(original) = arms.iter().find(|arm| arm.id == baseline) else { return };
    let id = format!("{baseline}{REPLICA_SUFFIX}");
    if arms.iter().any(|arm| arm.id == id) {
        let keys = ["arms", id.as_str()];
        let message = format!("`arms.{id}` has the id of the arm that `noise-floor` adds to repeat the baseline");
        let error = tare_model::field::FieldError::new(&keys, message);
        table.cursor().sink().add(error.help("rename this arm, or write `noise-floor = false`"));
        return;
    }
    let label = format!("{}, again", original.label);
    let replica = Arm { id, label, replica_of: Some(baseline.to_owned()), ..original.clone() };
    arms.push(replica);
}
