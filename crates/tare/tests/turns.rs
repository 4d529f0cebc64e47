//! Arms that take turns: what their trials say, and what becomes of a set that is killed or loses a guest in the middle.

use std::path::Path;

use tare_model::trial::TrialRecord;
use tare_record::RunFolder;

use crate::common::{
    CONTAINER, begin, expect_code, findings, is_root, journal, kill, left_by_runs_into, outcomes, processes_of, ran,
    run, run_ids, signal, small_study, stderr, stdout, until, write_study,
};

fn trials(out: &Path) -> Vec<TrialRecord> {
    RunFolder::open(out).unwrap().trials().unwrap()
}

/// Two arms whose turns go on for some seconds.
fn long_study(blocks: u32) -> String {
    small_study(blocks, CONTAINER).replace("steady-state = \"200ms\"", "steady-state = \"2s\"")
}

/// Whether all trials of the first set are driven.
fn is_driven(out: &Path) -> bool {
    journal(out).lines().filter(|line| line.contains("\"drive\"")).count() >= 2
}

#[test]
fn arms_take_turns_that_do_not_overlap_and_each_trial_counts_its_own() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &small_study(2, CONTAINER));
    expect_code(&output, 0);
    let trials = trials(&out);
    assert_eq!(trials.len(), 4);
    for set in trials.chunks(2) {
        let of = |trial: &TrialRecord| trial.turns.clone().expect("its arm took turns");
        let turns = [of(&set[0]), of(&set[1])];
        assert_eq!(turns[0].start_ns, turns[1].start_ns);
        let mut windows: Vec<_> = turns.iter().flat_map(|own| own.turns.windows(own.start_ns)).collect();
        windows.sort_unstable();
        assert!(windows.windows(2).all(|pair| pair[0].1 < pair[1].0), "{windows:?}");
        for (trial, own) in set.iter().zip(&turns) {
            let tare_model::trial::Outcome::Completed(measured) = &trial.outcome else { panic!("{trial:?}") };
            let counted: u64 = own.done.counts.iter().map(|count| count.operations).sum();
            assert_eq!(measured.counts.get("operations"), Some(&counted));
            let account = trial.cpu.expect("the host's CPU time was read at the edges of turns");
            let turns_s = own.done.measured_ns as f64 / 1e9;
            assert!(account.window_s > 0.0 && account.window_s < 2.0 * turns_s, "{account:?}, {turns_s} s of turns");
        }
    }
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("in turns"), "{report}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

/// What tells a container from the host.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

/// Two arms that run a command in turns; it is a script of the shell's, which may print a score.
fn commands(rounds: u32, script: &str) -> String {
    let text = small_study(1, CONTAINER);
    let (text, _) = text.split_once("[cases.idle]").unwrap();
    let turns = format!("turns = {{ rounds = {rounds} }}");
    format!(
        "{text}[cases.command]\nworkload = \"exec\"\n{turns}\n[cases.command.parameters]\ncommand = [\"sh\", \"-c\", '{script}']\n"
    )
}

#[test]
fn commands_run_in_turns_one_arm_after_the_other_and_a_value_is_the_mean_of_its_runs() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Each run counts on in a file of its guest's, and a busy loop takes CPU time.
    let count = "n=$(cat $f 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $f; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; echo score: $n";
    let count = format!("f={}/$(cat {HOSTNAME}); {count}", folder.path().display());
    let metrics = "metrics = { score = { regex = \"score: ([0-9]+)\", unit = \"points\", better = \"higher\" } }\n";
    let (out, output) = ran(folder.path(), &(commands(4, &count) + metrics));
    expect_code(&output, 0);
    let trials = trials(&out);
    assert_eq!(trials.len(), 2);
    let turns: Vec<_> = trials.iter().map(|trial| trial.turns.clone().expect("its arm took turns")).collect();
    let mut windows: Vec<_> = turns.iter().flat_map(tare_model::turns::TrialTurns::windows).collect();
    windows.sort_unstable();
    assert_eq!((windows.len(), windows[0].0), (8, turns[0].start_ns), "{turns:?}");
    assert!(windows.windows(2).all(|pair| pair[1].0 - pair[0].1 >= 10_000_000), "{windows:?}");
    for (trial, own) in trials.iter().zip(&turns) {
        let tare_model::trial::Outcome::Completed(measured) = &trial.outcome else { panic!("{trial:?}") };
        assert_eq!((own.turns.places.len(), own.done.counts.len()), (4, 4));
        assert!(own.done.counts.iter().all(|turn| turn.operations == 1 && turn.response_ns == turn.measured_ns));
        let wall_s = own.done.measured_ns as f64 / 4e9;
        assert!((measured.metrics["wall_time_s"] / wall_s - 1.0).abs() < 1e-9, "{measured:?}");
        assert!((measured.metrics["score"] - 2.5).abs() < 1e-9, "the mean of 1 to 4: {measured:?}");
        let account = trial.cpu.expect("the host's CPU time was read between commands");
        let own_s = own.done.measured_ns as f64 / 1e9;
        assert!(account.window_s > own_s && account.window_s < own_s + 0.1, "{account:?}, {own_s} s of commands");
        assert!(measured.metrics["service_demand_cpu_s"] > 0.0, "{measured:?}");
        assert!(own.waiting_cpus.is_some_and(|cpus| cpus < 0.3), "{:?}", own.waiting_cpus);
    }
    assert!(findings(&out)["method"].to_string().contains("A turn that is a command is one run of it"));
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("The arms took turns of one command each in random order"), "{report}");
    expect_code(&run(&["verify", out.to_str().unwrap()]), 0);
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn a_command_that_fails_in_one_arm_fails_its_set_whole_with_that_reason() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // In the container alone, and there in the second round.
    let here = std::fs::read_to_string(HOSTNAME).unwrap();
    let fails = "[ -e /tmp/ran ] && { echo no such disk >&2; exit 3; }; : > /tmp/ran";
    let script = format!("[ $(cat {HOSTNAME}) = {} ] && exit 0; {fails}", here.trim());
    let (out, output) = ran(folder.path(), &commands(3, &script));
    expect_code(&output, 3);
    let ended = trials(&out).into_iter().map(|trial| match trial.outcome {
        tare_model::trial::Outcome::Failed { reason, .. } => (trial.planned.arm, reason),
        other => panic!("{other:?}"),
    });
    let ended: std::collections::BTreeMap<String, String> = ended.collect();
    let (failed, other) = (&ended["container"], &ended["native"]);
    assert!(failed.starts_with("round 2 of 3: `sh -c") && failed.contains("no such disk"), "{failed}");
    assert!(other.starts_with("arm `container`, with which it took turns, failed: round 2 of 3"), "{other}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn a_study_that_asks_for_trials_has_them_and_says_so() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = small_study(1, CONTAINER).replace("blocks = 1", "schedule = \"trials\"\nblocks = 1");
    let (out, output) = ran(folder.path(), &text);
    expect_code(&output, 0);
    assert!(trials(&out).iter().all(|trial| trial.turns.is_none()));
}

#[test]
fn a_busy_guest_is_frozen_while_it_is_the_turn_of_others() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &(small_study(1, CONTAINER) + "busy-target = true\n"));
    expect_code(&output, 0);
    for trial in trials(&out) {
        let turns = trial.turns.expect("its arm took turns");
        // Its busy loop takes a whole CPU where it runs.
        assert!(turns.waiting_cpus.is_some_and(|cpus| cpus < 0.5), "{:?}", turns.waiting_cpus);
    }
}

#[test]
fn a_set_that_is_killed_in_its_turns_is_lost_whole_and_runs_again_whole() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let study = write_study(folder.path(), &long_study(2));
    let out = folder.path().join("run");
    let mut child = begin(&study, &out);
    until("both arms to be driven", || is_driven(&out));
    kill(&mut child);
    let (study, place) = (study.to_str().unwrap(), out.to_str().unwrap());
    assert_eq!(outcomes(&out), Vec::<String>::new());
    let resumed = run(&["run", study, "--out", place, "--resume"]);
    expect_code(&resumed, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 4]);
    assert!(trials(&out).iter().all(|trial| trial.turns.is_some()));
    expect_code(&run(&["verify", place]), 0);
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

/// Memory of which two guests have room on this host, and three have not: two fifths of what is available, in MiB.
fn memory_of_two() -> u64 {
    let seen = std::fs::read_to_string("/proc/meminfo").unwrap();
    let available = seen.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
    available.unwrap().parse::<u64>().unwrap() * 2 / 5 / 1024
}

#[test]
fn arms_that_have_no_room_together_take_turns_in_pairs_with_the_baseline_also_when_resumed() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arms = format!("{CONTAINER}\n[arms.other]\nplatform = \"container\"");
    // These arms' memory is a limit, and nothing takes it.
    let memory = format!("memory = \"{}MiB\"", memory_of_two());
    let study = write_study(folder.path(), &small_study(2, &arms).replace("memory = \"128MiB\"", &memory));
    let out = folder.path().join("run");
    let (study_text, place) = (study.to_str().unwrap(), out.to_str().unwrap());
    let planned = run(&["plan", study_text]);
    expect_code(&planned, 0);
    let why = "because the guests of its 3 arms together are promised";
    assert!(stdout(&planned).contains(&format!("in pairs with the baseline, {why}")), "{}", stdout(&planned));
    let mut child = begin(&study, &out);
    until("the first pair to be driven", || is_driven(&out));
    kill(&mut child);
    let resumed = run(&["run", study_text, "--out", place, "--resume"]);
    expect_code(&resumed, 0);
    let said = stderr(&resumed);
    assert!(said.contains("the arms of `idle` take turns in pairs with the baseline, not all together"), "{said}");
    let trials = trials(&out);
    assert_eq!(trials.len(), 8);
    for (pair, block) in trials.chunks(2).zip(1..) {
        assert!(pair.iter().all(|own| own.planned.block == block), "{:?}", pair[0].planned);
        let native = pair.iter().filter(|own| own.planned.arm == "native").count();
        let began = |trial: &TrialRecord| trial.turns.as_ref().map(|own| (own.start_ns, own.turns.arms));
        assert!(native == 1 && began(&pair[0]).is_some_and(|(_, arms)| arms == 2), "{:?}", pair[0].planned);
        assert_eq!(began(&pair[0]), began(&pair[1]));
    }
    let found = findings(&out);
    assert_eq!(found["not_completed"], serde_json::json!([]));
    let compared = found["cases"][0]["metrics"][0]["comparisons"].as_array().unwrap();
    let counts: Vec<_> =
        compared.iter().map(|own| (own["arm"].as_str().unwrap(), own["ratio"]["n"].as_u64())).collect();
    assert_eq!(counts, [("container", Some(2)), ("other", Some(2))]);
    assert!(found["method"].to_string().contains(&format!("in pairs with the baseline, {why}")), "{}", found["method"]);
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("each pair in blocks of its own"), "{report}");
    expect_code(&run(&["verify", place]), 0);
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn a_guest_that_dies_in_its_turns_fails_its_set_with_the_reason_and_the_run_goes_on() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let study = write_study(folder.path(), &long_study(2));
    let out = folder.path().join("run");
    let child = begin(&study, &out);
    until("both arms to be driven", || is_driven(&out));
    let id = run_ids(folder.path()).pop().expect("the run has an id");
    let is_guest = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("\"hostname\":\"t"))
    };
    let guest = processes_of(&id).into_iter().find(is_guest).expect("a guest stands");
    signal(guest, rustix::process::Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let ended = outcomes(&out);
    assert_eq!(ended.iter().filter(|outcome| *outcome == "completed").count(), 2, "the other block: {ended:?}");
    assert_eq!(ended.iter().filter(|outcome| *outcome == "failed").count(), 2, "{ended:?}");
    let said = stderr(&output);
    assert!(said.contains("with which it took turns, failed"), "{said}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}
