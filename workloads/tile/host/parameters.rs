//! What a study says of the members of a tile.

use std::collections::BTreeSet;
use tare_model::traits::{ANY_SIZE, Traits};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tare_model::field::FieldError;
use tare_model::load::{Arrivals, LoadModel};
use tare_model::units::{ByteSize, Rate, Span};

use super::Member;
use crate::entry::{Entry, read};
use crate::registry;

/// This workload, which is no member of itself.
pub(super) const NAME: &str = "tile";
/// Most members: with the fewest guests of a study, one tile.
const MOST_MEMBERS: usize = 64;
/// Longest name of a member: it stands before the name of every metric.
const NAME_MAX: usize = 32;
/// Most CPUs of a guest, as of every guest of a study.
const MOST_CPUS: u32 = 4096;
/// Least and most memory of a guest, likewise.
const MEMORY: (ByteSize, ByteSize) = (ByteSize(16 << 20), ByteSize(1 << 47));
/// Most connections of one driver, likewise.
const MOST_CONNECTIONS: u32 = 60_000;
/// Most instances of an application in a guest, likewise.
const MOST_INSTANCES: u32 = 64;
/// Slips of the finger in a name, for each three letters.
const LETTERS_A_SLIP: usize = 3;

/// Several guests with different work, which are repeated as one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Parameters {
    /// The guests of one tile, in the order in which they are added.
    #[schemars(length(min = 1, max = 64))]
    #[serde(default)]
    pub members: Vec<MemberParameters>,
}

/// One guest of each tile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct MemberParameters {
    /// Its name: letters, digits and dashes. Its metrics are `NAME:METRIC`.
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9-]{0,31}$"))]
    pub name: String,
    /// What runs in it: a workload that can be driven again and again in the same guest.
    pub workload: String,
    /// Parameters of that workload.
    #[serde(default = "nothing")]
    #[schemars(with = "Map<String, Value>")]
    pub parameters: Value,
    /// How load is offered to it.
    #[serde(default)]
    pub load: MemberLoad,
    /// Its size; what is left out is that of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<MemberGuest>,
    /// Instances of the application in it; the clients of `load` are those of all together.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    pub instances: u32,
}

const fn one() -> u32 {
    1
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

/// Size of a guest as far as it is another than the case's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct MemberGuest {
    /// CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub cpus: Option<u32>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
}

/// How load is offered, in the words of a case's `load`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub(super) enum MemberLoad {
    /// Each client starts its next operation when the last one ended and it has thought.
    Closed {
        /// Clients.
        #[schemars(range(min = 1, max = 60000))]
        clients: u32,
        /// Pause between two operations of a client.
        #[serde(default)]
        think_time: Span,
    },
    /// Operations start at times fixed in advance.
    Open {
        /// Arrivals in a second.
        rate: Rate,
        /// Connections that they are dealt to.
        #[schemars(range(min = 1, max = 60000))]
        connections: u32,
        /// How arrivals are spread.
        #[serde(default)]
        arrivals: Arrivals,
    },
}

impl Default for MemberLoad {
    fn default() -> Self {
        Self::Closed { clients: 1, think_time: Span::ZERO }
    }
}

impl From<MemberLoad> for LoadModel {
    fn from(load: MemberLoad) -> Self {
        match load {
            MemberLoad::Closed { clients, think_time } => Self::Closed { clients, think_time },
            MemberLoad::Open { rate, connections, arrivals } => Self::Open { rate, arrivals, connections },
        }
    }
}

/// The parameters with every default filled in, those of the members' workloads too, or what is wrong with them.
pub(super) fn normalised(parameters: &Value) -> Result<Parameters, FieldError> {
    let mut read: Parameters = read(parameters)?;
    let count = read.members.len();
    if count == 0 || count > MOST_MEMBERS {
        let what = format!("{count} members are named, and a tile has from 1 to {MOST_MEMBERS}");
        let help = "write one such as `members = [{ name = \"shop\", workload = \"web-ecommerce\" }]`";
        return Err(FieldError::new(&["members"], what).help(help));
    }
    let mut names = BTreeSet::new();
    for (number, member) in read.members.iter_mut().enumerate() {
        let at = number.to_string();
        let within = |error: FieldError| error.within(&["members", &at]);
        check_name(&member.name).map_err(within)?;
        if !names.insert(member.name.to_lowercase()) {
            let error = FieldError::new(&["name"], format!("there are two members called `{}`", member.name));
            return Err(within(error.help("give each a name of its own")));
        }
        check_numbers(member).map_err(within)?;
        let entry = entry(&member.workload).map_err(within)?;
        member.parameters =
            (entry.normalise)(&member.parameters).map_err(|error| within(error.within(&["parameters"])))?;
    }
    Ok(read)
}

fn check_name(name: &str) -> Result<(), FieldError> {
    let mut letters = name.chars();
    let fit = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '-');
    if fit && name.len() <= NAME_MAX {
        return Ok(());
    }
    let what = format!("`{name}` is no name of a member: it stands before the names of metrics");
    let help = format!("write up to {NAME_MAX} letters, digits and dashes, a letter first, such as `shop`");
    Err(FieldError::new(&["name"], what).help(help))
}

/// Numbers that would be refused in a case too.
fn check_numbers(member: &MemberParameters) -> Result<(), FieldError> {
    let number = |path: &[&str], value: u32, most: u32| {
        let what = || format!("{value} is not a whole number from 1 to {most}");
        if (1..=most).contains(&value) { Ok(()) } else { Err(FieldError::new(path, what())) }
    };
    number(&["instances"], member.instances, MOST_INSTANCES)?;
    match member.load {
        MemberLoad::Closed { clients, .. } => number(&["load", "closed", "clients"], clients, MOST_CONNECTIONS)?,
        MemberLoad::Open { connections, .. } => {
            number(&["load", "open", "connections"], connections, MOST_CONNECTIONS)?
        }
    }
    let Some(guest) = member.guest else { return Ok(()) };
    number(&["guest", "cpus"], guest.cpus.unwrap_or(1), MOST_CPUS)?;
    let memory = guest.memory.unwrap_or(MEMORY.0);
    if !(MEMORY.0..=MEMORY.1).contains(&memory) {
        let what = format!("{memory} is not from {} to {}", MEMORY.0, MEMORY.1);
        return Err(FieldError::new(&["guest", "memory"], what).help("is the unit right?"));
    }
    Ok(())
}

/// The member's workload.
fn entry(name: &str) -> Result<&'static Entry, FieldError> {
    if name == NAME {
        let what = "a tile has no tiles in it";
        return Err(
            FieldError::new(&["workload"], what).help("name the members of the inner one among those of the outer")
        );
    }
    registry::find(name).ok_or_else(|| {
        let error = FieldError::new(&["workload"], format!("there is no workload `{name}`"));
        let names = || registry::ALL.iter().map(|entry| entry.name).filter(|known| *known != NAME);
        let distance = |known: &str| strsim::damerau_levenshtein(&name.to_lowercase(), known);
        let near = names().map(|known| (distance(known), known)).min();
        match near.filter(|(slips, _)| *slips <= (name.chars().count() / LETTERS_A_SLIP).max(1)) {
            Some((_, meant)) => error.help(format!("did you mean `{meant}`?")),
            None => error.help(format!("workloads that can be members: {}", can_be_members())),
        }
    })
}

/// Names of the workloads that can be members as they are by themselves.
fn can_be_members() -> String {
    let one_client = LoadModel::from(MemberLoad::default());
    let can = |entry: &&Entry| {
        let made = if entry.name == NAME { None } else { (entry.make)(&nothing(), &one_client).ok() };
        made.is_some_and(|workload| repeats(&workload.traits(&ANY_SIZE, 1)))
    };
    let names: Vec<String> = registry::ALL.iter().filter(can).map(|entry| format!("`{}`", entry.name)).collect();
    names.join(", ")
}

/// Whether a workload can be driven again and again while others are added.
const fn repeats(traits: &Traits) -> bool {
    traits.density || traits.repeats
}

/// The members, each with its workload.
pub(super) fn members(parameters: &Value) -> Result<Vec<Member>, FieldError> {
    let read = normalised(parameters)?;
    let made = read.members.into_iter().enumerate().map(|(number, member)| {
        let at = number.to_string();
        made(member).map_err(|error| error.within(&["members", &at]))
    });
    made.collect()
}

fn made(of: MemberParameters) -> Result<Member, FieldError> {
    let load = LoadModel::from(of.load);
    let has_load = of.parameters.get("load").is_some();
    let workload = (entry(&of.workload)?.make)(&of.parameters, &load).map_err(|error| {
        let about_load = !has_load && error.path.first().is_some_and(|key| key == "load");
        if about_load { error } else { error.within(&["parameters"]) }
    })?;
    let traits = workload.traits(&ANY_SIZE, of.instances);
    if !repeats(&traits) {
        let what = format!(
            "`{}` as it is set here cannot be driven again and again in one guest, as a tile asks",
            of.workload
        );
        let help = format!("workloads that can: {}", can_be_members());
        return Err(FieldError::new(&["workload"], what).help(help));
    }
    if traits.calibrated {
        let what = format!(
            "`{}` as it is set here finds its load before the first trial, in one guest that is alone on the host: a rate for all \
             guests of a case, and those of a tile differ",
            of.workload
        );
        return Err(FieldError::new(&["parameters"], what).help("give the member a load that is fixed"));
    }
    if of.instances > 1 && !traits.several_instances {
        let what = format!("`{}` is one instance of its application, and {} are asked for", of.workload, of.instances);
        return Err(FieldError::new(&["instances"], what).help("leave it out"));
    }
    let guest = of.guest.unwrap_or(MemberGuest { cpus: None, memory: None });
    let kind = format!("{} {}", of.workload, of.parameters);
    Ok(Member { name: of.name, kind, workload, load, instances: of.instances, cpus: guest.cpus, memory: guest.memory })
}

/// What is wrong with the load of a case of tiles: members have their own.
pub(super) fn no_load(load: &LoadModel) -> Result<(), FieldError> {
    if *load == LoadModel::from(MemberLoad::default()) {
        return Ok(());
    }
    let what = "the members of a tile have loads of their own";
    Err(FieldError::new(&["load"], what).help("leave it out, and write a `load` for each of `members`"))
}

#[cfg(test)]
mod tests;
