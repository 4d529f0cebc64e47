//! The published figures, read whole; and what is wrong with others, reported with its place.

mod stated;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tare_model::density::{StopKind, metric};
use tare_model::study::Guests;
use tare_model::trial::{Measurement, Outcome};
use tare_record::RunFolder;
use tempfile::TempDir;

use crate::table::{Format, Table};
use crate::{ImportError, Report, read};

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("published")
}

fn measured<'a>(report: &'a Report, case: &str, arm: &str) -> &'a Measurement {
    let own = report.trials.iter().find(|trial| trial.planned.case == case && trial.planned.arm == arm);
    match &own.unwrap_or_else(|| panic!("no trial of {case} on {arm}")).outcome {
        Outcome::Completed(measurement) => measurement,
        other => panic!("{other:?}"),
    }
}

/// A folder with files of these names and contents.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn refused(text: &str) -> String {
    let folder = folder(&[("table.csv", text)]);
    let out = read(&[folder.path().to_owned()]);
    let said = out.map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("table.csv"), "{said}");
    said
}

#[test]
fn five_reports_come_out_of_the_folder_and_what_is_no_table_is_noted() {
    let imported = read(&[published()]).unwrap();
    let names: Vec<&str> = imported.reports.iter().map(|report| report.plan.study.name.as_str()).collect();
    assert_eq!(names, ["published-000", "published-001", "published-002", "published-003", "published-004"]);
    assert_eq!(imported.notes, ["not read, because they are not CSV files: README.md"]);
    let files: Vec<usize> = imported.reports.iter().map(|report| report.published().files.len()).collect();
    assert_eq!(files, [2, 2, 5, 2, 2]);
    let claims: Vec<usize> = imported.reports.iter().map(|report| report.published().claims.len()).collect();
    assert_eq!(claims, [2, 7, 11, 10, 2]);
}

#[test]
fn web_serving_is_a_search_for_each_arm_with_its_iterations_and_printed_totals() {
    let imported = read(&[published()]).unwrap();
    let web = &imported.reports[2];
    assert_eq!(web.trials.len(), 12, "three cases at the largest load, three at one load, two arms");
    assert_eq!(web.plan.study.baseline, "native");
    let native = measured(web, "banking", "native");
    let search = native.search.as_ref().unwrap();
    assert_eq!((search.held, search.iterations().count(), search.missed), (2600.0, 3, None));
    assert_eq!(search.probes[0].requests.len(), 16, "the line of the total is none of them");
    assert_eq!(native.metrics["capacity"], 2600.0);
    assert!((native.metrics["good_share"] - 677_292.0 / 689_882.0).abs() < 1e-12, "of the last iteration");
    assert_eq!(native.metrics["host_cpu_cores"], 1.0);
    assert_eq!(native.metrics["network_bits_per_s"], 110e6);
    let slow = measured(web, "support-latency", "virtual");
    assert_eq!((slow.metrics["response_time_mean_s"], slow.metrics["host_cpu_cores"]), (5.558, 1.28));
    let printed = web.published().printed;
    assert_eq!(printed.iter().filter(|total| !total.figure.contains('.')).count(), 18 * 7);
    assert_eq!(printed.iter().filter(|total| total.figure.contains('.')).count(), 234 - 18);
    let score = web.plan.study.score.as_ref().unwrap();
    let capacity = |arm: &str| {
        let of = |case: &str| measured(web, case, arm).metrics["capacity"];
        score.of(&[of("banking"), of("ecommerce"), of("support")]).map(f64::round)
    };
    assert_eq!((capacity("virtual"), capacity("native")), (Some(1940.0), Some(2321.0)));
}

#[test]
fn the_mix_is_that_of_the_tables_to_a_seventh_of_a_point() {
    let imported = read(&[published()]).unwrap();
    for record in imported.reports[2].trials.iter().filter(|record| !record.planned.case.ends_with("-latency")) {
        let Outcome::Completed(measurement) = &record.outcome else { panic!() };
        let probes = &measurement.search.as_ref().unwrap().probes;
        for types in probes.iter().map(|probe| &probe.requests) {
            let all: u64 = types.iter().map(|own| own.requests).sum();
            for own in types {
                let (share, target) = (own.requests as f64 / all as f64, own.target.unwrap());
                assert!((share - target).abs() < 0.0015, "{} of {:?}: {share} {target}", own.name, record.planned);
            }
        }
    }
}

#[test]
fn orders_are_parts_that_add_up_to_the_printed_totals() {
    let imported = read(&[published().join("004-store.csv")]).unwrap();
    let store = &imported.reports[0];
    let totals = ["hyperv_virtual_disks", "rhev_vhost_net", "rhev_sriov"]
        .map(|arm| measured(store, "orders", arm).metrics["orders_per_minute"]);
    assert_eq!(totals, [211_919.0, 213_422.0, 222_048.0]);
    let parts = &measured(store, "orders", "rhev_sriov").parts;
    let last = parts.last().unwrap();
    assert_eq!((parts.len(), last.guest, last.driver), (8, 4, Some(2)));
    assert_eq!(store.plan.study.cases[0].load.guests(), Guests { count: 4, drivers: 2 });
}

#[test]
fn guests_are_a_scale_up_and_operations_of_a_run_become_a_rate() {
    let imported = read(&[published().join("000-density.csv")]).unwrap();
    let density = &imported.reports[0];
    assert_eq!(density.plan.study.baseline, "hyperv");
    let kvm = measured(density, "density", "kvm_ksm");
    let scale_up = kvm.scale_up.as_ref().unwrap();
    assert_eq!((scale_up.held(), scale_up.levels.len(), scale_up.stopped.kind), (32, 9, StopKind::End));
    assert!((scale_up.levels[7].metrics[metric::OPERATIONS] - 105_662.08).abs() < 0.01);
    let hyperv = measured(density, "density", "hyperv").scale_up.as_ref().unwrap();
    assert_eq!((hyperv.held(), hyperv.stopped.kind), (7, StopKind::Start));
}

#[test]
fn run_folders_read_back_as_they_were_imported() {
    let imported = read(&[published()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for report in &imported.reports {
        let dir = folder.path().join(&report.plan.study.name);
        report.write(&dir, "20260102-030405-0001", "0.1.0").unwrap();
        let run = RunFolder::open(&dir).unwrap();
        assert!(run.verify().is_empty(), "{:?}", run.verify());
        assert_eq!((run.plan(), &run.trials().unwrap()), (&report.plan, &report.trials));
        assert!(report.write(&dir, "20260102-030405-0002", "0.1.0").is_err(), "never written over");
    }
}

#[test]
fn columns_may_stand_in_any_order_and_figures_keep_their_places() {
    let text = "orders_per_minute, Guest ,client,configuration\r\n10.5,1,1,a\r\n20,1,2,a\r\n";
    let folder = folder(&[("x.csv", text)]);
    let imported = read(&[folder.path().join("x.csv")]).unwrap();
    assert_eq!(measured(&imported.reports[0], "orders", "a").metrics["orders_per_minute"], 30.5);
    assert!(imported.notes[0].contains("tare does not know this report"), "{:?}", imported.notes);
}

#[test]
fn what_is_wrong_is_reported_with_file_line_and_column() {
    let store = |line: &str| format!("configuration,client,guest,orders_per_minute\na,1,1,100\n{line}\n");
    for (line, says) in [
        ("a,2,1,-5", "line 3, column `orders_per_minute`: -5 is negative"),
        ("a,2,1,many", "line 3, column `orders_per_minute`: `many` is not a number"),
        ("a,2,1,1e3", "`1e3` is not a number"),
        ("a,2,1,", "`` is not a number"),
        ("a,2,1,9999999999999", "is larger than"),
        ("a,2,0,5", "line 3, column `guest`: 0 is not from 1"),
        ("a,1.5,1,5", "1.5 is not a whole number"),
        ("a,2,1", "line 3: 3 cells, where the header has 4 columns"),
        ("a,2,1,211,919", "line 3: 5 cells"),
        ("a,1,1,100", "line 3: a, 1 is listed a second time"),
        ("\u{1b}[31m,2,1,5", "is not a name"),
    ] {
        let said = refused(&store(line));
        assert!(said.contains(says), "{line}: {said}");
    }
    for (text, says) in [
        ("", "the file is empty"),
        ("configuration,client,guest,orders_per_minute\n", "no line below the header"),
        ("configuration,client,orders_per_minute\na,1,1\n", "missing columns: `guest`"),
        ("configuration,client,guest,orders_per_minute,note\na,1,1,1,x\n", "unknown columns: `note`"),
        ("configuration,client,client,orders_per_minute\na,1,1,1\n", "`client` occurs twice"),
        ("name,value\na,1\n", "`name,value` is not the header of a known format"),
        ("platform,guests,operations_in_run\na,1,1.5\n", "1.5 is not a whole number"),
        (
            "workload,environment,sessions,response_s,cpu_cores,network_mbps,disk_ms\nmail,native,1,1,1,1,1\n",
            "`mail` is not a workload",
        ),
        (
            "workload,environment,sessions,cpu_percent,network_mbps,disk_ms\nbanking,native,1,1,1,1\n",
            "there are no iterations of banking",
        ),
    ] {
        let said = refused(text);
        assert!(said.contains(says), "{text}: {said}");
    }
}

#[test]
fn lines_that_contradict_each_other_are_refused() {
    let header = Format::WebIterations.columns().join(",");
    let line = |sessions: u32, iteration: u32, name: &str| {
        format!("native,banking,{sessions},{iteration},{name},10,9,1,0,1.0,0.5,100")
    };
    let table = |lines: &[String]| format!("{header}\n{}\n", lines.join("\n"));
    assert!(refused(&table(&[line(10, 1, "login"), line(20, 2, "login")])).contains("20 sessions, and 10"));
    assert!(refused(&table(&[line(10, 1, "Total")])).contains("has a total and no request type"));
    assert!(refused(&table(&[line(10, 1, "login"), line(10, 1, "login")])).contains("a second time"));
    let twice = folder(&[("a.csv", &table(&[line(10, 1, "login")])), ("b.csv", &table(&[line(10, 1, "login")]))]);
    assert!(matches!(read(&[twice.path().to_owned()]), Err(ImportError::Twice { .. })));
}

#[test]
fn claims_beside_the_tables_are_taken_and_must_fit_them() {
    let table = "configuration,client,guest,orders_per_minute\na,1,1,100\nb,1,1,110\n";
    let claims = |arm: &str| {
        format!(
            "[[report]]\nformat = \"store\"\nname = \"ours\"\ntitle = \"Ours\"\n[[report.claims]]\ntext = \"a tenth better\"\n\
             kind = {{ percent = {{ case = \"orders\", arm = \"{arm}\", than = \"a\", percent = 10, rounding = 0.5 }} }}\n"
        )
    };
    let good = folder(&[("t.csv", table), ("claims.toml", &claims("b"))]);
    let imported = read(&[good.path().to_owned()]).unwrap();
    assert_eq!((imported.reports[0].published().claims.len(), imported.notes.len()), (1, 0));
    assert_eq!(imported.reports[0].plan.study.name, "published-ours");
    for (claims, says) in [
        (claims("c"), "claims.toml, line 5, field `arm`: it names the arm `c`"),
        (claims("b").replace("ours", "../ours"), "claims.toml, line 1: `../ours` is not the name of a report"),
        (claims("b").replace("title", "titel"), "line 4: unknown field `titel`"), // spelling: on purpose
        (claims("b").replace("than = \"a\", ", ""), "line 5, field `than`: the claim is a `percent` without a base"),
        (claims("b").replace("\"a\"", "\"\""), "line 5, field `than`: the claim is a `percent` without a base"),
        (claims("b").replace("\"a\"", "\"x\""), "line 5, field `than`: it names the arm `x`"),
        (claims("b").replace("rounding", "round"), "line 5, field `rounding`: missing field `rounding`"),
    ] {
        let bad = folder(&[("t.csv", table), ("claims.toml", &claims)]);
        let said = read(&[bad.path().to_owned()]).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains(says) && said.contains("claims.toml"), "{said}");
    }
}

#[test]
fn a_folder_without_tables_and_one_that_is_not_there_say_so() {
    let empty = folder(&[("README.md", "x")]);
    assert!(matches!(read(&[empty.path().to_owned()]), Err(ImportError::Nothing { .. })));
    assert!(matches!(read(&[empty.path().join("none")]), Err(ImportError::Read { .. })));
    let long = folder(&[("x.csv", &"x".repeat(5 << 20))]);
    assert!(matches!(read(&[long.path().to_owned()]), Err(ImportError::TooLong { .. })));
}

#[test]
fn a_link_that_nobody_named_is_not_followed() {
    let elsewhere = folder(&[("table.csv", "a,b\n")]);
    let linked = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("table.csv");
    std::os::unix::fs::symlink(&target, linked.path().join("linked.csv")).unwrap();
    assert!(matches!(read(&[linked.path().to_owned()]), Err(ImportError::Nothing { .. })));
    // What stands beside a table was not named either.
    let published = published().join("004-store.csv");
    fs::copy(published, linked.path().join("store.csv")).unwrap();
    let claims = linked.path().join(crate::CLAIMS_FILE);
    std::os::unix::fs::symlink(&target, &claims).unwrap();
    assert!(read(&[linked.path().join("store.csv")]).is_ok());
    // The same as a plain file is read, and refused as no claim.
    fs::remove_file(&claims).unwrap();
    fs::copy(&target, &claims).unwrap();
    assert!(read(&[linked.path().join("store.csv")]).is_err());
}

/// Whatever stands in a file, it is read or refused.
fn survives(bytes: &[u8]) {
    let Ok(table) = Table::parse(Path::new("any.csv"), bytes) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("any.csv");
    fs::write(&file, bytes).unwrap();
    if let Ok(imported) = read(&[file]) {
        assert_eq!(imported.reports.len(), 1, "{:?}", table.format);
        imported.reports[0].write(&folder.path().join("run"), "20260102-030405-0001", "0.1.0").unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes);
    }

    #[test]
    fn any_text_below_a_known_header_is_read_or_refused(format in 0..Format::ALL.len(), text in "([a-z0-9.,\"\n-]|[^\u{0}]){0,200}") {
        survives(format!("{}\n{text}", Format::ALL[format].columns().join(",")).as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_figures_in_place_are_read_or_refused(
        format in 0..Format::ALL.len(),
        lines in proptest::collection::vec(proptest::collection::vec(prop_oneof![
            Just("banking".to_owned()), Just("native".to_owned()), Just("Total".to_owned()), Just("0".to_owned()),
            (0..4u32).prop_map(|n| n.to_string()), any::<u64>().prop_map(|n| n.to_string()), any::<f32>().prop_map(|n| n.to_string()),
        ], 12), 1..6),
    ) {
        let columns = Format::ALL[format].columns();
        let body: Vec<String> = lines.iter().map(|line| line[..columns.len()].join(",")).collect();
        survives(format!("{}\n{}\n", columns.join(","), body.join("\n")).as_bytes());
    }
}
