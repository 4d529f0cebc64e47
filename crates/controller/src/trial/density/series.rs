//! Which number of guests comes next.

use tare_model::density::GuestSeries;

/// The next number of guests, or of tiles, to be measured after those that were `tried` (number, whether it held), in order. `ceiling`:
/// more than so many cannot stand. `None`: nothing more is to be measured.
pub(super) fn next(series: &GuestSeries, tried: &[(u32, bool)], ceiling: Option<u32>) -> Option<u32> {
    let held = tried.iter().filter(|(_, held)| *held).map(|(guests, _)| *guests).max().unwrap_or(0);
    let failed = tried.iter().filter(|(_, held)| !held).map(|(guests, _)| *guests).min();
    let aim = match (series, failed) {
        (_, None) => series.after(held),
        (GuestSeries::Search { .. }, Some(failed)) => (failed > held + 1).then(|| held + (failed - held) / 2),
        (GuestSeries::Listed(_), Some(_)) => None,
    };
    aim.map(|aim| ceiling.map_or(aim, |most| aim.min(most))).filter(|aim| *aim > held)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that is measured where up to `good` guests hold and up to `room` can stand.
    fn measured(series: &GuestSeries, good: u32, room: u32) -> Vec<u32> {
        let mut tried: Vec<(u32, bool)> = Vec::new();
        let mut ceiling = None;
        while let Some(aim) = next(series, &tried, ceiling) {
            let stands = aim.min(room);
            if stands < aim {
                ceiling = Some(stands);
                // What then is next is asked again.
                continue;
            }
            tried.push((aim, aim <= good));
            assert!(tried.len() < 50, "{tried:?}");
        }
        tried.into_iter().map(|(guests, _)| guests).collect()
    }

    #[test]
    fn a_list_is_gone_through_until_one_fails_or_no_more_can_stand() {
        let list = GuestSeries::Listed(vec![1, 4, 8, 12]);
        assert_eq!(measured(&list, 99, 99), [1, 4, 8, 12]);
        assert_eq!(measured(&list, 6, 99), [1, 4, 8], "no way down in a list");
        assert_eq!(measured(&list, 99, 6), [1, 4, 6], "the last that stands is measured too");
        assert_eq!(measured(&list, 99, 4), [1, 4], "and not twice");
        assert_eq!(measured(&GuestSeries::Listed(vec![4]), 99, 2), [2]);
    }

    #[test]
    fn a_search_finds_the_largest_that_holds() {
        let search = |from, most| GuestSeries::Search { from, most };
        assert_eq!(measured(&search(1, 10), 99, 99), [1, 2, 3, 5, 8, 10]);
        assert_eq!(measured(&search(1, 64), 6, 99), [1, 2, 3, 5, 8, 6, 7]);
        assert_eq!(measured(&search(4, 64), 2, 99), [4, 2, 3], "below the first");
        assert_eq!(measured(&search(4, 64), 0, 99), [4, 2, 1]);
        assert_eq!(measured(&search(1, 64), 6, 7), [1, 2, 3, 5, 7, 6], "a full host, and then an objective");
        assert_eq!(measured(&search(1, 64), 99, 7), [1, 2, 3, 5, 7]);
        for good in 0..30 {
            let tried = measured(&search(1, 40), good, 99);
            assert_eq!(tried.iter().filter(|guests| **guests <= good).max().copied().unwrap_or(0), good, "{tried:?}");
            let once: std::collections::BTreeSet<_> = tried.iter().collect();
            assert_eq!(once.len(), tried.len(), "each once: {tried:?}");
        }
    }
}
