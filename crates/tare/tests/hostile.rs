//! Run folders that a stranger made to do harm, or to be believed: each is verified and reported by the real program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::tare;
use tare_model::trial::TrialRecord;
use tare_record::RunFolder;
use tare_testkit::attack::folders::{self, CASES, Case, Must};
use tare_testkit::attack::{Observed, observe};

/// After this long a program counts as hung.
const HUNG: Duration = Duration::from_secs(20);
/// The most memory that reading a folder may take, bytes.
const MEMORY: u64 = 200 << 20;

/// Everything in a place but one folder: path, bytes or the link's target, time of the last change.
fn listing(place: &Path, but: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()) {
        if entry != but {
            let bytes = std::fs::read(&entry).unwrap_or_default();
            found.insert(entry.clone(), (bytes, entry.symlink_metadata().unwrap().modified().unwrap()));
        }
    }
    found
}

/// What the sound folder holds.
struct Sound {
    at: PathBuf,
    root_hash: String,
    trials: Vec<TrialRecord>,
}

/// What the program did with one folder.
struct Seen {
    verify: Observed,
    report: Observed,
}

fn look(folder: &Path, sound: &Sound, case: &Case) -> Seen {
    let mut verify = tare();
    verify.arg("verify").arg(folder);
    if case.must == Must::OtherRoot {
        verify.args(["--root", &sound.root_hash]);
    }
    let verify = observe(&mut verify, HUNG).unwrap();
    let report = observe(tare().arg("report").arg(folder), HUNG).unwrap();
    Seen { verify, report }
}

/// What must hold and does not.
fn wrong(case: &Case, seen: &Seen, folder: &Path, sound: &Sound) -> Vec<String> {
    let mut wrong = Vec::new();
    for (command, one) in [("verify", &seen.verify), ("report", &seen.report)] {
        let mut say = |what: String| wrong.push(format!("{command}: {what}\n{}{}", one.stdout, one.stderr));
        if one.hung {
            say("it hung".to_owned());
        }
        if one.crashed() {
            say("it crashed".to_owned());
        }
        if one.peak_bytes > MEMORY {
            say(format!("it took {} MiB", one.peak_bytes >> 20));
        }
        if !one.unfit().is_empty() {
            say(format!("it printed {:?}", one.unfit()));
        }
        if one.code != Some(0) && one.stderr.trim().is_empty() {
            say("it does not say what is wrong".to_owned());
        }
    }
    let codes = (seen.verify.code, seen.report.code);
    let directory = case.name.ends_with("a directory");
    let holds = match case.must {
        Must::Refused => codes.0 != Some(0) && codes.1 != Some(0),
        // A directory in place of the report is not removed: the report says so.
        Must::Whole => codes.0 == Some(0) && (codes.1 == Some(0) || directory),
        Must::RefusedOrSame => codes.0 != Some(0) || same(folder, sound),
        Must::CutShort => {
            let held = RunFolder::open(folder).and_then(|folder| folder.trials()).unwrap();
            codes == (Some(0), Some(0)) && seen.verify.stdout.contains("cut short") && sound.trials.starts_with(&held)
        }
        Must::Sound => codes.0 == Some(0) && codes.1.is_some_and(|code| code <= 1),
        Must::OtherRoot => codes.0 == Some(1) && seen.verify.stderr.contains("root hash"),
    };
    if !holds {
        wrong.push(format!(
            "{:?} does not hold: {codes:?}\nverify: {}{}\nreport: {}",
            case.must, seen.verify.stdout, seen.verify.stderr, seen.report.stderr
        ));
    }
    wrong
}

fn same(folder: &Path, sound: &Sound) -> bool {
    let folder = RunFolder::open(folder).unwrap();
    folder.facts().root_hash == sound.root_hash && folder.trials().unwrap() == sound.trials
}

#[test]
fn two_hundred_hostile_folders_neither_harm_the_host_nor_are_believed() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path().join("sound");
    folders::sound(&at);
    let folder = RunFolder::open(&at).unwrap();
    let sound = Sound { root_hash: folder.facts().root_hash.clone(), trials: folder.trials().unwrap(), at };
    let (mut failed, mut longest, mut most) = (Vec::new(), (Duration::ZERO, 0), (0, 0));
    for number in 0..CASES {
        let case_place = place.path().join(number.to_string());
        std::fs::create_dir(&case_place).unwrap();
        let (folder, canary) = (case_place.join("run"), case_place.join("canary"));
        std::fs::write(&canary, "untouched").unwrap();
        let case = folders::make(number, &sound.at, &folder, &canary);
        let before = listing(&case_place, &folder);
        let seen = look(&folder, &sound, &case);
        let mut found = wrong(&case, &seen, &folder, &sound);
        if listing(&case_place, &folder) != before {
            found.push("something outside the folder was changed".to_owned());
        }
        failed.extend(found.iter().map(|what| format!("case {number}, {}: {what}", case.name)));
        for one in [&seen.verify, &seen.report] {
            longest = longest.max((one.wall, number));
            most = most.max((one.peak_bytes, number));
        }
        std::fs::remove_dir_all(&case_place).unwrap();
    }
    eprintln!(
        "{CASES} folders: the longest took {:?} (case {}), the most memory was {} MiB (case {})",
        longest.0,
        longest.1,
        most.0 >> 20,
        most.1
    );
    assert!(failed.is_empty(), "{} failed\n{}", failed.len(), failed.join("\n"));
}
