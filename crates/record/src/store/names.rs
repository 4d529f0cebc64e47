//! Enumerations as the words that the tables hold.

use tare_model::capacity::{ProbeCause, ProbePurpose};
use tare_model::density::StopKind;
use tare_model::metric::{Better, Unit};
use tare_model::sample::Source;
use tare_model::trial::Phase;
use tare_model::turns::Waiting;

/// Prefix of a unit of the user's own.
const OTHER: &str = "other:";

pub(crate) fn unit_name(unit: &Unit) -> String {
    match unit {
        Unit::Seconds => "seconds",
        Unit::OperationsPerSecond => "operations-per-second",
        Unit::BitsPerSecond => "bits-per-second",
        Unit::CpuSecondsPerOperation => "cpu-seconds-per-operation",
        Unit::CpuSecondsPerByte => "cpu-seconds-per-byte",
        Unit::Bytes => "bytes",
        Unit::Share => "share",
        Unit::Count => "count",
        Unit::Other(name) => return format!("{OTHER}{name}"),
    }
    .to_owned()
}

pub(crate) fn unit_of(name: &str) -> Option<Unit> {
    Some(match name {
        "seconds" => Unit::Seconds,
        "operations-per-second" => Unit::OperationsPerSecond,
        "bits-per-second" => Unit::BitsPerSecond,
        "cpu-seconds-per-operation" => Unit::CpuSecondsPerOperation,
        "cpu-seconds-per-byte" => Unit::CpuSecondsPerByte,
        "bytes" => Unit::Bytes,
        "share" => Unit::Share,
        "count" => Unit::Count,
        _ => Unit::Other(name.strip_prefix(OTHER)?.to_owned()),
    })
}

pub(crate) const fn better_name(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    }
}

pub(crate) fn better_of(name: &str) -> Option<Better> {
    match name {
        "lower" => Some(Better::Lower),
        "higher" => Some(Better::Higher),
        _ => None,
    }
}

pub(crate) const fn waiting_name(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Idle => "idle",
        Waiting::Frozen => "frozen",
    }
}

pub(crate) fn waiting_of(name: &str) -> Option<Waiting> {
    match name {
        "idle" => Some(Waiting::Idle),
        "frozen" => Some(Waiting::Frozen),
        _ => None,
    }
}

/// `host`, `client`, `user-command`, `hypervisor`, `guest:NAME` or `in-guest:NAME`.
pub(crate) fn source_name(source: &Source) -> String {
    match source {
        Source::Host => "host".to_owned(),
        Source::Client => "client".to_owned(),
        Source::UserCommand => "user-command".to_owned(),
        Source::Hypervisor => "hypervisor".to_owned(),
        Source::Guest(name) => format!("guest:{name}"),
        Source::InGuest(name) => format!("in-guest:{name}"),
    }
}

pub(crate) fn source_of(name: &str) -> Option<Source> {
    match name.split_once(':') {
        None if name == "host" => Some(Source::Host),
        None if name == "client" => Some(Source::Client),
        None if name == "user-command" => Some(Source::UserCommand),
        None if name == "hypervisor" => Some(Source::Hypervisor),
        Some(("guest", guest)) => Some(Source::Guest(guest.to_owned())),
        Some(("in-guest", guest)) => Some(Source::InGuest(guest.to_owned())),
        _ => None,
    }
}

pub(crate) const fn stop_name(kind: StopKind) -> &'static str {
    match kind {
        StopKind::End => "end",
        StopKind::Memory => "memory",
        StopKind::Swap => "swap",
        StopKind::Pressure => "pressure",
        StopKind::Killed => "killed",
        StopKind::Start => "start",
        StopKind::Qos => "qos",
        StopKind::Wrong => "wrong",
    }
}

pub(crate) fn stop_of(name: &str) -> Option<StopKind> {
    use StopKind::{End, Killed, Memory, Pressure, Qos, Start, Swap, Wrong};
    [End, Memory, Swap, Pressure, Killed, Start, Qos, Wrong].into_iter().find(|&kind| stop_name(kind) == name)
}

pub(crate) const fn purpose_name(purpose: ProbePurpose) -> &'static str {
    match purpose {
        ProbePurpose::Bracket => "bracket",
        ProbePurpose::Bisect => "bisect",
        ProbePurpose::Confirm => "confirm",
    }
}

pub(crate) fn purpose_of(name: &str) -> Option<ProbePurpose> {
    use ProbePurpose::{Bisect, Bracket, Confirm};
    [Bracket, Bisect, Confirm].into_iter().find(|&purpose| purpose_name(purpose) == name)
}

pub(crate) const fn cause_name(cause: ProbeCause) -> &'static str {
    match cause {
        ProbeCause::Qos => "qos",
        ProbeCause::Invalid => "invalid",
        ProbeCause::Failed => "failed",
        ProbeCause::TooFew => "too-few",
    }
}

pub(crate) fn cause_of(name: &str) -> Option<ProbeCause> {
    use ProbeCause::{Failed, Invalid, Qos, TooFew};
    [Qos, Invalid, Failed, TooFew].into_iter().find(|&cause| cause_name(cause) == name)
}

pub(crate) fn phase_of(name: &str) -> Option<Phase> {
    Phase::ALL.into_iter().find(|phase| phase.to_string() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_as_what_they_stand_for() {
        for unit in [Unit::Seconds, Unit::BitsPerSecond, Unit::CpuSecondsPerByte, Unit::Other("events/s".to_owned())] {
            assert_eq!(unit_of(&unit_name(&unit)), Some(unit));
        }
        let guests = [Source::Guest("a:b".to_owned()), Source::InGuest("t".to_owned())];
        for source in [Source::Host, Source::Client, Source::UserCommand, Source::Hypervisor].into_iter().chain(guests)
        {
            assert_eq!(source_of(&source_name(&source)), Some(source));
        }
        for phase in Phase::ALL {
            assert_eq!(phase_of(&phase.to_string()), Some(phase));
        }
        for kind in [StopKind::End, StopKind::Memory, StopKind::Swap, StopKind::Pressure, StopKind::Killed] {
            assert_eq!(stop_of(stop_name(kind)), Some(kind));
        }
        for kind in [StopKind::Start, StopKind::Qos, StopKind::Wrong] {
            assert_eq!(stop_of(stop_name(kind)), Some(kind));
        }
        for purpose in [ProbePurpose::Bracket, ProbePurpose::Bisect, ProbePurpose::Confirm] {
            assert_eq!(purpose_of(purpose_name(purpose)), Some(purpose));
        }
        for cause in [ProbeCause::Qos, ProbeCause::Invalid, ProbeCause::Failed, ProbeCause::TooFew] {
            assert_eq!(cause_of(cause_name(cause)), Some(cause));
        }
        assert_eq!((stop_of("lunch"), purpose_of("lunch"), cause_of("lunch")), (None, None, None));
        assert_eq!(
            (unit_of("parsecs"), source_of("moon"), phase_of("lunch"), better_of("?")),
            (None, None, None, None)
        );
    }
}
