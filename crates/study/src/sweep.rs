//! `sweep` of a case: a case for each combination of the values that it lists. Why it is done on the tree: `docs/adr/0022-sweeps.md`.

use std::collections::BTreeSet;
use std::ops::Range;

use tare_model::field::FieldError;

use crate::node::{Entry, Node, Value};
use crate::tree::Sink;

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

/// Puts the cases of each sweep in its place. A sweep that is wrong is reported, and stays.
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
            Some(Err(error)) => {
                sink.add(error);
                all.push(case);
            }
        }
    }
    *entries = all;
}

/// The cases of a sweep, in the order in which its lists are written: the last list changes from case to case.
fn combined(case: &Entry, sweep: &Node, ids: &mut BTreeSet<String>) -> Result<Vec<Entry>, FieldError> {
    let wrong = |path: &[String], what: &str, help: &str| {
        let path: Vec<String> =
            ["cases", &case.key, SWEEP].map(str::to_owned).into_iter().chain(path.to_vec()).collect();
        FieldError { message: format!("`{}` {what}", path.join(".")), path, help: Some(help.to_owned()) }
    };
    if !sweep.is_table() {
        return Err(wrong(&[], "must be a table of lists", "for example `sweep.instances = [1, 2, 4]`"));
    }
    let mut axes = Vec::new();
    axes_below(sweep, &mut Vec::new(), &mut axes)
        .map_err(|path| wrong(&path, "must be a list of values", "for example `instances = [1, 2, 4]`"))?;
    if axes.is_empty() {
        return Err(wrong(&[], "lists no values", "for example `instances = [1, 2, 4]`"));
    }
    for axis in &axes {
        if axis.values.is_empty() {
            return Err(wrong(&axis.path, "is an empty list", "list the values of the cases"));
        }
        if case.node.find(&axis.path).is_some() {
            return Err(wrong(&axis.path, "stands in the case as well", "write it in one of the two places"));
        }
        if axis.path == ["workload"] || axis.path == ["label"] {
            return Err(wrong(&axis.path, "cannot be swept", "write a case for each"));
        }
    }
    let count = axes.iter().try_fold(1, |all: usize, axis| all.checked_mul(axis.values.len()));
    let Some(count) = count.filter(|count| *count <= MAX_CASES) else {
        return Err(wrong(&[], &format!("makes more than {MAX_CASES} cases"), "list fewer values, or split the sweep"));
    };
    let mut made = Vec::with_capacity(count);
    for number in 0..count {
        let one = one(case, &axes, number).map_err(|path| {
            wrong(&path, "leads through what is no table in the case", "write the fields above it as tables")
        })?;
        if !ids.insert(one.key.clone()) {
            let what = format!("makes the case `{}` that is there already", one.key);
            return Err(wrong(&[], &what, "give one of them another name"));
        }
        made.push(one);
    }
    Ok(made)
}

/// The lists below a table.
///
/// # Errors
/// The path of a value that is neither a list nor a table.
fn axes_below<'n>(node: &'n Node, path: &mut Vec<String>, axes: &mut Vec<Axis<'n>>) -> Result<(), Vec<String>> {
    let Value::Table(entries) = &node.value else { return Err(path.clone()) };
    for entry in entries {
        path.push(entry.key.clone());
        match &entry.node.value {
            Value::Array(values) => axes.push(Axis { path: path.clone(), key_span: entry.key_span.clone(), values }),
            _ => axes_below(&entry.node, path, axes)?,
        }
        path.pop();
    }
    Ok(())
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
