//! Commands that were started in a guest and left running: what they say, and how they end.

use tare_wire::{ExecResult, Reply, Request};

use crate::{WorkSite, WorkloadError};

/// Of what it said so much is shown.
const SHOWN_BYTES: usize = 1500;

/// What a look at a command saw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Look {
    /// End of its standard output.
    pub stdout: Vec<u8>,
    /// End of its standard error.
    pub stderr: Vec<u8>,
    /// How it ended, if it has.
    pub ended: Option<ExecResult>,
    /// Its largest resident size, bytes.
    pub resident_peak_bytes: Option<u64>,
}

/// Looks at a command.
pub(crate) fn look(site: &WorkSite<'_>, command: u64) -> Result<Look, WorkloadError> {
    match site.ask_guest(Request::Look { command })? {
        Reply::Looked { stdout, stderr, ended, resident_peak_bytes } => {
            Ok(Look { stdout, stderr, ended, resident_peak_bytes })
        }
        _ => Err(WorkSite::unexpected("guest", "look at a command")),
    }
}

/// How a command ended, for people.
pub(crate) fn how(ended: &ExecResult) -> String {
    match (ended.code, ended.signal) {
        _ if ended.timed_out => "it took too long and was killed".to_owned(),
        (_, Some(9)) => "it was killed (signal 9), as the kernel does for want of memory".to_owned(),
        (_, Some(signal)) => format!("it was ended by signal {signal}"),
        (Some(code), None) => format!("it ended by itself with code {code}"),
        (None, None) => "it ended in no known way".to_owned(),
    }
}

/// The end of what it said, short enough to be shown.
pub(crate) fn said(seen: &Look) -> String {
    let ended = seen.ended.as_ref();
    let outputs = [(&seen.stderr, ended.map(|ended| &ended.stderr)), (&seen.stdout, ended.map(|ended| &ended.stdout))];
    let tails = outputs.into_iter().filter_map(|(looked, ended)| {
        let output = if looked.is_empty() { ended.unwrap_or(looked) } else { looked };
        let from = output.len().saturating_sub(SHOWN_BYTES);
        let text = String::from_utf8_lossy(&output[from..]).into_owned();
        // It tells of options from its environment, which are none.
        let lines = text.lines().filter(|line| !(line.contains("Picked up ") && line.trim_end().ends_with(':')));
        let text = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
        (!text.is_empty()).then_some(text)
    });
    let tails: Vec<String> = tails.collect();
    if tails.is_empty() { String::new() } else { format!(" and said: {}", tails.join("; ")) }
}
