//! What a platform or a workload takes, for people: its JSON schema in words.

use std::fmt::Write;

use serde_json::Value as Json;

use crate::commands::wrapped;

/// Tables within tables that are gone into; none of today's has as many.
const DEEPEST: usize = 6;

/// Every field with its default and what it is: the fields of tables, lists of tables and choices that are tables below them, each by its
/// whole name. Lines are at most `width` wide.
pub fn words(schema: &Json, width: usize) -> String {
    let mut listing = Listing { root: schema, width, text: String::new() };
    listing.fields(schema, "", 0, true);
    if listing.text.is_empty() {
        listing.text.push_str("it takes nothing\n");
    }
    listing.text
}

struct Listing<'s> {
    root: &'s Json,
    width: usize,
    text: String,
}

impl<'s> Listing<'s> {
    /// What a reference leads to; anything else is itself.
    fn resolved(&self, node: &'s Json) -> &'s Json {
        let name = node["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
        name.map_or(node, |name| &self.root["$defs"][name])
    }

    /// The shapes that a value may have, without that of nothing.
    fn shapes(&self, node: &'s Json) -> Vec<&'s Json> {
        let node = self.resolved(node);
        let several = ["anyOf", "oneOf"].into_iter().find_map(|word| node[word].as_array());
        let Some(several) = several else { return vec![node] };
        several.iter().filter(|shape| shape["type"] != "null").flat_map(|shape| self.shapes(shape)).collect()
    }

    /// The fields of a table. Where the table is one of several shapes (`sole` is not), none of its fields is needed.
    fn fields(&mut self, table: &'s Json, within: &str, depth: usize, sole: bool) {
        let Some(fields) = table["properties"].as_object() else { return };
        for (key, field) in fields {
            let name = if within.is_empty() { key.clone() } else { format!("{within}.{key}") };
            let shapes = self.shapes(field);
            let required = sole && table["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key));
            self.field(&name, field, &shapes, required);
            let sole = shapes.len() == 1;
            for shape in shapes.into_iter().filter(|_| depth < DEEPEST) {
                self.below(shape, &name, depth, sole);
            }
        }
    }

    /// The fields of a table, of the tables of a list, and of those that the user names.
    fn below(&mut self, shape: &'s Json, name: &str, depth: usize, sole: bool) {
        self.fields(shape, name, depth + 1, sole);
        for (word, mark) in [("items", "[]"), ("additionalProperties", ".NAME")] {
            let inner = self.shapes(&shape[word]);
            let sole = inner.len() == 1;
            for inner in inner {
                self.fields(inner, &format!("{name}{mark}"), depth + 1, sole);
            }
        }
    }

    fn field(&mut self, name: &str, field: &Json, shapes: &[&'s Json], required: bool) {
        // Writing to a string cannot fail.
        let _ = match &field["default"] {
            _ if required => writeln!(self.text, "{name}  (required)"),
            Json::Null => writeln!(self.text, "{name}"),
            // The fields of a table are listed with their own defaults.
            Json::Object(fields) if !fields.is_empty() => writeln!(self.text, "{name}"),
            default => writeln!(self.text, "{name} = {}", toml(default)),
        };
        let what = field["description"].as_str().or_else(|| self.resolved_description(field)).unwrap_or_default();
        let kinds: Vec<String> = shapes.iter().filter_map(|shape| kind(shape)).collect();
        let mut paragraph = what.to_owned();
        if !kinds.is_empty() {
            let _ = write!(paragraph, " [{}]", kinds.join(" or "));
        }
        if !paragraph.trim().is_empty() {
            self.text.push_str(&wrapped(paragraph.trim(), self.width, "    ", "    "));
        }
        let choices = shapes.iter().filter_map(|shape| Some((shape["const"].as_str()?, shape["description"].as_str())));
        for (choice, what) in choices {
            let line = what.map_or_else(|| format!("{choice:?}"), |what| format!("{choice:?}: {what}"));
            self.text.push_str(&wrapped(&line, self.width, "      ", "        "));
        }
    }

    fn resolved_description(&self, field: &Json) -> Option<&'s str> {
        let name = field["$ref"].as_str()?.strip_prefix("#/$defs/")?;
        self.root["$defs"][name]["description"].as_str()
    }
}

/// What a value is, in words; `None` where its choices or its fields tell.
fn kind(shape: &Json) -> Option<String> {
    if shape.get("const").is_some() || shape["properties"].is_object() {
        return None;
    }
    if let Some(choices) = shape["enum"].as_array() {
        return Some(choices.iter().map(toml).collect::<Vec<_>>().join(", "));
    }
    let kinds = match &shape["type"] {
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null")?,
        other => other.as_str()?,
    };
    let bound = |word: &str| shape[word].as_f64();
    let range = match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        // That what is counted is not negative goes without saying.
        (Some(least), None) if least > 0.0 => format!(" from {least}"),
        (None, Some(most)) => format!(" up to {most}"),
        _ => String::new(),
    };
    Some(match kinds {
        "string" => match shape["description"].as_str().filter(|what| what.contains("in quotes")) {
            Some(quantity) => quantity.to_owned(),
            None => "a text".to_owned(),
        },
        "integer" => format!("a whole number{range}"),
        "number" => format!("a number{range}"),
        "boolean" => "true or false".to_owned(),
        "array" => "a list".to_owned(),
        _ => "a table".to_owned(),
    })
}

/// A value as TOML writes it.
fn toml(value: &Json) -> String {
    match value {
        Json::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Json::Object(fields) => {
            let pairs: Vec<String> =
                fields.iter().filter(|(_, v)| !v.is_null()).map(|(key, v)| format!("{key} = {}", toml(v))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_listed_with_their_defaults_choices_and_tables() {
        let schema = json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": { "type": "string", "description": "Where it is." },
                "size": { "$ref": "#/$defs/Size", "description": "How large.", "default": "1GiB" },
                "way": { "anyOf": [{ "$ref": "#/$defs/Way" }, { "type": "null" }], "description": "How it goes." },
                "disk": { "$ref": "#/$defs/Disk", "default": { "queues": 1 } },
                "root": { "oneOf": [
                    { "const": "host" },
                    { "type": "object", "required": ["file"], "properties": { "file": { "type": "string" } } },
                ] },
                "members": { "type": "array", "items": { "$ref": "#/$defs/Disk" }, "description": "All of them." },
            },
            "$defs": {
                "Size": { "type": "string", "description": "a size with its unit in quotes" },
                "Way": { "oneOf": [{ "const": "slow", "description": "Slowly." }, { "const": "fast" }] },
                "Disk": {
                    "type": "object", "description": "The disk.",
                    "properties": { "queues": { "type": ["integer", "null"], "minimum": 1, "description": "Of it.", "default": 1 } },
                },
            },
        });
        let expected = "\
disk
    The disk.
disk.queues = 1
    Of it. [a whole number from 1]
members
    All of them. [a list]
members[].queues = 1
    Of it. [a whole number from 1]
path  (required)
    Where it is. [a text]
root
      \"host\"
root.file
    [a text]
size = \"1GiB\"
    How large. [a size with its unit in quotes]
way
    How it goes.
      \"slow\": Slowly.
      \"fast\"
";
        let text = words(&schema, 80);
        // The order of keys depends on a feature of serde_json's that any crate of a build can switch on.
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&text), sorted(expected), "{text}");
        assert_eq!(words(&json!({ "type": "object" }), 80), "it takes nothing\n");
    }
}
