//! A metric by guest and driver, in the form of the published tables: a line a driver, a column an arm, the sum below.

use std::collections::BTreeSet;

use tare_model::findings::{
    ArmParts, CaseFindings, Comparison, Estimate, Findings, MetricFindings, PartEstimate, Verdict,
};

use super::table::{Cell, Table};
use crate::format::{self, Scale};
use crate::plot::arms::{ArmLook, Arms};
use crate::words;

/// Figures of one case by guest and driver.
pub(crate) struct Parts<'a> {
    arms: Vec<(&'a ArmParts, ArmLook)>,
    metric: &'a MetricFindings,
    /// All figures on one scale, so that a column can be added up by eye.
    scale: Scale,
    /// Each guest and driver, in the order of the table.
    keys: Vec<(u32, Option<u32>)>,
    /// Whether others published the figures, once each.
    published: bool,
}

impl<'a> Parts<'a> {
    /// `None` where a trial has but one guest with one driver.
    pub(crate) fn new(case: &'a CaseFindings, findings: &Findings, arms: &Arms) -> Option<Self> {
        let published = findings.plan.study.published.is_some();
        let first = case.parts.first()?;
        let metric = case.metrics.iter().find(|metric| metric.spec.id == first.metric)?;
        let shown = arms.having(|id| case.parts.iter().find(|own| own.arm == id));
        let largest = shown.iter().map(|(own, _)| own.total.value).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let parts = shown.iter().flat_map(|(own, _)| &own.parts);
        let keys: BTreeSet<(u32, bool, Option<u32>)> =
            parts.map(|part| (part.guest, part.driver.is_none(), part.driver)).collect();
        // The whole guest says nothing new where it has one driver.
        let several = |guest: u32| keys.iter().filter(|(own, _, driver)| *own == guest && driver.is_some()).count() > 1;
        let kept = keys.iter().filter(|(guest, whole, _)| if *whole { true } else { several(*guest) });
        let keys = kept.map(|(guest, _, driver)| (*guest, *driver)).collect();
        Some(Self { arms: shown, metric, scale: Scale::new(&metric.spec.unit, largest), keys, published })
    }

    /// What the table is called.
    pub(crate) fn title(&self) -> String {
        format!(
            "{} by guest{}",
            words::sentence_case(&self.metric.spec.label),
            if self.drivers() { " and driver" } else { "" }
        )
    }

    fn drivers(&self) -> bool {
        self.keys.iter().any(|(_, driver)| driver.is_some())
    }

    /// How many are added up, for people: `4 guests`, `8 drivers`.
    fn summands(&self) -> String {
        let drivers = self.keys.iter().filter(|(_, driver)| driver.is_some()).count();
        match drivers {
            0 => format::plural(self.keys.len() as u64, "guest", "guests"),
            n => format::plural(n as u64, "driver", "drivers"),
        }
    }

    /// What the sum of one arm is made of, for people.
    fn median_of(&self, own: &ArmParts) -> String {
        match own.total.n {
            1 if self.published => "as published".to_owned(),
            1 => "one trial".to_owned(),
            n => format!("median of {n} trials"),
        }
    }

    /// `medians of 6 trials`, or `medians of 3 to 6 trials` where arms differ.
    fn medians(&self) -> String {
        let counts = || self.arms.iter().map(|(own, _)| own.total.n);
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        match (least, most) {
            (1, 1) if self.published => "as published".to_owned(),
            (1, 1) => "one trial".to_owned(),
            (a, b) if a == b => format!("medians of {b} trials"),
            (a, b) => format!("medians of {a} to {b} trials"),
        }
    }

    fn text(&self, value: f64) -> String {
        if value.is_finite() { self.scale.text(value) } else { format::NOT_A_NUMBER.to_owned() }
    }

    fn comparison(&self, arm: &str) -> Option<&'a Comparison> {
        self.metric.comparisons.iter().find(|comparison| comparison.arm == arm)
    }

    fn row(&self, name: Cell, of: impl Fn(&ArmParts, &ArmLook) -> Cell) -> Vec<Cell> {
        std::iter::once(name).chain(self.arms.iter().map(|(own, look)| of(own, look))).collect()
    }

    /// The table.
    pub(crate) fn table(&self, findings: &Findings, arms: &Arms) -> Table {
        let first = if self.drivers() { "Guest and driver" } else { "Guest" };
        let baseline = arms.label(&findings.plan.study.baseline);
        let mut table = Table::by_arm(self.caption(&baseline), first, self.arms.iter().map(|(_, look)| look));
        for (guest, driver) in &self.keys {
            let find = |own: &ArmParts| -> Option<PartEstimate> {
                own.parts.iter().find(|part| part.guest == *guest && part.driver == *driver).cloned()
            };
            let of = |own: &ArmParts, _: &ArmLook| {
                find(own).map_or_else(Cell::none, |part| Cell::parts(self.scale.parts(&part.estimate)))
            };
            let of_drivers = self.drivers() && driver.is_none();
            let row = self.row(Cell::text(self.name(*guest, *driver)), of);
            table.rows.push(if of_drivers { row.into_iter().map(Cell::strong).collect() } else { row });
        }
        let sum = Cell::text(format!("Sum over the {}", self.summands())).strong();
        table.rows.push(self.row(sum, |own, _| Cell::parts(self.scale.parts(&own.total)).strong()));
        if self.arms.len() > 1 && !self.metric.comparisons.is_empty() {
            let name = Cell::text(format!("The sum against {baseline}"));
            table.rows.push(self.row(name, |own, look| self.against(own, look)));
        }
        table
    }

    fn name(&self, guest: u32, driver: Option<u32>) -> String {
        let drivers = self.keys.iter().filter(|(own, driver)| *own == guest && driver.is_some()).count();
        match (driver, drivers) {
            (Some(driver), _) => format!("guest {guest}, driver {driver}"),
            (None, 0) => format!("guest {guest}"),
            (None, 2) => format!("guest {guest}, both"),
            (None, n) => format!("guest {guest}, all {n}"),
        }
    }

    /// The ratio of the sum to the baseline's, which is the comparison of the metric; none where it must not be compared.
    fn against(&self, own: &ArmParts, look: &ArmLook) -> Cell {
        if look.is_baseline {
            return Cell::text("1");
        }
        let Some(comparison) = self.comparison(&own.arm) else { return Cell::none() };
        let (word, class) = (words::verdict_short(comparison.verdict), words::verdict_class(comparison.verdict));
        if !has_ratio(comparison) {
            return Cell { word, tag_class: class, ..Cell::none() };
        }
        let (ratio, interval) = multiple(&comparison.ratio);
        // A factor says no more than the multiple above it.
        let tag =
            Some(format::ratio_parts(&comparison.ratio).value).filter(|tag| tag.ends_with('%')).unwrap_or_default();
        Cell { tag, word, tag_class: class, ..Cell::with_note(ratio, interval) }
    }

    fn caption(&self, baseline: &str) -> String {
        let spec = &self.metric.spec;
        let unit = if self.scale.unit().is_empty() { String::new() } else { format!(", in {}", self.scale.unit()) };
        let drivers = if self.drivers() { " and driver" } else { "" };
        let each = if self.drivers() {
            " A driver is a separate process that simulates its clients. All guests and drivers run at the same time."
        } else {
            " All guests run at the same time."
        };
        if self.published {
            let label = &spec.label;
            return format!("By guest{drivers}: {label}{unit}, {}; as published.", words::better(spec.better));
        }
        format!(
            "By guest{drivers}: {}{unit}, {}; {}, with [interval] from 6 trials on.{each} The sum is the median of the \
             sums of the trials, so the figures above it need not add up to it. Other tables show an estimate of the \
             same metric instead of a median; it may differ. The ratio to {baseline} is taken within blocks.",
            spec.label,
            words::better(spec.better),
            self.medians()
        )
    }

    /// Each arm in a line, for a terminal.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |(own, look): &(&ArmParts, ArmLook)| {
            let guests: Vec<String> = own
                .parts
                .iter()
                .filter(|part| part.driver.is_none())
                .map(|part| self.text(part.estimate.value))
                .collect();
            let sum = self.scale.with_unit(&self.text(own.total.value));
            let ratio = self.comparison(&own.arm).filter(|c| has_ratio(c));
            let ratio = ratio.map_or_else(String::new, |c| {
                let (ratio, interval) = multiple(&c.ratio);
                let within = if self.published { "" } else { " within blocks" };
                format!(", {ratio} times the baseline's{within} {interval}").trim_end().to_owned()
            });
            format!(
                "{} by guest: {}; sum over the {} {sum}{ratio} ({})",
                look.label,
                guests.join(", "),
                self.summands(),
                self.median_of(own)
            )
        };
        self.arms.iter().map(line).collect()
    }
}

/// Whether a comparison has a ratio that may be shown.
const fn has_ratio(comparison: &Comparison) -> bool {
    comparison.ratio.n > 0
        && comparison.ratio.value.is_finite()
        && !matches!(comparison.verdict, Verdict::NotComparable)
}

/// A ratio and its interval as multiples, with as many digits as the interval lets mean something: `1.0478` and `[1.0431, 1.0525]`,
/// `0.92` and `[0.10, 8.97]`.
fn multiple(ratio: &Estimate) -> (String, String) {
    let bounds = format::bounds(ratio);
    let digits = match bounds.map_or(0.0, |(low, high)| (high - low) / 2.0) {
        half if half < 0.01 => 4,
        half if half < 0.1 => 3,
        _ => 2,
    };
    let text = |value: f64| match value {
        v if v < 0.01 => "<0.01".to_owned(),
        v if v > 100.0 => ">100".to_owned(),
        v if v < 10.0 => format::fixed(v, digits),
        v => format::fixed(v, 1),
    };
    let interval = bounds.map(|(low, high)| format!("[{}, {}]", text(low), text(high)));
    (text(ratio.value), interval.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiple_has_no_more_digits_than_its_interval_bears() {
        let of = |value, bounds: Option<(f64, f64)>| {
            let (low, high) = bounds.unzip();
            multiple(&Estimate { value, low, high, level: 0.95, n: 3, method: String::new() })
        };
        let texts = |value: &str, interval: &str| (value.to_owned(), interval.to_owned());
        assert_eq!(of(1.047_8, Some((1.041_4, 1.054_2))), texts("1.0478", "[1.0414, 1.0542]"));
        assert_eq!(of(0.970_3, Some((0.950_1, 0.990_9))), texts("0.970", "[0.950, 0.991]"));
        assert_eq!(of(0.924_9, Some((0.095_4, 8.967_2))), texts("0.92", "[0.10, 8.97]"));
        assert_eq!(of(0.131_0, Some((0.003, 250.0))), texts("0.13", "[<0.01, >100]"));
        assert_eq!(of(1.047_8, None), texts("1.0478", ""), "of published figures nobody knows the interval");
    }
}
