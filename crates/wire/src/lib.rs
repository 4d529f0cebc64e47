//! The versioned messages between controller and agent, and the framed byte stream that carries them.
//!
//! The stream is whatever the platform hands over: stdio of a process, a virtio-serial port, stdio
//! of ssh. Each end first sends a greeting of fixed layout (so that ends of different versions can
//! tell each other so), then frames: a length of four bytes, little-endian, and a postcard message.
//! Nothing that arrives is trusted: lengths are bounded, and so is the memory that a message
//! may come to; every message is decoded in full; text is made fit to be shown.

pub mod confine;
mod copy;
pub mod descriptors;
mod error;
mod frame;
pub mod launch;
mod link;
mod message;
mod sys;
mod text;

pub use copy::{CHUNK_BYTES, copy_in, copy_out};
pub use error::WireError;
pub use frame::{BUILD, Greeting, MAX_FRAME_BYTES, PROTOCOL, read_frame, write_frame};
pub use link::Link;
pub use tare_model::drive::ServeReport;

pub use message::{
    AgentFacts, BALLOON_REPORTS, ExecResult, ExecSpec, FromAgent, Reply, Request, ToAgent, USER_SPACE_BEGAN,
};
pub use tare_model::meter::MAX_DECODED_BYTES;
