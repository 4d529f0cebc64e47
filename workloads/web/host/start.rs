//! Servers as they are started in a guest, and the backend on the driver's side.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::bundle::{JARS, PROGRAM};
use crate::web::spec::{BackendSpec, TlsSpec};
use tare_model::packed::Packed;
use tare_model::trial::Flag;
use tare_wire::{Reply, Request, ServeReport};

use super::certificate;
use super::nginx;
use super::parameters::{Parameters, Server};
use super::users::{Stay, busy_heap};
use crate::application::{
    absent, explained, fetch, has, put, says_ready, script, script_as, start, until_ready, until_served,
};
use crate::gold::shown;
use crate::limits::Allowed;
use crate::site::stop_server;
use crate::url::Url;
use crate::{Failure, WorkSite, WorkloadError, unprivileged};

/// Where servers listen, plain and with TLS.
const PORTS: (u16, u16) = (8080, 8443);
/// Where Tomcat listens behind an nginx, on the guest's loopback.
const INNER_PORT: u16 = 8081;
/// How long a connection may be idle, seconds: users think for 150 s at most, by a clock that in turns runs a twelfth of the time or more.
pub(super) const KEEP_ALIVE_S: u32 = 3600;
/// Sessions that a server keeps for TLS to be resumed, as published.
pub(super) const TLS_SESSIONS: u32 = 37_917;
/// For how long, seconds, as published.
pub(super) const TLS_SESSION_S: u32 = 900;
/// Least connections that a server is made for: clients that leave are seen to be gone a little later.
const CONNECTIONS_LEAST: u32 = 8192;
/// Longest that starting may take beyond the site's timeout: an emulated guest takes minutes.
const STARTING: Duration = Duration::from_secs(600);
/// The class of the server.
const MAIN: &str = "tare.web.Main";
/// Names in messages.
const TOMCAT: &str = "the web server";
const NGINX: &str = "nginx";

/// What a site asks of its server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    /// Whether anything is asked for over TLS.
    pub tls: bool,
    /// Most sessions at one time.
    pub sessions: u32,
    /// Sessions that are offered now.
    pub offered: u32,
    /// How long they stay.
    pub stay: Stay,
}

/// Servers at work, ready for load.
#[derive(Debug)]
pub(super) struct Started {
    /// Servers in the guest, the one that clients meet first.
    pub commands: Vec<(&'static str, u64)>,
    /// Number of the backend, for its agent.
    pub backend: u64,
    /// Where drivers connect: plain, and with TLS.
    pub targets: Vec<SocketAddr>,
    /// What is known of the server's TLS.
    pub tls: Option<TlsSpec>,
    /// Known to backend and driver.
    pub salt: u64,
    /// Where in the guest the key lies, while the servers have not read it.
    folder: Option<String>,
    /// What there is to tell.
    pub facts: BTreeMap<String, String>,
    /// What a reader must know.
    pub flags: Vec<Flag>,
}

impl Started {
    /// Ends what was started in the guest and takes the key away.
    pub fn end(&self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        let mut ended = Ok(());
        for (_, command) in &self.commands {
            ended = ended.and(site.ask_guest(Request::End { command: *command }).map(drop));
        }
        match &self.folder {
            Some(folder) => ended.and(take_away(site, folder)),
            None => ended,
        }
    }

    /// The error of a driver, with what became of the servers where one is no more.
    pub fn explained(&self, site: &WorkSite<'_>, error: WorkloadError) -> WorkloadError {
        explained(site, &self.commands, error)
    }

    /// Stops the backend; what it saw.
    pub fn stop_backend(&self, site: &WorkSite<'_>) -> Result<ServeReport, WorkloadError> {
        stop_server(site.backend.link, "backend", self.backend, site.timeout)
    }

    /// Ends everything after an error, which is what matters: what cannot be ended goes with its guest or its agent.
    pub fn abandoned(&self, site: &WorkSite<'_>, error: WorkloadError) -> WorkloadError {
        let _ = self.end(site);
        let _ = self.stop_backend(site);
        error
    }

    fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.facts.insert(name.to_owned(), value.into());
    }
}

/// Random bits from the kernel.
fn random() -> Result<u64, Failure> {
    use std::io::Read;
    let path = std::path::Path::new("/dev/urandom");
    let mut bytes = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut from| from.read_exact(&mut bytes));
    read.map_err(crate::failure::file("read", path))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Starts the backend on the driver's side, or on the host that the study names for it; its number and address.
fn backend(site: &WorkSite<'_>, parameters: &Parameters, salt: u64) -> Result<(u64, SocketAddr), WorkloadError> {
    let (Some(at), Some(bind)) = (site.backend.address, site.backend.listen) else {
        let why = "no address is known at which the guest finds it: load comes from this host's own network";
        let remedy = "have load come from this host's lab, or name a host with an `address` that guests reach for `drivers` or `services`";
        return Err(Failure::new("start the backend on the driver's side", why, remedy).into());
    };
    let task = Packed::of(&BackendSpec { salt, delay_ns: parameters.backend_delay.ns })?;
    match site.backend.link.call(Request::Serve { task, bind, from: None }, site.timeout) {
        Ok(Reply::Serving { server, address }) => Ok((server, SocketAddr::new(at, address.port()))),
        Ok(_) => Err(WorkSite::unexpected("backend", "start a server")),
        Err(source) => Err(WorkloadError::Agent { side: "backend", source }),
    }
}

/// Starts backend and servers; returns when a page was served. `here` is where this host has what guests are given.
///
/// # Errors
/// When the guest has no such server, or it does not come to serve.
pub(super) fn started(
    site: &WorkSite<'_>,
    parameters: &Parameters,
    needs: Needs,
    here: Option<&str>,
) -> Result<Started, WorkloadError> {
    let salt = random()?;
    let (backend, at) = backend(site, parameters, salt)?;
    let mut started = Started {
        commands: Vec::new(),
        backend,
        targets: Vec::new(),
        tls: None,
        salt,
        folder: None,
        facts: BTreeMap::new(),
        flags: Vec::new(),
    };
    started.fact("backend at", at.ip().to_string());
    let served = match &parameters.url {
        Some(url) => use_server(site, parameters, url, needs, at, &mut started),
        None => own_server(site, parameters, needs, here, at, &mut started),
    };
    match served {
        Ok(()) => Ok(started),
        Err(error) => Err(started.abandoned(site, error)),
    }
}

/// Has a server that exists use the backend, and sees that it is ready.
fn use_server(
    site: &WorkSite<'_>,
    parameters: &Parameters,
    url: &str,
    needs: Needs,
    backend: SocketAddr,
    started: &mut Started,
) -> Result<(), WorkloadError> {
    let read = |url: &str, scheme| {
        let read = Url::read(url, scheme)
            .map_err(|error| Failure::new("use the web server", error.to_string(), error.help.unwrap_or_default()));
        read?.address(site.guest_address)
    };
    let plain = read(url, "http")?;
    started.targets.push(plain);
    if let Some(tls) = parameters.tls_url.as_deref().filter(|_| needs.tls) {
        started.targets.push(read(tls, "https")?);
        started.tls = Some(TlsSpec { certificate_sha256: None });
    }
    started.fact("server", format!("one that exists, {url}"));
    let fetched = fetch(site.client, site.timeout, plain, &format!("/tare/backend?address={backend}"))?;
    match fetched {
        Ok((200, _)) => {}
        answer => {
            let why = answer.map_or_else(|why| why, |(status, _)| format!("it answered with status {status}"));
            let remedy =
                "it must take the backend's address by GET /tare/backend?address=ADDRESS:PORT (docs/reference/web.md)";
            let tried = format!("tell the server at {url} where the backend is");
            return Err(Failure::new(tried, why, remedy).into());
        }
    }
    ready(site, started, "it answers on this address and serves /tare/ready (docs/reference/web.md)")
}

/// Starts the servers that come with tare.
fn own_server(
    site: &WorkSite<'_>,
    parameters: &Parameters,
    needs: Needs,
    here: Option<&str>,
    backend: SocketAddr,
    started: &mut Started,
) -> Result<(), WorkloadError> {
    let given = site.data.map(|data| data.path.as_str());
    let Some(data) = given.or(here) else {
        let why = "its platform can hand no data to the guest";
        return Err(Failure::new("start the web server", why, "choose a platform that can, or use `url`").into());
    };
    let program = parameters.java.clone().unwrap_or_else(|| format!("{data}/{PROGRAM}"));
    for path in [&program, &format!("{data}/pages.tsv")] {
        if let Err(why) = has(site, path)? {
            let anew = "`tare image clear` removes what is kept, so that it is made anew";
            return Err(absent("web server", given.is_some(), anew, path, &why).into());
        }
    }
    if let Some(data) = site.data {
        started.fact("files on", data.storage.clone());
    }
    let tls = needs.tls && parameters.tls;
    let in_front = parameters.server == Server::Nginx;
    let make = r#"umask 077 && mktemp -d "${TMPDIR:-/tmp}/tare-web-XXXXXX""#;
    let folder = script(site, "make a directory for the server's key", make, &[])?;
    started.folder = Some(folder.clone());
    if tls {
        let made = certificate::made(site.guest_address)?;
        put(site, &format!("{folder}/certificate.pem"), &made.certificate)?;
        put(site, &format!("{folder}/key.pem"), &made.key)?;
        started.tls = Some(TlsSpec { certificate_sha256: Some(made.sha256) });
    }
    let listen = if in_front { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { site.guest_listen };
    let allowed = Allowed::of(site.guest, site.timeout);
    let user = unprivileged::user(site)?;
    let of = Command { program, data, folder: &folder, listen, in_front, tls, backend, needs, allowed, user };
    if in_front {
        put(site, &settings_of(of.folder), &of.settings(site, parameters))?;
    }
    // From here on nothing is written to it: its owner might have made links there.
    of.give_folder(site)?;
    allowed.refuse_server(of.files(parameters), needs.sessions)?;
    serve(site, parameters, &of, started)?;
    if in_front {
        front(site, parameters, &of, started)?;
    }
    started.targets.push(SocketAddr::new(site.guest_address, PORTS.0));
    started.targets.extend(tls.then(|| SocketAddr::new(site.guest_address, PORTS.1)));
    ready(site, started, "the guest may be short of CPU or memory, or its address may not be reached")?;
    // The servers have read what they need: the key is not to stay where a run that is killed would leave it.
    take_away(site, &folder)?;
    started.folder = None;
    Ok(())
}

/// Where nginx finds its settings.
fn settings_of(folder: &str) -> String {
    format!("{folder}/nginx.conf")
}

/// Removes the directory with the server's key and settings.
fn take_away(site: &WorkSite<'_>, folder: &str) -> Result<(), WorkloadError> {
    script(site, "take the server's key away", r#"rm -rf "$1""#, &[folder]).map(drop)
}

/// What decides how Tomcat is started.
struct Command<'a> {
    program: String,
    data: &'a str,
    folder: &'a str,
    listen: IpAddr,
    in_front: bool,
    tls: bool,
    backend: SocketAddr,
    needs: Needs,
    /// By the guest's kernel.
    allowed: Allowed,
    /// As whom the servers run; `None`: as the agent.
    user: Option<(u32, u32)>,
}

impl Command<'_> {
    /// Makes the servers' user the owner of the directory and of all that is in it.
    fn give_folder(&self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        let give = r#"test -z "$2" || chown -R "$2" "$1""#;
        script(site, "give the server its key", give, &[self.folder, &unprivileged::owner(self.user)]).map(drop)
    }

    /// The settings of an nginx before Tomcat.
    fn settings(&self, site: &WorkSite<'_>, parameters: &Parameters) -> String {
        let connections = self.connections(parameters);
        nginx::file(&nginx::Settings {
            folder: self.folder,
            as_root: self.user.is_none(),
            data: self.data,
            plain: SocketAddr::new(site.guest_listen, PORTS.0),
            tls: self.tls.then(|| SocketAddr::new(site.guest_listen, PORTS.1)),
            tomcat: SocketAddr::new(self.listen, INNER_PORT),
            workers: site.size.cpus.max(1),
            connections,
            files: self.allowed.files_up_to(u64::from(nginx::each(connections)) + 512),
        })
    }

    /// Files that the server has open for the connections of its users, at most.
    fn files(&self, parameters: &Parameters) -> u64 {
        // nginx has a connection to Tomcat, or a file, beside each of a user's.
        let each = if self.in_front { 2 } else { 1 };
        let users = u64::from(self.needs.sessions) * u64::from(parameters.connections);
        each * users + u64::from(parameters.backend_connections)
    }

    /// Heap that is busy when so many users are there, bytes.
    fn busy_heap(&self, parameters: &Parameters, users: u32) -> u64 {
        let connections = if self.in_front { 0 } else { parameters.connections };
        busy_heap(users, connections, self.needs.stay, self.tls)
    }

    /// Connections of clients that a server is made for.
    fn connections(&self, parameters: &Parameters) -> u32 {
        let all = self.needs.sessions.saturating_mul(parameters.connections.into());
        all.saturating_add(all / 4).clamp(CONNECTIONS_LEAST, 1_000_000)
    }

    /// The command that starts it.
    fn argv(&self, parameters: &Parameters, heap: u64) -> Vec<String> {
        let Self { data, folder, listen, backend, .. } = self;
        let mut argv = vec![self.program.clone(), format!("-Xmx{}k", heap / 1024)];
        // What cannot go on is to end, so that it is seen; and nothing is to be left in the /tmp of guests that share one.
        argv.extend(["-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData"].map(str::to_owned));
        argv.extend(parameters.options.iter().cloned());
        argv.extend(["-cp".to_owned(), format!("{data}/{JARS}/*"), MAIN.to_owned()]);
        let port = if self.in_front { INNER_PORT } else { PORTS.0 };
        let mut add = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        add("--data", (*data).to_owned());
        add("--listen", listen.to_string());
        add("--port", port.to_string());
        add("--backend", backend.to_string());
        add("--backend-connections", parameters.backend_connections.to_string());
        add("--session-timeout", parameters.session_timeout.ns.div_ceil(1_000_000_000).to_string());
        add("--connections", self.connections(parameters).to_string());
        add("--keep-alive", KEEP_ALIVE_S.to_string());
        if self.tls && !self.in_front {
            add("--tls-port", PORTS.1.to_string());
            add("--certificate", format!("{folder}/certificate.pem"));
            add("--key", format!("{folder}/key.pem"));
            add("--tls-sessions", TLS_SESSIONS.to_string());
            add("--tls-session-seconds", TLS_SESSION_S.to_string());
        }
        argv
    }
}

/// Starts Tomcat and waits until it says that it is ready.
fn serve(
    site: &WorkSite<'_>,
    parameters: &Parameters,
    of: &Command<'_>,
    started: &mut Started,
) -> Result<(), WorkloadError> {
    let heap = parameters.heap_in(&site.size, of.busy_heap(parameters, of.needs.sessions));
    let argv = of.argv(parameters, heap);
    let line = argv.join(" ");
    let began = Instant::now();
    let command = start(site, argv, of.user)?;
    started.commands.push((TOMCAT, command));
    let tried = format!("start the web server (`{line}`)");
    until_ready(site, command, STARTING, (&tried, "the server a smaller `heap`"), says_ready)?;
    started.fact("server started in", format!("{:.2} s", began.elapsed().as_secs_f64()));
    // Addresses, ports and temporary directories differ from guest to guest.
    let shown = line.split(" --listen ").next().unwrap_or(&line);
    started.fact("server started as", shown.to_owned());
    started.fact("server runs as", if of.user.is_some() { "nobody" } else { "the guest's agent does" });
    started.fact("server", if of.in_front { "Tomcat behind nginx" } else { "Tomcat" });
    started.fact("server's heap", format!("{} MiB", heap >> 20));
    started.flags.extend(small_heap(heap, of.busy_heap(parameters, of.needs.offered), of.needs.offered));
    Ok(())
}

/// Tells of a heap in which users leave too little room to collect: two thirds are for what stays.
fn small_heap(heap: u64, busy: u64, users: u32) -> Option<Flag> {
    (busy > heap / 3 * 2).then(|| Flag {
        kind: "server-heap".to_owned(),
        detail: format!(
            "{users} sessions keep about {} of the server's heap of {} busy: what is measured may be its collector. Ask for larger \
             guests, or write a larger `heap`",
            shown(busy),
            shown(heap)
        ),
    })
}

/// Starts nginx before Tomcat.
fn front(
    site: &WorkSite<'_>,
    parameters: &Parameters,
    of: &Command<'_>,
    started: &mut Started,
) -> Result<(), WorkloadError> {
    let program = &parameters.nginx;
    let tried = format!("ask {program} in the guest for its version");
    let said = script_as(site, of.user, &tried, r#""$1" -v 2>&1"#, &[program])?;
    started.fact("nginx", said.rsplit('/').next().unwrap_or(&said).to_owned());
    let argv = [program, "-p", of.folder, "-e", "stderr", "-c", &settings_of(of.folder)].map(|word| word.to_owned());
    let command = start(site, argv.to_vec(), of.user)?;
    // Clients meet it first.
    started.commands.insert(0, (NGINX, command));
    Ok(())
}

/// Waits until the plain address says that it is ready, asked from where load comes from.
fn ready(site: &WorkSite<'_>, started: &Started, remedy: &str) -> Result<(), WorkloadError> {
    let Some(&plain) = started.targets.first() else { return Err(WorkloadError::NotConnected) };
    until_served(site, plain, &started.commands, &format!("reach the web server at {plain}"), remedy)
}

#[cfg(test)]
mod tests;
