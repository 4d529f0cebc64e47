"""Cases that differ in load and number of instances alone, and their figures by block of the study."""

from __future__ import annotations

import math
from typing import Any

from . import loads
from .cases import CAPACITY, Case, CaseMetric
from .estimates import mean
from .folder import Run, Spec
from .units import load_number

ByBlock = dict[int, float]
OPERATIONS = "operations_per_s"
GUEST_CPU = "guest_cpu_share"


def groups(cases: list[Case]) -> list[list[Case]]:
    """Of those that offer load to one guest; searches for a capacity and scale-ups are of none."""
    found: list[list[Case]] = []
    for case in cases:
        if case.kind in ("density", "capacity") or case.schedule == "conditions" or loads.guests_of(case.case)[0] != 1:
            continue
        group = next((group for group in found if alike(group[0].case, case.case)), None)
        if group is None:
            found.append([case])
        else:
            group.append(case)
    return found


def kind_alike(case: dict[str, Any]) -> tuple[str, Any]:
    name, kind = next(iter(loads.kind_of(case).items()))
    return name, kind["think_time"] if name == "closed" else kind["arrivals"]


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    same = ("workload", "guest", "parameters", "neighbours", "busy_target")
    return (
        kind_alike(one) == kind_alike(other)
        and loads.guests_of(one) == loads.guests_of(other)
        and all(one[name] == other[name] for name in same)
    )


def is_time(spec: Spec) -> bool:
    return spec.unit == "seconds" and spec.better == "lower"


class Figures:
    """The figures of a run by case, arm and block."""

    def __init__(self, run: Run, cases: list[Case]) -> None:
        self.run, self.cases = run, {case.id: case for case in cases}

    def metric(self, case: str, metric: str) -> CaseMetric | None:
        return next((own for own in self.cases[case].metrics if own.spec.id == metric), None)

    def estimate(self, case: str, arm: str, metric: str) -> dict[str, Any] | None:
        found = self.metric(case, metric)
        return next((own["estimate"] for own in found.arms if own["arm"] == arm), None) if found else None

    def blocks(self, case: str, arm: str, metric: str) -> ByBlock:
        """Of a baseline in pairs, which has several values in a block of the study, the mean."""
        found = self.metric(case, metric)
        by_block: dict[int, list[float]] = {}
        for block, value in found.values(arm) if found else []:
            if math.isfinite(value):
                by_block.setdefault(block // self.run.pairs(case), []).append(value)
        return {block: float(mean(by_block[block]) or 0.0) for block in sorted(by_block)}

    def cpu(self, case: str, arm: str) -> ByBlock:
        return self.blocks(case, arm, GUEST_CPU)

    def specs(self, group: list[Case]) -> list[Spec]:
        found: dict[str, Spec] = {}
        for spec in (metric.spec for case in group for metric in case.metrics):
            found.setdefault(spec.id, spec)
        return sorted(found.values(), key=lambda spec: not spec.primary)

    def throughput(self, group: list[Case]) -> Spec | None:
        """The usual metric of operations a second, or the first of that unit."""
        rates = [spec for spec in self.specs(group) if spec.unit == "operations-per-second" and spec.better == "higher"]
        usual = next((spec for spec in self.specs(group) if spec.id == OPERATIONS), None)
        return usual or next(iter(rates), None)

    def primary_time(self, group: list[Case]) -> Spec | None:
        return next((spec for spec in self.specs(group) if spec.primary and is_time(spec)), None)

    def searches(self, case: Case, arm: str) -> list[tuple[int, dict[str, Any]]]:
        """What was seen while the guest's CPUs were held busy to a share."""
        return [(trial.block, trial.cpu_search) for trial in case.done(arm) if trial.cpu_search]

    def loads(self, case: Case, arm: str, blocks: list[int]) -> ByBlock:
        """The load that was offered to the guest by all its drivers, by block."""
        drivers = loads.guests_of(case.case)[1]
        if case.kind == "cpu-target":
            usable = [(block, own["load"]) for block, own in self.searches(case, arm) if own["load"] and math.isfinite(own["load"])]
            return {block: load * drivers for block, load in usable if load > 0}
        if case.kind == "share-of":
            share = case.case["load"]["share-of"]["share"]
            base = self.blocks(share["case"], self.run.study["baseline"], CAPACITY)
            load = loads.shared(share, drivers, list(base.values()))
        else:
            load = load_number(case.case["load"]["fixed"]["load"]) * drivers
        return {} if load is None else {block: load for block in blocks}

    def clients(self, case: Case, arm: str) -> float | None:
        return next(iter(self.loads(case, arm, [0]).values()), None)
