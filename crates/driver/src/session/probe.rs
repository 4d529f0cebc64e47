//! One request before the load: a setup that cannot work ends with a message, and not with a count of errors.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::{CertificateError, ClientConnection, Error, OtherError};
use tare_model::drive::SocketOptions;

use super::http::{Answer, Step};
use super::tls::{OtherCertificate, Tls};
use crate::{DriverError, net, sockopt};

/// Longest wait for a connection, and for each piece of an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes that an answer is looked at for.
const MOST: usize = 1 << 20;
/// What is asked for: neither a page nor a file, so that nobody's counts are changed.
const PATH: &str = "/tare/ready";

/// Has one request answered by each target that is asked for by this name, whatever the answer, and returns what the kernel granted to the connection of
/// the first.
///
/// # Errors
/// Those of [`ask`], and when `cancel` is set meanwhile.
pub(crate) fn ask_each<'a>(
    targets: impl Iterator<Item = (SocketAddr, &'a str, Option<&'a Tls>)>,
    options: &SocketOptions,
    cancel: &AtomicBool,
) -> Result<Vec<(String, String)>, DriverError> {
    let mut granted = None;
    for (target, host, tls) in targets {
        if cancel.load(Ordering::Relaxed) {
            return Err(DriverError::Cancelled);
        }
        let stream = ask(target, options, host, tls)?;
        granted.get_or_insert_with(|| sockopt::granted(stream.as_fd(), true));
    }
    Ok(granted.unwrap_or_default())
}

/// A web server does not answer as it must.
#[derive(Debug, thiserror::Error)]
#[error("the web server at {target} cannot be driven: {what}; {remedy}")]
struct WebError {
    target: SocketAddr,
    /// What it did.
    what: String,
    remedy: &'static str,
}

/// Connects, and has one request answered, whatever the answer.
///
/// # Errors
/// When nothing listens there, what listens speaks another protocol, or has another certificate.
fn ask(target: SocketAddr, options: &SocketOptions, host: &str, tls: Option<&Tls>) -> Result<TcpStream, DriverError> {
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let server = Server { target, options, tls, timeout: TIMEOUT };
    let status = |step: &Step<'_>| if let Step::Head(head) = step { Some(head.status) } else { None };
    let (status, stream) = server.ask(request.as_bytes(), MOST, status)?;
    if tls.is_none() && status == 400 {
        let what = "it calls a plain request a bad one (400)".to_owned();
        let remedy = "check that this is the port for plain HTTP, and not the one for TLS";
        return Err(DriverError::application(WebError { target, what, remedy }));
    }
    Ok(stream)
}

/// A server that is asked something before the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server<'a> {
    pub target: SocketAddr,
    pub options: &'a SocketOptions,
    pub tls: Option<&'a Tls>,
    /// Longest wait for a connection, and for each piece of an answer.
    pub timeout: Duration,
}

impl Server<'_> {
    /// Connects, sends a request, and reads the answer, of at most so many bytes, until `seen` makes something of a step through it.
    ///
    /// # Errors
    /// When nothing listens there, what listens speaks another protocol, or has another certificate.
    pub fn ask<T>(
        &self,
        request: &[u8],
        most: usize,
        seen: impl FnMut(&Step<'_>) -> Option<T>,
    ) -> Result<(T, TcpStream), DriverError> {
        let Self { target, tls, timeout, .. } = *self;
        let stream: TcpStream = net::connect_tcp(target, self.options, true, timeout)?.into();
        let limited = stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)));
        limited.map_err(|source| DriverError::Connect { target, source })?;
        let silent = |error| self.silent(&error);
        let Some(tls) = tls else {
            let found = exchange(&mut &stream, request, most, seen).map_err(silent)?;
            return Ok((found, stream));
        };
        tls.tickets.of(0);
        let defect = |error: Error| {
            let remedy = "this is a defect of tare: please report it";
            DriverError::application(WebError { target, what: error.to_string(), remedy })
        };
        let mut inner = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone()).map_err(defect)?;
        let mut socket = &stream;
        while inner.is_handshaking() {
            inner.complete_io(&mut socket).map_err(|error| self.handshake(tls, &error))?;
        }
        let mut records = rustls::Stream::new(&mut inner, &mut socket);
        let found = exchange(&mut records, request, most, seen).map_err(silent)?;
        tls.tickets.forget(0);
        Ok((found, stream))
    }
}

/// Sends a request and steps through the answer until `seen` makes something of it.
fn exchange<T>(
    stream: &mut (impl Read + Write),
    request: &[u8],
    most: usize,
    mut seen: impl FnMut(&Step<'_>) -> Option<T>,
) -> io::Result<T> {
    // In one piece: a server that answers the first of several and closes resets the connection, and its answer is lost.
    stream.write_all(request)?;
    stream.flush()?;
    let (mut answer, mut piece, mut came) = (Answer::default(), [0; 4096], 0);
    while came < most {
        let count = match stream.read(&mut piece) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            read => read,
        };
        let ends = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof && answer.ends_with_connection();
        if count.as_ref().is_err_and(ends) {
            return seen(&Step::Done).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
        let count = count?;
        came += count;
        let mut input = &piece[..count];
        loop {
            let step = answer.step(&mut input).map_err(|_| io::ErrorKind::InvalidData)?;
            if let Some(found) = seen(&step) {
                return Ok(found);
            }
            match step {
                Step::More => break,
                Step::Done => return Err(io::ErrorKind::InvalidData.into()),
                Step::Head(_) | Step::Body(_) => {}
            }
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

impl Server<'_> {
    /// Why a request had no answer.
    fn silent(&self, error: &io::Error) -> DriverError {
        let (what, remedy) = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => (
                format!("it takes a connection and does not answer within {} s", self.timeout.as_secs_f64()),
                "check that the server has started and is not stuck, and that this is the port for plain HTTP",
            ),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => (
                "it closes the connection without an answer".to_owned(),
                "check which program listens there, and that this is the right one of its ports for plain HTTP and TLS",
            ),
            io::ErrorKind::InvalidData => (
                "what it answers is not HTTP/1.1".to_owned(),
                "check which program listens there, and that this is the right one of its ports for plain HTTP and TLS",
            ),
            _ => (error.to_string(), "check that the server runs and that the network between driver and guest is up"),
        };
        DriverError::application(WebError { target: self.target, what, remedy })
    }

    /// Why there is no TLS with a server.
    fn handshake(&self, tls: &Tls, error: &io::Error) -> DriverError {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        let (what, remedy) = match inner {
            Some(Error::InvalidCertificate(CertificateError::Other(OtherError(other))))
                if other.downcast_ref::<OtherCertificate>().is_some() =>
            {
                let known = tls.pinned.as_deref().map(super::tls::hexadecimal).unwrap_or_default();
                (
                    format!("it shows {other}, and not that with {known}"),
                    "check that it is the server of this run, with the certificate that was made for it",
                )
            }
            Some(Error::InvalidMessage(_) | Error::InappropriateMessage { .. }) => (
                "what it answers to TLS is not TLS".to_owned(),
                "check that this is the port for TLS, and not the one for plain HTTP",
            ),
            Some(Error::AlertReceived(alert)) => (
                format!("it refuses TLS with the alert {alert:?}"),
                "let it speak TLS 1.3, or 1.2 with ECDHE and AES-GCM or ChaCha20, which is all that the driver speaks",
            ),
            Some(Error::PeerIncompatible(reason)) => (
                format!("it speaks no TLS that the driver speaks ({reason:?})"),
                "let it speak TLS 1.3, or 1.2 with ECDHE and AES-GCM or ChaCha20",
            ),
            Some(other) => (format!("TLS failed: {other}"), "check its certificate and its settings of TLS"),
            None => return self.silent(error),
        };
        DriverError::application(WebError { target: self.target, what, remedy })
    }
}
