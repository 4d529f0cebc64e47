//! What KVM counts of a guest: why its virtual CPUs stopped running the guest, and how halts were waited for.
//! The names are the kernel's own (Documentation/virt/kvm/api.rst, `KVM_GET_STATS_FD`).

use crate::metric::{Better, MetricSpec, Unit};

/// KVM's name of the count of all exits.
pub const EXITS: &str = "exits";

/// KVM's name of each count that is kept, and what it says. The first is the whole; KVM gives a reason for some of it.
pub const COUNTS: [(&str, &str); 16] = [
    (EXITS, "all exits"),
    ("io_exits", "port input and output"),
    ("mmio_exits", "memory of devices"),
    ("halt_exits", "nothing to do (HLT)"),
    ("irq_exits", "interrupts of the host"),
    ("irq_window_exits", "waits to deliver an interrupt"),
    ("nmi_window_exits", "waits to deliver an NMI"),
    ("request_irq_exits", "waits of the hypervisor's program to deliver an interrupt"),
    ("signal_exits", "signals to the hypervisor's program"),
    ("hypercalls", "hypercalls"),
    ("pf_taken", "page faults that KVM handled"),
    ("insn_emulation", "instructions emulated"),
    ("halt_attempted_poll", "halts that the host polled before it slept"),
    ("halt_successful_poll", "of which ended while it polled"),
    ("halt_poll_success_ns", "time polled with success, ns"),
    ("halt_poll_fail_ns", "time polled in vain, ns"),
];

/// The series of samples that one of KVM's counts is in.
pub fn series(count: &str) -> String {
    format!("kvm_{count}")
}

/// The metric of one of KVM's counts for each unit of work.
pub fn metric(count: &str) -> String {
    format!("kvm_{count}_per_operation")
}

/// Whether a metric is one of KVM's counts.
pub fn is_count(metric: &str) -> bool {
    COUNTS.iter().any(|(count, _)| self::metric(count) == metric)
}

/// The metrics, `per` unit of work such as `an operation`.
pub fn specs(per: &str) -> Vec<MetricSpec> {
    let spec = |(count, says): &(&str, &str)| {
        let label = if *count == EXITS { format!("KVM exits {per}") } else { format!("KVM, {says}, {per}") };
        MetricSpec::new(&metric(count), &label, Unit::Count, Better::Lower)
    };
    COUNTS.iter().map(spec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_a_metric_of_its_own() {
        let ids: std::collections::BTreeSet<String> = specs("an operation").into_iter().map(|spec| spec.id).collect();
        assert_eq!(ids.len(), COUNTS.len());
        assert!(ids.iter().all(|id| is_count(id)) && !is_count("service_demand_cpu_s"));
    }
}
