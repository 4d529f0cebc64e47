//! What vSphere says of a machine and of the host that carries it. Names of machines and serial numbers are not read.

use serde_json::{Map, Value};
use tare_model::environment::{Section, UNREPORTED};
use tare_model::guest::{GuestSpec, ParityRow};
use tare_model::units::ByteSize;

use super::Vsphere;
use super::govc::{greet, properties};
use super::machine::Machine;
use crate::parity;
use crate::ssh::destination::Failed;

/// Properties of a machine.
const OF_MACHINE: [&str; 11] = [
    "config.hardware.numCPU",
    "config.hardware.numCoresPerSocket",
    "config.hardware.memoryMB",
    "config.cpuAllocation",
    "config.memoryAllocation",
    "config.version",
    "config.guestFullName",
    "config.latencySensitivity",
    "guest.toolsVersion",
    "guest.toolsRunningStatus",
    "runtime.host",
];
/// Properties of a host.
const OF_HOST: [&str; 4] = [
    "summary.hardware",
    "summary.config.product",
    "config.hyperThread.active",
    "hardware.cpuPowerManagementInfo.currentPolicy",
];

/// What is known of a machine and of its host.
#[derive(Debug)]
pub(in crate::ssh) struct Facts {
    /// For the disclosure.
    pub sections: Vec<Section>,
    /// What it was given, beside what was asked.
    pub rows: Vec<ParityRow>,
    /// What vSphere calls its host, such as `HostSystem:host-21`.
    pub host: Option<String>,
}

impl Facts {
    /// Asks for them.
    ///
    /// # Errors
    /// When vSphere does not answer.
    pub(in crate::ssh) fn read(
        of: &Vsphere,
        machine: &Machine,
        spec: &GuestSpec,
        run_id: &str,
    ) -> Result<Self, Failed> {
        let url = machine.url.as_deref();
        let manager = greet(of, run_id)?;
        let own = properties(url, run_id, &machine.object, &OF_MACHINE)?;
        let host = own
            .get("runtime.host")
            .and_then(|host| Some(format!("{}:{}", host.get("type")?.as_str()?, host.get("value")?.as_str()?)));
        // A user who may act on the machine need not see its host.
        let carrier = host.as_ref().and_then(|host| properties(url, run_id, host, &OF_HOST).ok()).unwrap_or_default();
        let sections = vec![of_host(&manager, &carrier), of_machine(&own)];
        Ok(Self { sections, rows: rows(&own, spec), host })
    }
}

fn fact(name: &str, value: Option<String>) -> (String, String) {
    (name.to_owned(), value.unwrap_or_else(|| UNREPORTED.to_owned()))
}

/// The value of a property, or of a field below it.
fn at<'a>(of: &'a Map<String, Value>, property: &str, below: &str) -> Option<&'a Value> {
    of.get(property)?.pointer(below)
}

fn text(of: &Map<String, Value>, property: &str, below: &str) -> Option<String> {
    let value = at(of, property, below)?;
    value.as_str().map(|text| tare_model::text::readable(text.trim())).or_else(|| value.as_i64().map(|n| n.to_string()))
}

fn number(of: &Map<String, Value>, property: &str, below: &str) -> Option<u64> {
    at(of, property, below)?.as_u64()
}

fn of_host(manager: &str, host: &Map<String, Value>) -> Section {
    let hardware = |below: &str| text(host, "summary.hardware", below);
    let model = || Some(format!("{} {}", hardware("/vendor")?, hardware("/model")?));
    let cores = || {
        let [sockets, cores, threads] = ["/numCpuPkgs", "/numCpuCores", "/numCpuThreads"].map(hardware);
        Some(format!("{} cores, {} threads in {} sockets", cores?, threads?, sockets?))
    };
    let threads = at(host, "config.hyperThread.active", "").and_then(Value::as_bool);
    let facts = vec![
        fact("vSphere, asked at", Some(manager.to_owned())),
        fact("host", text(host, "summary.config.product", "/fullName")),
        fact("model", model()),
        fact("CPU", hardware("/cpuModel").map(|model| model.split_whitespace().collect::<Vec<_>>().join(" "))),
        fact("CPU clock", hardware("/cpuMhz").map(|mhz| format!("{mhz} MHz"))),
        fact("CPU cores", cores()),
        fact("hyper-threading", threads.map(|active| if active { "active" } else { "not active" }.to_owned())),
        fact("CPU power policy", text(host, "hardware.cpuPowerManagementInfo.currentPolicy", "")),
        fact("memory", number(host, "summary.hardware", "/memorySize").map(|bytes| ByteSize(bytes).to_string())),
    ];
    Section { title: "Hypervisor".to_owned(), facts }
}

/// Reservation, limit and shares of a resource.
fn allocation(own: &Map<String, Value>, property: &str, unit: &str) -> Option<String> {
    let field = |below: &str| at(own, property, below).and_then(Value::as_i64);
    let limit = match field("/limit") {
        Some(limit) if limit >= 0 => format!("limit {limit} {unit}"),
        _ => "no limit".to_owned(),
    };
    let shares = text(own, property, "/shares/level").unwrap_or_else(|| UNREPORTED.to_owned());
    let reservation =
        field("/reservation").map_or_else(|| UNREPORTED.to_owned(), |reserved| format!("{reserved} {unit}"));
    own.contains_key(property).then(|| format!("reservation {reservation}, {limit}, shares {shares}"))
}

fn of_machine(own: &Map<String, Value>) -> Section {
    let cpus = text(own, "config.hardware.numCPU", "").map(|cpus| {
        let cores = text(own, "config.hardware.numCoresPerSocket", "");
        cores.map_or_else(|| cpus.clone(), |cores| format!("{cpus}, {cores} a socket"))
    });
    let memory = number(own, "config.hardware.memoryMB", "").map(|mib| format!("{mib} MiB"));
    let tools = || {
        let version = text(own, "guest.toolsVersion", "").filter(|version| version != "0");
        let running = text(own, "guest.toolsRunningStatus", "")?;
        let running = if running == "guestToolsRunning" { "running" } else { "not running" };
        Some(version.map_or_else(|| running.to_owned(), |version| format!("{version}, {running}")))
    };
    let facts = vec![
        fact("CPUs", cpus),
        fact("memory", memory),
        fact("CPU share", allocation(own, "config.cpuAllocation", "MHz")),
        fact("memory share", allocation(own, "config.memoryAllocation", "MiB")),
        fact("latency sensitivity", text(own, "config.latencySensitivity", "/level")),
        fact("hardware version", text(own, "config.version", "")),
        fact("guest, as configured", text(own, "config.guestFullName", "")),
        fact("VMware Tools", tools()),
    ];
    Section { title: "Virtual machine, as its hypervisor has it".to_owned(), facts }
}

/// What the machine was given, beside what was asked; and limits, for a machine under one has less than its size says.
fn rows(own: &Map<String, Value>, spec: &GuestSpec) -> Vec<ParityRow> {
    let memory = number(own, "config.hardware.memoryMB", "").map(|mib| ByteSize(mib << 20));
    let mut rows = vec![
        parity::row(
            "cpus, by its hypervisor",
            spec.size.cpus.to_string(),
            number(own, "config.hardware.numCPU", "").map(|cpus| cpus.to_string()),
            "virtual CPUs of its configuration; tare sets none",
        ),
        ParityRow {
            resource: "memory, by its hypervisor".into(),
            asked: spec.size.memory.to_string(),
            granted: memory.map(|bytes| bytes.to_string()),
            equal: memory.is_some_and(|bytes| bytes == spec.size.memory),
            note: "memory of its configuration; tare sets none".into(),
        },
    ];
    for (resource, property, unit) in [
        ("cpu limit, by its hypervisor", "config.cpuAllocation", "MHz"),
        ("memory limit, by its hypervisor", "config.memoryAllocation", "MiB"),
    ] {
        let limit = number(own, property, "/limit");
        let harmless =
            property == "config.memoryAllocation" && limit.is_some_and(|mib| mib << 20 >= spec.size.memory.0);
        if let Some(limit) = limit.filter(|_| !harmless) {
            let note = "the hypervisor gives no more, whatever the size says: take the limit away, or disclose it";
            rows.push(parity::row(resource, "none".to_owned(), Some(format!("{limit} {unit}")), note));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tare_model::guest::GuestSize;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("{value}") };
        map
    }

    #[test]
    fn a_machine_under_a_limit_or_of_another_size_is_reported() {
        let own = |cpus: u64, mib: u64, cpu_limit: i64, memory_limit: i64| {
            map(json!({
                "config.hardware.numCPU": cpus, "config.hardware.memoryMB": mib,
                "config.cpuAllocation": {"reservation": 0, "limit": cpu_limit, "shares": {"level": "normal"}},
                "config.memoryAllocation": {"reservation": 512, "limit": memory_limit},
            }))
        };
        let size = GuestSize { cpus: 2, memory: ByteSize(1 << 30) };
        let spec = GuestSpec { cpu_set: vec![0], ..GuestSpec::new("g", size) };
        let equal = |own| rows(&own, &spec).iter().map(|row| row.equal).collect::<Vec<_>>();
        assert_eq!(equal(own(2, 1024, -1, -1)), [true, true]);
        assert_eq!(equal(own(2, 1024, -1, 2048)), [true, true]);
        assert_eq!(equal(own(4, 1000, 2000, 512)), [false, false, false, false]);
        assert_eq!(equal(Map::new()), [false, false], "not reported");
        let section = of_machine(&own(2, 1024, 2000, -1));
        let of = |name: &str| section.facts.iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(of("CPU share"), "reservation 0 MHz, limit 2000 MHz, shares normal");
        assert_eq!(of("memory share"), format!("reservation 512 MiB, no limit, shares {UNREPORTED}"));
        assert_eq!(of("VMware Tools"), UNREPORTED);
    }

    #[test]
    fn serial_numbers_of_the_host_are_not_read() {
        let host = map(json!({"summary.hardware": {
            "vendor": "Dell Inc.", "model": "PowerEdge R650", "uuid": "4c4c4544", "cpuModel": "Intel(R) Xeon(R)  Gold",
            "cpuMhz": 2594, "numCpuPkgs": 2, "numCpuCores": 48, "numCpuThreads": 96, "memorySize": 1_u64 << 40,
            "otherIdentifyingInfo": [{"identifierValue": "SN123"}],
        }}));
        let shown = format!("{:?}", of_host("VMware vCenter Server 8.0.2 build-22617221", &host));
        for expected in ["Dell Inc. PowerEdge R650", "Xeon(R) Gold", "48 cores, 96 threads in 2 sockets", "1TiB"] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        assert!(!shown.contains("SN123") && !shown.contains("4c4c4544"), "{shown}");
    }
}
