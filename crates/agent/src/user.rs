//! Becoming a user of one's own, with the few capabilities that a program needs.

use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use tare_wire::launch::{LaunchCapability, LaunchUser};

use crate::error::{EnterError, during};

/// Becomes the user. The capabilities are kept across the start of a program. To be called while the process has one thread.
pub(crate) fn become_user(user: &LaunchUser) -> Result<(), EnterError> {
    become_in_steps(user).map_err(during(format!("become the user {}", user.uid)))
}

fn become_in_steps(user: &LaunchUser) -> Result<(), Errno> {
    let kept = user.capabilities.iter().fold(CapabilitySet::empty(), |kept, &one| kept | bit(one));
    set_keep_capabilities(true)?;
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for one in all.filter(|&one| !kept.contains(one)) {
        match remove_capability_from_bounding_set(one) {
            // The kernel knows no more.
            Err(Errno::INVAL) => break,
            other => other?,
        }
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    // In a user namespace of one user there is nobody else to become, and groups cannot be given up.
    if uid == rustix::process::geteuid() {
        rustix::process::chdir("/")?;
    } else {
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
    }
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })?;
    for &one in &user.capabilities {
        configure_capability_in_ambient_set(bit(one), true)?;
    }
    set_no_new_privs(true)
}

const fn bit(capability: LaunchCapability) -> CapabilitySet {
    match capability {
        LaunchCapability::DacOverride => CapabilitySet::DAC_OVERRIDE,
        LaunchCapability::FileOwner => CapabilitySet::FOWNER,
        LaunchCapability::SetCapabilities => CapabilitySet::SETPCAP,
        LaunchCapability::Chroot => CapabilitySet::SYS_CHROOT,
    }
}
