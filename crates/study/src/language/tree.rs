//! Places in a study file that values are read from, and the problems that are collected on the way.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::Value as Json;
use tare_model::field::FieldError;
use tare_model::units::UnitError;

use crate::error::{Problem, line_and_column};
use crate::language::shape::Shape;
use crate::language::table::{Fields, Spec};
use crate::node::{At, Node, Value};
use crate::{parser_words, suggest, words};

/// Most errors that are collected.
const MOST_ERRORS: usize = 100;

/// Collects what is wrong while reading goes on.
#[derive(Debug)]
pub(crate) struct Sink {
    errors: RefCell<Vec<(FieldError, At)>>,
    /// The JSON schema of the whole file, in which a field that stands in the wrong table is looked for.
    file: fn() -> Json,
}

impl Sink {
    /// Of a file that is this shape.
    pub(crate) fn of<'a, S: Shape<'a>>() -> Self {
        Self { errors: RefCell::default(), file: S::schema }
    }

    pub(crate) fn add(&self, error: FieldError) {
        self.push(error, At::Value);
    }

    fn add_at_key(&self, error: FieldError) {
        self.push(error, At::Key);
    }

    /// Each takes a walk through the file to be placed, and a file with so many has one cause for most.
    fn push(&self, error: FieldError, at: At) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MOST_ERRORS {
            errors.push((error, at));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    /// The problems, each with its place in the text. What all cases of a sweep share is wrong in each of them, and one problem.
    pub(crate) fn into_problems(self, root: &Node, text: &str) -> Vec<Problem> {
        let place = |(error, at): (FieldError, At)| {
            let span = root.locate(&error.path, at);
            let (line, column) = line_and_column(text, span.start);
            Problem { path: error.path, message: error.message, help: error.help, span, line, column }
        };
        let mut seen = BTreeSet::new();
        let is_new = |problem: &Problem| {
            // The id of a case is in its message.
            let said = problem.message.replace(&problem.path.join("."), "");
            seen.insert((problem.span.start, problem.path.len(), problem.path.last().cloned(), said))
        };
        self.errors.into_inner().into_iter().map(place).filter(is_new).collect()
    }
}

/// What a platform or a workload says of a field, with its name.
fn said(error: &FieldError) -> String {
    let name = error.path.join(".");
    parser_words::plain(&error.message)
        .map_or_else(|| format!("`{name}`: {}", error.message), |plain| format!("`{name}` {plain}"))
}

/// A place in the file. Every reader reports what it cannot take and returns `None`.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    sink: &'a Sink,
    path: Vec<String>,
    /// `None`: nothing is there.
    node: Option<&'a Node>,
    spec: Option<&'static Spec>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn root(sink: &'a Sink, node: &'a Node) -> Self {
        Self { sink, path: Vec::new(), node: Some(node), spec: None }
    }

    /// Whether something is there.
    pub(crate) const fn is_there(&self) -> bool {
        self.node.is_some()
    }

    const fn value(&self) -> Option<&'a Value> {
        match self.node {
            Some(node) => Some(&node.value),
            None => None,
        }
    }

    fn kind(&self) -> String {
        self.node.map_or_else(|| "nothing".to_owned(), Node::kind)
    }

    /// The last key of the path: an id, where the file names things by their key.
    pub(crate) fn key(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    fn name(&self) -> String {
        format!("`{}`", self.path.join("."))
    }

    /// Adds the error that a platform or a workload has about something below `keys` of this value; `schema` is
    /// what it says about itself there.
    pub(crate) fn foreign(&self, keys: &[&str], error: FieldError, schema: Option<&Json>) {
        let fields = schema.and_then(|schema| schema["properties"].as_object());
        // Of a field that does not exist the name is wrong, not the value.
        if let ([key], Some(fields)) = (error.path.as_slice(), fields)
            && !fields.contains_key(key)
        {
            let meant = || suggest::help(key, "fields here", fields.keys().map(String::as_str));
            let help = error.help.clone().unwrap_or_else(meant);
            let mut error = error.within(keys).within(&self.keys()).help(help);
            error.message = said(&error);
            self.sink.add_at_key(error);
            return;
        }
        let whole: Vec<String> = keys.iter().map(|&key| key.to_owned()).chain(error.path.clone()).collect();
        let written =
            self.node.and_then(|node| node.find(&whole)).filter(|node| error.help.is_none() && !node.is_table());
        let choice = schema.zip(written).and_then(|(schema, node)| {
            words::refused(schema, &error.path, &node.written()).map(|choice| (choice, node.kind()))
        });
        let mut error = error.within(keys).within(&self.keys());
        let name = error.path.join(".");
        if let Some(item) = written
            .filter(|_| parser_words::wants_list(&error.message))
            .and_then(|node| node.written().as_str().map(str::to_owned))
        {
            error.help = Some(format!("write `{} = [{item:?}]`", error.path.last().map_or("", String::as_str)));
        }
        error.message = said(&error);
        if let Some((choice, kind)) = choice {
            error.message = format!("`{name}` must be {}, but here it is {kind}", choice.listed);
            error.help = Some(choice.help);
        }
        self.sink.add(error);
    }

    fn error(&self, message: String, help: Option<String>) -> FieldError {
        FieldError { path: self.path.clone(), message, help }
    }

    /// Reports that the value is wrong. `what` completes "`lab.mtu` ...".
    pub(crate) fn wrong(&self, what: &str, help: impl Into<String>) {
        self.sink.add(self.error(format!("{} {what}", self.name()), Some(help.into())));
    }

    /// Reports that the key itself is wrong. `what` completes "`arms.X` ...".
    pub(crate) fn wrong_key(&self, what: &str, help: impl Into<String>) {
        self.sink.add_at_key(self.error(format!("{} {what}", self.name()), Some(help.into())));
    }

    /// Reports that a field is not there.
    pub(crate) fn missing(&self) {
        let (key, owner) = self.path.split_last().map_or(("", &[][..]), |(key, owner)| (key.as_str(), owner));
        let owner = if owner.is_empty() { "the study".to_owned() } else { format!("`{}`", owner.join(".")) };
        let add = |spec: &Spec| format!("add `{} = {}`: {}", spec.key, spec.example, spec.doc);
        self.sink.add(self.error(format!("{owner} has no `{key}`"), self.spec.map(add)));
    }

    fn example(&self) -> Option<String> {
        self.spec.map(|spec| format!("for example `{} = {}`", spec.key, spec.example))
    }

    /// The help where a value is of the right type and yet wrong.
    pub(crate) fn example_and_meaning(&self) -> String {
        self.spec
            .map_or_else(String::new, |spec| format!("for example `{} = {}`: {}", spec.key, spec.example, spec.doc))
    }

    fn wrong_type(&self, expected: &str) {
        let message = format!("{} must be {expected}, but here it is {}", self.name(), self.kind());
        self.sink.add(self.error(message, self.example()));
    }

    /// A text that is not blank, and of which every character can be shown.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match self.value() {
            Some(Value::String(text)) if text.trim().is_empty() => {
                self.wrong("is empty", self.spec.map_or("write a text", |spec| spec.doc));
                None
            }
            Some(Value::String(text)) => match text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
                None => Some(text),
                Some(unseen) => {
                    self.wrong(
                        &format!("has the control character {unseen:?} in it"),
                        "write a text that can be shown",
                    );
                    None
                }
            },
            _ => {
                self.wrong_type("a text in quotes");
                None
            }
        }
    }

    /// A whole number within bounds.
    pub(crate) fn integer<T>(&self, bounds: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        let written = if let Some(Value::Integer(Some(integer))) = self.value() { Some(*integer) } else { None };
        let within = written.and_then(|integer| T::try_from(integer).ok()).filter(|number| bounds.contains(number));
        if within.is_none() {
            let (least, most) = (bounds.start(), bounds.end());
            let kind = self.kind();
            let message =
                format!("{} must be a whole number from {least} to {most}, but here it is {kind}", self.name());
            let help = if written.is_some() { Some(self.example_and_meaning()) } else { self.example() };
            self.sink.add(self.error(message, help.filter(|help| !help.is_empty())));
        }
        within
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        if let Some(Value::Boolean(boolean)) = self.value() {
            return Some(*boolean);
        }
        self.wrong_type("`true` or `false`");
        None
    }

    /// Any number that is finite.
    pub(crate) fn number(&self) -> Option<f64> {
        let number = match self.value() {
            Some(Value::Integer(Some(integer))) => Some(*integer as f64),
            Some(Value::Float(float)) if float.is_finite() => Some(*float),
            _ => None,
        };
        if number.is_none() {
            self.wrong_type("a number");
        }
        number
    }

    /// A quantity with its unit.
    pub(crate) fn quantity<T: FromStr<Err = UnitError>>(&self) -> Option<T> {
        let written = match self.value() {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Integer(Some(integer))) => integer.to_string(),
            Some(Value::Float(float)) => float.to_string(),
            // A text of nothing is no quantity, and the error names the one that is wanted.
            _ => String::new(),
        };
        match written.parse() {
            Ok(quantity) => Some(quantity),
            Err(UnitError { expected, .. }) => {
                let (what, how) = expected.split_once(": ").unwrap_or((expected, "write a number and its unit"));
                let message = format!("{} must be {what}, but here it is {}", self.name(), self.kind());
                let help = suggest::with_unit::<T>(&written).unwrap_or_else(|| how.to_owned());
                self.sink.add(self.error(message, Some(help)));
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Clone>(&self, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let Some(Value::String(written)) = self.value() else {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            self.wrong_type(&quoted.join(" or "));
            return None;
        };
        let found = choices.iter().find(|(word, _)| word == written).map(|(_, choice)| choice.clone());
        if found.is_none() {
            self.wrong(&format!("cannot be {written:?}"), suggest::help(written, "choices", words));
        }
        found
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        let Some(Value::Array(items)) = self.value() else {
            self.wrong_type("a list");
            return None;
        };
        Some(items.iter().enumerate().map(|(i, node)| self.below(&i.to_string(), Some(node), self.spec)).collect())
    }

    /// Whether the value is a table.
    pub(crate) const fn is_table(&self) -> bool {
        matches!(self.value(), Some(Value::Table(_)))
    }

    /// What a table that may be absent names.
    pub(crate) fn named_or_empty(&self) -> Vec<Self> {
        if self.is_there() { self.named().unwrap_or_default() } else { Vec::new() }
    }

    /// The same place, with the example and meaning of a field that holds such values.
    pub(crate) const fn like(mut self, field: &Self) -> Self {
        self.spec = field.spec;
        self
    }

    /// Whether the value is 1 or `false`.
    pub(crate) const fn is_one_or_off(&self) -> bool {
        matches!(self.value(), Some(Value::Integer(Some(1)) | Value::Boolean(false)))
    }

    /// A table whose keys are ids or names of the user's own.
    pub(crate) fn named(&self) -> Option<Vec<Self>> {
        let Some(Value::Table(entries)) = self.value() else {
            self.wrong_type("a table");
            return None;
        };
        Some(entries.iter().map(|entry| self.below(&entry.key, Some(&entry.node), None)).collect())
    }

    /// A table of known fields; others are reported.
    pub(crate) fn table(&self, specs: &'static [Spec]) -> Option<Fields<'a, '_>> {
        let Some(Value::Table(entries)) = self.value() else {
            self.wrong_type("a table");
            return None;
        };
        let keys = || specs.iter().map(|spec| spec.key);
        let unknown: Vec<_> = entries.iter().filter(|entry| keys().all(|key| key != entry.key)).collect();
        for entry in unknown.iter().take(MOST_ERRORS) {
            let below = self.below(&entry.key, Some(&entry.node), None);
            below.wrong_key("is not a field of a study", unknown_field_help(&entry.key, specs, self.sink.file));
        }
        let misspelt = unknown.iter().filter_map(|entry| suggest::nearest(&entry.key, keys())).collect();
        Some(Fields { at: self, entries, specs: specs.iter(), misspelt })
    }

    /// The value as JSON, for those who check their own options.
    pub(crate) fn json(&self) -> Option<Json> {
        match self.value()? {
            Value::String(text) => Some(Json::from(text.as_str())),
            Value::Integer(Some(integer)) => Some(Json::from(*integer)),
            Value::Float(float) if float.is_finite() => Some(Json::from(*float)),
            Value::Boolean(boolean) => Some(Json::from(*boolean)),
            Value::Array(_) => {
                let items: Vec<Option<Json>> = self.items()?.iter().map(Self::json).collect();
                items.into_iter().collect::<Option<Vec<Json>>>().map(Json::from)
            }
            Value::Table(_) => {
                let pairs: Vec<_> = self.named()?.iter().map(|item| (item.key().to_owned(), item.json())).collect();
                pairs
                    .into_iter()
                    .map(|(key, value)| value.map(|value| (key, value)))
                    .collect::<Option<_>>()
                    .map(Json::Object)
            }
            Value::Integer(None) | Value::Float(_) | Value::Datetime => {
                self.wrong_type("a text, a finite number, `true`, `false`, a list or a table");
                None
            }
        }
    }

    /// What is at a key of this table, if it is one.
    pub(crate) fn get(&self, key: &str) -> Self {
        self.below(key, self.node.and_then(|node| node.below(key)), None)
    }

    pub(crate) fn below(&self, key: &str, node: Option<&'a Node>, spec: Option<&'static Spec>) -> Self {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        Self { sink: self.sink, path, node, spec }
    }
}

fn unknown_field_help(key: &str, specs: &'static [Spec], file: fn() -> Json) -> String {
    let keys = || specs.iter().map(|spec| spec.key);
    if let Some(meant) = suggest::nearest(key, keys()) {
        return format!("did you mean `{meant}`?");
    }
    match place(key, &file()) {
        Some(place) if place.is_empty() => format!("`{key}` stands at the top of the file, before the first `[...]`"),
        Some(place) => format!("`{key}` stands in `[{}]`", place.join(".")),
        None => suggest::help(key, "fields here", keys()),
    }
}

/// The table that has a field of this name, the first from the top of the file.
fn place(key: &str, file: &Json) -> Option<Vec<String>> {
    let mut tables = vec![(Vec::new(), file)];
    while !tables.is_empty() {
        let has = |(_, table): &&(_, &Json)| table["properties"].get(key).is_some();
        if let Some((place, _)) = tables.iter().find(has) {
            return Some(place.clone());
        }
        tables = tables.iter().flat_map(|(place, table)| below(place, table)).collect();
    }
    None
}

/// The tables in a table, each with its place.
fn below<'s>(place: &[String], table: &'s Json) -> Vec<(Vec<String>, &'s Json)> {
    let fields = table["properties"].as_object().into_iter().flatten();
    let within = |key: &str| [place, &[key.to_owned()]].concat();
    let mut found: Vec<_> = fields.map(|(key, field)| (within(key), field)).collect();
    found.extend(table.get("additionalProperties").map(|field| (within("ID"), field)));
    let others = table["anyOf"].as_array().into_iter().flatten();
    found.extend(others.map(|field| (place.to_vec(), field)));
    found
}
