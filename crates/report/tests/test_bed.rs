//! The test bed of a report: one for each way in which guests stand.

use tare_model::findings::Findings;
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::study::{CaseLoad, Guests, Neighbours, Study};
use tare_model::units::{BitRate, ByteSize};

use super::fixture;

fn findings(change: impl FnOnce(&mut Study)) -> Findings {
    let mut findings = fixture::findings();
    change(&mut findings.plan.study);
    findings
}

/// The list of the beds, each from its heading on.
fn beds(findings: &Findings) -> Vec<String> {
    let markdown = tare_report::markdown(findings);
    let parts = markdown.split("\n## ").filter(|part| part.starts_with("Test bed"));
    parts.map(str::to_owned).collect()
}

#[test]
fn cases_whose_guests_stand_alike_share_a_bed() {
    let found = findings(|study| {
        let first = study.cases[0].clone();
        study
            .cases
            .iter_mut()
            .for_each(|case| *case = tare_model::study::Case { id: case.id.clone(), ..first.clone() });
        study.lab.link_rate = Some(BitRate(1_000_000_000));
    });
    let beds = beds(&found);
    assert_eq!(beds.len(), 1, "{beds:?}");
    assert!(beds[0].starts_with("Test bed\n") && beds[0].contains("1Gbit/s each way"), "{}", beds[0]);
    // The baseline and its repetition are one box.
    assert!(
        beds[0].contains("**native**") && beds[0].contains("twice") && beds[0].contains("**container**"),
        "{}",
        beds[0]
    );
    let html = tare_report::html(&found).unwrap();
    assert_eq!(html.matches("class=\"bed\"").count(), 1);
}

#[test]
fn what_differs_has_a_bed_of_its_own_with_its_cases() {
    let found = findings(|study| {
        let mut busy = study.cases[0].clone();
        (busy.id, busy.label) = ("busy-now".into(), "busy now".into());
        let guest = GuestSize { cpus: 4, memory: ByteSize(1 << 30) };
        busy.neighbours = Some(Neighbours { count: 6, guest });
        let load = LoadModel::Closed { clients: 20, think_time: tare_model::Span::ZERO };
        busy.load = CaseLoad::Fixed { load, guests: Guests { count: 4, drivers: 2 } };
        study.cases = vec![study.cases[0].clone(), busy];
    });
    let beds = beds(&found);
    assert_eq!(beds.len(), 2, "{beds:?}");
    for words in ["Test bed: busy now", "**2 drivers for each guest**", "4 guests", "**6 busy neighbours**", "1GiB"] {
        assert!(beds[1].contains(words), "{words}: {}", beds[1]);
    }
}

#[test]
fn a_client_elsewhere_has_a_machine_of_its_own_and_published_figures_have_no_bed() {
    let elsewhere = findings(|study| {
        study.roles.drivers = vec!["client-1".into()];
        study.cases.truncate(1);
    });
    let bed = &beds(&elsewhere)[0];
    let at = |words: &str| bed.find(words).unwrap_or_else(|| panic!("{words}: {bed}"));
    assert!(at("Client machine") < at("Network between the machines"), "{bed}");
    assert!(at("Network between the machines") < at("The guests' host"), "{bed}");
    assert_eq!(beds(&fixture::published()), Vec::<String>::new());
}
