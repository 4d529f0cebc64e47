//! `stream`: bulk data, modelled on netperf's TCP_STREAM, TCP_MAERTS and TCP_SENDFILE.

mod deviations;
mod probe;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::deviation::Deviation;
use tare_model::drive::{Direction, DriveResult, ReceiveMethod, SendMethod, SocketDrive, SocketOptions, SocketServer};
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::packed::Packed;
use tare_model::traits::{Renewed, TurnTraits};
use tare_model::{ByteSize, Span};
use tare_wire::ServeReport;

use crate::entry::{Entry, filled, read, schema};
use crate::site::Drive;
use crate::yields::{add_server, from_result};
use crate::{Driven, Prepared, Schedule, Traits, UnitOfWork, WorkSite, Workload, WorkloadError};
use probe::Probe;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "stream",
    summary: "bulk data over TCP, one way or both: throughput, and latency under load",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        check_load(&parameters, load)?;
        Ok(Box::new(Stream { parameters, streams: load.connections() }))
    },
    normalise: |parameters| filled(checked(parameters)?),
    view: None,
};

/// Parameters of `stream`. The number of streams is the number of clients of the load.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// Seen from the guest: `receive`, `send`, or `both` (half of the streams each way).
    pub direction: Direction,
    /// `sendfile`, or `write` from a buffer.
    pub method: SendMethod,
    /// `read` into a buffer, as applications do, or `truncate`: the receiver drops bytes uncopied.
    pub receive: ReceiveMethod,
    /// Bytes handed to the kernel in one call.
    pub chunk: ByteSize,
    /// Bytes of the file that sendfile cycles through; beyond the CPU's caches it measures memory too.
    pub window: ByteSize,
    /// SO_SNDBUF and SO_RCVBUF at both ends; absent: the kernel tunes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<ByteSize>,
    /// Small exchanges beside the streams, such as `{ every = "10ms" }`: latency under load. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<probe::Parameters>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            direction: Direction::Receive,
            method: SendMethod::Sendfile,
            receive: ReceiveMethod::Read,
            chunk: ByteSize(256 << 10),
            window: ByteSize(1 << 20),
            buffer: None,
            probe: None,
        }
    }
}

fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    for (field, size) in [("chunk", Some(read.chunk)), ("window", Some(read.window)), ("buffer", read.buffer)] {
        if size.is_some_and(|size| size.0 == 0 || size.0 > 1 << 30) {
            return Err(FieldError::new(&[field], "this size is between 1B and 1GiB"));
        }
    }
    if read.chunk > read.window && read.method == SendMethod::Sendfile {
        let message = format!("a chunk of {} does not fit in a window of {}", read.chunk, read.window);
        return Err(FieldError::new(&["chunk"], message).help("make the window at least as large as the chunk"));
    }
    read.probe.map_or(Ok(()), |probe| probe.check())?;
    Ok(read)
}

/// Whether the load is one that bulk data can be offered as.
fn check_load(parameters: &Parameters, load: &LoadModel) -> Result<(), FieldError> {
    match load {
        LoadModel::Open { .. } => {
            Err(FieldError::new(&["load"], "bulk data has no arrivals, so an open loop means nothing here")
                .help("write `load = { closed = { clients = N } }`: N streams"))
        }
        LoadModel::Closed { think_time, .. } if *think_time != Span::ZERO => {
            Err(FieldError::new(&["load", "closed", "think-time"], "streams do not think")
                .help("leave `think-time` out"))
        }
        LoadModel::Closed { clients: 1, .. } if parameters.direction == Direction::Both => {
            Err(FieldError::new(&["direction"], "one stream cannot flow both ways")
                .help("offer at least two clients: half of the streams flow each way"))
        }
        LoadModel::Closed { .. } => Ok(()),
    }
}

struct Stream {
    parameters: Parameters,
    streams: u32,
}

impl Stream {
    /// Each turn has new connections. A stream that runs alone takes about 1 ms to flush its socket buffers and 2 ms to open the next connection,
    /// of which the file that is sent takes 1 ms a MiB. In the first part of a turn its window grows: with it a turn of 10 ms was seen to have
    /// 8 % less throughput than one of 40 ms. How fast a stream is differs by 15 % from connection to connection, so many short turns tell
    /// more than a few long ones. With a probe some of its exchanges are due in the measured part of every turn.
    fn turns(&self) -> TurnTraits {
        let Parameters { method, window, probe, .. } = &self.parameters;
        let file_mib = if *method == SendMethod::Sendfile { window.0.div_ceil(1 << 20) } else { 0 };
        let gap_ms = 2 + u64::from(self.streams).saturating_mul(1 + file_mib);
        let gap = Span::from_millis(gap_ms);
        let probed = probe.map_or(Span::ZERO, |probe| Span { ns: gap.ns + 2 * probe.every.ns });
        TurnTraits {
            turn: Span::from_millis(gap_ms.saturating_mul(6)).max(probed),
            warm_up: gap,
            gap,
            renewed: Some(Renewed::Connections),
            freezes: true,
            commands: None,
        }
    }

    // `checked` bounds all sizes to 1 GiB.
    fn bytes(size: ByteSize) -> u32 {
        u32::try_from(size.0).unwrap_or(u32::MAX)
    }

    fn socket(&self) -> SocketOptions {
        SocketOptions { buffer_bytes: self.parameters.buffer.map(Self::bytes), congestion_control: None }
    }
}

impl Workload for Stream {
    fn metrics(&self) -> Vec<MetricSpec> {
        let rate = |id: &str, label: &str| MetricSpec::new(id, label, Unit::BitsPerSecond, Better::Higher);
        let mut metrics = vec![rate("throughput_bits_per_s", "throughput").primary()];
        if self.parameters.direction == Direction::Both {
            metrics.push(rate("to_guest_bits_per_s", "throughput to the guest"));
            metrics.push(rate("from_guest_bits_per_s", "throughput from the guest"));
        }
        metrics.extend(self.parameters.probe.iter().flat_map(|_| probe::Parameters::metrics()));
        metrics
    }

    fn unit_of_work(&self) -> UnitOfWork {
        UnitOfWork::Byte
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        Traits { turns: Some(self.turns()), ..Traits::of(*guest) }
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let Parameters { direction, method, receive, chunk, window, .. } = self.parameters;
        let (chunk_bytes, window_bytes) = (Self::bytes(chunk), Self::bytes(window));
        let spec = SocketServer::Stream { method, receive, chunk_bytes, window_bytes, socket: self.socket() };
        let (server, address) = site.serve(&spec)?;
        let kind = SocketDrive::Stream { direction, method, receive, chunk_bytes, window_bytes };
        let task = Packed::of(&kind)?;
        let drive =
            Drive { task, targets: vec![address], socket: self.socket(), record: true, loss_timeout: Span::ZERO };
        let both = direction == Direction::Both;
        let deviations = deviations::deviations(&self.parameters, self.streams);
        let probe = self.parameters.probe.map(|probe| Probe::prepare(site, probe)).transpose()?;
        Ok(Box::new(Running { server, drive, both, deviations, probe, drivers: Vec::new(), moved: (0, 0) }))
    }
}

/// A server that listens in the guest, and what the driver is asked to do.
struct Running {
    server: u64,
    drive: Drive,
    both: bool,
    /// What differs from the published original.
    deviations: Vec<Deviation>,
    /// What measures latency beside the streams.
    probe: Option<Probe>,
    /// Numbers of the connected drivers: that of the streams, and that of the probe.
    drivers: Vec<u64>,
    /// Bytes to and from the guest in all phases, as the driver counts them.
    moved: (u64, u64),
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        self.drivers = vec![site.connect(self.drive.clone(), schedule)?];
        if let Some(probe) = &self.probe {
            self.drivers.push(probe.connect(site, schedule)?);
        }
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let mut results = site.drive_beside(std::mem::take(&mut self.drivers), schedule)?.into_iter();
        let streams = results.next().ok_or(WorkloadError::NotConnected)?;
        self.moved = (streams.bytes_to_guest_total, streams.bytes_from_guest_total);
        let mut driven = Driven { deviations: self.deviations.clone(), ..yields(streams, self.both) };
        if let (Some(probe), Some(result)) = (&mut self.probe, results.next()) {
            probe.add(result, &mut driven);
        }
        Ok(driven)
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let report = site.stop_server(self.server)?;
        if driven.work == 0.0 {
            return Ok(Some("no byte was carried in steady state".into()));
        }
        add_server(&report, driven);
        let probed = self.probe.as_ref().map_or(Ok(None), |probe| probe.verify(site, driven))?;
        Ok(disagreement(self.moved, &report).or(probed))
    }
}

/// How server and driver disagree about the bytes of all phases, to the byte, if they do.
fn disagreement((to_guest, from_guest): (u64, u64), report: &ServeReport) -> Option<String> {
    (report.bytes_in != to_guest || report.bytes_out != from_guest).then(|| {
        format!(
            "the driver counts {to_guest} bytes to the guest and {from_guest} from it in all phases, but the server received {} and sent {}",
            report.bytes_in, report.bytes_out
        )
    })
}

/// The metrics of `stream` from what the driver saw.
fn yields(result: DriveResult, both: bool) -> Driven {
    let window = result.measured_s();
    let to_guest = result.bytes_to_guest as f64 * 8.0 / window;
    let from_guest = result.bytes_from_guest as f64 * 8.0 / window;
    let broken = result.errors.first().cloned();
    let verified = result.verified;
    let mut driven = from_result(result, UnitOfWork::Byte);
    let metrics = &mut driven.measurement.metrics;
    metrics.insert("throughput_bits_per_s".into(), to_guest + from_guest);
    if both {
        metrics.insert("to_guest_bits_per_s".into(), to_guest);
        metrics.insert("from_guest_bits_per_s".into(), from_guest);
    }
    if let Some((reason, count)) = broken {
        driven.invalid = Some(format!("{count} streams failed, first: {reason}"));
    } else if !verified {
        driven.invalid = Some("bytes sent and bytes received do not agree".into());
    }
    driven
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const OPEN: LoadModel =
        LoadModel::Open { rate: tare_model::Rate(1.0), arrivals: tare_model::load::Arrivals::Poisson, connections: 1 };

    fn refusal(parameters: &Value, load: &LoadModel) -> FieldError {
        match (ENTRY.make)(parameters, load) {
            Ok(_) => panic!("{parameters} was accepted"),
            Err(error) => error,
        }
    }

    #[test]
    fn loads_that_bulk_data_cannot_be_offered_as_are_refused() {
        let one = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
        assert!(refusal(&json!({}), &OPEN).help.unwrap().contains("closed"));
        assert_eq!(refusal(&json!({"direction": "both"}), &one).path, ["direction"]);
    }

    #[test]
    fn turns_are_long_against_what_it_takes_to_renew_the_connections_of_all_streams() {
        let turns = |parameters: &Value, clients| {
            let load = LoadModel::Closed { clients, think_time: Span::ZERO };
            let workload = (ENTRY.make)(parameters, &load).ok().unwrap();
            let turns = workload.traits(&tare_model::traits::ANY_SIZE, 1).turns.unwrap();
            (turns.turn, turns.gap)
        };
        let ms = Span::from_millis;
        assert_eq!(turns(&json!({}), 1), (ms(24), ms(4)));
        assert_eq!(turns(&json!({"method": "write", "window": "64MiB"}), 4), (ms(36), ms(6)));
        assert_eq!(turns(&json!({"window": "64MiB"}), 2), (ms(792), ms(132)));
        assert_eq!(turns(&json!({"probe": {}}), 1), (ms(24), ms(4)));
        assert_eq!(
            turns(&json!({"probe": {"every": "50ms"}}), 1),
            (ms(104), ms(4)),
            "two exchanges are measured in each"
        );
    }

    #[test]
    fn a_probe_that_is_none_or_a_load_of_its_own_is_refused_at_its_field() {
        let refused = |probe: Value| checked(&json!({ "probe": probe })).unwrap_err();
        for (probe, field) in [
            (json!({"every": "0s"}), "every"),
            (json!({"every": "999us"}), "every"),
            (json!({"every": "101ms"}), "every"),
            (json!({"request": "0B"}), "request"),
            (json!({"response": "4097B"}), "response"),
            (json!({"rate": "10/s"}), "rate"),
        ] {
            assert_eq!(refused(probe).path, ["probe", field]);
        }
        let error = refused(json!({"every": "0s"}));
        assert!(error.message.contains("1ms and 100ms") && error.help.is_some(), "{error}");
        let whole = checked(&json!({"probe": {"every": "5ms"}})).unwrap().probe;
        assert_eq!(whole.map(|probe| (probe.every, probe.request)), Some((Span::from_millis(5), ByteSize(1))));
        assert_eq!(checked(&json!({})).unwrap().probe, None, "off");
    }

    #[test]
    fn latency_under_load_is_a_metric_where_there_is_a_probe() {
        let ids = |parameters: Value| -> Vec<String> {
            let one = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
            let workload = (ENTRY.make)(&parameters, &one).ok().unwrap();
            workload.metrics().into_iter().map(|spec| spec.id).collect()
        };
        assert_eq!(ids(json!({})), ["throughput_bits_per_s"]);
        let probed = ["throughput_bits_per_s", "latency_under_load_p50_s", "latency_under_load_p99_s"];
        assert_eq!(ids(json!({"probe": {}})), probed);
    }

    #[test]
    fn server_and_driver_must_agree_to_the_byte() {
        let report = ServeReport { bytes_in: 7, bytes_out: 9, ..ServeReport::default() };
        assert_eq!(disagreement((7, 9), &report), None);
        assert!(disagreement((7, 8), &report).is_some() && disagreement((8, 9), &report).is_some());
    }

    #[test]
    fn a_chunk_larger_than_its_window_is_refused() {
        let error = checked(&json!({"chunk": "2MiB"})).unwrap_err();
        assert!(error.message.contains("2MiB") && error.message.contains("1MiB"), "{error}");
    }
}
