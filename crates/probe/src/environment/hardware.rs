//! The machine: CPU, memory, and whether it is one.

use std::collections::BTreeSet;

use procfs::{CpuInfo, FromRead};
use tare_model::environment::Section;

use super::{Facts, View};
use crate::text;

/// CPU flags that change how fast isolation, timing, copying or encryption are.
const FLAGS: [&str; 27] = [
    "hypervisor",
    "vmx",
    "svm",
    "ept",
    "npt",
    "constant_tsc",
    "nonstop_tsc",
    "tsc_known_freq",
    "tsc_reliable",
    "tsc_deadline_timer",
    "rdtscp",
    "arat",
    "pcid",
    "invpcid",
    "x2apic",
    "fsgsbase",
    "erms",
    "fsrm",
    "aes",
    "vaes",
    "avx2",
    "avx512f",
    "sha_ni",
    "ibrs",
    "ibrs_enhanced",
    "stibp",
    "user_shstk",
];

/// The CPUs: model, topology, frequency, idling, vulnerabilities.
pub(super) fn cpu(view: &View<'_>) -> Section {
    let mut facts = Facts::new("CPU");
    model(view, &mut facts);
    topology(view, &mut facts);
    let cpu = "sys/devices/system/cpu";
    facts.file(view, "online CPUs", &format!("{cpu}/online"));
    facts.file(view, "isolated CPUs", &format!("{cpu}/isolated"));
    facts.file(view, "tickless CPUs (nohz_full)", &format!("{cpu}/nohz_full"));
    facts.file(view, "SMT", &format!("{cpu}/smt/control"));
    facts.put_result("frequency driver", of_each_cpu(view, "cpufreq/scaling_driver"));
    facts.put_result("frequency governor", of_each_cpu(view, "cpufreq/scaling_governor"));
    facts.put_result("frequency limits, lowest (kHz)", of_each_cpu(view, "cpufreq/scaling_min_freq"));
    facts.put_result("frequency limits, highest (kHz)", of_each_cpu(view, "cpufreq/scaling_max_freq"));
    facts.put_result("energy preference", of_each_cpu(view, "cpufreq/energy_performance_preference"));
    facts.file(view, "boost", &format!("{cpu}/cpufreq/boost"));
    facts.file(view, "turbo off (intel_pstate)", &format!("{cpu}/intel_pstate/no_turbo"));
    facts.file(view, "idle driver", &format!("{cpu}/cpuidle/current_driver"));
    facts.file(view, "idle governor", &format!("{cpu}/cpuidle/current_governor"));
    facts.put_result("caches of CPU 0", caches(view));
    let vulnerabilities = format!("{cpu}/vulnerabilities");
    match view.names(&vulnerabilities) {
        Ok(names) => {
            for name in names {
                facts.file(view, &format!("vulnerability: {name}"), &format!("{vulnerabilities}/{name}"));
            }
        }
        Err(reason) => facts.put("vulnerabilities", reason),
    }
    facts.0
}

fn model(view: &View<'_>, facts: &mut Facts) {
    let info = view.text("proc/cpuinfo").and_then(|text| {
        CpuInfo::from_read(text.as_bytes()).map_err(|error| format!("not available: {error} (/proc/cpuinfo)"))
    });
    let field = |key: &str| -> Result<String, String> {
        let info = info.as_ref().map_err(Clone::clone)?;
        let value = info.get_field(0, key).or_else(|| info.fields.get(key).map(String::as_str));
        value.map(str::to_owned).ok_or_else(|| format!("not available: this kind of CPU does not tell ({key})"))
    };
    // arm64 gives numbers in place of a name (Arm, "MIDR_EL1"): 0x41/0xd08/0x0/3 is Arm's Cortex-A72 r0p3.
    let by_numbers = |why| {
        let keys = ["CPU implementer", "CPU part", "CPU variant", "CPU revision"];
        let numbers: Vec<_> = keys.into_iter().filter_map(|key| field(key).ok()).collect();
        if numbers.len() < keys.len() {
            Err(why)
        } else {
            Ok(format!("implementer/part/variant/revision {}", numbers.join("/")))
        }
    };
    facts.put_result("model", field("model name").or_else(by_numbers));
    let numbers = ["cpu family", "model", "stepping"].map(|key| field(key).unwrap_or_else(|_| "?".to_owned()));
    facts.put("family/model/stepping", numbers.join("/"));
    facts.put_result("microcode", field("microcode"));
    facts.put_result("clock now (MHz)", field("cpu MHz"));
    let present = field("flags").map(|flags| {
        let flags: BTreeSet<_> = flags.split(' ').collect();
        FLAGS.into_iter().filter(|flag| flags.contains(flag)).collect::<Vec<_>>().join(" ")
    });
    facts.put_result("flags that matter", present.or_else(|_| field("Features")));
}

/// Numbers of the CPUs that are online.
fn online(view: &View<'_>) -> Result<Vec<u32>, String> {
    let text = view.text("sys/devices/system/cpu/online")?;
    text::cpu_list(&text).ok_or_else(|| format!("not understood: {text}"))
}

fn topology(view: &View<'_>, facts: &mut Facts) {
    let counted = online(view).and_then(|cpus| {
        let mut sockets = BTreeSet::new();
        let mut cores = BTreeSet::new();
        for cpu in &cpus {
            let id = |name: &str| view.text(&format!("sys/devices/system/cpu/cpu{cpu}/topology/{name}"));
            let socket = id("physical_package_id")?;
            cores.insert((socket.clone(), id("die_id").unwrap_or_default(), id("core_id")?));
            sockets.insert(socket);
        }
        Ok(format!("{} / {} / {}", sockets.len(), cores.len(), cpus.len()))
    });
    facts.put_result("sockets / cores / threads", counted);
}

/// A setting that each CPU has for itself: the values that occur.
fn of_each_cpu(view: &View<'_>, file: &str) -> Result<String, String> {
    let mut values = BTreeSet::new();
    for cpu in online(view)? {
        values.insert(view.text(&format!("sys/devices/system/cpu/cpu{cpu}/{file}"))?);
    }
    Ok(values.into_iter().collect::<Vec<_>>().join(", "))
}

fn caches(view: &View<'_>) -> Result<String, String> {
    let dir = "sys/devices/system/cpu/cpu0/cache";
    let describe = |index: &String| {
        let read = |file: &str| view.text(&format!("{dir}/{index}/{file}")).ok();
        Some(format!("L{} {} {}", read("level")?, read("type")?.to_lowercase(), read("size")?))
    };
    Ok(view.names(dir)?.iter().filter_map(describe).collect::<Vec<_>>().join(", "))
}

/// Memory: how much, huge pages, sharing, swap.
pub(super) fn memory(view: &View<'_>) -> Section {
    let mut facts = Facts::new("Memory");
    let info = view.text("proc/meminfo");
    for (name, key) in [
        ("total (KiB)", "MemTotal"),
        ("swap (KiB)", "SwapTotal"),
        ("huge pages reserved", "HugePages_Total"),
        ("huge page size (KiB)", "Hugepagesize"),
    ] {
        let value = info.as_ref().map_err(Clone::clone).and_then(|text| {
            let number = text::value_of(text, key).map(|number| number.to_string());
            number.ok_or_else(|| format!("not available: no {key} in /proc/meminfo"))
        });
        facts.put_result(name, value);
    }
    let mm = "sys/kernel/mm";
    facts.file(view, "transparent huge pages", &format!("{mm}/transparent_hugepage/enabled"));
    facts.file(view, "transparent huge pages, defragmentation", &format!("{mm}/transparent_hugepage/defrag"));
    facts.file(view, "KSM running", &format!("{mm}/ksm/run"));
    facts.file(view, "KSM pages to scan", &format!("{mm}/ksm/pages_to_scan"));
    facts.file(view, "KSM sleep (ms)", &format!("{mm}/ksm/sleep_millisecs"));
    facts.file(view, "zswap", "sys/module/zswap/parameters/enabled");
    for name in ["swappiness", "overcommit_memory", "overcommit_ratio", "zone_reclaim_mode"] {
        facts.file(view, &format!("vm.{name}"), &format!("proc/sys/vm/{name}"));
    }
    facts.file(view, "NUMA balancing", "proc/sys/kernel/numa_balancing");
    facts.0
}

/// Whether this host is itself a virtual machine, and whether it can carry some.
pub(super) fn virtualisation(view: &View<'_>) -> Section {
    let mut facts = Facts::new("Virtualisation");
    facts.put("this host is a virtual machine", is_guest(view));
    facts.file(view, "DMI vendor", "sys/class/dmi/id/sys_vendor");
    facts.file(view, "DMI product", "sys/class/dmi/id/product_name");
    facts.file(view, "hypervisor type", "sys/hypervisor/type");
    let kvm = if view.exists("dev/kvm") { "present (whether it works, only a boot tells)" } else { "not present" };
    facts.put("/dev/kvm", kvm);
    for module in ["kvm_intel", "kvm_amd"] {
        facts.file(view, &format!("{module}: nested"), &format!("sys/module/{module}/parameters/nested"));
    }
    facts.put(
        "kvm_pvm (software virtualisation)",
        if view.exists("sys/module/kvm_pvm") { "loaded" } else { "not loaded" },
    );
    facts.0
}

/// The answer with its evidence. x86 says so in a CPU flag; elsewhere the firmware's vendor must do.
fn is_guest(view: &View<'_>) -> String {
    /// Vendors and products that only hypervisors give themselves (systemd's src/basic/virt.c has the same).
    const HYPERVISORS: [&str; 12] = [
        "qemu",
        "kvm",
        "vmware",
        "virtualbox",
        "innotek",
        "xen",
        "bochs",
        "parallels",
        "bhyve",
        "openstack",
        "amazon ec2",
        "google compute engine",
    ];
    let cpuinfo = view.text("proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    if flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor")) {
        return "yes (the CPU has the flag `hypervisor`)".to_owned();
    }
    if let Ok(kind) = view.text("sys/hypervisor/type") {
        return format!("yes (/sys/hypervisor/type is {kind})");
    }
    for file in ["sys_vendor", "product_name"] {
        let name = view.text(&format!("sys/class/dmi/id/{file}")).unwrap_or_default().to_lowercase();
        if let Some(found) = HYPERVISORS.into_iter().find(|hypervisor| name.contains(hypervisor)) {
            return format!("yes (the firmware says {found})");
        }
    }
    match flags {
        Some(_) => "no sign of it (no CPU flag, no firmware vendor)".to_owned(),
        None => "unknown (this kind of CPU has no flag for it, and the firmware names no hypervisor)".to_owned(),
    }
}
