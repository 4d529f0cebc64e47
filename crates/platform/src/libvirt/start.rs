//! A guest in a domain that tare makes on this host.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tare_image::{CHANNEL_PORT, Extras, GuestConfig, ImageError, Kernel, Root, Seed};
use tare_lab::{NetNs, Place};
use tare_model::ByteSize;
use tare_model::guest::{GuestSpec, ParityRow};

use super::NAME;
use super::connection::{open, with, within};
use super::data::{self, Data};
use super::error::LibvirtError;
use super::held::Held;
use super::machine::{Boot, DiskFile, Machine, granted};
use super::options::{Cache, DiskFormat, Options};
use super::sys::{Connection, Domain};
use super::uri::{CALL_LIMIT, remedy};
use super::xml::Node;
use super::{accel, emulator, machine};
use crate::builder::{GuestBuilder, Particulars, absolute};
use crate::error::Result;
use crate::guest::Charges;
use crate::machine::inside::{self, Asked};
use crate::machine::share::{self, Serving};
use crate::machine::user;
use crate::machine::volume::{self, Part, image_error};
use crate::machine::{counts, pinning};
use crate::parity::{owned, row};
use crate::{Charge, Guest, Site};

/// Memory of the emulator and its devices beyond the guest's own.
const ALLOWANCE: ByteSize = ByteSize(256 << 20);
/// The same when it translates the guest's instructions, and keeps what it translated.
const ALLOWANCE_EMULATED: ByteSize = ByteSize(512 << 20);
/// Starting a domain with all that libvirt looks at may take so long.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Why the emulator has the rights that it has.
const RIGHTS: &str =
    "the domain asks for user 0, so that its files keep their owners; capabilities and filter are libvirt's choice";
/// The words for every guest's kernel: one that cannot go on ends its machine, and with it the wait for its agent; and since
/// each byte on the serial line costs an exit from the guest, it prints errors only, which a panic is.
const KERNEL_WORDS: &str = "panic=-1 quiet";
/// Emulation has no side channels to close, and a clock that may be trusted.
const EMULATED_WORDS: &str = "mitigations=off tsc=reliable random.trust_cpu=on";

/// A place in memory or on a disk, and what boots from it.
struct Prepared {
    boot: Boot,
    disks: Vec<DiskFile>,
    shared: bool,
}

/// Makes a guest.
pub(super) fn start(options: &Options, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
    let mut builder = GuestBuilder::new(site, spec);
    if let Some(refusal) = options.lies().merging_refusal().filter(|_| spec.merge) {
        return Err(builder.refused("have its memory merged", refusal));
    }
    let connection = open(&options.uri).map_err(|error| {
        let remedy = remedy(&error, &options.uri);
        builder.failed("reach libvirt", error.to_string(), &remedy)
    })?;
    let agent = absolute(site.agent);
    let kvm = builder.aside(|_| accel::decide(&connection, options, &agent));
    let kvm = kvm.map_err(|why| builder.failed("use KVM", why, "Write accel = \"tcg\" to have it emulated"))?;
    let place = builder.reserve()?;
    let folder = builder.directory()?;
    let groups = builder.limit_machine(if kvm { ALLOWANCE } else { ALLOWANCE_EMULATED })?;
    let data = data::make(&mut builder, options, &folder, place.address)?;
    let prepared = prepare(&mut builder, options, (&place, &data), &folder, kvm)?;
    let socket = folder.join(share::SOCKET);
    let serving = prepared.shared.then(|| share_root(&mut builder, options, &folder, &groups)).transpose()?;
    let held = Held::new(&options.uri, site.run_id, spec)
        .map_err(|error| builder.failed("name its domain", error.to_string(), "Is /proc mounted?"))?;
    let card = card_name(&held.uuid);
    let (channel, console) = (folder.join("agent"), folder.join("console"));
    let confined_by = confined_by(&connection).map_err(|error| refused(&builder, &error))?;
    let machine = Machine {
        name: &held.name,
        uuid: &held.uuid,
        run_id: site.run_id,
        spec,
        options,
        kvm,
        network: Some((&place.mac, &card)),
        boot: prepared.boot,
        disks: prepared.disks.into_iter().chain(data.file.clone()).collect(),
        share: prepared.shared.then_some(socket),
        channel: Some(channel.clone()),
        console: Some(console.clone()),
        confined_by,
    };
    let xml = machine.describe().write().map_err(|error| refused(&builder, &error))?;
    let domain = define(&mut builder, &connection, &held, xml)?;
    let pid = settle(&mut builder, &held, &groups, (place, &card))?;
    pin(&builder, options, &domain)?;
    user::note_as_found(&mut builder, "the emulator", pid, RIGHTS);
    serving.map_or(Ok(()), |serving| serving.check(&mut builder))?;
    let (reader, writer) = connect(&mut builder, &channel, &console)?;
    with(&domain, CALL_LIMIT, "let the domain run", Domain::resume).map_err(|error| refused(&builder, &error))?;
    builder.greet_over(Box::new(reader), Box::new(writer), options.boot_within.duration())?;
    let mut parity = parity(&mut builder, options, &domain, pid)?;
    let is_unsafe = data.file.is_some() && options.disk.cache == Some(Cache::Unsafe);
    parity.extend(is_unsafe.then(|| volume::flushes_ignored(Part::Data)));
    let group = groups.into_iter().next();
    let charges = Box::new(move || charges(pid, group.as_deref()));
    let data = data.place(&builder)?;
    let (parity, charges) = (Some(parity), Some(charges as Charges));
    let counts = kvm.then(|| counts::of_process(pid));
    builder.finish(Particulars { parity, charges, counts, data, booted: true, ..Particulars::default() })
}

/// Starts what shares the guest's root.
fn share_root(builder: &mut GuestBuilder<'_>, options: &Options, folder: &Path, groups: &[PathBuf]) -> Result<Serving> {
    let server = share::server(None).map_err(|refusal| builder.refused("share the guest's root", refusal))?;
    share::serve(builder, &server, folder, &options.image, groups.to_vec())
}

/// Writes the domain down, defines it and starts it, before its first instruction.
fn define(
    builder: &mut GuestBuilder<'_>,
    connection: &Arc<Connection>,
    held: &Held,
    xml: String,
) -> Result<Arc<Domain>> {
    let killer = held.clone();
    builder.hold(NAME, held.clone())?;
    builder.kill_by(Box::new(move || killer.stop()));
    let by = Arc::clone(connection);
    let defined = within(CALL_LIMIT, "define a domain", move || by.define(&xml).map(Arc::new));
    let domain = defined.map_err(|error| refused(builder, &error))?;
    with(&domain, START_LIMIT, "start the domain", |domain| domain.create(true))
        .map_err(|error| refused(builder, &error))?;
    Ok(domain)
}

/// Puts the emulator under the guest's limits and its network card into the lab.
fn settle(builder: &mut GuestBuilder<'_>, held: &Held, groups: &[PathBuf], link: (Place, &str)) -> Result<u32> {
    let run_id = builder.site.run_id;
    let Some(pid) = emulator::find(run_id, &held.uuid) else {
        let why = "no process of this host has its UUID".to_owned();
        return Err(builder.failed("find its emulator", why, "Is libvirt's daemon in another container or host?"));
    };
    emulator::join(pid, groups).map_err(|error| {
        builder.failed("put its emulator under limits", error.to_string(), "Are the control groups writable?")
    })?;
    let here = NetNs::current()
        .map_err(|error| builder.failed("find the host's network", error.to_string(), "Is /proc mounted?"))?;
    builder.adopt(link.0, &here, link.1)?;
    Ok(pid)
}

/// Pins its virtual CPUs, if that is asked for.
fn pin(builder: &GuestBuilder<'_>, options: &Options, domain: &Arc<Domain>) -> Result<()> {
    let cpus = &builder.spec.cpu_set;
    if !options.pin_vcpus || cpus.is_empty() {
        return Ok(());
    }
    for (vcpu, &cpu) in (0..builder.spec.size.cpus).zip(cpus.iter().cycle()) {
        with(domain, CALL_LIMIT, "pin a virtual CPU", move |domain| domain.pin_vcpu(vcpu, cpu))
            .map_err(|error| refused(builder, &error))?;
    }
    Ok(())
}

/// Connects to the channel and the console, while nothing was said yet.
fn connect(builder: &mut GuestBuilder<'_>, channel: &Path, console: &Path) -> Result<(UnixStream, UnixStream)> {
    let connected = UnixStream::connect(console).and_then(|console| {
        let channel = UnixStream::connect(channel)?;
        Ok((console, channel.try_clone()?, channel))
    });
    let (console, reader, writer) = connected.map_err(|error| {
        builder.failed("connect to its channel", error.to_string(), "Does libvirt's daemon see the same file system?")
    })?;
    builder.console(console);
    Ok((reader, writer))
}

/// What libvirt and the guest say that was granted.
fn parity(builder: &mut GuestBuilder<'_>, options: &Options, domain: &Arc<Domain>, pid: u32) -> Result<Vec<ParityRow>> {
    let node = with(domain, CALL_LIMIT, "describe the domain", Domain::description).and_then(|text| Node::parse(&text));
    let node = node.map_err(|error| refused(builder, &error))?;
    let mut rows = granted(builder.spec, &node);
    rows.extend(builder.spec.merge.then(|| machine::merging(pid, &node)));
    let facts = builder.facts()?;
    let mtu = facts.facts.iter().find(|(name, _)| name.starts_with("mtu ") && name != "mtu lo");
    let asked = builder.site.mtu.to_string();
    rows.push(row("link mtu", asked, mtu.map(|(_, mtu)| mtu.clone()), "the guest's interface, asked inside"));
    let cpus = builder.spec.size.cpus;
    let online = if cpus == 1 { "0".to_owned() } else { format!("0-{}", cpus.saturating_sub(1)) };
    let inside = owned(&facts, "cpus online");
    rows.push(row("cpus online inside", online, inside, "the guest's kernel"));
    let asked = Asked {
        queues: options.network.queues,
        free_page_reporting: options.memory.free_page_reporting,
        huge_pages: options.memory.huge_pages.then_some(builder.spec.size.memory.0),
        append: &options.append,
    };
    rows.extend(inside::rows(asked, &facts, pid));
    if options.pin_vcpus && !builder.spec.cpu_set.is_empty() {
        rows.push(pinning::row(cpus, &emulator::vcpus(pid), &builder.spec.cpu_set));
    }
    Ok(rows)
}

/// CPU time of the emulator by kind of thread, and of the file server, which is what else is in the guest's group.
fn charges(emulator: u32, group: Option<&Path>) -> Vec<Charge> {
    let members = group.and_then(|procs| std::fs::read_to_string(procs).ok()).unwrap_or_default();
    let server = members.lines().filter_map(|pid| pid.parse().ok()).filter(|&pid| pid != emulator);
    let mut charges = emulator::charges(emulator);
    charges.extend(
        server
            .map(emulator::cpu)
            .map(|cpu_s| Charge { kind: "file server".into(), cpu_s })
            .reduce(|a, b| Charge { cpu_s: a.cpu_s + b.cpu_s, ..a }),
    );
    charges
}

/// What the guest boots, with all that has to be made for it.
fn prepare(
    builder: &mut GuestBuilder<'_>,
    options: &Options,
    (place, data): (&Place, &Data),
    folder: &Path,
    kvm: bool,
) -> Result<Prepared> {
    let base = options.image.base().map_err(|error| image_error(builder, error))?;
    let mut disks = Vec::new();
    if let Some(base) = base {
        let path = builder.layers()?.join("root.qcow2");
        tare_image::overlay(&base, &path).map_err(|error| image_error(builder, error))?;
        disks.push(DiskFile { path, format: DiskFormat::Qcow2.name(), read_only: false, serial: None });
    }
    let Some(root) = options.image.root() else {
        disks.push(seed(builder, place, folder)?);
        return Ok(Prepared { boot: Boot::Disk, disks, shared: false });
    };
    let boot = kernel(builder, options, (place, data), root, kvm).map_err(|error| image_error(builder, error))?;
    Ok(Prepared { boot, disks, shared: options.image.is_shared() })
}

/// What sets up an image of the user's.
fn seed(builder: &GuestBuilder<'_>, place: &Place, folder: &Path) -> Result<DiskFile> {
    let at = folder.join("seed");
    let config = Seed {
        hostname: builder.spec.name.clone(),
        address: Some((place.address, place.prefix)),
        mac: place.mac.clone(),
        mtu: builder.site.mtu,
        run_id: builder.site.run_id.to_owned(),
        channel: CHANNEL_PORT.into(),
    };
    tare_image::seed(&config, builder.site.agent, &at).map_err(|error| image_error(builder, error))?;
    Ok(DiskFile { path: at, format: DiskFormat::Raw.name(), read_only: true, serial: None })
}

/// The kernel with the agent as its first process. It is put together once, for all guests of the run.
fn kernel(
    builder: &mut GuestBuilder<'_>,
    options: &Options,
    (place, data): (&Place, &Data),
    root: Root,
    kvm: bool,
) -> std::result::Result<Boot, ImageError> {
    let boot = builder.aside(|builder| {
        let kernel = Kernel::find(options.kernel.as_deref())?;
        let extras = Extras { iscsi: data.iscsi.is_some(), ..Extras::default() };
        tare_image::boot(&kernel, builder.site.agent, &extras)
    })?;
    let config = GuestConfig {
        address: Some((place.address, place.prefix)),
        mtu: builder.site.mtu,
        data_disks: data.disk.clone().into_iter().collect(),
        iscsi: data.iscsi.clone().into_iter().collect(),
        ..GuestConfig::new(&builder.spec.name, builder.site.run_id, root)
    };
    let agents = config.command_line()?;
    // The study's words come after tare's, so that they count, and before those that the agent reads.
    let command_line = command_line(&[options.append.join(" "), agents].join(" "), kvm);
    Ok(Boot::Kernel { image: boot.kernel, initrd: boot.initrd, command_line })
}

/// The kernel's command line around what is for the agent.
pub(super) fn command_line(agent: &str, kvm: bool) -> String {
    let console = if cfg!(target_arch = "aarch64") { "ttyAMA0" } else { "ttyS0" };
    let emulated = if kvm { "" } else { EMULATED_WORDS };
    format!("console={console} {KERNEL_WORDS} {emulated} {agent}")
}

/// A name for the network card on the host that nobody else has: 15 characters are allowed. It has it until it is
/// in the lab, and it goes with the emulator.
fn card_name(uuid: &str) -> String {
    let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).take(10).collect();
    format!("tare-{digits}")
}

/// What this libvirt confines emulators with.
pub(super) fn confined_by(connection: &Arc<Connection>) -> std::result::Result<Vec<String>, LibvirtError> {
    let asked = Arc::clone(connection);
    let capabilities = within(CALL_LIMIT, "tell its capabilities", move || asked.capabilities())?;
    let capabilities = Node::parse(&capabilities)?;
    let models = capabilities.find("host").into_iter().flat_map(|host| host.all("secmodel"));
    let names = models.filter_map(|model| Some(model.find("model")?.text.clone()));
    Ok(names.filter(|name| !name.is_empty() && name != "none").collect())
}

fn refused(builder: &GuestBuilder<'_>, error: &LibvirtError) -> crate::PlatformError {
    builder.failed("run its domain", error.to_string(), "libvirt's log says more (journalctl -u libvirtd)")
}
