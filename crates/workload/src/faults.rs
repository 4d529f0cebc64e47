//! Wrong answers by their kind, as drivers of sessions count them.

use crate::Driven;

/// How the names of their counts begin.
const FAULT: &str = "fault: ";
/// Kinds that are shown, the most frequent.
const SHOWN: usize = 6;

/// Adds them to the counts.
pub(crate) fn count(driven: &mut Driven, faults: &[(String, u64)]) {
    driven.measurement.counts.extend(faults.iter().map(|(kind, count)| (format!("{FAULT}{kind}"), *count)));
}

/// Kinds with their counts, all phases, the most frequent first.
pub(crate) fn shown(faults: &[(String, u64)]) -> String {
    let mut kinds: Vec<&(String, u64)> = faults.iter().collect();
    kinds.sort_by(|(_, one), (_, other)| other.cmp(one));
    let shown: Vec<String> = kinds.iter().take(SHOWN).map(|(kind, count)| format!("{kind}: {count}")).collect();
    let more = kinds.len().saturating_sub(SHOWN);
    match (shown.is_empty(), more) {
        (true, _) => "of unknown kind".to_owned(),
        (false, 0) => format!("in all phases {}", shown.join(", ")),
        (false, more) => format!("in all phases {}, and {more} kinds more", shown.join(", ")),
    }
}
