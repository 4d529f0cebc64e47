//! What models are fitted to: the cases of a group on one arm.

use std::collections::BTreeMap;

use tare_model::findings::{Estimate, SizePoint};
use tare_model::metric::{MetricSpec, common};
use tare_model::study::Case;

use super::core::{Row, Timed};
use super::queue::{SATURATED, stretch};
use crate::estimate;
use crate::grouped::Figures;

/// What one block saw of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    pub(super) load: f64,
    pub(super) throughput: f64,
    pub(super) cpu: f64,
    pub(super) response: Option<f64>,
    /// The response time as a queue is fitted to it; `None` of a block whose CPUs were saturated: there the number of clients decides it.
    timed: Option<Timed>,
}

/// A case on one arm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    pub(super) case: String,
    pub(super) instances: u32,
    pub(super) held_out: bool,
    pub(super) blocks: BTreeMap<u32, Seen>,
    pub(super) instance_memory: Option<Estimate>,
    pub(super) idle_memory: Option<Estimate>,
}

impl Observed {
    /// Of the blocks that have load, throughput and CPU; `None` without one.
    pub(super) fn of(
        figures: &Figures<'_>,
        case: &Case,
        arm: &str,
        throughput: &str,
        response: Option<&MetricSpec>,
        servers: u32,
    ) -> Option<Self> {
        let rates = figures.blocks(&case.id, arm, throughput);
        let cpu = figures.cpu(&case.id, arm);
        let loads = figures.loads(case, arm, &rates.keys().copied().collect::<Vec<_>>());
        let times = response.map_or_else(BTreeMap::new, |spec| figures.blocks(&case.id, arm, &spec.id));
        let seen = |(block, throughput): (u32, f64)| {
            let (load, cpu) = (*loads.get(&block)?, *cpu.get(&block)?);
            let response = times.get(&block).copied().filter(|time| *time > 0.0);
            let usable = load > 0.0 && throughput > 0.0 && cpu >= 0.0;
            let time = response.filter(|_| cpu < SATURATED);
            let timed = time.map(|time| Timed { stretch: stretch(servers, cpu), time });
            usable.then_some((block, Seen { load, throughput, cpu, response, timed }))
        };
        let blocks: BTreeMap<u32, Seen> = rates.into_iter().filter_map(seen).collect();
        let memory = |id: &str| figures.metric(&case.id, arm, id).map(|own| own.estimate.clone());
        (!blocks.is_empty()).then(|| Self {
            case: case.id.clone(),
            instances: case.instances.max(1),
            held_out: case.held_out,
            blocks,
            instance_memory: memory(common::INSTANCE_MEMORY),
            idle_memory: memory(common::IDLE_MEMORY),
        })
    }

    /// Means over some blocks, of which one may be named several times; `None` where the point has none of them. The response time is the
    /// mean of the blocks that have one.
    pub(super) fn row(&self, blocks: &[u32]) -> Option<Row> {
        let own: Vec<&Seen> = blocks.iter().filter_map(|block| self.blocks.get(block)).collect();
        let n = own.len() as f64;
        let mean = |of: fn(&Seen) -> f64| own.iter().map(|seen| of(seen)).sum::<f64>() / n;
        let times: Vec<f64> = own.iter().filter_map(|seen| seen.response).collect();
        (!own.is_empty()).then(|| Row {
            instances: f64::from(self.instances),
            load: mean(|seen| seen.load),
            throughput: mean(|seen| seen.throughput),
            cpu: mean(|seen| seen.cpu),
            response: (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64),
            times: own.iter().filter_map(|seen| seen.timed).collect(),
        })
    }

    /// Means over all blocks.
    pub(super) fn mean(&self) -> Row {
        let all: Vec<u32> = self.blocks.keys().copied().collect();
        let instances = f64::from(self.instances);
        let nothing = Row { instances, load: 0.0, throughput: 0.0, cpu: 0.0, response: None, times: Vec::new() };
        self.row(&all).unwrap_or(nothing)
    }

    /// Whether the models may be fitted to it.
    pub(super) fn fits(&self) -> bool {
        !self.held_out && self.mean().cpu < SATURATED
    }

    fn estimate(&self, of: impl Fn(&Seen) -> Option<f64>) -> Option<Estimate> {
        estimate::of_values(&self.blocks.values().filter_map(of).collect::<Vec<f64>>())
    }

    pub(super) fn cpu(&self) -> Option<Estimate> {
        self.estimate(|seen| Some(seen.cpu))
    }

    pub(super) fn response(&self) -> Option<Estimate> {
        self.estimate(|seen| seen.response)
    }

    /// As findings tell it.
    pub(super) fn size_point(&self) -> Option<SizePoint> {
        Some(SizePoint {
            case: self.case.clone(),
            instances: self.instances,
            load: self.mean().load,
            held_out: self.held_out,
            saturated: !self.held_out && !self.fits(),
            throughput: self.estimate(|seen| Some(seen.throughput))?,
            cpu: self.cpu()?,
            response: self.response(),
            instance_memory: self.instance_memory.clone(),
            idle_memory: self.idle_memory.clone(),
        })
    }
}
