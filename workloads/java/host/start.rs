//! The application as it is started in a guest, after the guest's system has touched its memory.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tare_model::Refusal;
use tare_model::hold::HoldSpec;
use tare_wire::{ExecResult, ExecSpec, Reply, Request};

use super::bundle::{Bundle, Inside, inside, major_of, unable};
use super::parameters::{Data, Parameters};
pub(super) use crate::started::look;
use crate::started::{Look, how, said};
use crate::{Failure, WorkSite, WorkloadError, unprivileged};

/// Where the application listens in the guest.
const PORT: u16 = 7117;
/// Longest that starting may take beyond the site's timeout: an emulated guest takes a minute and more, and each of many that
/// start on a host that merges their memory waits for the others.
const STARTING: Duration = Duration::from_secs(600);
/// Longest that the guest's system may take to write its memory, likewise.
const HOLDING: Duration = Duration::from_secs(600);
/// The application may work for as long as its agent lives: a week is longer.
const LIFETIME: Duration = Duration::from_secs(7 * 86_400);
/// Of the application's output so much is kept, from its end.
const OUTPUT_BYTES: u64 = 64 << 10;
/// First and longest pause between two looks at whether it listens.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// How long an application whose connection broke is looked at, for it to be seen to end.
const ENDING: Duration = Duration::from_secs(2);
/// First seed of the application's data.
const SEED: u64 = 1;

/// An application at work in a guest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Started {
    /// Number of the command, for the guest's agent.
    pub command: u64,
    /// Where the driver finds it.
    pub address: SocketAddr,
    /// What there is to tell.
    pub facts: BTreeMap<String, String>,
}

/// The command that starts the application.
pub(super) fn command(
    parameters: &Parameters,
    groups: u32,
    index: u32,
    inside: &Inside,
    listen: IpAddr,
) -> Vec<String> {
    let heap_kib = parameters.heap.0 / 1024;
    let mut argv = vec![inside.program.clone(), format!("-Xmx{heap_kib}k")];
    if parameters.pre_touch {
        argv.extend([format!("-Xms{heap_kib}k"), "-XX:+AlwaysPreTouch".to_owned()]);
    }
    argv.extend(parameters.collector.option().map(str::to_owned));
    let switches = [
        (parameters.string_deduplication, "-XX:+UseStringDeduplication"),
        (parameters.huge_pages, "-XX:+UseTransparentHugePages"),
        (parameters.class_data_sharing, "-Xshare:auto"),
        (!parameters.class_data_sharing, "-Xshare:off"),
        // What cannot go on is to end, so that it is seen; and nothing is to be left in the /tmp of guests that share one.
        (true, "-XX:+ExitOnOutOfMemoryError"),
        (true, "-XX:-UsePerfData"),
    ];
    argv.extend(switches.into_iter().filter(|(on, _)| *on).map(|(_, option)| option.to_owned()));
    argv.extend(parameters.options.iter().cloned());
    let seed = match parameters.data {
        Data::Distinct => SEED + u64::from(index),
        Data::Same => SEED,
    };
    let words = ["-jar", &inside.jar, "serve", "--groups", &groups.to_string()];
    argv.extend(words.map(str::to_owned));
    let listen = SocketAddr::new(listen, PORT).to_string();
    argv.extend(["--listen".to_owned(), listen, "--seed".to_owned(), seed.to_string()]);
    argv
}

/// How it is started as far as that is the same in every guest, so that dozens of guests do not each tell it.
fn in_every_guest(line: &str) -> String {
    line.split(" --listen ").next().unwrap_or(line).to_owned()
}

/// Has the guest's system touch its memory, if it does, and starts the application; returns when it listens.
///
/// # Errors
/// When the guest has no such application, memory cannot be held, or the application does not come to listen.
pub(super) fn start(
    site: &WorkSite<'_>,
    parameters: &Parameters,
    groups: u32,
    bundle: &Bundle,
) -> Result<Started, WorkloadError> {
    let inside = inside(site, parameters, bundle)?;
    if parameters.string_deduplication {
        can_deduplicate(site, parameters, &inside, bundle)?;
    }
    let mut facts = BTreeMap::new();
    if let Some(data) = site.data {
        facts.insert("application on".to_owned(), data.storage.clone());
    }
    if parameters.memory.is_touched() {
        let bytes = hold(site, parameters)?;
        facts.insert("memory touched by the guest's system".to_owned(), format!("{:.0} MiB", mib(bytes)));
    }
    let argv = command(parameters, groups, site.index, &inside, site.guest_listen);
    let line = argv.join(" ");
    let began = Instant::now();
    let user = unprivileged::user(site)?;
    let command = match site.ask_guest(Request::Start(ExecSpec { user, ..exec(argv, LIFETIME) }))? {
        Reply::Started { command, .. } => command,
        _ => return Err(WorkSite::unexpected("guest", "start a command")),
    };
    let live = listening(site, command, &line)?;
    facts.insert("application started in".to_owned(), format!("{:.2} s", began.elapsed().as_secs_f64()));
    facts.insert("application started as".to_owned(), in_every_guest(&line));
    let runs_as = if user.is_some() { "nobody" } else { "the guest's agent does" };
    facts.insert("application runs as".to_owned(), runs_as.to_owned());
    if let Some(bytes) = live {
        facts.insert("live heap at start".to_owned(), format!("{:.0} MiB of {groups} data groups", mib(bytes)));
    }
    if parameters.memory.is_touched() {
        let left = held(site)?;
        facts.insert("memory held by the guest's system at first".to_owned(), format!("{:.2} GiB", mib(left) / 1024.0));
    }
    Ok(Started { command, address: SocketAddr::new(site.guest_address, PORT), facts })
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn exec(argv: Vec<String>, longest: Duration) -> ExecSpec {
    ExecSpec {
        argv,
        // Options from the guest's environment would come on top of those that all arms have.
        env: ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"]
            .map(|name| (name.to_owned(), String::new()))
            .into(),
        directory: Some("/".to_owned()),
        user: None,
        timeout_ns: u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX),
        output_limit_bytes: OUTPUT_BYTES,
    }
}

/// Sees that the guest's Java can have equal strings share their characters.
fn can_deduplicate(
    site: &WorkSite<'_>,
    parameters: &Parameters,
    inside: &Inside,
    bundle: &Bundle,
) -> Result<(), WorkloadError> {
    let major = match &parameters.java {
        None => Some(bundle.major),
        Some(program) => {
            let user = unprivileged::user(site)?;
            let asked = ExecSpec { user, ..exec(vec![program.clone(), "-version".to_owned()], STARTING) };
            match longer(site, STARTING).ask_guest(Request::Exec(asked))? {
                Reply::Executed(ran) => major_of(&ran.stderr).or_else(|| major_of(&ran.stdout)),
                _ => return Err(WorkSite::unexpected("guest", "run a command")),
            }
        }
    };
    let tried = || format!("start the Java application with {}", inside.program);
    let Some(major) = major else {
        let why = "it does not tell its version";
        return Err(Failure::new(tried(), why, "name a `java` program that the guest has").into());
    };
    let refused = |refusal: Refusal| Err(Failure::new(tried(), refusal.reason, refusal.remedy).into());
    unable(parameters, major).map_or(Ok(()), refused)
}

/// A site whose agents may take that much longer.
pub(super) fn longer<'a>(site: &WorkSite<'a>, more: Duration) -> WorkSite<'a> {
    WorkSite { timeout: site.timeout + more, ..*site }
}

/// Has memory held beside the application, as a guest's system that has written to all of it; bytes.
fn hold(site: &WorkSite<'_>, parameters: &Parameters) -> Result<u64, WorkloadError> {
    let spec = HoldSpec {
        promised_bytes: site.size.memory.0,
        room_bytes: parameters.room.0,
        fill: parameters.memory,
        seed: SEED + u64::from(site.index),
    };
    match longer(site, HOLDING).ask_guest(Request::Hold(spec))? {
        Reply::Holding { first_bytes, .. } => Ok(first_bytes),
        _ => Err(WorkSite::unexpected("guest", "hold memory")),
    }
}

/// How much of it is still held, bytes.
pub(super) fn held(site: &WorkSite<'_>) -> Result<u64, WorkloadError> {
    match site.ask_guest(Request::Held)? {
        Reply::Holding { bytes, .. } => Ok(bytes),
        _ => Err(WorkSite::unexpected("guest", "tell the memory that it holds")),
    }
}

/// Waits until the application listens; its live heap, bytes, as it tells it.
fn listening(site: &WorkSite<'_>, command: u64, line: &str) -> Result<Option<u64>, WorkloadError> {
    let longest = site.timeout + STARTING;
    let deadline = Instant::now() + longest;
    let mut pause = PAUSE.0;
    loop {
        let seen = look(site, command)?;
        if let Some(ended) = &seen.ended {
            return Err(not_started(&seen, ended, line).into());
        }
        if let Some(live) = readiness(&seen.stdout) {
            return Ok(live);
        }
        if Instant::now() > deadline {
            // It is in the way of nothing but its guest, which is thrown away; ending it is a courtesy.
            let _ = site.ask_guest(Request::End { command });
            let why = format!("it did not listen within {} s{}", longest.as_secs(), said(&seen));
            let remedy = "the guest may be short of CPU or memory: offer fewer guests, or give them more";
            return Err(Failure::new(format!("start the Java application (`{line}`)"), why, remedy).into());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// What the application says when it is ready: `None` while it has not said so, then its live heap if the line contains it.
fn readiness(stdout: &[u8]) -> Option<Option<u64>> {
    let text = String::from_utf8_lossy(stdout);
    // A line that is not ended may go on.
    let ended = text.rfind('\n').map_or("", |end| &text[..end]);
    let line = ended.lines().find(|line| line.starts_with("listening "))?;
    Some(line.split_whitespace().find_map(|word| word.strip_prefix("live_heap_bytes=")?.parse().ok()))
}

/// An application that ended before it listened.
fn not_started(seen: &Look, ended: &ExecResult, line: &str) -> Failure {
    let for_memory = wants_memory(seen, ended);
    let remedy = if for_memory {
        "the guest's memory did not suffice: give it more, or the application a smaller `heap`"
    } else {
        "see what it says: it may need another option in the study, or more memory in the guest"
    };
    let why = format!("{}{}", how(ended), said(seen));
    Failure::new(format!("start the Java application (`{line}`)"), why, remedy).lost(for_memory)
}

/// Whether it ended for want of memory: killed, or refused by its kernel.
fn wants_memory(seen: &Look, ended: &ExecResult) -> bool {
    let text = [&seen.stdout, &seen.stderr, &ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    ended.signal == Some(9) || text.iter().any(|text| text.contains("insufficient memory"))
}

/// Why load could not go on, if the application is no more; `None`: it is there.
pub(super) fn gone(seen: &Look) -> Option<Failure> {
    let ended = seen.ended.as_ref()?;
    let why = format!("{}{}", how(ended), said(seen));
    let remedy = if wants_memory(seen, ended) {
        "the guest's memory did not suffice: run fewer guests, or give them more"
    } else {
        "see what it says; a heap that is too small ends it with OutOfMemoryError"
    };
    Some(Failure::new("go on with the Java application in the guest", why, remedy).lost(true))
}

/// The error of a driver that lost its application, with what became of that where it is no more.
pub(super) fn explained(site: &WorkSite<'_>, command: u64, error: WorkloadError) -> WorkloadError {
    let deadline = Instant::now() + ENDING;
    loop {
        match look(site, command) {
            Ok(seen) => match gone(&seen) {
                Some(gone) => return gone.into(),
                None if Instant::now() > deadline => return error,
                None => std::thread::sleep(PAUSE.0),
            },
            Err(lost) if lost.guest_lost() => return lost,
            Err(_) => return error,
        }
    }
}

#[cfg(test)]
mod tests;
