//! `tare prove`: how often tare is wrong on this host. Why and how: `docs/adr/0038-prove.md`.

mod bar;
mod differences;
mod ground;
mod killed;
mod page;
mod percentiles;
mod plant;
mod planted;
mod recomputed;
mod secrets;
mod study;

use std::path::{Path, PathBuf};

use crate::args::{Group, ProveArguments};
use crate::commands::run;
use crate::exit::{Exit, Failure};
use crate::{forms, output, place};

use bar::{Bar, Proof, Verdict};
use ground::Ground;

/// Name of the file with the counts.
const PROOF: &str = "proof.json";

/// Runs the studies of all bars and says which are met.
pub fn command(arguments: &ProveArguments) -> Result<Exit, Failure> {
    let cancel = run::stoppable()?;
    let out = arguments.out.clone().unwrap_or_else(|| place::default_folder("prove"));
    let ground = Ground::new(&out, arguments, &cancel)?;
    let mut proof = Proof::begun(arguments.full);
    for group in Group::ALL.iter().filter(|group| arguments.only.is_empty() || arguments.only.contains(group)) {
        if ground.is_stopped() {
            break;
        }
        output::note(&format!("tare prove: {}", group.words()));
        let mut bars = match group {
            Group::Equal => differences::equal(&ground)?,
            Group::Slower => differences::slower(&ground)?,
            Group::Percentiles => percentiles::bars(&ground)?,
            Group::Planted => planted::bars(&ground)?,
            Group::Killed => killed::bars(&ground)?,
            Group::Recomputed => recomputed::bars(&ground)?,
            Group::Secrets => secrets::bars(&ground)?,
        };
        if !ground.goes_on() {
            let why = "stopped, or out of the short form's time, before all of its runs: --full has no such limit";
            bars.iter_mut().for_each(|bar| bar.notes.push(why.to_owned()));
        }
        bars.iter().for_each(say);
        proof.bars.extend(bars);
        proof.wall_s = ground.wall_s();
        write(&out, &proof)?;
    }
    forms::print(arguments.shown.format, &proof, |_| page::of(&proof))?;
    output::note(&format!("tare prove: {} and proof.html are in {}", PROOF, out.display()));
    Ok(match () {
        () if ground.is_stopped() => Exit::Interrupted,
        () if proof.bars.iter().any(|bar| bar.verdict == Verdict::NotMet) => Exit::Broken,
        () if proof.bars.iter().any(|bar| bar.verdict == Verdict::LeftOut) => Exit::Incomplete,
        () => Exit::Success,
    })
}

fn say(bar: &Bar) {
    output::note(&format!("  {}: {} ({})", bar.verdict.words(), bar.statement, bar.figure()));
}

fn write(out: &Path, proof: &Proof) -> Result<(), Failure> {
    let page = page::of(proof);
    let html = tare_report::page_html(&page).map_err(|error| Failure::new(error, Exit::Failure))?;
    let files = [(PROOF, forms::json(proof)?), ("proof.md", tare_report::page_markdown(&page)), ("proof.html", html)];
    files.into_iter().try_for_each(|(name, text)| put(&out.join(name), &text))
}

/// Writes a file of the proof.
fn put(path: &PathBuf, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        let what = format!("{} cannot be written: {error}; write to another place with --out", path.display());
        Failure::new(what, Exit::Failure)
    })
}
