//! What is held out without figures, times that follow nothing, and single blocks.

use super::*;

#[test]
fn a_held_out_case_without_figures_is_reported_as_not_checked() {
    let mut asked = grid();
    asked.extend([(5, 500, HELD_OUT), (7, 560, HELD_OUT)]);
    let findings = findings_of(&asked, 2, 3, |own, _| {
        let figure = MADE.figure(own, &mut StdRng::seed_from_u64(u64::from(own.1)));
        Figure { cpu: if own.1 == 500 { f64::NAN } else { figure.cpu }, ..figure }
    });
    let found = only(&findings);
    assert_eq!(found.checks.len(), 2, "{:?}", found.checks);
    let unseen = found.checks.iter().find(|check| check.load == 500.0).unwrap();
    assert!(unseen.refused.as_ref().unwrap().contains("none of its trials") && !unseen.cpu_within, "{unseen:?}");
    assert!(found.checks.iter().any(|check| check.load == 560.0 && check.cpu_within && check.refused.is_none()));
}

#[test]
fn times_that_follow_nothing_are_refused_and_those_that_scatter_have_wide_upper_ends() {
    // Times of a host that does something else beside it: from 10 ms to 2 s at whatever CPU.
    let times = [0.01, 0.9, 0.7, 1.4, 0.03, 0.6, 1.7, 0.02, 2.0];
    let mut at = 0;
    let wild = findings_of(&grid(), 2, 1, |own, _| {
        at += 1;
        Figure { p90: times[at % times.len()], ..MADE.figure(own, &mut StdRng::seed_from_u64(5)) }
    });
    let found = only(&wild);
    let refused = found.refused.as_ref().unwrap();
    assert!(refused.starts_with("response times do not follow the CPU") && found.advice.is_none(), "{refused}");
    let mut asked = grid();
    asked.push((7, 560, HELD_OUT));
    let findings = Made { noise: 0.04, ..MADE }.findings(&asked, 3, 5);
    let (time, _) = only(&findings).checks[0].response.clone().unwrap();
    let (low, high) = (time.low.unwrap(), time.high.unwrap());
    assert!(low > 0.0 && high - time.value > time.value - low, "{time:?}");
}

#[test]
fn one_block_has_intervals_from_the_residual_alone() {
    let mut asked = grid();
    asked.push((5, 500, HELD_OUT));
    let findings = MADE.findings(&asked, 1, 4);
    let found = only(&findings);
    let (model, check) = (found.model.as_ref().unwrap(), &found.checks[0]);
    assert!(model.cpu.demand_s.low.is_none() && model.cpu.demand_s.method.contains("one block"));
    assert!(check.cpu.0.low.is_some() && !check.cpu.0.method.contains("drawings"));
}

#[test]
fn advice_without_times_or_memory_says_so() {
    let mut findings = MADE.findings(&grid(), 2, 9);
    let notes = |findings: &Findings| ask(findings, &SizeQuestion::default()).advice.unwrap().notes.join(" ");
    assert!(!notes(&findings).contains("not measured") && !notes(&findings).contains("No response time"));
    for case in &mut findings.cases {
        case.metrics.retain(|metric| metric.spec.id != P90 && metric.spec.id != common::INSTANCE_MEMORY);
    }
    let said = notes(&findings);
    assert!(said.contains("No response time with an objective was measured") && said.contains("Memory of"), "{said}");
}
