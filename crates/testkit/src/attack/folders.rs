//! Run folders made to do harm, or to be believed: 203 of them, each made again by its number.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a case that cannot be made fails the test that asks for it"
)]

mod journals;
mod links;
mod results;
mod strange;

use std::path::Path;

use tare_record::testing;

/// How many cases there are.
pub const CASES: u32 = 203;
const _: () = assert!(links::CASES + results::CASES + journals::CASES + strange::CASES == CASES);

/// What must hold of a hostile folder, besides that nothing outside it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Must {
    /// It is refused: neither `tare verify` nor `tare report` ends with 0.
    Refused,
    /// What was altered is no part of the run: both read it, and what stood in the way of the report is replaced or named.
    Whole,
    /// It is refused, or nothing that it holds differs from the sound folder.
    RefusedOrSame,
    /// It is as a crash leaves it: both say so, and no figure without an acknowledgement is used.
    CutShort,
    /// It is a sound folder of a strange run: `tare verify` finds nothing, and `tare report` ends in good order.
    Sound,
    /// Its hashes were computed anew: only the root hash tells it.
    OtherRoot,
}

/// A case.
#[derive(Debug)]
pub struct Case {
    /// What it is, in words.
    pub name: String,
    /// What must hold.
    pub must: Must,
}

impl Case {
    fn new(name: impl Into<String>, must: Must) -> Self {
        Self { name: name.into(), must }
    }
}

/// Writes the run that the cases are made from.
pub fn sound(at: &Path) {
    let plan = testing::plan(1);
    let trials: Vec<_> = (0..3).map(|index| testing::trial(&plan, index)).collect();
    testing::write_run(at, &plan, &trials);
}

/// Makes a case in `at`, which is not there yet, from the run in `sound`. Links lead to `canary`.
pub fn make(number: u32, sound: &Path, at: &Path, canary: &Path) -> Case {
    let mut number = number % CASES;
    if let Some(case) = of(&mut number, links::CASES) {
        copy(sound, at);
        return links::make(case, at, canary);
    }
    if let Some(case) = of(&mut number, results::CASES) {
        copy(sound, at);
        return results::make(case, at);
    }
    if let Some(case) = of(&mut number, journals::CASES) {
        copy(sound, at);
        return journals::make(case, at);
    }
    strange::make(number, at)
}

/// The number within a group of so many cases; otherwise what is left of it for the next group.
fn of(number: &mut u32, cases: u32) -> Option<u32> {
    if *number < cases {
        return Some(*number);
    }
    *number -= cases;
    None
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A number that depends on nothing but the seed (SplitMix64).
fn random(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Changes one bit of a file.
fn flip(file: &Path, seed: u64) {
    let mut bytes = std::fs::read(file).unwrap();
    let at = random(seed) as usize % bytes.len();
    bytes[at] ^= 1 << (random(seed + 1000) % 8);
    std::fs::write(file, bytes).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_gives_a_case_of_its_own_and_making_it_harms_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (from, canary) = (place.path().join("sound"), place.path().join("canary"));
        sound(&from);
        std::fs::write(&canary, "untouched").unwrap();
        let names: std::collections::BTreeSet<String> = (0..CASES)
            .map(|number| make(number, &from, &place.path().join(number.to_string()), &canary).name)
            .collect();
        assert_eq!(names.len(), CASES as usize);
        assert_eq!(std::fs::read(&canary).unwrap(), b"untouched");
    }
}
