#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::json;
use tare_model::guest::GuestSize;

use super::*;
use crate::workloads::tile::ENTRY;

const ONE_CLIENT: LoadModel = LoadModel::Closed { clients: 1, think_time: Span::ZERO };

fn refused(members: Value) -> FieldError {
    members_error(&json!({ "members": members }), &ONE_CLIENT)
}

fn members_error(parameters: &Value, load: &LoadModel) -> FieldError {
    let checked = (ENTRY.normalise)(parameters).and_then(|normal| (ENTRY.make)(&normal, load).map(drop));
    checked.err().unwrap_or_else(|| panic!("accepted: {parameters}"))
}

#[test]
fn members_are_kept_in_order_with_the_defaults_of_their_workloads() {
    let members = json!([
        {
            "name": "shop", "workload": "web-ecommerce", "load": { "closed": { "clients": 20 } },
            "guest": { "memory": "1GiB" }, "parameters": { "tls": false }
        },
        { "name": "db", "workload": "store" },
        { "name": "app", "workload": "java", "load": { "open": { "rate": "200/s", "connections": 4 } } },
    ]);
    let normal = (ENTRY.normalise)(&json!({ "members": members })).unwrap();
    let of = |number: usize, key: &str| normal["members"][number][key].clone();
    assert_eq!([0, 1, 2].map(|number| of(number, "name")), ["shop", "db", "app"]);
    let shop = of(0, "parameters");
    assert!(shop["tls"] == json!(false) && shop["backend-connections"] == json!(100), "{shop}");
    assert_eq!(of(1, "load"), json!({ "closed": { "clients": 1, "think-time": "0s" } }));
    assert_eq!(of(2, "load")["open"]["arrivals"], "poisson");
    let made = members_of(&normal);
    let asked = GuestSize { cpus: 2, memory: ByteSize(3 << 30) };
    assert_eq!(made[0].size(asked), GuestSize { cpus: 2, memory: ByteSize(1 << 30) });
    assert_eq!((made[1].size(asked), made[0].load.connections()), (asked, 20));
}

fn members_of(parameters: &Value) -> Vec<Member> {
    members(parameters).unwrap()
}

/// That members are refused with this path, and with these words in message and help.
fn refused_with((members, path, message, help): (Value, &str, &str, &str)) {
    let error = refused(members.clone());
    let help_shown = error.help.clone().unwrap_or_default();
    let named = error.path.join(".");
    // Where a field is unknown, it may be the table around it that is named.
    let unknown = message.contains("expected") || message.contains("unknown");
    let near = named == path || unknown && path.starts_with(&named);
    assert!(near && error.message.contains(message) && help_shown.contains(help), "{members}: {error:?}");
}

#[test]
fn each_field_that_is_wrong_is_named_with_its_path_and_its_remedy() {
    let wrong = [
        (json!([]), "members", "from 1 to 64", "write one such as"),
        (json!([{ "workload": "java" }]), "members.0", "missing field `name`", ""),
        (json!([{ "name": "1st", "workload": "java" }]), "members.0.name", "is no name", "a letter first"),
        (json!([{ "name": "a:b", "workload": "java" }]), "members.0.name", "is no name", "a letter first"),
        (
            json!([{ "name": "a", "workload": "jva" }]),
            "members.0.workload",
            "no workload `jva`",
            "did you mean `java`?",
        ),
        (
            json!([{ "name": "a", "workload": "mail" }]),
            "members.0.workload",
            "no workload",
            "can be members: `store`, `java`",
        ),
        (
            json!([{ "name": "a", "workload": "tile" }]),
            "members.0.workload",
            "no tiles in it",
            "among those of the outer",
        ),
        (
            json!([{ "name": "a", "workload": "rr" }]),
            "members.0.workload",
            "again and again",
            "workloads that can: `store`",
        ),
        (
            json!([{ "name": "a", "workload": "store", "parameters": { "url": "postgres://u@h/d" } }]),
            "members.0.workload",
            "as it is set here",
            "workloads that can",
        ),
        (
            json!([{ "name": "a", "workload": "java" }, { "name": "A", "workload": "java" }]),
            "members.1.name",
            "two members called `A`",
            "name of its own",
        ),
    ];
    wrong.into_iter().for_each(refused_with);
}

#[test]
fn what_is_wrong_within_a_member_is_reported_where_it_stands() {
    let wrong = [
        (
            json!([{ "name": "a", "workload": "java", "parameters": { "heep": "1GiB" } }]),
            "members.0.parameters.heep",
            "unknown field",
            "",
        ),
        (
            json!([{ "name": "a", "workload": "store", "parameters": { "db-size": "1B" } }]),
            "members.0.parameters.db-size",
            "is not between",
            "published sizes",
        ),
        (
            json!([{ "name": "a", "workload": "java", "parameters": { "cpu-share": 0.5 } }]),
            "members.0.parameters",
            "finds its load before the first trial",
            "a load that is fixed",
        ),
        (
            json!([{ "name": "a", "workload": "java", "instances": 2 }]),
            "members.0.instances",
            "one instance",
            "leave it out",
        ),
        (
            json!([{ "name": "a", "workload": "java", "load": { "closed": { "clients": 0 } } }]),
            "members.0.load.closed.clients",
            "from 1 to 60000",
            "",
        ),
        (
            json!([{ "name": "a", "workload": "java", "load": { "closed": { "clients": 9, "think_time": "1s" } } }]),
            "members.0.load.closed.think_time",
            "expected `clients` or `think-time`",
            "",
        ),
        (
            json!([
                { "name": "a", "workload": "web-banking", "load": { "closed": { "clients": 2, "think-time": "1s" } } }
            ]),
            "members.0.load.closed.think-time",
            "users think as the site's table says",
            "leave it out",
        ),
        (
            json!([{ "name": "a", "workload": "java", "guest": { "memory": "1MiB" } }]),
            "members.0.guest.memory",
            "is not from",
            "unit",
        ),
        (json!([{ "name": "a", "workload": "java", "weight": 2 }]), "members.0.weight", "unknown field `weight`", ""),
    ];
    wrong.into_iter().for_each(refused_with);
}

#[test]
fn a_case_of_tiles_has_no_load_of_its_own() {
    let parameters = json!({ "members": [{ "name": "a", "workload": "java" }] });
    let error = members_error(&parameters, &LoadModel::Closed { clients: 5, think_time: Span::ZERO });
    assert_eq!(
        (error.path, error.message.as_str()),
        (vec!["load".to_owned()], "the members of a tile have loads of their own")
    );
}
