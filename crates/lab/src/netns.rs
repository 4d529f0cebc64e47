//! Network namespaces held by a file descriptor.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use crate::error::{LabError, Result};
use crate::netlink::Netlink;
use crate::sys;

/// A network namespace. It lives as long as a descriptor or a process holds it, so nothing of it stays
/// when the controller is killed and its guests with it.
#[derive(Debug)]
pub struct NetNs {
    fd: OwnedFd,
}

impl NetNs {
    /// Makes a new namespace with its loopback link up. The caller's thread stays where it is.
    ///
    /// # Errors
    /// When the kernel does not allow a new namespace (neither root nor in a user namespace).
    pub fn create() -> Result<Self> {
        scratch("tare-netns", || {
            let netns = Self::unshare_here()?;
            let netlink = Netlink::new()?;
            let links = netlink.open()?;
            netlink.wait(links.up("lo"))?;
            Ok(netns)
        })?
    }

    /// The namespace that this thread is in.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub fn current() -> Result<Self> {
        Self::open("/proc/thread-self/ns/net")
    }

    /// The namespace that a process is in.
    ///
    /// # Errors
    /// When there is no such process, or this one may not look into it.
    pub fn of_process(pid: u32) -> Result<Self> {
        Self::open(&format!("/proc/{pid}/ns/net"))
    }

    fn open(path: &str) -> Result<Self> {
        let fd = File::open(path).map_err(|e| LabError::system(format!("open {path}"), e))?;
        Ok(Self { fd: fd.into() })
    }

    /// Moves this thread into a new namespace. For scratch threads only.
    pub(crate) fn unshare_here() -> Result<Self> {
        sys::unshare(sys::Unshare::Network).map_err(|e| LabError::system("make a network namespace", e))?;
        Self::current()
    }

    /// Moves this thread into this namespace. For scratch threads only.
    pub(crate) fn enter_here(&self) -> Result<()> {
        move_into_thread_name_spaces(self.fd.as_fd(), ThreadNameSpaceType::NETWORK)
            .map_err(|e| LabError::system("enter a network namespace", e))
    }

    /// A path by which other programs may open this namespace while this process lives and keeps it:
    /// `/proc/PID/fd/N`.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd()))
    }

    /// The descriptor that holds it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The kernel's number of this namespace, as in `net:[4026531840]`.
    ///
    /// # Errors
    /// When the descriptor cannot be asked.
    pub fn inode(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|e| LabError::system("look at a network namespace", e))?;
        Ok(stat.st_ino)
    }

    /// Runs `f` on a scratch thread inside this namespace and waits for it. Sockets that `f` opens
    /// belong to the namespace and may be used from anywhere afterwards.
    ///
    /// # Errors
    /// When the thread cannot be made or may not enter.
    ///
    /// # Panics
    /// When `f` does.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        scratch("tare-in-netns", || {
            self.enter_here()?;
            Ok(f())
        })?
    }

    /// A second handle on the same namespace.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let fd = self.fd.try_clone().map_err(|e| LabError::system("copy a handle of a network namespace", e))?;
        Ok(Self { fd })
    }
}

/// Runs `f` on a thread that ends with it, so that it may change its namespaces freely.
pub(crate) fn scratch<T: Send>(name: &str, f: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn_scoped(scope, f)
            .map_err(|e| LabError::system("start a thread", e))?;
        thread.join().map_or_else(|panic| std::panic::resume_unwind(panic), Ok)
    })
}
