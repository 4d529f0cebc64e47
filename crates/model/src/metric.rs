//! What is measured, in which unit, and which way is better.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a metric. Values are always stored in these, never in their multiples.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Operations in a second.
    OperationsPerSecond,
    /// Bits in a second.
    BitsPerSecond,
    /// CPU seconds an operation.
    CpuSecondsPerOperation,
    /// CPU seconds a byte.
    CpuSecondsPerByte,
    /// Bytes.
    Bytes,
    /// A part of a whole, from 0 to 1, which is read as per cent.
    Share,
    /// A bare number.
    Count,
    /// A unit of the user's own (`exec`).
    Other(String),
}

/// Which way a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// A metric that a workload yields once a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricSpec {
    /// Name in files, such as `response_time_p50_s`.
    pub id: String,
    /// Name for people, such as `response time, median`.
    pub label: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Whether this is the metric that the verdict of a case is about. Exactly one is.
    pub primary: bool,
}

impl MetricSpec {
    /// A metric, secondary until said otherwise.
    pub fn new(id: &str, label: &str, unit: Unit, better: Better) -> Self {
        Self { id: id.to_owned(), label: label.to_owned(), unit, better, primary: false }
    }

    /// The same metric as the one that the verdict is about.
    #[must_use]
    pub fn primary(mut self) -> Self {
        self.primary = true;
        self
    }

    /// These metrics with the one of this id, or else the first, as the primary one, which comes first.
    pub fn with_primary(mut metrics: Vec<Self>, id: &str) -> Vec<Self> {
        let at = metrics.iter().position(|metric| metric.id == id).unwrap_or(0);
        let chosen = metrics.remove(at).primary();
        metrics.insert(0, chosen);
        metrics
    }
}

/// Ids of the metrics of trials that are conditions of one guest.
pub mod isolation {
    /// What the neighbours achieved together in a second of their turns: iterations of what they do.
    pub const WORK: &str = "aggressor_work_per_s";
    /// Longest delay with which a thread of the controller woke up in the turns of a condition, seconds.
    pub const HOST_DELAY: &str = "host_delay_max_s";
}

/// Metric ids that more than one crate knows. Those that tare itself adds to a workload's are the first.
pub mod common {
    /// Seconds from the request to create the guest to its agent's first answer.
    pub const START_TIME: &str = "start_time_s";
    /// Of the start of a machine, seconds from the request to create it to the beginning of its kernel's clock: what the host makes
    /// for it, the hypervisor, its firmware, and the loading and unpacking of the kernel. Absent of guests without a kernel of their own.
    pub const START_FIRMWARE: &str = "start_firmware_s";
    /// Of the start of a machine, seconds from there to the beginning of user space. Absent as above.
    pub const START_KERNEL: &str = "start_kernel_s";
    /// Of the start of a machine, seconds from there to the agent's first answer; an init of the image's own is in it. Absent as above.
    pub const START_AGENT: &str = "start_agent_s";
    /// The parts of a machine's start, in their order. They add up to [`START_TIME`].
    pub const START_PARTS: [&str; 3] = [START_FIRMWARE, START_KERNEL, START_AGENT];
    /// Seconds from the first act of making a guest to its agent's first answer, mean of all guests that were made as the workload's work.
    pub const STARTS_MEAN: &str = "start_mean_s";
    /// Seconds from the first act of making a guest to the end of a command in it, mean of all guests that were made as the workload's work.
    pub const TASKS_MEAN: &str = "task_mean_s";
    /// Bytes of the host's memory that a guest takes when it has answered and nothing was asked of it yet: anonymous,
    /// shared and kernel memory of its control group, page cache left out. Absent without a control group.
    pub const IDLE_MEMORY: &str = "idle_memory_bytes";
    /// What a guest itself weighs, whatever it is asked to do: the metrics over all cases that answer a study together with the primary ones.
    pub const OF_THE_GUEST: [&str; 2] = [START_TIME, IDLE_MEMORY];
    /// CPU seconds of the whole SUT an operation (or a byte), host's kernel threads included.
    pub const SERVICE_DEMAND: &str = "service_demand_cpu_s";
    /// Share of the CPUs of all measured guests (0 to 1) that their control groups used in the measured window, as the host counts it:
    /// of a machine with all that emulates it for the guest. Of machines elsewhere that are held to a share: as their own kernels count
    /// it, without what was stolen from them. Absent otherwise without a control group.
    pub const GUEST_CPU: &str = "guest_cpu_share";
    /// Largest resident size of one instance of the application, bytes, mean of a guest's instances. Of workloads that start some.
    pub const INSTANCE_MEMORY: &str = "instance_memory_bytes";
    /// Bytes that were written to the host's disk under the guests' data in the measured window, by all programs together,
    /// for each unit of work. Only where guests are given data.
    pub const DISK_WRITE: &str = "disk_write_bytes_per_operation";
    /// The same read from it.
    pub const DISK_READ: &str = "disk_read_bytes_per_operation";

    /// Operations a second, as metric and as the driver's series over time.
    pub const OPERATIONS: &str = "operations_per_s";
    /// Bits a second, likewise, where bytes are the unit of work.
    pub const BITS: &str = "bits_per_s";
    /// Response times of the operations that ended, seconds a second: a series of the driver over time that adds up over drivers. Over the
    /// rate it is their mean response time; by Little's law it is how many were under way on average.
    pub const RESPONSE_SUM: &str = "response_s_per_s";
    /// Wall time of a command, seconds; of several the mean.
    pub const WALL_TIME: &str = "wall_time_s";
    /// Mean of the response times, seconds.
    pub const RESPONSE_MEAN: &str = "response_time_mean_s";
    /// Their median.
    pub const RESPONSE_P50: &str = "response_time_p50_s";
    /// Their 99th percentile.
    pub const RESPONSE_P99: &str = "response_time_p99_s";
    /// How the ids of all metrics of response times begin.
    pub const RESPONSE_TIME: &str = "response_time_";
    /// Share of operations with a wrong answer or none.
    pub const FAILED_SHARE: &str = "failed_share";

    /// CPUs of the host that the SUT used, as others published it.
    pub const HOST_CPU_CORES: &str = "host_cpu_cores";
    /// Bits a second that the guest sent, as others published it.
    pub const NETWORK_BITS: &str = "network_bits_per_s";
    /// Mean time of a request to a disk, seconds, as others published it.
    pub const DISK_TIME: &str = "disk_time_s";
}
