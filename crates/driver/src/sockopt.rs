//! Socket settings: asked for, and read back as the kernel granted them.

use std::os::fd::BorrowedFd;

use rustix::net::sockopt;
use tare_model::drive::SocketOptions;

use crate::DriverError;

const ASK_ROOT: &str = "as an ordinary user only the values in net.ipv4.tcp_allowed_congestion_control are allowed, \
                        and the algorithm's module must be loaded on the host";

/// Applies settings to a fresh socket, before it connects or listens: the kernel fixes the TCP window scale then.
pub(crate) fn apply(fd: BorrowedFd<'_>, options: &SocketOptions, tcp: bool, nodelay: bool) -> Result<(), DriverError> {
    if let Some(bytes) = options.buffer_bytes {
        let refused = |option| {
            move |source: rustix::io::Errno| DriverError::Option {
                option,
                value: bytes.to_string(),
                source: source.into(),
                remedy: "choose a positive number of bytes below 2 GiB",
            }
        };
        sockopt::set_socket_send_buffer_size(fd, bytes as usize).map_err(refused("SO_SNDBUF"))?;
        sockopt::set_socket_recv_buffer_size(fd, bytes as usize).map_err(refused("SO_RCVBUF"))?;
    }
    if !tcp {
        return Ok(());
    }
    if nodelay {
        sockopt::set_tcp_nodelay(fd, true).map_err(|source| DriverError::Option {
            option: "TCP_NODELAY",
            value: "1".to_owned(),
            source: source.into(),
            remedy: "this kernel does not have a basic TCP option; use another kernel",
        })?;
    }
    if let Some(name) = &options.congestion_control {
        sockopt::set_tcp_congestion(fd, name).map_err(|source| DriverError::Option {
            option: "TCP_CONGESTION",
            value: name.clone(),
            source: source.into(),
            remedy: ASK_ROOT,
        })?;
    }
    Ok(())
}

/// What the kernel granted, as name and value. What cannot be read (a sandbox may not tell) is left out.
pub(crate) fn granted(fd: BorrowedFd<'_>, tcp: bool) -> Vec<(String, String)> {
    let mut granted = Vec::new();
    let mut note = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            granted.push((name.to_owned(), value));
        }
    };
    note("send_buffer_bytes", sockopt::socket_send_buffer_size(fd).ok().map(|n| n.to_string()));
    note("receive_buffer_bytes", sockopt::socket_recv_buffer_size(fd).ok().map(|n| n.to_string()));
    if tcp {
        note("congestion_control", sockopt::tcp_congestion(fd).ok());
        note("nodelay", sockopt::tcp_nodelay(fd).ok().map(|on| on.to_string()));
    }
    granted
}

/// Whether the windows that bulk data is sent from lie in huge pages, as name and value; nothing without a window.
pub(crate) fn windows(all: u64, huge: u64) -> Option<(String, String)> {
    let value = match huge {
        0 => "no".to_owned(),
        n if n == all => "yes".to_owned(),
        n => format!("{n} of {all} windows"),
    };
    (all > 0).then(|| ("window_in_huge_pages".to_owned(), value))
}
