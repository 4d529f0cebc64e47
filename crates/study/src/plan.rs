//! A study on a host: every trial in order, where it runs, what it costs, whether it fits.

mod capacity;
mod cost;
mod cpu_target;
mod density;
mod disk;
mod hosts;
mod human;
mod layout;
mod order;
mod place;
mod sets;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use tare_model::plan::{PLAN_SCHEMA, Plan, PlannedTrial};
use tare_model::redact::Redactor;
use tare_model::study::Study;
use tare_model::units::ByteSize;

use crate::catalog::Catalog;
use crate::cpus;
use crate::host::HostFacts;

pub use human::{alone, human, time};

/// Most trials of a plan: more would run for weeks, and their journal would be longer than what is read of one.
const MAX_TRIALS: u64 = 20_000;

/// One reason why a study does not fit on a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefusal {
    /// Guests are promised more memory at one time than the host can give.
    #[error(
        "memory: case `{case}` promises {} to its guests at one time ({parts}), and this host has {} available. \
         Give the guests less memory, ask for fewer neighbours, or free memory on the host",
        human::asked(*need), human::size(*available)
    )]
    Memory {
        /// The case that needs most.
        case: String,
        /// What it needs.
        need: ByteSize,
        /// How that adds up.
        parts: String,
        /// What is there.
        available: ByteSize,
    },
    /// Not even one guest, or one tile of guests, fits beside the memory that is kept back.
    #[error(
        "memory: case `{case}` adds {unit}s one by one, and not even one fits: it touches {} at once, {} are kept back \
         (`reserve`), and this host has {} available. Give the guests less memory, keep less back, or free memory on the host",
        human::size(*touches), human::size(*reserve), human::size(*available)
    )]
    Density {
        /// The case.
        case: String,
        /// What is added: `guest` or `tile`.
        unit: &'static str,
        /// What one takes of the host's memory when it starts.
        touches: ByteSize,
        /// What is kept back.
        reserve: ByteSize,
        /// What is there.
        available: ByteSize,
    },
    /// The run folder, what is kept in the cache and the guests' own files need more disk than is free.
    #[error("disk: the run may need {} for {parts}, and {} is free there. {remedy}", human::size(*need), human::size(*free))]
    Disk {
        /// What the run may need on one file system.
        need: ByteSize,
        /// What for, with the figures and the place.
        parts: String,
        /// What is free.
        free: ByteSize,
        /// What would help.
        remedy: String,
    },
    /// The placement names CPUs that the host does not have, or does not let tare use.
    #[error(
        "CPUs: `lab.placement` names CPU {absent}, and this host lets tare use {present}. \
         Name CPUs that are there, or write `placement = \"separate\"` to have them chosen"
    )]
    Cpus {
        /// CPUs that are not there, as a list.
        absent: String,
        /// CPUs that are there, as a list.
        present: String,
    },
    /// A guest asks for many times the CPUs of the host: it would measure the host's scheduler.
    #[error(
        "CPUs: `{case}` asks {asked} for a guest, and this host has {there} for guests: at most {most_times} times as many can be asked. \
         Write `cpus = {there}`, or use a larger host", most_times = place::MOST_TIMES
    )]
    GuestCpus {
        /// The case.
        case: String,
        /// What it asks.
        asked: u32,
        /// CPUs for guests.
        there: usize,
    },
    /// The host lets tare use no CPU, which only a wrong description of it can say.
    #[error("CPUs: the description of this host names no CPU that tare may use. Read the host again")]
    NoCpu,
    /// The study expands to more trials than any run can hold.
    #[error(
        "trials: {blocks} blocks of {cases} cases and {arms} arms are more than {MAX_TRIALS} trials. \
         Ask for fewer blocks, or split the study"
    )]
    Trials {
        /// Blocks of the study.
        blocks: u32,
        /// Its cases.
        cases: usize,
        /// Its arms.
        arms: usize,
    },
}

/// Why a study cannot run on a host: every reason that was found, each with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("the study `{study}` does not fit on this host\n{}", refusals.iter().map(|r| format!("- {r}\n")).collect::<String>().trim_end())]
pub struct PlanError {
    /// Name of the study.
    pub study: String,
    /// The reasons. Never empty.
    pub refusals: Vec<PlanRefusal>,
}

/// Expands a study into trials in their order, places it on the host's CPUs, and says what it will cost.
///
/// Equal studies give equal orders and equal hashes on every host.
///
/// # Errors
/// When the study does not fit on the host; all reasons at once.
pub fn plan(study: &Study, host: &HostFacts, catalog: &dyn Catalog) -> Result<Plan, PlanError> {
    let refused = |refusals| PlanError { study: study.name.clone(), refusals };
    let trials = u64::from(study.most_blocks()) * study.cases.len() as u64 * study.arms.len() as u64;
    if trials > MAX_TRIALS {
        let (cases, arms) = (study.cases.len(), study.arms.len());
        return Err(refused(vec![PlanRefusal::Trials { blocks: study.most_blocks(), cases, arms }]));
    }
    let mut refusals = Vec::new();
    let asked = study;
    let (study, alone) = sets::fitted(asked, host, catalog);
    let study = &study;
    let placed = place::place(&study.lab.placement, host).map_err(|refusal| refusals.push(refusal)).ok();
    let cost = cost::cost(study, host, catalog);
    let elsewhere = hosts::all_outside(study, catalog);
    refusals.extend(if elsewhere { None } else { cost::memory_refusal(study, host) });
    refusals.extend(if elsewhere { Vec::new() } else { density::refusals(study, host, catalog) });
    refusals.extend(disk::refusals(study, host, catalog));
    let Some(placed) = placed.filter(|_| refusals.is_empty()) else { return Err(refused(refusals)) };
    // Beside machines elsewhere, the size is that of these.
    let far = study.arms.iter().any(|arm| catalog.reaches_outside(&arm.platform, &arm.options));
    let too_wide = if far { Vec::new() } else { place::too_wide(study, &placed.cpus, host) };
    if !too_wide.is_empty() {
        return Err(refused(too_wide));
    }
    let mut differences = placed.differences;
    differences.extend(if elsewhere { Vec::new() } else { place::crowded(study, &placed.cpus, host) });
    differences.extend(hosts::differences(study, catalog));
    differences.extend(alone);
    let trials = order::order(study);
    // Of what is asked, on whatever host.
    let hash = hash(asked, &trials);
    let (trials, sets) = sets::sets(study, trials, host);
    let layout = layout::layout(study, catalog);
    let (study, cpus, left_out) = (study.clone(), placed.cpus, Vec::new());
    Ok(Plan { schema: PLAN_SCHEMA, study, hash, cpus, trials, sets, layout, cost, differences, left_out })
}

/// SHA-256, hexadecimal, of the JSON of schema, study and order with sorted keys and no white space. Secrets and names of
/// machines have no part in it: a hash of all else and a short secret could be searched for the secret.
fn hash(study: &Study, trials: &[PlannedTrial]) -> String {
    let study = Redactor::of(study, true).study(study);
    let whole = serde_json::json!({ "schema": PLAN_SCHEMA, "study": study, "trials": trials });
    Sha256::digest(canonical(&whole)).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// HMAC-SHA-256 (RFC 2104), hexadecimal, of the study as it was written, secrets and names of machines included. It shows to who
/// holds the key, and to nobody else, whether another study is the same.
pub fn identity(study: &Study, key: &[u8]) -> String {
    let text = canonical(&serde_json::json!(study));
    // A key of any length is taken (RFC 2104, 2): this fails for none.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys and no white space. The order in which serde_json keeps keys depends on a feature that any
/// crate of a build can switch on, so it must not decide a hash.
fn canonical(value: &Json) -> String {
    match value {
        Json::Object(map) => {
            let mut pairs: Vec<(&String, &Json)> = map.iter().collect();
            pairs.sort_by_key(|&(key, _)| key);
            let parts: Vec<String> = pairs
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Json::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}

/// CPUs as people read them.
fn cpu_words(cpus: &[u32]) -> String {
    if cpus.is_empty() { "any CPU".to_owned() } else { format!("CPU {}", cpus::list(cpus)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_does_not_depend_on_the_order_of_keys() {
        let one: Json = serde_json::from_str(r#"{"b": [1, {"d": "x\"", "c": null}], "a": 1.5}"#).unwrap_or_default();
        let two: Json = serde_json::from_str(r#"{"a": 1.5, "b": [1, {"c": null, "d": "x\""}]}"#).unwrap_or_default();
        assert_eq!(canonical(&one), r#"{"a":1.5,"b":[1,{"c":null,"d":"x\""}]}"#);
        assert_eq!(canonical(&one), canonical(&two));
    }
}
