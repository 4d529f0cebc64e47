//! Whether KVM really runs guests here. That it opens, and that libvirt offers it, says little: a machine that is
//! itself virtual may offer what boots no ordinary kernel. Only a guest that was booted to its agent is believed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tare_image::{Extras, Kernel};
use tare_model::ByteSize;
use tare_model::guest::{GuestSize, GuestSpec};
use tare_wire::Link;

use super::connection::{with, within};
use super::error::LibvirtError;
use super::log;
use super::machine::{Boot, Machine};
use super::options::{Accel, Options};
use super::sys::{Connection, Domain};
use super::uri::CALL_LIMIT;
use super::xml::Node;
use crate::channel::Tail;
use crate::machine::attempt::{self, Limits};
use crate::machine::kernel;
use crate::probe_cache::{Failure, identity, remembered};

/// Memory of the guest that is tried.
const MEMORY: ByteSize = ByteSize(256 << 20);

/// How long libvirt may take to see that a domain has ended.
const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// How often it is asked.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// States of a domain that has ended, as libvirt counts them.
const SHUT_OFF: i32 = 5;
const CRASHED: i32 = 6;

/// What was found in this process, by what it depends on ([`asked`]).
static FOUND: Mutex<Option<HashMap<String, Result<(), String>>>> = Mutex::new(None);

/// Whether guests with these options run by KVM. Boots a guest the first time that KVM looks usable: at most `boot-within`,
/// and less where its console stands still.
///
/// # Errors
/// Why not, where it was asked for.
pub(super) fn decide(connection: &Arc<Connection>, options: &Options, agent: &Path) -> Result<bool, String> {
    match options.accel {
        Accel::Tcg => Ok(false),
        Accel::Kvm => kernel::kvm_is_ordinary()
            .and_then(|()| offered(connection))
            .and_then(|()| tried(connection, options, agent))
            .map(|()| true),
        Accel::Auto => Ok(found(connection, options, agent).is_ok()),
    }
}

/// Why guests with these options are emulated; `None` when they are not. As far as it was found out before.
pub(super) fn emulated(options: &Options) -> Option<String> {
    match options.accel {
        Accel::Kvm => None,
        Accel::Tcg => Some("as the study asks (accel = \"tcg\")".into()),
        Accel::Auto => {
            let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
            let found = found.as_ref().and_then(|found| found.get(&asked(options)).cloned());
            found.unwrap_or_else(|| Err("it was not tried whether KVM works".into())).err()
        }
    }
}

/// The options on which it depends whether KVM works, and how long that is waited for.
fn asked(options: &Options) -> String {
    let Options { uri, kernel, machine, cpu_model, boot_within, .. } = options;
    format!("{uri}\n{kernel:?}\n{machine}\n{cpu_model:?}\n{}", boot_within.ns)
}

/// Whether KVM works, tried once for this kernel and this libvirt.
fn found(connection: &Arc<Connection>, options: &Options, agent: &Path) -> Result<(), String> {
    // Held while it is tried: others wait for the same.
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.get_or_insert_default();
    let asked = asked(options);
    if let Some(known) = found.get(&asked) {
        return known.clone();
    }
    let promising = kernel::kvm_is_ordinary().and_then(|()| offered(connection));
    let result = promising.and_then(|()| tried(connection, options, agent));
    found.insert(asked, result.clone());
    result
}

/// Whether a guest boots by KVM, tried now or remembered.
fn tried(connection: &Arc<Connection>, options: &Options, agent: &Path) -> Result<(), String> {
    let kernel = Kernel::find(options.kernel.as_deref()).map_err(|error| error.to_string())?;
    let asked = Arc::clone(connection);
    let versions = within(CALL_LIMIT, "tell its versions", move || asked.versions());
    let versions = versions.map_err(|error| error.to_string())?;
    let cpu = options.cpu_model.as_deref().unwrap_or("host-passthrough");
    // Not the connection: which socket a daemon listens on changes nothing.
    let image = identity(&kernel.image);
    let key = format!("libvirt boots a guest by KVM\n{versions:?}\n{image}\n{} {cpu}", options.machine);
    let limits = Limits::within(options.boot_within.duration());
    remembered(&key, || boots(connection, options, agent, true, limits))
}

/// Whether libvirt offers KVM.
fn offered(connection: &Arc<Connection>) -> Result<(), String> {
    let asked = Arc::clone(connection);
    let text = within(CALL_LIMIT, "tell what KVM can", move || asked.domain_capabilities("kvm"));
    let capabilities = text.and_then(|text| Node::parse(&text)).map_err(|error| error.to_string())?;
    match capabilities.find("domain").map(|domain| domain.text.as_str()) {
        Some("kvm") => Ok(()),
        other => Err(format!("libvirt offers domains of type {}", other.unwrap_or("unknown"))),
    }
}

/// Boots a guest to its agent, through libvirt's own channel. It is on no disk and in no list, and goes when the
/// connection goes.
pub(super) fn boots(
    connection: &Arc<Connection>,
    options: &Options,
    agent: &Path,
    kvm: bool,
    limits: Limits,
) -> Result<(), Failure> {
    // What is missing on tare's side says nothing about KVM.
    let (name, xml) = describe(connection, options, agent, kvm).map_err(Failure::Passing)?;
    let (of_domain, connection) = (connection, Arc::clone(connection));
    let started = within(CALL_LIMIT, "start a guest to try", move || {
        let domain = connection.create_passing(&xml)?;
        let (stream, console) = (connection.channel(&domain, tare_image::CHANNEL_PORT)?, connection.console(&domain)?);
        Ok((Arc::new(domain), stream, console))
    });
    let (domain, stream, console) = started.map_err(|error| not_started(of_domain, &error))?;
    let (tail, _) = Tail::follow(console.clone());
    let opened = attempt::answers(
        limits,
        &tail,
        |within| Link::open(Box::new(stream.clone()), Box::new(stream.clone()), within, within * 2),
        // Ends whoever waits in it.
        || stream.end(),
        || {
            let how = is_gone(&domain)?;
            let logged = log::last_line(&options.uri, &name).map(|line| format!(" (libvirt's log: {line})"));
            let how = format!("{how}{}", logged.unwrap_or_default());
            // KVM ran its kernel, so that what ended it may pass.
            Some(if tail.taken() > 0 { Failure::Passing(how) } else { Failure::Lasting(how) })
        },
    );
    stream.end();
    console.end();
    let ended = within(CALL_LIMIT, "end the guest that was tried", move || match domain.destroy() {
        Err(error) if !error.is_wrong_state() && !error.is_no_domain() => Err(error),
        _ => Ok(()),
    });
    let ended = ended.map_err(|error| error.to_string()).and_then(|()| log::remove(&options.uri, &name));
    opened.and(ended.map_err(Failure::Passing))
}

/// Why libvirt did not start a guest: that QEMU ended at once, unless libvirt itself is gone or slow.
fn not_started(connection: &Arc<Connection>, error: &LibvirtError) -> Failure {
    let asked = Arc::clone(connection);
    let lives = || within(CALL_LIMIT, "tell its versions", move || asked.versions()).is_ok();
    match error {
        LibvirtError::Refused { .. } if lives() => Failure::Lasting(error.to_string()),
        _ => Failure::Passing(error.to_string()),
    }
}

/// How a domain ended that was started here, if it did: libvirt sees it a moment after its channel was closed.
fn is_gone(domain: &Arc<Domain>) -> Option<String> {
    let deadline = Instant::now() + SEEN_WITHIN;
    loop {
        match with(domain, CALL_LIMIT, "tell the domain's state", Domain::state) {
            // One that is in no list is nowhere once it has ended.
            Err(error) if error.is_no_domain() => return Some("the domain is gone".into()),
            Ok(SHUT_OFF | CRASHED) => return Some("the domain is shut off".into()),
            Err(_) => return None,
            Ok(_) if Instant::now() >= deadline => return None,
            Ok(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// The domain that is tried: its name and its description.
fn describe(
    connection: &Arc<Connection>,
    options: &Options,
    agent: &Path,
    kvm: bool,
) -> Result<(String, String), String> {
    let kernel = Kernel::find(options.kernel.as_deref()).map_err(|error| error.to_string())?;
    let boot = tare_image::boot(&kernel, agent, &Extras::default()).map_err(|error| error.to_string())?;
    let id = format!("probe-{}", std::process::id());
    let spec = GuestSpec::new("probe", GuestSize { cpus: 1, memory: MEMORY });
    let words = attempt::config(&id).command_line().map_err(|error| error.to_string())?;
    let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid").map_err(|error| error.to_string())?;
    let name = format!("tare-{id}");
    let machine = Machine {
        name: &name,
        uuid: uuid.trim(),
        run_id: &id,
        spec: &spec,
        options,
        kvm,
        network: None,
        boot: Boot::Kernel {
            image: boot.kernel,
            initrd: boot.initrd,
            command_line: super::start::command_line(&format!("{} {words}", attempt::TALKS), kvm),
        },
        disks: Vec::new(),
        share: None,
        channel: None,
        console: None,
        confined_by: super::start::confined_by(connection).map_err(|error| error.to_string())?,
    };
    let xml = machine.describe().write().map_err(|error| error.to_string())?;
    Ok((name, xml))
}
