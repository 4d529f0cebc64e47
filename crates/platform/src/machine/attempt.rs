//! An attempt to boot a guest by KVM: what was found, or that the host was only slow.
//!
//! That the device is there says little: inside another hypervisor it may be there and boot no ordinary kernel. Such a guest
//! ends at once, or its processor stands still. A guest on a busy host comes up, late. Both are silent on the channel, so
//! the attempt watches the console: its kernel prints all the way ([`TALKS`]). CPU time would not tell them
//! apart, since a processor that hangs may spin in the host's kernel. Where guests may not even take as long as one that stands still
//! is watched, nothing is remembered of it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use tare_image::{GuestConfig, Root};
use tare_wire::{Link, WireError};

use crate::channel::Tail;
use crate::probe_cache::Failure;

/// A guest whose console says nothing for so long stands still, or for half of the time that a guest may take where that is
/// longer: whoever gives guests more time has a slow host, and silence lasts longer on it too.
const STILL: Duration = Duration::from_secs(30);
/// What was done, in every reason.
const TRIED: &str = "KVM looked usable (/dev/kvm), a guest was tried";
/// How often the console is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// For the kernel of a guest that is tried, after the words for every guest's: its console is to move.
pub(crate) const TALKS: &str = "loglevel=7";

/// How long a guest that is tried is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Without a word on its console.
    pub still: Duration,
    /// In all.
    pub within: Duration,
}

impl Limits {
    /// Those of an arm whose guests may take so long (`boot-within`).
    pub(crate) fn within(within: Duration) -> Self {
        Self { still: STILL.max(within / 2), within }
    }
}

/// The configuration of a guest that is only tried.
pub(crate) fn config(name: &str) -> GuestConfig {
    GuestConfig::new("probe", name, Root::Initrd)
}

/// Waits for the agent of a guest that is tried, as long as its console moves and at most as long as the limits say.
///
/// `open` opens the channel within a time; `end` ends the guest, and with it the wait; `ended` says how the guest ended by
/// itself, if it did, and whether another would end so too; it is asked where the channel broke.
///
/// # Errors
/// Lasting where the guest stood still; as `ended` says where it ended by itself; passing where it was still on its way.
pub(crate) fn answers(
    limits: Limits,
    console: &Tail,
    open: impl FnOnce(Duration) -> Result<Link, WireError>,
    end: impl FnOnce() + Send,
    ended: impl FnOnce() -> Option<Failure>,
) -> Result<(), Failure> {
    let (done, over) = mpsc::channel::<()>();
    let (opened, stood_still) = std::thread::scope(|scope| {
        let watch = move || {
            let stood_still = stands_still(limits.still, console, &over);
            if stood_still {
                end();
            }
            stood_still
        };
        let watching = std::thread::Builder::new().name("attempt-watch".into()).spawn_scoped(scope, watch);
        let watching = match watching {
            Ok(watching) => watching,
            Err(source) => return (Err(WireError::Io { doing: "starting a thread", source }), false),
        };
        let opened = open(limits.within);
        drop(done);
        (opened, watching.join().unwrap_or(false))
    });
    let Err(error) = opened else { return Ok(()) };
    Err(failure(limits, stood_still, &error, console, ended))
}

/// Waits until the console has said nothing for so long, or until it is over, and says which it was.
fn stands_still(still: Duration, console: &Tail, over: &mpsc::Receiver<()>) -> bool {
    let (mut taken, mut moved) = (console.taken(), Instant::now());
    while over.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        let now = console.taken();
        if now != taken {
            (taken, moved) = (now, Instant::now());
        } else if moved.elapsed() >= still {
            return true;
        }
    }
    false
}

fn failure(
    limits: Limits,
    stood_still: bool,
    error: &WireError,
    console: &Tail,
    ended: impl FnOnce() -> Option<Failure>,
) -> Failure {
    let said = || format!("the last it said: {}", console.last_line());
    if stood_still {
        let why = format!("{TRIED}, and its console stood still for {:?}; {}", limits.still, said());
        return Failure::Lasting(why);
    }
    if matches!(error, WireError::Timeout { .. }) {
        return Failure::Passing(format!(
            "{TRIED}, and it had not answered after {:?}, which is not remembered: this host may only be slow or busy now, and a \
             longer `boot-within` of the arm waits longer; {}",
            limits.within,
            said()
        ));
    }
    // Its last words may come as late as its end.
    let ended = ended();
    let said = said();
    match ended {
        Some(Failure::Lasting(how)) => Failure::Lasting(format!("{TRIED}, and it ended: {how}; {said}")),
        Some(Failure::Passing(how)) => Failure::Passing(format!(
            "{TRIED}, and it ended while it booted, which is not remembered: the next command tries again. How it ended: {how}; {said}"
        )),
        None => Failure::Passing(format!("{TRIED}, and {error}; {said}")),
    }
}
