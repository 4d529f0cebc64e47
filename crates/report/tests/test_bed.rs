//! The test bed of a report: one for each way in which guests stand.

use tare_model::findings::Findings;
use tare_model::guest::GuestSize;
use tare_model::layout::{
    ArmLayout, Attachment, CaseLayout, Given, Layout, Service, ServicePlace, StoragePath, Store, Work,
};
use tare_model::load::LoadModel;
use tare_model::study::{Attach, CaseLoad, Guests, Neighbours, Study, Wire};
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
        study.roles.drivers = vec!["client-1".into(), "client-2".into()];
        let addresses = "192.0.2.100-192.0.2.150/24".parse().ok();
        study.lab.wire =
            Some(Wire { interface: "eth1".into(), addresses, attach: Attach::Bridge, cuts_off_host: false });
        study.cases.truncate(1);
    });
    let bed = &beds(&elsewhere)[0];
    let at = |words: &str| bed.find(words).unwrap_or_else(|| panic!("{words}: {bed}"));
    assert!(bed.contains("on the card eth1 of the host"), "{bed}");
    assert!(at("2 client machines: client-1, client-2") < at("Network between the machines"), "{bed}");
    assert!(at("Network between the machines") < at("The guests' host"), "{bed}");
    assert_eq!(beds(&fixture::published()), Vec::<String>::new());
}

/// All guests have a database of their own, and one of two arms has it on another path.
fn with_paths(services: Vec<Service>) -> Findings {
    let mut found = findings(|study| study.cases.truncate(1));
    let path = |device: Option<&str>, store| StoragePath {
        holds: "data".into(),
        device: device.map(Into::into),
        store,
        always: false,
    };
    let directory = path(None, Store::Directory { named: false, in_memory: false });
    let file = path(Some("virtio-blk disk"), Store::File { format: "raw".into() });
    let arm = |id: &str, own| {
        let attachment = Attachment { link: "veth pair".into(), own: vec![own], shared: None };
        ArmLayout { arm: id.into(), attachment }
    };
    let case = found.plan.study.cases[0].id.clone();
    let arms = ["native", "native-again"].map(|id| arm(id, directory.clone()));
    found.plan.layout = Layout {
        cases: vec![CaseLayout { case, guests: vec![Work { services, data: Some(Given::own("a database")) }] }],
        arms: arms.into_iter().chain([arm("container", file)]).collect(),
    };
    found
}

#[test]
fn each_arm_has_its_path_and_what_all_guests_have_is_written_once() {
    let found = with_paths(vec![Service::new("PostgreSQL", ServicePlace::Guest)]);
    let bed = &beds(&found)[0];
    for (words, times) in [
        ("in it: PostgreSQL; data: a database, a copy for each guest", 1),
        ("data: a directory of the host", 1),
        ("data: virtio-blk disk \u{2192} raw file of the host", 1),
        ("link: veth pair", 2),
    ] {
        assert_eq!(bed.matches(words).count(), times, "{words}: {bed}");
    }
}

#[test]
fn what_the_study_has_on_a_host_of_its_own_stands_in_a_machine_of_its_own() {
    let on = |host: &str, drivers: &[&str]| {
        let mut found = with_paths(vec![Service::new("backend", ServicePlace::ServicesHost)]);
        let roles = &mut found.plan.study.roles;
        roles.services = Some(host.into());
        roles.drivers = drivers.iter().map(|&driver| driver.into()).collect();
        let html = tare_report::html(&found).unwrap();
        (beds(&found).remove(0), html.matches("class=\"machine\"").count())
    };
    let in_order = |bed: &str, words: &[&str]| {
        let at: Vec<_> =
            words.iter().map(|words| bed.find(words).unwrap_or_else(|| panic!("{words}: {bed}"))).collect();
        assert!(at.is_sorted(), "{words:?}: {bed}");
    };
    let (bed, machines) = on("db", &["client-1"]);
    let words =
        ["Client machine client-1", "Services machine db\n", "**backend**: one for each", "between the", "host:"];
    in_order(&bed, &words);
    assert_eq!(machines, 3);
    let (bed, machines) = on("db", &["local"]);
    in_order(&bed, &["Services machine db", "Network between the machines", "The guests' host", "Network of the lab"]);
    assert_eq!(machines, 2);
    let (bed, _) = on("client-1", &["client-1"]);
    in_order(&bed, &["Services machine client-1, which offers load too"]);
    let (bed, machines) = on("local", &["client-1"]);
    in_order(
        &bed,
        &[
            "Client machine",
            "The guests' host",
            "**container**",
            "**backend**: one for each",
            "not in the guest's account",
        ],
    );
    assert_eq!((machines, bed.contains("Services machine")), (2, false));
}

#[test]
fn services_stand_beside_the_guests_or_with_the_driver() {
    let database = Service { data: Some("databases".into()), ..Service::new("PostgreSQL", ServicePlace::Beside) };
    let found = with_paths(vec![database, Service::new("backend", ServicePlace::Driver)]);
    let bed = &beds(&found)[0];
    let at = |words: &str| bed.find(words).unwrap_or_else(|| panic!("{words}: {bed}"));
    assert!(at("**backend**: beside the driver") < at("**Network of the lab**"), "{bed}");
    assert!(at("**container**") < at("**PostgreSQL**: beside each guest"), "{bed}");
    assert!(bed.contains("data: databases, in a directory of the host"), "{bed}");
    let html = tare_report::html(&found).unwrap();
    assert_eq!(html.matches("class=\"box beside\"").count(), 2);
}
