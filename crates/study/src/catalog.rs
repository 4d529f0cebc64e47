//! What a study may name: platforms and workloads, which this crate does not know itself.

use std::net::IpAddr;

use serde_json::Value;
use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::layout::Attachment;
use tare_model::load::LoadModel;
use tare_model::metric::MetricSpec;
use tare_model::start::Start;
use tare_model::study::{Attach, Case};
use tare_model::traits::{Footprint, Traits};
use tare_model::units::Span;

/// A platform or a workload as a study names it.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogEntry {
    /// The name in the registry, as written in a study.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// What kinds there are of it, such as the runtimes that it starts: a name that is one of these was meant for it.
    pub kinds: Vec<String>,
    /// JSON schema of its options or parameters. `$ref`s may point into its own `$defs`.
    pub schema: Value,
}

/// A workload as a case asks for it.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadAsked<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its parameters, checked.
    pub parameters: &'a Value,
    /// The largest load that each driver offers.
    pub load: LoadModel,
    /// Size of each guest.
    pub guest: GuestSize,
    /// Instances of the application in each guest.
    pub instances: u32,
}

impl<'a> From<&'a Case> for WorkloadAsked<'a> {
    fn from(case: &'a Case) -> Self {
        let (load, instances) = (case.load.largest(), case.instances.max(1));
        Self { name: &case.workload, parameters: &case.parameters, load, guest: case.guest, instances }
    }
}

/// The platforms and workloads that a study can use, and how each checks what is its own.
///
/// Whoever holds the registries implements it. Implementations do no I/O: a study is checked the same
/// on every host; what this host can run is found out by the doctor.
pub trait Catalog {
    /// All platforms, in the order in which they are listed to people.
    fn platforms(&self) -> Vec<CatalogEntry>;

    /// All workloads, in the order in which they are listed to people.
    fn workloads(&self) -> Vec<CatalogEntry>;

    /// Checks a platform's options and returns them with defaults filled in. Called only with names
    /// that [`Catalog::platforms`] lists.
    ///
    /// # Errors
    /// The first field that is wrong, its path relative to the options.
    fn check_platform(&self, name: &str, options: &Value) -> Result<Value, FieldError>;

    /// Checks a workload's parameters, and that it can be driven by this load; returns the parameters
    /// with defaults filled in. Called only with names that [`Catalog::workloads`] lists.
    ///
    /// # Errors
    /// The first field that is wrong, its path relative to the parameters; an error about the load has a
    /// path that starts with `load`, then as in the model (`load`, `open`, `rate`).
    fn check_workload(&self, name: &str, parameters: &Value, load: &LoadModel) -> Result<Value, FieldError>;

    /// The metrics that a workload yields with these (checked) parameters.
    fn metrics(&self, workload: &str, parameters: &Value) -> Vec<MetricSpec>;

    /// What a workload can do and what it takes; [`Traits::of`] where no such workload can be made.
    fn traits(&self, asked: &WorkloadAsked<'_>) -> Traits;

    /// Whether the guests are large enough for a workload, and its parameters for the load.
    ///
    /// # Errors
    /// The parameter that is wrong for them, its path relative to the parameters.
    fn fits(&self, asked: &WorkloadAsked<'_>) -> Result<(), FieldError>;

    /// Why guests of a platform with these (checked) options can never have their memory merged, and the remedy; `None`:
    /// they can, where the host can.
    fn merging_refusal(&self, platform: &str, options: &Value) -> Option<Refusal> {
        let _ = (platform, options);
        None
    }

    /// Why guests of a platform with these (checked) options have no balloon that can be sized, and the remedy; `None`: they have.
    fn ballooning_refusal(&self, platform: &str, options: &Value) -> Option<Refusal> {
        let _ = (platform, options);
        None
    }

    /// Why guests of a platform with these (checked) options cannot be started so, and the remedy; `None`: they can, where the host can.
    fn start_refusal(&self, platform: &str, options: &Value, start: Start) -> Option<Refusal> {
        let _ = (platform, options, start);
        None
    }

    /// What guests of a platform with these (checked) options have to themselves, one at a time: what kind of thing, in words, and which. Arms
    /// that name the same are never alive at one time.
    fn exclusive(&self, platform: &str, options: &Value) -> Vec<(&'static str, String)> {
        let _ = (platform, options);
        Vec::new()
    }

    /// How many guests a platform with these (checked) options has, where they exist already; `None`: as many as are asked for.
    fn machines(&self, platform: &str, options: &Value) -> Option<u32> {
        let _ = (platform, options);
        None
    }

    /// Whether a platform with these (checked) options sets limits on the memory and the processes of its guests.
    fn limits_guests(&self, platform: &str, options: &Value) -> bool {
        let _ = (platform, options);
        true
    }

    /// Where the first of them is reached, if the options say so.
    fn machine_address(&self, platform: &str, options: &Value) -> Option<IpAddr> {
        let _ = (platform, options);
        None
    }

    /// How guests of a platform with these (checked) options are attached, and what their data lie on; `None` where that is not known.
    fn attachment(&self, platform: &str, options: &Value, attach: Attach) -> Option<Attachment> {
        let _ = (platform, options, attach);
        None
    }

    /// Why guests of a platform with these (checked) options cannot be attached to a card so, and the remedy; `None`: they can.
    fn attach_refusal(&self, platform: &str, options: &Value, attach: Attach) -> Option<Refusal> {
        let _ = (platform, options, attach);
        None
    }

    /// Disk that a workload takes.
    fn footprint(&self, asked: &WorkloadAsked<'_>) -> Footprint;

    /// Whether, whatever its options, what this platform provides are machines on a network that was there before the run, which are reached
    /// from other hosts too.
    fn is_outside(&self, platform: &str) -> bool {
        let _ = platform;
        false
    }

    /// Whether guests of this platform with these (checked) options are such machines; for some platforms it takes the
    /// options to say.
    fn reaches_outside(&self, platform: &str, options: &Value) -> bool {
        let _ = options;
        self.is_outside(platform)
    }

    /// Usual time from asking this platform for a guest to its being ready, for the cost of a plan.
    fn start_estimate(&self, platform: &str) -> Span;
}
