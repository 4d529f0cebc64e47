//! The walk over a study file's tree, which collects problems instead of stopping at the first.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::Value as Json;
use tare_model::field::FieldError;
use tare_model::units::UnitError;

use crate::error::{Problem, line_and_column};
use crate::fields::{self, Field, TABLES};
use crate::node::{At, Entry, Node, Value};
use crate::{suggest, words};

/// Most errors that are collected.
const MOST_ERRORS: usize = 100;

/// Collects what is wrong while the walk goes on.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    errors: RefCell<Vec<(FieldError, At)>>,
}

impl Sink {
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
            seen.insert((problem.span.start, problem.path.len(), said))
        };
        self.errors.into_inner().into_iter().map(place).filter(is_new).collect()
    }
}

/// A value of the file during the walk. Every reader reports what it cannot take and returns `None`.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    sink: &'a Sink,
    path: Vec<String>,
    node: &'a Node,
    field: Option<&'static Field>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn root(sink: &'a Sink, node: &'a Node) -> Self {
        Self { sink, path: Vec::new(), node, field: None }
    }

    pub(crate) const fn sink(&self) -> &'a Sink {
        self.sink
    }

    pub(crate) fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// The last key of the path: an id, where the file names things by their key.
    pub(crate) fn key(&self) -> &str {
        self.path.last().map_or("", String::as_str)
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
            let help =
                error.help.unwrap_or_else(|| suggest::help(key, "fields here", fields.keys().map(String::as_str)));
            let mut path = self.path();
            path.extend(keys);
            path.push(key);
            let message = format!("`{}`: {}", path.join("."), error.message);
            self.sink.add_at_key(FieldError::new(&path, message).help(help));
            return;
        }
        let mut path = self.path();
        path.extend(keys);
        let whole: Vec<String> = keys.iter().map(|&key| key.to_owned()).chain(error.path.clone()).collect();
        let written = self.node.find(&whole).filter(|node| error.help.is_none() && !node.is_table());
        let choice = schema.zip(written).and_then(|(schema, node)| {
            words::refused(schema, &error.path, &node.written()).map(|choice| (choice, node.kind()))
        });
        let mut error = error.within(&path);
        let name = error.path.join(".");
        error.message = format!("`{name}`: {}", error.message);
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

    fn wrong_type(&self, expected: &str) {
        let help = self.field.map(|field| format!("for example `{} = {}`", field.key, field.example));
        let message = format!("{} must be {expected}, but here it is {}", self.name(), self.node.kind());
        self.sink.add(self.error(message, help));
    }

    /// A text that is not blank, and of which every character can be shown.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::String(text) if text.trim().is_empty() => {
                self.wrong("is empty", self.field.map_or("write a text", |field| field.doc));
                None
            }
            Value::String(text) => match text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
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
    pub(crate) fn integer(&self, bounds: RangeInclusive<u64>) -> Option<u64> {
        let within = match &self.node.value {
            Value::Integer(Some(integer)) => u64::try_from(*integer).ok().filter(|n| bounds.contains(n)),
            _ => None,
        };
        if within.is_none() {
            self.wrong_type(&format!("a whole number from {} to {}", bounds.start(), bounds.end()));
        }
        within
    }

    /// A whole number within bounds that fit 32 bits.
    pub(crate) fn integer32(&self, bounds: RangeInclusive<u32>) -> Option<u32> {
        self.integer(u64::from(*bounds.start())..=u64::from(*bounds.end())).and_then(|n| u32::try_from(n).ok())
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        if let Value::Boolean(boolean) = self.node.value {
            return Some(boolean);
        }
        self.wrong_type("`true` or `false`");
        None
    }

    /// Any number that is finite.
    pub(crate) fn number(&self) -> Option<f64> {
        let number = match self.node.value {
            Value::Integer(Some(integer)) => Some(integer as f64),
            Value::Float(float) if float.is_finite() => Some(float),
            _ => None,
        };
        if number.is_none() {
            self.wrong_type("a number");
        }
        number
    }

    /// A quantity with its unit.
    pub(crate) fn quantity<T: FromStr<Err = UnitError>>(&self) -> Option<T> {
        let written = match &self.node.value {
            Value::String(text) => text.clone(),
            Value::Integer(Some(integer)) => integer.to_string(),
            Value::Float(float) => float.to_string(),
            // A text of nothing is no quantity, and the error names the one that is wanted.
            _ => String::new(),
        };
        match written.parse() {
            Ok(quantity) => Some(quantity),
            Err(UnitError { expected, .. }) => {
                let (what, how) = expected.split_once(": ").unwrap_or((expected, "write a number and its unit"));
                let message = format!("{} must be {what}, but here it is {}", self.name(), self.node.kind());
                let help = suggest::with_unit::<T>(&written).unwrap_or_else(|| how.to_owned());
                self.sink.add(self.error(message, Some(help)));
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|&(word, _)| word).collect();
        let Value::String(written) = &self.node.value else {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            self.wrong_type(&quoted.join(" or "));
            return None;
        };
        let found = choices.iter().find(|&&(word, _)| word == written).map(|&(_, choice)| choice);
        if found.is_none() {
            self.wrong(&format!("cannot be {written:?}"), suggest::help(written, "choices", words));
        }
        found
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        let Value::Array(items) = &self.node.value else {
            self.wrong_type("a list");
            return None;
        };
        Some(items.iter().enumerate().map(|(i, node)| self.below(&i.to_string(), node, self.field)).collect())
    }

    /// Whether the value is a table.
    pub(crate) const fn is_table(&self) -> bool {
        matches!(self.node.value, Value::Table(_))
    }

    /// A table whose keys are ids or names of the user's own.
    pub(crate) fn named(&self) -> Option<Vec<Self>> {
        let Value::Table(entries) = &self.node.value else {
            self.wrong_type("a table");
            return None;
        };
        Some(entries.iter().map(|entry| self.below(&entry.key, &entry.node, None)).collect())
    }

    /// A table of known fields; others are reported.
    pub(crate) fn table(&self, fields: &'static [Field]) -> Option<Table<'a>> {
        let Value::Table(entries) = &self.node.value else {
            self.wrong_type("a table");
            return None;
        };
        let unknown = entries.iter().filter(|entry| fields::find(fields, &entry.key).is_none());
        for entry in unknown.take(MOST_ERRORS) {
            let below = self.below(&entry.key, &entry.node, None);
            below.wrong_key("is not a field of a study", unknown_field_help(&entry.key, fields));
        }
        Some(Table { cursor: self.clone(), entries, fields })
    }

    /// The value as JSON, for those who check their own options.
    pub(crate) fn json(&self) -> Option<Json> {
        match &self.node.value {
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

    fn below(&self, key: &str, node: &'a Node, field: Option<&'static Field>) -> Self {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        Self { sink: self.sink, path, node, field }
    }
}

fn unknown_field_help(key: &str, fields: &'static [Field]) -> String {
    if let Some(meant) = suggest::nearest(key, fields.iter().map(|field| field.key)) {
        return format!("did you mean `{meant}`?");
    }
    if let Some((place, _)) = TABLES.iter().find(|(_, others)| fields::find(others, key).is_some()) {
        return format!("`{key}` stands {place}");
    }
    suggest::help(key, "fields here", fields.iter().map(|field| field.key))
}

/// A table of known fields during the walk.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    cursor: Cursor<'a>,
    entries: &'a [Entry],
    fields: &'static [Field],
}

impl<'a> Table<'a> {
    /// The table itself.
    pub(crate) const fn cursor(&self) -> &Cursor<'a> {
        &self.cursor
    }

    /// The field, if it is there.
    pub(crate) fn get(&self, key: &str) -> Option<Cursor<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(self.cursor.below(key, &entry.node, fields::find(self.fields, key)))
    }

    /// The field; its absence is reported, unless a slip of its name already is.
    pub(crate) fn require(&self, key: &str) -> Option<Cursor<'a>> {
        let found = self.get(key);
        if found.is_none() && !self.misspelt(key) {
            let path = self.cursor.path.join(".");
            let owner = if path.is_empty() { "the study".to_owned() } else { format!("`{path}`") };
            let help = fields::find(self.fields, key)
                .map(|field| format!("add `{} = {}`: {}", field.key, field.example, field.doc));
            let mut missing = self.cursor.path.clone();
            missing.push(key.to_owned());
            self.cursor.sink.add(FieldError { path: missing, message: format!("{owner} has no `{key}`"), help });
        }
        found
    }

    /// Whether a key that is no field was probably meant to be this one.
    fn misspelt(&self, key: &str) -> bool {
        let unknown = self.entries.iter().filter(|entry| fields::find(self.fields, &entry.key).is_none());
        let keys = || self.fields.iter().map(|field| field.key);
        unknown.map(|entry| suggest::nearest(&entry.key, keys())).any(|meant| meant == Some(key))
    }
}
