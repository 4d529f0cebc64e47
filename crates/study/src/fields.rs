//! Every field of a study file: its name, what it means, an example. The walk over the file, its messages
//! and the JSON schema for editors all read these tables.

/// One field of a table of the study file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The key.
    pub(crate) key: &'static str,
    /// What it means, in one or two sentences.
    pub(crate) doc: &'static str,
    /// A value that would be right, as TOML.
    pub(crate) example: &'static str,
    /// Whether it has to be there.
    pub(crate) required: bool,
}

const fn required(key: &'static str, example: &'static str, doc: &'static str) -> Field {
    Field { key, doc, example, required: true }
}

const fn optional(key: &'static str, example: &'static str, doc: &'static str) -> Field {
    Field { key, doc, example, required: false }
}

/// The file itself.
pub(crate) const STUDY: &[Field] = &[
    required("schema", "1", "Schema of this file. This tare reads 1."),
    required(
        "name",
        "\"quickstart\"",
        "Short name of the study, also of its run folders: lower case letters, digits, `-`.",
    ),
    required(
        "question",
        "\"How much slower is a container?\"",
        "What the study answers, in your words; the report opens with it.",
    ),
    required("baseline", "\"native\"", "The arm that all others are compared with."),
    required(
        "blocks",
        "6",
        "How often every arm of every case runs, each time in a fresh guest. With 6 or more, an interval of 95 % needs no assumption about the shape of the noise.",
    ),
    optional("seed", "1", "Seed of the random order of cases and arms, and of random arrivals. Default 1."),
    optional(
        "noise-floor",
        "true",
        "Runs the baseline a second time in each case of each block, as an arm of its own, so that the report can say how large a difference mere noise makes. Default true.",
    ),
    optional(
        "skip-unavailable",
        "true",
        "Leaves out arms whose platform cannot be used on the host, and tells which and why in plan and report, instead of refusing the run. The baseline and one more arm must remain. Default false.",
    ),
    optional(
        "trust-domain",
        "\"this team's guests alone\"",
        "To whom all belongs that runs on the host while an arm merges memory, in your words; without it no arm may merge. Memory that is merged can be read by timing: whoever shares pages with others can learn what they hold. The report repeats it.",
    ),
    required(
        "arms",
        "{ native = { platform = \"native\" } }",
        "The arms: what is compared. Each is a table `[arms.ID]`.",
    ),
    optional(
        "score",
        "{ banking = 120, ecommerce = 114 }",
        "One figure over several cases with `capacity`: 100 times the geometric mean of each one's capacity over the reference that is given here.",
    ),
    optional(
        "guest",
        "{ cpus = 1, memory = \"1GiB\" }",
        "Size of the measured guest, for every case that gives no other.",
    ),
    optional(
        "phases",
        "{ warm-up = \"300ms\", steady-state = \"2s\" }",
        "Phases of every trial, for every case that gives no other.",
    ),
    optional("lab", "{ mtu = 1500 }", "The lab, the same for every arm."),
    optional(
        "hosts",
        "{ sut = \"local\", clients = [\"local\"] }",
        "Which hosts take part: where the guests are, and where load comes from.",
    ),
    required(
        "cases",
        "{ idle = { workload = \"rr\" } }",
        "The cases: the situations in which every arm is measured. Each is a table `[cases.ID]`.",
    ),
];

/// `[arms.ID]`.
pub(crate) const ARM: &[Field] = &[
    optional("label", "\"native\"", "Name of the arm in the report. Default: its id."),
    required("platform", "\"native\"", "What provides the guests; `tare list` names the platforms."),
    optional("options", "{}", "Options of the platform, checked by the platform."),
    optional(
        "merging",
        "\"tare\"",
        "Merging of equal pages of the guests' memory (KSM) while this arm is measured, by the name of a rule or as a table with its fields: `fixed`, `published-script`, `ksmtuned`, `advisor`, `tare`. Needs `trust-domain`. `off`, as if left out: merging is stopped where another arm of the study merges, else the host is left as found. What was found is put back after each trial.",
    ),
    optional(
        "huge-pages",
        "\"never\"",
        "Where the host uses transparent huge pages while this arm is measured: `always`, `madvise` or `never`. Huge pages are not merged. Put back after each trial. Default: as found.",
    ),
];

/// `merging` of an arm as a table.
pub(crate) const MERGING: &[Field] = &[
    required(
        "rule",
        "\"tare\"",
        "Who sets how fast the kernel looks for equal pages: `fixed` (nobody: the values stay), `published-script` (the script of the study of 2009), `ksmtuned` (today's ksmtuned), `advisor` (the kernel's own, from 6.8), `tare` (fast while memory is short and looking pays, at rest once nothing more is gained), or `off`.",
    ),
    optional("pages-to-scan", "8000", "Pages looked at in one go. Only `fixed`. Default 100, the kernel's."),
    optional(
        "sleep",
        "\"10ms\"",
        "Pause between two goes, whole milliseconds. Only `fixed`. Default 20ms, the kernel's.",
    ),
    optional(
        "target-scan-time",
        "\"200s\"",
        "How long one pass over all memory is to take, whole seconds. Only `advisor`. Default 200s, the kernel's.",
    ),
    optional(
        "max-cpu",
        "70",
        "Most CPU that looking may take: with `advisor` a whole percentage of one CPU (default 70, the kernel's), with `tare` a share of one CPU, 0.01 to 1 (default 0.7).",
    ),
    optional(
        "free-goal",
        "0.2",
        "Share of the host's memory that is to stay available, 0.01 to 1: below it looking is in haste. Only `tare`. Default 0.2.",
    ),
    optional(
        "zero-pages",
        "true",
        "Whether empty pages are merged with the kernel's own page of zeros. Default false, with every rule.",
    ),
];

/// `[guest]` and `guest` of a case.
pub(crate) const GUEST: &[Field] = &[
    required("cpus", "1", "CPUs of the guest: its CPU quota, and the virtual CPUs of a virtual machine."),
    required("memory", "\"1GiB\"", "Memory of the guest: its hard limit, and the memory of a virtual machine."),
    optional(
        "seccomp",
        "\"default\"",
        "The filter of system calls of guests that share the host's kernel, the same on every arm: `default` (what container engines allow by default, without ptrace, io_uring and NUMA policies; programs of 32 bits are refused) or `off`. Default `default`.",
    ),
];

/// `[phases]` and `phases` of a case.
pub(crate) const PHASES: &[Field] = &[
    optional(
        "warm-up",
        "\"300ms\"",
        "Full load before anything counts, so that caches and lazily built state are there. Default 0s.",
    ),
    optional("ramp-up", "\"1s\"", "Clients join one after another, evenly over this time. Default 0s."),
    required("steady-state", "\"2s\"", "The measured time."),
    optional(
        "ramp-down",
        "\"100ms\"",
        "Load goes on unmeasured, so that no client's absence flatters the last operations. Default 0s.",
    ),
];

/// `[lab]`.
pub(crate) const LAB: &[Field] = &[
    optional("mtu", "1500", "MTU of every link, bytes. Default 1500."),
    optional("offloads", "true", "Whether segmentation and receive offloads of the links are on. Default true."),
    optional(
        "congestion-control",
        "\"cubic\"",
        "TCP congestion control at both ends. Default: the host's own, which is recorded.",
    ),
    optional(
        "placement",
        "\"separate\"",
        "Which CPUs driver and guests get: `separate` (CPUs of their own), `same-cpu`, `unpinned`, or `{ client-cpus = \"0\", guest-cpus = \"1-3\" }`. It changes results by a factor: it is recorded and printed. Default `separate`.",
    ),
    optional("sample-interval", "\"200ms\"", "How often the probes sample. Default 200ms."),
];

/// `lab.placement` as a table.
pub(crate) const PLACEMENT: &[Field] = &[
    required("client-cpus", "\"0\"", "CPUs of the driver, as a list such as `0,2-3`."),
    required("guest-cpus", "\"1-3\"", "CPUs of all guests, as a list such as `0,2-3`."),
];

/// `[hosts]`.
pub(crate) const HOSTS: &[Field] = &[
    optional(
        "sut",
        "\"local\"",
        "The host that carries the guests: `local`. Guests elsewhere are arms on a platform that reaches them.",
    ),
    optional(
        "clients",
        "[\"local\"]",
        "The host that offers load, exactly one: `\"local\"`, or a machine as `{ PLATFORM = { its options } }`, by a platform that reaches machines elsewhere. Such a client cannot reach guests on the lab's network, inside this host.",
    ),
];

/// `[cases.ID]`.
pub(crate) const CASE: &[Field] = &[
    optional("label", "\"idle host, idle guest\"", "Name of the case in the report. Default: its id."),
    required("workload", "\"rr\"", "What runs; `tare list` names the workloads."),
    optional(
        "parameters",
        "{ request = \"128B\", response = \"128B\" }",
        "Parameters of the workload, checked by the workload.",
    ),
    optional("load", "{ closed = { clients = 1 } }", "How load is offered. Default: closed loop, one client."),
    optional(
        "loads",
        "{ low = { closed = { clients = 1 } }, high = { closed = { clients = 8 } } }",
        "Several loads by name, each a case of its own: `ID@low`, `ID@high`. Instead of `load`.",
    ),
    optional(
        "capacity",
        "{ most = 4000 }",
        "Looks for the largest load at which every objective in `qos` is met: each load is tried in a fresh instance, doubled until one misses, then the distance is halved, then what is found must hold again. `load` then says only of which kind it is: `{ closed = {} }` (the default) or `{ open = { connections = 4 } }`.",
    ),
    optional(
        "load-from",
        "{ case = \"banking\", share = 0.8 }",
        "Offers a share of the capacity that the baseline has in another case: the median over its blocks, all of which run before. Instead of `load`.",
    ),
    optional(
        "cpu-target",
        "{ share = 0.4, most = 2000 }",
        "Looks for the load at which the guests' CPUs are busy to a share, in the guests that are then measured at it: load is changed while they stand. A trial that is further off than `tolerance` is invalid. `load` then says only of which kind it is: `{ closed = {} }` (the default) or `{ open = { connections = 4 } }`.",
    ),
    optional(
        "guests",
        "4",
        "How many guests are measured at one time, each with a server and drivers of its own. Default 1.",
    ),
    optional("drivers", "2", "Drivers a guest, each a process of its own that offers the whole load. Default 1."),
    optional(
        "instances",
        "4",
        "Instances of the application in each guest, each a process of its own; the clients of the load are dealt to them. 1 to 64, default 1.",
    ),
    optional("users-per-instance", "100", "Clients of a closed loop, so many for each instance. Instead of `load`."),
    optional(
        "sweep",
        "{ instances = [1, 2, 4] }",
        "Lists of values by field, such as `instances = [1, 2, 4]` or `parameters.request = [\"128B\", \"4KiB\"]`: a case for each combination, at most 500, whose id ends with the values (`users-1`, `users-2`). In `label` the value stands in the place of `{FIELD}`.",
    ),
    optional(
        "density",
        "{ guests = [1, 4, 8, 16] }",
        "Adds guests to the host one by one, and offers the load to each number of them in turn, until the host carries no more. Instead of `guests`, `drivers`, `neighbours` and `busy-target`.",
    ),
    optional(
        "neighbours",
        "{ count = 6, cpus = 4, memory = \"1GiB\" }",
        "Guests beside the measured one that keep the host busy, on the arm's own platform.",
    ),
    optional(
        "busy-target",
        "true",
        "Whether the measured guest itself runs a busy loop on each of its CPUs. Default false.",
    ),
    optional(
        "guest",
        "{ cpus = 4, memory = \"4GiB\" }",
        "Size of the measured guest; what is not given here is taken from `[guest]`.",
    ),
    optional(
        "phases",
        "{ steady-state = \"120s\" }",
        "Phases of a trial; what is not given here is taken from `[phases]`.",
    ),
    optional(
        "qos",
        "{ response_time_p99_s = \"5ms\" }",
        "Objectives by metric id: the largest value allowed where less is better, the smallest where more is.",
    ),
    optional(
        "held-out",
        "true",
        "Keeps the case's figures from the models of sizing: they predict the case from the others, and what was measured checks them. Default false.",
    ),
];

/// `density` of a case.
pub(crate) const DENSITY: &[Field] = &[
    required(
        "guests",
        "[1, 4, 8, 16]",
        "Numbers of guests at which load is offered, ascending, or `{ search = { most = 64 } }`. Whatever they are, load is also offered to the last number that stood.",
    ),
    optional(
        "reserve",
        "\"2GiB\"",
        "Memory of the host that must stay available: guests are no longer added before it is touched. Default: a tenth of the host's memory, 1GiB at least.",
    ),
    optional(
        "settle",
        "\"120s\"",
        "Longest wait for merging to settle, before a guest that does not fit yet and before each measurement. `--scale` does not change it. Default 120s.",
    ),
    optional(
        "rest",
        "\"15m\"",
        "Rest between the start of the last guest and load, at each number of guests. Default 0s.",
    ),
    optional(
        "pressure",
        "0.4",
        "Share of time, 0.01 to 1, in which some task of the host may wait for memory over 10 seconds (PSI `some avg10`) before the last guest is ended. Default 0.4.",
    ),
];

/// `density.guests` as a table.
pub(crate) const DENSITY_GUESTS: &[Field] = &[required(
    "search",
    "{ from = 1, most = 64 }",
    "Looks for the largest number that holds: each number half as large again as the one before, and where one does not hold, by halving the distance to the last that did.",
)];

/// `density.guests.search`.
pub(crate) const SEARCH: &[Field] = &[
    optional("from", "1", "The first number of guests. Default 1."),
    required("most", "64", "The largest number of guests that is tried."),
];

/// `capacity` of a case.
pub(crate) const CAPACITY: &[Field] = &[
    optional(
        "from",
        "50",
        "The first load that is tried: clients of a closed loop, or the rate of an open one (`\"100/s\"`). Where it does not hold, smaller ones are tried. Default: a sixteenth of `most`.",
    ),
    required("most", "4000", "The largest load that is tried."),
    optional(
        "precision",
        "0.05",
        "The search ends when the smallest load that missed an objective is at most so much larger than the largest that held, 0.001 to 1 (0.05: 5 %), or is the next client. Default 0.05.",
    ),
    optional(
        "iterations",
        "3",
        "Times that a load must hold, each in a fresh instance, to count; one miss refutes it. 2 to 20, default 3.",
    ),
];

/// `cpu-target` of a case.
pub(crate) const CPU_TARGET: &[Field] = &[
    required("share", "0.4", "The share of the guests' CPUs that is to be busy, as the host counts it, 0.01 to 0.99."),
    optional(
        "tolerance",
        "0.02",
        "How far the measured share may be from it, 0.001 to 0.2 (0.02: two points). Default 0.02.",
    ),
    optional(
        "from",
        "50",
        "The first load that is tried: clients of a closed loop, or the rate of an open one (`\"100/s\"`). Default: a sixteenth of `most`, and a client for each instance at least.",
    ),
    required("most", "2000", "The largest load that is tried."),
    optional(
        "step",
        "\"30s\"",
        "How long each load is measured while it is looked for, after clients have joined over a third of it. Default 30s.",
    ),
    optional("steps", "8", "Loads that are tried before the search is given up, 2 to 100. Default 8."),
];

/// `load-from` of a case.
pub(crate) const LOAD_FROM: &[Field] = &[
    required("case", "\"banking\"", "The case that looks for the capacity."),
    required("share", "0.8", "The share of its capacity that is offered, above 0, at most 2."),
];

/// `neighbours` of a case.
pub(crate) const NEIGHBOURS: &[Field] = &[
    required("count", "6", "How many guests beside the measured one."),
    required("cpus", "4", "CPUs of each; a busy loop runs on each of them."),
    required("memory", "\"1GiB\"", "Memory of each."),
];

/// `load`: exactly one of these.
pub(crate) const LOAD: &[Field] = &[
    optional(
        "closed",
        "{ clients = 1 }",
        "Closed loop: each client starts its next operation when the last one ended and it has thought.",
    ),
    optional(
        "open",
        "{ rate = \"1000/s\", connections = 4 }",
        "Open loop: operations start at times fixed in advance, whether or not earlier ones have ended.",
    ),
];

/// `load.closed`.
pub(crate) const CLOSED: &[Field] = &[
    required("clients", "1", "Simulated requesters, each with one connection and at most one operation outstanding."),
    optional("think-time", "\"0s\"", "Pause between the end of an operation and the start of the next. Default 0s."),
];

/// `load.open`.
pub(crate) const OPEN: &[Field] = &[
    required("rate", "\"1000/s\"", "Arrivals in a second, over all connections together."),
    required(
        "connections",
        "4",
        "Connections that arrivals are dealt to in turn; an arrival waits while its connection is busy.",
    ),
    optional(
        "arrivals",
        "\"poisson\"",
        "`poisson` (as independent users make) or `uniform` (equal gaps). Default `poisson`.",
    ),
];

/// Every table with where it stands in the file, to say where a field found elsewhere belongs.
pub(crate) const TABLES: &[(&str, &[Field])] = &[
    ("at the top of the file, before the first `[...]`", STUDY),
    ("in `[arms.ID]`", ARM),
    ("in `merging = { ... }` of an arm", MERGING),
    ("in `[cases.ID]`", CASE),
    ("in `[phases]`", PHASES),
    ("in `[guest]`", GUEST),
    ("in `[lab]`", LAB),
    ("in `[hosts]`", HOSTS),
    ("in `neighbours = { ... }` of a case", NEIGHBOURS),
    ("in `density = { ... }` of a case", DENSITY),
    ("in `density = { guests = { search = { ... } } }` of a case", SEARCH),
    ("in `capacity = { ... }` of a case", CAPACITY),
    ("in `cpu-target = { ... }` of a case", CPU_TARGET),
    ("in `load-from = { ... }` of a case", LOAD_FROM),
    ("in `load = { ... }`", LOAD),
    ("in `load = { closed = { ... } }`", CLOSED),
    ("in `load = { open = { ... } }`", OPEN),
    ("in `placement = { ... }`", PLACEMENT),
];

/// The field called `key`.
pub(crate) fn find(fields: &'static [Field], key: &str) -> Option<&'static Field> {
    fields.iter().find(|field| field.key == key)
}
