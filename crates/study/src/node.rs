//! A study file as a tree of values, each with its bytes in the file.

use std::ops::Range;

use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

use crate::error::Problem;
use crate::syntax;

/// Takes a text or number, with the keys that lead to it and its bytes in the file.
pub(crate) type EachScalar<'a> = dyn FnMut(&[String], Json, Range<usize>) + 'a;

/// A value and its bytes in the file.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

/// What stands in the file.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    String(String),
    /// `None`: does not fit 64 bits.
    Integer(Option<i64>),
    Float(f64),
    Boolean(bool),
    Datetime,
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its bytes, and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) node: Node,
}

impl Node {
    /// The tree of a text, or all its errors of syntax.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let table = DeTable::parse(text).map_err(|_| syntax::problems(text))?;
        let span = table.span();
        Ok(Self { span, value: Value::Table(entries(table.into_inner())) })
    }

    fn from_toml(value: DeValue<'_>, span: Range<usize>) -> Self {
        let value = match value {
            DeValue::String(text) => Value::String(text.into_owned()),
            DeValue::Integer(integer) => Value::Integer(i64::from_str_radix(integer.as_str(), integer.radix()).ok()),
            DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(boolean) => Value::Boolean(boolean),
            DeValue::Datetime(_) => Value::Datetime,
            DeValue::Array(array) => Value::Array(
                array
                    .into_iter()
                    .map(|item| (item.span(), item))
                    .map(|(at, v)| Self::from_toml(v.into_inner(), at))
                    .collect(),
            ),
            DeValue::Table(table) => Value::Table(entries(table)),
        };
        Self { span, value }
    }

    /// The bytes to underline for a path: the value, or the key where the value is a table or the rest of
    /// the path is not in the file.
    pub(crate) fn locate(&self, path: &[String], at: At) -> Range<usize> {
        let mut span = match &self.value {
            Value::Table(entries) => entries.first().map_or(0..0, |entry| entry.key_span.clone()),
            _ => self.span.clone(),
        };
        let mut node = self;
        for (depth, key) in path.iter().enumerate() {
            let last = depth + 1 == path.len();
            match &node.value {
                Value::Table(entries) => {
                    let Some(entry) = entries.iter().find(|entry| entry.key == *key) else { return span };
                    let is_table = matches!(entry.node.value, Value::Table(_));
                    let key_tells = is_table || (last && at == At::Key);
                    span = if key_tells { entry.key_span.clone() } else { entry.node.span.clone() };
                    node = &entry.node;
                }
                Value::Array(items) => {
                    let Some(item) = key.parse().ok().and_then(|position: usize| items.get(position)) else {
                        return span;
                    };
                    span = item.span.clone();
                    node = item;
                }
                _ => return span,
            }
        }
        span
    }

    /// Every text and number below, with the keys that lead to it and its bytes in the file.
    pub(crate) fn scalars(&self, path: &mut Vec<String>, each: &mut EachScalar<'_>) {
        match &self.value {
            Value::String(text) => each(path, Json::from(text.as_str()), self.span.clone()),
            Value::Integer(Some(integer)) => each(path, Json::from(*integer), self.span.clone()),
            Value::Array(items) => items.iter().for_each(|item| item.scalars(path, each)),
            Value::Table(entries) => {
                for entry in entries {
                    path.push(entry.key.clone());
                    entry.node.scalars(path, each);
                    path.pop();
                }
            }
            Value::Integer(None) | Value::Float(_) | Value::Boolean(_) | Value::Datetime => {}
        }
    }

    /// The value at the end of a path of keys; `None` where the file has none.
    pub(crate) fn find(&self, path: &[String]) -> Option<&Self> {
        let Some((key, rest)) = path.split_first() else { return Some(self) };
        let below = match &self.value {
            Value::Array(items) => key.parse().ok().and_then(|position: usize| items.get(position)),
            _ => self.below(key),
        };
        below?.find(rest)
    }

    /// The value of a key of this table.
    pub(crate) fn below(&self, key: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The value of a key of this table, to be changed.
    pub(crate) fn below_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Value::Table(entries) = &mut self.value else { return None };
        entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }

    /// Takes a key out of this table.
    pub(crate) fn remove(&mut self, key: &str) {
        if let Value::Table(entries) = &mut self.value {
            entries.retain(|entry| entry.key != key);
        }
    }

    /// Puts a value at the end of a path of keys, with the tables that are missing on the way. False where the way leads through
    /// what is no table.
    pub(crate) fn put(&mut self, path: &[String], key_span: &Range<usize>, value: Self) -> bool {
        let Some((key, rest)) = path.split_first() else {
            *self = value;
            return true;
        };
        let Value::Table(entries) = &mut self.value else { return false };
        let place = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
            let node = Self { span: key_span.clone(), value: Value::Table(Vec::new()) };
            entries.push(Entry { key: key.clone(), key_span: key_span.clone(), node });
            entries.len() - 1
        });
        entries[place].node.put(rest, key_span, value)
    }

    /// A text, number or truth value as a word; of anything else nothing.
    pub(crate) fn word(&self) -> Option<String> {
        match &self.value {
            Value::String(text) => Some(text.clone()),
            Value::Integer(Some(integer)) => Some(integer.to_string()),
            Value::Float(float) => Some(float.to_string()),
            Value::Boolean(boolean) => Some(boolean.to_string()),
            Value::Integer(None) | Value::Datetime | Value::Array(_) | Value::Table(_) => None,
        }
    }

    pub(crate) const fn is_table(&self) -> bool {
        matches!(self.value, Value::Table(_))
    }

    /// A text or a truth value as JSON; of anything else nothing.
    pub(crate) fn written(&self) -> Json {
        match &self.value {
            Value::String(text) => Json::from(text.as_str()),
            Value::Boolean(boolean) => Json::from(*boolean),
            _ => Json::Null,
        }
    }

    pub(crate) fn kind(&self) -> String {
        match &self.value {
            Value::String(text) => format!("the text {text:?}"),
            Value::Integer(Some(integer)) => format!("the number {integer}"),
            Value::Integer(None) => "a number beyond 64 bits".to_owned(),
            Value::Float(float) => format!("the number {float}"),
            Value::Boolean(boolean) => format!("`{boolean}`"),
            Value::Datetime => "a date or time".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

fn entries(table: DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| {
            let (key_span, span) = (key.span(), value.span());
            Entry { key: key.into_inner().into_owned(), key_span, node: Node::from_toml(value.into_inner(), span) }
        })
        .collect();
    // The map sorts by key; people wrote an order.
    entries.sort_by_key(|entry| entry.key_span.start);
    entries
}

/// Which of a field's two parts is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Key,
    Value,
}
