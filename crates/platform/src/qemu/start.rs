//! The making of one machine.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::Pid;
use tare_image::{Boot, CHANNEL_PORT, Disk, Extras, GuestConfig, Kernel, Root, Seed};
use tare_model::Refusal;
use tare_wire::Link;
use tare_wire::launch::{FIRST_DEVICE, Launch, Namespace};

use super::accel::Chosen;
use super::balloon::MachineBalloon;
use super::command::{self, Basics};
use super::confine::Means;
use super::data::{self, Data};
use super::disks::Attached;
use super::options::{DiskFormat, Initiator, Options};
use super::qmp::{self, Made, Monitor, SOCKET_PATH_BYTES, SharedMonitor};
use super::thread_cpu::Threads;
use super::{disclosures, readback, share, snapshot};
use crate::builder::{GuestBuilder, Particulars, absolute, plain_launch};
use crate::error::{PlatformError, Result};
use crate::guest::{Counts, Pause};
use crate::machine::counts::of_process as kernels_counts;
use crate::machine::inside::{self, Asked};
use crate::machine::share::serve;
use crate::machine::user::{self, Confined};
use crate::machine::volume::image_error;
use crate::merging;
use crate::program::find;
use crate::{Balloon, Guest};

/// Name of the monitor's socket in the guest's directory.
const MONITOR: &str = "qmp";
/// How long QEMU may take until its monitor listens.
const LISTENS: Duration = Duration::from_secs(20);

/// What is found out before a guest is made, and the same for all of an arm.
pub(super) struct Prepared {
    chosen: Chosen,
    program: PathBuf,
    /// What tare's own images boot.
    boot: Option<Boot>,
    /// What root disks are cloned from.
    base: Option<Disk>,
    server: Option<PathBuf>,
    vhost: bool,
    means: Means,
}

/// Finds everything that the guest needs. Nothing is started yet.
pub(super) fn prepare(
    options: &Options,
    chosen: Chosen,
    means: &OnceLock<Means>,
    builder: &GuestBuilder<'_>,
) -> std::result::Result<Prepared, Refusal> {
    if let Some(refusal) = options.lies().merging_refusal().filter(|_| builder.spec.merge) {
        return Err(refusal);
    }
    if let Some(refusal) = options.lies().ballooning_refusal().filter(|_| builder.spec.balloon) {
        return Err(refusal);
    }
    let base = options.image.base()?;
    let program = find(&options.program).ok_or_else(|| {
        Refusal::new(format!("there is no {}", options.program), "Install QEMU, or correct `program`")
    })?;
    let kernel = if options.image.is_own() { None } else { Some(Kernel::find(options.kernel.as_deref())?) };
    options.network.usable(kernel.as_ref())?;
    let boot = kernel.map(|kernel| boot(options, &kernel, builder)).transpose()?;
    let server = if options.shares_root() { Some(share::server(options)?) } else { None };
    huge_pages(options, builder.spec.size.memory.0)?;
    let means = *means.get_or_init(|| Means::of(&program));
    Ok(Prepared { chosen, program, boot, base, server, vhost: options.network.vhost()?, means })
}

/// What a guest boots with a kernel of this host's.
fn boot(options: &Options, kernel: &Kernel, builder: &GuestBuilder<'_>) -> std::result::Result<Boot, Refusal> {
    let vfio = options.network.vfio.as_ref().map(|vfio| vfio.of_guest(&builder.spec.name));
    let extras = Extras {
        iscsi: options.disks().any(|(_, disk)| disk.iscsi == Some(Initiator::Guest)),
        card: vfio.map_or(Ok(Vec::new()), |vfio| vfio.drivers(kernel, Path::new("/sys")))?,
    };
    Ok(tare_image::boot(kernel, &absolute(builder.site.agent), &extras)?)
}

/// Whether so many bytes of huge pages are free, where they are asked for.
pub(super) fn huge_pages(options: &Options, bytes: u64) -> std::result::Result<(), Refusal> {
    if !options.memory.huge_pages {
        return Ok(());
    }
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let (size, free) = free_huge_pages(&text).unwrap_or_default();
    if size > 0 && free.saturating_mul(size) >= bytes {
        return Ok(());
    }
    let reason = format!("{free} huge pages of {} kB are free, which is not enough", size >> 10);
    Err(Refusal::new(reason, "Set some apart: `sysctl vm.nr_hugepages=N`, early after the boot"))
}

/// Size in bytes and number of free huge pages, from /proc/meminfo.
fn free_huge_pages(meminfo: &str) -> Option<(u64, u64)> {
    let value = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some((value("Hugepagesize")?.checked_mul(1024)?, value("HugePages_Free")?))
}

/// How the guest is on the network.
struct Card {
    words: Vec<String>,
    netns: Option<PathBuf>,
    /// The device by which QEMU has the tap, where that is not by its name.
    device: Option<PathBuf>,
    mac: String,
    address: Option<(IpAddr, u8)>,
    /// Where servers listen, when that is not on the lab's network.
    outside: Option<IpAddr>,
}

/// Makes the machine, from nothing or of a snapshot, and waits until its agent answers.
pub(super) fn start(
    mut builder: GuestBuilder<'_>,
    options: &Options,
    prepared: &Prepared,
    snapshot: Option<&Path>,
) -> Result<Box<dyn Guest>> {
    let card = card(&mut builder, options, prepared)?;
    if options.outside_quota {
        builder.lift_quota();
    }
    let procs = builder.limit_machine(options.memory.allowance)?;
    let folder = builder.directory()?;
    if folder.join(MONITOR).as_os_str().len() > SOCKET_PATH_BYTES {
        let why = format!("the path of its sockets, {}, is longer than {SOCKET_PATH_BYTES} bytes", folder.display());
        return Err(builder.failed("make its sockets", why, "Use a shorter name for the run or the guest"));
    }
    let address = card.address.map_or(IpAddr::from([0, 0, 0, 0]), |(address, _)| address);
    let data = data::make(&mut builder, options, &folder, address)?;
    let mut words = vec![absolute(&prepared.program).to_string_lossy().into_owned()];
    words.extend(machine(&builder, options, prepared, &card, &data)?);
    let root = root(&mut builder, options, prepared, (&card, &folder), snapshot)?;
    words.extend(root.words);
    words.extend(data.words(options.machine.bus()));
    words.extend(card.words);
    let mut devices: Vec<PathBuf> = card.device.into_iter().collect();
    if let Some(snapshot) = snapshot {
        words.extend([
            "-incoming".to_owned(),
            format!("fd:{}", u64::from(FIRST_DEVICE.cast_unsigned()) + devices.len() as u64),
        ]);
        devices.push(snapshot::state(snapshot));
    }
    words.extend(["-S".to_owned(), "-qmp".to_owned(), monitor_word(&folder)]);
    let mut serving = None;
    if let Some(server) = &prepared.server {
        serving = Some(serve(&mut builder, server, &folder, &options.image, procs.clone())?);
        words.extend(share::words(&folder, options.machine.bus()));
    }
    let user = user::fresh(builder.site.run_id);
    let empty = empty(&builder, &folder)?;
    let rootless = tare_lab::is_rootless();
    words.extend(if rootless { prepared.means.words_rootless() } else { prepared.means.words(user, &empty) });
    let launch = Launch {
        unshare: vec![Namespace::Mount, Namespace::Ipc, Namespace::Uts],
        cgroup_procs: procs,
        netns: card.netns.or_else(|| data.by_qemu_in_lab().then(|| builder.site.lab.sut().path())),
        cpu_set: builder.spec.cpu_set.clone(),
        devices,
        user: rootless.then(|| user::own(builder.site.run_id, &[])),
        argv: words,
        ..plain_launch()
    };
    builder.spawn(&launch)?;
    let (mut monitor, made) = halted(&mut builder, options, &folder)?;
    // Nothing of the guest has run yet.
    let process = builder.channel_pid().unwrap_or_default();
    if rootless {
        tare_lab::empty_root(process, &empty).map_err(|source| builder.lab_error(source))?;
    }
    user::hold_to(&mut builder, "QEMU", process, Confined::new(user, 0, true))?;
    serving.map_or(Ok(()), |serving| serving.check(&mut builder))?;
    monitor.run().map_err(|why| not_started(&builder, why))?;
    let timeout = Duration::from_nanos(options.boot_within.ns);
    builder.greet_by(if snapshot.is_some() { Link::take_up } else { Link::open }, timeout)?;
    stand(builder, options, prepared, (monitor, made), (card.outside, root.disk), data)
}

/// A directory with nothing in it, which becomes QEMU's root once it has opened all that it needs.
fn empty(builder: &GuestBuilder<'_>, folder: &Path) -> Result<PathBuf> {
    let path = folder.join("empty");
    std::fs::create_dir(&path).map_err(|error| {
        builder.failed("make an empty directory", error.to_string(), "Is the file system full or read-only?")
    })?;
    Ok(path)
}

fn monitor_word(folder: &Path) -> String {
    format!("unix:{},server=on,wait=off", command::escaped(&folder.join(MONITOR)))
}

fn card(builder: &mut GuestBuilder<'_>, options: &Options, prepared: &Prepared) -> Result<Card> {
    if let Some(vfio) = options.network.vfio.as_ref().map(|vfio| vfio.of_guest(&builder.spec.name)) {
        vfio.usable(Path::new("/sys")).map_err(|refusal| builder.refused("make the machine", refusal))?;
        let words = ["-device".to_owned(), format!("vfio-pci,host={}", vfio.device)].to_vec();
        let address = vfio.place();
        let outside = address.map(|(address, _)| address);
        return Ok(Card { words, netns: None, device: None, mac: vfio.mac, address, outside });
    }
    let (mtu, offloads) = (builder.site.mtu, builder.site.lab.config().offloads);
    let tap = builder.tap(options.network.queues)?;
    let place = tap.place();
    let device = tap.device();
    let source = match &device {
        Some(_) => format!("fd={FIRST_DEVICE}"),
        None => format!("ifname={},script=no,downscript=no", tap.link()),
    };
    let words = options.network.words(&source, &place.mac, mtu, offloads, prepared.vhost, options.machine.bus());
    let address = Some((place.address, place.prefix));
    Ok(Card { words, netns: Some(tap.netns().path()), device, mac: place.mac.clone(), address, outside: None })
}

/// Processor, memory, kernel, console and channel.
fn machine(
    builder: &GuestBuilder<'_>,
    options: &Options,
    prepared: &Prepared,
    card: &Card,
    data: &Data,
) -> Result<Vec<String>> {
    let agent_words = match &prepared.boot {
        None => String::new(),
        Some(_) => config(builder, options, card, data).command_line().map_err(|error| image_error(builder, error))?,
    };
    let basics = Basics {
        machine: options.machine,
        kvm: prepared.chosen.is_kvm(),
        cpu: disclosures::cpu_model(options, &prepared.chosen),
        cpus: builder.spec.size.cpus,
        boot: prepared.boot.as_ref().map(|boot| (boot, agent_words.as_str())),
        append: &options.append,
    };
    let mut words = vec!["-name".to_owned(), format!("guest={},debug-threads=on", builder.spec.name)];
    words.extend(command::basics(&basics));
    words.extend(command::memory(options.machine, options.memory, options.shares_root(), builder.spec));
    if let Some(firmware) = &options.firmware {
        let flash = format!("if=pflash,format=raw,readonly=on,file={}", command::escaped(&absolute(firmware)));
        words.extend(["-drive".to_owned(), flash]);
    }
    Ok(words)
}

/// The configuration of the agent that runs as the first process.
fn config(builder: &GuestBuilder<'_>, options: &Options, card: &Card, data: &Data) -> GuestConfig {
    GuestConfig {
        hostname: builder.spec.name.clone(),
        run_id: builder.site.run_id.to_owned(),
        // One that boots by itself gets no words.
        root: options.image.root().unwrap_or(Root::Initrd),
        address: card.address,
        card: options.network.vfio.as_ref().map(|_| card.mac.clone()),
        mtu: builder.site.mtu,
        congestion_control: builder.site.lab.config().congestion_control.clone(),
        data_disks: data.virtio(),
        iscsi: data.iscsi(),
    }
}

/// The root disk: QEMU's words for it, and its file, if there is one.
#[derive(Default)]
struct RootDisk {
    words: Vec<String>,
    disk: Option<PathBuf>,
}

/// The root disk's clone, and what sets it up where it is no image of tare's.
fn root(
    builder: &mut GuestBuilder<'_>,
    options: &Options,
    prepared: &Prepared,
    (card, folder): (&Card, &Path),
    snapshot: Option<&Path>,
) -> Result<RootDisk> {
    let Some(base) = &prepared.base else { return Ok(RootDisk::default()) };
    let clone = builder.layers()?.join("root");
    match (snapshot, options.disk.clone) {
        (Some(snapshot), _) => snapshot::root(snapshot, &clone)
            .map_err(|error| builder.failed("make its root disk", error.to_string(), "Is the file system full?"))?,
        (None, DiskFormat::Qcow2) => {
            tare_image::overlay(base, &clone).map_err(|error| image_error(builder, error))?;
        }
        (None, DiskFormat::Raw) => {
            tare_image::raw_copy(base, &clone).map_err(|error| image_error(builder, error))?;
        }
    }
    let bus = options.machine.bus();
    let disk = Some(clone.clone());
    let mut words = Attached::root(options, clone).words(bus);
    if options.image.is_own() {
        let seed = Seed {
            hostname: builder.spec.name.clone(),
            address: card.address,
            mac: card.mac.clone(),
            mtu: builder.site.mtu,
            run_id: builder.site.run_id.to_owned(),
            channel: CHANNEL_PORT.into(),
        };
        let at = folder.join("seed");
        let agent = absolute(builder.site.agent);
        tare_image::seed(&seed, &agent, &at).map_err(|error| image_error(builder, error))?;
        words.extend(Attached::seed(at).words(bus));
    }
    Ok(RootDisk { words, disk })
}

/// Reads what QEMU made while its processor is halted, and pins it.
fn halted(builder: &mut GuestBuilder<'_>, options: &Options, folder: &Path) -> Result<(Monitor, Made)> {
    let process = builder.channel_pid().unwrap_or_default();
    let read = || {
        let mut monitor = Monitor::connect(&folder.join(MONITOR), || has_ended(process), LISTENS)?;
        let mut made = monitor.made()?;
        // What the kernel says counts more, where it says anything.
        made.merge &= merging::is_mergeable(process).unwrap_or(true);
        if options.network.vfio.is_some() {
            unlock(process)?;
        }
        if options.pin_vcpus {
            qmp::pin(&made.vcpus, &builder.spec.cpu_set)?;
        }
        Ok((monitor, made))
    };
    read().map_err(|why: String| not_started(builder, why))
}

fn not_started(builder: &GuestBuilder<'_>, why: String) -> PlatformError {
    // Its last words are on their way.
    std::thread::sleep(Duration::from_millis(20));
    builder.failed("start QEMU", why, "See below what it said")
}

/// Lets a process lock all memory: a device that is passed through maps some of it after its user was changed, and root's right to
/// is gone by then.
fn unlock(process: u32) -> std::result::Result<(), String> {
    let all = rustix::process::Rlimit { current: None, maximum: None };
    let set = rustix::process::prlimit(Pid::from_raw(process.cast_signed()), rustix::process::Resource::Memlock, all);
    set.map(drop).map_err(|error| format!("its limit on locked memory could not be lifted: {error}"))
}

/// Whether a child of ours is no more, or waits to be buried.
pub(super) fn has_ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Reads back what was granted.
fn stand(
    mut builder: GuestBuilder<'_>,
    options: &Options,
    prepared: &Prepared,
    (monitor, made): (Monitor, Made),
    (outside, root): (Option<IpAddr>, Option<PathBuf>),
    data: Data,
) -> Result<Box<dyn Guest>> {
    let facts = builder.facts()?;
    let mtu = outside.is_none().then_some(builder.site.mtu);
    let kvm = prepared.chosen.is_kvm();
    let mut rows = readback::rows(builder.spec, &made, &facts, kvm, mtu, options.pin_vcpus);
    let process = builder.channel_pid().unwrap_or_default();
    let asked = Asked {
        queues: if outside.is_none() { options.network.queues } else { 0 },
        free_page_reporting: options.memory.free_page_reporting,
        huge_pages: options.memory.huge_pages.then_some(builder.spec.size.memory.0),
        append: &options.append,
    };
    rows.extend(inside::rows(asked, &facts, process));
    for (part, asked) in data.asked() {
        rows.extend(readback::disk(part, &asked, &made.disks, &builder.diagnostics()));
    }
    let threads =
        Threads { process, vcpus: made.vcpus, iothreads: made.iothreads, group: builder.groups().into_iter().next() };
    let (address, parity) = (outside, Some(rows));
    let monitor = monitor.shared();
    let counts = kvm.then(|| counts(&monitor, threads.process));
    let balloon = builder.spec.balloon.then(|| balloon(monitor.clone(), builder.spec.size.memory.0));
    let snapshot = snapshot::refusal(options).is_none().then(|| snapshot::by(monitor.clone(), root));
    let pause: Option<Pause> = Some(Box::new(move |still| monitor.lock().pause(still)));
    let warm = Particulars { pause, snapshot, ..Particulars::default() };
    let mut particulars = Particulars { address, parity, counts, balloon, booted: true, ..warm };
    let claims = data.place(&mut builder, options.image.is_own(), &mut particulars)?;
    particulars.charges = Some(Box::new(move || {
        // The guest's rights to devices of the user's go when the guest goes.
        let _ = &claims;
        threads.charges()
    }));
    builder.finish(particulars)
}

/// KVM's counts of the guest: from QEMU, or from the kernel where QEMU is older.
fn counts(monitor: &SharedMonitor, process: u32) -> Counts {
    match qmp::counts(monitor)()() {
        Ok(_) => qmp::counts(monitor),
        Err(_) => kernels_counts(process),
    }
}

/// The machine's balloon, once the guest's driver has said something of its memory, or why it has none, such as a guest without a driver.
fn balloon(monitor: SharedMonitor, most: u64) -> std::result::Result<Arc<dyn Balloon>, String> {
    MachineBalloon::inflatable(monitor, most).map(|balloon| Arc::new(balloon) as Arc<dyn Balloon>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_counted() {
        let text = "MemTotal: 1 kB\nHugePages_Total:      10\nHugePages_Free:        3\nHugepagesize:       2048 kB\n";
        assert_eq!(free_huge_pages(text), Some((2 << 20, 3)));
        assert_eq!(free_huge_pages("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn an_ended_child_is_seen() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        qmp::wait_for(
            || false,
            LISTENS,
            || {
                if has_ended(child.id()) { Ok(()) } else { Err(std::io::Error::other("it runs")) }
            },
        )
        .unwrap();
        child.wait().unwrap();
        assert!(!has_ended(std::process::id()));
    }
}
