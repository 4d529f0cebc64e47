"""Procedures against published tables and plain counting: `python3 -m unittest discover -s crates/tare/recompute/tests`."""

import itertools
import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tare_recompute import estimates, power, thresholds  # noqa: E402
from tare_recompute.compare import Outcome, compare  # noqa: E402
from tare_recompute.histogram import Histogram, merged  # noqa: E402
from tare_recompute.leaves import WORDS, Left  # noqa: E402


class Estimates(unittest.TestCase):
    def test_counts_are_those_of_all_sign_patterns(self) -> None:
        signs = itertools.product((0, 1), repeat=7)
        sums = [sum(rank for rank, sign in enumerate(own, 1) if sign) for own in signs]
        counted = np.bincount(sums) / 2**7
        self.assertTrue(np.allclose(estimates.null_counts(7), counted, atol=1e-15))

    def test_intervals_of_six_and_twelve_are_those_of_the_tables(self) -> None:
        six = estimates.signed_rank(np.arange(1.0, 7.0), 0)
        self.assertEqual((six.ends, six.level), ((1.0, 6.0), 0.96875))
        # Hollander, Wolfe and Chicken, table of the signed-rank statistic: the 14th of 78 at n = 12.
        rank, level = estimates.rank_of_end(12, 0.05) or (0, 0.0)
        self.assertEqual(rank, 14)
        self.assertGreaterEqual(level, 0.95)
        self.assertIsNone(estimates.signed_rank(np.arange(5.0), 0).ends)

    def test_p_values_are_those_of_the_interval(self) -> None:
        values = np.array([0.3, 0.5, 0.1, 0.9, 0.4, 0.7, 0.2, 0.8])
        ends = estimates.signed_rank(values, 0).ends
        assert ends is not None
        for shift, rejected in ((ends[0] - 1e-9, True), (ends[0] + 1e-9, False)):
            p = estimates.Sample(values - shift).p_equal()
            self.assertEqual(p is not None and p <= 0.05, rejected)

    def test_holm(self) -> None:
        corrected = estimates.holm([0.01, None, 0.04, 0.03])
        expected = [0.04, None, 0.09, 0.09]
        for own, other in zip(corrected, expected):
            self.assertEqual(own is None, other is None)
            self.assertAlmostEqual(own or 0.0, other or 0.0)


class Chance(unittest.TestCase):
    def test_the_generator_is_splitmix64(self) -> None:
        # First outputs of splitmix64.c for the seed 1234567, as listed by Rosetta Code.
        expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
        self.assertEqual(power.splitmix(1234567, 3).tolist(), expected)


class Figures(unittest.TestCase):
    def test_quantiles_count_what_did_not_complete_as_longest(self) -> None:
        whole = Histogram(np.array([[n, n, 1] for n in range(1, 1001)]), 1, 1000, 500500)
        self.assertEqual((whole.percentile(0.5), whole.percentile(0.99), whole.percentile(0.999)), (500.0, 990.0, "too few"))
        gone = Histogram(whole.bins[:980], 1, 980, 480690, failed=20)
        self.assertEqual(gone.percentile(0.99), "not reached")
        both = merged([whole, gone])
        self.assertEqual((both.operations, both.count, both.largest), (2000, 1980, 1000))

    def test_a_spread_that_is_known_is_found(self) -> None:
        random = np.random.default_rng(3)
        held = np.exp(random.normal(5.0, 0.1, 60))
        seen = [thresholds.Seen(n, float(np.log(one * 0.99)), float(np.log(one * 1.01))) for n, one in enumerate(held)]
        fit = thresholds.Fit(seen)
        self.assertAlmostEqual(fit.mu, float(np.log(held).mean()), delta=0.005)
        self.assertAlmostEqual(fit.sigma, float(np.log(held).std()), delta=0.01)


class Comparing(unittest.TestCase):
    def test_every_kind_of_difference_is_found(self) -> None:
        ours = {"value": 1.0, "n": 3, "low": None, "verdict": "lead", "said": WORDS, "list": [1, 2], "apart": Left("why")}
        same = {**ours, "said": "words", "apart": {"of": [1.0, 2.0]}}
        outcome = Outcome()
        compare(same, ours, outcome)
        self.assertEqual((outcome.mismatches, outcome.checked, dict(outcome.left)), ([], 4, {"why": 2}))
        for name, value in {"value": 1.0 + 1e-8, "n": 4, "low": 0.0, "verdict": "better", "said": None, "list": [1]}.items():
            outcome = Outcome()
            compare({**same, name: value}, ours, outcome)
            self.assertEqual(len(outcome.mismatches), 1, name)
        outcome = Outcome()
        compare({**same, "more": 5}, ours, outcome)
        self.assertEqual(dict(outcome.left), {"why": 2, "no second path: more": 1})


if __name__ == "__main__":
    unittest.main()
