//! A study, valid by type: what a study file becomes once everything in it was checked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::aggressor::Aggressor;
use crate::capacity::{CapacitySpec, LoadShare, ScoreSpec};
use crate::cpu_target::CpuTarget;
use crate::density::DensitySpec;
use crate::deviation::Original;
use crate::guest::{GuestSize, Seccomp};
pub use crate::hosts::{Host, LOCAL, Roles};
use crate::load::{LoadKind, LoadModel, Phases};
use crate::merging::HostMemory;
use crate::published::Published;
use crate::start::Start;
use crate::turns::TurnSpec;
use crate::units::{AddressRange, BitRate, Span};

/// Newest schema of study files that this tare reads.
pub const STUDY_SCHEMA: u32 = 1;

/// A question, the arms that are compared, and the cases in which they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Schema number of the study file.
    pub schema: u32,
    /// Short name, fit for a folder.
    pub name: String,
    /// What the study answers, in the user's words.
    pub question: String,
    /// Blocks: each runs every arm of every case once. With `precision`, the most that a case takes.
    pub blocks: u32,
    /// Further blocks that a case may take, to replace such as were disturbed from outside.
    pub spare_blocks: u32,
    /// When a case has blocks enough; `None`: it takes all.
    pub precision: Option<Precision>,
    /// The relative difference in primary metrics up to which arms count as equivalent: 0.02 is 2 %.
    pub margin: Option<f64>,
    /// Seed of the order of arms and of the drivers' randomness.
    pub seed: u64,
    /// Id of the arm that others are compared with.
    pub baseline: String,
    /// The arms. With a noise floor asked, the last is a second baseline (`replica_of` set).
    pub arms: Vec<Arm>,
    /// The cases.
    pub cases: Vec<Case>,
    /// The lab.
    pub lab: LabSpec,
    /// Factor by which all phases were shortened; 1 is the study as written.
    pub scale: f64,
    /// Whether arms whose platform cannot be used on a host are left out there, instead of the run being refused.
    pub skip_unavailable: bool,
    /// The machines that take part beside the host that tare is started on, in the order of their ids.
    pub hosts: Vec<Host>,
    /// Who does what.
    pub roles: Roles,
    /// To whom all belongs that shares memory where an arm merges, in the user's words: merged memory can be read by timing
    /// across its users. Without it no arm may merge.
    pub trust_domain: Option<String>,
    /// One figure over several cases.
    pub score: Option<ScoreSpec>,
    /// Where the figures were published; `None`: tare measures them.
    pub published: Option<Published>,
    /// What is drawn beside the figures; `None`: nothing but what was measured.
    pub compare_with: Option<CompareWith>,
    /// The published study that this one repeats, if it does.
    pub original: Option<Original>,
}

/// Figures of others that a report draws beside those that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompareWith {
    /// What a published study of the same question found.
    Published,
}

impl Study {
    /// The most blocks that a case may take.
    pub const fn most_blocks(&self) -> u32 {
        self.blocks.saturating_add(self.spare_blocks)
    }

    /// The fewest and the most blocks that a case may take.
    pub fn block_range(&self) -> (u32, u32) {
        (self.precision.map_or(self.blocks, |rule| rule.at_least), self.most_blocks())
    }

    /// Whether what is measured decides how many blocks a case takes.
    pub fn is_open_ended(&self) -> bool {
        self.precision.is_some() || self.spare_blocks > 0
    }

    /// Ids of arms that the published study is about and that are no arms of this one, such as those that a host cannot run.
    pub fn missing_subject(&self) -> Vec<&str> {
        let subject = self.original.iter().flat_map(|original| &original.subject).map(String::as_str);
        subject.filter(|id| self.arms.iter().all(|arm| arm.id != *id)).collect()
    }

    /// By how many thousandths the operations of an arm take longer on purpose; `None` where no arm's do.
    pub fn slowed_permille(&self, arm: &str) -> Option<u32> {
        let of = |arm: &Arm| arm.slowed_permille;
        self.arms.iter().any(|arm| of(arm) > 0).then(|| self.arms.iter().find(|own| own.id == arm).map_or(0, of))
    }

    /// Whether some arm merges memory.
    pub fn merges(&self) -> bool {
        self.arms.iter().any(|arm| arm.host_memory.merging.is_some())
    }
}

/// The rule by which a case has blocks enough. The most that it may take is the study's number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Fewest blocks of a case.
    pub at_least: u32,
    /// How far from its estimate an interval may reach, as a share of the estimate: 0.02 is 2 %.
    pub until: f64,
}

/// One platform configuration under comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Id, unique in the study.
    pub id: String,
    /// Name for people.
    pub label: String,
    /// Platform, by its name in the registry.
    pub platform: String,
    /// The platform's own options, checked by the platform.
    pub options: Value,
    /// The arm that this one repeats, to measure the noise floor.
    pub replica_of: Option<String>,
    /// How the host treats the guests' memory.
    pub host_memory: HostMemory,
    /// From what those guests are started that a workload makes.
    #[serde(default, skip_serializing_if = "Start::is_cold")]
    pub start: Start,
    /// By how many thousandths each of its operations takes longer on purpose: a positive control. 0: it is an arm like any other.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub slowed_permille: u32,
}

impl Arm {
    /// How a positive control is slowed, in words.
    pub fn slowed(&self) -> String {
        format!("each operation takes {} % longer on purpose", f64::from(self.slowed_permille) / 10.0)
    }
}

/// One situation in which all arms are measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Id, unique in the study.
    pub id: String,
    /// Name for people.
    pub label: String,
    /// Workload, by its name in the registry.
    pub workload: String,
    /// The workload's own parameters, checked by the workload.
    pub parameters: Value,
    /// What load is offered, and to how many guests.
    pub load: CaseLoad,
    /// How long.
    pub phases: Phases,
    /// Whether its arms take turns.
    pub schedule: CaseSchedule,
    /// Size of each measured guest.
    pub guest: GuestSize,
    /// The filter of system calls of its guests, on every arm whose guests share the host's kernel.
    pub seccomp: Seccomp,
    /// Instances of the application in each measured guest, each a process of its own with clients of its own: the clients of `load`
    /// are those of all together.
    pub instances: u32,
    /// Guests beside the measured one that keep the host busy.
    pub neighbours: Option<Neighbours>,
    /// Guests of the measured ones' size that the workload itself makes at one time, beside them.
    pub made: u32,
    /// Whether the measured guest itself is kept busy by a busy loop on each of its CPUs.
    pub busy_target: bool,
    /// Objectives that a trial must meet to count as goodput.
    pub qos: Vec<QosObjective>,
    /// Whether no model is fitted to its figures: they are predicted from those of other cases, and the prediction is checked by
    /// them.
    pub held_out: bool,
}

impl Case {
    /// A case of one instance in each guest, with its id as its label, without neighbours, objectives or parameters.
    pub fn new(id: &str, workload: &str, load: CaseLoad, phases: Phases, guest: GuestSize) -> Self {
        Self {
            id: id.to_owned(),
            label: id.to_owned(),
            workload: workload.to_owned(),
            parameters: Value::Object(serde_json::Map::new()),
            load,
            phases,
            schedule: CaseSchedule::default(),
            guest,
            seccomp: Seccomp::Default,
            instances: 1,
            neighbours: None,
            made: 0,
            busy_target: false,
            qos: Vec::new(),
            held_out: false,
        }
    }
}

/// How the arms of a case share the time of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseSchedule {
    /// All are alive at once and are driven in turns.
    Turns(TurnSpec),
    /// The baseline and one other arm are alive at once and are driven in turns. Each such pair is a block of the case's own.
    Pairs {
        /// How turns are taken.
        turns: TurnSpec,
        /// How many pairs there are: arms that take turns, without the baseline.
        pairs: u32,
        /// Why not all arms together.
        why: String,
    },
    /// One trial after the other.
    Trials {
        /// Why.
        why: String,
    },
    /// One arm after the other. The measured guest of an arm is driven under one condition after another, in turns; each condition is a
    /// case, and these cases share that guest and its neighbours.
    Conditions(Condition),
}

/// What the neighbours of a case do, where one measured guest meets several such conditions in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Id of the case as it is written: the conditions of one victim have it in common.
    pub victim: String,
    /// The victim's name for people.
    pub label: String,
    /// What each neighbour does in the turns of this case, with a thread on each of its CPUs; `None`: nothing. It is nothing in the first
    /// condition of every victim, which the others are held against.
    pub work: Option<Aggressor>,
    /// How turns are taken. Neighbours begin with the gap before a turn, and stand still at its end.
    pub turns: TurnSpec,
}

impl Default for CaseSchedule {
    fn default() -> Self {
        Self::Trials { why: "nothing asks for turns".to_owned() }
    }
}

impl CaseSchedule {
    /// How arms take turns, where they do.
    pub const fn turns(&self) -> Option<&TurnSpec> {
        match self {
            Self::Turns(spec) | Self::Pairs { turns: spec, .. } => Some(spec),
            Self::Trials { .. } | Self::Conditions(_) => None,
        }
    }

    /// How turns are taken, by arms or by conditions, where they are.
    pub const fn any_turns(&self) -> Option<&TurnSpec> {
        match self {
            Self::Conditions(condition) => Some(&condition.turns),
            _ => self.turns(),
        }
    }

    /// The condition that the case is, where it is one.
    pub const fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Conditions(condition) => Some(condition),
            _ => None,
        }
    }

    /// Blocks that a case has for each block of the study, in which the baseline runs once each: as many as pairs, else 1.
    pub const fn pairs(&self) -> u32 {
        match self {
            Self::Pairs { pairs, .. } if *pairs > 0 => *pairs,
            _ => 1,
        }
    }
}

/// What load the measured guests of a case are offered, and how many guests there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseLoad {
    /// One load, to a given number of guests.
    Fixed {
        /// What each driver offers.
        load: LoadModel,
        /// The guests.
        guests: Guests,
    },
    /// One load to each guest, of which more are added until the host carries no more. Each guest has one driver.
    Density {
        /// What each driver offers.
        load: LoadModel,
        /// How guests are added.
        spec: DensitySpec,
    },
    /// The largest load that meets the objectives is searched for, in one guest.
    Capacity(CapacitySpec),
    /// A share of the capacity that another case finds.
    ShareOf {
        /// Which share.
        share: LoadShare,
        /// The guests.
        guests: Guests,
    },
    /// The load at which the guests' CPUs are busy to a share is searched for, in guests that stand.
    CpuTarget {
        /// Which share, and how it is searched for.
        target: CpuTarget,
        /// The guests.
        guests: Guests,
    },
}

/// Measured guests that stand at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guests {
    /// How many, each with a server and drivers of its own.
    pub count: u32,
    /// Drivers of each guest, each a process of its own. Each offers the whole load, but a load that is a capacity, or a share of one, is
    /// dealt out among them.
    pub drivers: u32,
}

impl Guests {
    /// One guest with one driver.
    pub const ONE: Self = Self { count: 1, drivers: 1 };
}

impl From<LoadModel> for CaseLoad {
    /// The load in one guest with one driver.
    fn from(load: LoadModel) -> Self {
        Self::Fixed { load, guests: Guests::ONE }
    }
}

impl CaseLoad {
    /// The largest load that a driver may offer. What a workload takes and is given is computed for it.
    pub fn largest(&self) -> LoadModel {
        match self {
            Self::Fixed { load, .. } | Self::Density { load, .. } => *load,
            Self::Capacity(spec) => spec.of_each(spec.most),
            Self::ShareOf { share, .. } => share.kind.at(share.most),
            Self::CpuTarget { target, .. } => target.kind.at(target.most),
        }
    }

    /// The kind of the loads that it may come to.
    pub fn kind(&self) -> LoadKind {
        self.largest().kind()
    }

    /// The guests with which a trial begins: one where more are added.
    pub const fn guests(&self) -> Guests {
        match self {
            Self::Fixed { guests, .. } | Self::ShareOf { guests, .. } | Self::CpuTarget { guests, .. } => *guests,
            Self::Density { .. } => Guests::ONE,
            Self::Capacity(spec) => Guests { count: 1, drivers: spec.drivers },
        }
    }

    /// Most measured guests at one time.
    pub fn most_guests(&self) -> u32 {
        match self {
            Self::Density { spec, .. } => spec.most_guests(),
            _ => self.guests().count,
        }
    }

    /// Whether guests are added.
    pub const fn is_density(&self) -> bool {
        matches!(self, Self::Density { .. })
    }

    /// Whether the largest load is searched for.
    pub const fn is_capacity(&self) -> bool {
        matches!(self, Self::Capacity(_))
    }
}

impl Case {
    /// The cases with which this one shares its guests in a block, by the id that they have in common: its conditions, or itself alone.
    pub fn family(&self) -> &str {
        self.schedule.condition().map_or(&self.id, |condition| &condition.victim)
    }
}

/// Guests that keep the host busy, on the arm's own platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// How many.
    pub count: u32,
    /// Size of each; a busy loop runs on each of its CPUs, or what the case's condition says.
    pub guest: GuestSize,
}

/// A quality-of-service objective: a metric and its bound, in the metric's unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QosObjective {
    /// Metric id.
    pub metric: String,
    /// Largest value allowed, for metrics of which less is better; smallest, for the others.
    pub bound: f64,
}

/// Settings of the lab, the same for every arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabSpec {
    /// MTU of every link, bytes.
    pub mtu: u32,
    /// Whether segmentation and receive offloads of the links are on.
    pub offloads: bool,
    /// Rate to which the link between driver and guests is bounded, each way; `None`: not at all.
    pub link_rate: Option<BitRate>,
    /// The wire that the lab's bridge is on; `None`: it has no way out of the host.
    pub wire: Option<Wire>,
    /// TCP congestion control at both ends; `None` leaves the host's own, which is recorded.
    pub congestion_control: Option<String>,
    /// Where drivers and guests run.
    pub placement: Placement,
    /// How often the probes sample.
    pub sample_interval: Span,
}

impl LabSpec {
    /// How guests are attached to the network.
    pub fn attach(&self) -> Attach {
        self.wire.as_ref().map_or(Attach::Bridge, |wire| wire.attach)
    }
}

/// A network card of the host that the lab is put on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Wire {
    /// The card, as the host names it.
    pub interface: String,
    /// Addresses for the lab, on the card's network; `None` where they were taken out because they name somebody's network.
    pub addresses: Option<AddressRange>,
    /// How guests are attached to the card.
    pub attach: Attach,
    /// Whether the card may be one that carries the host's own traffic. Behind a bridge it is cut off while the run goes on; otherwise it
    /// shares the card with the load.
    pub cuts_off_host: bool,
}

/// How guests are attached to the card of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attach {
    /// By links to the lab's bridge, which is on the card. Without a wire there is the bridge alone.
    #[default]
    Bridge,
    /// Each by a macvlan of its own over the card; a machine by a macvtap.
    Macvlan,
}

impl Attach {
    /// What is moved into a guest's network namespace, in a few words.
    pub const fn link(self) -> &'static str {
        match self {
            Self::Bridge => "veth pair",
            Self::Macvlan => "macvlan over the card",
        }
    }
}

/// Which CPUs the driver and the guests get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Driver and guests on CPUs of their own, where the host has at least two.
    Separate,
    /// Everything on one CPU: no wake-up crosses CPUs, no parallelism either.
    SameCpu,
    /// The scheduler decides.
    Unpinned,
    /// As listed.
    Explicit {
        /// CPUs of the driver.
        client_cpus: Vec<u32>,
        /// CPUs of all guests.
        guest_cpus: Vec<u32>,
    },
}
