//! What the agent of a guest that shares the host's kernel gives up before it serves.
//!
//! All that it starts inherits it. The process has one thread: each step holds for the thread that takes it and for those that
//! it starts later.

mod calls;
mod filter;
mod paths;
mod sys;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};
use tare_model::guest::Seccomp;
use tare_wire::confine::capability_bits;

use crate::enter::{EnterError, during};

pub use paths::open_paths;

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Whether this process has been confined.
pub fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
}

/// Gives up what a guest has no use for: views of the kernel, capabilities, new privileges, system calls.
///
/// # Errors
/// What could not be given up, and why. The process is then to end: it has more than it should.
pub fn confine(seccomp: Seccomp) -> Result<(), EnterError> {
    // It takes CAP_SYS_ADMIN, which a platform's own program may have taken away. What stays open then is read back.
    if holds(CapabilitySet::SYS_ADMIN)? {
        paths::close()?;
    }
    set_no_new_privs(true).map_err(during("give up new privileges"))?;
    drop_capabilities()?;
    if seccomp == Seccomp::Default {
        sys::install(&filter::program()?).map_err(during("install the filter of system calls (seccomp)"))?;
    }
    CONFINED.store(true, Ordering::Relaxed);
    Ok(())
}

fn holds(capability: CapabilitySet) -> Result<bool, EnterError> {
    let sets = capabilities(None).map_err(during("read its capabilities"))?;
    Ok(sets.effective.contains(capability))
}

fn drop_capabilities() -> Result<(), EnterError> {
    let kept = CapabilitySet::from_bits_retain(capability_bits());
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // This kernel has no capability of that number, and none of a greater one.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => {
                let error = io::Error::from(error);
                return Err(during(format!("take capability {number} out of the bounding set"))(error));
            }
        }
    }
    clear_ambient_capability_set().map_err(during("clear the ambient capabilities"))?;
    let has = capabilities(None).map_err(during("read its capabilities"))?;
    let sets = CapabilitySets {
        effective: has.permitted & kept,
        permitted: has.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(during("give up capabilities"))
}
