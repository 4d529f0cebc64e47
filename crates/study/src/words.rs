//! Fields of platforms and workloads that take one of a few words, as their schema says.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::suggest;

/// The words that a field takes, where it was given something else.
pub(crate) struct Choice {
    /// All of them in a sentence: `"auto"`, `"on"` or `"off"`.
    pub listed: String,
    /// What to write in place of what is written.
    pub help: String,
}

/// The words that the field at `path` takes, where it takes words alone and `written` is none of them.
pub(crate) fn refused(schema: &Json, path: &[String], written: &Json) -> Option<Choice> {
    let words = of(schema, path);
    if words.is_empty() || words.contains(&written.to_string()) {
        return None;
    }
    let plain = || words.iter().map(|word| word.trim_matches('"'));
    let same = match written {
        Json::Bool(true) => "on",
        Json::Bool(false) => "off",
        Json::String(text) if text == "on" || text == "yes" => "true",
        Json::String(text) if text == "off" || text == "no" => "false",
        _ => "",
    };
    let near = || suggest::nearest(written.as_str()?, plain());
    let meant = plain().find(|&word| word == same).or_else(near);
    let quoted = words.iter().find(|word| meant.is_some_and(|meant| word.trim_matches('"') == meant));
    let help = match (quoted, words.first(), path.last()) {
        (Some(word), ..) => format!("did you mean `{word}`?"),
        (None, Some(word), Some(key)) => format!("for example `{key} = {word}`"),
        _ => "write one of these".to_owned(),
    };
    Some(Choice { listed: listed(&words), help })
}

/// What the field at `path` of a value with this schema may be, as it is written in a study; empty where that is not a
/// choice among a few words.
fn of(schema: &Json, path: &[String]) -> Vec<String> {
    let mut at = vec![schema];
    for key in path {
        at = at.into_iter().flat_map(|node| forms(schema, node)).filter_map(|node| below(node, key)).collect();
    }
    let forms = at.into_iter().flat_map(|node| forms(schema, node));
    let mut found: Vec<String> = forms.map(words).collect::<Option<Vec<_>>>().unwrap_or_default().concat();
    let mut seen = HashSet::new();
    found.retain(|word| seen.insert(word.clone()));
    // Tables alone are no choice among words.
    if found.iter().all(|word| word.starts_with('{')) { Vec::new() } else { found }
}

fn listed(words: &[String]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        other => other.concat(),
    }
}

/// The alternatives of a schema, its references followed.
fn forms<'s>(root: &'s Json, node: &'s Json) -> Vec<&'s Json> {
    let target = node["$ref"].as_str().and_then(|target| root.pointer(target.strip_prefix('#')?));
    if let Some(target) = target {
        return forms(root, target);
    }
    let several = node["oneOf"].as_array().or_else(|| node["anyOf"].as_array());
    several.map_or_else(|| vec![node], |several| several.iter().flat_map(|one| forms(root, one)).collect())
}

/// The schema of a field, or of an item of a list.
fn below<'s>(node: &'s Json, key: &str) -> Option<&'s Json> {
    node["properties"].get(key).or_else(|| node.get("items").filter(|_| key.parse::<usize>().is_ok()))
}

/// What one alternative allows; `None` where that is more than words, such as any number.
fn words(form: &Json) -> Option<Vec<String>> {
    if let Some(listed) =
        form.get("const").map(std::slice::from_ref).or_else(|| form["enum"].as_array().map(Vec::as_slice))
    {
        return Some(listed.iter().filter(|word| !word.is_null()).map(Json::to_string).collect());
    }
    let kinds = form["type"].as_array().map_or_else(|| std::slice::from_ref(&form["type"]), Vec::as_slice);
    let of_kind = |kind: &Json| match kind.as_str()? {
        "null" => Some(Vec::new()),
        "boolean" => Some(vec!["true".to_owned(), "false".to_owned()]),
        "object" => {
            let key = form["required"].as_array().and_then(|keys| keys.first()).and_then(Json::as_str);
            Some(key.map(|key| format!("{{ {key} = ... }}")).into_iter().collect())
        }
        _ => None,
    };
    kinds.iter().map(of_kind).collect::<Option<Vec<_>>>().map(|all| all.concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_found_behind_references_lists_and_what_may_be_left_out() {
        let schema = json!({
            "properties": {
                "net": { "anyOf": [{ "$ref": "#/$defs/Net" }, { "type": "null" }] },
                "root": { "oneOf": [{ "const": "host" }, { "type": "object", "required": ["file"] }] },
                "all": { "type": "array", "items": { "enum": ["a", "b"] } },
                "plain": { "type": ["boolean", "null"] },
                "name": { "type": "string" },
                "size": { "anyOf": [{ "const": "auto" }, { "type": "integer" }] },
                "place": { "type": "object", "required": ["directory"] },
            },
            "$defs": {
                "Net": { "properties": { "vhost": { "$ref": "#/$defs/Switch" } } },
                "Switch": { "oneOf": [{ "const": "auto" }, { "const": "on" }, { "const": "off" }] },
            },
        });
        let said = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
            listed(&of(&schema, &path))
        };
        assert_eq!(said(&["net", "vhost"]), r#""auto", "on" or "off""#);
        assert_eq!(said(&["root"]), r#""host" or { file = ... }"#);
        assert_eq!(said(&["all", "1"]), r#""a" or "b""#);
        assert_eq!(said(&["plain"]), "true or false");
        for other in [&["name"][..], &["place"], &["size"], &["none"], &["net", "none"], &[]] {
            assert_eq!(said(other), "", "{other:?}");
        }
    }

    #[test]
    fn the_word_that_says_the_same_is_proposed() {
        let schema = json!({ "properties": {
            "vhost": { "enum": ["auto", "on", "off"] }, "merge": { "type": "boolean" },
            "size": { "anyOf": [{ "const": "auto" }, { "type": "integer" }] },
        }});
        let proposed =
            |key: &str, written: Json| refused(&schema, &[key.to_owned()], &written).map(|choice| choice.help);
        let meant = |word: &str| Some(format!("did you mean `{word}`?"));
        assert_eq!(proposed("vhost", true.into()), meant("\"on\""));
        assert_eq!(proposed("vhost", false.into()), meant("\"off\""));
        assert_eq!(proposed("vhost", "atuo".into()), meant("\"auto\""));
        assert_eq!(proposed("vhost", Json::Null), Some("for example `vhost = \"auto\"`".into()));
        assert_eq!(proposed("merge", "off".into()), meant("false"));
        // What is right, and what may be a number as well, is not about words.
        assert_eq!(proposed("vhost", "auto".into()).or_else(|| proposed("size", true.into())), None);
    }
}
