//! Answers of agents, made fit to be shown ([`tare_model::clean`]). What only a workload knows is made so where it is unpacked.

use tare_model::clean::Untrusted;
use tare_model::sample::{Sample, Source};

use crate::ServeReport;
use crate::message::{AgentFacts, Reply};

/// The answer with all its text fit to be shown. Bytes, such as a command's output, stay as they are.
pub(crate) fn clean(mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::Hello { version, .. } => version.clean(),
        Reply::Facts(AgentFacts { facts }) => facts.clean(),
        Reply::Described(machine) => machine.clean(),
        Reply::Served(ServeReport { errors, granted, .. }) => {
            errors.clean();
            granted.clean();
        }
        Reply::Driven(result) => {
            result.errors.clean();
            result.granted.clean();
            result.steps.clean();
        }
        Reply::Samples { samples, .. } => {
            // A guest tells what it sees inside, and nothing about the host or the client.
            samples.retain(|sample| matches!(sample.source, Source::InGuest(_)));
            for Sample { source, series, .. } in samples {
                series.clean();
                if let Source::InGuest(name) = source {
                    name.clean();
                }
            }
        }
        Reply::Clock { .. }
        | Reply::Serving { .. }
        | Reply::Prepared { .. }
        | Reply::BusyStarted { .. }
        | Reply::BusyIterations { .. }
        | Reply::Executed(_)
        | Reply::Started { .. }
        | Reply::Looked { .. }
        | Reply::Holding { .. }
        | Reply::File { .. }
        | Reply::Fetched { .. }
        | Reply::Called { .. }
        | Reply::Done
        | Reply::BusyRan(_)
        | Reply::Keeps { .. } => {}
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::drive::DriveResult;
    use tare_model::environment::{HardwareTable, Machine};
    use tare_model::trial::Step;

    #[test]
    fn every_text_of_an_answer_is_cleaned_and_bytes_are_not() {
        let facts = vec![("k\u{1b}".to_owned(), "v\u{7}".to_owned())];
        let Reply::Facts(AgentFacts { facts }) = clean(Reply::Facts(AgentFacts { facts })) else { return };
        assert_eq!(facts[0], ("k\u{fffd}".to_owned(), "v\u{fffd}".to_owned()));
        let report = ServeReport { errors: vec![("\u{1b}".into(), 1)], ..ServeReport::default() };
        assert!(matches!(clean(Reply::Served(report)), Reply::Served(r) if r.errors[0].0 == "\u{fffd}"));
        let sample = |source| Sample { at_ns: 1, source, series: "a\u{1b}".into(), value: 1.0 };
        let samples = vec![sample(Source::Host), sample(Source::InGuest("g\u{7}".into()))];
        let Reply::Samples { samples, .. } = clean(Reply::Samples { samples, cpu_ns: 0 }) else { return };
        assert_eq!(samples.len(), 1, "a guest spoke for the host");
        assert_eq!((&samples[0].source, &*samples[0].series), (&Source::InGuest("g\u{fffd}".into()), "a\u{fffd}"));
        let table = HardwareTable { rows: vec![vec!["m\u{1b}".to_owned()]], ..HardwareTable::default() };
        let machine = Machine { hardware: vec![table], ..Machine::default() };
        let Reply::Described(machine) = clean(Reply::Described(Box::new(machine))) else { return };
        assert_eq!(machine.hardware[0].rows, [["m\u{fffd}"]]);
        let looked = |bytes: &[u8]| Reply::Looked {
            stdout: bytes.to_vec(),
            stderr: bytes.to_vec(),
            ended: None,
            resident_peak_bytes: Some(1),
        };
        assert_eq!(clean(looked(b"\x1b")), looked(b"\x1b"));
        let file = Reply::File { bytes: vec![0x1b], total_bytes: 1 };
        assert_eq!(clean(file.clone()), file);
    }

    #[test]
    fn what_a_driver_reports_is_cleaned() {
        let hostile = || vec![("\u{1b}[2J".to_owned(), 3)];
        let step = Step { name: "login\u{1b}".into(), within: true, times: Default::default() };
        let result = DriveResult { errors: hostile(), steps: vec![step], ..DriveResult::default() };
        let Reply::Driven(result) = clean(Reply::Driven(Box::new(result))) else { return };
        assert_eq!(result.errors, [("\u{fffd}[2J".to_owned(), 3)]);
        assert_eq!(result.steps[0].name, "login\u{fffd}");
    }
}
