//! What a reader of a report must know about a machine.

use super::accel::Chosen;
use super::command::{self, Basics};
use super::confine;
use super::options::{Aio, Cache, DataDisk, DiskFormat, Image, Initiator, Machine, Options};
use crate::machine::kernel as hosts;
use crate::machine::target::DISCLOSURE as DISCLOSURE_TARGET;
use crate::machine::volume::Part;

/// The sentences.
pub(super) fn disclosures(options: &Options, chosen: &Chosen) -> Vec<String> {
    let mut disclosures = vec![accel(chosen), machine(options, chosen), image(options)];
    if let Some(words) = kernel(options, chosen) {
        disclosures.push(words);
    }
    disclosures.extend(chosen.is_kvm().then(hosts::halt_polling));
    disclosures.push(confine::disclosure().into());
    disclosures.push(network(options));
    disclosures.extend(options.disks().map(|(part, disk)| data_disk(part, disk)));
    disclosures.push(memory(options));
    if options.outside_quota {
        disclosures.push(
            "What serves the guest beside its virtual CPUs is outside the CPU quota: the arm may take more CPU time than one whose \
             limit counts all of it."
                .into(),
        );
    }
    disclosures.push(if options.pin_vcpus {
        "Each virtual CPU stays on one CPU of the guest's CPU set, in turn.".into()
    } else {
        "Virtual CPUs move freely within the guest's CPU set.".into()
    });
    disclosures
}

fn accel(chosen: &Chosen) -> String {
    match chosen {
        Chosen::Kvm => "The guest runs on the processor through KVM.".into(),
        Chosen::Tcg(why) => {
            let why = why.as_ref().map(|why| format!(" KVM was not used: {why}.")).unwrap_or_default();
            format!("The guest is emulated in software (TCG): its figures are not those of a virtual machine.{why}")
        }
    }
}

fn machine(options: &Options, chosen: &Chosen) -> String {
    let (what, cpu) = (options.machine.name(), cpu_model(options, chosen));
    let boots = match (&options.image, &options.firmware) {
        (Image::File(_), Some(path)) => format!(", booted by the firmware {}", path.display()),
        (Image::File(_), None) => ", booted by its BIOS".into(),
        _ => ", its kernel loaded directly".into(),
    };
    format!("The machine is `{what}` with the processor `{cpu}`{boots}.")
}

/// The processor that the guest sees.
pub(super) fn cpu_model<'a>(options: &'a Options, chosen: &Chosen) -> &'a str {
    options.cpu_model.as_deref().unwrap_or(if chosen.is_kvm() { "host" } else { "max" })
}

fn kernel(options: &Options, chosen: &Chosen) -> Option<String> {
    if options.image.is_own() {
        return None;
    }
    let basics = Basics {
        machine: options.machine,
        kvm: chosen.is_kvm(),
        cpu: "",
        cpus: 1,
        boot: None,
        append: &options.append,
    };
    let words = command::kernel_words(&basics).join(" ");
    Some(format!("The guest's kernel command line has `{words}`."))
}

fn image(options: &Options) -> String {
    let disk = || {
        let clone = match options.disk.clone {
            DiskFormat::Qcow2 => "a qcow2 overlay over it",
            DiskFormat::Raw => "a raw copy of it",
        };
        format!(
            "Each guest writes to {clone}, a virtio-blk disk {}.",
            settings(options.disk.cache, options.disk.aio, options.disk.iothread)
        )
    };
    match &options.image {
        Image::Debian(debian) if debian.packages.is_empty() => {
            format!("The root is a Debian built by tare. {}", disk())
        }
        Image::Debian(debian) => {
            format!("The root is a Debian built by tare with {}. {}", debian.packages.join(", "), disk())
        }
        Image::File(file) => {
            format!("The root is the image {}, set up by its cloud-init. {}", file.path.display(), disk())
        }
        shared => shared.shared_disclosure().unwrap_or_default(),
    }
}

fn settings(cache: Cache, aio: Aio, iothread: bool) -> String {
    let cache = match cache {
        Cache::None => "past the host's cache",
        Cache::Writeback => "through the host's cache (writeback)",
        Cache::Writethrough => "through the host's cache, each write to the disk (writethrough)",
        Cache::Unsafe => "through the host's cache WITHOUT flushes (unsafe)",
    };
    let aio = match aio {
        Aio::Threads => "by threads",
        Aio::Native => "by asynchronous calls",
        Aio::IoUring => "by io_uring",
    };
    let own = if iothread { ", in an I/O thread of its own" } else { "" };
    format!("{cache}, {aio}{own}")
}

/// Where a guest's data are: those of a workload, and the empty disk of a study that asks for one; or their log.
fn data_disk(part: Part, data: &DataDisk) -> String {
    let (noun, content) = match part {
        Part::Data => (part.disk(), "a workload's data"),
        Part::Log => (part.disk(), "the log of a workload's database"),
    };
    let set = settings(data.cache, data.aio, data.iothread);
    if let Some(initiator) = data.iscsi {
        let by = match initiator {
            Initiator::Hypervisor => "QEMU logs in to, and the guest sees as a virtio-blk disk",
            Initiator::Guest => "the guest logs in to, over its own network card",
        };
        let whose = data.san.as_ref().map_or_else(
            || DISCLOSURE_TARGET.to_owned(),
            |san| format!("The target is {} at {}; its unit is overwritten before each guest.", san.target, san.portal),
        );
        let queue = data.queue_depth.map(|depth| format!(" It has at most {depth} commands under way at one time."));
        let queue = queue.unwrap_or_default();
        let within =
            data.directory.as_ref().map(|directory| format!(" Its file is in {} of the host.", directory.display()));
        let within = within.unwrap_or_default();
        return format!(
            "The {noun}, with {content} where it brings any, is a unit of an iSCSI target that {by}.{queue}{within} {whose}"
        );
    }
    let format = data.format.name();
    let overwritten =
        if data.overwrite { format!(", overwritten with {content} before each guest") } else { String::new() };
    let what = match (&data.device, data.size) {
        (Some(device), _) => format!("the host's block device {}{overwritten}", device.display()),
        (None, Some(size)) => format!("a new {format} file of {size}, with {content} where it brings any"),
        (None, None) => format!("a {format} clone of a disk with {content}, where it brings any"),
    };
    let within = data.directory.as_ref().map(|directory| format!(", in {} of the host", directory.display()));
    let what = format!("{what}{}", within.unwrap_or_default());
    let at = data.mount(part);
    let at =
        at.map_or("not mounted unless it has data".to_owned(), |at| format!("mounted on {at} as {}", data.filesystem));
    format!("The {noun} is {what}, virtio-blk {set}; {at}.")
}

fn network(options: &Options) -> String {
    let network = &options.network;
    if let Some(vfio) = &network.vfio {
        return format!("The network card is the host's device {}, passed through.", vfio.device);
    }
    let by = match network.vhost() {
        Ok(true) => "the host's kernel (vhost-net)",
        Ok(false) => "QEMU itself (no vhost-net)",
        Err(_) => "vhost-net, which is not here",
    };
    let offloads = match network.offloads {
        None => "segmentation offloads as in the lab",
        Some(true) => "segmentation offloads on",
        Some(false) => "segmentation offloads off",
    };
    let mut sentence = format!(
        "The network card is virtio-net on a tap with {} pair(s) of queues, its frames moved by {by}, {offloads}",
        network.queues
    );
    let set = [
        network.rx_queue_size.map(|n| format!("{n} frames wait to be received")),
        network.tx_queue_size.map(|n| format!("{n} frames wait to be sent")),
        network
            .tx
            .map(|tx| format!("sent by {}", if tx == super::network::Transmit::Timer { "a timer" } else { "turns" })),
        network.tx_timer_ns.map(|ns| format!("the timer waits {ns} ns")),
        network.tx_burst.map(|n| format!("{n} frames a turn at most")),
    ];
    set.into_iter().flatten().for_each(|part| sentence.push_str(&format!(", {part}")));
    sentence.push('.');
    sentence
}

fn memory(options: &Options) -> String {
    let memory = options.memory;
    let yes = |yes: bool, what: &str| yes.then(|| what.to_owned());
    let kinds = [
        yes(options.shares_root(), "shared with the file server"),
        yes(memory.huge_pages, "in huge pages"),
        yes(memory.free_page_reporting, "with freed pages reported and given back"),
    ];
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    let kinds = if kinds.is_empty() { "ordinary memory".to_owned() } else { kinds.join(", ") };
    let serial = if options.machine == Machine::Microvm { " Its devices are memory-mapped." } else { "" };
    format!(
        "The guest's memory is {kinds} of the host's; its control group may use {} more, for QEMU and what is beside it.{serial}",
        memory.allowance
    )
}
