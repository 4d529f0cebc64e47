//! findings.json as it lies in a folder beside the findings that tare makes of it now.

use serde::Serialize;
use serde_json::Value;
use tare_model::findings::Findings;
use tare_record::RunFolder;

/// Relative difference up to which two figures are the same: logarithms of other machines' libraries differ in the last digits.
const WITHIN: f64 = 1e-9;
/// Places that are named.
const NAMED: usize = 5;

/// What differs.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Stale {
    /// Figures and words that differ.
    pub differs: u64,
    /// Where the first of them stand.
    pub first: Vec<String>,
}

impl Stale {
    fn note(&mut self, path: &str) {
        self.differs += 1;
        if self.first.len() < NAMED {
            self.first.push(path.to_owned());
        }
    }

    fn compare(&mut self, stored: &Value, made: &Value, path: &str) {
        match (stored, made) {
            (Value::Object(one), Value::Object(other)) => {
                for (name, value) in other {
                    self.compare(one.get(name).unwrap_or(&Value::Null), value, &format!("{path}.{name}"));
                }
                let more = one.keys().filter(|name| !other.contains_key(*name));
                more.for_each(|name| self.note(&format!("{path}.{name}")));
            }
            (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
                let both = one.iter().zip(other).enumerate();
                both.for_each(|(at, (one, other))| self.compare(one, other, &format!("{path}[{at}]")));
            }
            _ if is_same(stored, made) => {}
            _ => self.note(path.trim_start_matches('.')),
        }
    }
}

fn is_same(stored: &Value, made: &Value) -> bool {
    let (Some(a), Some(b)) = (stored.as_f64(), made.as_f64()) else { return stored == made };
    (a - b).abs() <= WITHIN * a.abs().max(b.abs())
}

/// What differs between findings.json in the folder and `made`; `None` where there is no such file.
///
/// # Errors
/// Why it cannot be read.
pub fn stale(folder: &RunFolder, made: &Findings) -> Result<Option<Stale>, String> {
    let Some(stored) = folder.read_findings().map_err(|error| error.to_string())? else { return Ok(None) };
    let value = |findings: &Findings| serde_json::to_value(findings).map_err(|error| error.to_string());
    let mut found = Stale::default();
    found.compare(&value(&stored)?, &value(made)?, "");
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(stored: &Value, made: &Value) -> Stale {
        let mut found = Stale::default();
        found.compare(stored, made, "");
        found
    }

    #[test]
    fn what_differs_is_named_and_the_last_digits_do_not_count() {
        let made = json!({"cases": [{"value": 2.0, "low": null, "sentence": "as before"}], "schema": 1});
        assert_eq!(of(&made, &made), Stale::default());
        let nearly = json!({"cases": [{"value": 2.0 + 1e-12, "low": null, "sentence": "as before"}], "schema": 1});
        assert_eq!(of(&nearly, &made).differs, 0);
        let altered =
            json!({"cases": [{"value": 2.000_002, "low": 1.0, "sentence": "better"}], "schema": 1, "more": true});
        let mut found = of(&altered, &made);
        // Whether fields are in the order of the file or of their names depends on what else is built.
        found.first.sort();
        let first = [".more", "cases[0].low", "cases[0].sentence", "cases[0].value"].map(str::to_owned);
        assert_eq!((found.differs, &found.first[..]), (4, &first[..]));
        assert_eq!(of(&json!({"cases": []}), &made).first, ["cases", "schema"]);
    }
}
