//! The studies that ship, the template, and the schema for editors.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tare_model::aggressor::Aggressor;
use tare_model::study::{Case, CaseLoad, Study};
use tare_model::units::{BitRate, ByteSize, Span};

use super::{ALL_GOOD, GOOD, roomy, study_of};
use crate::testing::Fake;
use crate::{HostFacts, human, load, parse, plan, schema, template};

fn studies() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths
}

fn shipped(name: &str) -> Study {
    let path = studies().into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == name)).unwrap();
    let loaded = load(&path, &Fake).unwrap_or_else(|error| panic!("{}", error.render(false)));
    assert!(loaded.draws_seed, "with one seed for all, {name} has the same unlucky order for everybody");
    loaded.study
}

fn json(text: &str) -> Json {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

#[test]
fn every_study_is_named_as_its_file_and_plans() {
    for path in studies() {
        let study = shipped(path.file_stem().unwrap().to_str().unwrap());
        assert_eq!(Some(study.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        // As many as were published, where a study repeats what was published. Where guests are added or a load is searched, a
        // second baseline would be a whole scale-up or search, and has an interval of its own or a precision.
        let adds =
            study.cases.iter().any(|case| !matches!(case.load, CaseLoad::Fixed { .. } | CaseLoad::ShareOf { .. }));
        let fewest = match study.name.as_str() {
            "web-serving-as-published" | "throughput-as-published" => 1,
            "order-entry-as-published" => 3,
            _ if adds => 3,
            _ => 5,
        };
        assert!(study.blocks >= fewest, "{}", study.name);
        assert!(adds || fewest == 1 || study.arms.iter().any(|arm| arm.replica_of.is_some()), "{}", study.name);
        assert!(human(&plan(&study, &roomy(), &Fake).unwrap(), &roomy()).contains(&study.question));
    }
}

#[test]
fn quickstart_measures_three_cases_in_a_minute_and_a_half_on_a_small_host() {
    let small = HostFacts {
        cpus: vec![0, 1],
        shared_cores: Vec::new(),
        memory_available: ByteSize(1 << 30),
        disk_free: ByteSize(1 << 30),
        ..HostFacts::default()
    };
    let plan = plan(&shipped("quickstart"), &small, &Fake).unwrap();
    assert_eq!((plan.study.cases.len(), plan.study.arms.len(), plan.trials.len()), (3, 4, 144));
    assert_eq!((plan.sets.len(), plan.differences.len()), (36, 0), "{:?}", plan.differences);
    assert!(plan.cost.measuring < Span::from_secs(90), "{}", plan.cost.measuring);
    assert!(plan.cost.around.ns * 3 <= plan.cost.measuring.ns, "{:?}", plan.cost);
}

#[test]
fn comparisons_at_a_fixed_load_take_at_most_an_hour_on_two_cpus_without_virtual_machines() {
    let host = HostFacts { cpus: vec![0, 1], memory_available: ByteSize(14 << 30), ..roomy() };
    for name in
        ["quickstart", "two-settings", "platforms", "response-time", "throughput", "order-entry", "order-entry-levels"]
    {
        let mut study = shipped(name);
        study.arms.retain(|arm| arm.platform != "qemu" && arm.platform != "libvirt");
        let plan = plan(&study, &host, &Fake).unwrap();
        let all = plan.cost.measuring.ns + plan.cost.around.ns;
        assert!(all <= Span::from_secs(3600).ns, "{name}: {} s", all / 1_000_000_000);
        assert_eq!(plan.sets.len(), study.cases.len() * study.most_blocks() as usize, "{name}: {:?}", plan.differences);
    }
}

#[test]
fn isolation_takes_half_an_hour_on_two_cpus_and_each_victim_meets_all_neighbours() {
    let host = HostFacts { cpus: vec![0, 1], memory_available: ByteSize(1 << 30), ..roomy() };
    let mut study = shipped("isolation");
    study.arms.retain(|arm| arm.platform != "qemu");
    let plan = plan(&study, &host, &Fake).unwrap();
    let all = plan.cost.measuring.ns + plan.cost.around.ns;
    assert!(all <= Span::from_secs(1800).ns, "{} s", all / 1_000_000_000);
    for victim in ["rr", "cpu"] {
        let own = study.cases.iter().filter(|case| case.family() == victim);
        let works: Vec<_> = own.filter_map(|case| case.schedule.condition()?.work).collect();
        assert_eq!(works, Aggressor::ALL, "{victim}");
    }
}

#[test]
fn the_example_of_two_versions_has_arms_that_differ_in_one_option_alone() {
    let study = shipped("two-settings");
    let [first, second] = [&study.arms[0], &study.arms[1]];
    assert_eq!((first.platform.as_str(), &second.platform), ("container", &first.platform));
    assert_eq!((&first.options["upper"], &second.options["upper"]), (&Json::from("memory"), &Json::from("disk")));
    assert_eq!((study.baseline.as_str(), first.options.as_object().map(serde_json::Map::len)), ("memory", Some(1)));
}

#[test]
fn published_studies_have_the_published_figures() {
    for (name, published) in [("response-time", false), ("response-time-as-published", true)] {
        let study = shipped(name);
        let full =
            |case: &Case| case.phases.steady_state == Span::from_secs(120) && case.guest.memory == ByteSize(1 << 30);
        assert!(study.cases.iter().all(|case| case.guest.cpus == 1 && full(case) == published));
        let neighbours: Vec<_> =
            study.cases.iter().map(|case| case.neighbours.map(|n| (n.count, n.guest.cpus))).collect();
        assert_eq!(neighbours, [None, Some((6, 4)), Some((6, 4))]);
        assert_eq!(study.cases.iter().map(|case| case.busy_target).collect::<Vec<_>>(), [false, false, true]);
    }
    assert!(shipped("response-time-as-published").cases.iter().all(|case| case.parameters["buffer"] == "128B"));
    let rate = |name| shipped(name).lab.link_rate;
    assert_eq!(rate("response-time-as-published"), Some(BitRate(1_000_000_000)));
    assert_eq!((rate("throughput-as-published"), rate("throughput")), (Some(BitRate(10_000_000_000)), None));
    let throughput = shipped("throughput-as-published");
    assert_eq!((throughput.lab.mtu, throughput.lab.offloads), (9000, true));
    assert!(throughput.cases.iter().all(|case| case.phases.steady_state == Span::from_secs(300)));
    assert!(throughput.cases.iter().all(|case| case.load.largest().connections() == 5 && case.guest.cpus == 4));
}

#[test]
fn studies_as_published_name_their_report_its_subject_and_what_they_do_otherwise() {
    let published: Vec<Study> = studies()
        .iter()
        .filter_map(|path| path.file_stem()?.to_str().filter(|name| name.ends_with("-as-published")).map(shipped))
        .collect();
    let reports = published.iter().map(|study| {
        let original = study.original.as_ref().unwrap_or_else(|| panic!("{} has no [published]", study.name));
        assert!(!original.subject.is_empty() && original.deviations.len() > 3, "{}", study.name);
        assert_eq!(study.missing_subject(), Vec::<&str>::new(), "{}", study.name);
        original.report.as_str()
    });
    let mut reports: Vec<&str> = reports.collect();
    reports.sort_unstable();
    assert_eq!(reports, ["000", "001", "001", "002", "003", "004"]);
    // The rate is that at which one machine is busy to the published share.
    let density = published.iter().find(|study| study.name == "java-density-as-published").unwrap();
    assert_eq!(density.baseline, "machine");
}

#[test]
fn the_template_is_a_study_that_plans_as_it_stands_and_with_its_comments_taken() {
    let study = parse("template.toml", template(), &Fake).unwrap().study;
    assert!(plan(&study, &roomy(), &Fake).is_ok());
    // Each setting that is commented out must be right, too, when somebody takes the `#` away.
    let is_setting = |line: &str| {
        let setting = line.strip_prefix("# ")?;
        let known = setting.starts_with('[') || setting.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        known.then(|| setting.to_owned())
    };
    let taken: Vec<String> =
        template().lines().map(|line| is_setting(line).unwrap_or_else(|| line.to_owned())).collect();
    let taken = taken.join("\n").replace("options = {}\n", "");
    let study = study_of(&taken);
    assert_eq!(study.cases.len(), 11);
    assert_eq!(study.cases[1].guest.cpus, 2);
    assert!(study.merges() && study.cases[5].load.is_density());
    assert_eq!((study.cases[4].workload.as_str(), study.cases[4].load.guests().count), ("store", 2));
    assert!(study.cases[6].load.is_capacity() && matches!(study.cases[7].load, CaseLoad::ShareOf { .. }));
    assert_eq!(study.cases[8].instances, 4);
    assert!(matches!(study.cases[9].load, CaseLoad::CpuTarget { .. }) && study.cases[10].held_out);
}

#[test]
fn the_schema_takes_every_study_that_ships() {
    let validator = jsonschema::validator_for(&schema(&Fake)).unwrap();
    let mut texts: Vec<String> = studies().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts.extend(ALL_GOOD.into_iter().chain([template()]).map(str::to_owned));
    for text in texts {
        let errors: Vec<String> =
            validator.iter_errors(&json(&text)).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(errors, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_schema_refuses_what_a_schema_can_refuse() {
    let validator = jsonschema::validator_for(&schema(&Fake)).unwrap();
    assert!(validator.is_valid(&json(GOOD)));
    for (good, bad) in [
        ("blocks = 3", "blocks = 0"),
        ("blocks = 3", ""),
        ("blocks = 3", "blocks = 3\nrepeats = 3"),
        ("name = \"good\"", "name = \"Not good\""),
        ("schema = 1", "schema = 2"),
        ("memory = \"256MiB\"", "memory = \"256M\""),
        ("steady-state = \"2s\"", "steady-state = 2"),
        ("steady-state = \"2s\"", "steady = \"2s\""),
        ("platform = \"oci\"", "platform = \"ocl\""),
        ("runtime = \"runc\"", "runtim = \"runc\""),
        ("options = { runtime = \"runc\" }", ""),
        ("request = \"128B\"", "request = 128"),
        ("request = \"128B\"", "requests = \"128B\""),
        ("clients = 2, ", ""),
        ("rate = \"1000/s\"", "rate = 1000"),
        ("arrivals = \"uniform\"", "arrivals = \"even\""),
        ("guest-cpus = \"1-3,5\"", "guest-cpus = \"some\""),
        ("drivers = [\"local\"]", "drivers = \"local\""),
        ("[cases.bulk]", "[cases.\"Bulk data\"]"),
        ("count = 6", "count = 0"),
        ("busy-target = true", "busy-target = true\nload = { closed = { clients = 1 } }"),
    ] {
        let text = GOOD.replacen(good, bad, 1);
        assert_ne!(text, GOOD, "{good}");
        assert!(!validator.is_valid(&json(&text)), "{bad}");
        assert!(parse("bad.toml", &text, &Fake).is_err(), "the parser agrees: {bad}");
    }
}

#[test]
fn the_schema_refuses_what_the_parser_refuses_of_merging_density_capacity_and_shares_of_cpu() {
    use super::{capacity, cpu_target, density};
    let validator = jsonschema::validator_for(&schema(&Fake)).unwrap();
    let all = [
        (density::GOOD, density::WRONG, density::BEYOND_A_SCHEMA),
        (capacity::GOOD, capacity::WRONG, capacity::BEYOND_A_SCHEMA),
        (cpu_target::GOOD, cpu_target::WRONG, cpu_target::BEYOND_A_SCHEMA),
    ];
    for (study, wrong, beyond) in all {
        for (good, bad, _, _) in wrong {
            let text = study.replacen(good, bad, 1);
            let Ok(table) = toml::from_str::<toml::Table>(&text) else { continue };
            let refused = !validator.is_valid(&serde_json::to_value(table).unwrap());
            // What depends on another field, on a platform or on a workload is for the parser alone.
            assert_eq!(refused, !beyond.contains(bad), "{bad}");
        }
    }
}

#[test]
fn the_schema_describes_every_field_of_the_format() {
    fn undescribed(schema: &Json, found: &mut Vec<String>) {
        for (key, field) in schema["properties"].as_object().into_iter().flatten() {
            if !field["description"].as_str().is_some_and(|words| words.ends_with('.')) {
                found.push(key.clone());
            }
            undescribed(field, found);
        }
        let alternatives = schema["anyOf"].as_array().into_iter().flatten();
        alternatives.chain(schema.get("additionalProperties")).for_each(|other| undescribed(other, found));
    }
    let (schema, mut found) = (schema(&Fake), Vec::new());
    undescribed(&schema, &mut found);
    undescribed(&schema["$defs"]["load"], &mut found);
    assert_eq!(found, Vec::<String>::new());
    let keys =
        |pointer: &str| schema.pointer(pointer).and_then(Json::as_object).map(|fields| fields.contains_key("warm-up"));
    assert_eq!(keys("/properties/cases/additionalProperties/properties/phases/properties"), Some(true));
}
