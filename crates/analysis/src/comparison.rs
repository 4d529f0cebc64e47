//! An arm against the baseline: ratio, floor, smallest detectable difference, verdict, sentence.

use tare_model::findings::{Comparison, Estimate, Verdict};
use tare_model::metric::{Better, MetricSpec};

use crate::estimate::{self, ALPHA};
use crate::power;
use crate::words;

/// A study that sees no difference, and could only see differences larger than this, is called too noisy.
pub(crate) const NOISY_MIN: f64 = 0.20;

/// What an arm is to the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// To be compared.
    Ordinary,
    /// The baseline once more.
    Replica,
    /// Shown, but not to be compared; why.
    NotComparable(String),
}

/// An arm's values beside the baseline's.
#[derive(Debug, Clone)]
pub(crate) struct Paired<'a> {
    pub spec: &'a MetricSpec,
    /// (id, label).
    pub arm: (&'a str, &'a str),
    /// (id, label).
    pub baseline: (&'a str, &'a str),
    /// (block, the arm's value, the baseline's), both finite.
    pub pairs: Vec<(u32, f64, f64)>,
    pub blocks_planned: u32,
    /// Whether their number followed from the width of the intervals.
    pub by_width: bool,
    pub floor: Option<f64>,
    pub role: Role,
}

/// The noise floor that a replica's ratio shows: how far its estimate lies from equality, whichever arm is on top of the
/// fraction. `None` with too few blocks for an interval.
pub(crate) fn floor_of(ratio: &Estimate) -> Option<f64> {
    ratio.low.zip(ratio.high)?;
    Some(ratio.value.ln().abs().exp_m1())
}

impl Paired<'_> {
    /// The comparison.
    pub(crate) fn compare(self) -> Comparison {
        if let Role::NotComparable(why) = &self.role {
            let (arm, why) = (self.arm.1, why.clone());
            return self.without_ratio(Verdict::NotComparable, why.clone(), format!("{arm}: not comparable ({why})"));
        }
        let positive = self.pairs.iter().all(|&(_, a, b)| a > 0.0 && b > 0.0);
        let equal = !self.pairs.is_empty() && self.pairs.iter().all(|&(_, a, b)| a == b);
        // Without any spread there is nothing to judge a difference by, and no smallest detectable difference.
        if equal && (!positive || self.pairs.len() > 1) {
            return self.equal_everywhere();
        }
        if !positive {
            return self.no_ratio();
        }
        let logs: Vec<f64> = self.pairs.iter().map(|&(_, a, b)| (a / b).ln()).collect();
        let locate = if self.by_width { estimate::location_by_width } else { estimate::location };
        let Some((located, procedure)) = locate(&logs) else {
            let why = self.too_few();
            return self.cannot_say(why);
        };
        let ratio = estimate::from_logs(located, procedure, logs.len(), "log ratios");
        let judged_by = self.floor.filter(|_| self.role == Role::Ordinary);
        // What is detected grows as the interval does.
        let wider = estimate::location(&logs).and_then(|(fixed, _)| Some(located.breadth()? / fixed.breadth()?));
        let detectable = power::detectable(&logs, judged_by.is_some());
        let detectable = detectable.map(|size| (size * wider.unwrap_or(1.0)).exp_m1());
        // What lies below the floor would not be called a difference, however narrow the interval.
        let detectable = detectable.map(|size| size.max(judged_by.unwrap_or(0.0)));
        let (verdict, sentence) = self.verdict(&ratio, detectable);
        let blocks = self.pairs.iter().map(|&(block, a, b)| (block, a / b)).collect();
        self.with(ratio, blocks, detectable, verdict, sentence)
    }

    /// The same of figures that others published, who do not repeat: one value each has a ratio, and no verdict.
    pub(crate) fn compare_published(self) -> Comparison {
        let (arm, spec, baseline) = (self.arm.1, self.spec, self.baseline.1);
        let mut comparison = self.compare();
        if comparison.verdict == Verdict::CannotSay && comparison.ratio.n == 1 {
            let said = words::difference(spec, &comparison.ratio, baseline);
            comparison.sentence = format!("{arm}: {said}; published once, so there is no interval and no verdict");
        }
        comparison
    }

    fn verdict(&self, ratio: &Estimate, detectable: Option<f64>) -> (Verdict, String) {
        let (arm, baseline) = (self.arm.1, self.baseline.1);
        let said = words::difference(self.spec, ratio, baseline);
        let Some((low, high)) = ratio.low.zip(ratio.high) else {
            return (Verdict::CannotSay, format!("{arm}: {}", self.too_few()));
        };
        let differs = low > 1.0 || high < 1.0;
        if self.role == Role::Replica {
            return (Verdict::NoiseFloor, self.against_itself(&said, differs));
        }
        if !differs {
            return self.nothing_seen(ratio, detectable);
        }
        if let Some(floor) = self.floor
            && ratio.value.ln().abs() <= floor.ln_1p()
        {
            let floor = words::size(floor);
            let sentence =
                format!("{arm}: within the noise floor: {said}, but {baseline} differs from itself by {floor}");
            return (Verdict::WithinFloor, sentence);
        }
        let better = (ratio.value > 1.0) == (self.spec.better == Better::Higher);
        (if better { Verdict::Better } else { Verdict::Worse }, format!("{arm}: {said}"))
    }

    fn against_itself(&self, said: &str, differs: bool) -> String {
        let baseline = self.baseline.1;
        let odd =
            if differs { "; the interval excludes equality, which happens by chance once in twenty times" } else { "" };
        format!("{baseline} against itself: {said}{odd}")
    }

    fn nothing_seen(&self, ratio: &Estimate, detectable: Option<f64>) -> (Verdict, String) {
        let said = format!("{}: {}", self.arm.1, self.spec.label);
        let interval = words::interval(ratio);
        match detectable {
            Some(size) if size > NOISY_MIN => {
                let size = words::size(size);
                let sentence = format!(
                    "{said}, too noisy to tell{interval}; this study would detect only {size} or more (80 % \
                             power)"
                );
                (Verdict::TooNoisy, sentence)
            }
            Some(size) => {
                let size = words::size(size);
                (
                    Verdict::NoDifferenceSeen,
                    format!(
                        "{said}, no difference detected{interval}; this study would detect {size} or more (80 % \
                             power)"
                    ),
                )
            }
            None => (Verdict::NoDifferenceSeen, format!("{said}, no difference detected{interval}")),
        }
    }

    fn too_few(&self) -> String {
        let (n, planned) = (self.pairs.len(), self.blocks_planned);
        match n {
            0 => format!("cannot say: none of {planned} blocks completed on both"),
            _ if planned == 1 => "cannot say from a single block".to_owned(),
            _ => format!("cannot say: only {n} of {planned} blocks completed on both"),
        }
    }

    /// All values the same: no errors on either side, or as many guests in every block.
    fn equal_everywhere(self) -> Comparison {
        if self.pairs.len() < 2 {
            let why = self.too_few();
            return self.cannot_say(why);
        }
        let n = self.pairs.len() as u32;
        let method = "equal in every block".to_owned();
        let ratio = Estimate { value: 1.0, low: Some(1.0), high: Some(1.0), level: 1.0 - ALPHA, n, method };
        let sentence = format!("{}: {}, the same as {} in every block", self.arm.1, self.spec.label, self.baseline.1);
        let verdict = match self.role {
            Role::Ordinary => Verdict::NoDifferenceSeen,
            Role::Replica => Verdict::NoiseFloor,
            Role::NotComparable(_) => Verdict::NotComparable,
        };
        let blocks = self.pairs.iter().map(|&(block, ..)| (block, 1.0)).collect();
        self.with(ratio, blocks, None, verdict, sentence)
    }

    fn no_ratio(self) -> Comparison {
        let label = &self.spec.label;
        let block = self.pairs.iter().find(|&&(_, a, b)| a <= 0.0 || b <= 0.0).map_or(0, |&(block, ..)| block);
        let why = format!(
            "cannot say: a ratio of {label} needs values above zero, but block {block} has one of zero or below"
        );
        self.cannot_say(why)
    }

    fn cannot_say(self, why: String) -> Comparison {
        let sentence = format!("{}: {why}", self.arm.1);
        self.without_ratio(Verdict::CannotSay, why, sentence)
    }

    /// A verdict that stands without a figure.
    fn without_ratio(self, verdict: Verdict, why: String, sentence: String) -> Comparison {
        // JSON has no word for "no number": the ratio is 1 with n = 0 and no ends, and nobody may show it.
        let ratio = Estimate { value: 1.0, low: None, high: None, level: 1.0 - ALPHA, n: 0, method: why };
        self.with(ratio, Vec::new(), None, verdict, sentence)
    }

    fn with(
        self,
        ratio: Estimate,
        blocks: Vec<(u32, f64)>,
        detectable: Option<f64>,
        verdict: Verdict,
        sentence: String,
    ) -> Comparison {
        Comparison {
            arm: self.arm.0.to_owned(),
            baseline: self.baseline.0.to_owned(),
            ratio,
            blocks,
            detectable,
            floor: self.floor,
            verdict,
            sentence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::Unit;

    fn compare(ratios: &[f64], floor: Option<f64>, role: Role) -> Comparison {
        let pairs: Vec<_> = ratios.iter().enumerate().map(|(block, r)| (block as u32, 20e-6 * r, 20e-6)).collect();
        compare_pairs(&pairs, floor, role)
    }

    fn compare_pairs(pairs: &[(u32, f64, f64)], floor: Option<f64>, role: Role) -> Comparison {
        let spec = MetricSpec::new("p50", "response time, median", Unit::Seconds, Better::Lower);
        let (arm, baseline) = (("container", "container"), ("native", "native"));
        Paired { spec: &spec, arm, baseline, pairs: pairs.to_vec(), blocks_planned: 6, by_width: false, floor, role }
            .compare()
    }

    const THREE_PERCENT: [f64; 6] = [1.022, 1.028, 1.031, 1.031, 1.034, 1.040];

    #[test]
    fn a_difference_beyond_the_floor_is_said_with_its_interval() {
        let worse = compare(&THREE_PERCENT, Some(0.01), Role::Ordinary);
        assert_eq!(worse.verdict, Verdict::Worse);
        assert_eq!(worse.sentence, "container: response time, median 3.1 % longer than native [2.2, 4.0]");
        assert!((worse.ratio.level - 0.96875).abs() < 1e-12, "the attained level is reported");
        let better = compare(&THREE_PERCENT.map(|r| 1.0 / r), None, Role::Ordinary);
        assert_eq!(better.verdict, Verdict::Better);
    }

    #[test]
    fn a_difference_within_the_floor_is_not_called_one() {
        let within = compare(&THREE_PERCENT, Some(0.05), Role::Ordinary);
        assert_eq!(within.verdict, Verdict::WithinFloor);
        assert!(within.sentence.contains("differs from itself by 5.0 %"), "{}", within.sentence);
    }

    #[test]
    fn where_no_difference_is_detected_the_detectable_one_is_given() {
        let none = compare(&[0.99, 1.01, 1.0, 1.005, 0.995, 1.002], None, Role::Ordinary);
        assert_eq!(none.verdict, Verdict::NoDifferenceSeen);
        let detectable = words::size(none.detectable.unwrap());
        assert_eq!(
            none.sentence,
            format!(
                "container: response time, median, no difference detected [-1.0, +1.0] %; this study would detect \
                 {detectable} or more (80 % power)"
            )
        );
        let floored = compare(&[0.99, 1.01, 1.0, 1.005, 0.995, 1.002], Some(0.08), Role::Ordinary);
        assert!(
            floored.sentence.contains("this study would detect 8.0 % or more"),
            "what lies below the floor is not detectable: {}",
            floored.sentence
        );
    }

    #[test]
    fn too_few_blocks_and_missing_ratios_say_so() {
        assert!(compare(&[1.1], None, Role::Ordinary).sentence.contains("only 1 of 6 blocks"));
        let none = compare(&[], None, Role::Ordinary);
        assert_eq!((none.verdict, none.ratio.n), (Verdict::CannotSay, 0));
        let zero = compare_pairs(&[(0, 0.0, 1.0), (1, 2.0, 1.0)], None, Role::Ordinary);
        assert!(zero.sentence.contains("block 0"), "{}", zero.sentence);
        let both = compare_pairs(&[(0, 0.0, 0.0), (1, 0.0, 0.0)], None, Role::Ordinary);
        assert_eq!(both.verdict, Verdict::NoDifferenceSeen);
        assert!(serde_json::to_string(&zero).unwrap().contains("cannot-say"));
    }

    #[test]
    fn what_was_published_once_is_reported_without_a_verdict() {
        let spec = MetricSpec::new("p50", "response time, median", Unit::Seconds, Better::Lower);
        let (arm, baseline) = (("v", "virtual"), ("n", "native"));
        let (pairs, role) = (vec![(0, 1.445, 1.398)], Role::Ordinary);
        let paired =
            Paired { spec: &spec, arm, baseline, pairs, blocks_planned: 1, by_width: false, floor: None, role };
        let found = paired.compare_published();
        assert_eq!(found.verdict, Verdict::CannotSay);
        assert_eq!(
            found.sentence,
            "virtual: response time, median 3.4 % longer than native; published once, so there is no interval and no \
             verdict"
        );
    }

    #[test]
    fn a_study_that_sees_only_large_differences_says_that_it_is_too_noisy() {
        let noisy = compare(&[0.6, 1.5, 0.9, 1.3, 0.7, 1.2], None, Role::Ordinary);
        assert_eq!(noisy.verdict, Verdict::TooNoisy);
        let size = words::size(noisy.detectable.unwrap());
        let end = format!("too noisy to tell [-40, +50] %; this study would detect only {size} or more (80 % power)");
        assert!(noisy.sentence.ends_with(&end), "{}", noisy.sentence);
    }

    #[test]
    fn the_floor_is_the_replicas_estimate_whichever_way_round() {
        let ratios = [0.95, 0.97, 0.98, 0.98, 0.99, 1.01];
        let there = compare(&ratios, None, Role::Replica);
        let back = compare(&ratios.map(|r: f64| 1.0 / r), None, Role::Replica);
        assert_eq!(there.verdict, Verdict::NoiseFloor);
        let (a, b) = (floor_of(&there.ratio).unwrap(), floor_of(&back.ratio).unwrap());
        assert!((a - b).abs() < 1e-12 && (a - (1.0 / there.ratio.value - 1.0)).abs() < 1e-12, "{a} {b}");
        assert_eq!(floor_of(&compare(&[1.1], None, Role::Replica).ratio), None);
        let odd = Role::NotComparable("emulated".to_owned());
        assert_eq!(compare(&THREE_PERCENT, None, odd).verdict, Verdict::NotComparable);
    }
}
