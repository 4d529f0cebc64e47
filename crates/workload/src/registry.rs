//! The workloads there are: one line each.

pub use crate::entry::Entry;
pub use crate::workloads::ALL;

/// The workload of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use serde_json::json;
    use tare_model::Span;
    use tare_model::load::LoadModel;

    const ONE_CLIENT: LoadModel = LoadModel::Closed { clients: 1, think_time: Span::ZERO };

    /// The fewest parameters that each workload needs.
    fn minimal(name: &str) -> Value {
        match name {
            "exec" => json!({"command": ["true"]}),
            "http" => json!({"command": ["true"], "requests": ["/"]}),
            "tile" => json!({"members": [{"name": "shop", "workload": "java"}]}),
            _ => json!({}),
        }
    }

    #[test]
    fn every_workload_has_one_primary_metric_and_it_comes_first() {
        for entry in ALL {
            let workload = (entry.make)(&minimal(entry.name), &ONE_CLIENT).unwrap();
            let primary: Vec<bool> = workload.metrics().iter().map(|metric| metric.primary).collect();
            assert_eq!(primary.iter().filter(|p| **p).count(), 1, "{}", entry.name);
            assert!(primary[0], "{}", entry.name);
        }
    }

    #[test]
    fn normalised_parameters_are_accepted_again_and_stay_as_they_are() {
        for entry in ALL {
            let once = (entry.normalise)(&minimal(entry.name)).unwrap();
            assert_eq!((entry.normalise)(&once).unwrap(), once, "{}", entry.name);
        }
    }

    #[test]
    fn an_unknown_parameter_is_refused_by_name() {
        for entry in ALL {
            let mut parameters = minimal(entry.name);
            parameters["requets"] = json!("128B");
            let error = (entry.normalise)(&parameters).unwrap_err();
            assert!(error.message.contains("requets"), "{}: {error}", entry.name);
        }
    }
}
