//! Cost of one order on each arm, beside the metric that the verdict is about: a line an arm, a column a metric.

use tare_model::findings::{CaseFindings, Findings};
use tare_model::metric::{Unit, common};

use super::glance::{self, Measure};
use super::steps;
use super::table::Table;
use crate::plot::arms::{ArmLook, Arms};

/// Id of the metric of what a database server writes to its log.
const LOG: &str = "wal_bytes_per_order";

/// Metrics that are shown, in order, each with the head of its column.
const METRICS: [(&str, &str); 6] = [
    ("response_time_p50_s", "Time, median"),
    ("response_time_p99_s", "Time, p99"),
    (common::SERVICE_DEMAND, "CPU"),
    (LOG, "WAL"),
    (common::DISK_WRITE, "Disk writes"),
    (common::DISK_READ, "Disk reads"),
];

/// The table; `None` where nothing but time and CPU is known, which other tables tell.
pub(crate) fn table(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Table> {
    let measure = |(id, title): &(&str, &str)| {
        let metric = case.metrics.iter().find(|metric| metric.spec.id == *id && !metric.arms.is_empty())?;
        Some(Measure { title: (*title).to_owned(), note: String::new(), metric })
    };
    let measures: Vec<Measure<'_>> = METRICS.iter().filter_map(measure).collect();
    if measures.iter().all(|measure| measure.metric.spec.unit != Unit::Bytes) {
        return None;
    }
    let noun = steps::noun(case);
    let baseline = arms.label(&findings.plan.study.baseline);
    let log = if measures.iter().any(|measure| measure.metric.spec.id == LOG) {
        " WAL: bytes that the server wrote to its log."
    } else {
        ""
    };
    let caption = format!(
        "Cost of one {noun}: the estimate, and below it the difference to {baseline} within blocks, with its verdict \
         and [interval]. \u{2193} less is better. CPU: of server, guest and host together.{log} Disk: counted on the \
         host, other programs in the window included."
    );
    // The replica has its say as the floor that every verdict was judged by.
    let shown: Vec<&ArmLook> = arms.iter().filter(|arm| !arm.is_replica).collect();
    glance::table(caption, &measures, &shown, arms).filled()
}
