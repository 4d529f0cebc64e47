"""The load that trials were offered."""

from __future__ import annotations

from typing import Any

from .cases import CAPACITY, Case
from .folder import Run, Trial
from .units import load_number


def kind_of(case: dict[str, Any]) -> dict[str, Any]:
    """The kind of its load: a table with `closed` or `open`."""
    load = case["load"]
    if "capacity" in load:
        return load["capacity"]["kind"]
    inner = next(iter(load.values()))
    return inner.get("load") or inner.get("share", inner.get("target", {}))["kind"]


def is_closed(case: dict[str, Any]) -> bool:
    return "closed" in kind_of(case)


def guests_of(case: dict[str, Any]) -> tuple[int, int]:
    """Measured guests, and drivers of each."""
    name, load = next(iter(case["load"].items()))
    if name == "capacity":
        return 1, load.get("drivers", 1)
    guests = load.get("guests", {"count": 1, "drivers": 1})
    return guests["count"], guests["drivers"]


def fixed(run: Run, case: Case) -> float | None:
    """The load of a guest where all trials have the same."""
    drivers = max(guests_of(case.case)[1], 1)
    if case.kind == "fixed":
        return load_number(case.case["load"]["fixed"]["load"]) * drivers
    if case.kind != "share-of":
        return None
    share = case.case["load"]["share-of"]["share"]
    own = [trial for trial in run.trials if trial.case == share["case"] and trial.arm == run.study["baseline"]]
    found = [trial.metrics[CAPACITY] for trial in own if trial.completed and CAPACITY in trial.metrics]
    return shared(share, drivers, found)


def shared(share: dict[str, Any], drivers: int, capacities: list[float]) -> float | None:
    """A share of the median of these capacities; whole clients of each driver in a closed loop."""
    held = sorted(value for value in capacities if 0 < value < float("inf"))
    if not held:
        return None
    drivers = max(drivers, 1)
    each = (held[(len(held) - 1) // 2] + held[len(held) // 2]) / 2 * share["share"] / drivers
    if "closed" in share["kind"]:
        each = float(min(max(int(each + 0.5), 1), 2**32 - 1))
    return each * drivers


def of_trial(trial: Trial, always: float | None) -> float | None:
    """That which held, where it searched; else what it was offered."""
    if trial.search:
        return trial.search.held
    counted = trial.counts.get("offered_load_max")
    return always if counted is None else float(counted)
