//! What an arm asks of the host's memory: `merging`, `ballooning` and `huge-pages`, and the trust domain that merging takes.

use serde_json::Value as Json;
use tare_model::ballooning::Ballooning;
use tare_model::merging::{HostMemory, MergeRule, Merging};
use tare_model::study::Arm;
use tare_model::units::Span;

use super::Context;
use crate::file;
use crate::host_rule::{BalloonRule, Rule};
use crate::language::shape::{Or, Ratio, Shape, Whole, Words};
use crate::language::tree::Cursor;
use crate::suggest;

const WHY_TRUST: &str = "lets all guests share equal pages with each other and with all others on this host whose memory \
                         is merged, and the study names no `trust-domain`. Shared pages can be read by timing: whoever \
                         writes to a page learns whether somebody else holds the same";
const WRITE_TRUST: &str = "if all that runs on this host may know what the others hold, write at the top of the file, in \
                           your words, to whom it belongs: `trust-domain = \"this team's guests alone\"`; else leave \
                           `merging` out";

/// `max-cpu` of the kernel's advisor, percent.
type Percent = Whole<1, 100>;
/// `max-cpu` of tare's own rule, a share.
type Share = Ratio<10, 1000>;

/// Names of the rules, each with its fields and the schema of `max-cpu`.
pub(crate) fn rules() -> impl Iterator<Item = (&'static str, &'static [&'static str], Json)> {
    let max_cpu = |rule| if rule == Rule::Tare { Share::schema() } else { Percent::schema() };
    Rule::WORDS.iter().map(move |&(name, rule)| (name, rule.fields(), max_cpu(rule)))
}

/// What an arm on this platform, with these options as far as they are right, asks of the host's memory.
pub(super) fn of_arm(arm: &file::Arm<'_>, context: &Context<'_>, platform: Option<(&str, &Json)>) -> HostMemory {
    let mut merging = match &arm.merging.value {
        Some(Or::Plain(rule)) => with(*rule, None),
        Some(Or::Table(table)) => table.rule.value.and_then(|rule| {
            only_its_own(&arm.merging, rule);
            with(rule, Some(table))
        }),
        None => None,
    };
    let refusal = platform.and_then(|(name, options)| context.catalog.merging_refusal(name, options));
    // It has to go, so nobody need be trusted with it.
    if let (Some(_), Some(refusal)) = (merging.as_ref(), refusal) {
        arm.merging.wrong(&format!("cannot be had with this platform: {}", refusal.reason), refusal.remedy);
        merging = None;
    }
    let outside = platform.is_some_and(|(name, options)| context.catalog.reaches_outside(name, options));
    if arm.huge_pages.value.is_some() && outside {
        let what = "is a setting of this host, and the arm is a machine that tare does not make";
        arm.huge_pages.wrong(what, "leave it out, and set it on that machine");
    }
    HostMemory { merging, huge_pages: arm.huge_pages.value, ballooning: ballooning(arm, context, platform) }
}

/// Who sizes the balloons of an arm's machines.
fn ballooning(arm: &file::Arm<'_>, context: &Context<'_>, platform: Option<(&str, &Json)>) -> Option<Ballooning> {
    let asked = match arm.ballooning.value.as_ref()? {
        Or::Plain(BalloonRule::Mom) => Ballooning::MOM,
        Or::Table(table) if table.rule.value == Some(BalloonRule::Mom) => sized(table),
        Or::Plain(BalloonRule::Off) | Or::Table(_) => return None,
    };
    let refusal = platform.and_then(|(name, options)| context.catalog.ballooning_refusal(name, options));
    if let Some(refusal) = refusal {
        arm.ballooning.wrong(&format!("cannot be had with this platform: {}", refusal.reason), refusal.remedy);
        return None;
    }
    Some(asked)
}

fn sized(table: &file::Ballooning<'_>) -> Ballooning {
    let own = Ballooning::MOM;
    let asked = Ballooning {
        pressure: table.pressure.or(own.pressure),
        critical: table.critical.or(own.critical),
        guest_free: table.guest_free.or(own.guest_free),
        guaranteed: table.guaranteed.or(own.guaranteed),
    };
    if asked.critical > asked.pressure {
        let why = format!("is more than `pressure`, which is {}", asked.pressure);
        table.critical.wrong(&why, "write a smaller share: what is critical is under pressure as well");
    }
    asked
}

/// The trust domain; its absence is reported at the first arm that merges.
pub(super) fn trust_domain(file: &file::Study<'_>, root: &Cursor<'_>, arms: &[Arm]) -> Option<String> {
    let merging = arms.iter().find(|arm| arm.host_memory.merging.is_some());
    if let Some(arm) = merging.filter(|_| !file.trust_domain.is_there()) {
        root.get("arms").get(&arm.id).get("merging").wrong(WHY_TRUST, WRITE_TRUST);
    }
    file.trust_domain.value.map(str::to_owned)
}

/// Reports fields that belong to another rule.
fn only_its_own(merging: &Cursor<'_>, rule: Rule) {
    let name = Rule::WORDS.iter().find(|(_, other)| *other == rule).map_or("", |(name, _)| name);
    let own = rule.fields();
    for field in merging.named().unwrap_or_default() {
        let others = |(_, rule): &(_, Rule)| rule.fields().contains(&field.key());
        if own.contains(&field.key()) || !Rule::WORDS.iter().any(others) {
            continue;
        }
        let help = match own {
            [] => "leave it out".to_owned(),
            _ => suggest::help("", &format!("fields of `{name}`"), own.iter().copied()),
        };
        field.wrong_key(&format!("is no field of the rule `{name}`"), help);
    }
}

/// The rule with its fields, or with what they are by default: the kernel's own values, and tare's.
fn with(rule: Rule, table: Option<&file::Merging<'_>>) -> Option<Merging> {
    let (second, millis) = (Span::from_secs, Span::from_millis);
    let max_cpu = table.map(|table| &table.max_cpu).filter(|field| field.is_there());
    let rule = match rule {
        Rule::Off => return None,
        Rule::Fixed => MergeRule::Fixed {
            pages_to_scan: table.map_or(100, |table| table.pages_to_scan.or(100)),
            sleep: table.map_or(millis(20), |table| table.sleep.or(millis(20))),
        },
        Rule::PublishedScript => MergeRule::PublishedScript,
        Rule::Ksmtuned => MergeRule::Ksmtuned,
        Rule::Advisor => MergeRule::Advisor {
            target_scan_time: table.map_or(second(200), |table| table.target_scan_time.or(second(200))),
            max_cpu: max_cpu.and_then(|field| Percent::read(field)).unwrap_or(70),
        },
        Rule::Tare => MergeRule::Tare {
            free_goal: table.map_or(0.2, |table| table.free_goal.or(0.2)),
            max_cpu: max_cpu.and_then(|field| Share::read(field)).unwrap_or(0.7),
        },
    };
    Some(Merging { rule, zero_pages: table.is_some_and(|table| table.zero_pages.or(false)) })
}
