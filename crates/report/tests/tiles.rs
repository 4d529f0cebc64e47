//! Guests that are added by tiles, in the report.

use crate::fixture;

use tare_report::{html, markdown, terminal};

#[test]
fn tiles_are_counted_and_what_was_missed_is_named() {
    let page = html(&fixture::tiles()).expect("renders");
    for said in [
        "How many tiles, and what they do there",
        "The number of tiles of 3 guests (shop, social, java) on a host of",
        "a missed objective",
        "shop:response_time_p99_s was 0.34 s in tile 2",
        "tiles of shop, social, java, a guest each; all are measured at",
        "each member under a load of its own; ",
        "How busy the host is",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(
        page.contains("<td class=\"num\"><strong>5</strong> <span class=\"note\">[5, 5]; blocks: 5, 5</span></td>"),
        "5 tiles are 15 guests"
    );
    assert!(!page.contains("How many guests, and what they do there") && !page.contains("as guests are added"));
    assert!(!page.contains("in each guest closed loop"), "the members have loads of their own");
    assert!(!page.contains(">of a guest</th>"), "a column in which no arm has anything is left out");
}

#[test]
fn the_terminal_and_markdown_have_tiles_too() {
    let findings = fixture::tiles();
    let terminal = terminal(&findings, 110, false).split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "5 tiles held; 1 tile, 2 tiles, 3 tiles, 4 tiles, 5 tiles, 6 tiles (did not hold); stopped by a missed objective: \
                shop:response_time_p99_s was 0.34 s in tile 2";
    assert!(terminal.contains(line), "{terminal}");
    assert!(markdown(&findings).contains("| Arm | Tiles | 95 of 100 hold | Overcommit | Host busy | Stopped by |"));
}

#[test]
fn where_none_held_no_objective_is_judged_and_what_was_missed_is_reported_once() {
    let mut findings = fixture::tiles();
    let case = &findings.cases[0];
    let arms: Vec<String> = case.density.as_ref().unwrap().arms.iter().map(|arm| arm.arm.clone()).collect();
    assert!(!case.objectives.is_empty() && terminal(&findings, 110, false).contains(": objective "));
    for arm in &mut findings.cases[0].density.as_mut().unwrap().arms {
        arm.held = 0;
    }
    for (objective, arm) in findings.cases[0].objectives.iter_mut().zip(arms.iter().cycle()) {
        objective.arm.clone_from(arm);
    }
    let said = terminal(&findings, 110, false);
    assert!(!said.contains(": objective ") && said.contains("0 tiles held"), "{said}");
}
