//! What differs from the published original, report 001.

use tare_model::deviation::Deviation;

use super::{Direction, Parameters, ReceiveMethod, SendMethod};

/// Streams as published (report 001, line 46: five servers, each with a client).
const STREAMS: u32 = 5;

/// What differs with these parameters and so many streams.
pub(super) fn deviations(parameters: &Parameters, streams: u32) -> Vec<Deviation> {
    let pair = ("netperf 2.4.5, a process for each stream", "tare's own, with the same calls");
    let why = "netperf does not check that bytes sent and bytes received agree";
    let mut all = vec![Deviation::new("program", pair, why, "little: the calls are the same")];
    let mut differs = |what: &str, published: &str, here: String, effect: &str| {
        all.push(Deviation::new(what, (published, here), "the study asks for it", effect));
    };
    if parameters.method != SendMethod::Sendfile {
        differs("sending", "sendfile", "write from a buffer".to_owned(), "the sender copies: more CPU a byte");
    }
    if parameters.receive != ReceiveMethod::Read {
        differs(
            "receiving",
            "read",
            "bytes are dropped uncopied".to_owned(),
            "the receiver copies nothing: less CPU a byte",
        );
    }
    if streams != STREAMS {
        differs("streams", "5", streams.to_string(), "other queues and locks are shared");
    }
    if parameters.direction == Direction::Both {
        differs("direction", "one at a time", "both at once".to_owned(), "each takes CPU from the other");
    }
    if let Some(size) = parameters.buffer {
        differs("buffers of sockets", "tuned by the kernel", size.to_string(), "another number of bytes on the way");
    }
    all.extend(parameters.probe.map(|probe| probe.deviation()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_listed() {
        let names = |parameters: &Parameters, streams: u32| -> Vec<String> {
            deviations(parameters, streams).into_iter().map(|own| own.what).collect()
        };
        assert_eq!(names(&Parameters::default(), 5), ["program"]);
        let (method, direction, probe) =
            (SendMethod::Write, Direction::Both, Some(super::super::probe::Parameters::default()));
        let other = Parameters { method, direction, probe, ..Parameters::default() };
        let differ = ["program", "sending", "streams", "direction", "latency probe beside the streams"];
        assert_eq!(names(&other, 1), differ);
    }
}
