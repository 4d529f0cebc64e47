//! Instances of the application as they are started in a guest: all at once, each with a port, a database and files of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tare_model::deviation::Deviation;
use tare_model::trial::Flag;
use tare_wire::Request;

use super::BUNDLE;
use super::deviations::deviations;
use super::gold::SOCIAL;
use super::memory::{Pages, of_instance, pages};
use super::parameters::Parameters;
use super::services::{Beside, database};
use crate::application::{
    PAUSE, absent, explained, has, look, not_ready, not_started, says_ready, script, start, until_served,
};
use crate::bundle::{JARS, PROGRAM};
use crate::{WorkSite, WorkloadError, unprivileged};

/// The first instance listens on the port after it.
const PORT: u16 = 8080;
/// Longest that starting may take beyond the site's timeout, for each instance: an emulated guest takes minutes.
const STARTING: Duration = Duration::from_secs(300);
/// In the data's directory of what is beside the guest, where the guest sees it: what instances keep for as long as they live.
const FOLDER: &str = "instances";
/// What helps where a guest's memory did not suffice for them.
const LESS_MEMORY: &str = "write a smaller `java.heap`, or ask for fewer `instances`";
/// The class of the application.
const MAIN: &str = "tare.social.Main";

/// One instance of the application.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    /// Which, from 1.
    pub number: u32,
    /// What it is called in messages.
    pub name: String,
    /// Number of the command, for the guest's agent.
    pub command: u64,
    /// Where the client finds it.
    pub address: SocketAddr,
    /// From the start of its program until it said that it is ready, seconds.
    pub ready_s: f64,
}

/// Instances at work, ready for load.
#[derive(Debug, Default)]
pub(super) struct Started {
    /// In order.
    pub instances: Vec<Instance>,
    /// Whether their heaps lie in large pages.
    pub large_pages: bool,
    /// What there is to tell.
    pub facts: BTreeMap<String, String>,
    /// What a reader must know.
    pub flags: Vec<Flag>,
    /// What differs from the published original.
    pub deviations: Vec<Deviation>,
}

/// What decides how instances are started.
struct Command<'a> {
    parameters: &'a Parameters,
    /// Directory of the application in the guest.
    place: &'a str,
    /// Heap, bytes.
    heap: u64,
    pages: Pages,
    listen: IpAddr,
    beside: &'a Beside,
    /// Where instances keep what goes with them; `None`: in the guest's own place for that.
    folder: Option<String>,
    /// As whom they run; `None`: as the agent.
    user: Option<(u32, u32)>,
}

impl Command<'_> {
    /// The command that starts an instance.
    fn argv(&self, instance: u32, port: u16) -> Vec<String> {
        let Self { parameters, place, heap, .. } = self;
        let (java, kib) = (&parameters.java, heap / 1024);
        let mut argv = vec![format!("{place}/{PROGRAM}"), format!("-Xms{kib}k"), format!("-Xmx{kib}k")];
        argv.push(format!("-Xss{}k", java.stack.0 >> 10));
        argv.extend(java.collector.option().map(str::to_owned));
        argv.extend(self.pages.large.then(|| "-XX:+UseLargePages".to_owned()));
        // What cannot go on is to end, so that it is seen; and nothing is to be left in the /tmp of guests that share one.
        argv.extend(["-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData"].map(str::to_owned));
        argv.extend(self.folder.iter().map(|folder| format!("-Djava.io.tmpdir={folder}")));
        argv.extend(java.flags.iter().cloned());
        argv.extend(["-cp".to_owned(), format!("{place}/{JARS}/*"), MAIN.to_owned()]);
        let seconds = |ns: u64| (ns / 1_000_000_000).to_string();
        let words = [
            ("--listen", self.listen.to_string()),
            ("--port", port.to_string()),
            ("--instance", instance.to_string()),
            ("--database", format!("{}/{}", self.beside.database, database(instance))),
            ("--user", SOCIAL.to_owned()),
            ("--files", self.beside.files.to_string()),
            ("--pool", parameters.pool.to_string()),
            ("--threads", parameters.threads.to_string()),
            ("--home-ttl", seconds(parameters.home_ttl.ns)),
            ("--object-ttl", seconds(parameters.object_ttl.ns)),
        ];
        argv.extend(words.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
        argv
    }
}

/// Starts all instances at once and waits until each serves. `here` is where this host has the application.
///
/// # Errors
/// When the guest has no such application, or one instance does not come to serve. All are ended then.
pub(super) fn started(
    site: &WorkSite<'_>,
    parameters: &Parameters,
    here: &str,
    beside: &Beside,
) -> Result<Started, WorkloadError> {
    let place = site.data.map_or(here, |data| data.path.as_str());
    let program = format!("{place}/{PROGRAM}");
    if let Err(why) = has(site, &program)? {
        return Err(absent(BUNDLE.noun, site.data.is_some(), &BUNDLE.remedy(), &program, &why).into());
    }
    let heap = parameters.heap_bytes(site.size.cpus);
    let pages = pages(site, parameters)?;
    let user = unprivileged::user(site)?;
    let folder = folder(site, beside, user)?;
    let command = Command { parameters, place, heap, pages, listen: site.guest_listen, beside, folder, user };
    let mut started = Started::default();
    match all(site, &command, &mut started) {
        Ok(()) => {
            tell(site, &command, &mut started);
            Ok(started)
        }
        Err(error) => {
            started.end(site);
            Err(error)
        }
    }
}

/// Where instances keep their static files and what is uploaded while it is on its way. A guest that sees the host's files would leave them in
/// the host's `/tmp` if it were killed: there they are beside the database, which goes with the run whatever happens. Any other guest's
/// own `/tmp` goes with it.
fn folder(site: &WorkSite<'_>, beside: &Beside, user: Option<(u32, u32)>) -> Result<Option<String>, WorkloadError> {
    let make = r#"if test -d "$1" && mkdir -p "$2" 2>/dev/null; then test -z "$3" || chown "$3" "$2" && echo made; fi"#;
    let folder = format!("{}/{FOLDER}", beside.place);
    let words = [beside.place.as_str(), &folder, &unprivileged::owner(user)];
    let made = script(site, "make a directory for the social application", make, &words)?;
    Ok((made == "made").then_some(folder))
}

fn all(site: &WorkSite<'_>, of: &Command<'_>, started: &mut Started) -> Result<(), WorkloadError> {
    let mut waiting = Vec::new();
    for (number, port) in (1..=site.instances).zip(PORT + 1..) {
        let argv = of.argv(number, port);
        let line = argv.join(" ");
        let began = Instant::now();
        let command = start(site, argv, of.user)?;
        let address = SocketAddr::new(site.guest_address, port);
        let name = format!("instance {number}");
        started.instances.push(Instance { number, name, command, address, ready_s: 0.0 });
        waiting.push((line, began));
    }
    ready(site, &waiting, &mut started.instances)?;
    started.instances.iter().try_for_each(|instance| serves(site, instance))
}

/// Waits until every instance has written that it is ready.
fn ready(site: &WorkSite<'_>, waiting: &[(String, Instant)], instances: &mut [Instance]) -> Result<(), WorkloadError> {
    let longest = site.timeout + STARTING.saturating_mul(site.instances);
    let deadline = Instant::now() + longest;
    let mut pause = PAUSE.0;
    loop {
        let mut left = None;
        for (instance, (line, began)) in instances.iter_mut().zip(waiting) {
            if instance.ready_s > 0.0 {
                continue;
            }
            let seen = look(site, instance.command)?;
            let tried = format!("start {} of the social application (`{line}`)", instance.name);
            if let Some(failure) = not_started(&seen, &tried, LESS_MEMORY) {
                return Err(failure.into());
            }
            if says_ready(&seen.stdout).is_some() {
                instance.ready_s = began.elapsed().as_secs_f64();
            } else {
                left = Some((tried, seen));
            }
        }
        let Some((tried, seen)) = left else { return Ok(()) };
        if Instant::now() > deadline {
            return Err(not_ready(&seen, &tried, longest).into());
        }
        std::thread::sleep(pause);
        // Each is timed by these looks.
        pause = (pause * 2).min(PAUSE.1 / 5);
    }
}

/// Waits until an instance answers where load comes from.
fn serves(site: &WorkSite<'_>, instance: &Instance) -> Result<(), WorkloadError> {
    let Instance { name, address, command, .. } = instance;
    let tried = format!("reach {name} of the social application at {address}");
    let remedy = "the guest may be short of CPU or memory, or its address may not be reached";
    until_served(site, *address, &[(name, *command)], &tried, remedy)
}

/// What there is to tell of how they were started.
fn tell(site: &WorkSite<'_>, of: &Command<'_>, started: &mut Started) {
    let seconds: Vec<String> = started.instances.iter().map(|instance| format!("{:.2} s", instance.ready_s)).collect();
    // Ports and numbers differ from instance to instance.
    let line = of.argv(1, PORT + 1).join(" ");
    let shown = line.split(" --listen ").next().unwrap_or(&line).to_owned();
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let mut facts = vec![
        ("instances", site.instances.to_string()),
        ("instances run as", if of.user.is_some() { "nobody" } else { "the guest's agent does" }.to_owned()),
        ("instances ready after", seconds.join(", ")),
        ("instances started as", shown),
        ("heap of an instance", mib(of.heap)),
        ("memory reckoned for an instance", mib(of_instance(of.parameters, site.size.cpus))),
    ];
    facts.push(("large pages", of.pages.why.clone()));
    started.deviations = deviations(of.parameters, of.heap, &of.pages);
    started.large_pages = of.pages.large;
    if let Some(data) = site.data {
        facts.push(("application on", data.storage.clone()));
    }
    started.facts.extend(facts.into_iter().map(|(name, value)| (name.to_owned(), value)));
}

impl Started {
    /// Ends all instances: what cannot be ended goes with its guest.
    pub fn end(&self, site: &WorkSite<'_>) {
        for instance in &self.instances {
            let _ = site.ask_guest(Request::End { command: instance.command });
        }
    }

    /// The error of a driver, with what became of the instances where one is no more.
    pub fn explained(&self, site: &WorkSite<'_>, error: WorkloadError) -> WorkloadError {
        let servers: Vec<(&str, u64)> =
            self.instances.iter().map(|instance| (instance.name.as_str(), instance.command)).collect();
        explained(site, &servers, error)
    }
}
