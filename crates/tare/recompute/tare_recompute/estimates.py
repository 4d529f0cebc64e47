"""From values to a figure with its interval: ADR 0004 and ADR 0025."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np
from scipy import stats

ALPHA = 0.05
# Fewest values for which a distribution-free interval of 95 % exists.
RANKS_MIN = 6
# Most values whose null distribution is counted.
EXACT_MAX = 50

SIGNED_RANK = "Hodges-Lehmann, exact Wilcoxon signed-rank interval on {}"
BY_WIDTH = (
    "Hodges-Lehmann, Wilcoxon signed-rank interval on {}, widened for blocks that are alike and for a number of blocks that "
    "followed from its width"
)
STUDENT = "mean of {0}, Student's t interval (assumes normal {0})"
SINGLE = "a single value"


@dataclass(frozen=True)
class Located:
    """A location with the ends of its interval."""

    value: float
    ends: tuple[float, float] | None
    level: float
    method: str


def estimate(value: float, low: float | None, high: float | None, level: float, n: int, method: str) -> dict[str, Any]:
    """An estimate as findings have it."""
    finite = [end if end is not None and math.isfinite(end) else None for end in (low, high)]
    return {"value": value, "low": finite[0], "high": finite[1], "level": level, "n": n, "method": method}


def null_counts(n: int) -> np.ndarray:
    """Probability of each value of the signed-rank statistic of n values: every rank has either sign."""
    probability = np.array([1.0])
    for rank in range(1, n + 1):
        wider = np.zeros(len(probability) + rank)
        wider[: len(probability)] += probability / 2
        wider[rank:] += probability / 2
        probability = wider
    return probability


def moments(n: int) -> tuple[float, float]:
    """Mean and standard deviation of that statistic."""
    return n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)


def rank_of_end(n: int, alpha: float) -> tuple[int, float] | None:
    """The rank, from 1, of the pairwise mean at which the interval begins, and the level that it attains."""
    if n > EXACT_MAX:
        mean, deviation = moments(n)
        return max(math.floor(mean + stats.norm.ppf(alpha / 2) * deviation + 0.5), 1), 1 - alpha
    below = np.cumsum(null_counts(n))
    within = np.flatnonzero(2 * below <= alpha * (1 + 1e-12))
    if not len(within):
        return None
    return int(within[-1]) + 1, 1 - 2 * float(below[within[-1]])


def pairwise_means(values: np.ndarray) -> np.ndarray:
    """Means of all pairs, each value with itself too; ascending. `values` has the sample in its last axis."""
    i, j = np.triu_indices(values.shape[-1])
    return np.sort((values[..., i] + values[..., j]) / 2, axis=-1)


def unknown_means(known: int, missing: int) -> int:
    """Pairwise means in which a missing value has a part."""
    return missing * known + missing * (missing + 1) // 2


def signed_rank(values: np.ndarray, missing: int, alpha: float = ALPHA) -> Located:
    """Hodges-Lehmann with the signed-rank interval. Missing values are below all others for the low end, above them for the high one."""
    means = pairwise_means(values)
    found = rank_of_end(len(values) + missing, alpha)
    ends, level = None, 1 - alpha
    if found is not None:
        rank = found[0] - unknown_means(len(values), missing)
        if rank > 0:
            level = found[1]
            ends = (float(means[rank - 1]), float(means[len(means) - rank])) if rank <= len(means) else None
    return Located(float(np.median(means)), ends, level, SIGNED_RANK)


def autocorrelation(values: np.ndarray) -> float:
    """Of neighbours; 0 where all are the same."""
    off = values - values.mean()
    squares = float(off @ off)
    return float(off[:-1] @ off[1:]) / squares if squares > 0 else 0.0


def stretch(n: int, seen: float) -> float:
    """By how much an interval is wider where its width decided the number of blocks (ADR 0025)."""
    rho = min(max((1.2 + 11 / n) * (seen + 4.8 / n), 0.0), 0.92)
    lags = np.arange(1, n)
    variance = 1 + 2 * float(np.sum((1 - lags / n) * rho**lags))
    return math.sqrt(variance * (n - 1) / (n - variance)) * (1.01 - 2.65 / n)


def student(values: np.ndarray, alpha: float = ALPHA) -> Located:
    """Mean with Student's interval."""
    n, centre = len(values), float(np.mean(values))
    half = stats.t.ppf(1 - alpha / 2, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Located(centre, (centre - half, centre + half), 1 - alpha, STUDENT)


@dataclass(frozen=True)
class Sample:
    """Values, such as the log ratios of blocks, and how many more there are that may be anything."""

    values: np.ndarray
    missing: int = 0
    by_width: bool = False

    @property
    def small(self) -> bool:
        return len(self.values) + self.missing < RANKS_MIN

    def located(self) -> Located | None:
        n = len(self.values)
        if n == 0:
            return None
        if n == 1:
            return Located(float(self.values[0]), None, 1 - ALPHA, SINGLE)
        if self.small:
            found = student(self.values)
            return Located(found.value, None if self.missing else found.ends, found.level, found.method)
        found = signed_rank(self.values, self.missing)
        if not self.by_width:
            return found
        by, ends = stretch(n, autocorrelation(self.values)), found.ends
        if ends is not None:
            ends = (found.value - by * (found.value - ends[0]), found.value + by * (ends[1] - found.value))
        return Located(found.value, ends, 1 - ALPHA, BY_WIDTH)

    def p_equal(self) -> float | None:
        """Two-sided probability of such a location if the true one were 0."""
        tails = self.tails(0.0)
        return None if tails is None else min(2 * min(tails), 1.0)

    def p_margin(self, margin: float) -> float | None:
        """Probability of a location so far within the margin if the true one were at it; twice the larger tail."""
        tails = self.tails(margin)
        return None if tails is None else min(2 * max(tails), 1.0)

    def tails(self, margin: float) -> tuple[float, float] | None:
        above = self.above(self.values, -margin)
        below = self.above(-self.values, -margin)
        return None if above is None or below is None else (above, below)

    def above(self, values: np.ndarray, shift: float) -> float | None:
        """Probability of such values, or of higher ones, if the location were at `shift`."""
        n = len(values)
        if self.small:
            return None if self.missing or n < 2 else student_above(values, shift)
        if self.by_width:
            value = float(np.median(pairwise_means(values)))
            shift = value - (value - shift) / stretch(n, autocorrelation(values))
        at = int(np.count_nonzero(pairwise_means(values) <= shift)) + unknown_means(n, self.missing)
        all_of = n + self.missing
        if all_of <= EXACT_MAX:
            return min(float(np.sum(null_counts(all_of)[: at + 1])), 1.0)
        mean, deviation = moments(all_of)
        return float(stats.norm.cdf((at + 0.5 - mean) / deviation))


def student_above(values: np.ndarray, shift: float) -> float:
    n, centre = len(values), float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(n)
    if error == 0:
        return 0.0 if centre > shift else 1.0
    return float(stats.t.sf((centre - shift) / error, n - 1))


def from_logs(located: Located, n: int, on: str) -> dict[str, Any]:
    """What was found on logarithms, back on the scale of the values."""
    low, high = (math.exp(end) for end in located.ends) if located.ends else (None, None)
    return estimate(math.exp(located.value), low, high, located.level, n, located.method.format(on))


def of_values(values: Sequence[float]) -> dict[str, Any] | None:
    """Of one arm's values, one a block: on logarithms where all are above zero."""
    kept = [value for value in values if math.isfinite(value)]
    if len(kept) > 1 and all(value > 0 for value in kept):
        located = Sample(np.log(kept)).located()
        return None if located is None else from_logs(located, len(kept), "logarithms")
    return on_themselves(kept, "values")


def of_differences(values: Sequence[float]) -> dict[str, Any] | None:
    """Of differences within blocks, which may be of either sign."""
    return on_themselves([value for value in values if math.isfinite(value)], "differences within blocks")


def on_themselves(values: list[float], on: str) -> dict[str, Any] | None:
    located = Sample(np.array(values, dtype=float)).located()
    if located is None:
        return None
    low, high = located.ends or (None, None)
    return estimate(located.value, low, high, located.level, len(values), located.method.format(on))


def median(values: Sequence[float]) -> dict[str, Any] | None:
    """Median with the exact interval of order statistics, from six values on."""
    kept = sorted(value for value in values if math.isfinite(value))
    n = len(kept)
    if n == 0:
        return None
    ends: tuple[float | None, float | None] = (None, None)
    level, method = 1 - ALPHA, "median"
    ranks = [rank for rank in range(1, n // 2 + 1) if 2 * stats.binom.cdf(rank - 1, n, 0.5) <= ALPHA * (1 + 1e-9)]
    if ranks:
        rank = ranks[-1]
        ends, method = (kept[rank - 1], kept[n - rank]), "median, exact interval of order statistics"
        level = 1 - 2 * float(stats.binom.cdf(rank - 1, n, 0.5))
    return estimate((kept[(n - 1) // 2] + kept[n // 2]) / 2, *ends, level, n, method)


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if len(values) else None


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Corrected for their number (Holm 1979); what has no p-value counts as 1."""
    full = [1.0 if p is None else p for p in p_values]
    corrected: list[float | None] = [None] * len(full)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(full)), key=lambda at: full[at])):
        largest = min(max(largest, full[at] * (len(full) - rank)), 1.0)
        corrected[at] = None if p_values[at] is None else largest
    return corrected
