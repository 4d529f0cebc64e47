//! How each arm looks, the same in every figure.

use tare_model::findings::Findings;

use super::svg::{Shape, Svg};

/// Dashes of the arms' lines, in the order of the arms; the baseline's is solid.
const DASHES: [&str; 6] = ["", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2", "12 4"];

/// Colours that the style sheet has for arms, beside the baseline's.
const COLOURS: usize = 6;

/// An arm and its look.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArmLook {
    pub(crate) id: String,
    pub(crate) label: String,
    /// Style sheet class that gives its colour.
    pub(crate) class: String,
    pub(crate) shape: Shape,
    pub(crate) dash: &'static str,
    /// A replica looks as the arm it repeats, drawn hollow.
    pub(crate) hollow: bool,
    pub(crate) is_baseline: bool,
    pub(crate) is_replica: bool,
}

impl ArmLook {
    /// The look of what is no arm: the `n`-th of several series of one arm, each with a colour, a mark and a dash of its own.
    pub(crate) fn series(n: usize, label: impl Into<String>) -> Self {
        // Once the colours are used up, each comes again with another mark and dash.
        let look = n + n / COLOURS;
        Self {
            id: format!("series-{n}"),
            label: label.into(),
            class: format!("arm-{}", n % COLOURS + 1),
            shape: Shape::ALL[look % Shape::ALL.len()],
            dash: DASHES[look % DASHES.len()],
            hollow: false,
            is_baseline: false,
            is_replica: false,
        }
    }

    /// A small picture of the mark, for tables: decoration beside the name.
    pub(crate) fn key(&self) -> String {
        let mut svg = Svg::new("", 12.0);
        svg.mark(self.shape, (6.0, 6.0), 4.0, &self.mark(), "");
        let drawn = svg.finish(12.0, "", "");
        let body = drawn.split_once("</desc>").map_or("", |(_, body)| body);
        format!(r#"<svg class="key" viewBox="0 0 12 12" aria-hidden="true">{body}"#)
    }

    /// Classes of a mark of this arm.
    pub(crate) fn mark(&self) -> String {
        format!("{} mark{}", self.class, if self.hollow { " hollow" } else { "" })
    }
}

/// All arms of a report in the order of the study.
#[derive(Debug, Clone)]
pub(crate) struct Arms(Vec<ArmLook>);

impl Arms {
    /// The arms of the plan, and after them any that only the findings name.
    pub(crate) fn of(findings: &Findings) -> Self {
        let study = &findings.plan.study;
        let mut arms: Vec<ArmLook> = Vec::new();
        let mut others = 0;
        let mut add = |arms: &mut Vec<ArmLook>, id: &str, label: &str, replica_of: Option<&String>| {
            let original = replica_of.and_then(|of| arms.iter().find(|arm| &arm.id == of)).cloned();
            let is_baseline = id == study.baseline;
            let (class, shape, dash) = match (&original, is_baseline) {
                (Some(original), _) => (original.class.clone(), original.shape, DASHES[2]),
                (None, true) => ("arm-base".to_owned(), Shape::ALL[0], DASHES[0]),
                (None, false) => {
                    others += 1;
                    let class = format!("arm-{}", (others - 1) % COLOURS + 1);
                    // Once the colours are used up, each comes again with another shape and dash.
                    let look = others + (others - 1) / COLOURS;
                    (class, Shape::ALL[look % Shape::ALL.len()], DASHES[look % DASHES.len()])
                }
            };
            let (hollow, is_replica) = (original.is_some(), replica_of.is_some());
            let (id, label) = (id.to_owned(), label.to_owned());
            arms.push(ArmLook { id, label, class, shape, dash, hollow, is_baseline, is_replica });
        };
        for arm in &study.arms {
            add(&mut arms, &arm.id, &arm.label, arm.replica_of.as_ref());
        }
        let named = findings.cases.iter().flat_map(|case| case.metrics.iter().flat_map(|metric| &metric.arms));
        for estimate in named {
            if !arms.iter().any(|arm| arm.id == estimate.arm) {
                add(&mut arms, &estimate.arm, &estimate.arm, None);
            }
        }
        Self(arms)
    }

    /// In the order of the study.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ArmLook> {
        self.0.iter()
    }

    /// What there is of each arm, beside its look; arms of which there is nothing are left out.
    pub(crate) fn having<T>(&self, of: impl Fn(&str) -> Option<T>) -> Vec<(T, ArmLook)> {
        self.iter().filter_map(|look| Some((of(&look.id)?, look.clone()))).collect()
    }

    /// The look of an arm; one that nobody declared looks like itself by name.
    pub(crate) fn get(&self, id: &str) -> ArmLook {
        self.0.iter().find(|arm| arm.id == id).cloned().unwrap_or_else(|| ArmLook {
            id: id.to_owned(),
            label: id.to_owned(),
            class: "arm-6".to_owned(),
            shape: Shape::Cross,
            dash: DASHES[5],
            hollow: false,
            is_baseline: false,
            is_replica: false,
        })
    }

    /// Name for people.
    pub(crate) fn label(&self, id: &str) -> String {
        self.get(id).label
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn no_two_arms_of_a_large_study_look_alike() {
        let mut findings = fixture::findings();
        for n in 0..12 {
            let mut arm = findings.plan.study.arms[2].clone();
            arm.id = format!("arm-{n}");
            findings.plan.study.arms.push(arm);
        }
        let arms = Arms::of(&findings);
        let looks: Vec<_> =
            arms.iter().map(|arm| (arm.class.clone(), format!("{:?}", arm.shape), arm.hollow)).collect();
        for (n, look) in looks.iter().enumerate() {
            assert!(!looks[..n].contains(look), "{look:?}");
        }
    }
}
