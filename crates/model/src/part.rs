//! A part of a trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one guest, or one driver of it, contributed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Part {
    /// Which guest, from 1.
    pub guest: u32,
    /// Which of the guest's drivers, from 1; `None`: all of them, that is the whole guest.
    pub driver: Option<u32>,
    /// Which of the guest's instances of the application, from 1; `None`: all of them.
    pub instance: Option<u32>,
    /// Metric ids and values.
    pub metrics: BTreeMap<String, f64>,
}
