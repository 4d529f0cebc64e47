//! What the agent of a guest that shares the host's kernel gives up before it serves.
//!
//! All that it starts inherits it. The process has one thread: each step holds for the thread that takes it and for those that
//! it starts later.

mod calls;
mod filter;
mod landlock;
mod paths;
mod sys;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};
use tare_model::guest::Seccomp;
use tare_wire::confine::{Confinement, capability_bits};

use crate::error::{EnterError, during};

pub use landlock::facts as landlock_facts;
pub use paths::open_paths;

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Whether this process has been confined.
pub fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
}

/// Gives up what a guest has no use for: views of the kernel, capabilities, new privileges, system calls; and by Landlock, where that is
/// asked for, rights on files and ports.
///
/// # Errors
/// What could not be given up, and why. The process is then to end: it has more than it should.
pub fn confine(asked: &Confinement) -> Result<(), EnterError> {
    // It takes CAP_SYS_ADMIN, which a platform's own program may have taken away. What stays open then is read back.
    if holds(CapabilitySet::SYS_ADMIN)? {
        paths::close()?;
    }
    set_no_new_privs(true).map_err(during("give up new privileges"))?;
    drop_capabilities()?;
    // After the mounts: from here on nobody inside changes those.
    asked.landlock.as_ref().map_or(Ok(()), landlock::restrict)?;
    if asked.seccomp == Seccomp::Default {
        sys::install(&filter::program()?).map_err(during("install the filter of system calls (seccomp)"))?;
    }
    CONFINED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Has `setgroups` succeed without a change, here and in all that is started.
///
/// # Errors
/// When the kernel takes no filter.
pub fn keep_groups() -> Result<(), EnterError> {
    set_no_new_privs(true).map_err(during("give up new privileges"))?;
    sys::install(&filter::succeeding(libc::SYS_setgroups)?).map_err(during("install the filter of setgroups (seccomp)"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use libc::c_long;

    #[test]
    fn a_filtered_process_cannot_change_the_host_and_can_do_its_work() {
        let program = filter::program().unwrap();
        let ready = || set_no_new_privs(true).is_ok() && sys::install(&program).is_ok();
        let none = [0; 4];
        // What each would answer without a filter, as root, is another error or success.
        let refused: [(c_long, [c_long; 4]); 20] = [
            (libc::SYS_unshare, [c_long::from(libc::CLONE_NEWUTS), 0, 0, 0]),
            (libc::SYS_setns, [-1, 0, 0, 0]),
            (libc::SYS_mount, none),
            (libc::SYS_umount2, none),
            (libc::SYS_pivot_root, none),
            (libc::SYS_fsopen, none),
            (libc::SYS_open_tree, [-1, 0, 0, 0]),
            (libc::SYS_ptrace, none),
            (libc::SYS_process_vm_readv, none),
            (libc::SYS_bpf, [-1, 0, 0, 0]),
            (libc::SYS_perf_event_open, none),
            (libc::SYS_kexec_load, [0, 0, 0, -1]),
            (libc::SYS_init_module, none),
            (libc::SYS_finit_module, [-1, 0, 0, 0]),
            (libc::SYS_delete_module, none),
            (libc::SYS_keyctl, [-1, 0, 0, 0]),
            (libc::SYS_open_by_handle_at, [-1, 0, 0, 0]),
            (libc::SYS_userfaultfd, none),
            (libc::SYS_io_uring_setup, none),
            (libc::SYS_reboot, none),
        ];
        let allowed: [(c_long, [c_long; 4]); 8] = [
            (libc::SYS_getpid, none),
            (libc::SYS_sched_yield, none),
            (libc::SYS_epoll_create1, none),
            (libc::SYS_eventfd2, none),
            (libc::SYS_socket, [c_long::from(libc::AF_INET), c_long::from(libc::SOCK_STREAM), 0, 0]),
            (libc::SYS_setpriority, none),
            (libc::SYS_mlockall, [c_long::from(libc::MCL_CURRENT), 0, 0, 0]),
            (libc::SYS_umask, none),
        ];
        let calls: Vec<_> = refused.iter().chain(&allowed).copied().collect();
        let answers = sys::answers_in_a_child(ready, &calls);
        assert_eq!(answers.len(), calls.len(), "the child was killed: {answers:?}");
        for ((call, _), answer) in refused.iter().zip(&answers) {
            assert_eq!(*answer, libc::EPERM, "call {call}");
        }
        for ((call, _), answer) in allowed.iter().zip(&answers[refused.len()..]) {
            assert_eq!(*answer, 0, "call {call}");
        }
        let clone3 = sys::answers_in_a_child(ready, &[(libc::SYS_clone3, none)]);
        assert_eq!(clone3, [libc::ENOSYS], "libraries take that for a kernel without it");
    }

    #[test]
    fn groups_that_cannot_be_given_up_seem_to_be() {
        let program = filter::succeeding(libc::SYS_setgroups).unwrap();
        let ready = || set_no_new_privs(true).is_ok() && sys::install(&program).is_ok();
        // So many groups are refused to everybody.
        let many = [1 << 20, 0, 0, 0];
        let calls = [(libc::SYS_setgroups, many), (libc::SYS_close, [-1, 0, 0, 0])];
        assert_eq!(sys::answers_in_a_child(ready, &calls), [0, libc::EBADF]);
        assert_ne!(sys::answers_in_a_child(|| true, &calls[..1]), [0]);
    }

    #[test]
    fn without_the_filter_the_same_calls_are_answered_otherwise() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: needs root, which these calls are not refused to");
            return;
        }
        let calls = [(libc::SYS_mount, [0; 4]), (libc::SYS_fsopen, [0; 4]), (libc::SYS_ptrace, [0; 4])];
        let answers = sys::answers_in_a_child(|| true, &calls);
        assert!(answers.iter().all(|answer| *answer != libc::EPERM), "{answers:?}");
    }
}
