//! What a report discloses of its conditions: contradictions, claims of sameness, wholes and their parts, bases.

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome, of_claim};
use tare_model::published::{Claim, ClaimKind, Condition, ConditionName, Published};
use tare_model::trial::{Outcome, TrialRecord};

use super::{entries, measurement, run};

/// (case, arm, subject, what, value, unit): printed in the line of its place in the list.
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

fn conditions(rows: &[Row<'_>]) -> Vec<Condition> {
    let condition = |(line, row): (usize, &Row<'_>)| {
        let [case, arm, subject, what, value, unit] = [row.0, row.1, row.2, row.3, row.4, row.5].map(str::to_owned);
        Condition { case, arm, subject, what, value, unit, source: format!("line {line}") }
    };
    (1..).zip(rows).map(condition).collect()
}

/// The audit of a published run of the small plan, with these conditions and one claim at most.
fn audited(rows: &[Row<'_>], claim: Option<ClaimKind>, change: impl Fn(&mut TrialRecord)) -> Vec<AuditEntry> {
    let (mut plan, trials) = run(1, change);
    plan.study.arms.retain(|arm| arm.replica_of.is_none());
    let claims = claim.into_iter().map(said).collect();
    plan.study.published = Some(Published { claims, conditions: conditions(rows), ..Published::default() });
    entries(&plan, &trials)
}

fn said(kind: ClaimKind) -> Claim {
    Claim { text: "so it says".into(), kind }
}

/// What became of a claim: outcome, detail, consequence.
fn judged(rows: &[Row<'_>], kind: ClaimKind, change: impl Fn(&mut TrialRecord)) -> (AuditOutcome, String, String) {
    let found = audited(rows, Some(kind.clone()), change);
    let claim = said(kind);
    let (entry, text) = of_claim(&found, &claim).unwrap_or_else(|| panic!("not judged: {found:?}"));
    (entry.outcome, text.to_owned(), entry.consequence.clone())
}

fn of_conditions(rows: &[Row<'_>]) -> Vec<(AuditOutcome, String, String)> {
    let found = audited(rows, None, |_| {});
    let own = found.into_iter().filter(|entry| entry.check == AuditCheck::Conditions);
    own.map(|entry| (entry.outcome, entry.detail, entry.consequence)).collect()
}

fn name(arm: &str, subject: &str, what: &str) -> ConditionName {
    ConditionName { case: String::new(), arm: arm.into(), subject: subject.into(), what: what.into() }
}

#[test]
fn one_thing_with_two_values_is_a_contradiction_and_two_arms_with_two_values_are_a_difference() {
    let guest = |arm, value, unit| ("", arm, "guest", "memory", value, unit);
    for (rows, outcome, detail, follows) in [
        (
            vec![guest("", "10", "GB"), guest("native", "6", "GB"), guest("container", "10240", "MB")],
            AuditOutcome::Reservation,
            "guest, memory: 10 GB (line 1); 6 GB on native (line 2); 10240 MB on container (line 3).",
            "The report contradicts itself",
        ),
        (
            vec![guest("native", "6", "GB"), guest("container", "10", "GB")],
            AuditOutcome::Reservation,
            "guest, memory: 6 GB on native (line 1); 10 GB on container (line 2).",
            "Its effect on the difference between the arms is unknown.",
        ),
        (
            vec![guest("native", "10", "GB"), guest("container", "10,240", "MB")],
            AuditOutcome::Holds,
            "1 condition that is disclosed more than once: always the same.",
            "",
        ),
        // A word and a size, as of a database of 4 GB that its driver calls R.
        (
            vec![guest("", "4", "GB"), guest("", "R", "-")],
            AuditOutcome::Reservation,
            "guest, memory: 4 GB (line 1); R (line 2).",
            "The report contradicts itself",
        ),
        // Ten of one unit are not ten of another.
        (
            vec![guest("", "10", "GB"), guest("", "10", "s")],
            AuditOutcome::Reservation,
            "guest, memory: 10 GB (line 1); 10 s (line 2).",
            "The report contradicts itself",
        ),
    ] {
        let found = of_conditions(&rows);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].0, found[0].1.as_str()), (outcome, detail));
        assert!(found[0].2.starts_with(follows), "{found:?}");
    }
    assert!(of_conditions(&[guest("native", "6", "GB")]).is_empty(), "said once, of one arm: nothing to compare");
}

#[test]
fn tunings_that_are_claimed_to_be_the_same_are_compared_arm_by_arm() {
    let same = || ClaimKind::Same { subjects: vec!["web server".into()] };
    let tuning = |arm, what, value| ("idle", arm, "web server", what, value, "-");
    let alike = [tuning("native", "cache", "2048"), tuning("container", "cache", "2,048")];
    let (outcome, text, _) = judged(&alike, same(), |_| {});
    assert_eq!(
        (outcome, text.as_str()),
        (AuditOutcome::Holds, "1 condition is disclosed for every arm, the same on all.")
    );
    let differ = [
        tuning("native", "cache", "2048"),
        tuning("container", "cache", "8192"),
        tuning("native", "JAVA_OPTS", "-Xms2g"),
        ("", "native", "clients", "machines", "2", "-"),
        ("", "container", "clients", "machines", "11", "-"),
    ];
    let (outcome, text, follows) = judged(&differ, same(), |_| {});
    assert_eq!(outcome, AuditOutcome::Reservation);
    assert!(text.starts_with("2 differences are disclosed: "), "{text}");
    assert!(text.contains("web server cache: 2048 on native (line 1); 8192 on container (line 2)"), "{text}");
    assert!(text.contains("web server JAVA_OPTS: -Xms2g on native (line 3); none on container"), "{text}");
    assert!(follows.contains("differ in more than their platform"), "{follows}");
    // What the claim is about is reported once; what it is not about by itself.
    let found = audited(&differ, Some(same()), |_| {});
    let own: Vec<&str> = found
        .iter()
        .filter(|entry| entry.check == AuditCheck::Conditions && entry.outcome == AuditOutcome::Reservation)
        .map(|entry| entry.detail.as_str())
        .collect();
    assert_eq!(own, ["clients, machines: 2 on native (line 4); 11 on container (line 5)."]);
    let (outcome, ..) = judged(&differ[3..], same(), |_| {});
    assert_eq!(outcome, AuditOutcome::Unknown, "nothing is disclosed of it");
}

#[test]
fn a_whole_is_not_less_than_its_parts() {
    let memory = |value| {
        [
            ("", "", "instances", "number", "10", "-"),
            ("", "", "instance", "heap", "1536", "MB"),
            ("", "native", "system", "memory", value, "GB"),
        ]
    };
    let fits = |more| ClaimKind::Product {
        factors: vec![name("", "instances", "number"), name("", "instance", "heap")],
        whole: name("native", "system", "memory"),
        more,
    };
    let (outcome, text, follows) = judged(&memory("6"), fits(true), |_| {});
    assert_eq!(outcome, AuditOutcome::Reservation);
    assert_eq!(
        text,
        "10 (instances, number, line 1) times 1536 MB (instance, heap, line 2) come to 15 GB, more than 6 GB (system, memory, line 3)."
    );
    assert!(follows.contains("which is unknown"), "{follows}");
    for (value, more, expected) in [
        ("15", true, AuditOutcome::Holds),
        ("24", true, AuditOutcome::Holds),
        ("15", false, AuditOutcome::Holds),
        ("24", false, AuditOutcome::Reservation),
        ("14", false, AuditOutcome::Reservation),
        ("much", true, AuditOutcome::Unknown),
    ] {
        assert_eq!(judged(&memory(value), fits(more), |_| {}).0, expected, "{value} {more}");
    }
}

#[test]
fn a_share_is_of_its_base() {
    let load = |value| [("", "", "load", "sessions", value, "-"), ("", "native", "load", "peak", "2600", "-")];
    let share = || ClaimKind::Share {
        part: name("", "load", "sessions"),
        than: name("native", "load", "peak"),
        percent: 80.0,
        rounding: 2.5,
    };
    assert_eq!(judged(&load("2100"), share(), |_| {}).0, AuditOutcome::Holds);
    let (outcome, text, follows) = judged(&load("2200"), share(), |_| {});
    assert_eq!(outcome, AuditOutcome::Reservation);
    assert!(text.contains("2200 (load, sessions, line 1) is 84.62 % of 2600 (load, peak, line 2)"), "{text}");
    assert_eq!(follows, "Read 84.62 % where 80 % is printed.");
    assert_eq!(judged(&load("0"), share(), |_| {}).0, AuditOutcome::Unknown);
    assert_eq!(judged(&[], share(), |_| {}).0, AuditOutcome::Unknown);
}

/// Makes the primary metric of every trial what its arm is to have.
fn primary(record: &mut TrialRecord, native: f64, container: f64) {
    let id = record.metrics.iter().find(|spec| spec.primary).unwrap().id.clone();
    let value = if record.planned.arm == "container" { container } else { native };
    measurement(record).metrics.insert(id, value);
}

#[test]
fn multiples_and_the_best_of_all_need_the_figures_of_the_others() {
    let arm = || ("idle".to_owned(), "native".to_owned(), "container".to_owned());
    let times = |times| {
        let (case, arm, than) = arm();
        ClaimKind::Times { case, arm, than, times, rounding: 0.05 }
    };
    let two = |record: &mut TrialRecord| primary(record, 20.0, 10.0);
    assert_eq!(judged(&[], times(2.0), two).0, AuditOutcome::Holds);
    let (outcome, _, follows) = judged(&[], times(1.0), two);
    assert_eq!(
        (outcome, follows.as_str()),
        (AuditOutcome::Reservation, "Read 2.00 times as much where 1 times more is printed.")
    );
    assert_eq!(judged(&[], times(5.0), two).0, AuditOutcome::Broken);
    let alone = |record: &mut TrialRecord| {
        if record.planned.arm == "container" {
            record.outcome = Outcome::Invalid { reason: "it has no figure".to_owned() };
        }
    };
    let (outcome, text, _) = judged(&[], times(2.0), alone);
    assert_eq!((outcome, text.as_str()), (AuditOutcome::Unknown, "the report prints no figure of container."));
    let best = |arm: &str| ClaimKind::Best { case: "idle".into(), arm: arm.into() };
    let outcomes = ["native", "container"].map(|arm| judged(&[], best(arm), two).0);
    assert!(outcomes.contains(&AuditOutcome::Holds) && outcomes.contains(&AuditOutcome::Broken), "{outcomes:?}");
    assert_eq!(judged(&[], best("native"), alone).0, AuditOutcome::Unknown);
    let nowhere = ClaimKind::Best { case: "elsewhere".into(), arm: "native".into() };
    assert_eq!(judged(&[], nowhere, two).0, AuditOutcome::Unknown);
}
