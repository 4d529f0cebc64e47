//! How many guests the host carries, in the report.

use crate::fixture;
use crate::page::{parsed, rows};

fn page() -> String {
    tare_report::html(&fixture::density()).expect("renders")
}

#[test]
fn the_answer_comes_first_with_the_number_the_ratio_and_the_reason() {
    let page = page();
    let document = parsed(&page);
    let table =
        rows(&document, "The number of guests of 3.00 GiB on a host of 24.0 GiB that half of the scale-ups hold");
    let row = |label: &str| table.iter().find(|row| row[0].starts_with(label)).unwrap_or_else(|| panic!("{table:?}"));
    let (off, merged) = (row("container, no merging"), row("container, merged by tare"));
    assert!(
        off[1].starts_with("7| |[6, 8]; blocks: 7, 7")
            && off[3] == "0.88x"
            && off[9].starts_with("memory |the next guest"),
        "{off:?}"
    );
    assert!(
        merged[1].starts_with("\u{2265} 32|") && merged[3] == "4.00x" && merged[9] == "the end of the series",
        "{merged:?}"
    );
    assert!(merged[5].contains("53 % of its load") && off[5].contains("99 % of its load"), "{merged:?} {off:?}");
    assert!(merged[0].ends_with("|tare") && off[0].ends_with("|no merging"), "{merged:?} {off:?}");
    assert!(off[2] == "6 |at least 5", "what 95 of 100 hold, with its lower bound: {off:?}");
    assert!(page.contains("4.6 times as many"));
}

#[test]
fn the_published_table_tells_where_an_arm_was_unable_to_run() {
    let page = page();
    let table = rows(&parsed(&page), "Operations a second of all guests together");
    assert_eq!(table[0][1..], ARMS);
    let at = |guests: &str| table.iter().find(|row| row[0] == guests).unwrap_or_else(|| panic!("{table:?}"));
    assert!(at("32")[1] == "unable to run |memory" && at("32")[2].starts_with("105.7 k"), "{:?}", at("32"));
    assert!(at("7")[1].starts_with("42.91 k") && at("7")[2] == "\u{2013}", "not tried, and not beyond: {:?}", at("7"));
}

const ARMS: [&str; 3] = ["container, no merging", "container, merged by tare's rule", "container, merged by ksmtuned"];

#[test]
fn every_figure_is_drawn_named_and_has_both_layouts() {
    let page = page();
    for title in [
        "Operations a second as guests are added",
        "What one guest still gets",
        "Memory while guests are added",
        "What a guest costs, and what merging costs",
        "Where the saving came from",
    ] {
        assert!(page.contains(title), "{title}");
    }
    for id in ["operations", "guest", "course", "costs", "saved"] {
        for layout in ["w", "n"] {
            assert!(page.contains(&format!("fig-case-1-density-{id}-{layout}-t")), "{id} {layout}");
        }
    }
    assert!(page.contains("guests of 3.00 GiB"), "the axis is named");
    assert!(!page.contains("One trial over time"));
}

#[test]
fn markdown_and_terminal_tell_how_many_ran_at_which_rate() {
    let markdown = tare_report::markdown(&fixture::density());
    assert!(markdown.contains("unable to run") && markdown.contains("min(6174 N, 105662) op/s"), "{markdown}");
    let terminal = tare_report::terminal(&fixture::density(), 120, false);
    assert!(flat_of(&terminal).contains("4.6 times as many"), "{terminal}");
    let flat = flat_of(&terminal);
    assert!(
        flat.contains("container, no merging: 7 guests held; 1 guest 6.14 kop/s, 4 guests 24.7 kop/s, 7 guests"),
        "{flat}"
    );
    assert!(flat.contains("; stopped by memory: the next guest touches"), "{flat}");
}

#[test]
fn it_is_said_how_guests_come_what_they_are_offered_and_what_the_host_was_set_to() {
    let page = page();
    for said in [
        "3GiB, added one at a time; all are measured at 1, 4, 8, 12, 16, 20, 24, 28, 32",
        "a rate that was found before the first trial",
        "each guest is offered 6.18 kop",
    ] {
        assert!(page.matches(said).count() >= 2, "in the case's line and in the disclosure: {said}");
    }
    let arms = rows(&parsed(&page), "Arms");
    assert_eq!(arms[0].last().unwrap(), "The host's memory");
    let memory = |id: &str| arms.iter().find(|row| row[1] == id).and_then(|row| row.last()).unwrap().clone();
    assert_eq!(memory("off"), "merging stopped");
    assert!(memory("tare").starts_with("merging by tare's own rule"), "{}", memory("tare"));
    assert!(page.contains("Measured at the largest number of guests that held"));
}

/// A text on one line.
fn flat_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
