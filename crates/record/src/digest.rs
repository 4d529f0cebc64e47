//! The digest by which a stored trial is known again.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tare_model::trial::{Outcome, TrialRecord};

/// SHA-256 of a trial as canonical JSON, hexadecimal.
///
/// Canonical: keys sorted; integers in decimal; other numbers as the shortest decimal in scientific form
/// that reads back the same, both zeros alike; and members that are null, empty or not a finite number left
/// out, so that optional fields which later versions add do not change the digest of older trials.
pub fn trial_digest(record: &TrialRecord) -> String {
    let mut text = String::new();
    canonical(&value_of(record), &mut text);
    sha256_hex(text.as_bytes())
}

/// The same of anything that serialises: 64 hexadecimal digits. What does not serialise has the digest of null.
pub fn digest_of(value: &impl Serialize) -> String {
    let mut text = String::new();
    canonical(&serde_json::to_value(value).unwrap_or_default(), &mut text);
    sha256_hex(text.as_bytes())
}

/// SHA-256 as 64 hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The record as a JSON value. A histogram's sum that passes 64 bits, which a JSON value cannot hold, becomes text.
fn value_of(record: &TrialRecord) -> Value {
    if let Ok(value) = serde_json::to_value(record) {
        return value;
    }
    let mut short = record.clone();
    let mut sums = String::new();
    if let Outcome::Completed(measurement) = &mut short.outcome {
        let steps = measurement.steps.iter_mut().map(|step| &mut step.times);
        let levels = measurement.scale_up.iter_mut().flat_map(|scale_up| &mut scale_up.levels);
        let levels = levels.map(|level| &mut level.response);
        let types = measurement.requests.iter_mut().map(|one| &mut one.times);
        let probes = measurement.search.iter_mut().flat_map(|search| &mut search.probes).flat_map(|probe| {
            std::iter::once(&mut probe.response).chain(probe.requests.iter_mut().map(|one| &mut one.times))
        });
        let all = measurement.histograms.values_mut().chain(steps).chain(levels).chain(types).chain(probes);
        for histogram in all {
            sums.push_str(&format!("{},", histogram.sum));
            histogram.sum = 0;
        }
    }
    Value::Array(vec![serde_json::to_value(&short).unwrap_or_default(), Value::String(sums)])
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => {
                let float = if float == 0.0 { 0.0 } else { float };
                out.push_str(&format!("{float:e}"));
            }
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => out.push_str(&Value::String(text.clone()).to_string()),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut kept: Vec<_> = members.iter().filter(|(_, member)| !says_nothing(member)).collect();
            kept.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (position, (key, member)) in kept.into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                canonical(member, out);
            }
            out.push('}');
        }
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn canonical_json_does_not_depend_on_order_nor_on_empty_members() {
        let text = |json: &str| {
            let mut out = String::new();
            canonical(&serde_json::from_str(json).unwrap(), &mut out);
            out
        };
        assert_eq!(text(r#"{"b":1,"a":0.0015,"new":null,"list":[]}"#), r#"{"a":1.5e-3,"b":1}"#);
        assert_eq!(text(r#"[-0.0,null]"#), "[0e0,null]");
    }

    #[test]
    fn any_change_of_a_trial_changes_its_digest() {
        let plan = testing::plan(1);
        let record = testing::trial(&plan, 0);
        let digest = trial_digest(&record);
        assert_eq!(digest, trial_digest(&record.clone()));
        let mut other = record.clone();
        other.samples[0].value += 1e-9;
        assert_ne!(digest, trial_digest(&other));
        let mut other = record;
        if let Outcome::Completed(m) = &mut other.outcome {
            m.histograms.get_mut("response").unwrap().sum += u128::from(u64::MAX) * 2;
        }
        assert_ne!(digest, trial_digest(&other), "a sum beyond 64 bits is digested as well");
    }
}
