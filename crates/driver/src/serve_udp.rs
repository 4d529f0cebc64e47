//! Serves UDP request and response: each driver connection gets a socket and a blocking thread of its own,
//! so that one does not queue behind another.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, connect, recv, recvfrom, send, sendto};
use tare_model::drive::{SocketOptions, Wait};

use crate::error::reason_of;
use crate::net;
use crate::payload::stamp_len;
use crate::protocol::{GOODBYE, HELLO_LEN, Purpose, heard};
use crate::serve_rr::Sizes;
use crate::server::Shared;

/// How often the welcoming thread looks whether the server stops, where shutting its socket does not wake it.
const LOOK: Duration = Duration::from_millis(100);

/// Answers hellos until the server stops.
pub(crate) fn welcome(shared: &Arc<Shared>, fd: &OwnedFd, bind: IpAddr, sizes: Sizes, options: &SocketOptions) {
    // Refused, stopping may have to wait for the next datagram.
    let _ = net::receive_timeout(fd.as_fd(), Some(LOOK));
    let mut ports: HashMap<SocketAddr, u16> = HashMap::new();
    let mut buffer = [0; HELLO_LEN + 1];
    while !shared.stopping() {
        let (length, from) = match recvfrom(fd, &mut buffer, RecvFlags::empty()) {
            Ok((length, _, from)) => (length, from.and_then(|a| SocketAddr::try_from(a).ok())),
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(errno) => {
                shared.tally.error(reason_of(errno));
                std::thread::sleep(LOOK);
                continue;
            }
        };
        let (Some(from), Some((hello, shown))) = (from, heard(&buffer[..length])) else {
            if !shared.stopping() {
                shared.tally.stranger();
            }
            continue;
        };
        // From here on the driver has a socket that its address alone reaches.
        if !shared.admits(&shown) {
            continue;
        }
        let fits = sizes.reply(Purpose::UdpRr, 0).fits(&hello);
        // A driver that repeats its hello, because the answer was lost, gets the same port again.
        let port = match ports.get(&from) {
            Some(port) => *port,
            None if fits => match serve_driver(shared, from, bind, sizes, options) {
                Ok(port) => *ports.entry(from).or_insert(port),
                Err(reason) => {
                    shared.tally.error(reason);
                    continue;
                }
            },
            None => 0,
        };
        let reply = sizes.reply(Purpose::UdpRr, port).encode();
        if let Err(errno) = sendto(fd, &reply, SendFlags::empty(), &from) {
            shared.tally.error(reason_of(errno));
        }
    }
}

/// Gives a driver's connection a socket and a thread; returns the port.
fn serve_driver(
    shared: &Arc<Shared>,
    driver: SocketAddr,
    bind: IpAddr,
    sizes: Sizes,
    options: &SocketOptions,
) -> Result<u16, String> {
    let (fd, address) = net::bind_udp(SocketAddr::new(bind, 0), options).map_err(|e| e.to_string())?;
    connect(&fd, &driver).map_err(reason_of)?;
    shared.adopt(fd, move |shared, fd| serve(shared, fd, sizes));
    Ok(address.port())
}

/// Answers one driver's requests until it says goodbye or is gone.
fn serve(shared: &Shared, fd: &OwnedFd, sizes: Sizes) -> Result<(), String> {
    // Room for a goodbye, whatever the size of a request; one more byte shows a datagram that is too long.
    let size = sizes.request as usize;
    let mut request = vec![0; size.max(HELLO_LEN) + 1];
    let mut response = vec![0; sizes.response as usize];
    let stamp = stamp_len(size, response.len());
    let flags = match sizes.wait {
        Wait::Block => RecvFlags::empty(),
        Wait::Spin => RecvFlags::DONTWAIT,
    };
    let (mut received, mut sent) = (0, 0);
    let ended = loop {
        match recv(fd, request.as_mut_slice(), flags) {
            Ok((n, _)) if n == HELLO_LEN && request[..GOODBYE.len()] == GOODBYE => break Ok(()),
            Ok((n, _)) if n == size => {}
            Ok((0, _)) if shared.stopping() => break Ok(()),
            Ok(_) => {
                shared.tally.error("a datagram of the wrong size".to_owned());
                continue;
            }
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => {
                std::hint::spin_loop();
                continue;
            }
            // The driver's socket is closed.
            Err(Errno::CONNREFUSED) => break Ok(()),
            Err(errno) => break Err(reason_of(errno)),
        }
        received += 1;
        response[..stamp].copy_from_slice(&request[..stamp]);
        match send(fd, &response, SendFlags::NOSIGNAL) {
            Ok(_) => sent += 1,
            Err(Errno::CONNREFUSED) => break Ok(()),
            Err(errno) if shared.stopping() && errno == Errno::PIPE => break Ok(()),
            Err(errno) => shared.tally.error(reason_of(errno)),
        }
    };
    shared.tally.served(1, received * u64::from(sizes.request), sent * u64::from(sizes.response));
    ended
}
