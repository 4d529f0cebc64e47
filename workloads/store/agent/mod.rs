//! The store of the order-entry workload: its rows, its orders, and counting what is in it.

#[path = "../spec.rs"]
pub mod spec;

mod count;
pub mod data;
pub(crate) mod flow;
mod load;
pub mod schema;

use std::sync::atomic::AtomicBool;

use crate::store::spec::{StoreCount, StoreDrive, StoreLoad};
use tare_model::packed::Task;

use crate::task::{Calls, Kind};

pub use count::count;
pub use load::load;

pub(crate) const KINDS: &[Kind] =
    &[Kind::drives::<StoreDrive>(), Kind::calls::<StoreLoad>(), Kind::calls::<StoreCount>()];

impl Calls for StoreLoad {
    fn call(self, cancel: &AtomicBool) -> <Self as Task>::Outcome {
        load(&self, cancel)
    }
}

impl Calls for StoreCount {
    fn call(self, _: &AtomicBool) -> <Self as Task>::Outcome {
        count(&self)
    }
}
