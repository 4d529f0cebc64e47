//! The network between the driver's place and a guest.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::net::sockopt::socket_incoming_cpu;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tare_model::Span;
use tare_model::drive::{
    Direction, DriveResult, DriveSpec, Exchange, ReceiveMethod, SendMethod, SocketDrive, SocketOptions, SocketServer,
    Wait,
};
use tare_model::guest::GuestSpec;
use tare_model::load::{LoadModel, Phases};
use tare_model::packed::{PackError, Packed};
use tare_wire::{Link, Reply, Request, WireError};

use super::{Broken, CLIENT_CPU, GUEST_CPU, Ground, hold, skip, slower};
use crate::{ClientPlace, Guest, LinkEnd};

/// How long a driver measures, milliseconds, on a host that is not slower than others (`TARE_SLOWER`).
const STEADY_MS: u64 = 200;
/// Connections of the driver: one stream cannot flow both ways.
const STREAMS: u32 = 2;
/// The largest body of a request: several packets, in both directions.
const LARGE_BYTES: u32 = 16 << 10;

impl Ground<'_> {
    /// Requests and responses small and large, and bulk data both ways.
    pub(super) fn exchanges(&self, guest: &dyn Guest) -> Result<(), Broken> {
        for bytes in [128, LARGE_BYTES] {
            let (exchange, wait) = (Exchange::TcpRr, Wait::Block);
            let (request_bytes, response_bytes) = (bytes, bytes);
            let socket = SocketOptions::default();
            let serve = SocketServer::Rr { exchange, request_bytes, response_bytes, wait, hold: None, socket };
            let kind = SocketDrive::Rr { exchange, request_bytes, response_bytes, wait };
            let result = self.drive(guest, &serve, &kind)?;
            hold(result.operations > 0 && result.errors.is_empty(), || {
                format!("request and response of {bytes} bytes: {result:?}")
            })?;
        }
        let (method, receive) = (SendMethod::Write, ReceiveMethod::Read);
        let (chunk_bytes, window_bytes) = (64 << 10, 1 << 20);
        let serve =
            SocketServer::Stream { method, receive, chunk_bytes, window_bytes, socket: SocketOptions::default() };
        let kind = SocketDrive::Stream { direction: Direction::Both, method, receive, chunk_bytes, window_bytes };
        let result = self.drive(guest, &serve, &kind)?;
        let moved = result.bytes_to_guest_total > 0 && result.bytes_from_guest_total > 0;
        hold(moved && result.verified && result.errors.is_empty(), || format!("bulk data: {result:?}"))
    }

    /// What comes in for it is processed by its own side's CPU, and what it sends to the client by the client's: the kernel
    /// says of a socket on which CPU it received. Seen on a socket that nobody reads, beside the guest's programs.
    pub(super) fn receives_on_its_own_cpus(&self, guest: &dyn Guest) -> Result<(), Broken> {
        // A guest with a kernel of its own has no link that can be looked into.
        let Some(link) = guest.links().into_iter().find(|link| link.end == LinkEnd::Guest) else { return Ok(()) };
        if !self.lab.steering().is_some_and(|row| row.equal) {
            skip("receive steering is not granted here: on which CPU a guest receives is not checked");
            return Ok(());
        }
        let address = guest.address();
        let inside = within(&link.netns, || UdpSocket::bind((address, 0)));
        let Ok(inside) = inside else {
            skip("the guest's own network stack has the address: on which CPU it receives is not checked");
            return Ok(());
        };
        let steered = || -> io::Result<[u32; 2]> {
            let own = self.lab.client_address();
            let outside = self.lab.client().run(|| UdpSocket::bind((own, 0)));
            let outside = outside.map_err(io::Error::other)??;
            // The kernel notes the CPU for connected sockets only.
            inside.connect(outside.local_addr()?)?;
            outside.connect(inside.local_addr()?)?;
            // Each end sends from its own side's CPU.
            on_cpu(CLIENT_CPU, || outside.send(b"to the guest"))?;
            let ready = |socket: &UdpSocket| {
                socket.set_read_timeout(Some(self.expect.timeout))?;
                socket.peek(&mut [0]).and_then(|_| Ok(socket_incoming_cpu(socket)?))
            };
            let to_guest = ready(&inside)?;
            on_cpu(GUEST_CPU, || inside.send(b"to the client"))?;
            Ok([to_guest, ready(&outside)?])
        };
        let cpus = steered().map_err(|error| format!("datagrams beside the guest's programs: {error}"))?;
        hold(cpus == [GUEST_CPU, CLIENT_CPU], || {
            format!("guest and client received on the CPUs {cpus:?}, not on [{GUEST_CPU}, {CLIENT_CPU}]")
        })
    }

    fn drive(&self, guest: &dyn Guest, server: &SocketServer, drive: &SocketDrive) -> Result<DriveResult, Broken> {
        let packed = |error: PackError| error.to_string();
        let task = Packed::of(server).map_err(packed)?;
        let (server, target) = match self.ask(guest, Request::Serve { task, bind: guest.listen(), from: None })? {
            Reply::Serving { server, address } => (server, SocketAddr::new(guest.address(), address.port())),
            other => return Err(format!("asked to serve, it answered {other:?}")),
        };
        let steady_state = Span::from_millis(STEADY_MS * u64::from(slower()));
        let load = LoadModel::Closed { clients: STREAMS, think_time: Span::ZERO };
        let task = Packed::of(drive).map_err(packed)?;
        let spec = DriveSpec::new(task, vec![target], load, Phases::measuring(steady_state));
        let mut driver = self.driver()?;
        let result = self.run_driver(driver.link(), spec);
        driver.destroy().map_err(|error| error.to_string())?;
        self.ask(guest, Request::StopServe { server })?;
        result.map_err(|error| format!("{error}. The guest said: {}", guest.diagnostics()))
    }

    fn run_driver(&self, link: &Link, spec: DriveSpec) -> Result<DriveResult, WireError> {
        let timeout = self.expect.timeout;
        let Reply::Prepared { drive } = link.call(Request::PrepareDrive(Box::new(spec)), timeout)? else {
            return Err(WireError::Unexpected { request: "connect the driver" });
        };
        match link.call(Request::StartDrive { drive, start_at_ns: 0 }, timeout)? {
            Reply::Driven(result) => Ok(*result),
            _ => Err(WireError::Unexpected { request: "drive load" }),
        }
    }

    /// An agent where its guests can be reached.
    fn driver(&self) -> Result<Box<dyn Guest>, Broken> {
        let place = if self.is_in_lab() { ClientPlace::Lab } else { ClientPlace::Host };
        let spec = GuestSpec::new("driver", self.expect.guest);
        crate::client(&self.site(), &spec, place).map_err(|error| format!("no driver started: {error}"))
    }
}

/// Does something on a thread of its own, which ends with it.
fn apart<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let ended = std::thread::scope(|scope| scope.spawn(act).join());
    ended.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
}

/// In the network namespace of this path.
fn within<T: Send>(netns: &Path, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    apart(|| {
        move_into_link_name_space(File::open(netns)?.as_fd(), Some(LinkNameSpaceType::Network))?;
        act()
    })
}

/// On this CPU.
fn on_cpu<T: Send>(cpu: u32, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    apart(|| {
        tare_lab::set_affinity(None, &[cpu]).map_err(io::Error::other)?;
        act()
    })
}
