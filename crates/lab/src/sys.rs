//! The calls that need `unsafe`, each with why it is sound.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::UnshareFlags;

/// Leaves a namespace that this thread shares with others. Never the table of open files.
pub(crate) fn unshare(kinds: Unshare) -> io::Result<()> {
    let flags = match kinds {
        Unshare::Network => UnshareFlags::NEWNET,
        Unshare::Mounts => UnshareFlags::NEWNS,
        Unshare::Directories => UnshareFlags::FS,
        Unshare::UserAndMounts => UnshareFlags::NEWUSER | UnshareFlags::NEWNS,
        Unshare::Reader => UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS,
    };
    // SAFETY: the one danger of unshare(2) that Rust cares about is an unshared table of file
    // descriptors (CLONE_FILES), which none of these sets of flags asks for.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}

/// What [`unshare`] leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unshare {
    /// The network namespace, of this thread alone.
    Network,
    /// The mount namespace, of this thread alone.
    Mounts,
    /// The root and working directories, of this thread alone: who shares them may not enter a mount namespace.
    Directories,
    /// The user and mount namespaces; the kernel allows it to a process of one thread only.
    UserAndMounts,
    /// The mount, network, IPC and UTS namespaces, of this thread alone.
    Reader,
}

/// Does `work` in a process of its own, which ends with it: what it fails with is a step and the kernel's answer. The caller's
/// duty: `work` allocates nothing, takes no lock and does not panic, as other threads may hold any lock when they are left
/// behind.
pub(crate) fn in_child(work: impl FnOnce() -> Result<(), (u8, i32)>) -> io::Result<Result<(), (u8, i32)>> {
    let (mut here, there) = UnixStream::pair()?;
    // SAFETY: by the caller's duty the child makes system calls alone, and it ends by `_exit`, so that nothing of this process
    // is run twice: no destructor, no buffer that is written at an end.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let answer = match work() {
            Ok(()) => [u8::MAX, 0],
            // Error numbers of Linux fit a byte.
            Err((step, errno)) => [step, u8::try_from(errno).unwrap_or(0)],
        };
        let _ = rustix::io::write(&there, &answer);
        // SAFETY: it takes a plain number and does not return.
        unsafe { libc::_exit(0) };
    }
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    drop(there);
    let mut answer = [0; 2];
    let read = here.read_exact(&mut answer);
    while matches!(waitpid(Pid::from_raw(child), WaitOptions::empty()), Err(Errno::INTR)) {}
    read?;
    let [step, errno] = answer;
    Ok(if step == u8::MAX { Ok(()) } else { Err((step, i32::from(errno))) })
}

/// Closes every descriptor above standard error. To be called while the process has opened nothing itself.
pub(crate) fn close_inherited() -> io::Result<()> {
    // SAFETY: the caller's duty: nothing in this process owns a descriptor yet, so none is closed under its owner.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, 0 as libc::c_uint) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets nothing on a mount be a device or lend its owner's rights and, unless it `runs`, nothing be run; if so asked, nothing be written.
pub(crate) fn restrict_mount(mount: impl AsFd, read_only: bool, runs: bool) -> io::Result<()> {
    let writing = if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let running = if runs { 0 } else { libc::MOUNT_ATTR_NOEXEC };
    let attr_set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | running | writing;
    let attributes = libc::mount_attr { attr_set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path is a terminated string, and empty: the descriptor is meant. `attributes` is the structure that the call
    // expects, of the size that is passed; both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH as libc::c_uint,
            std::ptr::from_ref(&attributes),
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A socket that sends and receives ARP messages over one link, by its number in the namespace that this thread is in.
pub(crate) fn arp_socket(link: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes plain numbers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(arp_protocol())) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let at = link_address(link);
    // SAFETY: the address is a whole `sockaddr_ll` that outlives the call, and its length is passed.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&at).cast(), LINK_ADDRESS_BYTES) };
    if bound == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Sends a message over a link to all on its network.
pub(crate) fn send_arp(socket: impl AsFd, link: u32, message: &[u8]) -> io::Result<()> {
    let to = link_address(link);
    // SAFETY: message and address outlive the call, and their lengths are passed.
    let sent = unsafe {
        let (socket, to) = (socket.as_fd().as_raw_fd(), std::ptr::from_ref(&to).cast());
        libc::sendto(socket, message.as_ptr().cast(), message.len(), 0, to, LINK_ADDRESS_BYTES)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const LINK_ADDRESS_BYTES: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

/// ARP as the kernel wants a protocol: in network order.
const fn arp_protocol() -> u16 {
    (libc::ETH_P_ARP as u16).to_be()
}

/// All who are on the network of a link.
fn link_address(link: u32) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: arp_protocol(),
        sll_ifindex: link.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0],
    }
}

/// Has temporary files made in this directory. To be called while the process has one thread.
pub(crate) fn set_temporary_directory(path: &str) {
    for name in ["TMPDIR", "SQLITE_TMPDIR"] {
        // SAFETY: the caller's duty: no other thread reads or writes the environment.
        unsafe { std::env::set_var(name, path) };
    }
}

/// Has the files that this thread, and those that it starts, make belong to a user and a group (setfsuid(2)). Does nothing where the
/// process may not.
pub(crate) fn own_new_files(uid: u32, gid: u32) {
    // SAFETY: both calls take plain numbers. The group first: the right to change it goes with the user.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
}

/// An `ifreq` about the link of that name, all else in it zero.
fn request_for(link: &str) -> io::Result<libc::ifreq> {
    let name = CString::new(link)?;
    let bytes = name.as_bytes_with_nul();
    if bytes.len() > libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    // SAFETY: an all-zero `ifreq` is a valid value: it holds an array of bytes and a union of plain data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// Makes a tap of that name in the network namespace that this thread is in; it stays until it is deleted. Frames
/// bear a virtio header, as virtual network cards want them.
///
/// It belongs to this process's user. Some kernels (of the 6.12 and 6.13 series) open a tap without an owner only to those who
/// may administer its network, which a user's virtual machine may not.
pub(crate) fn make_tap(link: &str, several_queues: bool) -> io::Result<()> {
    let tun = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let mut request = request_for(link)?;
    let queues = if several_queues { libc::IFF_MULTI_QUEUE } else { 0 };
    // The flags fill 16 bits, the highest of which is the sign here.
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | queues) as libc::c_short;
    // SAFETY: TUNSETIFF takes an `ifreq` with a name that ends in NUL (`request_for` sees to that) and flags; it lives
    // until the call returns.
    if unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let owner = rustix::process::geteuid().as_raw();
    for (command, value) in [(libc::TUNSETOWNER, owner), (libc::TUNSETPERSIST, 1)] {
        // SAFETY: both commands take a plain number.
        if unsafe { libc::ioctl(tun.as_raw_fd(), command as _, value) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
