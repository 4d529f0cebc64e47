//! The raw numbers as CSV (RFC 4180).

use std::borrow::Cow;

use tare_model::findings::Findings;
use tare_model::text::{is_unfit, readable};

use crate::tables::{RawTable, Value, tables};

/// Four files, as file name and content: `trials.csv`, `comparisons.csv`, `percentiles.csv` and `samples.csv`.
///
/// All else is in `findings.json`, of which these are extracts, and in `results.sqlite`; `docs/method.md` says what is where. A figure
/// that does not exist is an empty field.
pub fn csv(findings: &Findings) -> Vec<(String, String)> {
    tables(findings).iter().map(|table| (format!("{}.csv", table.name), written(table))).collect()
}

fn written(table: &RawTable) -> String {
    let mut out = String::new();
    record(&mut out, table.columns.iter().map(|(name, _)| Cow::Borrowed(*name)));
    for row in &table.rows {
        record(&mut out, row.iter().map(field));
    }
    out
}

fn field(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Text(text) => inert(text),
        Value::Real(number) => number.to_string().into(),
        Value::Whole(number) => number.to_string().into(),
        Value::Flag(flag) => flag.to_string().into(),
        Value::Absent => "".into(),
    }
}

/// Fields joined by commas and ended by CRLF, quoted where they must be.
pub(crate) fn record<'f>(out: &mut String, fields: impl Iterator<Item = Cow<'f, str>>) {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        if field.contains(['"', ',', '\r', '\n']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&field);
        }
    }
    out.push_str("\r\n");
}

/// A field that a spreadsheet takes for text or a number, and never for a formula: names and reasons may come from
/// strangers.
pub(crate) fn inert(field: &str) -> Cow<'_, str> {
    let field = if field.contains(is_unfit) { Cow::Owned(readable(field)) } else { Cow::Borrowed(field) };
    let begins = field.starts_with(['=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
    if begins && field.parse::<f64>().is_err() { Cow::Owned(format!("'{field}")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_is_a_formula_and_numbers_stay_numbers() {
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\u{ff1d}1", "-", "=HYPERLINK(\"x\")"]
        {
            assert_eq!(inert(formula), format!("'{formula}"));
        }
        for plain in ["-1.5", "+2", "-1e-9", "native", "a=b", "", "'=1"] {
            assert_eq!(inert(plain), plain);
        }
        assert_eq!(inert("\u{1b}[2J\u{202e}"), "\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn fields_that_need_quotes_get_them() {
        let mut out = String::new();
        record(&mut out, ["plain", "with \"quotes\", comma\nand line"].into_iter().map(Cow::Borrowed));
        assert_eq!(out, "plain,\"with \"\"quotes\"\", comma\nand line\"\r\n");
    }
}
