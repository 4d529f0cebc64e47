//! What an arm asks of the host's memory: `merging` and `huge-pages`, and the trust domain that merging takes.

use serde_json::Value as Json;
use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::merging::{HostMemory, HugePages, MergeRule, Merging};
use tare_model::study::Arm;
use tare_model::units::Span;

use super::{Context, size};
use crate::fields;
use crate::suggest;
use crate::tree::{Cursor, Table};

/// What the kernel itself begins with.
const PAGES_TO_SCAN: u32 = 100;
/// See [`PAGES_TO_SCAN`].
const SLEEP: Span = Span::from_millis(20);
/// Most pages in one go: 4 GiB, which takes seconds.
const MOST_PAGES: u32 = 1 << 20;
/// Longest pause between two goes: with a longer one nothing is merged in the time of a trial.
const LONGEST_SLEEP: Span = Span::from_secs(60);
/// What the kernel's advisor begins with.
const TARGET_SCAN_TIME: Span = Span::from_secs(200);
/// See [`TARGET_SCAN_TIME`]; percent.
const ADVISOR_MAX_CPU: u32 = 70;
/// Longest pass of the advisor: a day.
const LONGEST_SCAN: Span = Span::from_secs(24 * 3600);
/// What tare's own rule keeps available, a share.
const FREE_GOAL: f64 = 0.2;
/// What it may take of a CPU, a share.
const MAX_CPU: f64 = 0.7;

const WHY_TRUST: &str = "lets all guests share equal pages with each other and with all others on this host whose memory \
                         is merged, and the study names no `trust-domain`. Shared pages can be read by timing: whoever \
                         writes to a page learns whether somebody else holds the same";
const WRITE_TRUST: &str = "if all that runs on this host may know what the others hold, write at the top of the file, in \
                           your words, to whom it belongs: `trust-domain = \"this team's guests alone\"`; else leave \
                           `merging` out";

/// A rule by its name in a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Off,
    Fixed,
    PublishedScript,
    Ksmtuned,
    Advisor,
    Tare,
}

/// Every rule with the fields that it alone has.
const RULES: &[(&str, Rule, &[&str])] = &[
    ("off", Rule::Off, &[]),
    ("fixed", Rule::Fixed, &["pages-to-scan", "sleep", "zero-pages"]),
    ("published-script", Rule::PublishedScript, &["zero-pages"]),
    ("ksmtuned", Rule::Ksmtuned, &["zero-pages"]),
    ("advisor", Rule::Advisor, &["target-scan-time", "max-cpu", "zero-pages"]),
    ("tare", Rule::Tare, &["free-goal", "max-cpu", "zero-pages"]),
];

/// Names of the rules, each with its fields, for the schema.
pub(crate) fn rules() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    RULES.iter().map(|&(name, _, fields)| (name, fields))
}

/// What an arm on this platform, with these options as far as they are right, asks of the host's memory.
pub(super) fn of_arm(arm: &Table<'_>, context: &Context<'_>, platform: Option<(&str, &Json)>) -> HostMemory {
    let merging = arm.get("merging").and_then(|field| {
        let merging = merging(&field)?;
        let refusal = platform.and_then(|(name, options)| context.catalog.merging_refusal(name, options));
        if let Some(Refusal { reason, remedy }) = refusal {
            field.wrong(&format!("cannot be had with this platform: {reason}"), remedy);
            // It has to go, so nobody need be trusted with it.
            return None;
        }
        Some(merging)
    });
    let words = [("always", HugePages::Always), ("madvise", HugePages::Madvise), ("never", HugePages::Never)];
    let huge_pages = arm.get("huge-pages").and_then(|field| {
        let chosen = field.choice(&words)?;
        if platform.is_some_and(|(name, options)| context.catalog.reaches_outside(name, options)) {
            let what = "is a setting of this host, and the arm is a machine that tare does not make";
            field.wrong(what, "leave it out, and set it on that machine");
        }
        Some(chosen)
    });
    HostMemory { merging, huge_pages }
}

/// The trust domain; its absence is reported at the first arm that merges.
pub(super) fn trust_domain(study: &Table<'_>, arms: &[Arm]) -> Option<String> {
    if let Some(field) = study.get("trust-domain") {
        return field.text().map(str::to_owned);
    }
    if let Some(arm) = arms.iter().find(|arm| arm.host_memory.merging.is_some()) {
        let message = format!("`arms.{}.merging` {WHY_TRUST}", arm.id);
        study.cursor().sink().add(FieldError::new(&["arms", &arm.id, "merging"], message).help(WRITE_TRUST));
    }
    None
}

/// A rule's name, or a table with the rule and its fields. `None`: off, or reported.
fn merging(cursor: &Cursor<'_>) -> Option<Merging> {
    if !cursor.is_table() {
        return with(rule(cursor)?, None);
    }
    let table = cursor.table(fields::MERGING)?;
    let field = table.require("rule")?;
    let rule = rule(&field)?;
    only_its_own(&table, rule);
    with(rule, Some(&table))
}

fn rule(cursor: &Cursor<'_>) -> Option<Rule> {
    let words: Vec<(&str, Rule)> = RULES.iter().map(|&(name, rule, _)| (name, rule)).collect();
    cursor.choice(&words)
}

/// Reports fields that belong to another rule.
fn only_its_own(table: &Table<'_>, rule: Rule) {
    let Some(&(name, _, own)) = RULES.iter().find(|(_, other, _)| *other == rule) else { return };
    let others = fields::MERGING.iter().map(|field| field.key).filter(|key| *key != "rule" && !own.contains(key));
    for field in others.filter_map(|key| table.get(key)) {
        let help = match own {
            [] => "leave it out".to_owned(),
            _ => suggest::help("", &format!("fields of `{name}`"), own.iter().copied()),
        };
        field.wrong_key(&format!("is no field of the rule `{name}`"), help);
    }
}

/// The rule with its fields, or with what they are by default.
fn with(rule: Rule, table: Option<&Table<'_>>) -> Option<Merging> {
    let field = |key: &str| table.and_then(|table| table.get(key));
    let rule = match rule {
        Rule::Off => return None,
        Rule::Fixed => MergeRule::Fixed {
            pages_to_scan: field("pages-to-scan").and_then(|c| c.integer32(1..=MOST_PAGES)).unwrap_or(PAGES_TO_SCAN),
            sleep: field("sleep").and_then(|c| whole(&c, Span::from_millis(1), LONGEST_SLEEP)).unwrap_or(SLEEP),
        },
        Rule::PublishedScript => MergeRule::PublishedScript,
        Rule::Ksmtuned => MergeRule::Ksmtuned,
        Rule::Advisor => MergeRule::Advisor {
            target_scan_time: field("target-scan-time")
                .and_then(|c| whole(&c, Span::from_secs(1), LONGEST_SCAN))
                .unwrap_or(TARGET_SCAN_TIME),
            max_cpu: field("max-cpu").and_then(|c| c.integer32(1..=100)).unwrap_or(ADVISOR_MAX_CPU),
        },
        Rule::Tare => MergeRule::Tare {
            free_goal: field("free-goal").and_then(|c| size::share(&c)).unwrap_or(FREE_GOAL),
            max_cpu: field("max-cpu").and_then(|c| size::share(&c)).unwrap_or(MAX_CPU),
        },
    };
    Some(Merging { rule, zero_pages: field("zero-pages").and_then(|c| c.boolean()).unwrap_or(false) })
}

/// A length of time in whole `unit`s, as the kernel takes it, one at least.
fn whole(cursor: &Cursor<'_>, unit: Span, longest: Span) -> Option<Span> {
    let span: Span = cursor.quantity()?;
    if span.ns == 0 || !span.ns.is_multiple_of(unit.ns) || span > longest {
        let what = format!("is {span}, and the kernel takes whole multiples of {unit}, at most {longest} here");
        let nearest = Span { ns: (span.ns / unit.ns).max(1).saturating_mul(unit.ns).min(longest.ns) };
        cursor.wrong(&what, format!("such as \"{nearest}\""));
        return None;
    }
    Some(span)
}
