//! What a field can hold: how each shape is read, with errors, and its JSON schema.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};
use tare_model::aggressor::Aggressor;
use tare_model::guest::Seccomp;
use tare_model::load::Arrivals;
use tare_model::merging::HugePages;
use tare_model::start::Start;
use tare_model::study::{Attach, CompareWith, Placement};
use tare_model::turns::Waiting;
use tare_model::units::{AddressRange, BitRate, ByteSize, Rate, Span};

use crate::cpus;
use crate::language::table::Field;
use crate::language::tree::Cursor;

/// Pattern of ids.
const ID: &str = "^[a-z0-9][a-z0-9-]*$";
/// Pattern of lists of CPUs.
const CPU_LIST: &str = r"^\s*[0-9]+(-[0-9]+)?\s*(,\s*[0-9]+(-[0-9]+)?\s*)*$";
/// Pattern of percentages.
const PERCENTAGE: &str = r"^\s*[0-9]+([.][0-9]+)?\s*%\s*$";
/// Longest id; ids become file and interface names.
const MAX_ID: usize = 40;
/// Longest name of a study.
const MAX_NAME: usize = 64;
/// Most entries of a table of named things, such as cases: hundreds of times what anybody compared.
const MOST_NAMED: usize = 1000;
/// Most memory: keeps every sum within 64 bits.
const MOST_MEMORY: ByteSize = ByteSize(1 << 47);
/// Longest name of a congestion control (TCP_CA_NAME_MAX of the kernel, less its NUL).
const MAX_ALGORITHM: usize = 15;

/// Most connections of one driver: what a client's range of ports allows (16 bits).
pub(crate) const MAX_CONNECTIONS: u32 = 60_000;

/// What a field can hold.
pub(crate) trait Shape<'a> {
    /// What it is once it was read.
    type Value;

    /// Reads it. What it cannot take is reported, and nothing returned.
    fn read(at: &Cursor<'a>) -> Option<Self::Value>;

    /// Its JSON schema.
    fn schema() -> Json;
}

pub(crate) fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Reports a value that is not within bounds.
fn out_of_bounds(at: &Cursor<'_>, value: impl Display, (least, most): (impl Display, impl Display), help: String) {
    at.wrong(&format!("is {value}, and must be from {least} to {most}"), help);
}

/// A quantity or a number within bounds.
fn within<T: PartialOrd + Display>(at: &Cursor<'_>, value: T, bounds: RangeInclusive<T>) -> Option<T> {
    if bounds.contains(&value) {
        return Some(value);
    }
    let unit = if value > *bounds.end() { " Is the unit right?" } else { "" };
    let help = format!("{}{unit}", at.example_and_meaning());
    out_of_bounds(at, value, (bounds.start(), bounds.end()), help);
    None
}

/// Most that counts as 1 in a score: keeps every product finite.
const MOST_REFERENCE: f64 = 1e12;

/// Shapes: the name, with bounds where it has them, what it is once it was read, how it is read, and its JSON schema.
macro_rules! shapes {
    ($($(#[doc = $doc:literal])+ $name:ident$([$($bound:ident: $number:ty),+])? -> $value:ty = $read:expr, $schema:expr;)+) => {
        $(
            $(#[doc = $doc])+
            pub(crate) struct $name$(<$(const $bound: $number),+>)?;

            impl<'a $($(, const $bound: $number)+)?> Shape<'a> for $name$(<$($bound),+>)? {
                type Value = $value;

                fn read(at: &Cursor<'a>) -> Option<$value> {
                    let read: fn(&Cursor<'a>) -> Option<$value> = $read;
                    read(at)
                }

                fn schema() -> Json {
                    $schema
                }
            }
        )+
    };
}

shapes! {
    /// `true` or `false`.
    Switch -> bool = Cursor::boolean, json!({ "type": "boolean" });
    /// A text that is not blank.
    Text -> &'a str = Cursor::text, json!({ "type": "string", "pattern": "\\S" });
    /// A text that is fit for the name of a folder.
    Name -> &'a str = name, json!({ "type": "string", "pattern": ID, "maxLength": MAX_NAME });
    /// A whole number.
    Whole[LEAST: u32, MOST: u32] -> u32 = |at| at.integer(LEAST..=MOST), json!({ "type": "integer", "minimum": LEAST, "maximum": MOST });
    /// A seed of random numbers.
    Seed -> u64 = |at| at.integer(0..=i64::MAX as u64), json!({ "type": "integer", "minimum": 0 });
    /// A share or a ratio, from `LEAST` to `MOST` thousandths.
    Ratio[LEAST: u32, MOST: u32] -> f64 = |at| share(at, f64::from(LEAST) / 1000.0..=f64::from(MOST) / 1000.0),
        json!({ "type": "number", "minimum": f64::from(LEAST) / 1000.0, "maximum": f64::from(MOST) / 1000.0 });
    /// A percentage of something, from `LEAST` to `MOST`, as a share.
    Part[LEAST: u32, MOST: u32] -> f64 = |at| {
        let (least, most) = (f64::from(LEAST), f64::from(MOST));
        percentage(at, |number| (least..=most).contains(&number), &format!("from {least} % to {most} %"))
    }, json!({ "type": "string", "pattern": PERCENTAGE });
    /// What counts as 1 in a score.
    Reference -> f64 = |at| within(at, at.number()?, 0.001..=MOST_REFERENCE),
        json!({ "type": "number", "minimum": 0.001, "maximum": MOST_REFERENCE });
    /// A percentage between 0 and 100, as a share.
    Percent -> f64 = |at| percentage(at, |number| number > 0.0 && number < 100.0, "above 0 % and below 100 %"), json!({ "type": "string", "pattern": PERCENTAGE });
    /// Operations in a length of time.
    PerSecond -> Rate = Cursor::quantity, reference("rate");
    /// A length of time within bounds, milliseconds.
    Time[LEAST: u64, MOST: u64] -> Span = |at| time(at, Span::from_millis(LEAST), Span::from_millis(MOST)), reference("span");
    /// A length of time in whole units as the kernel takes it, one at least; unit and longest in milliseconds.
    WholeTime[EACH: u64, MOST: u64] -> Span =
        |at| whole_time(at, Span::from_millis(EACH), Span::from_millis(MOST)), reference("span");
    /// The rate of a link: 1 Mbit/s to 100 Gbit/s.
    LinkRate -> BitRate = |at| within(at, at.quantity()?, BitRate(1_000_000)..=BitRate(100_000_000_000)), reference("bit-rate");
    /// A range of addresses.
    Addresses -> AddressRange = |at| at.quantity(), reference("addresses");
    /// A size of memory, from `LEAST` MiB.
    Size[LEAST: u64] -> ByteSize = |at| within(at, at.quantity()?, ByteSize(LEAST << 20)..=MOST_MEMORY), reference("size");
    /// A list of CPUs as the kernel writes it.
    CpuList -> Vec<u32> = cpu_list, json!({ "type": "string", "pattern": CPU_LIST });
    /// The name of a TCP congestion control.
    Algorithm -> &'a str = algorithm, Text::schema();
    /// Options of a platform's or parameters of a workload's own.
    Own -> Json = |at| at.named().and_then(|_| at.json()), json!({ "type": "object" });
    /// Clients of a closed loop, or the rate of an open one. Which, is known later, as with those below.
    LoadNumber -> () = |_| Some(()), json!({ "anyOf": [Whole::<1, MAX_CONNECTIONS>::schema(), PerSecond::schema()] });
    /// CPU that a rule of merging may take.
    MaxCpu -> () = |_| Some(()), json!({ "type": "number" });
    /// Lists of values by field.
    Sweep -> () = |_| Some(()),
        json!({ "type": "object", "minProperties": 1, "additionalProperties": { "type": ["array", "object"] } });
    /// Objectives by metric.
    Objectives -> () = |_| Some(()), json!({ "type": "object", "additionalProperties": { "type": ["string", "number"] } });
    /// A host; the schema of machines is added where it offers load.
    Host -> () = |_| Some(()), json!({ "type": "object" });
}

fn name<'a>(at: &Cursor<'a>) -> Option<&'a str> {
    let text = at.text()?;
    let Some(why) = unfit(text, MAX_NAME) else { return Some(text) };
    at.wrong(&format!("is not fit for the name of a folder: {why}"), fit_help(text));
    None
}

fn share(at: &Cursor<'_>, bounds: RangeInclusive<f64>) -> Option<f64> {
    let share = at.number()?;
    let meant = share / 100.0;
    if share > *bounds.end() && bounds.contains(&meant) {
        let help = format!("a share, not a percentage: {share} % is {meant}");
        out_of_bounds(at, share, (bounds.start(), bounds.end()), help);
        return None;
    }
    within(at, share, bounds)
}

/// A percentage within some bounds, as a share. `bounds` says which, for people.
fn percentage(at: &Cursor<'_>, within: impl Fn(f64) -> bool, bounds: &str) -> Option<f64> {
    let text = at.text()?;
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let within = number.filter(|number| within(*number));
    if within.is_none() {
        at.wrong(&format!("is {text:?}, and must be a percentage {bounds}"), at.example_and_meaning());
    }
    within.map(|number| number / 100.0)
}

fn time(at: &Cursor<'_>, least: Span, most: Span) -> Option<Span> {
    const DAY: u64 = 24 * 3600;
    let span: Span = at.quantity()?;
    let days = most.ns / Span::from_secs(DAY).ns;
    if span > most && days > 0 {
        let help = format!("{} Is the unit right?", at.example_and_meaning());
        out_of_bounds(at, span, (least, format!("{days} days")), help);
        return None;
    }
    within(at, span, least..=most)
}

fn whole_time(at: &Cursor<'_>, unit: Span, most: Span) -> Option<Span> {
    let span: Span = at.quantity()?;
    if span.ns > 0 && span.ns.is_multiple_of(unit.ns) && span <= most {
        return Some(span);
    }
    let nearest = Span { ns: (span.ns / unit.ns).max(1).saturating_mul(unit.ns).min(most.ns) };
    let what = format!("is {span}, and the kernel takes whole multiples of {unit}, at most {most} here");
    at.wrong(&what, format!("such as \"{nearest}\""));
    None
}

fn cpu_list(at: &Cursor<'_>) -> Option<Vec<u32>> {
    let text = at.text()?;
    let parsed = cpus::parse(text);
    if parsed.is_none() {
        at.wrong(&format!("is {text:?}, which is no list of CPUs"), "write numbers and ranges, such as \"0,2-3\"");
    }
    parsed
}

fn algorithm<'a>(at: &Cursor<'a>) -> Option<&'a str> {
    let name = at.text()?;
    let fits = name.len() <= MAX_ALGORITHM && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'));
    if !fits {
        at.wrong(&format!("is {name:?}, which is no name of a TCP congestion control"), at.example_and_meaning());
    }
    fits.then_some(name)
}

/// Reports an id (a key of the user's own) that is unfit.
pub(crate) fn check_id(at: &Cursor<'_>) {
    if let Some(why) = unfit(at.key(), MAX_ID) {
        at.wrong_key(&format!("has an id that is not fit for a file name: {why}"), fit_help(at.key()));
    }
}

fn unfit(text: &str, longest: usize) -> Option<String> {
    if let Some(bad) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
        return Some(format!("it has {bad:?} in it"));
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Some("it does not start with a letter or a digit".to_owned());
    }
    (text.len() > longest).then(|| format!("it is longer than {longest} characters"))
}

/// What was refused, made fit, as a proposal.
fn fit_help(text: &str) -> String {
    let rule = "use lower case letters, digits and `-`, a letter or digit first";
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let proposal: String = words.join("-").chars().take(MAX_ID).collect();
    if proposal.is_empty() { rule.to_owned() } else { format!("{rule}: `{}`", proposal.trim_end_matches('-')) }
}

/// One of a few words.
pub(crate) trait Words: Clone + 'static {
    /// All of them.
    const WORDS: &'static [(&'static str, Self)];
}

impl<T: Words> Shape<'_> for T {
    type Value = Self;

    fn read(at: &Cursor<'_>) -> Option<Self> {
        at.choice(Self::WORDS)
    }

    fn schema() -> Json {
        json!({ "enum": Self::WORDS.iter().map(|(word, _)| word).collect::<Vec<_>>() })
    }
}

impl Words for Arrivals {
    const WORDS: &'static [(&'static str, Self)] = &[("poisson", Self::Poisson), ("uniform", Self::Uniform)];
}

impl Words for HugePages {
    const WORDS: &'static [(&'static str, Self)] =
        &[("always", Self::Always), ("madvise", Self::Madvise), ("never", Self::Never)];
}

impl Words for Attach {
    const WORDS: &'static [(&'static str, Self)] = &[("bridge", Self::Bridge), ("macvlan", Self::Macvlan)];
}

impl Words for CompareWith {
    const WORDS: &'static [(&'static str, Self)] = &[("published", Self::Published)];
}

impl Words for Start {
    const WORDS: &'static [(&'static str, Self)] = &[("cold", Self::Cold), ("snapshot", Self::Snapshot)];
}

impl Words for Placement {
    const WORDS: &'static [(&'static str, Self)] =
        &[("separate", Self::Separate), ("same-cpu", Self::SameCpu), ("unpinned", Self::Unpinned)];
}

/// How the arms of a case share the time of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    Turns,
    Trials,
}

impl Words for Schedule {
    const WORDS: &'static [(&'static str, Self)] = &[("turns", Self::Turns), ("trials", Self::Trials)];
}

impl Words for Waiting {
    const WORDS: &'static [(&'static str, Self)] = &[("idle", Self::Idle), ("frozen", Self::Frozen)];
}

/// What neighbours do, where one of the words says that they do nothing.
impl Words for Option<Aggressor> {
    const WORDS: &'static [(&'static str, Self)] = &{
        let mut words = [("none", None); 1 + Aggressor::ALL.len()];
        let mut at = 0;
        while at < Aggressor::ALL.len() {
            words[at + 1] = (Aggressor::ALL[at].name(), Some(Aggressor::ALL[at]));
            at += 1;
        }
        words
    };
}

impl Words for Seccomp {
    const WORDS: &'static [(&'static str, Self)] = &Self::ALL;
}

/// Something plain, or a table in its place.
pub(crate) enum Or<P, T> {
    Plain(P),
    Table(T),
}

impl<'a, P: Shape<'a>, T: Shape<'a>> Shape<'a> for Or<P, T> {
    type Value = Or<P::Value, T::Value>;

    fn read(at: &Cursor<'a>) -> Option<Self::Value> {
        if at.is_table() { T::read(at).map(Or::Table) } else { P::read(at).map(Or::Plain) }
    }

    fn schema() -> Json {
        json!({ "anyOf": [P::schema(), T::schema()] })
    }
}

/// A list of different values, one at least.
pub(crate) struct List<S, const MOST: usize>(std::marker::PhantomData<S>);

impl<'a, S: Shape<'a>, const MOST: usize> Shape<'a> for List<S, MOST> {
    type Value = Vec<Field<'a, S::Value>>;

    fn read(at: &Cursor<'a>) -> Option<Self::Value> {
        let items = at.items()?;
        if (1..=MOST).contains(&items.len()) {
            return Some(fields::<S>(items));
        }
        let number = if MOST == 1 { "exactly one".to_owned() } else { format!("from 1 to {MOST}") };
        at.wrong(&format!("lists {} values, and takes {number}", items.len()), at.example_and_meaning());
        None
    }

    fn schema() -> Json {
        json!({ "type": "array", "items": S::schema(), "minItems": 1, "maxItems": MOST, "uniqueItems": true })
    }
}

/// A table whose keys are ids of the user's own.
pub(crate) struct Named<S>(std::marker::PhantomData<S>);

impl<'a, S: Shape<'a>> Shape<'a> for Named<S> {
    type Value = Vec<Field<'a, S::Value>>;

    fn read(at: &Cursor<'a>) -> Option<Self::Value> {
        let named = at.named()?;
        if named.is_empty() {
            at.wrong_key("names nothing", at.example_and_meaning());
        } else if named.len() > MOST_NAMED {
            at.wrong_key(&format!("names {}, and can name {MOST_NAMED} at most", named.len()), "split the study");
            return None;
        }
        Some(fields::<S>(named.into_iter().map(|one| one.like(at)).collect()))
    }

    fn schema() -> Json {
        json!({
            "type": "object", "minProperties": 1,
            "propertyNames": { "pattern": ID, "maxLength": MAX_ID }, "additionalProperties": S::schema(),
        })
    }
}

fn fields<'a, S: Shape<'a>>(all: Vec<Cursor<'a>>) -> Vec<Field<'a, S::Value>> {
    all.into_iter().map(|at| (S::read(&at), at)).map(|(value, at)| Field::new(at, false, value)).collect()
}
