//! The few system calls of the first process that need `unsafe`.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Replaces the environment. To be called only while the process has one thread.
pub(super) fn set_environment(wanted: &[(&str, &str)]) {
    let present: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    for name in present {
        // SAFETY: the process has one thread (the caller's duty: the first process starts none), so nobody else
        // reads or writes the environment.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in wanted {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
}

/// Sets the MTU, bytes.
pub(super) fn set_mtu(link: &str, mtu: u32) -> io::Result<()> {
    let mtu = i32::try_from(mtu).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    ask(link, libc::SIOCSIFMTU, |request| request.ifr_ifru.ifru_mtu = mtu).map(drop)
}

/// Sets the flag IFF_UP beside those that the interface has: of them the call would take away IFF_MULTICAST.
pub(super) fn bring_up(link: &str) -> io::Result<()> {
    let there = ask(link, libc::SIOCGIFFLAGS, |_| ())?;
    // SAFETY: SIOCGIFFLAGS was answered, which fills this member of the union (netdevice(7)).
    let there = unsafe { there.ifr_ifru.ifru_flags };
    let up = libc::c_short::try_from(libc::IFF_UP).unwrap_or(libc::c_short::MAX);
    ask(link, libc::SIOCSIFFLAGS, |request| request.ifr_ifru.ifru_flags = there | up).map(drop)
}

/// Sets the address and, by the length of the prefix, the route to its neighbours.
pub(super) fn set_address(link: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            set_v4(link, libc::SIOCSIFADDR, u32::from(address))?;
            set_v4(link, libc::SIOCSIFNETMASK, mask)
        }
        IpAddr::V6(address) => {
            let socket = UdpSocket::bind((std::net::Ipv6Addr::UNSPECIFIED, 0))?;
            let index = rustix::net::netdevice::name_to_index(&socket, link)?;
            let request = libc::in6_ifreq {
                ifr6_addr: libc::in6_addr { s6_addr: address.octets() },
                ifr6_prefixlen: u32::from(prefix),
                ifr6_ifindex: libc::c_int::try_from(index).map_err(io::Error::other)?,
            };
            // SAFETY: the call reads the structure that SIOCSIFADDR expects of a socket of IPv6 (netdevice(7)), which
            // outlives it.
            let result =
                unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFADDR as _, std::ptr::from_ref(&request)) };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        }
    }
}

fn set_v4(link: &str, code: libc::c_ulong, value: u32) -> io::Result<()> {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: value.to_be() },
        sin_zero: [0; 8],
    };
    ask(link, code, |request| {
        // SAFETY: both are plain data of 16 bytes, made to be taken for each other (sockaddr(3type)).
        request.ifr_ifru.ifru_addr = unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
    })
    .map(drop)
}

/// One request about an interface (netdevice(7)), of which `fill` sets the value; with what the kernel answered.
fn ask(link: &str, code: libc::c_ulong, fill: impl FnOnce(&mut libc::ifreq)) -> io::Result<libc::ifreq> {
    let socket = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: `ifreq` is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if link.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, &byte) in request.ifr_name.iter_mut().zip(link.as_bytes()) {
        *slot = byte as libc::c_char;
    }
    fill(&mut request);
    // SAFETY: the call reads the terminated name (shorter than the field, the rest is zero) and the value that belongs
    // to the request; the structure outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), code as _, std::ptr::from_mut(&mut request)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(request) }
}
