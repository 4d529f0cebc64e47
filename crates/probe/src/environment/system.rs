//! The kernel and its settings.

use procfs::process::MountInfos;
use procfs::{ConfigSetting, FromRead};
use tare_model::environment::Section;

use super::{Facts, SOFTWARE, View, redact};
use crate::irq::{IrqTime, kernel_config};

/// The kernel: version, command line, clock, preemption, accounting, control groups, security modules.
pub(super) fn kernel(view: &View<'_>, redacted: bool) -> Section {
    let mut facts = Facts::new("Kernel");
    facts.file(view, "release", "proc/sys/kernel/osrelease");
    facts.file(view, "version", "proc/sys/kernel/version");
    let command_line = view.text("proc/cmdline");
    facts.put_result(
        "command line",
        if redacted { command_line.map(|text| redact::command_line(&text)) } else { command_line },
    );
    let clock = "sys/devices/system/clocksource/clocksource0";
    facts.file(view, "clock source", &format!("{clock}/current_clocksource"));
    facts.file(view, "clock sources available", &format!("{clock}/available_clocksource"));
    facts.put_result("preemption", preemption(view));
    facts.put_result("timer ticks (1/s)", configured(view, "CONFIG_HZ"));
    facts.put("CPU time accounting", accounting(view));
    facts.put_result("control groups", control_groups(view));
    facts.file(view, "security modules", "sys/kernel/security/lsm");
    facts.file(view, "lockdown", "sys/kernel/security/lockdown");
    facts.file(view, "tainted", "proc/sys/kernel/tainted");
    let halt_poll = "sys/module/kvm/parameters/halt_poll_ns";
    if view.exists(halt_poll) {
        facts.file(view, "kvm.halt_poll_ns", halt_poll);
    }
    facts.put("pressure (PSI)", if view.exists("proc/pressure/cpu") { "on" } else { "off" });
    facts.0
}

/// A setting of the kernel's configuration.
fn configured(view: &View<'_>, key: &str) -> Result<String, String> {
    let config = kernel_config(view.root)
        .ok_or("not available: neither /proc/config.gz nor /boot/config-RELEASE is readable")?;
    Ok(match config.0.get(key) {
        Some(ConfigSetting::Yes) => "y".to_owned(),
        Some(ConfigSetting::Module) => "m".to_owned(),
        Some(ConfigSetting::Value(value)) => value.clone(),
        None => "not set".to_owned(),
    })
}

/// The model in force where debugfs tells, else the one built in, which `preempt=` may have changed.
fn preemption(view: &View<'_>) -> Result<String, String> {
    if let Ok(text) = view.text("sys/kernel/debug/sched/preempt") {
        return Ok(text);
    }
    let config =
        kernel_config(view.root).ok_or("not available: neither debugfs nor the kernel's configuration is readable")?;
    let models = ["PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT_LAZY", "PREEMPT_RT", "PREEMPT"];
    let model = models.into_iter().find(|model| config.0.contains_key(&format!("CONFIG_{model}")));
    let dynamic = if config.0.contains_key("CONFIG_PREEMPT_DYNAMIC") { ", can be changed at boot" } else { "" };
    Ok(format!("{} by configuration{dynamic}", model.unwrap_or("unknown")))
}

fn accounting(view: &View<'_>) -> String {
    let (how, apart) = match IrqTime::detect(view.root) {
        IrqTime::Configured(apart) => ("by the kernel's configuration", apart),
        IrqTime::Seen(apart) => ("as /proc/stat shows", apart),
    };
    let interrupts = if apart { "interrupts measured apart" } else { "interrupts charged to the task they interrupt" };
    let ticks = match configured(view, "CONFIG_TICK_CPU_ACCOUNTING").as_deref() {
        Ok("y") => "user and system time sampled at timer ticks",
        Ok(_) => "user and system time measured where ticks are off, else sampled",
        Err(_) => "user and system time: way unknown",
    };
    format!("{interrupts} ({how}); {ticks}")
}

fn control_groups(view: &View<'_>) -> Result<String, String> {
    /// Mount options of version 1 that stand beside the names of controllers.
    const NOT_CONTROLLERS: [&str; 7] = ["rw", "ro", "name", "xattr", "clone_children", "release_agent", "noprefix"];
    let text = view.text("proc/self/mountinfo")?;
    let mounts = MountInfos::from_read(text.as_bytes())
        .map_err(|error| format!("not available: {error} (/proc/self/mountinfo)"))?;
    let mut v1 = Vec::new();
    let mut v2 = None;
    for mount in mounts {
        match mount.fs_type.as_str() {
            "cgroup" => {
                v1.extend(mount.super_options.into_keys().filter(|key| !NOT_CONTROLLERS.contains(&key.as_str())))
            }
            "cgroup2" => {
                let path = mount.mount_point.join("cgroup.controllers");
                v2 = view.text(path.strip_prefix("/").unwrap_or(&path).to_str().unwrap_or_default()).ok();
            }
            _ => {}
        }
    }
    v1.sort_unstable();
    v1.dedup();
    let v2 = v2.map(|controllers| if controllers.is_empty() { "no controllers".to_owned() } else { controllers });
    Ok(match (v1.is_empty(), v2) {
        (true, Some(controllers)) => format!("version 2: {controllers}"),
        (false, Some(controllers)) => format!("both: version 1: {}; version 2: {controllers}", v1.join(" ")),
        (false, None) => format!("version 1: {}", v1.join(" ")),
        (true, None) => "none mounted".to_owned(),
    })
}

fn sysctls(view: &View<'_>, title: &str, prefix: &str, names: &[&str]) -> Facts {
    let mut facts = Facts::new(title);
    for name in names {
        facts.file(view, &format!("{prefix}.{}", name.replace('/', ".")), &format!("proc/sys/{prefix}/{name}"));
    }
    facts
}

/// Network settings that change response times or throughput.
pub(super) fn network(view: &View<'_>) -> Section {
    let names = [
        "ipv4/tcp_congestion_control",
        "ipv4/tcp_available_congestion_control",
        "core/default_qdisc",
        "core/rmem_max",
        "core/wmem_max",
        "core/rmem_default",
        "core/wmem_default",
        "ipv4/tcp_rmem",
        "ipv4/tcp_wmem",
        "ipv4/tcp_moderate_rcvbuf",
        "ipv4/tcp_slow_start_after_idle",
        "ipv4/tcp_autocorking",
        "ipv4/tcp_notsent_lowat",
        "ipv4/tcp_timestamps",
        "ipv4/tcp_sack",
        "ipv4/tcp_tw_reuse",
        "ipv4/tcp_fin_timeout",
        "ipv4/ip_local_port_range",
        "ipv4/ip_forward",
        "core/busy_poll",
        "core/busy_read",
        "core/somaxconn",
        "core/netdev_max_backlog",
        "core/netdev_budget",
        "core/netdev_budget_usecs",
        "core/dev_weight",
        "core/rps_sock_flow_entries",
        "core/bpf_jit_enable",
        "bridge/bridge-nf-call-iptables",
    ];
    sysctls(view, "Network", "net", &names).0
}

/// Scheduler settings.
pub(super) fn scheduler(view: &View<'_>) -> Section {
    let names = [
        "sched_autogroup_enabled",
        "sched_rt_period_us",
        "sched_rt_runtime_us",
        "sched_cfs_bandwidth_slice_us",
        "sched_schedstats",
        "sched_energy_aware",
        "timer_migration",
        "nmi_watchdog",
        "watchdog",
        "perf_event_paranoid",
    ];
    let mut facts = sysctls(view, "Scheduler", "kernel", &names);
    facts.file(view, "features", "sys/kernel/debug/sched/features");
    facts.file(view, "base slice (ns)", "sys/kernel/debug/sched/base_slice_ns");
    facts.0
}

/// What this process may do.
pub(super) fn limits(view: &View<'_>) -> Section {
    /// Capabilities that tare or a platform can need, with their numbers (include/uapi/linux/capability.h).
    const CAPABILITIES: [(&str, u32); 9] = [
        ("net_admin", 12),
        ("net_raw", 13),
        ("ipc_lock", 14),
        ("sys_ptrace", 19),
        ("sys_admin", 21),
        ("sys_nice", 23),
        ("sys_resource", 24),
        ("perfmon", 38),
        ("bpf", 39),
    ];
    let mut facts = Facts::new("Limits");
    let limits = view.text("proc/self/limits");
    for name in ["open files", "processes", "locked memory", "realtime priority"] {
        let value = limits.as_ref().map_err(Clone::clone).and_then(|text| {
            let row = text.lines().find_map(|line| line.strip_prefix("Max ")?.strip_prefix(name));
            let mut cells = row.unwrap_or_default().split_whitespace();
            match (cells.next(), cells.next()) {
                (Some(soft), Some(hard)) => Ok(format!("{soft} (hard {hard})")),
                _ => Err(format!("not available: no such line in /proc/self/limits ({name})")),
            }
        });
        facts.put_result(name, value);
    }
    let status = view.text("proc/self/status");
    let field = |key: &str| -> Result<String, String> {
        let text = status.as_ref().map_err(Clone::clone)?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned()).ok_or_else(|| format!("not available: no {key} in /proc/self/status"))
    };
    let capabilities = field("CapEff").and_then(|text| {
        let mask = u64::from_str_radix(&text, 16).map_err(|_| format!("not understood: {text}"))?;
        let (held, missing): (Vec<_>, Vec<_>) = CAPABILITIES.iter().partition(|(_, bit)| mask >> bit & 1 == 1);
        let list = |set: Vec<&(&str, u32)>| match set.is_empty() {
            true => "none".to_owned(),
            false => set.into_iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" "),
        };
        Ok(format!("held: {}; missing: {}", list(held), list(missing)))
    });
    facts.put_result("capabilities that matter", capabilities);
    facts.put_result("no new privileges", field("NoNewPrivs"));
    facts.put_result("seccomp mode", field("Seccomp"));
    facts.0
}

/// The operating system; callers add programs.
pub(super) fn software(view: &View<'_>) -> Section {
    let mut facts = Facts::new(SOFTWARE);
    let name = view.text("etc/os-release").and_then(|text| {
        let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        value.map(|value| value.trim_matches('"').to_owned()).ok_or_else(|| "not named in /etc/os-release".to_owned())
    });
    facts.put_result("operating system", name);
    facts.0
}
