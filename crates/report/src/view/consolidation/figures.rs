//! The figures of several instances in one guest.

use std::collections::BTreeSet;

use tare_model::findings::{ArmConsolidation, Estimate, InstanceSeries, LoadPoint, LoadSeries};
use tare_model::metric::Unit;

use super::{FigureView, Group, PartView, load, percent, points};
use crate::format;
use crate::plot::arms::ArmLook;
use crate::plot::curves::{Chart, Line, Panel, Point, on_one_scale};

/// Share of the guest's CPUs from which on it counts as saturated.
pub(super) const SATURATED: f64 = 0.95;

/// Pixels between the marks of two arms at one place of the axis.
pub(super) const APART: f64 = 7.0;

/// Whether a point is one at which the guest was overloaded: an objective was missed, or its CPUs were taken.
fn saturated(point: &LoadPoint) -> bool {
    point.met.is_some_and(|met| met < 1.0) || point.cpu.as_ref().is_some_and(|cpu| cpu.value >= SATURATED)
}

fn point(own: &LoadPoint, value: &Estimate) -> Point {
    Point { label: own.instances.to_string(), hollow: saturated(own), ..Point::new(own.clients, value) }
}

/// Two series are the same where their fixed values are.
pub(super) fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1e-6)
}

/// Values in order, each once.
pub(super) fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by(|a, b| same(*a, *b));
    all
}

impl<'a> Group<'a> {
    /// Clients of each instance for which there are series on some arm.
    pub(super) fn clients_each(&self) -> Vec<f64> {
        distinct(self.shown().flat_map(|(arm, _)| arm.by_load.iter().map(|series| series.clients_per_instance)))
    }

    pub(super) fn series(arm: &'a ArmConsolidation, each: f64) -> Option<&'a LoadSeries> {
        arm.by_load.iter().find(|series| same(series.clients_per_instance, each))
    }

    /// A panel an arm: a line a number of clients an instance.
    fn panels_by_load(&self, unit: &Unit, of: impl Fn(&LoadPoint) -> Option<&Estimate>) -> Vec<Panel> {
        let each = self.clients_each();
        let panel = |(arm, look): (&'a ArmConsolidation, ArmLook)| {
            let line = |(n, each): (usize, &f64)| {
                let found = Self::series(arm, *each)?;
                let points = found.points.iter().filter_map(|own| Some(point(own, of(own)?)));
                let look = ArmLook::series(n, format!("{} clients an instance", load(*each)));
                Some(Line { below: n % 2 == 1, ..Line::new(look, points.collect()) })
            };
            Panel::new(look.label, unit.clone(), each.iter().enumerate().filter_map(line).collect())
        };
        let mut panels: Vec<Panel> = self.shown().map(panel).collect();
        on_one_scale(&mut panels);
        panels
    }

    fn chart(title: &str, x_title: &str, panels: Vec<Panel>) -> Chart {
        let height = if panels.len() > 1 { 215.0 } else { 300.0 };
        Chart { title: title.to_owned(), x_title: x_title.to_owned(), x_marked: Vec::new(), height, panels }
    }

    /// The label of the response time.
    pub(super) fn response(&self) -> Option<&'a str> {
        self.found.response.as_ref().map(|(_, label)| label.as_str())
    }

    pub(super) fn by_load(&self, id: &str) -> Option<PartView> {
        let label = self.response()?;
        let panels = self.panels_by_load(&Unit::Seconds, |own| own.response.as_ref());
        let logarithmic = if panels.iter().any(|panel| panel.log) { " The axis of time is logarithmic." } else { "" };
        let title = format!("{} against clients", crate::words::sentence_case(label));
        let caption = format!(
            "One panel per arm, one line per number of clients an instance. Number at a mark: how many instances \
             shared the load. A gap between two lines at the same number of clients is the time that more instances of \
             fewer clients cost. Bars: intervals over the blocks. Hollow: saturated (an objective was missed in some \
             block, or at least {} of the CPUs were busy).{logarithmic}",
            format::share(SATURATED)
        );
        let figure = Self::chart(&title, "clients of all instances together", panels).figure(&format!("{id}-response"));
        let figure = FigureView::new(title.clone(), &caption, figure)?;
        Some(PartView {
            title,
            seen: self.seen_by_load(),
            figure: Some(figure),
            table: self.load_table(),
            table_title: "Response time, CPU and throughput in figures".to_owned(),
        })
    }

    /// CPU beside the response time; the table of that has its figures.
    pub(super) fn processor(&self, id: &str) -> Option<PartView> {
        let panels = self.panels_by_load(&Unit::Share, |own| own.cpu.as_ref());
        let title = "CPU of the guest against clients".to_owned();
        let caption = "The same trials as in the figure before. Share of the guest\u{2019}s CPUs that was busy, as \
                       counted by the host. More instances of fewer clients take more CPU for the same load.";
        let figure = Self::chart(&title, "clients of all instances together", panels).figure(&format!("{id}-cpu"));
        let figure = FigureView::new(title.clone(), caption, figure)?;
        let alone = self.response().is_none();
        Some(PartView {
            title,
            seen: Vec::new(),
            figure: Some(FigureView { folded: !alone, ..figure }),
            table: if alone { self.load_table() } else { None },
            table_title: "CPU and throughput in figures".to_owned(),
        })
    }

    /// What is fixed in the series of all arms.
    pub(super) fn fixed(&self, of: fn(&ArmConsolidation) -> &Vec<InstanceSeries>) -> Vec<f64> {
        distinct(self.shown().flat_map(|(arm, _)| of(arm).iter().map(|series| series.fixed)))
    }

    fn numbers(&self, of: fn(&ArmConsolidation) -> &Vec<InstanceSeries>) -> Vec<f64> {
        let all: BTreeSet<u32> = self
            .shown()
            .flat_map(|(arm, _)| of(arm).iter().flat_map(|series| &series.points))
            .map(|p| p.instances)
            .collect();
        all.into_iter().map(f64::from).collect()
    }

    /// A band of published figures, where the study compares with them.
    fn band(&self, low: f64, high: f64, name: &str) -> Option<(f64, f64, String)> {
        self.published.then(|| (low, high, name.to_owned()))
    }

    pub(super) fn lost(&self, id: &str) -> Option<PartView> {
        let arms: Vec<(&ArmConsolidation, ArmLook)> = self.shown().collect();
        let middle = (arms.len().saturating_sub(1)) as f64 / 2.0;
        let panel = |share: &f64| {
            let line = |(n, (arm, look)): (usize, &(&ArmConsolidation, ArmLook))| {
                let found = arm.lost.iter().find(|series| same(series.fixed, *share))?;
                let shift = (n as f64 - middle) * APART;
                Some(Line { shift, ..Line::new(look.clone(), changes(found)) })
            };
            let title = format!("lost for each instance more, CPU held at {}", format::share(*share));
            let band = self.band(2.0, 3.0, "published, 2011: 2 to 3 %");
            Panel { band, ..Panel::new(title, percent(), arms.iter().enumerate().filter_map(line).collect()) }
        };
        let mut panels: Vec<Panel> = self.fixed(|arm| &arm.lost).iter().map(panel).collect();
        on_one_scale(&mut panels);
        let title = "Throughput lost for each instance more, at the same CPU".to_owned();
        let caption = "The load was changed until the guest\u{2019}s CPUs were busy to the share named, then held. A \
                       mark at n instances: the throughput lost against the fewest instances, for each instance beyond \
                       them, in per cent of the throughput of the fewest. Less is better; at 0 an instance costs \
                       nothing. Bars: intervals, paired within blocks; where an interval contains 0, no cost was \
                       detected.";
        let mut chart = Self::chart(&title, "instances in the guest", panels);
        chart.x_marked = self.numbers(|arm| &arm.lost);
        let figure = FigureView::new(title.clone(), caption, chart.figure(&format!("{id}-lost")))?;
        Some(PartView {
            title,
            seen: self.seen_lost(),
            figure: Some(figure),
            table: self.lost_table(),
            table_title: "Throughput at the same CPU in figures".to_owned(),
        })
    }

    pub(super) fn gained(&self, id: &str) -> Option<PartView> {
        let fixed = self.fixed(|arm| &arm.gained);
        let middle = (fixed.len().saturating_sub(1)) as f64 / 2.0;
        let panel = |(arm, look): (&'a ArmConsolidation, ArmLook)| {
            let line = |(n, clients): (usize, &f64)| {
                let found = arm.gained.iter().find(|series| same(series.fixed, *clients))?;
                let look = ArmLook::series(n, format!("{} clients", load(*clients)));
                Some(Line { shift: (n as f64 - middle) * APART / 1.5, ..Line::new(look, changes(found)) })
            };
            let band = self.band(1.0, 4.0, "published, 2011: 1 to 4 points");
            Panel { band, ..Panel::new(look.label, points(), fixed.iter().enumerate().filter_map(line).collect()) }
        };
        let mut panels: Vec<Panel> = self.shown().map(panel).collect();
        on_one_scale(&mut panels);
        let title = "CPU gained for each instance more, at the same load".to_owned();
        let caption = "One panel per arm, one line per fixed load, which the instances share. A mark at n instances: \
                       points of the guest\u{2019}s CPUs above those of the fewest instances, for each instance beyond \
                       them. Less is better. A falling line: further instances cost less than the first ones. Bars: \
                       intervals, paired within blocks.";
        let mut chart = Self::chart(&title, "instances in the guest", panels);
        chart.x_marked = self.numbers(|arm| &arm.gained);
        let figure = FigureView::new(title.clone(), caption, chart.figure(&format!("{id}-gained")))?;
        Some(PartView {
            title,
            seen: self.seen_gained(),
            figure: Some(figure),
            table: self.gained_table(),
            table_title: "CPU at the same load in figures".to_owned(),
        })
    }

    /// The clients an instance that most arms have most points of, the larger of equals.
    pub(super) fn common(&self) -> Option<f64> {
        let points = |each: f64| -> usize {
            self.shown().filter_map(|(arm, _)| Self::series(arm, each)).map(|series| series.points.len()).sum()
        };
        let shared = |each: &f64| self.shown().filter(|(arm, _)| Self::series(arm, *each).is_some()).count() > 1;
        self.clients_each().into_iter().filter(shared).max_by_key(|each| points(*each))
    }

    /// All arms at one number of clients an instance.
    pub(super) fn side_by_side(&self, id: &str) -> Option<PartView> {
        let each = self.common()?;
        let arms: Vec<(&ArmConsolidation, ArmLook)> = self.shown().collect();
        let middle = (arms.len().saturating_sub(1)) as f64 / 2.0;
        let panel = |title: &str, unit: Unit, of: fn(&LoadPoint) -> Option<&Estimate>| {
            let line = |(n, (arm, look)): (usize, &(&'a ArmConsolidation, ArmLook))| {
                let found = Self::series(arm, each)?;
                let points =
                    found.points.iter().filter_map(|own| Some(Point { label: String::new(), ..point(own, of(own)?) }));
                let shift = (n as f64 - middle) * APART / 1.5;
                Some(Line { shift, ..Line::new(look.clone(), points.collect()) })
            };
            let mut panel = [Panel::new(title, unit, arms.iter().enumerate().filter_map(line).collect())];
            on_one_scale(&mut panel);
            panel
        };
        let response = self.response().map(|label| panel(label, Unit::Seconds, |own| own.response.as_ref()));
        let cpu = panel("CPU of the guest", Unit::Share, |own| own.cpu.as_ref());
        let panels = response.into_iter().flatten().chain(cpu).collect();
        let title = format!("The arms side by side, {} clients an instance", load(each));
        let caption = "The same series on every arm. Where lines coincide, the arms perform alike. A higher line in \
                       the panel of CPU: that arm uses more CPU for the same load. Bars: intervals over the blocks. \
                       Hollow: saturated.";
        let chart = Self::chart(&title, "clients of all instances together", panels);
        let figure = FigureView::new(title.clone(), caption, chart.figure(&format!("{id}-arms")))?;
        Some(PartView {
            title,
            seen: self.seen_side_by_side(each),
            figure: Some(figure),
            // The table of response times has all of them.
            table: None,
            table_title: String::new(),
        })
    }
}

/// Changes for each instance, as far as they are known.
fn changes(series: &InstanceSeries) -> Vec<Point> {
    let known = series.points.iter().filter_map(|own| Some((own, own.per_instance.as_ref()?)));
    known.map(|(own, change)| Point::new(f64::from(own.instances), change)).collect()
}
