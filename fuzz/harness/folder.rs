//! A whole run folder of a stranger's, made from the bytes of an input and a sound folder.
//!
//! The first byte says by its lowest bit whether the hashes are made to fit. Then come journal, plan and environment, each as a length
//! of two bytes (little-endian; 0xffff: the sound file) and as many bytes. What is left alters the results: three bytes of a place, one
//! byte that is mixed into what stands there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;
use tare_record::{RunFolder, layout, testing};

const TEXTS: [&str; 3] = [layout::JOURNAL, layout::PLAN, layout::ENVIRONMENT];

/// Reads the folder that an input stands for: whatever is in it, nothing panics.
pub fn read(input: &[u8]) {
    is_read(input);
}

/// Whether the folder that an input stands for is opened.
pub fn is_read(input: &[u8]) -> bool {
    let place = std::env::temp_dir().join(format!("tare-fuzz-folder-{}", std::process::id()));
    let _ = fs::remove_dir_all(&place);
    fs::create_dir(&place).expect("a place for the folder");
    write(input, &place);
    let folder = RunFolder::open(&place);
    if let Ok(folder) = &folder {
        let problems = folder.verify();
        let _ = folder.trials();
        let altered = problems.iter().any(|problem| !problem.kind.explained_by_a_crash());
        // What is made of a folder that is altered is shown only to those who ask for it, and must not panic either.
        if let Ok(findings) = tare_analysis::analyse(folder) {
            assert_eq!(findings.run.root_hash, folder.journal().root_hash());
            assert!(altered || !findings.run.root_hash.is_empty());
        }
    }
    fs::remove_dir_all(&place).expect("all that was made can be removed");
    folder.is_ok()
}

/// The trials of the sound folder.
pub fn trials(plan: &Plan) -> [TrialRecord; 3] {
    [testing::store_trial(plan, 0), testing::capacity_trial(plan, 1), testing::cpu_target_trial(plan, 2)]
}

fn sound() -> &'static Vec<(PathBuf, Vec<u8>)> {
    static SOUND: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let place = std::env::temp_dir().join(format!("tare-fuzz-sound-{}", std::process::id()));
        let plan = testing::plan(1);
        testing::write_run(&place, &plan, &trials(&plan));
        let entries = fs::read_dir(&place).expect("a folder").map(|entry| entry.expect("an entry").path());
        let files = entries
            .map(|path| (path.file_name().unwrap_or_default().into(), fs::read(&path).expect("a file")))
            .collect();
        fs::remove_dir_all(&place).expect("all that was made can be removed");
        files
    })
}

fn write(input: &[u8], place: &Path) {
    let (flags, mut rest) = input.split_first().map_or((0, input), |(first, rest)| (*first, rest));
    let mut texts: Vec<Option<&[u8]>> = Vec::new();
    for _ in TEXTS {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
        let length = u16::from_le_bytes(*length);
        let (text, after) = if length == u16::MAX {
            (None, after)
        } else {
            let (text, after) = after.split_at(usize::from(length).min(after.len()));
            (Some(text), after)
        };
        texts.push(text);
        rest = after;
    }
    let mut journal = Vec::new();
    let mut digests = Vec::new();
    for (name, before) in sound() {
        let mut bytes = before.clone();
        if let Some(Some(text)) = TEXTS.iter().position(|text| Path::new(text) == name).and_then(|at| texts.get(at)) {
            bytes = text.to_vec();
        }
        if name == Path::new(layout::RESULTS) {
            for change in rest.chunks_exact(4) {
                let at = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize % bytes.len();
                bytes[at] ^= change[3];
            }
        }
        if name == Path::new(layout::JOURNAL) {
            journal = bytes;
        } else {
            digests.push((testing::digest(before), testing::digest(&bytes)));
            fs::write(place.join(name), bytes).expect("a file");
        }
    }
    if flags & 1 == 1
        && let Ok(text) = std::str::from_utf8(&journal)
    {
        let text = digests.iter().fold(text.to_owned(), |text, (before, after)| text.replace(before, after));
        journal = testing::chained(&text).into_bytes();
    }
    fs::write(place.join(layout::JOURNAL), journal).expect("a journal");
}
