//! Replays the seeds of the fuzz target `run_folder`: whole, cut off, and damaged at many places.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/harness/folder.rs"]
mod harness;

use std::path::Path;

#[test]
fn no_folder_makes_its_reader_panic() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/run_folder");
    are_of_this_schema(&seeds);
    let mut read = 0;
    for seed in std::fs::read_dir(&seeds).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()) {
        harness::read(&seed);
        let step = seed.len() / 25 + 1;
        for at in (0..seed.len()).step_by(step) {
            harness::read(&seed[..at]);
            for value in [0x01, 0x80, 0xff] {
                let mut bytes = seed.clone();
                bytes[at] ^= value;
                harness::read(&bytes);
                read += 1;
            }
        }
    }
    assert!(read > 200, "only {read} damaged seeds: {} is not complete", seeds.display());
}

/// What is refused for its schema alone reaches little of what reads folders.
fn are_of_this_schema(seeds: &Path) {
    for name in ["sound", "journal", "plan", "environment"] {
        let seed = std::fs::read(seeds.join(name)).unwrap();
        assert!(harness::is_read(&seed), "the folder of {name} is refused: write the seeds again");
    }
    let journal = std::fs::read(seeds.join("journal")).unwrap();
    let known = format!("\"schema\":{},", tare_record::journal::JOURNAL_SCHEMA);
    assert!(String::from_utf8_lossy(&journal).contains(&known), "journal does not say {known} write the seeds again");
}

/// Writes the seeds anew: `cargo test -p tare-analysis --test folders -- --ignored`.
#[test]
#[ignore = "writes the seeds of the fuzz target run_folder"]
fn write_the_seeds() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/run_folder");
    std::fs::create_dir_all(&seeds).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let plan = tare_record::testing::plan(1);
    // The trials of the folder that inputs are applied to.
    let trials = harness::trials(&plan);
    tare_record::testing::write_run(folder.path(), &plan, &trials);
    let text = |name: &str| {
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        [(bytes.len() as u16).to_le_bytes().as_slice(), &bytes].concat()
    };
    let (journal, plan, environment) = (text("journal.jsonl"), text("plan.json"), text("environment.json"));
    let same = [0xff, 0xff].as_slice();
    // Places in the header, the schema and the pages of the results.
    let places = [18_u32, 28, 100, 105, 4096, 8200, 20_000, 60_000, 120_000];
    let changes: Vec<u8> = places.iter().flat_map(|at| [*at as u8, (at >> 8) as u8, (at >> 16) as u8, 0x04]).collect();
    let parts: [(&str, u8, [&[u8]; 4]); 5] = [
        ("sound", 0, [same, same, same, &[]]),
        ("journal", 1, [&journal, same, same, &[]]),
        ("plan", 1, [same, &plan, same, &[]]),
        ("environment", 1, [same, same, &environment, &[]]),
        ("results", 0, [same, same, same, &changes]),
    ];
    for (name, flags, parts) in parts {
        std::fs::write(seeds.join(name), [vec![flags], parts.concat()].concat()).unwrap();
    }
}
