//! A small catalog for tests: the names that the shipped studies use, with parameters like the real ones.
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tare_model::Refusal;
use tare_model::drive::{Exchange, Wait};
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::layout::{Given, Service, ServicePlace, Work};
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::start::Start;
use tare_model::study::Attach;
use tare_model::traits::{Footprint, GuestTraits, Renewed, Traits, TurnTraits};
use tare_model::units::{ByteSize, Span};

use crate::catalog::{Catalog, CatalogEntry, WorkloadAsked};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct PlainOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    switch: Option<Switch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merge: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upper: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    landlock: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Switch {
    Auto,
    On,
    Off,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct OciOptions {
    /// The runtime's program.
    runtime: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upper: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FarOptions {
    /// Where it is.
    host: String,
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machines: Option<u32>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RrParameters {
    #[serde(default)]
    exchange: Exchange,
    #[serde(default = "one_byte")]
    request: ByteSize,
    #[serde(default = "one_byte")]
    response: ByteSize,
    #[serde(default)]
    wait: Wait,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buffer: Option<ByteSize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    record: Option<bool>,
}

const fn one_byte() -> ByteSize {
    ByteSize(1)
}

fn checked<T: DeserializeOwned + Serialize>(value: &Json) -> Result<Json, FieldError> {
    let typed: T = serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let keys: Vec<&str> = path.split('.').filter(|key| !key.is_empty()).collect();
        FieldError::new(&keys, error.inner().to_string())
    })?;
    Ok(serde_json::to_value(typed).unwrap())
}

/// A platform or a workload by its name: its schema, and how it checks what is its own.
struct Kind {
    name: &'static str,
    schema: fn() -> Json,
    check: fn(&Json) -> Result<Json, FieldError>,
}

const fn kind<T: JsonSchema + DeserializeOwned + Serialize>(name: &'static str) -> Kind {
    Kind { name, schema: || schemars::schema_for!(T).to_value(), check: checked::<T> }
}

const PLATFORMS: [Kind; 11] = [
    kind::<PlainOptions>("null"),
    kind::<PlainOptions>("native"),
    kind::<PlainOptions>("container"),
    kind::<OciOptions>("oci"),
    kind::<PlainOptions>("nspawn"),
    kind::<PlainOptions>("lxc"),
    kind::<PlainOptions>("bubblewrap"),
    kind::<PlainOptions>("systemd-run"),
    kind::<Anything>("qemu"),
    kind::<Anything>("libvirt"),
    kind::<FarOptions>("far"),
];

const WORKLOADS: [Kind; 14] = [
    kind::<Anything>("null"),
    kind::<RrParameters>("rr"),
    kind::<Anything>("stream"),
    kind::<Anything>("cpu"),
    kind::<Anything>("store"),
    kind::<Anything>("java"),
    kind::<Anything>("web-banking"),
    kind::<Anything>("web-ecommerce"),
    kind::<Anything>("web-support"),
    kind::<Anything>("social"),
    kind::<TileParameters>("tile"),
    kind::<Anything>("guest-start"),
    kind::<Anything>("resident-task"),
    kind::<Anything>("exec"),
];

fn entries(kinds: &[Kind]) -> Vec<CatalogEntry> {
    let entry = |kind: &Kind| CatalogEntry {
        name: kind.name.to_owned(),
        summary: "for tests".to_owned(),
        kinds: Vec::new(),
        schema: (kind.schema)(),
    };
    kinds.iter().map(entry).collect()
}

fn check(kinds: &[Kind], name: &str, value: &Json) -> Result<Json, FieldError> {
    (kinds.iter().find(|kind| kind.name == name).expect("only listed names are checked").check)(value)
}

/// Most take many; that they are right is its own affair.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Anything {
    #[serde(flatten)]
    others: serde_json::Map<String, Json>,
}

/// Guests that differ, as a tile has them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TileParameters {
    #[serde(default)]
    members: Vec<Json>,
}

/// Most sessions of the `web-` workloads.
pub(crate) const MOST_SESSIONS: u32 = 20_000;

/// What a guest of `java` touches at once where it does not touch all of its memory.
pub(crate) const LAZY: ByteSize = ByteSize(256 << 20);

/// What `store` keeps where it is not set.
const TEN_MEGABYTES: ByteSize = ByteSize(10_000_000);

/// What each instance of `social` in a guest is given.
pub(crate) const DATABASE: ByteSize = ByteSize(1 << 30);

/// What a guest of the `web-` workloads is given for each session.
pub(crate) const FILES_PER_SESSION: ByteSize = ByteSize(1 << 20);

/// The platforms that the shipped studies name, and `far`; guests of `null`, `lxc` and `far` cannot have their memory merged.
/// Workloads `null`, `rr`, `stream`, `cpu`; `store`, of which there may be several and which keeps its data once and gives
/// each guest twice as much; `java`, of whose guests some can be added; `web-...`, whose guests are given files for each session; and `social`, of which
/// there may be several instances in a guest, which has a database beside it, and which can be offered one load after another, as `rr` can.
pub(crate) struct Fake;

/// Names of the guests of a tile, each with its memory where it has its own.
fn members(parameters: &Json) -> Vec<(String, Option<ByteSize>)> {
    let size = |member: &Json| member["memory"].as_str()?.parse().ok();
    let member = |member: &Json| Some((member["name"].as_str()?.to_owned(), size(member)));
    parameters["members"].as_array().into_iter().flatten().filter_map(member).collect()
}

impl Catalog for Fake {
    fn platforms(&self) -> Vec<CatalogEntry> {
        entries(&PLATFORMS)
    }

    fn workloads(&self) -> Vec<CatalogEntry> {
        entries(&WORKLOADS)
    }

    fn check_platform(&self, name: &str, options: &Json) -> Result<Json, FieldError> {
        check(&PLATFORMS, name, options)
    }

    fn check_workload(&self, name: &str, parameters: &Json, load: &LoadModel) -> Result<Json, FieldError> {
        let refused = |keys: &[&str], message: &str, help: &str| Err(FieldError::new(keys, message).help(help));
        match load {
            LoadModel::Open { .. } if name == "stream" => {
                refused(&["load", "open"], "bulk data has no arrivals", "write `closed`")
            }
            LoadModel::Closed { clients, .. } if name.starts_with("web-") && *clients > MOST_SESSIONS => {
                refused(&["load", "closed", "clients"], "more sessions than a client has ports", "ask for fewer")
            }
            _ => check(&WORKLOADS, name, parameters),
        }
    }

    fn metrics(&self, workload: &str, parameters: &Json) -> Vec<MetricSpec> {
        let metric = |id: &str, unit, better| MetricSpec::new(id, id, unit, better);
        let time = |id: &str| metric(id, Unit::Seconds, Better::Lower);
        let count = |id: &str| metric(id, Unit::Count, Better::Higher);
        let share = |id: &str| metric(id, Unit::Other("share".to_owned()), Better::Higher);
        let rate = |id: &str| metric(id, Unit::OperationsPerSecond, Better::Higher);
        match workload {
            "tile" => {
                let own = members(parameters).into_iter().flat_map(|(name, _)| {
                    let times = ["p90", "p99"].map(|part| time(&format!("{name}:response_time_{part}_s")));
                    times.into_iter().chain([share(&format!("{name}:good_share"))])
                });
                std::iter::once(count("tiles_held").primary()).chain(own).collect()
            }
            "rr" => vec![time("response_time_p50_s").primary(), time("response_time_p99_s"), rate("throughput_ops")],
            "java" => vec![rate("operations_per_s").primary(), time("response_time_p50_s")],
            "social" => vec![count("operations").primary(), time("response_time_p90_s")],
            "resident-task" => vec![time("task_mean_s").primary()],
            "stream" => vec![metric("goodput_bits", Unit::BitsPerSecond, Better::Higher).primary()],
            _ if workload.starts_with("web-") => {
                vec![time("response_time_p50_s").primary(), share("good_share"), share("tolerable_share")]
            }
            _ => vec![count("operations").primary()],
        }
    }

    fn traits(&self, asked: &WorkloadAsked<'_>) -> Traits {
        let WorkloadAsked { name: workload, parameters, guest, .. } = *asked;
        let can = |name: &str, unless: &str| workload == name && parameters[unless] != Json::Bool(true);
        let member = |(name, memory): (String, Option<ByteSize>)| {
            let size = GuestSize { memory: memory.unwrap_or(guest.memory), ..guest };
            GuestTraits { name: Some(name), ..GuestTraits::of(size) }
        };
        let tile: Vec<GuestTraits> =
            if workload == "tile" { members(parameters) } else { Vec::new() }.into_iter().map(member).collect();
        let touches = if parameters["memory"] == "lazy" { LAZY } else { guest.memory };
        let services = match workload {
            "social" => vec![Service::new("PostgreSQL", ServicePlace::Beside)],
            _ if workload.starts_with("web-") => vec![Service::new("backend", ServicePlace::Driver)],
            _ => Vec::new(),
        };
        let data = (workload == "store").then(|| Given::own("a database"));
        let one = GuestTraits { touches, work: Work { services, data }, ..GuestTraits::of(guest) };
        let turns = |turn, gap, freezes| {
            let (turn, gap) = (Span::from_millis(turn), Span::from_millis(gap));
            TurnTraits { turn, warm_up: Span::ZERO, gap, renewed: None, freezes, commands: None }
        };
        Traits {
            turns: match workload {
                "rr" | "cpu" => Some(turns(20, 1, true)),
                "stream" => Some(TurnTraits { renewed: Some(Renewed::Connections), ..turns(20, 1, true) }),
                "store" => Some(turns(200, 10, false)),
                "exec" | "guest-start" => Some(TurnTraits { commands: Some(5), ..turns(0, 10, false) }),
                "web-banking" | "social" => Some(turns(500, 20, false)),
                _ => None,
            },
            several_set_ups: workload == "rr" || workload == "cpu",
            slowable: workload == "rr" || workload == "cpu",
            several_guests: workload == "store" || workload.starts_with("web-"),
            several_instances: can("social", "one-instance-only"),
            repeats: can("social", "one-load-only") || workload == "rr",
            density: can("java", "one-guest-only") || workload == "resident-task" || !tile.is_empty(),
            calibrated: workload == "java" && parameters["finds-load"] == Json::Bool(true),
            made: if workload == "guest-start" { asked.load.connections() } else { 0 },
            guests: if tile.is_empty() { vec![one] } else { tile },
            ..Traits::of(guest)
        }
    }

    fn merging_refusal(&self, platform: &str, _: &Json) -> Option<Refusal> {
        let refusal = || Refusal::new("its guests' memory is not the host's to merge", "use another");
        ["null", "lxc", "far"].contains(&platform).then(refusal)
    }

    fn start_refusal(&self, platform: &str, _: &Json, start: Start) -> Option<Refusal> {
        let refusal = |why: &str| Some(Refusal::new(why, "write `start = { pool = 8 }`"));
        match start {
            Start::Snapshot if !["oci", "qemu"].contains(&platform) => refusal("no snapshots of its guests are taken"),
            Start::Pool(_) if platform == "null" => refusal("its guests are in no control group"),
            _ => None,
        }
    }

    fn attach_refusal(&self, platform: &str, _: &Json, attach: Attach) -> Option<Refusal> {
        let refusal = || Refusal::new("its links are made by a daemon", "write `attach = \"bridge\"`");
        (platform == "oci" && attach != Attach::Bridge).then(refusal)
    }

    fn ballooning_refusal(&self, platform: &str, _: &Json) -> Option<Refusal> {
        let refusal = || Refusal::new("its guests have no balloon", "use a machine");
        (platform != "qemu").then(refusal)
    }

    fn fits(&self, asked: &WorkloadAsked<'_>) -> Result<(), FieldError> {
        let WorkloadAsked { name, parameters, load, instances, .. } = *asked;
        match parameters["scale-users"].as_u64().filter(|_| name == "social") {
            Some(most) if u64::from(load.connections()) > most * u64::from(instances) => {
                let message = format!("{} users are more than {instances} times {most}", load.connections());
                Err(FieldError::new(&["scale-users"], message).help("write more"))
            }
            _ => Ok(()),
        }
    }

    fn limits_guests(&self, platform: &str, _: &Json) -> bool {
        platform != "null"
    }

    fn machines(&self, platform: &str, options: &Json) -> Option<u32> {
        (platform == "far").then(|| options["machines"].as_u64().map_or(1, |machines| machines as u32))
    }

    fn machine_address(&self, _: &str, options: &Json) -> Option<IpAddr> {
        options["address"].as_str()?.parse().ok()
    }

    fn exclusive(&self, _: &str, options: &Json) -> Vec<(&'static str, String)> {
        let named = [("device", &options["device"]), ("machine", &options["host"])].into_iter();
        named.filter_map(|(what, which)| Some((what, which.as_str()?.to_owned()))).collect()
    }

    fn footprint(&self, asked: &WorkloadAsked<'_>) -> Footprint {
        let WorkloadAsked { name: workload, parameters, load, instances, .. } = *asked;
        let each =
            |of: ByteSize, count: u32| Footprint { guest: ByteSize(of.0 * u64::from(count)), ..Footprint::default() };
        if workload == "social" {
            return each(DATABASE, instances);
        }
        if workload.starts_with("web-") {
            return each(FILES_PER_SESSION, load.connections());
        }
        let data = parameters["db-size"].as_str().map_or(Ok(TEN_MEGABYTES), str::parse);
        let kept = if workload == "store" { data.unwrap() } else { ByteSize(0) };
        Footprint { kept, guest: ByteSize(kept.0 * 2), ..Footprint::default() }
    }

    fn is_outside(&self, platform: &str) -> bool {
        platform == "far"
    }

    fn start_estimate(&self, platform: &str) -> Span {
        Span::from_millis(if platform == "native" { 10 } else { 40 })
    }
}
