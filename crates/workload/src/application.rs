//! What is asked of agents for an application in a guest: commands, files, pages.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tare_wire::{ExecSpec, Link, Reply, Request, WireError, copy_in};

pub(crate) use crate::started::{Look, how, look, said};
use crate::{Failure, WorkSite, WorkloadError};

/// A server may work for as long as its agent lives: a week is longer.
const LIFETIME: Duration = Duration::from_secs(7 * 86_400);
/// Longest that a short command may take beyond the site's timeout.
const SHORT: Duration = Duration::from_secs(30);
/// Of a command's output so much is kept, from its end.
const OUTPUT_BYTES: u64 = 64 << 10;
/// Longest page that is fetched, bytes.
const PAGE_BYTES: u64 = 64 << 10;
/// How long a page that is fetched may take.
const FETCHING: Duration = Duration::from_secs(10);
/// First and longest pause between two looks at whether a server is ready.
pub(crate) const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// How long a server whose connections broke is looked at, for it to be seen to end.
const ENDING: Duration = Duration::from_secs(2);

/// A command of the guest's as this user, which may take so long.
pub(crate) fn spec(argv: Vec<String>, user: Option<(u32, u32)>, longest: Duration) -> ExecSpec {
    ExecSpec {
        argv,
        // Options from the guest's environment would come on top of those that all arms have.
        env: ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"]
            .map(|name| (name.to_owned(), String::new()))
            .to_vec(),
        directory: Some("/".to_owned()),
        user,
        timeout_ns: u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX),
        output_limit_bytes: OUTPUT_BYTES,
    }
}

/// Starts a server as this user and leaves it running; its number.
pub(crate) fn start(site: &WorkSite<'_>, argv: Vec<String>, user: Option<(u32, u32)>) -> Result<u64, WorkloadError> {
    started(site, server(argv, user))
}

/// A server as this user, which runs until it is ended.
pub(crate) fn server(argv: Vec<String>, user: Option<(u32, u32)>) -> ExecSpec {
    spec(argv, user, LIFETIME)
}

/// Starts it and leaves it running; its number.
pub(crate) fn started(site: &WorkSite<'_>, server: ExecSpec) -> Result<u64, WorkloadError> {
    match site.ask_guest(Request::Start(server))? {
        Reply::Started { command, .. } => Ok(command),
        _ => Err(WorkSite::unexpected("guest", "start a command")),
    }
}

/// Runs a command of the guest's shell to its end; what it printed.
///
/// # Errors
/// When it does not end well, as "cannot TRIED".
pub(crate) fn script(site: &WorkSite<'_>, tried: &str, script: &str, words: &[&str]) -> Result<String, WorkloadError> {
    script_as(site, None, tried, script, words)
}

/// The same as this user.
///
/// # Errors
/// As there.
pub(crate) fn script_as(
    site: &WorkSite<'_>,
    user: Option<(u32, u32)>,
    tried: &str,
    script: &str,
    words: &[&str],
) -> Result<String, WorkloadError> {
    let argv = ["sh", "-c", script, "tare"].into_iter().chain(words.iter().copied()).map(str::to_owned).collect();
    let site = WorkSite { timeout: site.timeout + SHORT, ..*site };
    match site.ask_guest(Request::Exec(spec(argv, user, SHORT)))? {
        Reply::Executed(ran) if ran.code == Some(0) => Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned()),
        Reply::Executed(ran) => {
            let seen = Look { stdout: Vec::new(), stderr: Vec::new(), ended: Some(ran), resident_peak_bytes: None };
            let why = seen.ended.as_ref().map(how).unwrap_or_default() + &said(&seen);
            Err(Failure::new(tried, why, "see what it says; something may be missing in the guest's image").into())
        }
        _ => Err(WorkSite::unexpected("guest", "run a command")),
    }
}

/// Writes a file in the guest, for its owner alone.
pub(crate) fn put(site: &WorkSite<'_>, path: &str, text: &str) -> Result<(), WorkloadError> {
    let put = copy_in(site.guest, &mut text.as_bytes(), path, 0o600, site.timeout + SHORT);
    put.map(drop).map_err(|source| WorkloadError::Agent { side: "guest", source })
}

/// Whether the guest has a file that is not empty; else why not.
pub(crate) fn has(site: &WorkSite<'_>, path: &str) -> Result<Result<(), String>, WorkloadError> {
    match site.ask_guest(Request::GetFile { path: path.to_owned(), offset: 0, limit_bytes: 1 }) {
        Ok(Reply::File { bytes, .. }) if !bytes.is_empty() => Ok(Ok(())),
        Ok(Reply::File { .. }) => Ok(Err("it is empty".to_owned())),
        Ok(_) => Err(WorkSite::unexpected("guest", "read a file")),
        Err(WorkloadError::Agent { source: WireError::Refused { reason, .. }, .. }) => Ok(Err(reason)),
        Err(error) => Err(error),
    }
}

/// Asks a server for a page from where load comes from; status and body, or why there is none.
pub(crate) fn fetch(
    client: &Link,
    timeout: Duration,
    address: SocketAddr,
    path: &str,
) -> Result<Result<(u16, Vec<u8>), String>, WorkloadError> {
    let timeout_ns = u64::try_from(FETCHING.as_nanos()).unwrap_or(u64::MAX);
    let request = Request::Fetch { address, path: path.to_owned(), timeout_ns, limit_bytes: PAGE_BYTES };
    match client.call(request, timeout + FETCHING) {
        Ok(Reply::Fetched { status, body }) => Ok(Ok((status, body))),
        Ok(_) => Err(WorkSite::unexpected("client", "fetch a page")),
        Err(WireError::Refused { reason, .. }) => Ok(Err(reason)),
        Err(source) => Err(WorkloadError::Agent { side: "client", source }),
    }
}

/// Why a server ended before it was ready, if it has. It was TRIED, and `less` is what would take less memory.
pub(crate) fn not_started(seen: &Look, tried: &str, less: &str) -> Option<Failure> {
    let ended = seen.ended.as_ref()?;
    let for_memory = wants_memory(seen);
    let remedy = if for_memory {
        format!("the guest's memory did not suffice: give it more, or {less}")
    } else {
        "see what it says: it may need another option in the study, or more memory in the guest".to_owned()
    };
    Some(Failure::new(tried, format!("{}{}", how(ended), said(seen)), remedy).lost(for_memory))
}

/// Why a server that has not ended is given up.
pub(crate) fn not_ready(seen: &Look, tried: &str, longest: Duration) -> Failure {
    let why = format!("it was not ready within {} s{}", longest.as_secs(), said(seen));
    Failure::new(tried, why, "the guest may be short of CPU or memory: give it more, or have fewer guests at one time")
}

/// Waits until a server has written that it is ready, which `ready` finds in what it wrote; the rest as [`not_started`] says.
///
/// # Errors
/// When it has ended, or is not ready in time; it is ended then.
pub(crate) fn until_ready<T>(
    site: &WorkSite<'_>,
    command: u64,
    longest: Duration,
    (tried, less): (&str, &str),
    ready: impl Fn(&[u8]) -> Option<T>,
) -> Result<T, WorkloadError> {
    let longest = site.timeout + longest;
    let deadline = Instant::now() + longest;
    let mut pause = PAUSE.0;
    loop {
        let seen = look(site, command)?;
        if let Some(failure) = not_started(&seen, tried, less) {
            return Err(failure.into());
        }
        if let Some(ready) = ready(&seen.stdout) {
            return Ok(ready);
        }
        if Instant::now() > deadline {
            // It is in the way of nothing but its guest, which is thrown away; ending it is a courtesy.
            let _ = site.ask_guest(Request::End { command });
            return Err(not_ready(&seen, tried, longest).into());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// Whether a server has written a line that says so and no more.
pub(crate) fn says_ready(stdout: &[u8]) -> Option<()> {
    String::from_utf8_lossy(stdout).lines().any(|line| line == "ready").then_some(())
}

/// Waits until a server that consists of these commands answers `/tare/ready`, asked from where load comes from.
///
/// # Errors
/// When one of them is no more, or it does not answer in time, as "cannot TRIED".
pub(crate) fn until_served(
    site: &WorkSite<'_>,
    address: SocketAddr,
    servers: &[(&str, u64)],
    tried: &str,
    remedy: &str,
) -> Result<(), WorkloadError> {
    let deadline = Instant::now() + site.timeout;
    let mut pause = PAUSE.0;
    loop {
        let why = match fetch(site.client, site.timeout, address, "/tare/ready")? {
            Ok((200, body)) if body.starts_with(b"ready") => return Ok(()),
            Ok((status, _)) => format!("/tare/ready has status {status}"),
            Err(why) => why,
        };
        for (name, command) in servers {
            if let Some(gone) = gone(name, &look(site, *command)?) {
                return Err(gone.into());
            }
        }
        if Instant::now() > deadline {
            return Err(Failure::new(tried, why, remedy).into());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// Why an application cannot be started from a file that the guest does not have: it was `given` data, which `anew` makes, or sees this host's files.
pub(crate) fn absent(noun: &str, given: bool, anew: &str, path: &str, why: &str) -> Failure {
    let (whose, remedy) = if given {
        ("from the data that the guest was given", anew.to_owned())
    } else {
        (
            "in the guest, which its platform can hand no data",
            format!("put a copy of this host's directory there in the guest: {path} and what is beside it"),
        )
    };
    Failure::new(format!("start the {noun} {whose}"), format!("cannot read {path} there: {why}"), remedy)
}

/// Whether a server ended for want of memory: killed, or refused by its kernel, or by its own heap.
pub(crate) fn wants_memory(seen: &Look) -> bool {
    let Some(ended) = &seen.ended else { return false };
    let text = [&seen.stdout, &seen.stderr, &ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let words = ["insufficient memory", "OutOfMemoryError"];
    ended.signal == Some(9) || text.iter().any(|text| words.iter().any(|word| text.contains(word)))
}

/// Why load could not go on, if a server is no more; `None`: it is there.
pub(crate) fn gone(name: &str, seen: &Look) -> Option<Failure> {
    let ended = seen.ended.as_ref()?;
    let why = format!("{}{}", how(ended), said(seen));
    let remedy = if wants_memory(seen) {
        "its memory did not suffice: give the guest more, or the server another `heap`"
    } else {
        "see what it says"
    };
    Some(Failure::new(format!("go on with {name} in the guest"), why, remedy).lost(true))
}

/// The error of a driver that lost its servers, with what became of them where one is no more.
pub(crate) fn explained(site: &WorkSite<'_>, servers: &[(&str, u64)], error: WorkloadError) -> WorkloadError {
    let deadline = Instant::now() + ENDING;
    while !servers.is_empty() {
        for (name, command) in servers {
            match look(site, *command) {
                Ok(seen) => {
                    if let Some(gone) = gone(name, &seen) {
                        return gone.into();
                    }
                }
                Err(lost) if lost.guest_lost() => return lost,
                Err(_) => return error,
            }
        }
        if Instant::now() > deadline {
            break;
        }
        std::thread::sleep(PAUSE.0);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_wire::ExecResult;

    fn ended(code: Option<i32>, signal: Option<i32>, stderr: &str) -> Look {
        let ended = ExecResult {
            code,
            signal,
            timed_out: false,
            wall_ns: 1,
            stdout: Vec::new(),
            stderr: stderr.into(),
            dropped_bytes: 0,
        };
        Look { stdout: b"listening x\n".to_vec(), stderr: Vec::new(), ended: Some(ended), resident_peak_bytes: None }
    }

    #[test]
    fn an_application_that_is_gone_says_why_and_that_its_guest_is_lost() {
        let killed = gone("the server", &ended(None, Some(9), "")).unwrap();
        assert!(killed.lost && killed.why.contains("signal 9") && killed.remedy.contains("memory"), "{killed}");
        let out =
            gone("the server", &ended(Some(3), None, "Terminating due to java.lang.OutOfMemoryError: Java heap space"))
                .unwrap();
        assert!(out.lost && out.why.contains("code 3") && out.why.contains("Java heap space"), "{out}");
        let there = Look { ended: None, ..ended(None, None, "") };
        assert!(gone("the server", &there).is_none());
        assert!(WorkloadError::from(killed).guest_lost());
    }

    #[test]
    fn an_application_that_does_not_start_is_lost_only_for_memory() {
        let failed = |seen: &Look| not_started(seen, "start the server (`java -Xnope`)", "less of it").unwrap();
        let option = failed(&ended(Some(1), None, "Picked up JAVA_TOOL_OPTIONS: \nUnrecognized option: -Xnope"));
        assert!(!option.lost && option.why.contains("Unrecognized option"), "{option}");
        assert!(!option.why.contains("Picked up") && option.tried.contains("java -Xnope"), "{option}");
        assert!(failed(&ended(None, Some(9), "")).lost);
        assert!(failed(&ended(Some(1), None, "There is insufficient memory for the Java Runtime")).lost);
        assert!(failed(&ended(None, None, "")).why.contains("no known way"));
    }
}
