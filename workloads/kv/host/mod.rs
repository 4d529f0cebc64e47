//! `kv`: GETs and SETs of a redis or a memcached in the guest, over RESP or memcached's text protocol; every answer is verified.

#[path = "../spec.rs"]
pub(crate) mod spec;

mod figures;
mod parameters;
mod running;
mod served;
mod start;

use std::path::Path;
use std::process::{Command, Stdio};

use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::layout::Work;
use tare_model::metric::MetricSpec;
use tare_model::traits::TurnTraits;
use tare_model::{Refusal, Span};

use crate::entry::{Entry, filled, schema};
use crate::limits::Allowed;
use crate::operations::VerdictOn;
use crate::{Data, Driven, Failure, Prepared, SetupSite, Traits, WorkSite, Workload, WorkloadError};
use parameters::{Parameters, checked};
use running::Running;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "kv",
    summary: "a key-value load on redis or memcached: request rate and response time, every answer verified",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        let verdict = VerdictOn::under(load, parameters.verdict);
        Ok(Box::new(Kv { parameters, verdict, connections: load.connections() }))
    },
    normalise: |parameters| filled(checked(parameters)?),
    view: None,
};

/// Usual time of a trial, beside its guests' start, in which the server starts, some 100,000 keys are set and read, and all is taken
/// down; seen on a small host that was quiet.
const SET_UP: Span = Span::from_secs(3);

/// From the start of a turn to its end, in gaps.
const TURN_GAPS: u64 = 20;
/// Time to answer one of the requests that are under way at the end of a turn, nanoseconds.
const ANSWER_NS: u64 = 5_000;

struct Kv {
    parameters: Parameters,
    verdict: VerdictOn,
    /// Connections of each driver.
    connections: u32,
}

impl Kv {
    /// The more requests are under way at once, the longer it takes until all are answered.
    fn turns(&self) -> TurnTraits {
        let under_way = u64::from(self.connections) * u64::from(self.parameters.depth);
        let gap = Span { ns: (under_way * ANSWER_NS).max(1_000_000) };
        TurnTraits {
            turn: Span { ns: TURN_GAPS * gap.ns },
            warm_up: Span::ZERO,
            gap,
            renewed: None,
            freezes: true,
            commands: None,
        }
    }
}

impl Workload for Kv {
    fn metrics(&self) -> Vec<MetricSpec> {
        figures::specs(self.verdict)
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        let work = Work::in_guest(&[self.parameters.package()], None);
        Traits {
            several_guests: true,
            repeats: true,
            set_up: SET_UP,
            turns: Some(self.turns()),
            ..Traits::of(*guest).with(work)
        }
    }

    fn fits(&self, guest: &GuestSize, _: u32) -> Result<(), FieldError> {
        self.parameters.fit(guest)
    }

    fn look(&self) -> Option<Refusal> {
        let (program, package) = (self.parameters.program(), self.parameters.package());
        (!Path::new(program).is_file()).then(|| refused(format!("there is no {package} at {program}"), package))
    }

    fn refusal(&self) -> Option<Refusal> {
        self.look().or_else(|| {
            let (program, package) = (self.parameters.program(), self.parameters.package());
            let ran = Command::new(program).arg("--version").stdin(Stdio::null()).output();
            let why = match ran {
                Ok(ran) if ran.status.success() => return None,
                Ok(ran) => String::from_utf8_lossy(&ran.stderr).trim().to_owned(),
                Err(error) => error.to_string(),
            };
            Some(refused(format!("{program} does not run on this host: {why}"), package))
        })
    }

    fn named_programs(&self) -> Vec<String> {
        self.parameters.program.iter().cloned().collect()
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        Allowed::of(site.client, site.timeout).refuse_driver(self.connections, 1)?;
        Ok(Data::default())
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        figures::combine(guests, self.verdict)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        self.parameters.fit(&site.size).map_err(|error| {
            let remedy = error.help.unwrap_or_else(|| "ask for larger guests".to_owned());
            Failure::new("start the server", error.message, remedy)
        })?;
        let started = start::started(site, &self.parameters)?;
        Ok(Box::new(Running::new(self.parameters.clone(), started)))
    }
}

/// What is missing, with what helps.
fn refused(reason: String, package: &str) -> Refusal {
    let remedy = format!(
        "run `make platforms`, or install {package}, or name another of this host and the guest: program = \"/path\""
    );
    Refusal::new(reason, remedy)
}
