//! The JSON schema of study files, for editors: that of the tables, and what depends on several fields, on platforms and on workloads.

use schemars::JsonSchema;
use serde_json::{Map, Value as Json, json};
use tare_model::units::{AddressRange, BitRate, ByteSize, Rate, Span};

use crate::catalog::{Catalog, CatalogEntry};
use crate::check::{COUNTS_AND_SWITCHES, NOT_BESIDE, rules};
use crate::file;
use crate::language::shape::{Shape, reference};

/// JSON schema (draft 2020-12) of study files with these platforms and workloads: editors complete and check
/// with it. It finds what a schema can find; the rest (a baseline that is no arm) is found by [`crate::parse`].
pub fn schema(catalog: &dyn Catalog) -> Json {
    let mut root = file::Study::schema();
    let (platforms, workloads) = (catalog.platforms(), catalog.workloads());
    let mut definitions = Map::new();
    definitions.insert("size".to_owned(), quantity::<ByteSize>(&["64MiB", "1GiB"]));
    definitions.insert("bit-rate".to_owned(), quantity::<BitRate>(&["1Gbit/s", "10Gbit/s"]));
    definitions.insert("addresses".to_owned(), quantity::<AddressRange>(&["192.0.2.100-192.0.2.150/24"]));
    definitions.insert("span".to_owned(), quantity::<Span>(&["300ms", "2s", "5m"]));
    definitions.insert("rate".to_owned(), quantity::<Rate>(&["1000/s"]));
    definitions.insert("load".to_owned(), load(true));
    definitions.insert("load-kind".to_owned(), load(false));
    let fields = &mut root["properties"];
    let arm = &mut fields["arms"]["additionalProperties"];
    choose(arm, "platform", "options", &platforms, &mut definitions);
    arm["properties"]["merging"]["anyOf"][1]["allOf"] = rules().map(rule).collect();
    case(&mut fields["cases"]["additionalProperties"], &workloads, &mut definitions);
    let machines = platforms.iter().filter(|entry| catalog.is_outside(&entry.name)).map(machine);
    fields["hosts"]["additionalProperties"] = json!({ "anyOf": machines.collect::<Vec<_>>() });
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("tare study");
    root["description"] = json!(
        "A study of what an isolation layer weighs: the arms that are compared, and the cases in which they are."
    );
    root["$defs"] = Json::Object(definitions);
    root
}

/// The model's own schema of a quantity.
fn quantity<T: JsonSchema>(examples: &[&str]) -> Json {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
        schema.insert("examples".to_owned(), json!(examples));
    }
    schema
}

/// A machine beside the host that tare is started on, by the platform that leads to it.
fn machine(entry: &CatalogEntry) -> Json {
    let mut own = reference(&format!("platform-{}", entry.name));
    own["description"] = json!("The way to the machine.");
    json!({
        "type": "object", "properties": { entry.name.as_str(): own }, "required": [entry.name],
        "additionalProperties": false,
    })
}

/// If a table of `merging` names this rule, it has no other rule's fields.
fn rule((name, own, max_cpu): (&str, &[&str], Json)) -> Json {
    let others = rules().flat_map(|(_, fields, _)| fields).filter(|key| !own.contains(key));
    let mut then: Map<String, Json> = others.map(|key| ((*key).to_owned(), Json::Bool(false))).collect();
    if own.contains(&"max-cpu") {
        then.insert("max-cpu".to_owned(), max_cpu);
    }
    json!({ "if": { "properties": { "rule": { "const": name } }, "required": ["rule"] }, "then": { "properties": then } })
}

/// A load, with its number or with that said elsewhere.
fn load(numbered: bool) -> Json {
    let mut load = file::Load::schema();
    for (kind, number) in [("closed", "clients"), ("open", "rate")] {
        let one = &mut load["properties"][kind];
        let mut required = one["required"].as_array().cloned().unwrap_or_default();
        if numbered {
            required.push(number.into());
        } else if let Some(fields) = one["properties"].as_object_mut() {
            fields.remove(number);
        }
        one["required"] = Json::Array(required);
    }
    load["oneOf"] = json!([{ "required": ["closed"] }, { "required": ["open"] }]);
    load
}

/// What depends on several fields of a case, or on its workload.
fn case(case: &mut Json, workloads: &[CatalogEntry], definitions: &mut Map<String, Json>) {
    choose(case, "workload", "parameters", workloads, definitions);
    case["properties"]["load"] = json!({ "type": "object", "description": case["properties"]["load"]["description"] });
    case["properties"]["loads"]["additionalProperties"] = reference("load");
    let pair = |(key, other, _): &(&str, &str, _)| {
        let mut both = json!({ "required": [key, other] });
        if COUNTS_AND_SWITCHES.contains(key) {
            both["properties"] = json!({ *key: { "not": { "enum": [1, false] } } });
        }
        both
    };
    case["not"] = json!({ "anyOf": NOT_BESIDE.iter().map(pair).collect::<Vec<_>>() });
    let number_elsewhere = ["capacity", "load-from", "cpu-target"].map(|field| json!({ "required": [field] }));
    let kinds = json!({
        "if": { "anyOf": number_elsewhere },
        "then": { "properties": { "load": reference("load-kind") } },
        "else": { "properties": { "load": reference("load") } },
    });
    let objectives = json!({
        "if": { "required": ["capacity"] },
        "then": { "required": ["qos"], "properties": { "qos": { "minProperties": 1 } } },
    });
    let no_turns = json!({
        "if": { "properties": { "schedule": { "const": "trials" } }, "required": ["schedule"] },
        "then": { "properties": { "turns": false } },
    });
    if let Some(rules) = case["allOf"].as_array_mut() {
        rules.extend([kinds, objectives, no_turns]);
    }
}

/// Makes the field `by` one of the entries by name, each with its summary, and `field` what the entry's own schema says. An entry
/// whose own schema requires something makes the field itself required.
fn choose(table: &mut Json, by: &str, field: &str, entries: &[CatalogEntry], definitions: &mut Map<String, Json>) {
    let one = |entry: &CatalogEntry| json!({ "const": entry.name, "description": entry.summary });
    let name = &mut table["properties"][by];
    *name = json!({
        "type": "string", "description": name["description"], "oneOf": entries.iter().map(one).collect::<Vec<_>>(),
    });
    let rule = |entry: &CatalogEntry| {
        let definition = format!("{by}-{}", entry.name);
        let own = adopt(&definition, &entry.schema, definitions);
        let needs = own["required"].as_array().is_some_and(|fields| !fields.is_empty());
        definitions.insert(definition.clone(), own);
        let mut then = json!({ "properties": { field: reference(&definition) } });
        if needs {
            then["required"] = json!([field]);
        }
        json!({ "if": { "properties": { by: { "const": entry.name } }, "required": [by] }, "then": then })
    };
    table["allOf"] = entries.iter().map(rule).collect();
}

/// An entry's own schema, fit to stand inside this one: its definitions move to the root under a prefix, and its
/// references follow. (An embedded `$id` would do without, but editors do not resolve it.)
fn adopt(prefix: &str, schema: &Json, definitions: &mut Map<String, Json>) -> Json {
    let mut own = schema.clone();
    let inner = own.as_object_mut().and_then(|own| {
        own.remove("$schema");
        own.remove("$defs")
    });
    if let Some(Json::Object(inner)) = inner {
        for (name, mut definition) in inner {
            follow(prefix, &mut definition);
            definitions.insert(format!("{prefix}-{name}"), definition);
        }
    }
    follow(prefix, &mut own);
    own
}

fn follow(prefix: &str, schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            for (key, value) in map {
                match value {
                    Json::String(target) if key == "$ref" => {
                        if let Some(name) = target.strip_prefix("#/$defs/") {
                            *target = format!("#/$defs/{prefix}-{name}");
                        } else if target == "#" {
                            *target = format!("#/$defs/{prefix}");
                        }
                    }
                    other => follow(prefix, other),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| follow(prefix, item)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_follow_their_definitions_to_the_root() {
        let own = json!({ "$schema": "x", "$defs": { "A": { "$ref": "#/$defs/B" }, "B": true }, "items": [{ "$ref": "#/$defs/A" }, { "$ref": "#" }] });
        let mut definitions = Map::new();
        let adopted = adopt("workload-rr", &own, &mut definitions);
        assert_eq!(
            adopted,
            json!({ "items": [{ "$ref": "#/$defs/workload-rr-A" }, { "$ref": "#/$defs/workload-rr" }] })
        );
        assert_eq!(definitions["workload-rr-A"], json!({ "$ref": "#/$defs/workload-rr-B" }));
        assert_eq!(definitions["workload-rr-B"], json!(true));
    }
}
