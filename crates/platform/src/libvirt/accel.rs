//! Whether KVM really runs guests here. That it opens, and that libvirt offers it, says little: a machine that is
//! itself virtual may offer what boots no ordinary kernel. Only a guest that was booted to its agent is believed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tare_image::{GuestConfig, Kernel, Root};
use tare_model::ByteSize;
use tare_model::guest::{GuestSize, GuestSpec, Seccomp};
use tare_wire::Link;

use super::connection::within;
use super::error::LibvirtError;
use super::machine::{Boot, Machine};
use super::options::{Accel, Options};
use super::sys::Connection;
use super::uri::CALL_LIMIT;
use super::xml::Node;
use crate::machine::kernel;
use crate::remembered::{identity, remembered};

/// A guest that has not answered by then never does.
const PATIENCE: Duration = Duration::from_secs(20);
/// Memory of the guest that is tried.
const MEMORY: ByteSize = ByteSize(256 << 20);

/// What was found in this process, by connection.
static FOUND: Mutex<Option<HashMap<String, Result<(), String>>>> = Mutex::new(None);

/// Whether guests with these options run by KVM. Takes up to 20 s the first time that KVM looks usable.
///
/// # Errors
/// Why not, where it was asked for.
pub(super) fn decide(connection: &Arc<Connection>, options: &Options, agent: &Path) -> Result<bool, String> {
    match options.accel {
        Accel::Tcg => Ok(false),
        Accel::Kvm => hardware()
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
            let found = found.as_ref().and_then(|found| found.get(&options.uri).cloned());
            found.unwrap_or_else(|| Err("it was not tried whether KVM works".into())).err()
        }
    }
}

/// Whether KVM works, tried once for this kernel and this libvirt.
fn found(connection: &Arc<Connection>, options: &Options, agent: &Path) -> Result<(), String> {
    // Held while it is tried: others wait for the same.
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.get_or_insert_default();
    if let Some(known) = found.get(&options.uri) {
        return known.clone();
    }
    let promising = hardware().and_then(|()| offered(connection));
    let result = promising.and_then(|()| tried(connection, options, agent));
    found.insert(options.uri.clone(), result.clone());
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
    remembered(&key, || boots(connection, options, agent, true, PATIENCE))
}

/// What the host itself says, before anything is tried.
pub(super) fn hardware() -> Result<(), String> {
    kernel::kvm().map_err(|(why, remedy)| format!("{why} ({remedy})"))?;
    if Path::new("/sys/module/kvm_pvm").exists() {
        return Err("this host's KVM is of a kind (kvm_pvm) that boots no ordinary kernel".into());
    }
    Ok(())
}

/// Whether libvirt offers KVM.
fn offered(connection: &Arc<Connection>) -> Result<(), String> {
    let asked = Arc::clone(connection);
    let text = within(CALL_LIMIT, "tell what KVM can", move || asked.domain_capabilities("kvm"));
    let told = text.and_then(|text| Node::parse(&text)).map_err(|error| error.to_string())?;
    match told.find("domain").map(|domain| domain.text.as_str()) {
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
    patience: Duration,
) -> Result<(), String> {
    let kernel = Kernel::find(options.kernel.as_deref()).map_err(|error| error.to_string())?;
    let boot = tare_image::boot(&kernel, agent).map_err(|error| error.to_string())?;
    let id = format!("probe-{}", std::process::id());
    let (size, seccomp) = (GuestSize { cpus: 1, memory: MEMORY }, Seccomp::Default);
    let spec = GuestSpec { name: "probe".into(), size, cpu_set: Vec::new(), data: None, merge: false, seccomp };
    let config = GuestConfig {
        hostname: "probe".into(),
        run_id: id.clone(),
        root: Root::Initrd,
        address: None,
        mtu: 1500,
        congestion_control: None,
        data_disks: Vec::new(),
        iscsi: None,
    };
    let words = config.command_line().map_err(|error| error.to_string())?;
    let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid").map_err(|error| error.to_string())?;
    let machine = Machine {
        name: &format!("tare-{id}"),
        uuid: uuid.trim(),
        run_id: &id,
        spec: &spec,
        options,
        kvm,
        network: None,
        boot: Boot::Kernel {
            image: boot.kernel,
            initrd: boot.initrd,
            command_line: super::start::command_line(&words, kvm),
        },
        disks: Vec::new(),
        share: None,
        channel: None,
        console: None,
        confined_by: super::start::confined_by(connection).map_err(|error| error.to_string())?,
    };
    let xml = machine.describe().write().map_err(|error| error.to_string())?;
    let connection = Arc::clone(connection);
    let domain = within(CALL_LIMIT, "start a guest to try", move || {
        let domain = connection.create_passing(&xml)?;
        let stream = connection.channel(&domain, tare_image::CHANNEL_PORT)?;
        Ok((Arc::new(domain), stream))
    });
    let (domain, stream) = domain.map_err(|error| error.to_string())?;
    let opened = Link::open(Box::new(stream.clone()), Box::new(stream.clone()), patience, patience * 2);
    let opened = opened.map(drop).map_err(|error| format!("a guest was started, but {error}"));
    stream.end();
    let ended = within(CALL_LIMIT, "end the guest that was tried", move || match domain.destroy() {
        Err(error) if !error.is_wrong_state() && !error.is_no_domain() => Err(error),
        _ => Ok(()),
    });
    opened.and(ended.map_err(|error: LibvirtError| error.to_string()))
}
