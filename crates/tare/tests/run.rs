//! Studies run for real, from study file to report.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{
    CONTAINER, expect_code, is_root, left_by_runs_into, outcomes, query, ran, run, small_study, stdout, tare,
    write_study,
};

fn have(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    if !found {
        tare_testkit::skipped(&format!("{program} is not installed"));
    }
    found
}

#[test]
fn a_study_of_native_and_container_ends_with_a_verdict_and_a_report() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &small_study(2, CONTAINER));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 4]);
    assert!(stdout(&output).contains("report.html"), "{}", stdout(&output));
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("Does it work?") && html.contains("container"));
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
    assert!(html.contains("host's files") || html.contains("host&#x27;s files"), "what the platform is, is disclosed");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for file in ["results.sqlite", "environment.json", "findings.json", "report.html"] {
        let bytes = std::fs::read(out.join(file)).unwrap();
        let named = bytes.windows(host.trim().len()).any(|window| window == host.trim().as_bytes());
        assert!(!named || host.trim().len() < 6, "{file} names this host");
    }

    // From the folder alone, also when it was moved.
    let moved = folder.path().join("moved");
    std::fs::rename(&out, &moved).unwrap();
    std::fs::remove_file(moved.join("report.html")).unwrap();
    expect_code(&run(&["report", moved.to_str().unwrap()]), 0);
    assert!(moved.join("report.html").exists());
    let json = run(&["report", moved.to_str().unwrap(), "--format", "json"]);
    assert!(stdout(&json).contains("\"schema\""));
    let compared = run(&["compare", moved.to_str().unwrap(), moved.to_str().unwrap()]);
    expect_code(&compared, 0);
    assert!(stdout(&compared).contains("response time"), "{}", stdout(&compared));
    let form =
        |format: &str| stdout(&run(&["compare", moved.to_str().unwrap(), moved.to_str().unwrap(), "--format", format]));
    assert!(form("md").starts_with("# ") && form("html").starts_with("<!DOCTYPE html>"));
    let json: serde_json::Value = serde_json::from_str(&form("json")).unwrap();
    assert!(json["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{json}");
}

#[test]
fn oci_runtimes_run_the_same_study() {
    if !is_root() {
        return;
    }
    let arms: String = ["runc", "crun"]
        .into_iter()
        .filter(|runtime| have(runtime))
        .map(|runtime| format!("[arms.{runtime}]\nplatform = \"oci\"\noptions = {{ runtime = \"{runtime}\" }}\n"))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &small_study(1, &arms));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out).len(), 1 + arms.matches("platform").count());
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn arms_that_cannot_run_here_are_left_out_and_listed_and_a_resumed_run_keeps_to_that() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let absent =
        "[arms.absent]\nlabel = \"the absent\"\nplatform = \"oci\"\noptions = { runtime = \"tare-no-runtime\" }\n";
    let text = small_study(1, &format!("{CONTAINER}\n{absent}"));
    let study = write_study(folder.path(), &text);
    let out = folder.path().join("run");
    let (study_text, out_text) = (study.to_str().unwrap(), out.to_str().unwrap());
    expect_code(&run(&["run", study_text, "--out", out_text]), 4);
    assert!(!out.exists(), "refused before anything is made, unless the study says otherwise");

    std::fs::write(&study, text.replacen("blocks = ", "skip-unavailable = true\nblocks = ", 1)).unwrap();
    expect_code(&run(&["plan", study_text]), 0);
    let ran = run(&["run", study_text, "--out", out_text]);
    expect_code(&ran, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 2]);
    assert!(stdout(&ran).contains("not measured here: the absent"), "{}", stdout(&ran));
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(markdown.contains("**not measured here**: the absent"), "{markdown}");
    let plan = std::fs::read_to_string(out.join("plan.json")).unwrap();
    assert!(plan.contains("\"left_out\"") && plan.contains("tare-no-runtime"), "{plan}");

    // The runtime is there now, and the run is still the one that was planned.
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink("/bin/true", programs.join("tare-no-runtime")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let resumed = common::tare().args(["run", study_text, "--resume", "--out", out_text]).env("PATH", path).output();
    expect_code(&resumed.unwrap(), 0);
    assert_eq!(outcomes(&out), vec!["completed"; 2]);
}

#[test]
fn how_fast_a_guest_computes_and_what_it_weighs_is_measured_on_every_arm() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cases = "\n[cases.speed]\nworkload = \"cpu\"\nparameters = { threads = 1 }\n";
    let (out, output) = ran(folder.path(), &(small_study(1, CONTAINER) + cases));
    expect_code(&output, 0);
    let values = |metric: &str| query::<f64>(&out, &format!("SELECT value FROM metrics WHERE metric = '{metric}'"));
    let speeds = values("chunks_per_s");
    assert!(speeds.len() == 2 && speeds.iter().all(|speed| *speed > 1.0), "{speeds:?}");
    let weights = values("idle_memory_bytes");
    assert!(weights.len() == 4 && weights.iter().all(|bytes| *bytes > 0.0), "one a trial: {weights:?}");
}

fn several_cpus() -> bool {
    std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}

#[test]
fn limits_are_read_back_and_equal_on_every_arm() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &small_study(1, CONTAINER));
    expect_code(&output, 0);
    let results = rusqlite::Connection::open(out.join("results.sqlite")).unwrap();
    let mut statement =
        results.prepare("SELECT resource, count(DISTINCT granted), min(equal) FROM parity GROUP BY 1").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(String, i64, i64)> = rows.map(Result::unwrap).collect();
    let limits: Vec<_> =
        rows.iter().filter(|(name, ..)| ["cpu", "memory", "steering"].iter().any(|part| name.contains(part))).collect();
    assert!(limits.len() >= 3, "{rows:?}");
    let steered = limits.iter().any(|(resource, ..)| resource == "receive steering");
    assert_eq!(steered, several_cpus(), "what each side receives is its own cost: {rows:?}");
    for (resource, granted, equal) in limits {
        assert_eq!((*granted, *equal), (1, 1), "{resource} differs between arms or from what was asked");
    }
}

#[test]
fn neighbours_and_bulk_data_both_ways_and_a_command_run_on_both_arms() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cases = r#"
[cases.busy]
workload = "rr"
neighbours = { count = 2, cpus = 2, memory = "64MiB" }
busy-target = true

[cases.send]
workload = "stream"
parameters = { direction = "send" }

[cases.both]
workload = "stream"
parameters = { direction = "both", method = "write" }
load = { closed = { clients = 2 } }

[cases.open]
workload = "rr"
load = { open = { rate = "500/s", connections = 2 } }

[cases.udp]
workload = "rr"
parameters = { exchange = "udp-rr" }

[cases.crr]
workload = "rr"
parameters = { exchange = "tcp-crr" }

[cases.command]
workload = "exec"
parameters = { command = ["sh", "-c", "echo score: 42"], metrics = { score = { regex = "score: ([0-9]+)", unit = "points", better = "higher" } } }
"#;
    let (out, output) = ran(folder.path(), &(small_study(1, CONTAINER) + cases));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 16]);
    let scores = query::<f64>(&out, "SELECT value FROM metrics WHERE metric = 'score'");
    assert_eq!(scores, [42.0, 42.0]);
}

#[test]
fn a_command_that_fails_is_a_failed_trial_and_the_others_go_on() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = "[cases.wrong]\nworkload = \"exec\"\nparameters = { command = [\"sh\", \"-c\", \"echo no such disk >&2; exit 3\"] }\n";
    let (out, output) = ran(folder.path(), &(small_study(1, CONTAINER) + case));
    expect_code(&output, 3);
    assert_eq!(outcomes(&out), ["completed", "completed", "failed", "failed"]);
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(markdown.contains("no such disk"), "the report says what the command said");
}

#[test]
fn the_instrument_measures_itself() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let ran = run(&["calibrate", "--scale", "0.1", "--out", out.to_str().unwrap()]);
    expect_code(&ran, 0);
    let said = stdout(&ran);
    assert!(said.contains("empty operations") && said.contains("What measuring costs"), "{said}");
    assert!(said.contains("of the rate over loopback, 6 blocks") && !said.contains("cannot be computed"), "{said}");
}

#[test]
fn the_doctor_starts_a_guest_on_what_it_calls_working() {
    if !is_root() {
        return;
    }
    let output = run(&["doctor"]);
    expect_code(&output, 0);
    let text = stdout(&output);
    for platform in ["native", "container"] {
        let line = text.lines().find(|line| line.trim_start().starts_with(platform)).unwrap();
        assert!(line.contains("works: a guest was ready"), "{text}");
    }
}

/// A static program, as images from scratch hold: what tare has in every guest.
fn static_program() -> Option<PathBuf> {
    let beside = || tare().get_program().to_owned();
    let agent =
        std::env::var_os("TARE_AGENT").map_or_else(|| Path::new(&beside()).with_file_name("tare-agent"), PathBuf::from);
    let headers = Command::new("readelf").args(["--program-headers", "--wide"]).arg(&agent).env("LC_ALL", "C").output();
    match headers {
        Ok(headers) if headers.status.success() && !stdout(&headers).contains("INTERP") => Some(agent),
        _ => {
            tare_testkit::skipped(&format!("needs a static agent, which {} is not, and readelf", agent.display()));
            None
        }
    }
}

/// A cache in a folder, with the kernels and what else is in this host's.
fn own_cache(folder: &Path) -> PathBuf {
    let cache = folder.join("cache");
    std::fs::create_dir(&cache).unwrap();
    let host = common::cache();
    for entry in
        std::fs::read_dir(host).into_iter().flatten().flatten().filter(|entry| entry.file_name() != "containers")
    {
        std::os::unix::fs::symlink(entry.path(), cache.join(entry.file_name())).unwrap();
    }
    cache
}

/// An image with one file and nothing else, not even a directory of the system's: it is what every arm's guests see. Its
/// program is found only by the image's own PATH.
#[test]
fn an_image_from_scratch_is_the_root_of_every_arm() {
    let Some(program) = static_program().filter(|_| is_root()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (root, layout) = (folder.path().join("root"), folder.path().join("image"));
    std::fs::create_dir_all(root.join("only")).unwrap();
    std::fs::copy(&program, root.join("only/here")).unwrap();
    let settings = serde_json::json!({"Env": ["PATH=/only"], "WorkingDir": "/only", "User": "1000"});
    tare_image::testing::image_layout(&layout, &root, &settings);
    let image = layout.display();
    let arm = |name: &str, platform: &str, options: &str| {
        format!("[arms.{name}]\nplatform = \"{platform}\"\noptions = {{ {options} }}\n")
    };
    let rootfs = format!("rootfs = {{ image = \"{image}\" }}");
    let arms = [
        arm("native", "container", &rootfs),
        arm("runc", "oci", &rootfs),
        arm("crun", "oci", &format!("runtime = \"crun\", {rootfs}")),
        arm("nspawn", "nspawn", &rootfs),
        arm("lxc", "lxc", &format!("rootfs = {{ image = {{ path = \"{image}\" }} }}, upper = \"disk\"")),
        arm("qemu", "qemu", &format!("image = {{ oci = \"{image}\" }}, accel = \"tcg\"")),
    ];
    let case = "[cases.exec]\nworkload = \"exec\"\nparameters = { command = [\"here\", \"--version\"] }\n";
    let text = small_study(1, "").replace("[arms.native]\nplatform = \"native\"\n", &arms.concat());
    let text = text.replace("noise-floor", "skip-unavailable = true\nnoise-floor").replace("128MiB", "256MiB") + case;
    let study = write_study(folder.path(), &text);
    let out = folder.path().join("run");
    let cache = own_cache(folder.path());
    let ran = tare().args(["run", "--emulated"]).arg(&study).arg("--out").arg(&out).env("TARE_CACHE", &cache).output();
    let ran = ran.unwrap();
    expect_code(&ran, 0);
    let outcomes = outcomes(&out);
    assert!(outcomes.len() >= 4 && outcomes.iter().all(|outcome| outcome == "completed"), "{outcomes:?}");
    assert_eq!(left_by_runs_into(folder.path()), Vec::<String>::new());
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("1 layer (") && report.contains("sha256:"), "the image is not in the report");
    // What guests need beside the file was made in overlays, and not in what is kept.
    let found = Command::new("find").arg(cache.join("containers")).args(["-mindepth", "3", "-printf", "%f\n"]).output();
    assert_eq!(stdout(&found.unwrap()), "only\nhere\n");
}
