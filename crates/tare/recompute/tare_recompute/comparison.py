"""An arm against the baseline: ratio, floor, p-values, what is detectable, verdict (ADR 0004)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import power
from .estimates import ALPHA, Sample, estimate, from_logs, holm
from .leaves import or_words

# A study that detects nothing, and could only detect differences larger than this, is too noisy.
NOISY = 0.20


@dataclass
class Comparison:
    """As findings have it. `withheld`: there is no verdict."""

    arm: str
    baseline: str
    better: str
    planned: int = 0
    missing: int = 0
    limited: tuple[int, int] = (0, 0)
    role: str = "ordinary"
    margin: float | None = None
    floor: float | None = None
    floor_ends: tuple[float, float] | None = None
    ratio: dict[str, Any] = field(default_factory=lambda: estimate(1.0, None, None, 1 - ALPHA, 0, ""))
    blocks: list[tuple[int, float]] = field(default_factory=list)
    p_equal: float | None = None
    p_margin: float | None = None
    detectable: float | None = None
    # None: a lead; else number of primary comparisons and the corrected p-values.
    primary: tuple[int, float | None, float | None] | None = None
    withheld: bool = False
    verdict: str = "cannot-say"

    @property
    def ends(self) -> tuple[float, float] | None:
        low, high = self.ratio["low"], self.ratio["high"]
        return None if low is None or high is None else (low, high)

    @property
    def excludes_equality(self) -> bool:
        return self.ends is not None and (self.ends[0] > 1 or self.ends[1] < 1)

    @property
    def family(self) -> int:
        return self.primary[0] if self.primary else 1

    @property
    def proven(self) -> bool:
        return bool(self.primary) and self.primary[1] is not None and self.primary[1] <= ALPHA

    def own_floor(self) -> float | None:
        """As the replica: how far its estimate lies from equality."""
        return math.expm1(abs(math.log(self.ratio["value"]))) if self.ends else None

    def withhold(self, verdict: str) -> None:
        if not self.withheld:
            self.withheld, self.verdict = True, verdict

    def settle(self) -> None:
        """The verdict, which follows from all else."""
        if not self.withheld and self.ends is None:
            self.withhold("cannot-say")
        self.detectable = None if self.withheld else self.detected()
        if not self.withheld:
            self.verdict = self.judged()
            if self.limited_by_driver():
                self.withhold("cannot-say")

    def detected(self) -> float | None:
        """The smallest difference that 80 of 100 such studies detect; never below the floor."""
        logs = np.log([ratio for _, ratio in self.blocks])
        size = power.detectable(logs, self.floor is not None, self.family) if len(logs) > 1 else None
        if not size:
            return None
        fixed = Sample(logs).located()
        own = math.log(self.ends[1]) - math.log(self.ends[0]) if self.ends else None
        breadth = fixed.ends[1] - fixed.ends[0] if fixed and fixed.ends else 0.0
        wider = own / breadth if own is not None and breadth > 0 else 1.0
        return max(math.expm1(size * wider), self.floor or 0.0)

    def judged(self) -> str:
        if self.role == "replica":
            return "noise-floor"
        if self.primary and self.primary[2] is not None and self.primary[2] <= ALPHA:
            return "equivalent"
        if not self.excludes_equality:
            return "too-noisy" if self.detectable is not None and self.detectable > NOISY else "no-difference-seen"
        if self.floor is not None and abs(math.log(self.ratio["value"])) <= math.log1p(self.floor):
            return "within-floor"
        if not self.proven:
            return "lead"
        return "better" if (self.ratio["value"] > 1) == (self.better == "higher") else "worse"

    def limited_by_driver(self) -> bool:
        """Whether the driver was at its limit in most blocks of what does worse, or of either where they are alike."""
        of_arm, of_baseline = (2 * blocks > self.ratio["n"] for blocks in self.limited)
        if self.verdict == "worse":
            return of_arm
        if self.verdict == "better":
            return of_baseline
        return (of_arm or of_baseline) and self.verdict in ("equivalent", "within-floor", "no-difference-seen", "too-noisy")

    def taken_by_audit(self) -> None:
        """A broken check of the audit takes the ratio."""
        if self.verdict not in ("not-comparable", "noise-floor"):
            self.verdict, self.withheld, self.detectable, self.blocks = "not-comparable", True, None, []
            self.ratio = estimate(1.0, None, None, self.ratio["level"], 0, "")

    def as_json(self, case: str | None, metric: str) -> dict[str, Any]:
        standing: Any = "replica" if self.role == "replica" else "lead"
        if self.primary:
            of, p_equal, p_margin = self.primary
            standing = {"primary": {"of": of, "p_equal": p_equal, "p_margin": p_margin}}
        return {
            "case": case,
            "metric": metric,
            "arm": self.arm,
            "baseline": self.baseline,
            "ratio": self.ratio,
            "blocks": [list(block) for block in self.blocks],
            "planned": self.planned,
            "missing": self.missing,
            "detectable": self.detectable,
            "floor": self.floor,
            "floor_interval": None if self.floor_ends is None else list(self.floor_ends),
            "p_equal": self.p_equal,
            "p_margin": self.p_margin,
            "margin": self.margin,
            "driver_limited": {"arm": self.limited[0], "baseline": self.limited[1]},
            "standing": standing,
            "withheld": or_words(self.withheld),
            "verdict": self.verdict,
            "sentence": or_words(True),
        }


def compare(
    own: Comparison, pairs: list[tuple[int, float, float]], by_width: bool, replica: Comparison | None
) -> Comparison:
    """Fills in what follows from the pairs of (block, arm, baseline)."""
    if own.role != "ordinary":
        own.margin = None
    elif replica is not None:
        own.floor, own.floor_ends = replica.own_floor(), replica.ends
    if own.role == "not-comparable":
        own.withhold("not-comparable")
    else:
        relate(own, pairs, by_width)
    own.settle()
    return own


def relate(own: Comparison, pairs: list[tuple[int, float, float]], by_width: bool) -> None:
    """The ratio with its interval and p-values; withholds the verdict where there is none."""
    positive = all(a > 0 and b > 0 for _, a, b in pairs)
    if not positive and len(pairs) > 1 and all(a == b for _, a, b in pairs) and own.missing == 0:
        own.blocks = [(block, 1.0) for block, _, _ in pairs]
        own.ratio = estimate(1.0, 1.0, 1.0, 1 - ALPHA, len(pairs), "equal in every block")
        return
    if not positive or not pairs:
        own.withhold("cannot-say")
        return
    sample = Sample(np.log([a / b for _, a, b in pairs]), own.missing, by_width)
    located = sample.located()
    assert located is not None
    own.blocks = [(block, a / b) for block, a, b in pairs]
    own.p_equal = sample.p_equal() if located.ends else None
    own.p_margin = sample.p_margin(math.log1p(own.margin)) if own.margin is not None else None
    own.ratio = from_logs(located, len(pairs), "log ratios")


def settle_primary(primary: list[Comparison]) -> None:
    """Corrects p-values for the number of comparisons that answer the study, and settles these anew."""
    equal, margin = holm([own.p_equal for own in primary]), holm([own.p_margin for own in primary])
    for own, p_equal, p_margin in zip(primary, equal, margin):
        own.primary = (len(primary), p_equal, p_margin)
        own.settle()
