//! The application as it is started in a guest, after the guest's system has touched its memory.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tare_model::hold::HoldSpec;
use tare_wire::{Reply, Request};

use super::bundle::{Inside, inside, unable};
use super::parameters::{Data, Parameters};
use crate::application::{self, until_ready};
use crate::bundle::{Bundle, major};
use crate::{Failure, WorkSite, WorkloadError, unprivileged};

/// Where the application listens in the guest.
const PORT: u16 = 7117;
/// Longest that starting may take beyond the site's timeout: an emulated guest takes a minute and more, and each of many that
/// start on a host that merges their memory waits for the others.
const STARTING: Duration = Duration::from_secs(600);
/// Longest that the guest's system may take to write its memory, likewise.
const HOLDING: Duration = Duration::from_secs(600);
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
    let command = application::start(site, argv, user)?;
    let tried = format!("start the Java application (`{line}`)");
    let live = until_ready(site, command, STARTING, (&tried, "the application a smaller `heap`"), readiness)?;
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
            let asked = application::spec(vec![program.clone(), "-version".to_owned()], user, STARTING);
            match longer(site, STARTING).ask_guest(Request::Exec(asked))? {
                Reply::Executed(ran) => {
                    [&ran.stderr, &ran.stdout].into_iter().find_map(|said| major(&String::from_utf8_lossy(said)))
                }
                _ => return Err(WorkSite::unexpected("guest", "run a command")),
            }
        }
    };
    let tried = || format!("start the Java application with {}", inside.program);
    let Some(major) = major else {
        let why = "it does not tell its version";
        return Err(Failure::new(tried(), why, "name a `java` program that the guest has").into());
    };
    let refused = |refusal| Err(Failure::refused(tried(), refusal).into());
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

/// What the application says when it is ready: `None` while it has not said so, then its live heap if the line contains it.
fn readiness(stdout: &[u8]) -> Option<Option<u64>> {
    let text = String::from_utf8_lossy(stdout);
    // A line that is not ended may go on.
    let ended = text.rfind('\n').map_or("", |end| &text[..end]);
    let line = ended.lines().find(|line| line.starts_with("listening "))?;
    Some(line.split_whitespace().find_map(|word| word.strip_prefix("live_heap_bytes=")?.parse().ok()))
}

#[cfg(test)]
mod tests;
