//! Parameters of `java`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::hold::GuestMemory;
use tare_model::load::{Arrivals, LoadModel};
use tare_model::{ByteSize, Span};

use crate::checks::program_in_guest;
use crate::entry::read;
use crate::jvm::{self, COLLECTOR, Collector, HEAP, name_of};

/// Parameters of `java`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// What the guest does with the memory that it was promised, beside what the application touches: `lazy`: nothing;
    /// `zeroed`: its system writes zeros to all of it at start; `filled-same`, `filled-distinct`: it is filled with data that
    /// are the same in every guest, or not.
    pub memory: GuestMemory,
    /// Largest heap of the virtual machine (`-Xmx`).
    pub heap: ByteSize,
    /// Share of the guest's CPUs (0.05 to 0.95) that a guest alone on the host is to use: before the first trial the rate at
    /// which it does is found in a guest of the baseline, and then offered to every guest. Absent: what `load` says; with a
    /// closed loop the application works as fast as it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.05, max = 0.95))]
    pub cpu_share: Option<f64>,
    /// The collector of garbage; `default`: the virtual machine chooses by the guest's size.
    pub collector: Collector,
    /// Whether the whole heap is touched at start (`-Xms` as `-Xmx`, `-XX:+AlwaysPreTouch`).
    pub pre_touch: bool,
    /// Whether equal strings share their characters (`-XX:+UseStringDeduplication`): with `g1`, from Java 18 with others too.
    pub string_deduplication: bool,
    /// Whether the virtual machine's own classes are mapped from its archive (`-Xshare:auto`), or read and laid out anew
    /// (`-Xshare:off`).
    pub class_data_sharing: bool,
    /// Whether the virtual machine asks for transparent huge pages (`-XX:+UseTransparentHugePages`).
    pub huge_pages: bool,
    /// Whether the application's data are the same in every guest.
    pub data: Data,
    /// Memory that is left free for the guest's system and the application's growth, where all other memory is touched
    /// (`memory`).
    pub room: ByteSize,
    /// Another `java` program, by its path in the guest; absent: the runtime that comes with the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub java: Option<String>,
    /// Further options of the virtual machine, such as `-Xss512k`.
    pub options: Vec<String>,
}

/// Whether the application's data are the same in every guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// Each guest has data of its own.
    #[default]
    Distinct,
    /// All guests begin with the same data.
    Same,
}

const MIB: u64 = 1 << 20;

impl Default for Parameters {
    fn default() -> Self {
        Self {
            memory: GuestMemory::Lazy,
            heap: ByteSize(1550 * MIB),
            cpu_share: None,
            collector: Collector::Default,
            pre_touch: false,
            string_deduplication: false,
            class_data_sharing: true,
            huge_pages: false,
            data: Data::Distinct,
            room: ByteSize(256 * MIB),
            java: None,
            options: Vec::new(),
        }
    }
}

/// The share of its CPUs that a guest alone may be asked to use. Below, it cannot be distinguished from an idle guest; above,
/// the rate no longer decides.
const CPU_SHARE: std::ops::RangeInclusive<f64> = 0.05..=0.95;
/// Live heap of a data group, about; the application reports the measured one.
pub(super) const GROUP_BYTES: u64 = 25 * MIB;
/// Heap that a data group takes at least: a third of a heap is for new objects, so that half as much again as is live is full
/// at once.
const GROUP_HEAP_BYTES: u64 = 2 * GROUP_BYTES;
/// More data groups than any guest has memory for are a slip.
const GROUPS_MAX: u32 = 1000;
/// What the virtual machine takes beside its heap, bytes: its own code, compiled code, classes, stacks, and the collector's
/// tables, a 32nd of the heap.
const fn beside_heap(heap: u64) -> u64 {
    128 * MIB + heap / 32
}
/// What it touches of that at start.
const TOUCHED_BESIDE_HEAP: u64 = 96 * MIB;
/// The agent and what else there is in every guest.
const AGENT_BYTES: u64 = 32 * MIB;

/// The parameters with every default filled in, or what is wrong with them.
pub(super) fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    if let Some(share) = read.cpu_share.filter(|share| !CPU_SHARE.contains(share)) {
        return Err(FieldError::new(&["cpu-share"], format!("{share} is not between 0.05 and 0.95"))
            .help("write a share of the guest's CPUs; the published study used 0.5 to 0.6"));
    }
    if read.heap.0 < GROUP_HEAP_BYTES {
        let why =
            format!("a heap of {} does not hold one data group, which takes {}", read.heap, ByteSize(GROUP_HEAP_BYTES));
        return Err(FieldError::new(&["heap"], why).help("the published study used 1550MiB for six data groups"));
    }
    if read.string_deduplication && read.collector == Collector::Default {
        let why = "the virtual machine does it only with a collector that can, and it chooses the collector by itself";
        return Err(FieldError::new(&["string-deduplication"], why).help("write collector = \"g1\" as well"));
    }
    program_in_guest("java", read.java.as_deref())?;
    options(&read)?;
    Ok(read)
}

/// Options that a parameter of this workload alone stands for: the name or its beginning, and the parameter.
const OWN: [(&str, &str); 4] = [
    ("-Xshare", "class-data-sharing"),
    ("AlwaysPreTouch", "pre-touch"),
    ("UseStringDeduplication", "string-deduplication"),
    ("UseTransparentHugePages", "huge-pages"),
];

fn options(read: &Parameters) -> Result<(), FieldError> {
    jvm::check_options("options", &read.options, &[&HEAP, &COLLECTOR, &OWN])?;
    let begins = |option: &String| option.starts_with("-Xms") || name_of(option).starts_with("InitialHeapSize");
    match read.options.iter().position(begins).filter(|_| read.pre_touch) {
        Some(number) => {
            let why = format!("`{}` and `pre-touch` do not go together", read.options[number]);
            Err(FieldError::new(&["options", &number.to_string()], why).help("`pre-touch` begins with the whole heap"))
        }
        None => Ok(()),
    }
}

/// What is wrong with the parameters for this load, or with the load: `load` in the path.
pub(super) fn with_load(parameters: &Parameters, load: &LoadModel) -> Result<(), FieldError> {
    let kind = match load {
        LoadModel::Closed { .. } => ["load", "closed", "clients"],
        LoadModel::Open { .. } => ["load", "open", "connections"],
    };
    let groups = load.connections();
    if !(1..=GROUPS_MAX).contains(&groups) {
        return Err(FieldError::new(&kind, format!("{groups} data groups are not between 1 and {GROUPS_MAX}"))
            .help("each is a data group of about 25 MB with a thread; the published study used 6"));
    }
    match load {
        LoadModel::Closed { think_time, .. } if *think_time != Span::ZERO => {
            let help = "write `cpu-share` in the parameters or an open load: both set a rate";
            Err(FieldError::new(&["load", "closed", "think-time"], "the application's threads do not think").help(help))
        }
        LoadModel::Open { .. } if parameters.cpu_share.is_some() => {
            let why = "`cpu-share` finds the rate, and the load gives one";
            Err(FieldError::new(&["cpu-share"], why)
                .help("leave `cpu-share` out, or write load = { closed = { clients = 6 } }"))
        }
        LoadModel::Open { arrivals: Arrivals::Uniform, .. } => {
            let why = "the application's starts are spread as independent users make them";
            Err(FieldError::new(&["load", "open", "arrivals"], why).help("write \"poisson\", or leave it out"))
        }
        _ => {
            let least = u64::from(groups) * GROUP_HEAP_BYTES;
            if parameters.heap.0 >= least {
                return Ok(());
            }
            let why = format!(
                "a heap of {} does not hold {groups} data groups, which take {}",
                parameters.heap,
                ByteSize(least)
            );
            Err(FieldError::new(&["heap"], why).help("give it more, or offer load to fewer data groups"))
        }
    }
}

/// So many bytes for people.
fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(MIB))
}

impl Parameters {
    /// Whether guests of this size are large enough.
    pub(super) fn fit(&self, guest: &GuestSize) -> Result<(), FieldError> {
        let beside = beside_heap(self.heap.0) + AGENT_BYTES;
        let room = if self.memory.is_touched() { self.room.0 } else { 0 };
        if self.heap.0.saturating_add(beside).saturating_add(room) <= guest.memory.0 {
            return Ok(());
        }
        let with_room = if room > 0 { format!(", and {} of `room`", mib(room)) } else { String::new() };
        let why = format!(
            "a heap of {}, {} that the virtual machine takes beside it{with_room} do not fit into a guest of {}",
            mib(self.heap.0),
            mib(beside),
            mib(guest.memory.0)
        );
        let most = guest.memory.0.saturating_sub(room + AGENT_BYTES + 128 * MIB) / 33 * 32;
        let help = if most >= GROUP_HEAP_BYTES {
            format!("write a heap of {}MiB at most, or ask for larger guests", most / MIB)
        } else {
            "ask for larger guests".to_owned()
        };
        Err(FieldError::new(&["heap"], why).help(help))
    }

    /// What a guest touches of its memory when it starts, bytes.
    pub(super) fn touched(&self, groups: u32, guest: &GuestSize) -> u64 {
        if self.memory.is_touched() {
            return guest.memory.0;
        }
        let heap = if self.pre_touch {
            self.heap.0
        } else {
            // Live data, and what is allocated until the first collections. Of six groups 300 to 360 MB were resident after
            // some seconds of load, all in all.
            (3 * u64::from(groups) * GROUP_BYTES / 2 + 64 * MIB).min(self.heap.0)
        };
        (heap + TOUCHED_BESIDE_HEAP + AGENT_BYTES).min(guest.memory.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tare_model::units::Rate;

    const SIX: LoadModel = LoadModel::Closed { clients: 6, think_time: Span::ZERO };
    const PUBLISHED: GuestSize = GuestSize { cpus: 1, memory: ByteSize(3 << 30) };

    fn open(connections: u32, arrivals: Arrivals) -> LoadModel {
        LoadModel::Open { rate: Rate(100.0), arrivals, connections }
    }

    #[test]
    fn the_defaults_are_those_of_the_published_study_and_fit_its_guests() {
        let read = checked(&json!({})).unwrap();
        assert_eq!((read.heap, read.memory, read.cpu_share), (ByteSize(1550 * MIB), GuestMemory::Lazy, None));
        assert!(read.class_data_sharing && !read.huge_pages && !read.pre_touch);
        with_load(&read, &SIX).unwrap();
        read.fit(&PUBLISHED).unwrap();
        let normal = serde_json::to_value(&read).unwrap();
        assert_eq!((normal["heap"].as_str(), normal["memory"].as_str()), (Some("1550MiB"), Some("lazy")));
        assert_eq!(checked(&normal).unwrap(), read);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        for (parameters, path) in [
            (json!({"memory": "full"}), vec!["memory"]),
            (json!({"heap": "16MiB"}), vec!["heap"]),
            (json!({"heap": 1550}), vec!["heap"]),
            (json!({"cpu-share": 0.04}), vec!["cpu-share"]),
            (json!({"cpu-share": 1.0}), vec!["cpu-share"]),
            (json!({"cpu-share": "55%"}), vec!["cpu-share"]),
            (json!({"collector": "zgc"}), vec!["collector"]),
            (json!({"string-deduplication": true}), vec!["string-deduplication"]),
            (json!({"java": "bin/java"}), vec!["java"]),
            (json!({"data": "random"}), vec!["data"]),
            (json!({"room": "1"}), vec!["room"]),
            (json!({"options": ["-Xss512k", "Main"]}), vec!["options", "1"]),
            (json!({"options": ["-jar"]}), vec!["options", "0"]),
            (json!({"options": ["--class-path=/x"]}), vec!["options", "0"]),
            (json!({"options": ["-Xmx1g"]}), vec!["options", "0"]),
            (json!({"options": ["-XX:+UseG1GC"]}), vec!["options", "0"]),
            (json!({"options": ["-XX:-UseTransparentHugePages"]}), vec!["options", "0"]),
            (json!({"pre-touch": true, "options": ["-Xms1g"]}), vec!["options", "0"]),
        ] {
            let error = checked(&parameters).expect_err(&parameters.to_string());
            assert_eq!(error.path, path, "{parameters}");
        }
        for fine in [
            json!({"options": ["-Xss512k", "-Xms1g", "-XX:+UseZGC", "-ea", "-Dx=y", "--add-opens=a/b=ALL-UNNAMED", "-Xlog:gc"]}),
            json!({"string-deduplication": true, "collector": "g1"}),
            json!({"string-deduplication": true, "collector": "serial", "java": "/opt/java-21/bin/java"}),
            json!({"cpu-share": 0.05}),
        ] {
            checked(&fine).unwrap();
        }
    }

    #[test]
    fn a_load_that_the_application_cannot_offer_is_refused_by_its_field() {
        let share = checked(&json!({"cpu-share": 0.5})).unwrap();
        let small = checked(&json!({"heap": "200MiB"})).unwrap();
        let plain = Parameters::default();
        let thinking = LoadModel::Closed { clients: 6, think_time: Span::from_millis(1) };
        for (parameters, load, path) in [
            (&plain, thinking, vec!["load", "closed", "think-time"]),
            (&plain, LoadModel::Closed { clients: 0, think_time: Span::ZERO }, vec!["load", "closed", "clients"]),
            (&plain, open(5000, Arrivals::Poisson), vec!["load", "open", "connections"]),
            (&plain, open(6, Arrivals::Uniform), vec!["load", "open", "arrivals"]),
            (&share, open(6, Arrivals::Poisson), vec!["cpu-share"]),
            (&small, SIX, vec!["heap"]),
        ] {
            assert_eq!(with_load(parameters, &load).unwrap_err().path, path, "{load:?}");
        }
        with_load(&share, &SIX).unwrap();
        with_load(&plain, &open(6, Arrivals::Poisson)).unwrap();
    }

    #[test]
    fn a_heap_that_leaves_no_room_is_refused_with_figures_and_a_heap_that_fits() {
        let small = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
        let error = Parameters::default().fit(&small).unwrap_err();
        assert_eq!(error.path, ["heap"]);
        assert!(error.message.contains("1550 MiB") && error.message.contains("1024 MiB"), "{error}");
        let help = error.help.unwrap();
        let most: u64 = help.split("heap of ").nth(1).unwrap().split("MiB").next().unwrap().parse().unwrap();
        let with = |heap| Parameters { heap: ByteSize(heap * MIB), ..Parameters::default() };
        with(most).fit(&small).unwrap();
        assert!(with(most + 4).fit(&small).is_err(), "{most} is the most");
        let touched = Parameters { memory: GuestMemory::Zeroed, ..with(most) };
        assert!(touched.fit(&small).unwrap_err().message.contains("256 MiB of `room`"));
    }

    #[test]
    fn a_guest_touches_all_or_what_its_application_does() {
        let of = |memory, pre_touch| Parameters { memory, pre_touch, ..Parameters::default() }.touched(6, &PUBLISHED);
        assert_eq!(of(GuestMemory::Zeroed, false), 3 << 30);
        let lazy = of(GuestMemory::Lazy, false);
        assert!((350 * MIB..500 * MIB).contains(&lazy), "{lazy}");
        assert!(of(GuestMemory::Lazy, true) > 1550 * MIB);
    }
}
