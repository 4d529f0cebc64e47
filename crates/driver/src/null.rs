//! An operation that does nothing: what is left of a run is the instrument itself.

use crate::error::Failure;
use crate::operation::{Done, Operation};

/// Does nothing.
#[derive(Debug)]
pub(crate) struct Null;

impl Operation for Null {
    #[inline]
    fn perform(&mut self) -> Result<Done, Failure> {
        // Opaque, so that the loop around it is not optimised into something else.
        Ok(std::hint::black_box(Done::Answered))
    }
}
