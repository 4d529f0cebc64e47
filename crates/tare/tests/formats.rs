//! `--format`: the same in four forms, by every command that prints; and the files that programs read.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{expect_code, run, stderr, stdout, write_study};

/// A run folder of two arms and their replica that no run made.
fn made(folder: &Path) -> PathBuf {
    let out = folder.join("made");
    let plan = tare_record::testing::plan(8);
    let trials: Vec<_> = (0..24).map(|index| tare_record::testing::trial(&plan, index)).collect();
    tare_record::testing::write_run(&out, &plan, &trials);
    out
}

fn json(args: &[&str]) -> Value {
    let output = run(&[args, &["--format", "json"]].concat());
    serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {}{}", stdout(&output), stderr(&output)))
}

#[test]
fn every_command_that_prints_has_the_same_four_forms() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(folder.path());
    let run_folder = made.to_str().unwrap();
    let history = folder.path().join("history.sqlite");
    let history = history.to_str().unwrap();
    let commands: [&[&str]; 14] = [
        &["list"],
        &["list", "studies"],
        &["doctor", "--quick"],
        &["plan", "quickstart"],
        &["schema", "rr"],
        &["schema"],
        &["image", "list"],
        &["verify", run_folder],
        &["report", run_folder],
        &["audit", run_folder],
        &["compare", run_folder, run_folder],
        &["gate", run_folder, "--fail-on", "worse:50%"],
        &["history", "add", run_folder, "--into", history],
        &["history", "show", "--from", history],
    ];
    for command in commands {
        let found = json(command);
        // The schema of study files is not a document of tare's own.
        assert!(found["schema"].is_u64() || command == ["schema"], "{command:?} has no number of its schema");
        for (form, start) in [("md", "#"), ("html", "<!DOCTYPE html>"), ("text", "")] {
            let output = run(&[command, &["--format", form]].concat());
            assert!(matches!(output.status.code(), Some(0 | 4)), "{command:?} {form}: {}", stderr(&output));
            let text = stdout(&output);
            assert!(text.len() > 40 && text.starts_with(start), "{command:?} {form}: {text:.200}");
            assert!(!text.contains('\u{1b}'), "{command:?} {form}: no colours off a terminal");
        }
        let wrong = if command[0] == "gate" { 64 } else { 2 };
        expect_code(&run(&[command, &["--json"]].concat()), wrong);
    }
    expect_code(&run(&["ksm", "watch", "--format", "html"]), 2);
}

#[test]
fn the_doctor_says_first_how_many_platforms_are_usable_and_last_what_to_do_next() {
    let (short, long) = (stdout(&run(&["doctor", "--quick"])), stdout(&run(&["doctor", "--quick", "--verbose"])));
    let found = json(&["doctor", "--quick"]);
    let platforms = found["platforms"].as_array().unwrap();
    let usable = platforms.iter().filter(|own| own["state"] == "looks-usable").count();
    let head = format!("{usable} of {} platforms usable on this host\n", platforms.len());
    assert!(short.starts_with(&head) && long.starts_with(&head), "{short}");
    assert!(
        short.trim_end().ends_with("next: `tare run quickstart`") || found["studies"] == Value::from(Vec::<u8>::new())
    );
    assert!(!short.contains("huge pages") && long.contains("huge pages"), "the host's settings are for --verbose");
    assert!(short.lines().count() < long.lines().count());
    for platform in platforms.iter().filter(|own| own["state"] == "not-usable") {
        assert!(platform["reason"].is_string(), "{platform}");
    }
}

#[test]
fn blocks_count_from_one_and_rows_have_their_keys_and_ids() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(folder.path());
    let plan = json(&["plan", "quickstart"]);
    let blocks: Vec<u64> =
        plan["trials"].as_array().unwrap().iter().map(|own| own["block"].as_u64().unwrap()).collect();
    assert_eq!((blocks.iter().min(), blocks.iter().max()), (Some(&1), Some(&12)));
    expect_code(&run(&["report", made.to_str().unwrap()]), 0);
    let found: Value = serde_json::from_slice(&std::fs::read(made.join("findings.json")).unwrap()).unwrap();
    let metric = &found["cases"][0]["metrics"][0];
    let keys = |row: &Value| ["case", "arm", "metric"].map(|key| row[key].as_str().unwrap_or_default().to_owned());
    let id = metric["spec"]["id"].as_str().unwrap();
    assert_eq!(keys(&metric["arms"][0]), ["idle", "native", id]);
    assert_eq!(keys(&metric["comparisons"][0]), ["idle", "container", id]);
    assert_eq!(metric["arms"][0]["blocks"][0][0], 1);
    let verdict = metric["comparisons"][0]["verdict"].as_str().unwrap();
    let csv = std::fs::read_to_string(made.join("comparisons.csv")).unwrap();
    let row = csv.lines().find(|line| line.starts_with(&format!("idle,container,{id},"))).unwrap();
    assert!(row.contains(&format!(",{verdict},")), "{verdict}: {row}");
    let trials = std::fs::read_to_string(made.join("trials.csv")).unwrap();
    assert!(trials.contains(&format!("idle,native,{id},s,1,")) && !trials.contains(",s,0,"), "{trials}");
}

#[test]
fn a_plan_and_the_head_of_its_run_say_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
schema = 1
name = "short"
question = "How long?"
baseline = "a"
blocks = 1
noise-floor = false
[arms.a]
platform = "null"
[arms.b]
platform = "null"
[guest]
cpus = 1
memory = "64MiB"
[phases]
steady-state = "200ms"
[cases.idle]
workload = "rr"
schedule = "trials"
"#;
    let study = write_study(folder.path(), text);
    let plan = stdout(&run(&["plan", study.to_str().unwrap()]));
    let time = plan.lines().find_map(|line| line.trim_start().strip_prefix("time ")).unwrap().trim().to_owned();
    let time = time.split(':').next().unwrap();
    let out = folder.path().join("run");
    let ran = run(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    if ran.status.code() == Some(4) {
        return tare_testkit::skipped(&format!("no run can be made here: {}", stderr(&ran)));
    }
    assert!(stderr(&ran).contains(&format!("2 trials in 1 block, {time}")), "{time}: {}", stderr(&ran));
}

#[test]
fn a_program_that_the_guest_does_not_have_ends_the_run_at_its_first_trial() {
    let folder = tempfile::tempdir().unwrap();
    let arms = "[arms.native]\nplatform = \"native\"\n[arms.other]\nplatform = \"native\"\n";
    let case = "[guest]\ncpus = 1\nmemory = \"64MiB\"\n[cases.gone]\nworkload = \"exec\"\nschedule = \"trials\"\nparameters = { command = [\"/no/such\"] }\n";
    let study = write_study(folder.path(), &format!("{HEAD}{arms}{case}"));
    let out = folder.path().join("run");
    let ran = run(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    if ran.status.code() == Some(4) {
        return tare_testkit::skipped(&format!("no run can be made here: {}", stderr(&ran)));
    }
    expect_code(&ran, 3);
    let said = stdout(&ran);
    assert!(
        said.contains("stopped by a failure that every further trial would repeat: cannot start `/no/such`"),
        "{said}"
    );
    assert_eq!(tare_record::RunFolder::open(&out).unwrap().trials().unwrap().len(), 1, "of six");
}

const HEAD: &str = "schema = 1\nname = \"x\"\nquestion = \"Q?\"\nbaseline = \"native\"\nblocks = 2\n";

/// What a plan of a study with these tables says on standard error.
fn refused(tables: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let study = write_study(folder.path(), &format!("{HEAD}{tables}"));
    let output = run(&["plan", study.to_str().unwrap()]);
    assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
    stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn errors_of_a_study_are_counted_once_and_say_what_was_meant() {
    let arms = "[arms.native]\nplatform = \"native\"\n[arms.other]\nplatform = \"kvm\"\n";
    let size = "[guest]\ncpus = 1\nmemory = \"256mb\"\n";
    let said = refused(&format!("{arms}{size}[phases]\nsteady-state = \"1s\"\n[cases.idle]\nworkload = \"rr\"\n"));
    assert!(said.contains("2 errors") && !said.contains("Error:"), "{said}");
    assert!(said.contains("kvm is a kind of `qemu`") && said.contains("\"256MiB\" or \"256MB\""), "{said}");
    let arms = arms.replace("kvm", "container");
    let cases = "[cases.one]\nworkload = \"rr\"\n[cases.two]\nworkload = \"rr\"\n[cases.three]\nworkload = \"rr\"\n";
    let said = refused(&format!("{arms}{cases}"));
    assert!(said.contains("2 errors") && said.contains("no `guest`") && said.contains("no `phases`"), "{said}");
    let size = size.replace("256mb", "256MiB");
    // A command ends by itself, so no phases are missing.
    let said =
        refused(&format!("{arms}{size}[cases.it]\nworkload = \"exec\"\nparameters = {{ command = \"true\" }}\n"));
    assert!(said.contains("1 error") && said.contains("must be a list, but here it is the text \"true\""), "{said}");
    assert!(said.contains("write `command = [\"true\"]`"), "{said}");
}

#[test]
fn what_cannot_be_meant_is_refused_and_what_compares_nothing_is_said() {
    let size =
        "[guest]\ncpus = 1\nmemory = \"64MiB\"\n[phases]\nsteady-state = \"1s\"\n[cases.idle]\nworkload = \"rr\"\n";
    let two = "[arms.native]\nplatform = \"native\"\nlabel = \"same\"\n[arms.other]\nplatform = \"container\"\nlabel = \"same\"\n";
    assert!(refused(&format!("{two}{size}")).contains("`arms.other.label` is \"same\", as that of `native` is"));
    let wide = size.replace("cpus = 1", "cpus = 1000");
    let plain = two.replace("label = \"same\"\n", "");
    let said = refused(&format!("{plain}{wide}"));
    assert!(said.contains("asks 1000 for a guest") && said.contains("Write `cpus = "), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let one = write_study(folder.path(), &format!("{HEAD}[arms.native]\nplatform = \"native\"\n{size}"));
    let said = stdout(&run(&["plan", one.to_str().unwrap()]));
    assert!(said.contains("the study has no other arm"), "{said}");
}

#[test]
fn shells_propose_the_names_of_studies_platforms_and_workloads() {
    let script = stdout(&run(&["completions", "bash"]));
    for name in ["quickstart", "web-serving", "container", "rr"] {
        assert!(script.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == name), "{name}");
    }
}

#[test]
fn python_reads_the_tables_of_a_run_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(folder.path());
    expect_code(&run(&["report", made.to_str().unwrap()]), 0);
    let rows = std::fs::read_to_string(made.join("comparisons.csv")).unwrap().lines().count() - 1;
    let readers = [
        (
            "duckdb",
            "import duckdb; print(duckdb.sql(\"SELECT count(*), any_value(typeof(ratio)) FROM 'comparisons.parquet'\").fetchall()[0])",
            format!("({rows}, 'DOUBLE')"),
        ),
        (
            "pyarrow",
            "import pyarrow.parquet as p; t = p.read_table('comparisons.parquet'); print(t.num_rows, t.schema.field('ratio').type)",
            format!("{rows} double"),
        ),
    ];
    let mut read = 0;
    for (library, program, expected) in readers {
        let python = std::env::var_os("TARE_TEST_PYTHON").unwrap_or_else(|| "python3".into());
        let output = Command::new(python).args(["-c", program]).current_dir(&made).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => {
                assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{library}");
                read += 1;
            }
            Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("ModuleNotFoundError") => {
                panic!("{library}: {}", String::from_utf8_lossy(&output.stderr))
            }
            _ => {}
        }
    }
    if read == 0 {
        tare_testkit::skipped(
            "needs python3 with duckdb or pyarrow (TARE_TEST_PYTHON names an interpreter that has them)",
        );
    }
}
