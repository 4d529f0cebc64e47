//! How the CPU time that a guest is charged with splits between its kinds of threads.

use tare_platform::{Charge, Guest};

/// What the measured guests were charged with so far, those of one kind together.
pub fn read(targets: &[Box<dyn Guest>]) -> Vec<Charge> {
    together(targets.iter().flat_map(|target| target.charges()))
}

/// Charges of one kind as one, in the order in which the kinds come first.
fn together(charges: impl Iterator<Item = Charge>) -> Vec<Charge> {
    let mut all: Vec<Charge> = Vec::new();
    for charge in charges {
        match all.iter_mut().find(|known| known.kind == charge.kind) {
            Some(known) => known.cpu_s += charge.cpu_s,
            None => all.push(charge),
        }
    }
    all
}

/// What was charged between two readings, each kind with its share of all and how much of one CPU it was over
/// `seconds`. A kind that one of the readings does not have (its last thread had ended) is reported as not known.
pub fn between(before: &[Charge], after: &[Charge], seconds: f64) -> Vec<(String, String)> {
    let grown: Vec<(&str, Option<f64>)> = after
        .iter()
        .map(|charge| {
            let first = before.iter().find(|first| first.kind == charge.kind).map(|first| first.cpu_s);
            // Threads that ended take their time with them, and then the sum of those that are left may fall.
            (charge.kind.as_str(), first.map(|first| charge.cpu_s - first).filter(|grown| *grown >= 0.0))
        })
        .collect();
    let all: f64 = grown.iter().filter_map(|(_, cpu_s)| *cpu_s).sum();
    let row = |(kind, cpu_s): &(&str, Option<f64>)| {
        let value = match cpu_s {
            Some(cpu_s) if all > 0.0 && seconds > 0.0 => {
                format!("{:.1} % of the guest's, {:.1} % of one CPU", cpu_s / all * 100.0, cpu_s / seconds * 100.0)
            }
            Some(_) => "none".to_owned(),
            None => "not known".to_owned(),
        };
        (format!("CPU of the guest's threads under load: {kind}"), value)
    };
    grown.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charges(of: &[(&str, f64)]) -> Vec<Charge> {
        of.iter().map(|(kind, cpu_s)| Charge { kind: (*kind).to_owned(), cpu_s: *cpu_s }).collect()
    }

    #[test]
    fn guests_are_charged_together_by_kind() {
        let two = [charges(&[("vcpu", 1.0), ("io", 0.5)]), charges(&[("vcpu", 2.0), ("files", 3.0)])];
        assert_eq!(together(two.into_iter().flatten()), charges(&[("vcpu", 3.0), ("io", 0.5), ("files", 3.0)]));
    }

    #[test]
    fn what_was_charged_under_load_is_reported_by_kind() {
        let before = charges(&[("virtual CPUs", 1.0), ("I/O threads", 0.5), ("file server", 3.0)]);
        let after = charges(&[("virtual CPUs", 4.0), ("I/O threads", 1.5), ("file server", 2.0), ("new", 1.0)]);
        let rows = between(&before, &after, 4.0);
        let values: Vec<&str> = rows.iter().map(|(_, value)| value.as_str()).collect();
        let first = "75.0 % of the guest's, 75.0 % of one CPU";
        assert_eq!(values, [first, "25.0 % of the guest's, 25.0 % of one CPU", "not known", "not known"]);
        assert!(rows[0].0.ends_with("virtual CPUs"));
        assert_eq!(between(&before, &before, 1.0)[0].1, "none");
        assert!(between(&[], &[], 1.0).is_empty(), "a platform that tells nothing apart says nothing");
    }
}
