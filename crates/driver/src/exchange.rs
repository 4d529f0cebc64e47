//! Raw sockets: request and response, bulk streams, and the loop that does nothing.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tare_model::drive::{Direction, DriveResult, DriveSpec, Exchange, SocketDrive, SocketServer, Wait};
use tare_model::load::LoadModel;

use crate::bulk::SendSettings;
use crate::clock::now_ns;
use crate::connections::{self, Common, DriverThread};
use crate::control::Armed;
use crate::course::{Course, Drive, first_target};
use crate::crr::TcpCrr;
use crate::door::Door;
use crate::link::{self, Bulk, Link};
use crate::null::Null;
use crate::payload::Payload;
use crate::pipelined::Pipeline;
use crate::server::Server;
use crate::stream::Stream;
use crate::tally::Tally;
use crate::task::{Drives, Kind, Serves};
use crate::tcp::TcpRr;
use crate::udp::UdpRr;
use crate::{DriverError, net, serve_crr, serve_rr, serve_stream, serve_udp, sockopt, stream};

/// Longest wait for one connection to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for all of them.
const CONNECT_ALL_NS: u64 = 30_000_000_000;
/// Most bytes that fit into a UDP datagram over IPv4.
const DATAGRAM_MAX: u32 = 65_507;

pub(crate) const KINDS: &[Kind] = &[Kind::drives::<SocketDrive>(), Kind::serves::<SocketServer>()];

/// Connections that are open, a thread each.
#[derive(Debug)]
struct Links {
    spec: DriveSpec,
    kind: SocketDrive,
    links: Vec<Link>,
    granted: Vec<(String, String)>,
}

impl Drives for SocketDrive {
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
        check(spec, self)?;
        let connections = spec.load.connections();
        let deadline = now_ns() + CONNECT_ALL_NS;
        let mut links = Vec::with_capacity(connections as usize);
        let mut granted = Vec::new();
        for index in 0..connections {
            if cancel.load(Ordering::Relaxed) {
                return Err(DriverError::Cancelled);
            }
            let left = Duration::from_nanos(deadline.saturating_sub(now_ns())).min(CONNECT_TIMEOUT);
            let target = match self {
                Self::Null => None,
                _ => Some(spec.targets[index as usize % spec.targets.len()]),
            };
            let link = link::connect((spec, self), index, target, left, &mut granted)?;
            let bulk = if let Link::Bulk(bulk) = &link { Some(&bulk.fd) } else { None };
            if let Some(fd) = link.fd().or(bulk).filter(|_| granted.is_empty()) {
                granted = sockopt::granted(fd.as_fd(), !matches!(link, Link::Udp(_)));
            }
            links.push(link);
        }
        let windows = |huge: bool| {
            let lies =
                |link: &&Link| matches!(link, Link::Bulk(Bulk { window: Some(window), .. }) if window.huge || !huge);
            links.iter().filter(lies).count() as u64
        };
        granted.extend(sockopt::windows(windows(false), windows(true)));
        Ok(Box::new(Links { spec: spec.clone(), kind: self, links, granted }))
    }
}

impl Drive for Links {
    fn run(self: Box<Self>, course: Course<'_>) -> Result<DriveResult, DriverError> {
        let Self { spec, kind, links, granted } = *self;
        let operation_bytes = match kind {
            SocketDrive::Rr { request_bytes, response_bytes, .. }
            | SocketDrive::Pipelined { request_bytes, response_bytes } => (request_bytes.into(), response_bytes.into()),
            _ => (0, 0),
        };
        let long = matches!(kind, SocketDrive::Stream { .. });
        let common = Common { spec: &spec, course, operation_bytes, long, granted };
        // Every connection stays open until the last one has ended.
        let each: Vec<&Link> = links.iter().collect();
        let work = |link: &Link, thread: &DriverThread<'_>| (work((&spec, kind), link, thread), ());
        connections::run(common, each, work).map(|(result, _)| result)
    }
}

/// Refuses what cannot be driven, before anything is opened.
fn check(spec: &DriveSpec, kind: SocketDrive) -> Result<(), DriverError> {
    let invalid = |what: &str, remedy| DriverError::invalid(what, remedy);
    if kind != SocketDrive::Null {
        first_target(spec)?;
    }
    match kind {
        SocketDrive::Rr { exchange, request_bytes, response_bytes, .. } => {
            check_exchange(exchange, request_bytes, response_bytes)?;
            if exchange == Exchange::UdpRr && spec.loss_timeout_ns < 1_000 {
                return Err(invalid("datagrams count as lost at once", "give loss_timeout_ns at least 1000"));
            }
            Ok(())
        }
        SocketDrive::Pipelined { request_bytes, response_bytes } => {
            check_exchange(Exchange::TcpRr, request_bytes, response_bytes)?;
            if matches!(spec.load, LoadModel::Closed { .. }) {
                return Err(invalid("a closed loop waits for each answer", "give it arrivals"));
            }
            Ok(())
        }
        SocketDrive::Stream { direction, chunk_bytes, window_bytes, .. } => {
            check_bulk(chunk_bytes, window_bytes)?;
            if !matches!(spec.load, LoadModel::Closed { think_time, .. } if think_time.ns == 0) {
                let what = "bulk transfer has no arrivals and no think time";
                return Err(invalid(what, "use a closed loop without think time; its clients are the streams"));
            }
            if direction == Direction::Both && spec.load.connections() < 2 {
                return Err(invalid("one stream cannot flow both ways", "ask for two clients or more"));
            }
            Ok(())
        }
        SocketDrive::Null => Ok(()),
    }
}

/// Refuses sizes that no exchange can have.
fn check_exchange(exchange: Exchange, request: u32, response: u32) -> Result<(), DriverError> {
    if request == 0 || response == 0 {
        return Err(DriverError::invalid("a request or response is empty", "give both at least 1 byte"));
    }
    if exchange == Exchange::UdpRr && request.max(response) > DATAGRAM_MAX {
        let what = format!("{} bytes do not fit into a datagram", request.max(response));
        return Err(DriverError::invalid(what, "stay below 65508 bytes, or use TCP"));
    }
    Ok(())
}

/// Refuses bulk data in pieces of nothing.
fn check_bulk(chunk_bytes: u32, window_bytes: u32) -> Result<(), DriverError> {
    if chunk_bytes == 0 || window_bytes == 0 {
        let what = "bulk data is to be sent in chunks or from a window of 0 bytes";
        return Err(DriverError::invalid(what, "give both at least 1 byte; 256 KiB is a good value"));
    }
    Ok(())
}

/// The whole life of one driver thread.
fn work((spec, kind): (&DriveSpec, SocketDrive), link: &Link, thread: &DriverThread<'_>) -> Tally {
    let armed: Option<Armed<'_>> = link.fd().and_then(|fd| thread.breaker.guard(fd.as_fd()));
    let payload = || match kind {
        SocketDrive::Rr { request_bytes, response_bytes, wait, .. } => {
            Payload::new(request_bytes, response_bytes, wait)
        }
        _ => Payload::new(1, 1, Wait::Block),
    };
    match (link, kind) {
        (Link::Tcp(fd), SocketDrive::Pipelined { request_bytes, response_bytes }) => {
            thread.pipeline(Pipeline::new(fd, armed, request_bytes, response_bytes))
        }
        (Link::Tcp(fd), _) => thread.offer(TcpRr { fd, payload: payload(), _armed: armed }),
        (Link::Udp(fd), _) => {
            let loss_timeout_ns = spec.loss_timeout_ns;
            thread.offer(UdpRr { fd, payload: payload(), loss_timeout_ns, _armed: armed })
        }
        (Link::Crr(target), _) => {
            let (target, options, breaker) = (*target, &spec.socket, thread.breaker);
            thread.offer(TcpCrr { target, options, payload: payload(), breaker })
        }
        (Link::Bulk(bulk), SocketDrive::Stream { direction, method, receive, chunk_bytes, window_bytes }) => {
            let send = SendSettings { method, chunk_bytes, window_bytes };
            let (index, within) = (thread.worker.index, (CONNECT_TIMEOUT, Some(thread.breaker)));
            let target = spec.targets[index as usize % spec.targets.len()];
            let open = || Bulk::open(target, &spec.socket, (direction, &send), (index, spec.token), within);
            stream::run(&Stream { thread, send, receive, open: &open }, bulk)
        }
        (Link::Null | Link::Bulk(_), _) => thread.offer(Null),
    }
}

impl Serves for SocketServer {
    fn serve(self, door: Door) -> Result<Server, DriverError> {
        match self {
            Self::Rr { exchange, request_bytes, response_bytes, wait, hold, socket } => {
                check_exchange(exchange, request_bytes, response_bytes)?;
                let sizes = serve_rr::Sizes { request: request_bytes, response: response_bytes, wait, hold };
                match exchange {
                    Exchange::TcpRr => Server::listen(door, &socket, 0)?
                        .accepting(move |shared, fd| serve_rr::serve(shared, fd, sizes)),
                    Exchange::TcpCrr => {
                        let acceptors = serve_crr::acceptors();
                        Server::listen(door, &socket, acceptors)?.with_threads(acceptors, move |shared, fd, i| {
                            serve_crr::accept_and_serve(shared, fd, sizes, i)
                        })
                    }
                    Exchange::UdpRr => {
                        let (fd, addr) = net::bind_udp(door.address(), &socket)?;
                        let bind = door.bind;
                        Server::new(fd, addr, (false, 0), door)?
                            .with_threads(1, move |shared, fd, _| serve_udp::welcome(shared, fd, bind, sizes, &socket))
                    }
                }
            }
            Self::Stream { method, receive, chunk_bytes, window_bytes, socket } => {
                check_bulk(chunk_bytes, window_bytes)?;
                let (fd, addr) = net::listen_tcp(door.address(), &socket, false)?;
                let send = SendSettings { method, chunk_bytes, window_bytes };
                Server::new(fd, addr, (true, 0), door)?
                    .accepting(move |shared, fd| serve_stream::serve(shared, fd, &send, receive))
            }
        }
    }
}
