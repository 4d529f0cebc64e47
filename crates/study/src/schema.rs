//! The JSON schema of study files, for editors.

use schemars::JsonSchema;
use serde_json::{Map, Value as Json, json};
use tare_model::guest::Seccomp;
use tare_model::study::STUDY_SCHEMA;
use tare_model::units::{ByteSize, Rate, Span};

use crate::catalog::{Catalog, CatalogEntry};
use crate::check::{
    FEWEST_ITERATIONS, FEWEST_STEPS, MAX_CONNECTIONS, MAX_DRIVERS, MAX_GUESTS, MAX_INSTANCES, MAX_LISTED, MAX_SHARE,
    MOST_ITERATIONS, MOST_STEPS, SHARES, TOLERANCES, rules,
};
use crate::fields::{self, Field};

const ID: &str = "^[a-z0-9][a-z0-9-]*$";
const CPU_LIST: &str = r"^\s*[0-9]+(-[0-9]+)?\s*(,\s*[0-9]+(-[0-9]+)?\s*)*$";

/// JSON schema (draft 2020-12) of study files with these platforms and workloads: editors complete and check
/// with it. It finds what a schema can find; the rest (a baseline that is no arm) is found by [`crate::parse`].
pub fn schema(catalog: &dyn Catalog) -> Json {
    let mut definitions = Map::new();
    definitions.insert("size".to_owned(), quantity::<ByteSize>(&["64MiB", "1GiB"]));
    definitions.insert("span".to_owned(), quantity::<Span>(&["300ms", "2s", "5m"]));
    definitions.insert("rate".to_owned(), quantity::<Rate>(&["1000/s"]));
    definitions.insert("load".to_owned(), load(&[]));
    definitions.insert("load-kind".to_owned(), load(&["clients", "rate"]));
    definitions.insert("capacity".to_owned(), capacity());
    definitions.insert("cpu-target".to_owned(), cpu_target());
    definitions.insert("guest".to_owned(), table(fields::GUEST, &[], &guest));
    definitions.insert("phases".to_owned(), table(fields::PHASES, &[], &|_| reference("span")));
    definitions.insert("merging".to_owned(), merging());
    definitions.insert("density".to_owned(), table(fields::DENSITY, &required(fields::DENSITY), &density_field));
    let arm = arm(&catalog.platforms(), &mut definitions);
    definitions.insert("arm".to_owned(), arm);
    definitions.insert("client".to_owned(), client(catalog));
    let case = case(&catalog.workloads(), &mut definitions);
    definitions.insert("case".to_owned(), case);
    let mut root = table(fields::STUDY, &required(fields::STUDY), &study_field);
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

fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn required(fields: &'static [Field]) -> Vec<&'static str> {
    fields.iter().filter(|field| field.required).map(|field| field.key).collect()
}

/// A table of exactly these fields; `shape` gives the schema of each, to which its description is added.
fn table(fields: &'static [Field], required: &[&str], shape: &dyn Fn(&str) -> Json) -> Json {
    let property = |field: &Field| {
        let mut schema = shape(field.key);
        schema["description"] = json!(field.doc);
        (field.key.to_owned(), schema)
    };
    let properties: Map<String, Json> = fields.iter().map(property).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn study_field(key: &str) -> Json {
    match key {
        "schema" => json!({ "type": "integer", "minimum": 1, "maximum": STUDY_SCHEMA }),
        "name" => json!({ "type": "string", "pattern": ID, "maxLength": 64 }),
        "blocks" => json!({ "type": "integer", "minimum": 1, "maximum": 10_000 }),
        "seed" => json!({ "type": "integer", "minimum": 0 }),
        "noise-floor" => json!({ "type": "boolean", "default": true }),
        "skip-unavailable" => json!({ "type": "boolean", "default": false }),
        "arms" => named(&reference("arm")),
        "cases" => named(&reference("case")),
        "guest" | "phases" => reference(key),
        "lab" => table(fields::LAB, &[], &lab_field),
        "score" => named(&json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1e12 })),
        "hosts" => table(fields::HOSTS, &[], &|key| match key {
            "clients" => {
                json!({ "type": "array", "items": { "$ref": "#/$defs/client" }, "minItems": 1, "maxItems": 1 })
            }
            _ => json!({ "const": "local" }),
        }),
        _ => text(),
    }
}

/// This host, or a machine by the platform that leads to it.
fn client(catalog: &dyn Catalog) -> Json {
    let machine = |entry: &CatalogEntry| {
        let own = reference(&format!("platform-{}", entry.name));
        json!({
            "type": "object", "properties": { entry.name.as_str(): own }, "required": [entry.name],
            "additionalProperties": false,
        })
    };
    let platforms = catalog.platforms();
    let machines = platforms.iter().filter(|entry| catalog.is_outside(&entry.name)).map(machine);
    let all: Vec<Json> = std::iter::once(json!({ "const": "local" })).chain(machines).collect();
    json!({ "anyOf": all })
}

fn text() -> Json {
    json!({ "type": "string", "pattern": "\\S" })
}

/// A table whose keys are ids of the user's own.
fn named(schema: &Json) -> Json {
    json!({
        "type": "object", "minProperties": 1,
        "propertyNames": { "pattern": ID, "maxLength": 40 }, "additionalProperties": schema,
    })
}

fn lab_field(key: &str) -> Json {
    match key {
        "mtu" => json!({ "type": "integer", "minimum": 576, "maximum": 65_535 }),
        "offloads" => json!({ "type": "boolean" }),
        "placement" => {
            let cpus = json!({ "type": "string", "pattern": CPU_LIST });
            let listed = table(fields::PLACEMENT, &required(fields::PLACEMENT), &|_| cpus.clone());
            json!({ "anyOf": [{ "enum": ["separate", "same-cpu", "unpinned"] }, listed] })
        }
        "sample-interval" => reference("span"),
        _ => text(),
    }
}

fn sized(key: &str) -> Json {
    if key == "memory" { reference("size") } else { json!({ "type": "integer", "minimum": 1 }) }
}

fn guest(key: &str) -> Json {
    match key {
        "seccomp" => json!({ "enum": Seccomp::ALL.map(|(name, _)| name), "default": Seccomp::default().name() }),
        _ => sized(key),
    }
}

fn share() -> Json {
    json!({ "type": "number", "minimum": 0.01, "maximum": 1 })
}

/// A rule by its name, or a table of which only the rule's own fields may be there.
fn merging() -> Json {
    let names: Vec<&str> = rules().map(|(name, _)| name).collect();
    let mut as_table = table(fields::MERGING, &required(fields::MERGING), &|key| match key {
        "rule" => json!({ "enum": names }),
        "pages-to-scan" => json!({ "type": "integer", "minimum": 1 }),
        "sleep" | "target-scan-time" => reference("span"),
        "free-goal" => share(),
        "zero-pages" => json!({ "type": "boolean", "default": false }),
        _ => json!({ "type": "number" }),
    });
    let own = |(name, own): (&str, &[&str])| {
        let others = fields::MERGING.iter().map(|field| field.key).filter(|key| *key != "rule" && !own.contains(key));
        let mut then: Map<String, Json> = others.map(|key| (key.to_owned(), Json::Bool(false))).collect();
        if own.contains(&"max-cpu") {
            let whole = json!({ "type": "integer", "minimum": 1, "maximum": 100 });
            then.insert("max-cpu".to_owned(), if own.contains(&"free-goal") { share() } else { whole });
        }
        json!({ "if": { "properties": { "rule": { "const": name } }, "required": ["rule"] }, "then": { "properties": then } })
    };
    as_table["allOf"] = rules().map(own).collect();
    json!({ "anyOf": [{ "enum": names }, as_table] })
}

fn density_field(key: &str) -> Json {
    let number = json!({ "type": "integer", "minimum": 1, "maximum": MAX_GUESTS });
    match key {
        "guests" => {
            let search = table(fields::SEARCH, &required(fields::SEARCH), &|_| number.clone());
            let as_table = table(fields::DENSITY_GUESTS, &required(fields::DENSITY_GUESTS), &|_| search.clone());
            let listed =
                json!({ "type": "array", "items": number, "minItems": 1, "maxItems": MAX_LISTED, "uniqueItems": true });
            json!({ "anyOf": [listed, as_table] })
        }
        "reserve" => reference("size"),
        "pressure" => share(),
        _ => reference("span"),
    }
}

/// `capacity` of a case. Whether its loads are clients or rates is said by the load.
fn capacity() -> Json {
    table(fields::CAPACITY, &required(fields::CAPACITY), &|key| match key {
        "precision" => json!({ "type": "number", "minimum": 0.001, "maximum": 1, "default": 0.05 }),
        "iterations" => {
            json!({ "type": "integer", "minimum": FEWEST_ITERATIONS, "maximum": MOST_ITERATIONS, "default": 3 })
        }
        _ => number(),
    })
}

/// Clients of a closed loop, or the rate of an open one.
fn number() -> Json {
    json!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": MAX_CONNECTIONS }, reference("rate")] })
}

/// `cpu-target` of a case. Whether its loads are clients or rates is said by the load.
fn cpu_target() -> Json {
    table(fields::CPU_TARGET, &required(fields::CPU_TARGET), &|key| match key {
        "share" => json!({ "type": "number", "minimum": SHARES.start(), "maximum": SHARES.end() }),
        "tolerance" => {
            json!({ "type": "number", "minimum": TOLERANCES.start(), "maximum": TOLERANCES.end(), "default": 0.02 })
        }
        "step" => reference("span"),
        "steps" => json!({ "type": "integer", "minimum": FEWEST_STEPS, "maximum": MOST_STEPS, "default": 8 }),
        _ => number(),
    })
}

/// A load without these fields, which stand elsewhere.
fn load(without: &[&str]) -> Json {
    let of = |fields: &'static [Field]| {
        let needed: Vec<&str> = required(fields).into_iter().filter(|key| !without.contains(key)).collect();
        let mut all = table(fields, &needed, &load_field);
        if let Some(properties) = all["properties"].as_object_mut() {
            properties.retain(|key, _| !without.contains(&key.as_str()));
        }
        all
    };
    let (closed, open) = (of(fields::CLOSED), of(fields::OPEN));
    let mut load = table(fields::LOAD, &[], &|key| if key == "open" { open.clone() } else { closed.clone() });
    load["oneOf"] = json!([{ "required": ["closed"] }, { "required": ["open"] }]);
    load
}

fn load_field(key: &str) -> Json {
    match key {
        "think-time" => reference("span"),
        "rate" => reference("rate"),
        "arrivals" => json!({ "enum": ["poisson", "uniform"] }),
        _ => json!({ "type": "integer", "minimum": 1 }),
    }
}

fn arm(platforms: &[CatalogEntry], definitions: &mut Map<String, Json>) -> Json {
    let mut arm = table(fields::ARM, &required(fields::ARM), &|key| match key {
        "platform" => names(platforms),
        "options" => json!({ "type": "object" }),
        "merging" => reference("merging"),
        "huge-pages" => json!({ "enum": ["always", "madvise", "never"] }),
        _ => text(),
    });
    arm["allOf"] = own_schemas("platform", "options", platforms, definitions);
    arm
}

fn case(workloads: &[CatalogEntry], definitions: &mut Map<String, Json>) -> Json {
    let mut case = table(fields::CASE, &required(fields::CASE), &|key| match key {
        "workload" => names(workloads),
        "parameters" => json!({ "type": "object" }),
        "guest" | "phases" | "density" | "capacity" | "cpu-target" => reference(key),
        // Which of two it is, is said below.
        "load" => json!({ "type": "object" }),
        "load-from" => table(fields::LOAD_FROM, &required(fields::LOAD_FROM), &|key| match key {
            "share" => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": MAX_SHARE }),
            _ => text(),
        }),
        "loads" => named(&reference("load")),
        "neighbours" => table(fields::NEIGHBOURS, &required(fields::NEIGHBOURS), &sized),
        "busy-target" => json!({ "type": "boolean" }),
        "held-out" => json!({ "type": "boolean", "default": false }),
        "instances" => json!({ "type": "integer", "minimum": 1, "maximum": MAX_INSTANCES, "default": 1 }),
        "guests" => json!({ "type": "integer", "minimum": 1, "maximum": MAX_GUESTS, "default": 1 }),
        "drivers" => json!({ "type": "integer", "minimum": 1, "maximum": MAX_DRIVERS, "default": 1 }),
        "qos" => json!({ "type": "object", "additionalProperties": { "type": ["string", "number"] } }),
        "sweep" => {
            json!({ "type": "object", "minProperties": 1, "additionalProperties": { "type": ["array", "object"] } })
        }
        "users-per-instance" => json!({ "type": "integer", "minimum": 1, "maximum": MAX_CONNECTIONS }),
        _ => text(),
    });
    let pairs = [
        ["load", "loads"],
        ["users-per-instance", "load"],
        ["users-per-instance", "loads"],
        ["users-per-instance", "capacity"],
        ["users-per-instance", "load-from"],
        ["users-per-instance", "cpu-target"],
        ["capacity", "load-from"],
        ["capacity", "density"],
        ["load-from", "density"],
        ["cpu-target", "capacity"],
        ["cpu-target", "load-from"],
        ["cpu-target", "density"],
    ];
    case["not"] = json!({ "anyOf": pairs.map(|pair| json!({ "required": pair })) });
    case["allOf"] = own_schemas("workload", "parameters", workloads, definitions);
    let number_elsewhere = ["capacity", "load-from", "cpu-target"].map(|field| json!({ "required": [field] }));
    let number_elsewhere = json!({ "anyOf": number_elsewhere });
    let load = |name: &str, loads: Json| json!({ "properties": { "load": reference(name), "loads": loads } });
    let kinds = json!({
        "if": number_elsewhere, "then": load("load-kind", Json::Bool(false)), "else": load("load", Json::Bool(true)),
    });
    let objectives = json!({
        "if": { "required": ["capacity"] },
        "then": { "required": ["qos"], "properties": { "qos": { "minProperties": 1 } } },
    });
    if let Some(rules) = case["allOf"].as_array_mut() {
        rules.extend([kinds, objectives]);
    }
    case
}

/// One of the entries by name, each with its summary.
fn names(entries: &[CatalogEntry]) -> Json {
    let one = |entry: &CatalogEntry| json!({ "const": entry.name, "description": entry.summary });
    json!({ "type": "string", "oneOf": entries.iter().map(one).collect::<Vec<_>>() })
}

/// For each entry: if `by` names it, then `field` is as the entry's own schema says. An entry whose own schema
/// requires something makes the field itself required.
fn own_schemas(by: &str, field: &str, entries: &[CatalogEntry], definitions: &mut Map<String, Json>) -> Json {
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
    Json::Array(entries.iter().map(rule).collect())
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
