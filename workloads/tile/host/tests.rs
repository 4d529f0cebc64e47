#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::json;
use tare_model::guest::GuestData;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, Unit};
use tare_model::trial::{Flag, Measurement, RequestType, Step};

use super::*;
use crate::UnitOfWork;

/// A workload that only tells what it is asked.
struct Fixed {
    disk: u64,
    unit: UnitOfWork,
}

impl Workload for Fixed {
    fn metrics(&self) -> Vec<MetricSpec> {
        let time = MetricSpec::new("p99_s", "response time", Unit::Seconds, Better::Lower);
        vec![MetricSpec::new("rate", "rate", Unit::OperationsPerSecond, Better::Higher).primary(), time]
    }

    fn unit_of_work(&self) -> UnitOfWork {
        self.unit
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        Traits { repeats: true, ..Traits::of(*guest) }
    }

    fn footprint(&self, guest: &GuestSize, _: u32) -> Footprint {
        Footprint { kept: ByteSize(self.disk), guest: ByteSize(guest.memory.0 / 2), log: ByteSize(0) }
    }

    fn fits(&self, guest: &GuestSize, _: u32) -> Result<(), FieldError> {
        let fits = guest.memory.0 >= 100;
        if fits { Ok(()) } else { Err(FieldError::new(&["heap"], "does not fit")) }
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        crate::together::together(guests)
    }

    fn prepare(&self, _: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        Err(WorkloadError::NotConnected)
    }
}

fn member(name: &str, kind: &str, memory: Option<u64>) -> Member {
    let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    let workload = Box::new(Fixed { disk: 1000, unit: UnitOfWork::Operation });
    Member {
        name: name.into(),
        kind: kind.into(),
        workload,
        load,
        instances: 1,
        cpus: None,
        memory: memory.map(ByteSize),
    }
}

fn driven(rate: f64, p99: Option<f64>, work: f64) -> Driven {
    let mut metrics = std::collections::BTreeMap::from([("rate".to_owned(), rate)]);
    metrics.extend(p99.map(|p99| ("p99_s".to_owned(), p99)));
    let step = Step { name: "login".into(), within: true, times: crate::yields::tests::histogram(5, 2) };
    let request = RequestType { name: "home".into(), requests: 3, target: Some(0.5), ..RequestType::default() };
    let counts = [("operations", 10), ("errors: timeout", 1), ("sessions", 4)];
    let measurement = Measurement {
        metrics,
        histograms: [("response".to_owned(), crate::yields::tests::histogram(7, 3))].into(),
        counts: counts.map(|(name, count)| (name.to_owned(), count)).into(),
        steps: vec![step],
        requests: vec![request],
        ..Measurement::default()
    };
    Driven {
        measurement,
        window_ns: (0, 2_000_000_000),
        work,
        facts: [("server".to_owned(), "x".to_owned())].into(),
        flags: vec![Flag { kind: "mix".into(), detail: "off".into() }],
        ..Driven::default()
    }
}

fn two() -> Tile {
    Tile::of(vec![member("shop", "web {}", None), member("db", "store {}", Some(400))])
}

#[test]
fn an_objective_holds_only_where_it_holds_in_every_tile() {
    let guests = vec![
        driven(10.0, Some(0.1), 20.0),
        driven(5.0, Some(0.9), 2.0),
        driven(8.0, Some(0.3), 16.0),
        driven(6.0, None, 4.0),
    ];
    let all = two().combine(guests).unwrap();
    let metrics = &all.measurement.metrics;
    assert_eq!((metrics["shop:rate"], metrics["shop:p99_s"], metrics["db:rate"]), (8.0, 0.3, 5.0));
    assert!(!metrics.contains_key("db:p99_s"), "the tile without one might be the worst");
    assert_eq!((metrics["shop:work_per_s"], metrics["db:work_per_s"], all.work), (9.0, 1.5, 42.0));
    let parts: Vec<_> = all.measurement.parts.iter().map(|part| (part.guest, part.metrics.clone())).collect();
    assert_eq!(parts.len(), 4);
    assert_eq!((parts[1].0, &parts[1].1["db:rate"], parts[3].1.len()), (2, &5.0, 1));
    // What every driver counts adds up; all else is its member's.
    let counts = &all.measurement.counts;
    assert_eq!((counts["operations"], counts["shop: operations"], counts["db: sessions"]), (40, 20, 8));
    assert_eq!((counts["errors: shop: timeout"], counts.get("sessions")), (2, None));
    assert_eq!(all.measurement.histograms["shop:response"].count(), 6);
    assert!(!all.measurement.histograms.contains_key("response"), "times of different work are not one thing");
    let names: Vec<&str> = all.measurement.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["shop: login", "db: login"]);
    assert!(all.measurement.requests.iter().all(|one| one.target.is_none()));
    assert_eq!((all.facts["db: server"].as_str(), all.flags.len()), ("x", 4));
    assert!(all.flags[0].detail.starts_with("shop: guest 1: "), "{:?}", all.flags);
}

#[test]
fn part_of_a_tile_has_no_figures_and_what_is_invalid_is_named() {
    assert_eq!(two().combine(vec![driven(1.0, None, 1.0)]), None);
    let wrong = Driven { invalid: Some("no order".into()), ..driven(1.0, None, 1.0) };
    let all = two().combine(vec![driven(1.0, None, 1.0), wrong]).unwrap();
    assert_eq!(all.invalid.as_deref(), Some("db: no order"));
}

#[test]
fn every_metric_has_its_members_name_and_tiles_come_first() {
    let specs = two().metrics();
    assert!(specs[0].id == "tiles_held" && specs[0].primary && specs[1..].iter().all(|spec| !spec.primary));
    let ids: std::collections::BTreeSet<&str> = specs.iter().map(|spec| spec.id.as_str()).collect();
    assert_eq!(ids.len(), specs.len());
    assert!(ids.contains("db:p99_s") && ids.contains("db:share_of_single"));
    assert_eq!(specs.iter().find(|spec| spec.id == "db:p99_s").unwrap().label, "db: response time");
}

#[test]
fn guests_are_members_in_turn_with_their_sizes_and_disks() {
    let tile = two();
    let asked = GuestSize { cpus: 2, memory: ByteSize(1000) };
    let traits = tile.traits(&asked, 1);
    let sizes: Vec<u64> = (0..4).map(|index| traits.guest(index).unwrap().size.memory.0).collect();
    let names: Vec<String> = traits.tile().into_iter().map(|guest| guest.name).collect();
    assert_eq!((sizes, names), (vec![1000, 400, 1000, 400], vec!["shop".to_owned(), "db".to_owned()]));
    assert_eq!((traits.touches().0, traits.guest(3).unwrap().touches.0), (1400, 400));
    assert_eq!(tile.footprint(&asked, 1), Footprint { kept: ByteSize(2000), guest: ByteSize(350), log: ByteSize(0) });
    let alike = Tile::of(vec![member("a", "web {}", None), member("b", "web {}", None)]);
    assert_eq!(alike.footprint(&asked, 1).kept, ByteSize(1000), "kept once");
    let small = GuestSize { cpus: 1, memory: ByteSize(99) };
    let error = tile.fits(&small, 1).unwrap_err();
    assert_eq!(error.path, ["members", "0", "parameters", "heap"]);
}

#[test]
fn equal_members_share_their_data_and_each_other_has_its_own() {
    let members = [
        member("a", "web 1", None),
        member("b", "web 2", None),
        member("c", "web 1", None),
        member("d", "web 1", Some(5)),
    ];
    let tile = Tile::of(members.into());
    let made = Mutex::new(Vec::new());
    let make = |member: &Member| {
        made.lock().unwrap().push(member.name.clone());
        let data = |of: &str| GuestData {
            gold: PathBuf::from(format!("/{of}/{}", member.name)),
            size: ByteSize(1),
            shared: true,
            log: None,
        };
        Ok(Data::same(Some(data("guest")), Some(data("service"))))
    };
    let data = tile.data_of(GuestSize { cpus: 1, memory: ByteSize(100) }, make).unwrap();
    let of = |data: Option<&GuestData>| data.unwrap().gold.display().to_string();
    let guests: Vec<String> = (0..6).map(|index| of(data.guest(index))).collect();
    assert_eq!(guests, ["/guest/a", "/guest/b", "/guest/a", "/guest/d", "/guest/a", "/guest/b"]);
    assert_eq!(
        (of(data.service(6)), made.into_inner().unwrap()),
        ("/service/a".to_owned(), ["a", "b", "d"].map(str::to_owned).into())
    );
}

#[test]
fn it_is_made_of_what_a_study_says() {
    let parameters = json!({ "members": [{ "name": "app", "workload": "java", "guest": { "memory": "2GiB" } }] });
    let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    let tile = (ENTRY.make)(&parameters, &load).unwrap();
    let traits = tile.traits(&GuestSize { cpus: 1, memory: ByteSize(4 << 30) }, 1);
    assert!(traits.density && !traits.calibrated && !traits.several_guests);
    assert_eq!(
        (traits.tile().into_iter().map(|guest| guest.name).collect(), tile.metrics()[1].id.clone()),
        (vec!["app".to_owned()], "app:operations_per_s".to_owned())
    );
}
