"""Histograms as they are stored: sparse bins, and operations that did not complete."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

# Operations that must lie beyond a percentile.
BEYOND = 10.0


@dataclass
class Histogram:
    """Times in nanoseconds. `bins` has a row a bin, ascending: lowest value, highest value, count."""

    bins: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    least: int = 0
    largest: int = 0
    total: int = 0
    failed: int = 0
    given_up: int = 0
    waited: int = 0

    @property
    def count(self) -> int:
        """Operations that completed."""
        return int(self.bins[:, 2].sum())

    @property
    def not_completed(self) -> int:
        return self.failed + self.given_up

    @property
    def operations(self) -> int:
        """All operations that were due."""
        return self.count + self.not_completed

    @property
    def missing(self) -> float:
        """Share of the operations that did not complete."""
        return self.not_completed / max(self.operations, 1)

    @property
    def empty(self) -> bool:
        return self.operations == 0

    def completed(self) -> Histogram:
        """The same without the operations that did not complete."""
        return Histogram(self.bins, self.least, self.largest, self.total)

    def mean(self) -> float | None:
        """Nanoseconds, those given up with the time for which they were waited."""
        number = self.count + self.given_up
        return (self.total + self.waited) / number if number else None

    def quantile(self, share: float) -> float | None:
        """Middle of the first bin up to which at least `share` of all operations lie; None among those that did not complete."""
        rank = max(math.ceil(share * self.operations), 1)
        seen = np.cumsum(self.bins[:, 2])
        at = int(np.searchsorted(seen, rank, side="left"))
        if at >= len(seen):
            return None
        middle = (float(self.bins[at, 0]) + float(self.bins[at, 1])) / 2
        return min(max(middle, float(self.least)), float(self.largest))

    def percentile(self, share: float) -> float | str:
        """The quantile where ten operations lie beyond it, else `not reached` or `too few`."""
        value = self.quantile(share)
        if value is None:
            return "not reached" if self.not_completed >= BEYOND else "too few"
        return value if self.operations * (1 - share) + 1e-6 >= BEYOND else "too few"


def merged(all_of: list[Histogram]) -> Histogram:
    """The counts of all added up."""
    with_bins = [one for one in all_of if len(one.bins)]
    bins: dict[int, list[int]] = {}
    for one in with_bins:
        for low, high, count in one.bins.tolist():
            known = bins.setdefault(low, [low, high, 0])
            known[1] = max(known[1], high)
            known[2] += count
    return Histogram(
        bins=np.array([bins[low] for low in sorted(bins)], dtype=np.int64).reshape(-1, 3),
        least=min((one.least for one in with_bins), default=0),
        largest=max((one.largest for one in with_bins), default=0),
        total=sum(one.total for one in with_bins),
        failed=sum(one.failed for one in all_of),
        given_up=sum(one.given_up for one in all_of),
        waited=sum(one.waited for one in all_of),
    )
