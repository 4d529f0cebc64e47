"""How many guests the host carries, from the scale-ups of a case (ADR 0011)."""

from __future__ import annotations

from typing import Any

from . import scalability
from .cases import Case
from .estimates import of_values
from .folder import Level, ScaleUp
from .held import Tried, judge, put_in, seen_in_scale_up, thresholds
from .leaves import WORDS
from .units import size

COURSE_MAX = 400
SAVED = ("zero_bytes", "code_bytes", "data_bytes", "unknown_bytes")
TILES = "tiles_held"
ByBlock = list[tuple[int, ScaleUp]]


def of_case(case: Case, theirs: dict[str, Any] | None) -> dict[str, Any] | None:
    """As findings have it; of `theirs` what follows from fits."""
    known = {own["arm"]: own for own in (theirs or {"arms": []})["arms"]}
    all_of = {arm: [(trial.block, trial.scale_up) for trial in case.done(arm) if trial.scale_up] for arm in case.by_arm}
    all_of = {arm: own for arm, own in all_of.items() if own}
    if not all_of or theirs is None:
        return None
    spec = case.case["load"]["density"]["spec"]
    unit = float(max(len(spec["tile"]), 1))
    tried = [
        Tried(arm, [one for block, up in own for one in seen_in_scale_up(block, up)], unit, known.get(arm, {}).get("fit"))
        for arm, own in all_of.items()
    ]
    fits = thresholds(tried, case.run.study["baseline"])
    arms = [of_arm(arm, own, fit, known.get(arm, {})) for (arm, own), fit in zip(all_of.items(), fits)]
    offered = [up.offered for own in all_of.values() for _, up in own if up.offered is not None]
    return {
        "guest_memory_bytes": guest_memory(case, spec),
        "host_memory_bytes": host_memory(arms),
        "offered_per_guest_per_s": offered[0] if offered else None,
        "arms": arms,
    }


def guest_memory(case: Case, spec: dict[str, Any]) -> int:
    tile = [size(guest["size"]["memory"]) for guest in spec["tile"]]
    return sum(tile) // len(tile) if tile else size(case.case["guest"]["memory"])


def host_memory(arms: list[dict[str, Any]]) -> int:
    """From the first number of guests that has both what was promised and what share of the host that is."""
    for level in (level for arm in arms for level in arm["levels"]):
        promised, ratio = (level["metrics"].get(name) for name in ("memory_promised_bytes", "overcommit_ratio"))
        if promised and ratio and ratio["value"] > 0:
            return int(promised["value"] / ratio["value"] + 0.5)
    return 0


def middle(values: list[int]) -> int:
    return sorted(values)[(len(values) - 1) // 2]


def of_arm(arm: str, own: ByBlock, fit: dict[str, Any] | None, theirs: dict[str, Any]) -> dict[str, Any]:
    held = [[block, up.held] for block, up in own]
    points = [
        (float(level.guests), level.metrics["operations_per_s"])
        for _, up in own
        for level in up.levels
        if level.worked and "operations_per_s" in level.metrics
    ]
    return {
        "arm": arm,
        # Of the fit, which is compared by itself.
        "held": int(theirs["fit"]["half"]["value"]) if theirs.get("fit") else middle([number for _, number in held]),
        "fit": fit,
        "held_blocks": held,
        "end_of_series": all(up.stopped == "end" for _, up in own),
        "stopped": [[block, up.stopped_guests, WORDS, up.stopped_detail] for block, up in own],
        "levels": levels(own),
        "course": course(own),
        "models": scalability.models(points, "guest", theirs.get("models", [])),
        "tile": next((up.tile for _, up in own if up.tile), []),
    }


def levels(own: ByBlock) -> list[dict[str, Any]]:
    by_guests: dict[int, list[Level]] = {}
    for level in (level for _, up in own for level in up.levels):
        by_guests.setdefault(level.guests, []).append(level)
    return [one_level(guests, by_guests[guests]) for guests in sorted(by_guests)]


def one_level(guests: int, own: list[Level]) -> dict[str, Any]:
    worked = [level for level in own if level.worked]
    names = sorted({name for level in worked for name in level.metrics})
    metrics = {name: of_values([level.metrics[name] for level in worked if name in level.metrics]) for name in names}
    return {
        "guests": guests,
        "tried": len(own),
        "held": sum(level.failed is None for level in own),
        "metrics": {name: found for name, found in metrics.items() if found is not None},
        "saved_from": {part: sum(level.saved[part] for level in worked) // max(len(worked), 1) for part in SAVED},
    }


def course(own: ByBlock) -> list[dict[str, Any]]:
    """Of the scale-up in the middle, thinned evenly; its last point is kept."""
    points = sorted(own, key=lambda one: (one[1].held, one[0]))[(len(own) - 1) // 2][1].course
    every = max(-(-len(points) // COURSE_MAX), 1)
    return [point for at, point in enumerate(points) if at % every == 0 or at == len(points) - 1]


def take_fits(case: Case, theirs: dict[str, Any] | None) -> None:
    """Puts tare's fits into the metric and its comparisons."""
    if theirs is None or not case.metrics:
        return
    fits = {own["arm"]: own["fit"] for own in theirs["arms"] if own["fit"] is not None}
    tiles = case.metrics[0].spec.id == TILES
    tile = max((len(own["tile"]) for own in theirs["arms"]), default=1)
    put_in(case, fits, max(tile, 1) if tiles else 1)


def judge_numbers(case: Case, theirs: dict[str, Any] | None) -> None:
    if theirs is None or not case.metrics:
        return
    ends = {}
    for own in theirs["arms"]:
        by_block = (own["held"] == 0, own["end_of_series"] and own["held"] > 0)
        ends[own["arm"]] = (own["fit"]["none_held"], own["fit"]["all_held"]) if own["fit"] else by_block
    for comparison in case.metrics[0].comparisons:
        if comparison.verdict != "not-comparable" and {comparison.arm, comparison.baseline} <= ends.keys():
            judge(comparison, ends[comparison.arm], ends[comparison.baseline])
