//! The store of the order-entry workload: its rows, its orders, and counting what is in it.

mod count;
pub mod data;
pub(crate) mod flow;
mod load;
pub mod schema;
pub mod words;

pub use count::count;
pub use load::load;
