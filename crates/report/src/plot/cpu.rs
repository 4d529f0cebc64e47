//! CPU for one unit of work, stacked by where it was spent. Neighbours and foreign tasks are not part of the
//! work and stay out.

use tare_model::findings::ArmCpu;
use tare_model::metric::Unit;

use super::Figure;
use super::arms::Arms;
use super::stack::{PATTERNS, Part, Stacks};

/// The parts of an account in the order of the stack: name, class of its colour, pattern.
pub(crate) const PARTS: [(&str, &str, &str); 5] = [
    ("guest, user", "part-user", PATTERNS[0]),
    ("guest, system", "part-system", PATTERNS[1]),
    ("softirq", "part-softirq", PATTERNS[2]),
    ("irq", "part-irq", PATTERNS[3]),
    ("kernel threads", "part-other", PATTERNS[4]),
];

/// Stored unit of CPU for one unit of work.
pub(crate) fn unit(cpu: &ArmCpu) -> Unit {
    match cpu.unit_of_work.as_str() {
        "operation" => Unit::CpuSecondsPerOperation,
        "byte" => Unit::CpuSecondsPerByte,
        other => Unit::Other(format!("CPU s/{other}")),
    }
}

/// CPU seconds by part in the mean window, in the order of [`PARTS`].
pub(crate) fn seconds(cpu: &ArmCpu) -> [f64; 5] {
    let a = &cpu.account;
    [a.guest_user_s, a.guest_system_s, a.softirq_s, a.irq_s, a.kernel_s]
}

/// CPU seconds for one unit of work by part, in the order of [`PARTS`]: the estimate over the trials, shared out as the
/// mean account is. `None` where there is no such estimate.
pub(crate) fn parts(cpu: &ArmCpu) -> Option<[f64; 5]> {
    let (whole, seconds) = (cpu.per_work_s?, seconds(cpu));
    let all: f64 = seconds.iter().sum();
    let parts = seconds.map(|s| s / all * whole);
    (all > 0.0 && parts.iter().all(|part| part.is_finite())).then_some(parts)
}

/// Draws the stacks; `None` when no arm has an account.
pub(crate) fn figure(id: &str, accounts: &[ArmCpu], arms: &Arms) -> Option<Figure> {
    let part =
        |(name, class, pattern): (&str, &'static str, &'static str)| Part { name: name.to_owned(), class, pattern };
    let rows = accounts.iter().filter_map(|cpu| Some((cpu.arm.clone(), parts(cpu)?.to_vec())));
    let stacks = Stacks {
        parts: PARTS.map(part).to_vec(),
        rows: rows.collect(),
        unit: accounts.first().map_or(Unit::Count, unit),
        axis: "CPU of the system under test".to_owned(),
        title: "CPU for one unit of work on each arm, by where it was spent".to_owned(),
        none: "no CPU account",
    };
    (stacks.longest() > 0.0).then(|| Figure::draw(id, |page| stacks.draw(page, arms)))
}
