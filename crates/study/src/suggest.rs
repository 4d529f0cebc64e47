//! "Did you mean ...?"

use std::str::FromStr;

/// The candidate that `written` was probably meant to be, if one is near enough.
///
/// Near enough is a third of the word in Damerau-Levenshtein edits, at least one: `steady-stat` and
/// `seady_state` find `steady-state`, `foo` does not find `qos`.
pub fn nearest<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let plain = |word: &str| word.to_lowercase().replace(['_', ' '], "-");
    let wanted = plain(written);
    let limit = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Whether a name in words has this one among them, whatever its letters' case.
pub(crate) fn names(words: &str, name: &str) -> bool {
    words.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case(name))
}

/// Help for a name that is not one of `candidates`: the nearest, else all of them.
pub(crate) fn help<'c>(written: &str, what: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    let all: Vec<&str> = candidates.into_iter().collect();
    if let Some(meant) = nearest(written, all.iter().copied()) {
        return format!("did you mean `{meant}`?");
    }
    if all.is_empty() {
        return format!("there are no {what}");
    }
    let list: Vec<String> = all.iter().map(|name| format!("`{name}`")).collect();
    format!("{what}: {}", list.join(", "))
}

/// Help for a quantity without its unit: what it would be with one.
pub(crate) fn with_unit<T: FromStr>(written: &str) -> Option<String> {
    const UNITS: [&str; 7] = ["ms", "s", "MiB", "iB", "B", "/s", "bit/s"];
    const CASED: [&str; 14] =
        ["B", "KiB", "kB", "MiB", "MB", "GiB", "GB", "TiB", "TB", "ms", "s", "kbit/s", "Mbit/s", "Gbit/s"];
    let written = written.trim();
    // A unit whose letters are in the wrong case, or which may be of either kind.
    let (number, unit) = written.split_at(written.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(written.len()));
    let same =
        |own: &&&str| [(*own).to_lowercase(), own.replace('i', "").to_lowercase()].contains(&unit.to_lowercase());
    let recased = CASED.iter().filter(same).map(|unit| format!("{number}{unit}"));
    let quantities = recased.chain(UNITS.iter().map(|unit| format!("{written}{unit}")));
    let meant: Vec<String> = quantities
        .filter(|quantity| quantity.parse::<T>().is_ok())
        .map(|quantity| format!("{quantity:?}"))
        .take(2)
        .collect();
    (!meant.is_empty()).then(|| format!("a quantity needs its unit: did you mean {}?", meant.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_find_what_was_meant() {
        let fields = ["warm-up", "ramp-up", "steady-state", "ramp-down"];
        assert_eq!(nearest("steady-stat", fields), Some("steady-state"));
        assert_eq!(nearest("steady_state", fields), Some("steady-state"));
        assert_eq!(nearest("Warmup", fields), Some("warm-up"));
        assert_eq!(nearest("rmap-up", fields), Some("ramp-up"));
    }

    #[test]
    fn a_quantity_without_its_unit_is_shown_with_one() {
        use tare_model::units::{BitRate, ByteSize, Rate, Span};
        let asked = |list| Some(format!("a quantity needs its unit: did you mean {list}?"));
        assert_eq!(with_unit::<Span>("300"), asked("\"300ms\" or \"300s\""));
        assert_eq!(with_unit::<ByteSize>("256M"), asked("\"256MiB\" or \"256MB\""));
        assert_eq!(with_unit::<ByteSize>("256"), asked("\"256MiB\" or \"256B\""));
        assert_eq!(with_unit::<Rate>("1000"), asked("\"1000/s\""));
        assert_eq!(with_unit::<BitRate>("1G"), asked("\"1Gbit/s\""));
        assert_eq!(with_unit::<ByteSize>("256mb"), asked("\"256MiB\" or \"256MB\""));
        assert_eq!(with_unit::<BitRate>("1gbit/s"), asked("\"1Gbit/s\""));
        assert_eq!(with_unit::<Span>("5S"), asked("\"5s\""));
        assert!(names("Kata Containers", "kata") && !names("runc", "run"));
        assert_eq!(with_unit::<Span>("soon"), None);
    }

    #[test]
    fn another_word_finds_nothing_and_lists_everything() {
        assert_eq!(nearest("duration", ["warm-up", "qos"]), None);
        assert_eq!(help("duration", "fields here", ["warm-up", "qos"]), "fields here: `warm-up`, `qos`");
        assert_eq!(help("x", "platforms", []), "there are no platforms");
    }
}
