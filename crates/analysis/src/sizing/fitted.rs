//! The models of one arm: what they predict, how surely, and where they say nothing.

use tare_model::findings::{CpuModel, Estimate, FittedModel, ResponseModel, SizeCheck, SizeModel, SizeRange};
use tare_model::study::Case;

use super::core::{self, Bounds, Core, Row, Shape};
use super::points::Observed;
use super::resample::{self, Resampled};
use crate::estimate::ALPHA;
use crate::{fit, student};

/// Fewest points that models are fitted to: there are six parameters.
pub(super) const POINTS_MIN: usize = 6;
/// Largest relative residual of throughput against load at which the one is taken to be in proportion to the other.
const OUT_OF_PROPORTION: f64 = 0.10;
/// How far the predicted CPU may lie beyond what was measured, a share: a point, which is less than any measurement is good for.
const CPU_SLACK: f64 = 0.01;
/// Loads from which throughput against load is fitted to the scalability law too.
const LOADS_MIN: usize = 6;
/// Drawings of blocks for the place where throughput is largest: each is a fit of its own by iteration.
const KNEES_DRAWN: usize = 200;

/// How far the CPU of a held-out case may be predicted wrongly, a share.
const CPU_WITHIN: f64 = 0.05;
/// The same of its response time, relative.
const RESPONSE_WITHIN: f64 = 0.15;

/// What a study would have to measure instead.
pub(super) const REMEDY: &str = "use a study with at least six cases of one workload that differ in load and \
                                 instances, such as jvm-consolidation";

/// A deviation and how many values beyond its parameters it was made from.
#[derive(Debug, Clone, Copy)]
struct Residual {
    deviation: f64,
    freedom: f64,
}

impl Residual {
    fn of(left: &[f64], parameters: usize) -> Self {
        let freedom = (left.len() as f64 - parameters as f64).max(1.0);
        Self { deviation: (left.iter().map(|left| left * left).sum::<f64>() / freedom).sqrt(), freedom }
    }

    /// Half the interval of one value more.
    fn half(self) -> f64 {
        student::t_quantile(1.0 - ALPHA / 2.0, self.freedom) * self.deviation
    }
}

/// Why nothing is predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outside(pub(super) String);

/// Fitted models.
pub(super) struct Fitted {
    pub(super) core: Core,
    pub(super) range: SizeRange,
    shape: Shape,
    rows: Vec<Row>,
    resampled: Resampled,
    /// In points of CPU, and relative to it: the error of an operation's demand grows with the load, others do not.
    of_cpu: (Residual, Residual),
    of_response: Option<Residual>,
    /// Points at which the CPUs were saturated, that nothing is fitted to but the scalability law.
    pub(super) saturated: usize,
    /// Unit of load, for people.
    unit: &'static str,
}

impl Fitted {
    /// Fits what may be fitted.
    ///
    /// # Errors
    /// Why nothing is, in a sentence.
    pub(super) fn of(points: &[&Observed], servers: u32, unit: &'static str) -> Result<Self, String> {
        let used: Vec<&Observed> = points.iter().copied().filter(|point| point.fits()).collect();
        let saturated = points.iter().filter(|point| !point.held_out && !point.fits()).count();
        let rows: Vec<Row> = used.iter().map(|point| point.mean()).collect();
        let range = enough(&rows, saturated)?;
        let shape = Shape { servers, terms: core::terms(&rows) };
        let level = core::level(&rows, shape);
        let core = Core::fit(&rows, shape, Some(level), Bounds::Physical).ok_or_else(|| {
            format!("the models cannot be fitted: throughput and CPU do not grow with the load; {REMEDY}")
        })?;
        let off: Vec<f64> = rows.iter().map(|row| core.slope * row.load / row.throughput - 1.0).collect();
        in_proportion(&off, &used)?;
        let parameters = shape.terms.iter().filter(|used| **used).count();
        let cpu: Vec<f64> = rows.iter().map(|row| row.cpu - core.cpu(row.instances, row.load)).collect();
        let relative: Vec<f64> =
            cpu.iter().zip(&rows).filter(|(_, row)| row.cpu > 0.0).map(|(left, row)| left / row.cpu).collect();
        let times: Vec<f64> =
            rows.iter().filter_map(|row| Some(core.response(row.instances, row.load)? / row.response? - 1.0)).collect();
        let of_response = core.response.map(|_| Residual::of(&times, 2));
        of_response.map_or(Ok(()), bounded)?;
        Ok(Self {
            of_cpu: (Residual::of(&cpu, parameters), Residual::of(&relative, parameters)),
            of_response,
            resampled: Resampled::of(&used, shape),
            core,
            range,
            shape,
            rows,
            saturated,
            unit,
        })
    }

    /// Why nothing is said of so many instances under so much load, if so; `when` is said of the load.
    pub(super) fn outside(&self, instances: u32, load: f64, when: &str) -> Option<Outside> {
        let SizeRange { instances: (fewest, most), load: (least, largest), cpu: (idle, busiest) } = self.range;
        let slack = 1e-9;
        let cpu = self.core.cpu(f64::from(instances), load);
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let said = if !(fewest..=most).contains(&instances) {
            format!("the measured range: {instances} instances are outside {fewest} to {most}")
        } else if !(least * (1.0 - slack)..=largest * (1.0 + slack)).contains(&load) {
            let (load, unit) = (number(load), self.unit);
            format!(
                "the measured range: a load of {load} {unit}{when} is outside {} to {}",
                number(least),
                number(largest)
            )
        } else if !(idle - CPU_SLACK..=busiest + CPU_SLACK).contains(&cpu) {
            format!(
                "the measured range: a CPU of {}{when} is outside {} to {}",
                percent(cpu),
                percent(idle),
                percent(busiest)
            )
        } else {
            return None;
        };
        Some(Outside(said))
    }

    /// CPU and response time, whether or not that lies within what was measured: ask [`Self::outside`] first.
    pub(super) fn predict(&self, instances: u32, load: f64) -> (Estimate, Option<Estimate>) {
        let n = f64::from(instances);
        let cpu = self.core.cpu(n, load);
        let drawn = self.resampled.half(|core| Some(core.cpu(n, load)));
        let residual = self.of_cpu.0.half().max(self.of_cpu.1.half() * cpu);
        let cpu = self.resampled.with_interval(cpu, Some(both(drawn, residual)), self.method(drawn));
        let response = self.core.response(n, load).zip(self.of_response).map(|(time, residual)| {
            let drawn = self.resampled.half(|core| core.response(n, load));
            // What the model is of a measured time errs by so much: that time lies further above the model than below.
            let off = residual.half();
            let (below, above) = (both(drawn, time * off / (1.0 + off)), both(drawn, time * off / (1.0 - off)));
            let estimate = self.resampled.with_interval(time, Some(below), self.method(drawn));
            Estimate { high: Some(time + above).filter(|high| high.is_finite()), ..estimate }
        });
        (cpu, response)
    }

    fn method(&self, drawn: Option<f64>) -> String {
        let blocks = if drawn.is_some() { "drawings of blocks and " } else { "" };
        format!("model; interval from {blocks}the residual of {} points", self.rows.len())
    }

    /// A held-out case: predicted and measured. `None` where it has no figure.
    pub(super) fn check(&self, point: &Observed) -> Option<SizeCheck> {
        let mean = point.mean();
        let (cpu, response) = (point.cpu()?, point.response());
        let refused = self.outside(point.instances, mean.load, "").map(|outside| outside.0);
        let (predicted, time) = self.predict(point.instances, mean.load);
        let near = |predicted: &Estimate, measured: &Estimate| (predicted.value / measured.value - 1.0).abs();
        let inside = refused.is_none();
        let times = time.zip(response).filter(|_| inside);
        Some(SizeCheck {
            case: point.case.clone(),
            instances: point.instances,
            load: mean.load,
            cpu_within: inside && (predicted.value - cpu.value).abs() <= CPU_WITHIN,
            cpu: (if inside { predicted } else { not_predicted() }, cpu),
            response_within: times.as_ref().map(|(time, measured)| near(time, measured) <= RESPONSE_WITHIN),
            response: times,
            refused,
        })
    }

    /// As findings tell it. `all`: every point that is not held out, the saturated ones too.
    pub(super) fn size_model(&self, all: &[&Observed]) -> SizeModel {
        let off = rms(self.rows.iter().map(|row| self.core.slope * row.load / row.throughput - 1.0));
        let saturated = match self.saturated {
            0 => String::new(),
            n => format!("; {n} points with saturated CPUs left out"),
        };
        let method = format!(
            "least relative squares through the origin of {} points, residual {:.1} %{saturated}; {}",
            self.rows.len(),
            off * 100.0,
            self.drawn()
        );
        SizeModel {
            range: self.range,
            throughput: self.resampled.parameter(self.core.slope, method, |core| Some(core.slope)),
            cpu: self.cpu_model(),
            response: self.response_model(),
            scalability: scalability(all, self.unit),
        }
    }

    fn drawn(&self) -> &'static str {
        if self.resampled.half(|core| Some(core.slope)).is_some() {
            "drawings of blocks, Student's t"
        } else {
            "one block: no interval"
        }
    }

    fn cpu_model(&self) -> CpuModel {
        let core = &self.core;
        let term = |used: bool, value: f64, why: &str, figure: fn(&Core) -> f64| {
            if used {
                let method = format!("least squares, none below 0; {}", self.drawn());
                return self.resampled.parameter(value, method, |core| Some(figure(core)));
            }
            Estimate { method: format!("left out: {why}"), ..not_predicted() }
        };
        let [_, grows, idles] = self.shape.terms;
        let single = "with one number of instances it cannot be distinguished from the demand";
        let alike = "with loads in proportion to the instances it cannot be distinguished from the demand";
        let left_out: Vec<f64> = self.left_out(|without, row| Some(without.cpu(row.instances, row.load) - row.cpu));
        CpuModel {
            idle: term(idles, core.idle, alike, |core| core.idle),
            demand_s: term(true, core.demand, "", |core| core.demand),
            growth_s: term(grows, core.growth, single, |core| core.growth),
            level: if core.growth > 0.0 { core.level } else { 0 },
            formula: self.cpu_formula(),
            points: self.rows.len() as u32,
            rmse: rms(self.rows.iter().map(|row| row.cpu - core.cpu_of(row.instances, row.throughput))),
            rmse_left_out: rms(left_out.into_iter()),
        }
    }

    fn cpu_formula(&self) -> String {
        let Core { demand, growth, idle, level, .. } = self.core;
        let [_, grows, idles] = self.shape.terms;
        let at_rest = if idles { format!("{idle:.4} n + ") } else { String::new() };
        let grown = match (grows, level >= self.range.instances.1.saturating_sub(1)) {
            (false, _) => String::new(),
            (true, true) => format!(" + {growth:.6} (n - 1)"),
            (true, false) => format!(" + {growth:.6} min(n - 1, {level})"),
        };
        let without = match (grows, idles) {
            (true, true) => "",
            (false, true) => "; growth with n is unknown: one number of instances",
            (true, false) => "; idle CPU is unknown: it is part of the demand",
            (false, false) => "; growth with n and idle CPU are unknown: they are part of the demand",
        };
        format!("U {} = {at_rest}X ({demand:.6}{grown}){without}", self.shape.servers)
    }

    fn response_model(&self) -> Option<ResponseModel> {
        let (floor, scale) = self.core.response?;
        let method = || format!("least relative squares, none below 0; {}", self.drawn());
        let queue = match self.shape.servers {
            1 => "/ (1 - U)".to_owned(),
            c => format!("(1 + C({c}, {c} U) / ({c} (1 - U)))"),
        };
        let own = |row: &Row| Some(self.core.response_of(row.cpu)? / row.response? - 1.0);
        let left_out =
            self.left_out(|without, row| Some(without.response(row.instances, row.load)? / row.response? - 1.0));
        Some(ResponseModel {
            floor_s: self.resampled.parameter(floor, method(), |core| core.response.map(|found| found.0)),
            scale_s: self.resampled.parameter(scale, method(), |core| core.response.map(|found| found.1)),
            servers: self.shape.servers,
            formula: format!("R = {floor:.5} s + {scale:.5} s {queue}"),
            points: self.rows.iter().filter(|row| row.response.is_some()).count() as u32,
            rmse: rms(self.rows.iter().filter_map(own)),
            rmse_left_out: rms(left_out.into_iter()),
        })
    }

    /// `error` of each point by the models of all others, from its load and instances alone.
    fn left_out(&self, error: impl Fn(&Core, &Row) -> Option<f64>) -> Vec<f64> {
        let one = |at: usize| {
            let mut others = self.rows.clone();
            let row = others.remove(at);
            error(&Core::fit(&others, self.shape, Some(self.core.level), Bounds::Physical)?, &row)
                .filter(|error| error.is_finite())
        };
        (0..self.rows.len()).filter_map(one).collect()
    }
}

/// Whether throughput is in proportion to the load: `off` is the relative residual of each point.
///
/// # Errors
/// Where it is not, with the case that is furthest off.
fn in_proportion(off: &[f64], points: &[&Observed]) -> Result<(), String> {
    let residual = rms(off.iter().copied());
    if residual <= OUT_OF_PROPORTION {
        return Ok(());
    }
    let furthest = off.iter().zip(points).max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let furthest = furthest.map_or_else(String::new, |(_, point)| format!("; furthest off is `{}`", point.case));
    Err(format!(
        "throughput is not in proportion to the load (residual {:.0} %, at most {:.0} %{furthest}): possible causes \
         are clients without think time, a bottleneck other than the guest's CPU, or other work on the host. Use a \
         study with think time and with loads below saturation",
        residual * 100.0,
        OUT_OF_PROPORTION * 100.0
    ))
}

/// Whether times are bounded by the model at all.
///
/// # Errors
/// Where the model of a time may be wrong by all of it, so that what would be measured has no upper end.
fn bounded(residual: Residual) -> Result<(), String> {
    if residual.half() < 1.0 {
        return Ok(());
    }
    let percent = residual.deviation * 100.0;
    // Ten times the time is as wrong as a hundred times.
    let of = if percent > 1000.0 { "over 1,000 %".to_owned() } else { format!("{percent:.0} %") };
    Err(format!(
        "response times do not follow the CPU (residual {of}, with which a time has no upper bound at {:.0} %): \
         possible causes are other work on the host, load before the end of the warm-up, or waits for something else. \
         Use more blocks, a longer warm-up and an idle host",
        (1.0 - ALPHA) * 100.0
    ))
}

/// Whether the points are enough, and what they span.
fn enough(rows: &[Row], saturated: usize) -> Result<SizeRange, String> {
    let mut loads: Vec<f64> = rows.iter().map(|row| row.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup_by(|a, b| (*a - *b).abs() <= 1e-6 * b.abs());
    let aside = if saturated > 0 {
        format!(" ({saturated} more have saturated CPUs and cannot be used)")
    } else {
        String::new()
    };
    if rows.len() < POINTS_MIN {
        let n = rows.len();
        let points = if n == 1 { "1 point is" } else { &format!("{n} points are") };
        return Err(format!("{points} too few to fit models: {POINTS_MIN} are needed{aside}; {REMEDY}"));
    }
    if loads.len() < 2 {
        return Err(format!(
            "all points have the same load{aside}, so it is unknown how CPU and time grow with it; {REMEDY}"
        ));
    }
    let span = |of: fn(&Row) -> f64| {
        let all = rows.iter().map(of);
        (all.clone().fold(f64::INFINITY, f64::min), all.fold(f64::NEG_INFINITY, f64::max))
    };
    let (fewest, most) = span(|row| row.instances);
    Ok(SizeRange { instances: (fewest as u32, most as u32), load: span(|row| row.load), cpu: span(|row| row.cpu) })
}

/// Throughput against load by the two models of scalability, the better first; what the law says of the largest load that pays, with
/// its interval.
fn scalability(all: &[&Observed], unit: &'static str) -> Vec<FittedModel> {
    let points = |blocks: &[u32]| -> Vec<(f64, f64)> {
        all.iter().filter_map(|point| point.row(blocks)).map(|row| (row.load, row.throughput)).collect()
    };
    let blocks = resample::blocks(all);
    let mut loads: Vec<f64> = points(&blocks).iter().map(|point| point.0).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup_by(|a, b| (*a - *b).abs() <= 1e-6 * b.abs());
    if loads.len() < LOADS_MIN {
        return Vec::new();
    }
    let one = if unit == CLIENTS { "client" } else { "arrival a second" };
    let mut models = fit::models_of(&points(&blocks), one);
    for model in models.iter_mut().filter(|model| model.knee.is_some() && blocks.len() > 1) {
        let mut knees = Vec::new();
        resample::draw(&blocks, KNEES_DRAWN, |drawn| {
            let again = fit::models_of(&points(drawn), one);
            knees.extend(again.iter().find(|own| own.name == model.name).and_then(|own| own.knee));
        });
        knees.sort_by(f64::total_cmp);
        // A knee that most drawings do not have is none. A knee beyond what was measured counts as no knee.
        if knees.len() * 20 > KNEES_DRAWN * 19 {
            let at = |share: f64| knees[((knees.len() - 1) as f64 * share).round() as usize];
            model.parameters.insert("knee, lower end of its interval".to_owned(), at(ALPHA / 2.0));
            model.parameters.insert("knee, upper end of its interval".to_owned(), at(1.0 - ALPHA / 2.0));
        }
    }
    models
}

/// Unit of load of a closed loop.
pub(super) const CLIENTS: &str = "clients";
/// Of an open one.
pub(super) const ARRIVALS: &str = "arrivals/s";

/// A held-out case that has no figures: nothing was checked by it, which must not look as if there were none.
pub(super) fn not_measured(case: &Case, load: f64) -> SizeCheck {
    let why = "none of its trials has throughput and the guest's CPU";
    SizeCheck {
        case: case.id.clone(),
        instances: case.instances.max(1),
        load,
        cpu: (not_predicted(), not_predicted()),
        response: None,
        cpu_within: false,
        response_within: None,
        refused: Some(why.to_owned()),
    }
}

/// An estimate of what was not predicted: no value, made from nothing.
fn not_predicted() -> Estimate {
    Estimate { value: 0.0, low: None, high: None, level: 1.0 - ALPHA, n: 0, method: "not predicted".to_owned() }
}

/// Errors that do not depend on each other.
fn both(drawn: Option<f64>, residual: f64) -> f64 {
    drawn.unwrap_or(0.0).hypot(residual)
}

fn rms(values: impl Iterator<Item = f64>) -> f64 {
    let (n, squares) = values.fold((0.0, 0.0), |(n, squares), value| (n + 1.0, squares + value * value));
    if n > 0.0 { f64::sqrt(squares / n) } else { 0.0 }
}

/// A load as people write it.
pub(super) fn number(load: f64) -> String {
    let places = usize::from(load.fract().abs() > 1e-6 && load.abs() < 100.0);
    crate::words::grouped(&format!("{load:.places$}"))
}
