//! A table of a study file, written once: the struct that holds it, how it is read, what its errors say and its JSON schema.
//! Why by a macro: `docs/adr/0023-study-language.md`.

use std::ops::Deref;
use std::slice::Iter;

use serde_json::{Map, Value as Json, json};

use crate::language::shape::Shape;
use crate::language::tree::Cursor;
use crate::node::Entry;

/// What is known of a field besides its shape.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// The key.
    pub(crate) key: &'static str,
    /// What it means, in one or two sentences.
    pub(crate) doc: &'static str,
    /// A value that would be right, as TOML.
    pub(crate) example: &'static str,
    /// Whether it has to be there.
    pub(crate) required: bool,
}

impl Spec {
    pub(crate) const fn required(key: &'static [u8], doc: &'static str, example: &'static str) -> Self {
        Self { key: text(key), doc: doc.trim_ascii_start(), example, required: true }
    }

    pub(crate) const fn optional(key: &'static [u8], doc: &'static str, example: &'static str) -> Self {
        Self { required: false, ..Self::required(key, doc, example) }
    }
}

const fn text(key: &'static [u8]) -> &'static str {
    match std::str::from_utf8(key) {
        Ok(key) => key,
        Err(_) => "",
    }
}

/// The key of a field of this name: `warm_up` is written `warm-up`.
pub(crate) const fn key_of<const N: usize>(name: &str) -> [u8; N] {
    let mut key = [b'-'; N];
    let mut at = 0;
    while at < N {
        if name.as_bytes()[at] != b'_' {
            key[at] = name.as_bytes()[at];
        }
        at += 1;
    }
    key
}

/// A field of a table that was read: where it is, and its value where it is there and right.
pub(crate) struct Field<'a, T> {
    at: Cursor<'a>,
    misspelt: bool,
    pub(crate) value: Option<T>,
}

impl<'a, T> Field<'a, T> {
    pub(crate) const fn new(at: Cursor<'a>, misspelt: bool, value: Option<T>) -> Self {
        Self { at, misspelt, value }
    }

    /// Whether it was meant to be there: it is, right or wrong, or a slip of its name is.
    pub(crate) const fn is_meant(&self) -> bool {
        self.misspelt || self.at.is_there()
    }

    /// The value; its absence is reported, unless a slip of its name already is.
    pub(crate) fn require(&self) -> Option<&T> {
        if !self.is_meant() {
            self.at.missing();
        }
        self.value.as_ref()
    }
}

impl<T: Clone> Field<'_, T> {
    /// The value, or this where it is absent or wrong, which is reported.
    pub(crate) fn or(&self, default: T) -> T {
        self.value.clone().unwrap_or(default)
    }

    /// The value, or this where it is absent; none where it is wrong.
    pub(crate) fn unless_absent(&self, default: T) -> Option<T> {
        if self.at.is_there() { self.value.clone() } else { Some(default) }
    }
}

impl Field<'_, u32> {
    /// The value, if it is no more than this, which depends on other fields.
    pub(crate) fn at_most(&self, most: u32) -> Option<u32> {
        self.value.and_then(|_| self.at.integer(1..=most))
    }
}

impl<'a, T> Deref for Field<'a, T> {
    type Target = Cursor<'a>;

    fn deref(&self) -> &Cursor<'a> {
        &self.at
    }
}

/// The fields of a table, taken one after another.
pub(crate) struct Fields<'a, 'c> {
    pub(crate) at: &'c Cursor<'a>,
    pub(crate) entries: &'a [Entry],
    pub(crate) specs: Iter<'static, Spec>,
    /// The fields that were meant by keys that are none.
    pub(crate) misspelt: Vec<&'static str>,
}

impl<'a> Fields<'a, '_> {
    /// The next field, read as this shape.
    pub(crate) fn take<S: Shape<'a>>(&mut self) -> Field<'a, S::Value> {
        let Some(spec) = self.specs.next() else { return Field::new(self.at.clone(), false, None) };
        let node = self.entries.iter().find(|entry| entry.key == spec.key).map(|entry| &entry.node);
        let at = self.at.below(spec.key, node, Some(spec));
        let value = if at.is_there() { S::read(&at) } else { None };
        let field = Field::new(at, self.misspelt.contains(&spec.key), value);
        if spec.required {
            field.require();
        }
        field
    }
}

/// The JSON schema of a table of exactly these fields.
pub(crate) fn schema(fields: &[Spec], shapes: Vec<Json>) -> Json {
    let property = |(field, mut shape): (&Spec, Json)| {
        shape["description"] = json!(field.doc);
        (field.key.to_owned(), shape)
    };
    let properties: Map<String, Json> = fields.iter().zip(shapes).map(property).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.key).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// A table: for each field what it means, whether it is required, its name, its shape and an example.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $name:ident<$life:lifetime> {
            $($(#[doc = $doc:literal])+ $need:ident $field:ident: $shape:ty = $example:literal,)+
        }
    ) => {
        $(#[doc = $about])+
        pub(crate) struct $name<$life> {
            $(pub(crate) $field: $crate::language::table::Field<$life, <$shape as $crate::language::shape::Shape<$life>>::Value>,)+
        }

        impl $name<'_> {
            const FIELDS: &'static [$crate::language::table::Spec] = &[$({
                const KEY: [u8; stringify!($field).len()] = $crate::language::table::key_of(stringify!($field));
                $crate::language::table::Spec::$need(&KEY, concat!($($doc),+), $example)
            }),+];
        }

        impl<$life> $crate::language::shape::Shape<$life> for $name<$life> {
            type Value = Self;

            fn read(at: &$crate::language::tree::Cursor<$life>) -> Option<Self> {
                let mut fields = at.table(Self::FIELDS)?;
                Some(Self { $($field: fields.take::<$shape>(),)+ })
            }

            fn schema() -> serde_json::Value {
                $crate::language::table::schema(Self::FIELDS, vec![$(<$shape as $crate::language::shape::Shape<$life>>::schema()),+])
            }
        }
    };
}
pub(crate) use table;
