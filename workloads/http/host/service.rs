//! The user's service in a guest: started, and seen to answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tare_model::field::FieldError;
use tare_model::secret::SecretSource;
use tare_wire::{ExecSpec, Request as Wire, WireError};

use super::parameters::{Connections, Parameters, scheme};
use super::request::Request;
use super::spec::{Asked, HttpAsk, Reached};
use crate::application::{self, PAUSE, explained, look, not_started, server, started};
use crate::limits::Allowed;
use crate::url::Url;
use crate::{Failure, WorkSite, WorkloadError, secret, unprivileged};

/// What it is called in messages.
const NAME: &str = "the service";
/// Longest that one look at whether it is ready may take.
const ASKING: Duration = Duration::from_secs(5);

/// A service that answers.
#[derive(Debug)]
pub(super) struct Service {
    /// Its number, for the guest's agent; `None`: it was there.
    command: Option<u64>,
    /// Where drivers connect.
    pub address: SocketAddr,
    /// How they speak to it.
    pub reached: Reached,
    /// What they ask for.
    pub requests: Vec<Asked>,
    /// What there is to tell.
    pub facts: BTreeMap<String, String>,
}

impl Service {
    /// Starts it, or finds it where it is, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start, ends, or is not ready in time; it is ended then.
    pub fn started(site: &WorkSite<'_>, parameters: &Parameters) -> Result<Self, WorkloadError> {
        let drivers = u32::try_from(site.drivers.len()).unwrap_or(u32::MAX).max(1);
        let connections = site.load.connections().saturating_mul(drivers);
        Allowed::of(site.guest, site.timeout).refuse_server(connections.into(), connections)?;
        let (address, host) = place(site, parameters)?;
        let secure = parameters.tls || parameters.url.as_deref().is_some_and(|url| scheme(url) == "https");
        let named = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        let reached = Reached { tls: secure.then(|| named.to_owned()), timeout_ns: parameters.timeout.ns };
        let closes = parameters.connections == Connections::New;
        let requests = parameters.requests.iter().map(|request| request.0.asked(&host, closes));
        let requests = requests.collect::<Result<Vec<_>, _>>().map_err(|error| secret_failed(&error))?;
        let ready = parameters.ready.as_deref().map(|path| Request::of_path(path).asked(&host, true)).transpose();
        let ready = ready.map_err(|error| secret_failed(&error))?.unwrap_or_else(|| requests[0].clone());
        let mut service = Self { command: None, address, reached, requests, facts: BTreeMap::new() };
        if secure {
            service.fact("certificate", "any that the service shows is taken");
        }
        match &parameters.url {
            Some(url) => service.fact("service", &format!("one that was there, {url}")),
            None => service.start(site, parameters)?,
        }
        service.ready(site, parameters, ready).inspect_err(|_| {
            // Why it failed is what matters; the guest is thrown away.
            let _ = service.end(site);
        })?;
        Ok(service)
    }

    fn fact(&mut self, name: &str, value: &str) {
        self.facts.insert(name.to_owned(), value.to_owned());
    }

    /// Starts the command as nobody.
    fn start(&mut self, site: &WorkSite<'_>, parameters: &Parameters) -> Result<(), WorkloadError> {
        let user = unprivileged::user(site)?;
        let line = parameters.command.join(" ");
        let spec = spec(site, parameters, user)?;
        self.command = Some(started(site, spec).map_err(|error| match error {
            WorkloadError::Agent { side: "guest", source: WireError::Refused { reason, .. } } => {
                let remedy = "name a program and a directory that the guest has and that the user nobody may use";
                Failure::new(format!("start the service (`{line}`)"), reason, remedy).into()
            }
            other => other,
        })?);
        self.fact("service started as", &line);
        self.fact("service runs as", if user.is_some() { "nobody" } else { "the guest's agent does" });
        Ok(())
    }

    /// Asks, again and again, until it answers as it must.
    fn ready(&mut self, site: &WorkSite<'_>, parameters: &Parameters, request: Asked) -> Result<(), WorkloadError> {
        let (began, longest, mut pause) = (Instant::now(), parameters.ready_within, PAUSE.0);
        let tried = format!("see that the service answers {} at {}", request.name, self.address);
        let timeout = ASKING.min(longest.duration());
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let reached = Reached { timeout_ns, ..self.reached.clone() };
        let ask = HttpAsk { server: self.address, reached, request };
        loop {
            let answered = site.client.perform(&ask, timeout * 3 + site.timeout);
            let Err(why) = answered.map_err(|source| WorkloadError::Agent { side: "client", source })? else { break };
            let mut said = String::new();
            if let Some(command) = self.command {
                let seen = look(site, command)?;
                if let Some(failure) = not_started(&seen, &tried, "the service less to do") {
                    return Err(failure.into());
                }
                said = application::said(&seen);
            }
            if began.elapsed() > longest.duration() {
                let why = format!(
                    "it was not ready within {longest}: {why}{}",
                    said.replacen(" and said", "; the service says", 1)
                );
                let remedy = "check its address and port ({address} and {port} in `command`), `ready` and what the first of `requests` expects, or raise `ready-within`";
                return Err(Failure::new(tried, why, remedy).into());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE.1);
        }
        self.fact("service ready after", &format!("{:.2} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// An error, with what became of the service where it is no more.
    pub fn explained(&self, site: &WorkSite<'_>, error: WorkloadError) -> WorkloadError {
        let Some(command) = self.command else { return error };
        match look(site, command) {
            Ok(seen) if seen.ended.is_some() => explained(site, &[(NAME, command)], error),
            _ => error,
        }
    }

    /// Sees that it is still there; the most memory that it had, bytes.
    ///
    /// # Errors
    /// How it ended.
    pub fn there(&self, site: &WorkSite<'_>) -> Result<Option<u64>, WorkloadError> {
        let Some(command) = self.command else { return Ok(None) };
        let seen = look(site, command)?;
        application::gone(NAME, &seen).map_or(Ok(seen.resident_peak_bytes), |gone| Err(gone.into()))
    }

    /// Ends what was started.
    ///
    /// # Errors
    /// When the agent cannot.
    pub fn end(&self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        self.command.map_or(Ok(()), |command| site.ask_guest(Wire::End { command }).map(drop))
    }
}

/// Where the service is, and the name that it is asked for by.
fn place(site: &WorkSite<'_>, parameters: &Parameters) -> Result<(SocketAddr, String), Failure> {
    let Some(url) = &parameters.url else {
        let address = SocketAddr::new(site.guest_address, parameters.port());
        return Ok((address, address.to_string()));
    };
    let read = Url::read(url, scheme(url))
        .map_err(|error| Failure::new("use the service", error.to_string(), error.help.unwrap_or_default()))?;
    Ok((read.address(site.guest_address)?, read.authority(site.guest_address)))
}

/// A secret was there when the study was checked, and is not now.
fn secret_failed(error: &FieldError) -> Failure {
    let remedy = "leave it there until the run has ended";
    Failure::new(
        "read a secret of the study",
        error.to_string(),
        error.help.clone().unwrap_or_else(|| remedy.to_owned()),
    )
}

/// What the guest's agent is asked to start.
fn spec(site: &WorkSite<'_>, parameters: &Parameters, user: Option<(u32, u32)>) -> Result<ExecSpec, WorkloadError> {
    let listen = (site.guest_listen.to_string(), parameters.port().to_string());
    let placed = |text: &str| text.replace("{address}", &listen.0).replace("{port}", &listen.1);
    let own = parameters.env.iter().map(|(name, source)| {
        let value = match source {
            SecretSource::Given(text) => placed(text),
            _ => secret::resolve(source).map_err(|error| error.within(&["env", name]))?.reveal().to_owned(),
        };
        Ok((name.clone(), value))
    });
    let own = own.collect::<Result<Vec<_>, FieldError>>().map_err(|error| secret_failed(&error))?;
    // What the study says comes after what the guest's image says, and so holds.
    let (image, at) = site.commands.map(|image| (image.env.clone(), image.directory.clone())).unwrap_or_default();
    let argv = parameters.command.iter().map(|word| placed(word)).collect();
    let root = server(argv, user);
    let directory = parameters.directory.clone().or(at).or_else(|| root.directory.clone());
    Ok(ExecSpec { env: [image, own].concat(), directory, ..root })
}
