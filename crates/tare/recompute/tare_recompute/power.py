"""What a study of so many blocks detects, by simulation of the rule of the verdict (ADR 0004, *Power*)."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import stats

from . import estimates
from .estimates import ALPHA, RANKS_MIN

STUDIES = 4000
POWER = 0.80
BLOCKS_MAX = 40
BESIDE_NORMAL = 1.6


def splitmix(seed: int, count: int) -> np.ndarray:
    """The first numbers of SplitMix64 (Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def normals(seed: int, count: int) -> np.ndarray:
    """Standard normal numbers: the cosine of Box and Muller (1958), two numbers of the generator for each."""
    drawn = (splitmix(seed, 2 * count) >> np.uint64(11)).astype(float).reshape(count, 2)
    return np.sqrt(-2 * np.log((drawn[:, 0] + 1) * 2.0**-53)) * np.cos(2 * math.pi * drawn[:, 1] * 2.0**-53)


def can_detect(blocks: int, comparisons: int) -> bool:
    least = 0.0 if blocks < RANKS_MIN else 2 * 0.5 ** min(blocks, 1000)
    return blocks > 1 and least * max(comparisons, 1) <= ALPHA


def low_ends(values: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Of many studies, one a row: the estimate and the low end of its interval."""
    n = values.shape[1]
    if n < RANKS_MIN:
        centre = values.mean(axis=1)
        half = stats.t.ppf(1 - alpha / 2, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
        return centre, centre - half
    found = estimates.rank_of_end(n, alpha)
    means = estimates.pairwise_means(values)
    low = means[:, found[0] - 1] if found else np.full(len(values), -math.inf)
    return np.median(means, axis=1), low


@functools.lru_cache(maxsize=None)
def simulated(blocks: int, with_floor: bool, comparisons: int) -> float:
    """The smallest difference that 80 of 100 studies call one, in standard deviations as another such study estimates them."""
    trials = normals(blocks, STUDIES * 2 * blocks * 3).reshape(STUDIES, 2, blocks, 3) / math.sqrt(2)
    arm, replica = trials[..., 1] - trials[..., 0], trials[..., 2] - trials[..., 0]
    spread = arm[:, 0].std(axis=1, ddof=1)
    value, low = low_ends(arm[:, 1], ALPHA / max(comparisons, 1))
    size = -low
    if with_floor:
        size = np.maximum(size, np.abs(low_ends(replica[:, 1], ALPHA)[0]) - value)
    return float(np.sort(size / spread)[int(POWER * STUDIES)])


def factor(blocks: int, with_floor: bool, comparisons: int) -> float | None:
    if not can_detect(blocks, comparisons):
        return None
    most = min(blocks, BLOCKS_MAX)
    return simulated(most, with_floor, comparisons) * math.sqrt(most / blocks)


def about(blocks: int, comparisons: int) -> float | None:
    """About the same in closed form, by which effort is reckoned."""
    if not can_detect(blocks, comparisons):
        return None
    alpha = ALPHA / max(comparisons, 1)
    normal = stats.t.ppf(1 - alpha / 2, blocks - 1) + stats.t.ppf(POWER, blocks - 1)
    return float(normal / math.sqrt(blocks) * (1 + BESIDE_NORMAL / blocks))


def detectable(logs: np.ndarray, with_floor: bool, comparisons: int) -> float | None:
    """The smallest log ratio that is detected by blocks of this spread."""
    found = factor(len(logs), with_floor, comparisons)
    return None if found is None else found * float(np.std(logs, ddof=1))
