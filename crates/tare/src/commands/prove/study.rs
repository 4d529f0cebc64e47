//! The studies of the bars, each with its cases taken several times.

use toml::{Table, Value};

use crate::exit::{Exit, Failure};

/// Equal arms without a layer, and in one.
pub const EQUAL: [&str; 2] = [
    include_str!("../../../../../studies/prove/equal.toml"),
    include_str!("../../../../../studies/prove/equal-containers.toml"),
];
/// An arm that is slower by a known share.
pub const SLOWER: &str = include_str!("../../../../../studies/prove/slower.toml");
/// Servers with a known service time.
pub const PERCENTILES: &str = include_str!("../../../../../studies/prove/percentiles.toml");
/// Cases that are disturbed, and what they are like at rest.
pub const PLANTED: &str = include_str!("../../../../../studies/prove/planted.toml");
/// What is killed.
pub const KILLED: &str = include_str!("../../../../../studies/prove/killed.toml");
/// What has secrets.
pub const SECRETS: &str = include_str!("../../../../../studies/prove/secrets.toml");

/// A study as a table, to be changed.
///
/// # Errors
/// When it is no TOML.
pub fn table(text: &str) -> Result<Table, Failure> {
    text.parse().map_err(|error| Failure::new(format!("a study of tare's own cannot be read: {error}"), Exit::Failure))
}

/// Takes each case so many times: `rr-1`, `rr-2` and on.
pub fn repeat_cases(study: &mut Table, times: u32) {
    let Some(Value::Table(cases)) = study.get_mut("cases") else { return };
    let once = std::mem::take(cases);
    for (name, case) in once {
        cases.extend((1..=times).map(|n| (format!("{name}-{n}"), case.clone())));
    }
}

/// Sets a field of an arm.
pub fn set_of_arm(study: &mut Table, arm: &str, field: &str, value: &str) {
    let arms = study.get_mut("arms").and_then(Value::as_table_mut);
    if let Some(arm) = arms.and_then(|arms| arms.get_mut(arm)).and_then(Value::as_table_mut) {
        arm.insert(field.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Registries;

    #[test]
    fn the_studies_are_right_and_their_cases_are_taken_as_often_as_asked() {
        for text in [EQUAL[0], EQUAL[1], SLOWER, PERCENTILES, PLANTED, KILLED, SECRETS] {
            let mut study = table(text).unwrap();
            let cases = study["cases"].as_table().unwrap().len();
            repeat_cases(&mut study, 3);
            let loaded = tare_study::parse("study.toml", &study.to_string(), &Registries);
            let loaded = loaded.unwrap_or_else(|error| panic!("{}", error.render(false)));
            assert_eq!(loaded.study.cases.len(), cases * 3, "{text}");
        }
    }

    #[test]
    fn an_arm_is_slowed_by_what_is_set() {
        let mut study = table(SLOWER).unwrap();
        set_of_arm(&mut study, "slower", "slowed-by", "10%");
        let loaded = tare_study::parse("study.toml", &study.to_string(), &Registries).unwrap();
        let slowed: Vec<_> = loaded.study.arms.iter().map(|arm| arm.slowed_permille).collect();
        assert_eq!(slowed, [0, 100]);
    }
}
