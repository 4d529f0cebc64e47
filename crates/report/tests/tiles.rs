//! Guests that are added by tiles, in the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fixture;

use tare_report::{html, markdown, terminal};

#[test]
fn tiles_are_counted_and_the_member_that_failed_is_named() {
    let page = html(&fixture::tiles()).expect("renders");
    for said in [
        "How many tiles, and what ended it",
        "One tile: 3 guests, shop, social and java.",
        "a missed objective (shop)",
        "shop:response_time_p99_s was 0.34 s in tile 2",
        "tiles of 3 guests (shop, social and java)",
        "each member under a load of its own; ",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(
        page.contains("<td class=\"num\"><strong>5</strong></td><td class=\"num\">15</td>"),
        "5 tiles are 15 guests"
    );
    assert!(!page.contains("How many guests, and what they do there") && !page.contains("as guests are added"));
    assert!(!page.contains("in each guest closed loop"), "the members have loads of their own");
}

#[test]
fn what_each_member_does_is_reported_by_tiles_with_its_share_of_a_single_tile() {
    let findings = fixture::tiles();
    let markdown = markdown(&findings);
    let row = |name: &str, tiles: &str| {
        let mut rows = markdown.lines().filter(|line| line.starts_with(&format!("| {name} | {tiles} |")));
        rows.next().unwrap_or_else(|| panic!("{name} {tiles}: {markdown}")).to_owned()
    };
    let single = row("shop: response time, p99", "1");
    assert!(single.contains("80.00 ms") && !single.contains("(100 %)"), "{single}");
    let four = row("shop: response time, p99", "4");
    assert!(four.contains("368.0 ms (460 %)\u{a0}\u{2717}"), "the first arm no longer holds four: {four}");
    assert!(row("java: operations of a guest, share of those with one tile", "2").contains("99."), "as per cent");
    let page = html(&findings).expect("renders");
    for layout in ["w", "n"] {
        assert!(page.contains(&format!("fig-case-1-density-members-{layout}-t")), "{layout}");
    }
}

#[test]
fn the_terminal_has_tiles_too() {
    let findings = fixture::tiles();
    let terminal = terminal(&findings, 110, false).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(terminal.contains(
        "5 tiles of shop, social and java held (15 guests); 6 tiles running; ended by a missed objective (shop)"
    ));
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
    assert!(!said.contains(": objective ") && said.contains("0 tiles of shop, social and java held"), "{said}");
}
