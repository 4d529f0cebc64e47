//! A guest in a domain that is there already.

use std::sync::Arc;
use std::time::Duration;

use tare_model::guest::{GuestSpec, ParityRow};

use super::NAME;
use super::connection::{open, with, within};
use super::emulator;
use super::error::LibvirtError;
use super::held::Held;
use super::machine::granted;
use super::options::{Existing, Options};
use super::sys::{Connection, Domain, Stream};
use super::uri::{CALL_LIMIT, Uri, remedy};
use super::xml::Node;
use crate::builder::{GuestBuilder, Particulars};
use crate::error::Result;
use crate::guest::Charges;
use crate::machine::counts;
use crate::{Charge, Guest, Site, parity};

/// `VIR_DOMAIN_SHUTOFF`, `VIR_DOMAIN_CRASHED`: it does not run.
const OFF: [i32; 2] = [5, 6];
/// `VIR_DOMAIN_RUNNING`.
const RUNNING: i32 = 1;

/// Starts the domain and greets the agent that is in its guest.
pub(super) fn start(options: &Options, there: &Existing, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
    let mut builder = GuestBuilder::new(site, spec);
    let connection = open(&options.uri).map_err(|error| {
        let remedy = remedy(&error, &options.uri);
        builder.failed("reach libvirt", error.to_string(), &remedy)
    })?;
    let domain = find(&connection, &there.existing).map_err(|error| failed(&builder, there, &error))?;
    let uuid = idle(&domain, &there.existing).map_err(|error| failed(&builder, there, &error))?;
    let (uri, name) = (options.uri.clone(), there.existing.clone());
    let held = Held { uri, name, uuid: uuid.clone(), run: site.run_id.to_owned(), made: false };
    let killer = held.clone();
    builder.hold(NAME, held.clone())?;
    builder.kill_by(Box::new(move || killer.stop()));
    let limit = options.boot_within.duration().max(CALL_LIMIT);
    let snapshot = there.snapshot.clone();
    let started = with(&domain, limit, "start the domain", move |domain| run(domain, snapshot.as_deref()));
    started.map_err(|error| failed(&builder, there, &error))?;
    let stream = channel(&connection, &domain).map_err(|error| failed(&builder, there, &error))?;
    builder.greet_over(Box::new(stream.clone()), Box::new(stream), options.boot_within.duration())?;
    let vcpus = builder.spec.size.cpus;
    let described = description(&domain).map_err(|error| failed(&builder, there, &error))?;
    let parity = parity(&builder, &described);
    let here = Uri::parse(&options.uri).is_ok_and(|uri| uri.local) && described.attribute("type") == Some("kvm");
    let counts = here.then(|| emulator::with_uuid(&uuid)).flatten().map(counts::of_process);
    let charges = Box::new(move || charges(&domain, vcpus));
    let (address, parity, charges) = (Some(there.address), Some(parity), Some(charges as Charges));
    builder.finish(Particulars { address, parity, charges, counts, booted: true, ..Particulars::default() })
}

/// Whether the domain is emulated, by its own description; `None` when it is not, or cannot be asked.
pub(super) fn emulated(uri: &str, name: &str) -> Option<String> {
    let connection = open(uri).ok()?;
    let domain = find(&connection, name).ok()?;
    let described = description(&domain).ok()?;
    (described.attribute("type") == Some("qemu")).then(|| "the domain's own type is `qemu`".to_owned())
}

fn find(connection: &Arc<Connection>, name: &str) -> std::result::Result<Arc<Domain>, LibvirtError> {
    let (by, name) = (Arc::clone(connection), name.to_owned());
    within(CALL_LIMIT, "find the domain", move || by.by_name(&name).map(Arc::new))
}

/// The domain's UUID; an error when it runs, for then it is somebody's.
fn idle(domain: &Arc<Domain>, name: &str) -> std::result::Result<String, LibvirtError> {
    let tried = format!("start the domain {name}");
    with(domain, CALL_LIMIT, "tell the domain's state", move |domain| {
        if !OFF.contains(&domain.state()?) {
            let message = "it runs already; shut it off, or choose one that nobody uses".to_owned();
            return Err(LibvirtError::Refused { tried, code: 0, message });
        }
        domain.uuid()
    })
}

fn run(domain: &Domain, snapshot: Option<&str>) -> std::result::Result<(), LibvirtError> {
    if let Some(snapshot) = snapshot {
        domain.revert(snapshot)?;
    }
    match domain.state()? {
        RUNNING => Ok(()),
        state if OFF.contains(&state) => domain.create(false),
        _ => domain.resume(),
    }
}

fn channel(connection: &Arc<Connection>, domain: &Arc<Domain>) -> std::result::Result<Stream, LibvirtError> {
    let (connection, domain) = (Arc::clone(connection), Arc::clone(domain));
    within(CALL_LIMIT, "open the domain's channel", move || connection.channel(&domain, tare_image::CHANNEL_PORT))
}

fn description(domain: &Arc<Domain>) -> std::result::Result<Node, LibvirtError> {
    Node::parse(&with(domain, CALL_LIMIT, "describe the domain", Domain::description)?)
}

/// What the domain has. It is not tare's to set.
fn parity(builder: &GuestBuilder<'_>, described: &Node) -> Vec<ParityRow> {
    let mut rows = granted(builder.spec, described);
    for row in &mut rows {
        row.note = format!("{}, which is as it was before the run", row.note);
    }
    let note = "the domain's own; tare sets no limits on a domain that is there already";
    rows.push(parity::row("cpu set", parity::ranges(&builder.spec.cpu_set), None, note));
    rows
}

/// CPU time of the domain's virtual CPUs, which is all that libvirt tells of a domain wherever it runs.
fn charges(domain: &Arc<Domain>, vcpus: u32) -> Vec<Charge> {
    let times = with(domain, CALL_LIMIT, "tell its CPU time", move |domain| domain.vcpu_times_ns(vcpus));
    let Ok(times) = times else { return Vec::new() };
    let cpu_s = Duration::from_nanos(times.iter().sum()).as_secs_f64();
    vec![Charge { kind: "virtual CPUs".into(), cpu_s }]
}

fn failed(builder: &GuestBuilder<'_>, there: &Existing, error: &LibvirtError) -> crate::PlatformError {
    let help = if error.is_unsupported() {
        super::ELSEWHERE.to_owned()
    } else {
        format!("The domain {} needs a virtio channel named {}", there.existing, tare_image::CHANNEL_PORT)
    };
    builder.failed(&format!("use the domain {}", there.existing), error.to_string(), &help)
}
