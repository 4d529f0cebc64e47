//! The guest's end: a server that listens from the moment it is made and is gone when [`Server::stop`] returns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, acceptfrom_with, shutdown};
pub use tare_model::drive::ServeReport;
use tare_model::drive::SocketOptions;
use tare_model::token::Token;

use crate::control::Breaker;
use crate::door::Door;
use crate::error::reason_of;
use crate::sys::thread_cpu;
use crate::times::Times;
use crate::{DriverError, net, sockopt};

/// Stack of a server's thread; its buffers are on the heap.
const STACK_BYTES: usize = 128 * 1024;
/// Longest wait for a driver's hello on a fresh connection.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause when no connection can be accepted (no descriptors, no memory), until some are free again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// How often a server that stops looks whether its listening threads have ended, and how long before it
/// does more than wait.
const LOOK: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_millis(100);

/// A server at work. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    /// Where it listens; the kernel chose the port.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    socket: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    granted: Vec<(String, String)>,
    tcp: bool,
}

/// What the threads of a server share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub stop: AtomicBool,
    /// When the first request came, of servers whose answers depend on it.
    pub first_request: OnceLock<u64>,
    pub tally: ServeTally,
    /// One for each thread that opens and closes connections by itself.
    pub breakers: Vec<Breaker>,
    /// Whose connections are accepted; `None`: everybody's.
    from: Option<IpAddr>,
    /// What a driver shows; `None`: every driver is let in.
    token: Option<Token>,
    /// From where somebody has shown it.
    known: Mutex<BTreeSet<IpAddr>>,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    next: u64,
    open: HashMap<u64, Arc<OwnedFd>>,
    threads: Vec<JoinHandle<()>>,
}

/// Counts of a server, added to once a connection; times of answers as they are given.
#[derive(Debug, Default)]
pub(crate) struct ServeTally {
    connections: AtomicU64,
    strangers: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    /// Windows that bulk data was sent from, and how many of them lay in huge pages.
    windows: AtomicU64,
    windows_huge: AtomicU64,
    errors: Mutex<BTreeMap<String, u64>>,
    requests: AtomicU64,
    /// Of servers that time their answers.
    service: OnceLock<Times>,
    /// Of a file store: files that were uploaded to it.
    kept: OnceLock<AtomicU64>,
    cpu_ns: AtomicU64,
}

impl ServeTally {
    pub fn served(&self, connections: u64, bytes_in: u64, bytes_out: u64) {
        self.connections.fetch_add(connections, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
    }

    /// Somebody came who is no driver of the trial.
    pub fn stranger(&self) {
        self.strangers.fetch_add(1, Ordering::Relaxed);
    }

    pub fn window(&self, huge: bool) {
        self.windows.fetch_add(1, Ordering::Relaxed);
        self.windows_huge.fetch_add(u64::from(huge), Ordering::Relaxed);
    }

    pub fn answered(&self, requests: u64) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
    }

    /// Where the times of answers are recorded.
    pub fn service(&self) -> &Times {
        self.service.get_or_init(Times::new)
    }

    /// How many files were uploaded to a store.
    pub fn kept(&self) -> &AtomicU64 {
        self.kept.get_or_init(AtomicU64::default)
    }

    /// To be called by a thread of the server that ends.
    fn thread_ends(&self) {
        let cpu = thread_cpu();
        self.cpu_ns.fetch_add(cpu.user_ns + cpu.system_ns, Ordering::Relaxed);
    }

    pub fn error(&self, reason: String) {
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_insert(0) += 1;
    }
}

impl Server {
    /// A server that listens for connections of TCP which send small pieces at once (TCP_NODELAY).
    pub(crate) fn listen(door: Door, socket: &SocketOptions, breakers: usize) -> Result<Self, DriverError> {
        let (fd, addr) = net::listen_tcp(door.address(), socket, true)?;
        Self::new(fd, addr, (true, breakers), door)
    }

    /// Its counts.
    pub(crate) fn tally(&self) -> &ServeTally {
        &self.shared.tally
    }

    /// A server on a socket that is bound, of TCP or UDP, with so many breakers for threads that open and close connections by themselves.
    pub(crate) fn new(
        fd: OwnedFd,
        addr: SocketAddr,
        (tcp, breakers): (bool, usize),
        Door { from, token, .. }: Door,
    ) -> Result<Self, DriverError> {
        let granted = sockopt::granted(fd.as_fd(), tcp);
        let breakers = (0..breakers).map(|_| Breaker::default()).collect();
        let shared = Arc::new(Shared { breakers, from, token, ..Shared::default() });
        Ok(Self { addr, shared, socket: Arc::new(fd), threads: Vec::new(), granted, tcp })
    }

    /// Gives `count` threads the server's socket.
    pub(crate) fn with_threads(
        mut self,
        count: usize,
        work: impl Fn(&Arc<Shared>, &OwnedFd, usize) + Clone + Send + 'static,
    ) -> Result<Self, DriverError> {
        for index in 0..count {
            let (shared, socket, work) = (Arc::clone(&self.shared), Arc::clone(&self.socket), work.clone());
            let thread = spawn(format!("serve-{index}"), move || {
                work(&shared, &socket, index);
                shared.tally.thread_ends();
            })
            .map_err(|source| DriverError::Resource { what: "start a server thread", source })?;
            self.threads.push(thread);
        }
        Ok(self)
    }

    /// Accepts connections and gives each a thread of its own.
    pub(crate) fn accepting(
        self,
        serve: impl Fn(&Shared, &OwnedFd) -> Result<(), String> + Clone + Send + 'static,
    ) -> Result<Self, DriverError> {
        self.with_threads(1, move |shared, listener, _| {
            while let Some((fd, _)) = shared.accept(listener) {
                shared.adopt(fd, serve.clone());
            }
        })
    }

    /// Ends all connections and threads, and tells what was served. Nothing of the server is left when it returns.
    pub fn stop(mut self) -> ServeReport {
        self.end();
        let tally = &self.shared.tally;
        let mut granted = std::mem::take(&mut self.granted);
        granted.extend(sockopt::windows(
            tally.windows.load(Ordering::Relaxed),
            tally.windows_huge.load(Ordering::Relaxed),
        ));
        granted
            .extend(tally.kept.get().map(|kept| ("files kept".to_owned(), kept.load(Ordering::Relaxed).to_string())));
        let errors = tally.errors.lock().unwrap_or_else(PoisonError::into_inner);
        ServeReport {
            connections: tally.connections.load(Ordering::Relaxed),
            strangers: tally.strangers.load(Ordering::Relaxed),
            bytes_in: tally.bytes_in.load(Ordering::Relaxed),
            bytes_out: tally.bytes_out.load(Ordering::Relaxed),
            errors: errors.iter().map(|(reason, count)| (reason.clone(), *count)).collect(),
            granted,
            requests: tally.requests.load(Ordering::Relaxed),
            service: tally.service.get().map(Times::histogram).unwrap_or_default(),
            cpu_ns: tally.cpu_ns.load(Ordering::Relaxed),
        }
    }

    /// Waits for the threads that listen. Linux wakes them when their socket is shut down; a guest's kernel that
    /// does not (sandboxes have their own network stack) gets a connection for each of them to accept.
    fn wake_listeners(&self) {
        let mut timeout = TIMEOUT;
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(LOOK);
            timeout = timeout.saturating_sub(LOOK);
            if timeout.is_zero() && self.tcp {
                // Refused or timed out is as good: the thread is looked at again.
                let _ = TcpStream::connect_timeout(&self.addr, LOOK);
            }
        }
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.breakers.iter().for_each(Breaker::cut);
        // Wakes accept() and recvfrom(); on a UDP socket it also says that it was not connected.
        let _ = shutdown(&*self.socket, Shutdown::Both);
        let threads = {
            let mut connections = self.shared.lock();
            for fd in connections.open.values() {
                let _ = shutdown(&**fd, Shutdown::Both);
            }
            std::mem::take(&mut connections.threads)
        };
        self.wake_listeners();
        for thread in self.threads.drain(..).chain(threads) {
            // A thread that panicked has ended, which is all that is asked here.
            let _ = thread.join();
        }
        // Threads that started while the others were being stopped.
        let late = std::mem::take(&mut self.shared.lock().threads);
        for thread in late {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(work)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether what a driver shows is the token that it is to show. Otherwise it is counted as a stranger.
    pub fn admits(&self, shown: &[u8; Token::LEN]) -> bool {
        let admitted = self.token.is_none_or(|token| token.is(shown));
        if !admitted {
            self.tally.stranger();
        }
        admitted
    }

    /// Whether everybody at an address is let in without showing the token again.
    pub fn knows(&self, address: Option<IpAddr>) -> bool {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.token.is_none() || address.is_some_and(|address| known().contains(&address))
    }

    /// Somebody at an address has shown the token.
    pub fn remember(&self, address: Option<IpAddr>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(address);
    }

    /// The next connection, and where it comes from; `None` when the server stops.
    pub fn accept(&self, listener: &OwnedFd) -> Option<(OwnedFd, Option<IpAddr>)> {
        loop {
            let accepted = acceptfrom_with(listener, SocketFlags::CLOEXEC);
            if self.stopping() {
                return None;
            }
            match accepted {
                Ok((fd, from)) => {
                    let from = from.and_then(|from| SocketAddr::try_from(from).ok()).map(|from| from.ip());
                    if self.from.is_none() || self.from == from {
                        return Some((fd, from));
                    }
                    self.tally.stranger();
                }
                // The driver gave up between its request and our answer: the next one, please.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => {
                    self.tally.error(format!("accept: {}", reason_of(errno)));
                    thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    /// Serves a connection on a thread of its own, known to [`Server::stop`].
    pub fn adopt(
        self: &Arc<Self>,
        fd: OwnedFd,
        serve: impl FnOnce(&Self, &OwnedFd) -> Result<(), String> + Send + 'static,
    ) {
        let fd = Arc::new(fd);
        let mut connections = self.lock();
        // Under the lock: whoever stops the server either sees this connection or is seen here.
        if self.stopping() {
            return;
        }
        let id = connections.next;
        connections.next += 1;
        connections.open.insert(id, Arc::clone(&fd));
        connections.threads.retain(|thread| !thread.is_finished());
        let shared = Arc::clone(self);
        let started = spawn(format!("serve-{id}"), move || {
            let served = serve(&shared, &fd);
            drop(fd);
            shared.tally.thread_ends();
            shared.lock().open.remove(&id);
            if let Err(reason) = served
                && !shared.stopping()
            {
                shared.tally.error(reason);
            }
        });
        match started {
            Ok(thread) => connections.threads.push(thread),
            Err(error) => {
                connections.open.remove(&id);
                self.tally.error(format!("cannot start a thread for a connection: {error}"));
            }
        }
    }
}
