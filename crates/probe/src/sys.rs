//! The one call that needs `unsafe`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Words of the answer's buffer: more than the longest structure of a [`Command`] has (`struct ethtool_drvinfo`, 196 bytes).
const WORDS: usize = 64;

/// What [`ethtool`] writes into and reads from: the command's number, and what follows it in its structure.
pub(crate) type Answer = [u32; WORDS];

/// Commands of linux/ethtool.h whose structure has a length that never changes, and fits [`Answer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Command {
    /// `struct ethtool_drvinfo`
    DriverInfo = 0x03,
    /// `struct ethtool_ringparam`
    Rings = 0x10,
    // `struct ethtool_value` from here on.
    GetReceiveChecksum = 0x14,
    GetTransmitChecksum = 0x16,
    GetScatterGather = 0x18,
    GetTso = 0x1e,
    SetTso = 0x1f,
    GetGso = 0x23,
    SetGso = 0x24,
    GetFlags = 0x25,
    GetGro = 0x2b,
    SetGro = 0x2c,
    /// `struct ethtool_channels`
    Channels = 0x3c,
}

/// Runs a command of ethtool's on a link, through any socket of the link's namespace. `argument`: what is set, of a command that sets.
pub(crate) fn ethtool(socket: BorrowedFd<'_>, link: &str, command: Command, argument: u32) -> io::Result<Answer> {
    let mut answer: Answer = [0; WORDS];
    answer[0] = command as u32;
    answer[1] = argument;
    // SAFETY: an all-zero `ifreq` is a valid value: it holds an array of bytes and a union of plain data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if link.is_empty() || link.len() >= request.ifr_name.len() || link.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(link.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = answer.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL takes an `ifreq` whose name ends in NUL (it is shorter than the field, and the rest is zero) and whose data
    // points to the command's own structure: words, the longest of which is shorter than `answer`. Both live until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
