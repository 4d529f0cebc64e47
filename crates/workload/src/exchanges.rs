//! Exchanges of messages with a server in the guest: what server and driver are asked to do, and what both must agree on.

use tare_model::drive::{
    DriveResult, Exchange, Hold, ServeReport, ServiceTime, SocketDrive, SocketOptions, SocketServer, Wait,
};
use tare_model::packed::Packed;
use tare_model::{ByteSize, Span};

use crate::site::Drive;
use crate::{WorkSite, WorkloadError};

/// Largest part of the operations that may fail or stay unfinished. A few refused connections under overload
/// are a finding; a run that fails more often measures how it fails.
pub(crate) const FAILED_MAX: f64 = 0.01;
/// Largest part of the datagrams that may be lost. Loss is in the nature of the thing, and a lost exchange counts as longer than all
/// others.
const LOST_MAX: f64 = 0.05;

/// Exchanges of one kind, all alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchanges {
    pub exchange: Exchange,
    /// Size of a request; the workload bounds it.
    pub request: ByteSize,
    /// Size of a response; the workload bounds it.
    pub response: ByteSize,
    /// Over TCP in an open loop: a request is sent when it is due, whether or not those before it were answered.
    pub pipelined: bool,
    /// How both ends wait.
    pub wait: Wait,
    /// SO_SNDBUF and SO_RCVBUF at both ends; `None`: the kernel's own.
    pub buffer: Option<ByteSize>,
    /// How long the server takes over each answer; `None`: no longer than it must.
    pub service: Option<ServiceTime>,
    /// Whether each exchange is recorded.
    pub record: bool,
    /// A UDP exchange unanswered for this long is lost.
    pub loss_timeout: Span,
}

impl Exchanges {
    /// Has the guest's agent serve them; the server's number, and what a driver is asked to do.
    pub fn serve(&self, site: &WorkSite<'_>) -> Result<(u64, Drive), WorkloadError> {
        let Self { exchange, request, response, wait, record, loss_timeout, .. } = *self;
        let (request_bytes, response_bytes) = (bytes(request), bytes(response));
        // The lab sets congestion control for both ends' namespaces, so sockets need not.
        let socket = SocketOptions { buffer_bytes: self.buffer.map(bytes), congestion_control: None };
        let (server, address) = site.serve(&SocketServer::Rr {
            exchange,
            request_bytes,
            response_bytes,
            wait,
            hold: self.service.map(Hold::Service).or(site.slowed_permille.map(Hold::Share)),
            socket: socket.clone(),
        })?;
        let kind = if self.pipelined {
            SocketDrive::Pipelined { request_bytes, response_bytes }
        } else {
            SocketDrive::Rr { exchange, request_bytes, response_bytes, wait }
        };
        Ok((server, Drive { task: Packed::of(&kind)?, targets: vec![address], socket, record, loss_timeout }))
    }

    /// How server and driver disagree about the exchanges of all phases, if they do. Every answered one was served,
    /// and on a stream none was served beyond those but `in_doubt`: at most one a connection that was under way
    /// at the end, and those that failed. Of datagrams any number may have been served and lost on their way back.
    pub fn disagreement(&self, report: &ServeReport, answered: u64, in_doubt: u64) -> Option<String> {
        let (request, response) = (self.request.0.max(1), self.response.0.max(1));
        let (received, sent) = (report.bytes_in / request, report.bytes_out / response);
        let whole = report.bytes_in.is_multiple_of(request) && report.bytes_out.is_multiple_of(response);
        let too_few = received < answered || sent < answered;
        let too_many = self.exchange != Exchange::UdpRr && received.max(sent) > answered + in_doubt;
        (!whole || too_few || too_many).then(|| {
            format!(
                "the driver counts {answered} answered exchanges in all phases (and {in_doubt} at most in doubt), but the server received {} bytes, {received} requests, and sent {} bytes, {sent} responses",
                report.bytes_in, report.bytes_out
            )
        })
    }
}

// Workloads bound all sizes far below u32.
fn bytes(size: ByteSize) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}

/// Why figures must not be used in which so many operations got no answer.
pub(crate) fn unanswered(result: &DriveResult) -> Option<String> {
    let failed: u64 = result.errors.iter().map(|(_, count)| count).sum();
    let (lost, unfinished) = (result.lost, result.unfinished);
    let all = result.operations + failed + lost + unfinished;
    let bad = (failed + unfinished) as f64 > FAILED_MAX * all as f64 || lost as f64 > LOST_MAX * all as f64;
    let first = result.errors.first().map(|(reason, _)| format!("; first error: {reason}")).unwrap_or_default();
    bad.then(|| {
        format!(
            "of {all} exchanges {failed} failed, {unfinished} were unfinished (together {} % are allowed) and {lost} were lost ({} %){first}",
            FAILED_MAX * 100.0,
            LOST_MAX * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_driver_must_agree_about_what_was_exchanged() {
        let report = |received: u64, sent: u64| ServeReport {
            bytes_in: received * 128,
            bytes_out: sent * 64,
            ..ServeReport::default()
        };
        let check = |exchange, report| {
            let (request, response, loss_timeout) = (ByteSize(128), ByteSize(64), Span::ZERO);
            let (wait, buffer, service, record, pipelined) = (Wait::Block, None, None, true, false);
            let exchanges =
                Exchanges { exchange, request, response, pipelined, wait, buffer, service, record, loss_timeout };
            exchanges.disagreement(&report, 1000, 4)
        };
        assert_eq!(check(Exchange::TcpRr, report(1000, 1000)), None);
        assert_eq!(check(Exchange::TcpRr, report(1004, 1002)), None);
        assert!(check(Exchange::TcpRr, report(1005, 1000)).unwrap().contains("1005 requests"));
        assert!(check(Exchange::TcpCrr, report(999, 1000)).is_some());
        assert!(check(Exchange::TcpRr, report(1000, 999)).is_some());
        assert!(check(Exchange::TcpRr, ServeReport { bytes_in: 128_001, ..report(1000, 1000) }).is_some());
        assert_eq!(check(Exchange::UdpRr, report(1900, 1900)), None, "answers may be lost on their way");
        assert!(check(Exchange::UdpRr, report(999, 999)).is_some());
    }
}
