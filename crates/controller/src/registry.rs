//! Where the controller gets platforms and workloads from.

use std::sync::Arc;

use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::load::LoadModel;
use tare_platform::Platform;
use tare_workload::Workload;

use crate::host::{HostAccess, ThisHost};

/// Makes platforms and workloads by name. The shipped one is over the registries; tests put failing
/// ones in their place.
pub trait Registry: Sync {
    /// The platform of that name with these options.
    ///
    /// # Errors
    /// When there is none of that name, or an option is wrong.
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError>;

    /// The workload of that name with these parameters, to be driven by this load.
    ///
    /// # Errors
    /// When there is none of that name, or a parameter is wrong.
    fn workload(&self, name: &str, parameters: &Value, load: &LoadModel) -> Result<Box<dyn Workload>, FieldError>;

    /// The memory of the host that carries the guests.
    fn host(&self) -> Arc<dyn HostAccess> {
        Arc::new(ThisHost)
    }
}

/// The platforms and workloads that come with tare.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shipped;

impl Registry for Shipped {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        let entry = tare_platform::registry::find(name)
            .ok_or_else(|| FieldError::new(&[], format!("there is no platform `{name}` in this tare")))?;
        (entry.make)(options)
    }

    fn workload(&self, name: &str, parameters: &Value, load: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        let entry = tare_workload::registry::find(name)
            .ok_or_else(|| FieldError::new(&[], format!("there is no workload `{name}` in this tare")))?;
        (entry.make)(parameters, load)
    }
}
