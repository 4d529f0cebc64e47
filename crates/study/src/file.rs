//! The study file: every table of it and every field, with what it means, its shape and an example. The struct that the check
//! works on, the errors and the JSON schema for editors are made of these definitions.

use tare_model::aggressor::Aggressor;
use tare_model::guest::Seccomp;
use tare_model::load::Arrivals;
use tare_model::merging::HugePages;
use tare_model::start::Start;
use tare_model::study::{Attach, CompareWith, Placement, STUDY_SCHEMA};
use tare_model::turns::Waiting;

use crate::host_rule::{BalloonRule, Rule};
use crate::language::shape::{
    Addresses, Algorithm, CpuList, Host, LinkRate, List, LoadNumber, MAX_CONNECTIONS, MaxCpu, Name, Named, Objectives,
    Or, Own, Part, PerSecond, Percent, Ratio, Reference, Schedule, Seed, Size, Sweep, Switch, Text, Time, Whole,
    WholeTime,
};
use crate::language::table::table;

/// Most measured guests at one time: what the lab's network and a host's memory can take with room to spare.
pub(crate) const MAX_GUESTS: u32 = 256;
/// Most pages in one go of merging: 4 GiB, which takes seconds.
const MOST_PAGES: u32 = 1 << 20;
/// Fewest blocks of a case whose number follows from its intervals: an interval without assumptions takes as many.
const FEWEST_BLOCKS: u32 = 6;
/// Most blocks.
const MOST_BLOCKS: u32 = 10_000;
/// Most commands of an arm in a block.
const MOST_COMMANDS: u32 = 10_000;
/// Milliseconds of a day.
const DAY: u64 = 24 * 3600 * 1000;
/// Longest phase, milliseconds: keeps every sum within 64 bits, and whoever means more has slipped by a unit.
const LONGEST: u64 = 30 * DAY;

/// CPUs of a guest; what a host has is the plan's business.
type GuestCpus = Whole<1, 4096>;
/// Memory of a guest: the agent, its sample buffers and the kernel's own charges fit.
type Memory = Size<16>;
/// A share of a whole, from the least that means anything.
type Share = Ratio<10, 1000>;

table! {
    /// The file itself.
    Study<'a> {
        /// Schema of this file. This tare reads 1.
        required schema: Whole<1, STUDY_SCHEMA> = "1",
        /// Short name of the study, also of its run folders: lower case letters, digits, `-`.
        required name: Name = r#""quickstart""#,
        /// What the study answers, in your words; the report opens with it.
        required question: Text = r#""How much slower is a container?""#,
        /// The arm that all others are compared with.
        required baseline: Text = r#""native""#,
        /// How often every arm of every case runs, each time in a fresh guest: a number, or a table `{ at-least = 12, at-most = 60, until = "2%" }`, with which a case runs until its intervals are as narrow as asked. With 6 or more, an interval of 95 % needs no assumption about the shape of the noise.
        required blocks: Or<Whole<1, MOST_BLOCKS>, Blocks<'a>> = "12",
        /// The difference in a case's primary metric that is too small to matter, such as `"2%"`: an arm whose interval lies within it is called equivalent to the baseline, and the plan says how likely the study detects so much. Above 0 % and below 100 %.
        optional margin: Percent = r#""2%""#,
        /// Blocks beyond `blocks` that a case may take to replace such as were disturbed from outside its arms: CPU taken by the machine underneath, other programs, another run. Only those causes decide, never a figure. The disturbed blocks stay in the report. Default 0. Not with a table of `blocks`.
        optional spare_blocks: Whole<0, MOST_BLOCKS> = "3",
        /// Seed of the random order of cases and arms, and of random arrivals. By default each run draws one, and records it.
        optional seed: Seed = "1",
        /// Runs the baseline a second time in each case of each block, as an arm of its own, so that the report can say how large a difference mere noise makes. Default true.
        optional noise_floor: Switch = "true",
        /// Leaves out arms whose platform cannot be used on the host, and tells which and why in plan and report, instead of refusing the run. The baseline and one more arm must remain. Default false.
        optional skip_unavailable: Switch = "true",
        /// To whom all belongs that runs on the host while an arm merges memory, in your words; without it no arm may merge. Memory that is merged can be read by timing: whoever shares pages with others can learn what they hold. The report repeats it.
        optional trust_domain: Text = r#""this team's guests alone""#,
        /// The published study that this one repeats, and what it does otherwise.
        optional published: Published<'a> = r#"{ report = "000", subject = ["vm"] }"#,
        /// The arms: what is compared. Each is a table `[arms.ID]`.
        required arms: Named<Arm<'a>> = r#"{ native = { platform = "native" } }"#,
        /// One figure over several cases with `capacity`: 100 times the geometric mean of each one's capacity over the reference that is given here.
        optional score: Named<Reference> = "{ banking = 120, ecommerce = 114 }",
        /// What the report draws beside the measured figures: `published`, bands of what a published study of the same question found, for workloads that have one (`social` with several instances). By default nothing: the report shows what was measured.
        optional compare_with: CompareWith = r#""published""#,
        /// Size of the measured guest, for every case that gives no other.
        optional guest: Guest<'a> = r#"{ cpus = 1, memory = "1GiB" }"#,
        /// Phases of every trial, for every case that gives no other.
        optional phases: Phases<'a> = r#"{ warm-up = "300ms", steady-state = "2s" }"#,
        /// How the arms of a case share the time of a block: `turns` (all are alive at once and are driven in slices of some milliseconds, in random order, so that all see the same seconds of the host) or `trials` (one after the other). Default: turns for each case whose workload and load allow them.
        optional schedule: Schedule = r#""turns""#,
        /// How turns are taken, for every case that says nothing else.
        optional turns: Turns<'a> = r#"{ length = "20ms" }"#,
        /// The lab, the same for every arm.
        optional lab: Lab<'a> = "{ mtu = 1500 }",
        /// The machines that take part beside the host that tare is started on. Each is a table `[hosts.ID]` with the way to it: `PLATFORM = { its options }`, by a platform that reaches machines elsewhere. The host that tare is started on is called `local`; guests that tare makes are on it.
        optional hosts: Named<Host> = r#"{ client-1 = { PLATFORM = { host = "loadgen" } } }"#,
        /// Who does what, by the ids of hosts. Default: all is on `local`.
        optional roles: Roles<'a> = r#"{ drivers = ["local"] }"#,
        /// The cases: the situations in which every arm is measured. Each is a table `[cases.ID]`.
        required cases: Named<Case<'a>> = r#"{ idle = { workload = "rr" } }"#,
    }
}

table! {
    /// `blocks` as a table.
    Blocks<'a> {
        /// Fewest blocks of each case. From 12 on intervals hold what they state even where neighbouring blocks are alike; fewer than 6 have no interval that does without assumptions.
        required at_least: Whole<FEWEST_BLOCKS, MOST_BLOCKS> = "12",
        /// Most blocks of each case: there it ends, however wide its intervals are.
        required at_most: Whole<FEWEST_BLOCKS, MOST_BLOCKS> = "60",
        /// How narrow: a case ends when no interval of its primary metric reaches further than this from its estimate, on any arm. Above 0 % and below 100 %.
        required until: Percent = r#""2%""#,
    }
}

table! {
    /// `[arms.ID]`.
    Arm<'a> {
        /// Name of the arm in the report. Default: its id.
        optional label: Text = r#""native""#,
        /// What provides the guests; `tare list` names the platforms.
        required platform: Text = r#""native""#,
        /// Options of the platform, checked by the platform.
        optional options: Own = "{}",
        /// Merging of equal pages of the guests' memory (KSM) while this arm is measured, by the name of a rule or as a table with its fields: `fixed`, `published-script`, `ksmtuned`, `advisor`, `tare`. Needs `trust-domain`. `off`, as if left out: merging is stopped where another arm of the study merges, else the host is left as found. What was found is put back after each trial.
        optional merging: Or<Rule, Merging<'a>> = r#""tare""#,
        /// Balloons by which the arm's machines give memory back while the host is short of it, and who sizes them: `mom` (the policy of the memory overcommit manager), by its name or as a table with its fields, or `off`, as if left out. Only platforms whose machines have a balloon.
        optional ballooning: Or<BalloonRule, Ballooning<'a>> = r#""mom""#,
        /// Where the host uses transparent huge pages while this arm is measured: `always`, `madvise` or `never`. Huge pages are not merged. Put back after each trial. Default: as found.
        optional huge_pages: HugePages = r#""never""#,
        /// A positive control: each operation takes longer by this share on purpose, such as `"2%"`, so that the report shows whether this study on this host finds so much. Steps of 0.1 %. Not the baseline; only workloads whose guest's side can wait, in a closed loop of no more clients than the guest has CPUs. The guests' side of all other arms then answers as of 0 %.
        optional slowed_by: Percent = r#""2%""#,
        /// From what the arm's guests are started where starts are measured (`guest-start`): `cold` (from nothing), `snapshot` (restored from a snapshot of a guest that had answered, which is proven by a secret that was in its memory), or a table `{ pool = 8 }` (one of so many guests that were made before and stopped runs again). Default `cold`.
        optional start: Or<Start, Pool<'a>> = r#""snapshot""#,
    }
}

table! {
    /// `start` of an arm as a table.
    Pool<'a> {
        /// Guests that stand ready, stopped: as many as a case takes at one time at least. What was taken is made again after the measured time.
        required pool: Whole<1, MAX_GUESTS> = "8",
    }
}

table! {
    /// `merging` of an arm as a table.
    Merging<'a> {
        /// Who sets how fast the kernel looks for equal pages: `fixed` (nobody: the values stay), `published-script` (the script of the study of 2009), `ksmtuned` (today's ksmtuned), `advisor` (the kernel's own, from 6.8), `tare` (fast while memory is short and looking pays, at rest once nothing more is gained), or `off`.
        required rule: Rule = r#""tare""#,
        /// Pages looked at in one go. Only `fixed`. Default 100, the kernel's.
        optional pages_to_scan: Whole<1, MOST_PAGES> = "8000",
        /// Pause between two goes, whole milliseconds. Only `fixed`. Default 20ms, the kernel's.
        optional sleep: WholeTime<1, 60_000> = r#""10ms""#,
        /// How long one pass over all memory is to take, whole seconds. Only `advisor`. Default 200s, the kernel's.
        optional target_scan_time: WholeTime<1000, DAY> = r#""200s""#,
        /// Most CPU that looking may take: with `advisor` a whole percentage of one CPU (default 70, the kernel's), with `tare` a share of one CPU, 0.01 to 1 (default 0.7).
        optional max_cpu: MaxCpu = "70",
        /// Share of the host's memory that is to stay available, 0.01 to 1: below it looking is in haste. Only `tare`. Default 0.2.
        optional free_goal: Share = "0.2",
        /// Whether empty pages are merged with the kernel's own page of zeros. Default false, with every rule.
        optional zero_pages: Switch = "true",
    }
}

table! {
    /// `ballooning` of an arm as a table.
    Ballooning<'a> {
        /// Who sizes the balloons: `mom`, or `off`.
        required rule: BalloonRule = r#""mom""#,
        /// Free memory of the host (with what it caches), a share of all, 0.01 to 1: below it machines shrink, else they grow back. Default 0.2.
        optional pressure: Share = "0.2",
        /// The same: at it and below, machines are left less than they use. At most `pressure`. Default 0.05.
        optional critical: Share = "0.05",
        /// Unused memory that a machine keeps while the host is not short, a share of what it was promised, 0.01 to 1. Default 0.2.
        optional guest_free: Share = "0.2",
        /// Memory that each machine keeps whatever the host lacks. Default: nothing is guaranteed.
        optional guaranteed: Memory = r#""512MiB""#,
    }
}

table! {
    /// `[published]`.
    Published<'a> {
        /// Number of the report.
        required report: Text = r#""000""#,
        /// Arms that the report is about. `tare run` refuses the study where one of them cannot run, unless it is asked for what can run (`--what-can`); the report then opens with that.
        required subject: List<Text, 64> = r#"["vm"]"#,
        /// What the study does otherwise on any host: a table `[[published.deviations]]` each. The report lists them with those of the workloads.
        optional deviations: List<Deviates<'a>, 100> = r#"[{ what = "restarts", published = "the host was restarted", here = "it is not", why = "it is in use", effect = "none expected" }]"#,
    }
}

table! {
    /// `[[published.deviations]]`.
    Deviates<'a> {
        /// What differs, in a few words.
        required what: Text = r#""client""#,
        /// What was published.
        required published: Text = r#""a machine of its own""#,
        /// What is here.
        required here: Text = r#""this host""#,
        /// Why it is not as published.
        required why: Text = r#""guests that tare makes have their network inside their host""#,
        /// What that likely does to the figures.
        required effect: Text = r#""the client takes CPU that the guests could have had""#,
    }
}

table! {
    /// `[guest]` and `guest` of a case.
    Guest<'a> {
        /// CPUs of the guest: its CPU quota, and the virtual CPUs of a virtual machine.
        optional cpus: GuestCpus = "1",
        /// Memory of the guest: its hard limit, and the memory of a virtual machine. At least 16MiB, which tare's agent takes.
        optional memory: Memory = r#""1GiB""#,
        /// The filter of system calls of guests that share the host's kernel, the same on every arm: `default` (what container engines allow by default, without ptrace, io_uring and NUMA policies; programs of 32 bits are refused) or `off`. Default `default`.
        optional seccomp: Seccomp = r#""default""#,
    }
}

table! {
    /// `[phases]` and `phases` of a case.
    Phases<'a> {
        /// Full load before anything counts, so that caches and lazily built state are there. Default 0s.
        optional warm_up: Time<0, LONGEST> = r#""300ms""#,
        /// Clients join one after another, evenly over this time. Default 0s.
        optional ramp_up: Time<0, LONGEST> = r#""1s""#,
        /// The measured time, at least 10ms: only steady state is measured.
        optional steady_state: Time<10, LONGEST> = r#""2s""#,
        /// Load goes on unmeasured, so that no client's absence flatters the last operations. Default 0s.
        optional ramp_down: Time<0, LONGEST> = r#""100ms""#,
    }
}

table! {
    /// `[turns]` and `turns` of a case.
    Turns<'a> {
        /// How long an arm is driven in a turn, 1ms at least and no longer than the steady state. Default: what the workload says, shorter where steady state would hold fewer than ten rounds.
        optional length: Time<1, LONGEST> = r#""20ms""#,
        /// Rest between a turn and the next one, in which what is under way ends: longer than nearly all operations. Default: what the workload says.
        optional gap: Time<0, 60_000> = r#""1ms""#,
        /// The first part of each turn, which is driven and not measured, 0 % to 90 % of it. Default: what the workload says.
        optional warm_up: Part<0, 90> = r#""10%""#,
        /// Where each turn is one command (workload `exec`): how many an arm runs in a block, each once in a round. Its turns end when their commands do, so they have no `length`, `gap` and `warm-up`. Default: what the workload says.
        optional rounds: Whole<1, MOST_COMMANDS> = "5",
        /// What an arm does while others have their turns: `idle` (no load; its housekeeping goes on) or `frozen` (its processes are stopped). Default `idle`; guests with `busy-target` are always `frozen`.
        optional waiting: Waiting = r#""idle""#,
    }
}

table! {
    /// `[lab]`.
    Lab<'a> {
        /// MTU of every link, bytes. Default 1500.
        optional mtu: Whole<576, 65_535> = "1500",
        /// Whether segmentation and receive offloads of the links are on. Default true.
        optional offloads: Switch = "true",
        /// Rate to which the link between driver and guests is bounded, each way, 1Mbit/s to 100Gbit/s, as by a network card. Default: not bounded.
        optional link_rate: LinkRate = r#""1Gbit/s""#,
        /// The network card of this host that the lab is put on, so that hosts beside it reach the guests. Default: none, the lab has no way out of the host.
        optional wire: Wire<'a> = r#"{ interface = "eth1", addresses = "192.0.2.100-192.0.2.150/24" }"#,
        /// TCP congestion control at both ends, as in /proc/sys/net/ipv4/tcp_available_congestion_control. Default: the host's own, which is recorded.
        optional congestion_control: Algorithm = r#""cubic""#,
        /// Which CPUs driver and guests get: `separate` (CPUs of their own), `same-cpu`, `unpinned`, or `{ client-cpus = "0", guest-cpus = "1-3" }`. It changes results by a factor: it is recorded and printed. Default `separate`.
        optional placement: Or<Placement, Listed<'a>> = r#""separate""#,
        /// How often the probes sample, 10ms to 60s. Default 200ms.
        optional sample_interval: Time<10, 60_000> = r#""200ms""#,
    }
}

table! {
    /// `lab.wire`.
    Wire<'a> {
        /// The card, as this host names it. It must be up and have a carrier.
        required interface: Text = r#""eth1""#,
        /// Addresses for the lab, the first and the last, and the length of the network's prefix: one for the driver of this host, one for programs beside the bridge, the others for guests. Nobody else may use them; each is asked for before the first trial.
        required addresses: Addresses = r#""192.0.2.100-192.0.2.150/24""#,
        /// How guests are attached: `bridge` (by links to the lab's bridge, which takes the card for itself) or `macvlan` (each by a macvlan of its own over the card, a machine by a macvtap; this host keeps the card too). Default `bridge`.
        optional attach: Attach = r#""bridge""#,
        /// Whether the card may be one that carries this host's default route or the remote login that tare was started over. Default false.
        optional cuts_off_host: Switch = "false",
    }
}

table! {
    /// `lab.placement` as a table.
    Listed<'a> {
        /// CPUs of the driver, as a list such as `0,2-3`.
        required client_cpus: CpuList = r#""0""#,
        /// CPUs of all guests, as a list such as `0,2-3`.
        required guest_cpus: CpuList = r#""1-3""#,
    }
}

table! {
    /// `[roles]`.
    Roles<'a> {
        /// Hosts that offer load. Driver k, counted over all guests of a case, is on number k modulo their count. A host beside `local` cannot reach guests on the lab's network, inside this host. Default: `["local"]`.
        optional drivers: List<Text, 64> = r#"["local"]"#,
        /// The host that serves what guests ask the driver's side for, such as a simulated backend: for each guest an agent of its own, at the `address` of that host. Guests on `[lab] wire` must reach it there. Default: the host of each guest's first driver.
        optional services: Text = r#""local""#,
    }
}

table! {
    /// `[cases.ID]`.
    Case<'a> {
        /// Name of the case in the report. Default: its id.
        optional label: Text = r#""idle host, idle guest""#,
        /// What runs; `tare list` names the workloads.
        required workload: Text = r#""rr""#,
        /// Parameters of the workload, checked by the workload.
        optional parameters: Own = r#"{ request = "128B", response = "128B" }"#,
        /// How load is offered. Default: closed loop, one client.
        optional load: Load<'a> = "{ closed = { clients = 1 } }",
        /// Several loads by name, each a case of its own: `ID@low`, `ID@high`. Instead of `load`.
        optional loads: Named<Load<'a>> = "{ low = { closed = { clients = 1 } }, high = { closed = { clients = 8 } } }",
        /// Looks for the largest load at which every objective in `qos` is met: each load is tried in a fresh instance, doubled until one misses, then the distance is halved, then what is found must hold again. `load` then says only of which kind it is: `{ closed = {} }` (the default) or `{ open = { connections = 4 } }`.
        optional capacity: Capacity<'a> = "{ most = 4000 }",
        /// Offers a share of the capacity that the baseline has in another case: the median over its blocks, all of which run before. Instead of `load`.
        optional load_from: LoadFrom<'a> = r#"{ case = "banking", share = 0.8 }"#,
        /// Looks for the load at which the guests' CPUs are busy to a share, in the guests that are then measured at it: load is changed while they stand. A trial that is further off than `tolerance` is invalid. `load` then says only of which kind it is: `{ closed = {} }` (the default) or `{ open = { connections = 4 } }`.
        optional cpu_target: CpuTarget<'a> = "{ share = 0.4, most = 2000 }",
        /// How many guests are measured at one time, each with a server and drivers of its own. Default 1.
        optional guests: Whole<1, MAX_GUESTS> = "4",
        /// Drivers a guest, each a process of its own. Each offers the whole load, but what `capacity` tries and what `load-from` offers is dealt out among them. Default 1.
        optional drivers: Whole<1, 64> = "2",
        /// Instances of the application in each guest, each a process of its own; the clients of the load are dealt to them. 1 to 64, default 1.
        optional instances: Whole<1, 64> = "4",
        /// Clients of a closed loop, so many for each instance. Instead of `load`.
        optional users_per_instance: Whole<1, MAX_CONNECTIONS> = "100",
        /// Lists of values by field, such as `instances = [1, 2, 4]` or `parameters.request = ["128B", "4KiB"]`: a case for each combination, at most 500, whose id ends with the values (`users-1`, `users-2`). In `label` the value stands in the place of `{FIELD}`.
        optional sweep: Sweep = "{ instances = [1, 2, 4] }",
        /// Adds guests to the host one by one, and offers the load to each number of them in turn, until the host carries no more. Instead of `guests`, `drivers`, `neighbours` and `busy-target`.
        optional density: Density<'a> = "{ guests = [1, 4, 8, 16] }",
        /// Guests beside the measured one that keep the host busy, on the arm's own platform.
        optional neighbours: Neighbours<'a> = r#"{ count = 6, cpus = 4, memory = "1GiB" }"#,
        /// Whether the measured guest itself runs a busy loop on each of its CPUs. Default false.
        optional busy_target: Switch = "true",
        /// Size of the measured guest; what is not given here is taken from `[guest]`.
        optional guest: Guest<'a> = r#"{ cpus = 4, memory = "4GiB" }"#,
        /// Phases of a trial; what is not given here is taken from `[phases]`.
        optional phases: Phases<'a> = r#"{ steady-state = "120s" }"#,
        /// `turns` or `trials`; what is not given here is taken from the study's `schedule`.
        optional schedule: Schedule = r#""trials""#,
        /// How its arms take turns; what is not given here is taken from `[turns]`.
        optional turns: Turns<'a> = r#"{ length = "200ms", gap = "10ms" }"#,
        /// Objectives by metric id: the largest value allowed where less is better, the smallest where more is.
        optional qos: Objectives = r#"{ response_time_p99_s = "5ms" }"#,
        /// Keeps the case's figures from the models of sizing: they predict the case from the others, and what was measured checks them. Default false.
        optional held_out: Switch = "true",
    }
}

table! {
    /// `density` of a case.
    Density<'a> {
        /// Numbers of guests at which load is offered, ascending, or `{ search = { most = 64 } }`. Whatever they are, load is also offered to the last number that stood.
        required guests: Or<List<Whole<1, MAX_GUESTS>, 64>, Guests<'a>> = "[1, 4, 8, 16]",
        /// Memory of the host that must stay available, at least 256MiB, which the host's own programs take: guests are no longer added before it is touched. Default: a tenth of the host's memory, 1GiB at least.
        optional reserve: Size<256> = r#""2GiB""#,
        /// Longest wait for merging to settle, before a guest that does not fit yet and before each measurement. `--scale` does not change it. Default 120s.
        optional settle: Time<0, LONGEST> = r#""120s""#,
        /// Rest between the start of the last guest and load, at each number of guests. Default 0s.
        optional rest: Time<0, LONGEST> = r#""15m""#,
        /// Share of time, 0.01 to 1, in which some task of the host may wait for memory over 10 seconds (PSI `some avg10`) before the last guest is ended. Default 0.4.
        optional pressure: Share = "0.4",
    }
}

table! {
    /// `density.guests` as a table.
    Guests<'a> {
        /// Looks for the largest number that holds: each number half as large again as the one before, and where one does not hold, by halving the distance to the last that did.
        required search: Search<'a> = "{ from = 1, most = 64 }",
    }
}

table! {
    /// `density.guests.search`.
    Search<'a> {
        /// The first number of guests. Default 1.
        optional from: Whole<1, MAX_GUESTS> = "1",
        /// The largest number of guests that is tried.
        required most: Whole<1, MAX_GUESTS> = "64",
    }
}

table! {
    /// `capacity` of a case.
    Capacity<'a> {
        /// The first load that is tried: clients of a closed loop, or the rate of an open one (`"100/s"`). Where it does not hold, smaller ones are tried. Default: a sixteenth of `most`.
        optional from: LoadNumber = "50",
        /// The largest load that is tried.
        required most: LoadNumber = "4000",
        /// The search ends when the smallest load that missed an objective is at most so much larger than the largest that held, 0.001 to 1 (0.05: 5 %), or is the next client. Default 0.05.
        optional precision: Ratio<1, 1000> = "0.05",
        /// Times that a load must hold, each in a fresh instance, to count; one miss refutes it. 2 to 20, default 3.
        optional iterations: Whole<2, 20> = "3",
    }
}

table! {
    /// `cpu-target` of a case.
    CpuTarget<'a> {
        /// The share of the guests' CPUs that is to be busy, as the host counts it or, of machines elsewhere, their own kernel: 0.01 to 0.99.
        required share: Ratio<10, 990> = "0.4",
        /// How far the measured share may be from it, 0.001 to 0.2 (0.02: two points). Default 0.02.
        optional tolerance: Ratio<1, 200> = "0.02",
        /// The first load that is tried: clients of a closed loop, or the rate of an open one (`"100/s"`). Default: a sixteenth of `most`, and a client for each instance at least.
        optional from: LoadNumber = "50",
        /// The largest load that is tried.
        required most: LoadNumber = "2000",
        /// How long each load is measured while it is looked for, after clients have joined over a third of it. At least 100ms: a shorter one shows no CPU of a load. Default 30s.
        optional step: Time<100, LONGEST> = r#""30s""#,
        /// Loads that are tried before the search is given up, 2 to 100. Default 8.
        optional steps: Whole<2, 100> = "8",
    }
}

table! {
    /// `load-from` of a case.
    LoadFrom<'a> {
        /// The case that looks for the capacity.
        required case: Text = r#""banking""#,
        /// The share of its capacity that is offered, 0.001 to 2.
        required share: Ratio<1, 2000> = "0.8",
    }
}

table! {
    /// `neighbours` of a case.
    Neighbours<'a> {
        /// How many guests beside the measured one; for a host without neighbours leave `neighbours` out.
        required count: Whole<1, 4096> = "6",
        /// CPUs of each; a busy loop runs on each of them, or what `work` says.
        required cpus: GuestCpus = "4",
        /// Memory of each.
        required memory: Memory = r#""1GiB""#,
        /// What they do, one after another, in turns beside one and the same measured guest: `"none"` first, which the others are held against. The case becomes one for each. Absent: busy loops all the time.
        optional work: List<Option<Aggressor>, 16> = r#"["none", "spin"]"#,
    }
}

table! {
    /// `load`: exactly one of these.
    Load<'a> {
        /// Closed loop: each client starts its next operation when the last one ended and it has thought.
        optional closed: Closed<'a> = "{ clients = 1 }",
        /// Open loop: operations start at times fixed in advance, whether or not earlier ones have ended.
        optional open: Open<'a> = r#"{ rate = "1000/s", connections = 4 }"#,
    }
}

table! {
    /// `load.closed`.
    Closed<'a> {
        /// Simulated requesters, each with one connection and at most one operation outstanding.
        optional clients: Whole<1, MAX_CONNECTIONS> = "1",
        /// Pause between the end of an operation and the start of the next. Default 0s.
        optional think_time: Time<0, LONGEST> = r#""0s""#,
    }
}

table! {
    /// `load.open`.
    Open<'a> {
        /// Arrivals in a second, over all connections together.
        optional rate: PerSecond = r#""1000/s""#,
        /// Connections that arrivals are dealt to in turn; an arrival waits while its connection is busy.
        required connections: Whole<1, MAX_CONNECTIONS> = "4",
        /// `poisson` (as independent users make) or `uniform` (equal gaps). Default `poisson`.
        optional arrivals: Arrivals = r#""poisson""#,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::shape::Shape;
    use crate::language::tree::{Cursor, Sink};
    use crate::node::Node;

    macro_rules! wrong_examples {
        ($($table:ident),+) => {{
            let mut wrong = Vec::new();
            $(for field in $table::FIELDS {
                let text = format!("{} = {}", field.key, field.example);
                let (node, sink) = (Node::parse(&text).unwrap(), Sink::of::<Study<'_>>());
                let _ = $table::read(&Cursor::root(&sink, &node));
                // The other fields of the table are not there.
                let problems = sink.into_problems(&node, &text).into_iter();
                wrong.extend(problems.filter(|problem| !problem.message.starts_with("the study has no")));
            })+
            wrong
        }};
    }

    #[test]
    fn every_example_is_right() {
        let wrong = wrong_examples!(
            Study, Arm, Merging, Ballooning, Guest, Phases, Lab, Wire, Listed, Roles, Case, Density, Guests, Search,
            Capacity, CpuTarget, LoadFrom, Neighbours, Load, Closed, Open, Turns, Published, Deviates
        );
        assert_eq!(wrong, []);
    }
}
