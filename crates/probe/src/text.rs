//! Finding figures in the kernel's small text files, without allocating.
//!
//! The `procfs` crate parses these files too and is used for what is read once. It is not used for what is read
//! many times a second: it drops the number of a CPU (wrong as soon as one is offline), refuses files without a
//! line (`meminfo` in some sandboxes, `pressure/cpu` before Linux 5.13) and builds a map of every line each time.

/// The first number after `key` on the line that begins with it: `key 1`, `key: 1 kB`, `key=1`.
pub(crate) fn value_of(text: &str, key: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(key)?;
        let rest = rest.strip_prefix([' ', '\t', ':', '='])?;
        rest.trim_start_matches([' ', '\t']).split([' ', '\t']).next()?.parse().ok()
    })
}

/// The first number in a file.
pub(crate) fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Total stall time, microseconds, of the line `some` or `full` of a pressure file.
pub(crate) fn pressure_total(text: &str, line: &str) -> Option<f64> {
    let line = text.lines().find(|candidate| candidate.split(' ').next() == Some(line))?;
    line.split(' ').find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

/// The number in `column` of the row that holds `key` in `key_column` (both from 0).
pub(crate) fn cell(text: &str, key: &str, key_column: usize, column: usize) -> Option<f64> {
    text.lines().find_map(|line| {
        let mut cells = line.split_ascii_whitespace();
        (cells.nth(key_column)? == key).then_some(())?;
        cells.nth(column.checked_sub(key_column + 1)?)?.parse().ok()
    })
}

/// Reads a list of CPUs as the kernel writes it, such as `0-3,8`.
pub(crate) fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend(first..=last.min(first.saturating_add(1 << 16)));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_mistaken_for_a_longer_one() {
        let text = "MemTotal:  10 kB\nSwapCached: 5 kB\nCached:    7 kB\n";
        assert_eq!(value_of(text, "Cached"), Some(7.0));
        assert_eq!(value_of(text, "Mem"), None);
        assert_eq!(value_of("oom 1\noom_kill 3\n", "oom_kill"), Some(3.0));
    }

    #[test]
    fn pressure_without_a_full_line_still_has_its_some_line() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=33744126\n";
        assert_eq!(pressure_total(text, "some"), Some(33_744_126.0));
        assert_eq!(pressure_total(text, "full"), None);
    }

    #[test]
    fn cells_are_found_by_the_name_in_their_row() {
        let text = " 254 0 vda 71376 11250 7973442\n 254 1 vda1 1 2 3\n";
        assert_eq!(cell(text, "vda1", 2, 5), Some(3.0));
        assert_eq!(cell(text, "vda", 2, 5), Some(7_973_442.0));
        assert_eq!(cell(text, "sda", 2, 5), None);
    }

    #[test]
    fn cpu_lists_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
        assert_eq!(cpu_list("a"), None);
    }
}
