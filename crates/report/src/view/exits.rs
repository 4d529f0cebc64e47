//! How often KVM stopped running the guest, and why: a line a reason, a column an arm of KVM's.

use tare_model::findings::{CaseFindings, MetricFindings};
use tare_model::kvm::{COUNTS, EXITS, is_count, metric};

use super::table::{Cell, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};

/// Whether a metric is in this table alone.
pub(super) fn is_reason(found: &MetricFindings) -> bool {
    is_count(&found.spec.id) && found.spec.id != metric(EXITS)
}

/// The table; `None` where no arm is KVM's.
pub(super) fn table(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let of = |count: &str| case.metrics.iter().find(|found| found.spec.id == metric(count));
    let whole = of(EXITS)?;
    let shown: Vec<&ArmLook> = arms.iter().filter(|look| whole.arms.iter().any(|own| own.arm == look.id)).collect();
    let caption = format!(
        "{}, by reason: the estimate over the trials. KVM gives no reason for some exits, and counts some under two \
         reasons. Reasons that no guest had are left out. Time polled: after a virtual CPU halts, the host polls in a \
         busy loop before the virtual CPU sleeps.",
        whole.spec.label
    );
    let mut table = Table::by_arm(caption, "Reason", shown.iter().copied());
    for (count, says) in COUNTS {
        let Some(found) = of(count).filter(|found| found.arms.iter().any(|own| own.estimate.value > 0.0)) else {
            continue;
        };
        let value = |look: &&ArmLook| {
            let own = found.arms.iter().find(|own| own.arm == look.id);
            own.map_or_else(Cell::none, |own| Cell::text(format::value(own.estimate.value, &found.spec.unit)))
        };
        table.rows.push(std::iter::once(Cell::with_note(says, count)).chain(shown.iter().map(value)).collect());
    }
    (!shown.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use tare_model::kvm::specs;

    use super::*;
    use crate::fixture;

    #[test]
    fn arms_of_kvm_have_a_column_and_only_the_whole_is_among_the_metrics() {
        let mut findings = fixture::findings();
        let arms = Arms::of(&findings);
        assert!(table(&findings.cases[0], &arms).is_none(), "no arm is KVM's");
        let mut own = findings.cases[0].metrics[0].arms[1].clone();
        let (arm, label) = (own.arm.clone(), arms.label(&own.arm));
        for (spec, exits) in specs("an operation").into_iter().zip([12.0, 3.0, 0.0]) {
            own.estimate.value = exits;
            findings.cases[0].metrics.push(MetricFindings {
                spec,
                arms: vec![own.clone()],
                comparisons: Vec::new(),
                incomplete: Vec::new(),
            });
        }
        let case = &findings.cases[0];
        let found = table(case, &Arms::of(&findings)).unwrap();
        assert_eq!(found.columns.len(), 2, "{arm}");
        assert_eq!(found.columns[1].title, label);
        let rows: Vec<[&str; 2]> = found.rows.iter().map(|row| [row[0].text.as_str(), row[1].text.as_str()]).collect();
        assert_eq!(rows, [["all exits", "12.0"], ["port input and output", "3.00"]]);
        assert!(found.caption.starts_with("KVM exits an operation, by reason"), "{}", found.caption);
        let listed = super::super::measures::metrics(case, &findings, &Arms::of(&findings)).unwrap();
        assert!(listed.rows.iter().any(|row| row[0].text == "KVM exits an operation"));
        assert!(!listed.rows.iter().any(|row| row[0].text.contains("port input")));
    }
}
