//! A small catalog for tests: the names that the shipped studies use, with parameters like the real ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tare_model::Refusal;
use tare_model::drive::{Direction, Exchange, ReceiveMethod, SendMethod, Wait};
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::hold::GuestMemory;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::traits::{Footprint, GuestTraits, Traits};
use tare_model::units::{ByteSize, Span};

use crate::catalog::{Catalog, CatalogEntry, WorkloadAsked};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct PlainOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    switch: Option<Switch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merge: Option<bool>,
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
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FarOptions {
    /// Where it is.
    host: String,
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

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StreamParameters {
    #[serde(default)]
    direction: Direction,
    #[serde(default)]
    method: SendMethod,
    #[serde(default)]
    receive: ReceiveMethod,
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

fn entry<T: JsonSchema>(name: &str, summary: &str) -> CatalogEntry {
    let schema = schemars::schema_for!(T).to_value();
    CatalogEntry { name: name.to_owned(), summary: summary.to_owned(), schema }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct NullParameters {
    /// Whether each operation is recorded.
    #[serde(default = "yes")]
    record: bool,
}

/// A machine has many; that they are right is its own affair.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct MachineOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot_within: Option<tare_model::Span>,
    #[serde(flatten)]
    others: serde_json::Map<String, Json>,
}

const fn yes() -> bool {
    true
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CpuParameters {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StoreParameters {
    /// Size of the data.
    #[serde(default = "ten_megabytes")]
    db_size: ByteSize,
    /// How statements reach the server; as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    statements: Option<String>,
    /// What the verdict is about; as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
}

const fn ten_megabytes() -> ByteSize {
    ByteSize(10_000_000)
}

/// What decides the memory that a guest touches; the rest is as written.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct JavaParameters {
    #[serde(default)]
    memory: GuestMemory,
    #[serde(flatten)]
    others: serde_json::Map<String, Json>,
}

/// Guests that differ, as a tile has them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TileParameters {
    #[serde(default)]
    members: Vec<TileMember>,
}

/// One of them; what works in it is its own affair.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct TileMember {
    name: String,
    memory: Option<ByteSize>,
    #[serde(flatten)]
    others: serde_json::Map<String, Json>,
}

/// A site has many; that they are right is its own affair.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct WebParameters {
    #[serde(flatten)]
    others: serde_json::Map<String, Json>,
}

/// The application has many; that they are right is its own affair.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct SocialParameters {
    #[serde(flatten)]
    others: serde_json::Map<String, Json>,
}

/// Most sessions of the `web-` workloads.
pub(crate) const MOST_SESSIONS: u32 = 20_000;

/// What a guest of `java` touches at once where it does not touch all of its memory.
pub(crate) const LAZY: ByteSize = ByteSize(256 << 20);

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
    let read = serde_json::from_value::<TileParameters>(parameters.clone()).map(|tile| tile.members);
    read.unwrap_or_default().into_iter().map(|member| (member.name, member.memory)).collect()
}

impl Catalog for Fake {
    fn platforms(&self) -> Vec<CatalogEntry> {
        vec![
            entry::<PlainOptions>("null", "nothing"),
            entry::<PlainOptions>("native", "processes on the host"),
            entry::<PlainOptions>("container", "tare's own container"),
            entry::<OciOptions>("oci", "any OCI runtime"),
            entry::<PlainOptions>("nspawn", "a system container"),
            entry::<PlainOptions>("lxc", "a system container"),
            entry::<MachineOptions>("qemu", "a virtual machine"),
            entry::<MachineOptions>("libvirt", "a virtual machine"),
            entry::<FarOptions>("far", "a machine elsewhere"),
        ]
    }

    fn workloads(&self) -> Vec<CatalogEntry> {
        vec![
            entry::<NullParameters>("null", "nothing"),
            entry::<RrParameters>("rr", "request and response"),
            entry::<StreamParameters>("stream", "bulk data"),
            entry::<CpuParameters>("cpu", "computing"),
            entry::<StoreParameters>("store", "order entry"),
            entry::<JavaParameters>("java", "a business application"),
            entry::<WebParameters>("web-banking", "a bank's site"),
            entry::<WebParameters>("web-ecommerce", "a shop's site"),
            entry::<WebParameters>("web-support", "a site of downloads"),
            entry::<SocialParameters>("social", "a social calendar"),
            entry::<TileParameters>("tile", "several guests as one unit"),
        ]
    }

    fn check_platform(&self, name: &str, options: &Json) -> Result<Json, FieldError> {
        match name {
            "oci" => checked::<OciOptions>(options),
            "far" => checked::<FarOptions>(options),
            "qemu" | "libvirt" => checked::<MachineOptions>(options),
            _ => checked::<PlainOptions>(options),
        }
    }

    fn check_workload(&self, name: &str, parameters: &Json, load: &LoadModel) -> Result<Json, FieldError> {
        match (name, load) {
            ("stream", LoadModel::Open { .. }) => {
                Err(FieldError::new(&["load", "open"], "bulk data has no arrivals").help("write `closed`"))
            }
            ("stream", _) => checked::<StreamParameters>(parameters),
            ("rr", _) => checked::<RrParameters>(parameters),
            ("cpu", _) => checked::<CpuParameters>(parameters),
            ("store", _) => checked::<StoreParameters>(parameters),
            ("java", _) => checked::<JavaParameters>(parameters),
            ("tile", _) => checked::<TileParameters>(parameters),
            ("social", _) => checked::<SocialParameters>(parameters),
            (_, load) if name.starts_with("web-") => match load {
                LoadModel::Closed { clients, .. } if *clients > MOST_SESSIONS => {
                    let error =
                        FieldError::new(&["load", "closed", "clients"], "more sessions than a client has ports");
                    Err(error.help("ask for fewer"))
                }
                _ => checked::<WebParameters>(parameters),
            },
            _ => checked::<NullParameters>(parameters),
        }
    }

    fn metrics(&self, workload: &str, parameters: &Json) -> Vec<MetricSpec> {
        let metric = |id, unit, better| MetricSpec::new(id, id, unit, better);
        if workload == "tile" {
            let mut all = vec![metric("tiles_held", Unit::Count, Better::Higher).primary()];
            let share = Unit::Other("share".to_owned());
            let own = [
                ("response_time_p90_s", Unit::Seconds, Better::Lower),
                ("response_time_p99_s", Unit::Seconds, Better::Lower),
                ("good_share", share, Better::Higher),
            ];
            for (name, _) in members(parameters) {
                all.extend(own.clone().map(|(id, unit, better)| {
                    let id = format!("{name}:{id}");
                    MetricSpec::new(&id, &id, unit, better)
                }));
            }
            return all;
        }
        match workload {
            "rr" => vec![
                metric("response_time_p50_s", Unit::Seconds, Better::Lower).primary(),
                metric("response_time_p99_s", Unit::Seconds, Better::Lower),
                metric("throughput_ops", Unit::OperationsPerSecond, Better::Higher),
            ],
            "java" => vec![
                metric("operations_per_s", Unit::OperationsPerSecond, Better::Higher).primary(),
                metric("response_time_p50_s", Unit::Seconds, Better::Lower),
            ],
            "social" => vec![
                metric("operations", Unit::Count, Better::Higher).primary(),
                metric("response_time_p90_s", Unit::Seconds, Better::Lower),
            ],
            _ if workload.starts_with("web-") => vec![
                metric("response_time_p50_s", Unit::Seconds, Better::Lower).primary(),
                metric("good_share", Unit::Other("share".to_owned()), Better::Higher),
                metric("tolerable_share", Unit::Other("share".to_owned()), Better::Higher),
            ],
            "stream" => vec![metric("goodput_bits", Unit::BitsPerSecond, Better::Higher).primary()],
            _ => vec![metric("operations", Unit::Count, Better::Higher).primary()],
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
        let one = GuestTraits { touches, services: workload == "social", ..GuestTraits::of(guest) };
        Traits {
            several_guests: workload == "store",
            several_instances: can("social", "one-instance-only"),
            repeats: can("social", "one-load-only") || workload == "rr",
            density: can("java", "one-guest-only") || !tile.is_empty(),
            calibrated: workload == "java" && parameters["finds-load"] == Json::Bool(true),
            guests: if tile.is_empty() { vec![one] } else { tile },
            ..Traits::of(guest)
        }
    }

    fn merging_refusal(&self, platform: &str, _: &Json) -> Option<Refusal> {
        let refusal = || Refusal::new("its guests' memory is not the host's to merge", "use another");
        ["null", "lxc", "far"].contains(&platform).then(refusal)
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

    fn footprint(&self, asked: &WorkloadAsked<'_>) -> Footprint {
        let WorkloadAsked { name: workload, parameters, load, instances, .. } = *asked;
        let each = |of: ByteSize, count: u32| Footprint { kept: ByteSize(0), guest: ByteSize(of.0 * u64::from(count)) };
        if workload == "social" {
            return each(DATABASE, instances);
        }
        if workload.starts_with("web-") {
            return each(FILES_PER_SESSION, load.connections());
        }
        let data = || parameters["db-size"].as_str()?.parse::<ByteSize>().ok();
        let kept = if workload == "store" { data() } else { None }.unwrap_or_default();
        Footprint { kept, guest: ByteSize(kept.0 * 2) }
    }

    fn is_outside(&self, platform: &str) -> bool {
        platform == "far"
    }

    fn start_estimate(&self, platform: &str) -> Span {
        Span::from_millis(if platform == "native" { 10 } else { 40 })
    }
}
