//! Measured points against the models' curves.

use tare_model::findings::{ArmSizing, Estimate, ResponseModel, SizeModel, SizePoint};
use tare_model::metric::Unit;

use super::super::case::FigureView;
use super::Group;
use crate::plot::arms::ArmLook;
use crate::plot::curves::{Chart, Line, Panel, Point, on_one_scale};
use crate::plot::svg::Shape;

/// Points of a drawn curve.
const STEPS: u32 = 80;

/// Largest share of the CPUs at which a queue is drawn: at 1 it has no end.
const DRAWN: f64 = 0.985;

impl Group<'_> {
    pub(super) fn figures(&self, id: &str) -> Vec<FigureView> {
        let unit = &self.found.load_unit;
        let mut cpu: Vec<Panel> = self.shown().map(|(arm, look)| self.cpu(arm, &look)).collect();
        on_one_scale(&mut cpu);
        let title = format!("CPU against {unit}: measured, and as the model has it");
        let chart = Chart {
            title: title.clone(),
            x_title: format!("{unit}, all instances together"),
            x_marked: Vec::new(),
            height: if cpu.len() > 1 { 215.0 } else { 300.0 },
            panels: cpu,
        };
        let caption = "One panel per arm. Filled: measured, and used in the fit. Hollow: not used in the fit, because \
                       the case was held out (the number is how many instances shared the load) or the CPUs were \
                       saturated. Lines: the model with the fewest and with the most instances; points of other \
                       numbers lie between them. Bars: intervals over the blocks.";
        let first = FigureView::new(title, caption, chart.figure(&format!("{id}-cpu")));
        let mut time: Vec<Panel> = self.shown().map(|(arm, look)| self.time(arm, &look)).collect();
        on_one_scale(&mut time);
        let label = self.response().map_or_else(|| "response time".to_owned(), |spec| spec.label.clone());
        let title = format!("{} against CPU: measured, and as the model has it", crate::words::sentence_case(&label));
        let logarithmic = if time.iter().any(|panel| panel.log) { " The axis of time is logarithmic." } else { "" };
        let chart = Chart {
            title: title.clone(),
            x_title: "busy share of the guest\u{2019}s CPUs, %".to_owned(),
            x_marked: Vec::new(),
            height: if time.len() > 1 { 215.0 } else { 300.0 },
            panels: time,
        };
        let caption = format!(
            "One panel per arm. Line: the time in a queue for the guest\u{2019}s CPUs, fitted to the filled marks, \
             over the measured range. Hollow marks: held out or saturated. The line rises steeply towards the right, \
             so do not fill a guest to its CPU limit.{logarithmic}"
        );
        let second = FigureView::new(title, &caption, chart.figure(&format!("{id}-response")));
        [first, second].into_iter().flatten().collect()
    }

    /// What was measured on one arm as lines of marks: fitted to, saturated, and held out.
    fn measured(
        &self,
        arm: &ArmSizing,
        look: &ArmLook,
        of: impl Fn(&SizePoint) -> Option<(f64, &Estimate)>,
    ) -> Vec<Line> {
        let line = |kind: (bool, bool), name: &str, shape: Shape, class: &str| {
            let own = |point: &&SizePoint| (point.held_out, point.saturated && !point.held_out) == kind;
            let points = arm.points.iter().filter(own).filter_map(|own| {
                let (x, y) = of(own)?;
                // Many points lie at one load: those that were foretold are named.
                let label = if kind.0 { own.instances.to_string() } else { String::new() };
                Some(Point { label, ..Point::new(x, y) })
            });
            let hollow = kind != (false, false);
            let (class, label) = (class.to_owned(), name.to_owned());
            let look = ArmLook { id: name.to_owned(), label, class, shape, dash: "", hollow, ..look.clone() };
            Line { joined: false, ..Line::new(look, points.collect()) }
        };
        let mut lines = vec![line((false, false), "measured, used in the fit", Shape::Circle, "arm-base")];
        if arm.points.iter().any(|point| point.saturated && !point.held_out) {
            lines.push(line((false, true), "measured, saturated: not used in the fit", Shape::Circle, "arm-base"));
        }
        lines.push(line((true, false), "measured, held out", Shape::Diamond, "arm-2"));
        lines
    }

    fn cpu(&self, arm: &ArmSizing, look: &ArmLook) -> Panel {
        let mut lines: Vec<Line> = Vec::new();
        if let Some(model) = &arm.model {
            let (fewest, most) = model.range.instances;
            lines.push(self.curve(1, "model, fewest instances", look, self.cpu_curve(arm, model, fewest)));
            if most > fewest {
                lines.push(self.curve(2, "model, most instances", look, self.cpu_curve(arm, model, most)));
            }
        }
        lines.extend(self.measured(arm, look, |own| Some((own.load, &own.cpu))));
        Panel::new(&look.label, Unit::Share, lines)
    }

    fn time(&self, arm: &ArmSizing, look: &ArmLook) -> Panel {
        let mut lines: Vec<Line> = Vec::new();
        if let Some((range, response)) =
            arm.model.as_ref().and_then(|model| Some((model.range, model.response.as_ref()?)))
        {
            let curve = spread(range.cpu.0, range.cpu.1.min(DRAWN)).map(|u| (u * 100.0, queued(response, u)));
            lines.push(self.curve(1, "model", look, curve.collect()));
        }
        lines.extend(self.measured(arm, look, |own| Some((own.cpu.value * 100.0, own.response.as_ref()?))));
        Panel::new(&look.label, Unit::Seconds, lines)
    }

    /// CPU share of so many instances over the loads at which as many were measured, by the model.
    fn cpu_curve(&self, arm: &ArmSizing, model: &SizeModel, instances: u32) -> Vec<(f64, f64)> {
        let own = || arm.points.iter().filter(|point| point.instances == instances).map(|point| point.load);
        let (least, most) = (own().fold(f64::INFINITY, f64::min), own().fold(0.0, f64::max));
        // A number that was measured at one load alone gets a curve over the whole range.
        let (least, most) = if most > least { (least, most) } else { model.range.load };
        let cpu = &model.cpu;
        let n = f64::from(instances);
        let more = f64::from(instances.saturating_sub(1).min(cpu.level));
        let cpus = f64::from(self.found.guest.cpus.max(1));
        let share = |load: f64| {
            let per_s = model.throughput.value * load;
            (cpu.idle.value * n + per_s * (cpu.demand_s.value + cpu.growth_s.value * more)) / cpus
        };
        spread(least, most).map(|load| (load, share(load))).filter(|(_, share)| *share <= 1.0).collect()
    }

    fn curve(&self, n: usize, name: &str, look: &ArmLook, points: Vec<(f64, f64)>) -> Line {
        let points = points.into_iter().map(|(x, y)| Point::at(x, y)).collect();
        let own = ArmLook::series(n - 1, name);
        let dash = if n > 1 { "7 3" } else { "" };
        let look = ArmLook { id: name.to_owned(), dash, label: name.to_owned(), class: own.class, ..look.clone() };
        Line { marked: false, ..Line::new(look, points) }
    }
}

/// Values from one to another.
fn spread(from: f64, to: f64) -> impl Iterator<Item = f64> {
    (0..=STEPS).map(move |step| from + (to - from) * f64::from(step) / f64::from(STEPS))
}

/// `floor + scale Q(U)`: the response time at a busy share of the CPUs.
fn queued(model: &ResponseModel, share: f64) -> f64 {
    model.floor_s.value + model.scale_s.value * queue(model.servers.max(1), share)
}

/// Mean time in an M/M/c queue over its service time, at utilisation `share` below 1: `1 + C / (c (1 - U))`, with C by
/// Erlang's formula for waiting, made from that for loss by its recursion (Cooper, Introduction to Queueing Theory, 1981).
fn queue(servers: u32, share: f64) -> f64 {
    let (c, offered) = (f64::from(servers), f64::from(servers) * share);
    let lost = (1..=servers).fold(1.0, |lost, k| offered * lost / (f64::from(k) + offered * lost));
    let waits = lost / (1.0 - share * (1.0 - lost));
    1.0 + waits / (c * (1.0 - share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_one_server_is_the_known_one_and_more_servers_wait_less() {
        // M/M/1: R / S = 1 / (1 - U).
        for share in [0.1, 0.5, 0.9] {
            assert!((queue(1, share) - 1.0 / (1.0 - share)).abs() < 1e-9, "{share}");
        }
        // M/M/2: R / S = 1 / (1 - U^2).
        assert!((queue(2, 0.5) - 1.0 / 0.75).abs() < 1e-9);
        assert!(queue(8, 0.8) < queue(2, 0.8));
    }
}
