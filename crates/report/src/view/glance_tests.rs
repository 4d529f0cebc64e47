//! Tests of the table of all arms.
use super::*;
use crate::fixture;

fn glance(findings: &Findings) -> Option<Glance> {
    Glance::new(findings, &Arms::of(findings))
}

fn column(table: &Table, title: &str) -> usize {
    table.columns.iter().position(|column| column.title.starts_with(title)).unwrap()
}

#[test]
fn every_arm_has_a_row_and_every_cell_its_value_ratio_and_verdict() {
    let findings = fixture::platforms();
    let compared = glance(&findings).unwrap().compared;
    let arms: Vec<&str> = compared.rows.iter().map(|row| row[0].text.as_str()).collect();
    assert_eq!(arms, ["native", "container", "sandbox (made up)"], "the replica has no row, nor has the emulated arm");
    let titles: Vec<String> = compared.columns.iter().map(|column| column.title.replace('\u{a0}', " ")).collect();
    assert_eq!(titles[..4], ["Arm", "Start \u{2193}", "Memory, idle \u{2193}", "idle host, idle guest \u{2193}"]);
    assert_eq!(titles[4], "busy host, idle guest \u{2193}", "where there is no room for all, CPU is left to the cases");
    let sandbox = &compared.rows[2][column(&compared, "idle host, idle guest")];
    assert!(sandbox.tag.ends_with('x') && sandbox.word == "worse" && sandbox.tag_class == "worse", "{sandbox:?}");
    assert!(sandbox.note.starts_with('['), "the interval of the ratio: {sandbox:?}");
    let baseline = &compared.rows[0][1];
    assert!(
        baseline.tag.is_empty() && baseline.word.is_empty() && baseline.note.starts_with('['),
        "its own interval: {baseline:?}"
    );
}

#[test]
fn an_arm_that_must_not_be_compared_stands_apart_without_any_ratio() {
    let findings = fixture::platforms();
    let glance = glance(&findings).unwrap();
    let apart = glance.apart.unwrap();
    assert_eq!(apart.rows.len(), 1);
    assert_eq!(apart.rows[0][0].text, "full machine (emulated)");
    assert!(apart.rows[0].iter().all(|cell| cell.tag.is_empty() && cell.word.is_empty()), "{:?}", apart.rows[0]);
    assert!(glance.why_apart[0].contains(fixture::WHY));
}

#[test]
fn a_study_of_one_arm_beside_the_baseline_needs_no_such_table_unless_arms_are_missing() {
    let mut findings = fixture::findings();
    assert!(glance(&findings).is_none());
    findings.plan.left_out = fixture::platforms().plan.left_out;
    let glance = glance(&findings).unwrap();
    assert_eq!(glance.left_out[0].reason, "no libvirtd answers.");
}
