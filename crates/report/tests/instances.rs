//! Several instances in one guest, sizing and held CPUs, in the report.

use crate::fixture;
use crate::page::{header, html, parsed, rows};

use std::collections::BTreeSet;

use roxmltree::{Document, Node};
use tare_model::study::CompareWith;

/// Texts of a drawn figure.
fn drawn(document: &Document<'_>, id: &str) -> Vec<String> {
    let title = format!("{id}-t");
    let found = document.descendants().find(|node| node.attribute("id") == Some(&title));
    let figure = found.unwrap_or_else(|| panic!("no figure {id}")).parent().expect("in a figure");
    figure.descendants().filter(Node::is_text).filter_map(|node| node.text()).map(str::to_owned).collect()
}

#[test]
fn the_page_is_well_formed_its_ids_are_unique_and_its_headings_in_order() {
    for findings in [fixture::instances(), fixture::tiles()] {
        let page = html(&findings);
        let document = parsed(&page);
        let mut seen = BTreeSet::new();
        for id in document.descendants().filter_map(|node| node.attribute("id")) {
            assert!(seen.insert(id.to_owned()), "id {id} twice");
        }
        let links =
            document.descendants().filter_map(|node| node.attribute("href")).filter(|href| href.starts_with('#'));
        for link in links {
            assert!(seen.contains(&link[1..]), "link to {link} leads nowhere");
        }
        let main = document.descendants().find(|node| node.has_tag_name("main")).unwrap();
        let mut last = 0;
        let levels =
            main.descendants().filter_map(|node| node.tag_name().name().strip_prefix('h')?.parse::<u32>().ok());
        for level in levels {
            assert!(last == 0 || level <= last + 1, "h{level} after h{last}");
            last = level;
        }
    }
}

#[test]
fn the_top_says_what_was_found_in_a_few_sentences_and_folds_the_rest() {
    let page = html(&fixture::instances());
    let document = parsed(&page);
    let header = header(&document);
    for said in [
        "With the guest\u{2019}s CPUs held 70 % busy, each further instance cost 1.6 % [1.5, 1.7] of the throughput on native, 1.6 % [1.5, 1.8] on container (8 instances against 1).",
        "At 600 clients in all, each further instance cost 1.0 points [0.9, 1.1] of the guest\u{2019}s CPU on native",
        "native 7 instances (by the published rule 6 to 7 instances), 700 clients, CPU below 66.4 % [65.4, 67.4]",
        "From 35 points of each arm in 3 blocks, with a residual of at most 0.6 points of CPU and 5.2 % of the response time.",
        "native: the instances of a guest were NOT served alike in 1 of 31 cases: at most, the slowest (instance 8) took 2.10 times [2.06, 2.14] as long as the fastest",
        "virtual machine no advice",
        "CPU within 5 points in 4 of 4, response time within 15 % in 2 of 4; 2 not predicted",
        "and 72 more answers",
    ] {
        assert!(header.contains(said), "{said}: {header}");
    }
    let cases = document.descendants().filter(|node| node.attribute("class") == Some("case"));
    let folded: Vec<_> = cases.filter(|node| node.has_tag_name("details")).collect();
    assert_eq!(folded.len(), 38);
    // A link opens a fold only where its target lies inside.
    let target = |case: &Node<'_, '_>| case.children().any(|own| own.attribute("id").is_some());
    assert!(folded.iter().all(|case| case.attribute("open").is_none() && target(case)));
    let order = ["id=\"sizing\"", "id=\"instances\"", "id=\"cases\""].map(|id| page.find(id).expect(id));
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn a_study_of_few_cases_folds_nothing() {
    let mut findings = fixture::instances();
    findings.cases.truncate(6);
    findings.answer.truncate(12);
    let page = html(&findings);
    assert!(!page.contains("<details class=\"case\"") && page.contains("<h3 class=\"case\" id=\"case-6\""));
    assert!(!page.contains("more answers, case by case"));
}

#[test]
fn every_figure_is_drawn_in_both_layouts_and_says_what_it_shows() {
    let page = html(&fixture::instances());
    let document = parsed(&page);
    for id in [
        "fig-instances-1-response",
        "fig-instances-1-cpu",
        "fig-instances-1-lost",
        "fig-instances-1-gained",
        "fig-instances-1-arms",
        "fig-sizing-1-cpu",
        "fig-sizing-1-response",
        "fig-case-16-hold",
    ] {
        for layout in ["w", "n"] {
            assert!(page.contains(&format!("id=\"{id}-{layout}-d\"")), "{id} {layout}");
        }
    }
    let response = drawn(&document, "fig-instances-1-response-w");
    for said in ["native (s)", "container (s)", "100 clients an instance", "200 clients an instance", "10", "5"] {
        assert!(response.iter().any(|text| text == said), "{said}: {response:?}");
    }
    let lost = drawn(&document, "fig-instances-1-lost-w");
    assert!(lost.iter().any(|text| text.contains("CPU held at 40 %")), "{lost:?}");
    let gained = drawn(&document, "fig-instances-1-gained-w");
    assert!(
        gained.iter().any(|text| text == "1,000 clients") && gained.iter().any(|text| text == "container (points)")
    );
}

#[test]
fn published_bands_are_drawn_only_where_the_study_compares_with_them() {
    let mut findings = fixture::instances();
    for (compare_with, drawn_there) in [(None, false), (Some(CompareWith::Published), true)] {
        findings.plan.study.compare_with = compare_with;
        let page = html(&findings);
        let document = parsed(&page);
        for (figure, band) in [("lost", "published, 2011: 2 to 3 %"), ("gained", "published, 2011: 1 to 4 points")] {
            for layout in ["w", "n"] {
                let texts = drawn(&document, &format!("fig-instances-1-{figure}-{layout}"));
                assert_eq!(texts.iter().any(|text| text == band), drawn_there, "{figure} {layout}: {texts:?}");
            }
        }
        assert_eq!(page.contains("a published study of 2011 (several"), drawn_there);
        let markdown = tare_report::markdown(&findings);
        assert_eq!(markdown.contains("a published study of 2011"), drawn_there);
    }
}

#[test]
fn an_overloaded_point_is_drawn_hollow_and_named() {
    let page = html(&fixture::instances());
    let figure = page.split("id=\"fig-instances-1-response-w-t\"").nth(1).unwrap();
    let figure = figure.split("</svg>").next().unwrap();
    let hollow = |series: &str| figure.matches(&format!("class=\"{series} mark hollow\"")).count();
    assert_eq!((hollow("arm-1"), hollow("arm-2")), (1, 1), "container at 1,000 clients");
    assert!(page.contains("container: an objective was missed at 1,000 clients in 10 instances."));
    assert!(page.contains("There at least 95 % of the CPUs were busy, so less CPU was left to use."));
}

#[test]
fn tables_under_the_figures_have_the_same_numbers_with_intervals() {
    let page = html(&fixture::instances());
    let document = parsed(&page);
    let lost = rows(&document, "Throughput lost, in per cent of the throughput of the fewest instances");
    let row = |arm: &str, share: &str, n: &str| {
        let mut own = lost.iter().filter(|row| row[0].ends_with(arm) && row[1] == share && row[2] == n);
        own.next().unwrap_or_else(|| panic!("{arm} {share} {n}: {lost:?}")).clone()
    };
    assert_eq!(row("native", "70 %", "1")[4], "\u{2013}", "nothing to compare the fewest with");
    assert!(row("native", "70 %", "8")[4].starts_with("1.6 % |[1.5, 1.7]"), "{:?}", row("native", "70 %", "8"));
    assert!(row("container", "40 %", "4")[6].starts_with("40.2 %"), "{:?}", row("container", "40 %", "4"));
    let gained = rows(&document, "Points of the guest\u{2019}s CPUs");
    assert!(
        gained.iter().any(|row| row[1] == "1,000" && row[2] == "8" && row[4].starts_with("1.4 points")),
        "{gained:?}"
    );
}

#[test]
fn sizing_states_advice_rule_models_residuals_and_the_checks_even_those_that_failed() {
    let page = html(&fixture::instances());
    let document = parsed(&page);
    let checks = rows(&document, "Held-out cases, which no model was fitted to");
    let native: Vec<_> = checks.iter().filter(|row| row[0] == "native").collect();
    assert!(native[0][5] == "within" && native[0][8] == "within", "{native:?}");
    assert!(native[1][5] == "within" && native[1][8] == "not within", "{native:?}");
    assert!(native[2][5].starts_with("not predicted") && native[2][3] == "\u{2013}", "{native:?}");
    let advice = rows(&document, "For one guest: predictions of the models");
    assert!(advice[1][1] == "7" && advice[1][5] == "2.53 GiB" && advice[1][6] == "15" && advice[1][8] == "6 / 7");
    let models = rows(&document, "The models, fitted by least squares");
    assert!(models.iter().any(|row| row[1] == "CPU" && row[3] == "35" && row[4] == "0.6 %" && row[5] == "0.7 %"));
    assert!(page.contains("no advice: 4 cases are too few for the models"), "a refusal is reported");
    assert!(page.contains("keep the guest\u{2019}s CPUs at most 70 to 80 % busy"), "the published rule");
}

#[test]
fn where_nothing_could_be_fitted_only_the_reasons_stand() {
    let mut findings = fixture::instances();
    for arm in &mut findings.sizing[0].arms {
        (arm.model, arm.advice, arm.checks) = (None, None, vec![]);
        arm.refused = Some("3 cases are too few".into());
    }
    findings.consolidation.clear();
    let page = html(&findings);
    assert_eq!(page.matches("no advice: 3 cases are too few.").count(), 3);
    assert!(
        !page.contains("fig-sizing-1") && !page.contains("What fits into one") && !page.contains("Predictions checked")
    );
    assert!(!page.contains("<details class=\"case\""), "cases that nothing sums up speak for themselves");
}

#[test]
fn how_the_cpu_was_held_is_reported_with_its_spread_and_the_steps() {
    let page = html(&fixture::instances());
    let document = parsed(&page);
    let held = rows(&document, "The load was changed while the instances ran");
    assert_eq!(held.len(), 10, "a line a trial");
    assert!(
        held[1][2].starts_with("40 % |\u{b1} 2 points") && held[1][3] == "39.6 %" && held[1][4] == "2.1",
        "{held:?}"
    );
    assert!(held[1][6].starts_with("100: ") && held[1][6].matches(':').count() == 3, "{held:?}");
    assert!(page.contains("the load that keeps the guest\u{2019}s CPUs 40 % busy, to within 2 points"));
}

#[test]
fn the_share_of_the_guests_cpus_reads_as_per_cent() {
    let page = html(&fixture::instances());
    let metrics = rows(&parsed(&page), "Metrics, with one value per trial");
    let cpu = metrics.iter().find(|row| row[0].starts_with("CPU of the guest")).expect("the metric");
    assert!(cpu[1].starts_with("8.8 % |"), "{cpu:?}");
}

#[test]
fn terminal_and_markdown_have_the_same_facts() {
    let findings = fixture::instances();
    let terminal = tare_report::terminal(&findings, 110, false);
    let terminal = terminal.split_whitespace().collect::<Vec<_>>().join(" ");
    let markdown = tare_report::markdown(&findings);
    for said in [
        "each further instance cost 1.6 % [1.5, 1.7] of the throughput on native",
        "an objective was missed at 1,000 clients in 10 instances",
        "no advice: 4 cases are too few for the models",
        "R = 0.02 + 0.055 Q(U)",
        "7 instances in one guest of 2 CPUs and 4GiB, for 700 clients in total (100 each)",
        "950 clients in 2 instances lie beyond",
        "at most 70 to 80 % busy",
    ] {
        assert!(terminal.contains(said), "terminal: {said}: {terminal}");
        assert!(markdown.contains(said), "markdown: {said}");
    }
    assert!(terminal.contains("NOT within 15 %") && terminal.contains("and 72 more"));
    assert_eq!(markdown.matches("<details><summary>").count(), 38);
    assert!(terminal.lines().count() < 200);
}

#[test]
fn what_users_write_stays_text_here_too() {
    let text = "<script>alert(1)</script>\"'|{{ 7 * 7 }}";
    let mut findings = fixture::instances();
    findings.consolidation[0].workload = text.into();
    findings.consolidation[0].response = Some(("x".into(), text.into()));
    findings.plan.study.arms.iter_mut().for_each(|arm| arm.label = text.into());
    let sizing = &mut findings.sizing[0];
    sizing.load_unit = text.into();
    sizing.arms[2].refused = Some(text.into());
    for advice in sizing.arms.iter_mut().filter_map(|arm| arm.advice.as_mut()) {
        (advice.bound_by, advice.notes) = (text.into(), vec![text.into()]);
    }
    let page = html(&findings);
    assert!(!page.contains("<script"));
    parsed(&page);
    assert!(!tare_report::markdown(&findings).contains("<script"));
}

#[test]
fn all_arms_at_a_glance_have_no_column_for_each_of_dozens_of_cases() {
    let mut findings = fixture::instances();
    let mut start = findings.cases[0].metrics[0].clone();
    (start.spec.id, start.spec.label) = ("guest_start_time_s".into(), "guest start time".into());
    findings.across = vec![start];
    let page = html(&findings);
    let document = parsed(&page);
    let glance = rows(&document, "Each cell: the estimate over the blocks");
    assert_eq!(glance[0].len(), 2, "the arm and what its guests take: {:?}", glance[0]);
    assert!(page.contains("What fits into one guest") && page.contains("The answer in sentences, case by case"));
}

#[test]
fn the_instances_of_a_guest_stand_side_by_side() {
    let findings = fixture::instances();
    let page = html(&findings);
    let document = parsed(&page);
    let all = rows(&document, "Instances that share one guest.");
    assert_eq!(all.len(), 1 + 2 * 31, "each case of several instances on both arms");
    let worst = all.iter().find(|row| row[0].contains("native") && row[6].starts_with("2.10")).unwrap();
    assert_eq!((worst[1].as_str(), worst[7].as_str()), ("8", "8"), "the slowest is named: {worst:?}");
    let each = rows(&document, "One instance a row");
    let members: u32 =
        findings.consolidation[0].arms.iter().flat_map(|arm| &arm.side_by_side).map(|own| own.instances).sum();
    assert_eq!(each.len() as u32, 1 + members);
    let drawn = drawn(&document, "fig-instances-1-alike-w");
    assert!(drawn.iter().any(|text| text.contains("8 instances, 735 clients")), "{drawn:?}");
    let terminal = tare_report::terminal(&findings, 200, false);
    assert!(terminal.contains("NOT served alike in 1 of 31 cases"), "{terminal}");
    let markdown = tare_report::markdown(&findings);
    assert!(
        markdown.contains("Were the instances of a guest served alike?")
            && markdown.contains("Each instance by itself")
    );
    // Without intervals nobody can tell chance from neglect.
    let mut few = fixture::instances();
    for own in few.consolidation[0].arms.iter_mut().flat_map(|arm| &mut arm.side_by_side) {
        own.response_apart.iter_mut().for_each(|apart| (apart.low, apart.high) = (None, None));
    }
    let said = tare_report::terminal(&few, 200, false);
    assert!(said.contains("is unknown with so few blocks in 1 of 31 cases") && !said.contains("NOT served"), "{said}");
    for own in few.consolidation[0].arms.iter_mut().flat_map(|arm| &mut arm.side_by_side) {
        own.response_apart.iter_mut().for_each(|apart| apart.value = 1.1);
    }
    assert!(tare_report::terminal(&few, 200, false).contains("served alike in 31 of 31 cases: at most"));
}

#[test]
fn what_was_saturated_is_reported_as_not_fitted_to() {
    let page = html(&fixture::instances());
    let document = parsed(&page);
    let points = rows(&document, "Measurements: estimates over the blocks");
    let used: BTreeSet<&str> = points[1..].iter().map(|row| row.last().unwrap().as_str()).collect();
    assert_eq!(used, BTreeSet::from(["no: held out", "no: the CPUs were saturated", "yes"]));
    let drawn = drawn(&document, "fig-sizing-1-cpu-w");
    assert!(drawn.iter().any(|text| text == "measured, saturated: not used in the fit"), "{drawn:?}");
}
