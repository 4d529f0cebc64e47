//! Does a second program come to the same figures?

use std::process::Stdio;

use serde_json::Value;
use tare_analysis::Share;

use super::bar::Bar;
use super::ground::{Ground, tare};
use super::study;
use crate::exit::{Exit, Failure};

/// What is recomputed where no other group was asked for.
const OWN: &str = "recomputed";

/// Whether all figures of all run folders of the proof are made again.
pub fn bars(ground: &Ground<'_>) -> Result<Vec<Bar>, Failure> {
    if ground.folders().is_empty() {
        ground.study(OWN, study::PLANTED)?.run()?;
    }
    let (mut differing, mut notes, mut figures) = (Share::default(), Vec::new(), 0);
    for folder in ground.folders().into_iter().take_while(|_| ground.goes_on()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut verify = tare();
        verify.arg("verify").arg(&folder).args(["--recompute", "--format", "json"]).stdin(Stdio::null());
        let output = verify
            .output()
            .map_err(|error| Failure::new(format!("a run cannot be verified: {error}"), Exit::Failure))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(i32::from(Exit::HostUnfit as u8)) {
            return Ok(vec![bar(Share::default(), vec![said.trim().to_owned()])]);
        }
        if ground.is_stopped() {
            break;
        }
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        figures += found["recomputed"]["checked"].as_u64().unwrap_or(0);
        differing.add(!output.status.success());
        if !output.status.success() {
            notes.push(format!("{name}: {}", said.trim()));
        }
    }
    notes.push(format!("{figures} figures were made again"));
    Ok(vec![bar(differing, notes)])
}

fn bar(share: Share, notes: Vec<String>) -> Bar {
    let statement = "A second program makes every figure of a run's findings again, to 1e-9";
    Bar::counted("recomputed", statement, (0.0, "runs"), share, notes)
}
