//! Exceptions that may only shrink: each names its present size, and both more and less than that
//! is a finding, so that what was won is never lost again.

use std::collections::BTreeMap;

/// One exception of the table.
pub struct Exception<'a> {
    /// What it is about, as the rule writes it.
    pub subject: String,
    /// Its size when it was last looked at.
    pub size: usize,
    /// Why it is there.
    pub reason: &'a str,
}

/// Compares what was measured with the limit and the exceptions. Returns (subject, complaint).
pub fn compare(
    measured: &BTreeMap<String, usize>,
    limit: usize,
    unit: &str,
    exceptions: &[Exception<'_>],
) -> Vec<(String, String)> {
    let mut complaints = Vec::new();
    for exception in exceptions {
        let size = measured.get(&exception.subject).copied().unwrap_or(0);
        let allowed = exception.size;
        let complaint = if exception.reason.trim().is_empty() {
            "its exception gives no reason".to_owned()
        } else if size <= limit {
            format!("is down to {size} {unit}, within the limit of {limit}: remove its exception")
        } else if size > allowed {
            format!("has {size} {unit}; its exception allows {allowed}: make it smaller, not the exception larger")
        } else if size < allowed {
            format!("is down to {size} {unit}: lower its exception from {allowed} to {size}")
        } else {
            continue;
        };
        complaints.push((exception.subject.clone(), complaint));
    }
    for (subject, &size) in measured {
        if size > limit && !exceptions.iter().any(|exception| exception.subject == *subject) {
            complaints.push((subject.clone(), format!("has {size} {unit}; the limit is {limit}")));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(size: usize, allowed: Option<usize>, reason: &str) -> Option<String> {
        let measured = BTreeMap::from([("a".to_owned(), size)]);
        let exceptions: Vec<Exception<'_>> =
            allowed.map(|size| Exception { subject: "a".into(), size, reason }).into_iter().collect();
        let mut complaints = compare(&measured, 10, "lines", &exceptions);
        assert!(complaints.len() <= 1);
        complaints.pop().map(|(_, text)| text)
    }

    #[test]
    fn the_limit_itself_is_fine_and_one_more_is_not() {
        assert_eq!(complaint(10, None, ""), None);
        assert_eq!(complaint(11, None, "").as_deref(), Some("has 11 lines; the limit is 10"));
    }

    #[test]
    fn an_exception_holds_at_its_size_only() {
        assert_eq!(complaint(20, Some(20), "table"), None);
        assert!(complaint(21, Some(20), "table").is_some_and(|text| text.contains("allows 20")));
        assert!(complaint(19, Some(20), "table").is_some_and(|text| text.contains("from 20 to 19")));
    }

    #[test]
    fn an_exception_that_is_not_needed_or_not_explained_has_to_go() {
        assert!(complaint(10, Some(20), "table").is_some_and(|text| text.contains("remove")));
        assert!(complaint(20, Some(20), " ").is_some_and(|text| text.contains("no reason")));
    }
}
