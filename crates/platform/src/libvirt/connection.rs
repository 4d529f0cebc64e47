//! Calls that end, whatever is at the other end.
//!
//! libvirt's calls wait for its daemon without a limit. Each is made on a thread of its own, and given up after a
//! while: the thread then stays in its call, and everything else goes on.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use super::error::LibvirtError;
use super::sys::{Connection, Domain};
use super::uri::CALL_LIMIT;

/// Does what may hang, for at most `limit`.
pub(super) fn within<T: Send + 'static>(
    limit: Duration,
    tried: &str,
    work: impl FnOnce() -> Result<T, LibvirtError> + Send + 'static,
) -> Result<T, LibvirtError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("libvirt-call".into()).spawn(move || {
        // Whoever gave up does not listen any longer.
        let _ = sender.send(work());
    });
    let thread = thread.map_err(|error| LibvirtError::Library { why: format!("no thread for its call: {error}") })?;
    match receiver.recv_timeout(limit) {
        Ok(result) => {
            // It has sent its last word and ends now; a panic in it would have sent nothing.
            let _ = thread.join();
            result
        }
        Err(_) => Err(LibvirtError::Slow { tried: tried.to_owned(), waited: limit }),
    }
}

/// Whether this program can load a library at all.
pub(super) fn loads_libraries() -> Result<(), LibvirtError> {
    if cfg!(target_feature = "crt-static") { Err(LibvirtError::Static) } else { Ok(()) }
}

/// Connects.
pub(super) fn open(uri: &str) -> Result<Arc<Connection>, LibvirtError> {
    let owned = uri.to_owned();
    within(CALL_LIMIT, &format!("connect to {uri}"), move || Connection::open(&owned).map(Arc::new))
}

/// Does something with a domain.
pub(super) fn with<T: Send + 'static>(
    domain: &Arc<Domain>,
    limit: Duration,
    tried: &str,
    work: impl FnOnce(&Domain) -> Result<T, LibvirtError> + Send + 'static,
) -> Result<T, LibvirtError> {
    let domain = Arc::clone(domain);
    within(limit, tried, move || work(&domain))
}

/// A version as libvirt counts them, as text: 9000000 is 9.0.0.
pub(super) fn version_text(version: u64) -> String {
    format!("{}.{}.{}", version / 1_000_000, version / 1000 % 1000, version % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_hangs_is_given_up() {
        let error = within(Duration::from_millis(20), "wait", || {
            std::thread::sleep(Duration::from_secs(2));
            Ok(())
        });
        assert!(matches!(error, Err(LibvirtError::Slow { .. })), "{error:?}");
        assert_eq!(within(CALL_LIMIT, "answer", || Ok(7)).unwrap(), 7);
        assert_eq!(version_text(9_000_000), "9.0.0");
        assert_eq!(version_text(7_002_022), "7.2.22");
    }
}
