//! A command in a guest, run once by its agent.

use std::time::Duration;

use tare_model::Span;
use tare_model::field::FieldError;
use tare_wire::{ExecResult, ExecSpec, Link, Reply, Request, WireError};

use crate::{WorkSite, WorkloadError};

/// Of each output stream of a command so much is kept, bytes from its end.
pub const OUTPUT_BYTES: u64 = 4 << 20;

/// How long a command may take where the study does not say.
pub const fn minute() -> Span {
    Span::from_secs(60)
}

/// Sees that a command that may be left out, and how long it may take, can be meant.
///
/// # Errors
/// By its field, `command` or `timeout`.
pub fn check(command: &[String], timeout: Span) -> Result<(), FieldError> {
    if command.first().is_some_and(String::is_empty) {
        return Err(FieldError::new(&["command"], "its program has no name")
            .help("write the program and its arguments as a list: [\"python3\", \"-c\", \"import json\"]"));
    }
    if timeout == Span::ZERO {
        return Err(FieldError::new(&["timeout"], "0s leaves the command no time"));
    }
    Ok(())
}

/// Runs a command in a guest. Its agent may take so much `longer` than the command to answer.
///
/// # Errors
/// When the guest does not answer, has no such program, or the command did not end well; with all that helps.
pub fn run(link: &Link, spec: ExecSpec, longer: Duration) -> Result<ExecResult, WorkloadError> {
    let (command, timeout) = (spec.argv.join(" "), Span { ns: spec.timeout_ns });
    let result = match link.call(Request::Exec(spec), timeout.duration() + longer) {
        Ok(Reply::Executed(result)) => result,
        Ok(_) => return Err(WorkSite::unexpected("guest", "run a command")),
        Err(WireError::Refused { reason, .. }) => return Err(WorkloadError::NotStarted(reason)),
        Err(source) => return Err(WorkloadError::Agent { side: "guest", source }),
    };
    succeeded(&command, timeout, &result)?;
    Ok(result)
}

/// Fails with all that helps when the command did not end well.
fn succeeded(command: &str, timeout: Span, result: &ExecResult) -> Result<(), WorkloadError> {
    let how = match (result.timed_out, result.code, result.signal) {
        (true, ..) => format!("took longer than {timeout} and was killed; raise `timeout` if it needs longer"),
        (_, Some(0), _) => return Ok(()),
        (_, Some(code), _) => format!("exited with code {code}"),
        (_, None, Some(signal)) => format!("was killed by signal {signal} (9 is often the memory limit)"),
        (_, None, None) => "ended in no known way".to_owned(),
    };
    let said = if result.stderr.is_empty() { tail(&result.stdout) } else { tail(&result.stderr) };
    Err(WorkloadError::Command(format!("`{command}` {how}; it said: {said}")))
}

/// The end of an output, short enough for an error message.
pub fn tail(output: &[u8]) -> String {
    let from = output.len().saturating_sub(600);
    let text = String::from_utf8_lossy(&output[from..]).trim().to_owned();
    if text.is_empty() { "(nothing)".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_ends_badly_is_reported_with_its_output() {
        let mut result = ExecResult {
            code: Some(1),
            signal: None,
            timed_out: false,
            wall_ns: 1,
            stdout: Vec::new(),
            stderr: b"fio: no such job\n".to_vec(),
            dropped_bytes: 0,
        };
        let ended = |result: &ExecResult| succeeded("fio job", Span::from_secs(600), result);
        let error = ended(&result).unwrap_err().to_string();
        assert!(error.contains("`fio job` exited with code 1") && error.contains("no such job"), "{error}");
        result.timed_out = true;
        assert!(ended(&result).unwrap_err().to_string().contains("raise `timeout`"));
        result = ExecResult { code: Some(0), timed_out: false, ..result };
        assert!(ended(&result).is_ok());
    }
}
