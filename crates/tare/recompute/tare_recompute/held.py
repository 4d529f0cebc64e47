"""What instances hold, from fits to figures and verdicts: searches for a capacity and scale-ups alike.

A fit is a search: tare's ends where it is near enough to the most likely value, this one's a little nearer. So what follows from
tare's fit is made of tare's, once that is known to be near.
"""

from __future__ import annotations

import math
from typing import Any

from scipy import stats

from .cases import CAPACITY, Case
from .comparison import NOISY, Comparison
from .estimates import ALPHA, estimate
from .folder import ScaleUp, Search
from .leaves import Left, Near
from .power import POWER
from .thresholds import SURE, Fit, Seen, shift

HALF = "the load that half of the instances hold: probit fit, profile likelihood"
MOST = "the load that 95 of 100 instances hold: the same, one-sided bound"
RATIO = "ratio of the loads that half of the instances hold: probit fits, profile likelihood"
FITTED = "thresholds by maximum likelihood, to a twentieth of their spread"
DRAWN = 24
# A twentieth of the spread, and a little more for ends of few blocks.
NEAR = 0.05
UNBOUNDED = Left("thresholds that nothing bounds on one side: the place where the search for them ended")


def seen_in_search(block: int, search: Search) -> list[Seen]:
    """Each try; of a load whose work was wrong, or that broke off, the second time in a row."""
    found = []
    for at, one in enumerate(search.tries):
        broken = one.cause in ("invalid", "failed")
        before = search.tries[at - 1] if at else None
        again = before is not None and before.cause in ("invalid", "failed") and abs(before.load - one.load) < 1e-9
        if one.failed is None:
            found.append(Seen(block, math.log(one.load), math.inf))
        elif one.cause != "too-few" and (again or not broken):
            found.append(Seen(block, -math.inf, math.log(one.load)))
    return found


def seen_in_scale_up(block: int, up: ScaleUp) -> list[Seen]:
    """At least what held, and less than what did not, or than one guest or tile more where no more could be added."""
    missed = [level.guests for level in up.levels if level.failed is not None and level.guests > up.held]
    above = math.inf if up.stopped == "end" else math.log(up.held + max(len(up.tile), 1))
    return [Seen(block, math.log(up.held) if up.held else -math.inf, math.log(min(missed)) if missed else above)]


class Tried:
    """One arm's tries with tare's fit of them."""

    def __init__(self, arm: str, seen: list[Seen], unit: float | None, theirs: dict[str, Any] | None) -> None:
        self.arm, self.seen, self.unit, self.theirs = arm, seen, unit, theirs
        self.fit = Fit(seen) if theirs is not None and any(math.isfinite(end) for one in seen for end in (one.low, one.high)) else None

    @property
    def open(self) -> bool:
        return self.fit is not None and not (self.fit.above and self.fit.below)

    def figure(self, ln: float) -> float:
        """Whole guests or tiles; loads as they are."""
        return math.exp(ln) if self.unit is None else math.floor(math.exp(ln + 1e-9) / self.unit) * self.unit

    def near(self, ln: float) -> Near | None:
        """Of a logarithm near which tare's must lie; None where it has no end."""
        if not math.isfinite(ln) or self.fit is None:
            return None
        value = self.figure(ln)
        spread = self.fit.sigma if math.isfinite(self.fit.sigma) else 0.0
        whole = (self.unit or 0.0) / max(value, self.unit or 1.0)
        return Near(value, NEAR * spread + 1e-3 + whole, FITTED)

    def thresholds(self) -> dict[str, Any] | None:
        fit, theirs = self.fit, self.theirs
        if fit is None or theirs is None:
            return None
        return {
            "half": self.half(fit),
            "most": self.most(fit),
            "spread": UNBOUNDED if self.open else Near(fit.sigma, NEAR, FITTED),
            "tries": len(self.seen),
            "all_held": not fit.above,
            "none_held": not fit.below,
            "curve": [] if self.open else self.curve(theirs),
            "against": None,
        }

    @property
    def largest(self) -> float:
        return max((one.low for one in self.seen), default=-math.inf)

    def half(self, fit: Fit) -> dict[str, Any]:
        found: Any = UNBOUNDED
        near: dict[str, Any] = {end: left(self.theirs, "half", end) for end in ("low", "high")}
        if not self.open:
            value, low, high = fit.quantile(0.0, ALPHA)
            found, near = self.near(value), {"low": self.near(low), "high": self.near(high)}
        if not fit.above or fit.n < 2:
            found = self.figure(self.largest) if math.isfinite(self.largest) else found
        if not fit.below:
            found = 0.0
        return {**estimate(0.0, None, None, 1 - ALPHA, fit.n, HALF), "value": found, **near}

    def most(self, fit: Fit) -> dict[str, Any]:
        if self.open:
            # Of a side that nothing bounds there is no most likely value.
            value: Any = 0.0 if not fit.below else UNBOUNDED
            low: Any = left(self.theirs, "most", "low")
        else:
            at, end, _ = fit.quantile(SURE, 2 * ALPHA)
            value, low = self.near(min(at, self.largest) if fit.n < 2 else at), self.near(end)
        return {**estimate(0.0, None, None, 1 - ALPHA, fit.n, MOST), "value": value, "low": low}

    def curve(self, theirs: dict[str, Any]) -> list[list[Any]]:
        """From tare's middle and spread, which are near."""
        if len(theirs["curve"]) != 2 * DRAWN + 1:
            return []
        middle = theirs["curve"][DRAWN][0]
        at = [3 * place / DRAWN for place in range(-DRAWN, DRAWN + 1)]
        points: list[list[Any]] = [[middle * math.exp(z * theirs["spread"]), float(stats.norm.cdf(-z))] for z in at]
        if self.fit is not None:
            points[DRAWN][0] = Near(math.exp(self.fit.mu), NEAR * self.fit.sigma + 1e-3, FITTED)
        return points


def left(theirs: dict[str, Any] | None, part: str, end: str) -> Left | None:
    """An end of an interval that is not made again, where there is one."""
    return None if theirs is None or theirs[part][end] is None else UNBOUNDED


def thresholds(tried: list[Tried], baseline: str) -> list[dict[str, Any] | None]:
    """Of each arm, with its ratio to the baseline's."""
    found = [own.thresholds() for own in tried]
    base = next((own for own in tried if own.arm == baseline), None)
    for own, fit in zip(tried, found):
        if fit is not None and base is not None and base.fit is not None and own is not base:
            fit["against"] = against(own, base)
    return found


def against(own: Tried, base: Tried) -> dict[str, Any]:
    assert own.fit is not None and base.fit is not None and own.theirs is not None and base.theirs is not None
    n, theirs = min(own.fit.n, base.fit.n), own.theirs["against"]
    counted = own.fit.below and base.fit.below
    if own.open or base.open:
        ends = {end: left(theirs, "ratio", end) for end in ("low", "high")}
        halves = own.theirs["half"]["value"], base.theirs["half"]["value"]
        one_open = not own.fit.above or not base.fit.above
        value: Any = halves[0] / halves[1] if counted and one_open else 1.0
        return {"ratio": {**estimate(0.0, None, None, 1 - ALPHA, n, RATIO), "value": value, **ends}, "p": UNBOUNDED if n > 1 else 1.0}
    low, high, p = shift(own.fit, base.fit, ALPHA)
    middles = own.theirs["curve"][DRAWN][0], base.theirs["curve"][DRAWN][0]
    spread = math.hypot(own.fit.sigma, base.fit.sigma)

    def near(ln: float) -> Near | None:
        return Near(math.exp(ln), NEAR * spread + 1e-3, FITTED) if math.isfinite(ln) else None

    ratio = {**estimate(0.0, None, None, 1 - ALPHA, n, RATIO), "value": middles[0] / middles[1], "low": near(low), "high": near(high)}
    return {"ratio": ratio, "p": Near(p, 0.05, FITTED) if n > 1 else 1.0}


def put_in(case: Case, fits: dict[str, dict[str, Any]], unit: int) -> None:
    """Puts tare's fits into the primary metric. `unit`: guests of a tile where tiles are counted."""
    metric = case.metrics[0]
    for own in metric.arms:
        if own["arm"] in fits:
            half = fits[own["arm"]]["half"]
            scaled = {name: None if half[name] is None else half[name] / unit for name in ("value", "low", "high")}
            own["estimate"] = {**half, **scaled}
    for comparison in metric.comparisons:
        found = fits.get(comparison.arm, {}).get("against")
        if comparison.verdict != "not-comparable" and found is not None:
            comparison.ratio, comparison.p_equal = found["ratio"], found["p"]
            comparison.p_margin, comparison.withheld = None, False
    replica = next((own for own in metric.comparisons if own.role == "replica"), None)
    for own in metric.comparisons:
        if replica is not None and own is not replica:
            own.floor, own.floor_ends = replica.own_floor(), replica.ends


def judge(comparison: Comparison, arm: tuple[bool, bool], base: tuple[bool, bool]) -> None:
    """The verdict of a comparison of what arms hold. `arm`, `base`: whether none held, and whether all did."""
    verdict, detectable = judged(comparison, arm, base)
    comparison.verdict, comparison.detectable, comparison.withheld = verdict, detectable, verdict == "cannot-say"


def judged(own: Comparison, arm: tuple[bool, bool], base: tuple[bool, bool]) -> tuple[str, float | None]:
    (arm_none, arm_all), (base_none, base_all) = arm, base
    low, high = own.ratio["low"], own.ratio["high"]
    if (arm_all and base_all) or (arm_none and base_none) or own.ratio["n"] == 0 or own.missing * 4 > own.planned:
        return "cannot-say", None
    if low is None and high is None:
        return "cannot-say", None
    differs = (low is not None and low > 1) or (high is not None and high < 1)
    if own.role == "replica":
        return "noise-floor", None
    size = detectable(own.ratio)
    size = None if size is None else max(size, own.floor or 0.0)
    if not differs:
        if arm_all or base_all:
            return "cannot-say", None
        return ("no-difference-seen" if size is not None and size <= NOISY else "too-noisy"), size
    held = not arm_none and not base_none
    if own.floor is not None and held and abs(math.log(own.ratio["value"])) <= math.log1p(own.floor):
        return "within-floor", size
    if not own.proven:
        return "lead", size
    return ("better" if low is not None and low > 1 else "worse"), size


def detectable(ratio: dict[str, Any]) -> float | None:
    """The half width on logarithms, scaled from Student's t of the interval to that and the one of the power."""
    if ratio["low"] is None or ratio["high"] is None or ratio["n"] < 2:
        return None
    half = (math.log(ratio["high"]) - math.log(ratio["low"])) / 2
    power, level = (stats.t.ppf(share, ratio["n"] - 1) for share in (POWER, 1 - ALPHA / 2))
    return math.expm1(half * (1 + float(power) / float(level)))


def searches(case: Case, theirs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Searches for the largest load, by arm."""
    fits = {own["arm"]: own["fit"] for own in theirs}
    found, tried = [], []
    for arm in case.by_arm:
        own = [(trial.block, trial.search) for trial in case.done(arm) if trial.search]
        if own:
            seen = [one for block, search in own for one in seen_in_search(block, search)]
            tried.append(Tried(arm, seen, None, fits.get(arm)))
            found.append({"arm": arm, "searches": [searched(block, search) for block, search in own]})
    of_arms = thresholds(tried, case.run.study["baseline"])
    return [{**own, "fit": fit} for own, fit in zip(found, of_arms)]


def searched(block: int, search: Search) -> dict[str, Any]:
    return {
        "block": block,
        "held": search.held,
        "missed": search.missed,
        "iterations": len(search.iterations()),
        "tried": [[one.load, one.failed] for one in search.tries],
        "ended": search.ended,
    }


def judge_searches(case: Case, theirs: list[dict[str, Any]]) -> None:
    """Verdicts of capacities."""
    if not case.metrics or case.metrics[0].spec.id != CAPACITY:
        return
    ends = {}
    for own in theirs:
        none = all(search["held"] <= 0 for search in own["searches"])
        ends[own["arm"]] = (own["fit"]["none_held"], own["fit"]["all_held"]) if own["fit"] else (none, False)
    for comparison in case.metrics[0].comparisons:
        figures = {arm["arm"] for arm in case.metrics[0].arms}
        both = {comparison.arm, comparison.baseline}
        if comparison.verdict != "not-comparable" and both <= figures and both <= ends.keys():
            judge(comparison, ends[comparison.arm], ends[comparison.baseline])
