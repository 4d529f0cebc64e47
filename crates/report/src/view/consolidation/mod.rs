//! Several instances of an application in one guest: response time against load, and what each instance more costs.

mod figures;
mod instances;
mod tables;
mod words;

use serde::Serialize;
use tare_model::findings::{ArmConsolidation, ConsolidationFindings, Estimate, Findings};
use tare_model::guest::GuestSize;
use tare_model::metric::Unit;
use tare_model::study::CompareWith;

use super::case::FigureView;
use super::table::Table;
use crate::format;
use crate::plot::arms::{ArmLook, Arms};

/// What a study of 2011 found for the same question. It is shown only where the study asks for it.
const PUBLISHED: &str = "Beside it: a published study of 2011 (several application servers in one virtual machine) found that each instance more cost 2 to 3 % of \
                                    the throughput at a fixed CPU utilisation, and 1 to 4 points of CPU at a fixed load, levelling off after about 4 instances.";

/// The section.
#[derive(Debug, Serialize)]
pub(crate) struct ConsolidationView {
    pub(crate) groups: Vec<GroupView>,
    /// Empty where the study does not compare with what was published.
    pub(crate) published: &'static str,
}

/// Cases of one workload in guests of one size.
#[derive(Debug, Serialize)]
pub(crate) struct GroupView {
    pub(crate) title: String,
    /// How many cases, and where each is.
    pub(crate) about: String,
    pub(crate) parts: Vec<PartView>,
}

/// A figure, what is seen in it, and the figures in numbers.
#[derive(Debug, Serialize)]
pub(crate) struct PartView {
    pub(crate) title: String,
    /// What is seen, a sentence each.
    pub(crate) seen: Vec<String>,
    pub(crate) figure: Option<FigureView>,
    pub(crate) table: Option<Table>,
    /// Name of the folded table.
    pub(crate) table_title: String,
}

impl ConsolidationView {
    pub(super) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let published = findings.plan.study.compare_with == Some(CompareWith::Published);
        let groups: Vec<GroupView> = findings
            .consolidation
            .iter()
            .enumerate()
            .map(|(n, found)| Group { found, arms, published }.view(&format!("fig-instances-{}", n + 1)))
            .filter(|group| !group.parts.is_empty())
            .collect();
        (!groups.is_empty()).then_some(Self { groups, published: if published { PUBLISHED } else { "" } })
    }
}

/// What the study says of several instances, in a few sentences for its top.
pub(super) fn headlines(findings: &Findings, arms: &Arms) -> Vec<String> {
    let several = findings.consolidation.len() > 1;
    let of = |found: &ConsolidationFindings| {
        let place = if several { format!("{}: ", of_size(&found.guest)) } else { String::new() };
        let own = Group { found, arms, published: false }.headlines();
        own.into_iter().map(|sentence| format!("{place}{sentence}")).collect::<Vec<_>>()
    };
    findings.consolidation.iter().flat_map(of).collect()
}

/// Whether the section speaks of a case, which need then not speak first for itself.
pub(super) fn covers(findings: &Findings, case: &str) -> bool {
    let consolidated = findings.consolidation.iter().flat_map(|group| &group.cases);
    let sized = findings
        .sizing
        .iter()
        .flat_map(|own| &own.arms)
        .filter(|arm| arm.model.is_some())
        .flat_map(|arm| &arm.points)
        .map(|point| &point.case);
    consolidated.chain(sized).any(|id| id == case)
}

/// `guest of 2 CPUs and 4GiB`.
pub(super) fn of_size(guest: &GuestSize) -> String {
    format!("guest of {} and {}", format::plural(u64::from(guest.cpus), "CPU", "CPUs"), guest.memory)
}

/// A number of clients, or of arrivals a second.
pub(super) fn load(load: f64) -> String {
    super::capacity::load_text(load)
}

/// One group and the arms' looks.
struct Group<'a> {
    found: &'a ConsolidationFindings,
    arms: &'a Arms,
    /// Whether bands of published figures are drawn.
    published: bool,
}

impl<'a> Group<'a> {
    /// In the order of the study.
    fn shown(&self) -> impl Iterator<Item = (&'a ArmConsolidation, ArmLook)> {
        let found = self.found;
        self.arms.having(|id| found.arms.iter().find(|arm| arm.arm == id)).into_iter()
    }

    fn view(&self, id: &str) -> GroupView {
        let title =
            format!("{}, {}", super::super::words::sentence_case(&self.found.workload), of_size(&self.found.guest));
        let cases = format::plural(self.found.cases.len() as u64, "case", "cases");
        let parts = [
            self.by_load(id),
            self.processor(id),
            self.lost(id),
            self.gained(id),
            self.side_by_side(id),
            self.side_by_side_instances(id),
            self.each_instance(),
        ];
        GroupView {
            title,
            about: format!(
                "{cases} that differ in load and in the number of instances of the application inside the guest; each has a section of its own below."
            ),
            parts: parts.into_iter().flatten().collect(),
        }
    }
}

/// Unit of a change of throughput.
fn percent() -> Unit {
    Unit::Other("%".to_owned())
}

/// Unit of a change of CPU.
fn points() -> Unit {
    Unit::Other("points".to_owned())
}

/// A change with its interval, to a tenth: `2.1 % [1.8, 2.4]`.
fn change(estimate: &Estimate, unit: &str) -> String {
    change_parts(estimate, unit).joined()
}

/// The same in two parts.
fn change_parts(estimate: &Estimate, unit: &str) -> format::Parts {
    let parts = format::fixed_parts(estimate, 1);
    format::Parts { value: format!("{} {unit}", parts.value), ..parts }
}

/// Every group in lines with its heading, for a terminal.
pub(crate) fn lines(findings: &Findings, arms: &Arms) -> Vec<(String, Vec<String>)> {
    let of = |found: &ConsolidationFindings| {
        let heading = format!("Several instances in one {}: {}", of_size(&found.guest), found.workload);
        (heading, Group { found, arms, published: false }.lines())
    };
    findings.consolidation.iter().map(of).filter(|(_, lines)| !lines.is_empty()).collect()
}
