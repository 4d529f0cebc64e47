//! Memory from the kernel and not from the allocator.

mod sys;

pub use sys::{Region, page_bytes};
