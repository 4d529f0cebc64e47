//! Requests by type, added up: over types, drivers, instances and guests.

use tare_model::Histogram;
use tare_model::trial::RequestType;

/// The sum of request types, without their times.
pub fn total(types: &[RequestType]) -> RequestType {
    types.iter().fold(RequestType::default(), |mut sum, one| {
        sum.add_counts(one);
        sum
    })
}

/// The times of all types together.
pub fn times(types: &[RequestType]) -> Histogram {
    types.iter().fold(Histogram::default(), |mut all, one| {
        all.merge(&one.times);
        all
    })
}

/// Adds request types to those of the same name.
pub fn add_types(all: &mut Vec<RequestType>, more: Vec<RequestType>) {
    for one in more {
        let Some(known) = all.iter_mut().find(|known| known.name == one.name) else {
            all.push(one);
            continue;
        };
        known.add_counts(&one);
        known.times.merge(&one.times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yields::tests::histogram;

    #[test]
    fn types_of_one_name_are_added_and_their_sum_is_that_of_all() {
        let one = |name: &str, requests| RequestType {
            name: name.into(),
            requests,
            good: requests,
            times: histogram(1_000_000, requests),
            ..RequestType::default()
        };
        let mut all = vec![one("home", 3)];
        add_types(&mut all, vec![one("login", 2), one("home", 4)]);
        let added: Vec<(&str, u64, u64)> =
            all.iter().map(|one| (one.name.as_str(), one.requests, one.times.count())).collect();
        assert_eq!(added, [("home", 7, 7), ("login", 2, 2)]);
        assert_eq!(total(&all).requests, 9);
    }
}
