//! `sweep` of a case: a case for each combination of the values that it lists. Why it is done on the tree: `docs/adr/0022-sweeps.md`.

use std::collections::BTreeSet;
use std::ops::Range;

use tare_model::field::FieldError;

use crate::language::tree::Sink;
use crate::node::{Entry, Node, Value};

/// The field of a case.
const SWEEP: &str = "sweep";
/// Most cases of one sweep.
pub(crate) const MAX_CASES: usize = 500;

/// The values of one field.
struct Axis<'n> {
    /// The keys that lead to the field from the case.
    path: Vec<String>,
    key_span: Range<usize>,
    values: &'n [Node],
}

/// Puts the cases of each sweep in its place. What is wrong with a sweep is reported, and it stays; no case is then made of it.
pub(crate) fn expand(root: &mut Node, sink: &Sink) {
    let Some(cases) = root.below_mut("cases") else { return };
    let Value::Table(entries) = &mut cases.value else { return };
    let is_swept = |case: &&Entry| case.node.below(SWEEP).is_some();
    let mut ids: BTreeSet<String> =
        entries.iter().filter(|case| !is_swept(case)).map(|case| case.key.clone()).collect();
    let mut all = Vec::with_capacity(entries.len());
    for case in std::mem::take(entries) {
        match case.node.below(SWEEP).map(|sweep| combined(&case, sweep, &mut ids)) {
            None => all.push(case),
            Some(Ok(cases)) => all.extend(cases),
            Some(Err(errors)) => {
                errors.into_iter().for_each(|error| sink.add(error));
                all.push(case);
            }
        }
    }
    *entries = all;
}

/// The cases of a sweep, in the order in which its lists are written: the last list changes from case to case.
fn combined(case: &Entry, sweep: &Node, ids: &mut BTreeSet<String>) -> Result<Vec<Entry>, Vec<FieldError>> {
    let axes = axes(case, sweep)?;
    let count = axes.iter().try_fold(1, |all: usize, axis| all.checked_mul(axis.values.len()));
    let Some(count) = count.filter(|count| *count <= MAX_CASES) else {
        let what = format!("makes more than {MAX_CASES} cases");
        return Err(vec![wrong(case, &[], &what, "list fewer values, or split the sweep")]);
    };
    let mut made = Vec::with_capacity(count);
    for number in 0..count {
        let one = one(case, &axes, number).map_err(|path| {
            let help = "write the fields above it as tables";
            vec![wrong(case, &path, "leads through what is no table in the case", help)]
        })?;
        if !ids.insert(one.key.clone()) {
            let what = format!("makes the case `{}` that is there already", one.key);
            return Err(vec![wrong(case, &[], &what, "give one of them another name")]);
        }
        made.push(one);
    }
    Ok(made)
}

/// The lists of a sweep, or all that is wrong with them.
fn axes<'n>(case: &Entry, sweep: &'n Node) -> Result<Vec<Axis<'n>>, Vec<FieldError>> {
    const EXAMPLE: &str = "for example `sweep.instances = [1, 2, 4]`";
    if !sweep.is_table() {
        return Err(vec![wrong(case, &[], "must be a table of lists", EXAMPLE)]);
    }
    let (mut axes, mut no_lists) = (Vec::new(), Vec::new());
    axes_below(sweep, &mut Vec::new(), &mut axes, &mut no_lists);
    let mut errors: Vec<FieldError> =
        no_lists.iter().map(|path| wrong(case, path, "must be a list of values", EXAMPLE)).collect();
    for Axis { path, values, .. } in &axes {
        if values.is_empty() {
            errors.push(wrong(case, path, "is an empty list", "list the values of the cases"));
        }
        if case.node.find(path).is_some() {
            errors.push(wrong(case, path, "stands in the case as well", "write it in one of the two places"));
        } else if *path == ["workload"] || *path == ["label"] {
            errors.push(wrong(case, path, "cannot be swept", "write a case for each"));
        }
    }
    if axes.is_empty() && errors.is_empty() {
        errors.push(wrong(case, &[], "lists no values", EXAMPLE));
    }
    if errors.is_empty() { Ok(axes) } else { Err(errors) }
}

/// An error of a case's sweep, or of what is at a path below it.
fn wrong(case: &Entry, path: &[String], what: &str, help: &str) -> FieldError {
    let start = ["cases", &case.key, SWEEP].map(str::to_owned);
    let path: Vec<String> = start.into_iter().chain(path.iter().cloned()).collect();
    FieldError { message: format!("`{}` {what}", path.join(".")), path, help: Some(help.to_owned()) }
}

/// The lists below a table, and the paths of what is neither a list nor a table.
fn axes_below<'n>(table: &'n Node, path: &mut Vec<String>, axes: &mut Vec<Axis<'n>>, no_lists: &mut Vec<Vec<String>>) {
    let Value::Table(entries) = &table.value else { return no_lists.push(path.clone()) };
    for entry in entries {
        path.push(entry.key.clone());
        match &entry.node.value {
            Value::Array(values) => axes.push(Axis { path: path.clone(), key_span: entry.key_span.clone(), values }),
            _ => axes_below(&entry.node, path, axes, no_lists),
        }
        path.pop();
    }
}

/// The case of this number.
///
/// # Errors
/// The path of a field whose place in the case is no table.
fn one(case: &Entry, axes: &[Axis<'_>], number: usize) -> Result<Entry, Vec<String>> {
    let mut made = case.clone();
    made.node.remove(SWEEP);
    let mut rest = number;
    let mut places = vec![0; axes.len()];
    for (place, axis) in places.iter_mut().zip(axes).rev() {
        (*place, rest) = (rest % axis.values.len(), rest / axis.values.len());
    }
    let mut words = Vec::new();
    for (axis, place) in axes.iter().zip(places) {
        let value = &axis.values[place];
        let word = value.word().unwrap_or_else(|| (place + 1).to_string());
        made.key = format!("{}-{}", made.key, in_id(&word).unwrap_or_else(|| (place + 1).to_string()));
        words.push((axis.path.join("."), word));
        if !made.node.put(&axis.path, &axis.key_span, value.clone()) {
            return Err(axis.path.clone());
        }
    }
    if let Some(Value::String(label)) = made.node.below_mut("label").map(|label| &mut label.value) {
        *label = labelled(label, &words);
    }
    Ok(made)
}

/// The label with the values in the places of `{FIELD}`, or after it where it names no field.
fn labelled(label: &str, words: &[(String, String)]) -> String {
    let filled = words.iter().fold(label.to_owned(), |label, (path, word)| label.replace(&format!("{{{path}}}"), word));
    if filled != label {
        return filled;
    }
    let list: Vec<String> = words.iter().map(|(path, word)| format!("{path} {word}")).collect();
    format!("{label}, {}", list.join(", "))
}

/// A value as part of an id; `None` where no character of it is fit for one.
fn in_id(word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    let parts: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("-"))
}
