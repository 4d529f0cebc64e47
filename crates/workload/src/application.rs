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

fn spec(argv: Vec<String>, user: Option<(u32, u32)>, longest: Duration) -> ExecSpec {
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
    match site.ask_guest(Request::Start(spec(argv, user, LIFETIME)))? {
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
