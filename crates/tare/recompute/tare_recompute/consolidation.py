"""Several instances of an application in one guest: response time, throughput and CPU against their number."""

from __future__ import annotations

import math
from typing import Any, Callable

from . import loads
from .cases import Case
from .estimates import of_differences, of_values
from .grouped import ByBlock, Figures, groups

FAILED = "failed_share"


def of_run(figures: Figures, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`found`: the cases as they were made again, for their objectives."""
    objectives = {case["id"]: case["objectives"] for case in found}
    own = [group for group in groups(list(figures.cases.values())) if loads.is_closed(group[0].case)]
    own = [group for group in own if any(case.case["instances"] > 1 for case in group)]
    said = [of_group(figures, group, objectives) for group in own]
    return [one for one in said if one["arms"]]


def of_group(figures: Figures, group: list[Case], objectives: dict[str, Any]) -> dict[str, Any]:
    response, throughput = figures.primary_time(group), figures.throughput(group)
    arms = [
        Arm(figures, arm["id"], response.id if response else None, throughput.id if throughput else "", objectives).findings(group)
        for arm in figures.run.study["arms"]
    ]
    return {
        "workload": group[0].case["workload"],
        "guest": group[0].case["guest"],
        "cases": [case.id for case in group],
        "response": [response.id, response.label] if response else None,
        "arms": [arm for arm in arms if any(arm[part] for part in ("by_load", "lost", "gained", "side_by_side"))],
    }


def same(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other))


class Step:
    """One number of instances: figures by block as they were measured, as they are compared, and the share that was held."""

    def __init__(self, case: Case, values: ByBlock, compared: ByBlock, held: ByBlock) -> None:
        self.case, self.instances = case.id, case.case["instances"]
        self.values, self.compared, self.held = values, compared, held


class Arm:
    """One arm in one group."""

    def __init__(self, figures: Figures, arm: str, response: str | None, throughput: str, objectives: dict[str, Any]) -> None:
        self.figures, self.arm, self.response, self.throughput, self.objectives = figures, arm, response, throughput, objectives

    def findings(self, group: list[Case]) -> dict[str, Any]:
        targets = [case for case in group if case.kind == "cpu-target"]
        fixed = [case for case in group if case.kind != "cpu-target"]
        several = len(group) > 1
        beside = [self.side_by_side(case) for case in group if case.case["instances"] > 1]
        return {
            "arm": self.arm,
            "by_load": self.by_load(fixed) if several else [],
            "lost": self.lost(targets) if several else [],
            "gained": self.gained(fixed) if several else [],
            "side_by_side": [one for one in beside if one],
        }

    def estimate(self, case: Case, metric: str | None) -> dict[str, Any] | None:
        return of_values(list(self.figures.blocks(case.id, self.arm, metric).values())) if metric is not None else None

    def by_load(self, cases: list[Case]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for case in cases:
            point = self.load_point(case)
            if point is None:
                continue
            each = point["clients"] / max(case.case["instances"], 1)
            own = next((one for one in found if same(one["clients_per_instance"], each)), None)
            if own is None:
                found.append({"clients_per_instance": each, "points": [point]})
            else:
                own["points"].append(point)
        for own in found:
            own["points"].sort(key=lambda point: point["clients"])
        return sorted(found, key=lambda own: own["clients_per_instance"])

    def load_point(self, case: Case) -> dict[str, Any] | None:
        clients = self.figures.clients(case, self.arm)
        if clients is None:
            return None
        point = {
            "case": case.id,
            "instances": case.case["instances"],
            "clients": clients,
            "response": self.estimate(case, self.response),
            "cpu": of_values(list(self.figures.cpu(case.id, self.arm).values())),
            "throughput": self.estimate(case, self.throughput),
            "met": self.met(case),
        }
        return point if any(point[name] for name in ("response", "cpu", "throughput")) else None

    def met(self, case: Case) -> float | None:
        """Share of the planned blocks in which every objective was met."""
        judged = [own for own in self.objectives[case.id] if own["arm"] == self.arm]
        planned = max((own["planned"] for own in judged), default=0)
        if not planned:
            return None
        met = [{block for block, _, good in own["blocks"] if good} for own in judged]
        return len(set.intersection(*met)) / planned

    def lost(self, cases: list[Case]) -> list[dict[str, Any]]:
        """Throughput at a share of the guest's CPUs, in proportion to the share that was asked."""

        def step(case: Case, fixed: float) -> Step:
            values = self.figures.blocks(case.id, self.arm, self.throughput)
            shares = {block: own["share"] for block, own in self.figures.searches(case, self.arm) if own["share"]}
            held = {block: share for block, share in shares.items() if math.isfinite(share) and share > 0}
            compared = {block: value * fixed / held[block] if block in held else value for block, value in values.items()}
            return Step(case, values, compared, held)

        def loss(before: float, after: float, fewest: float) -> float:
            return (before - after) / fewest * 100

        by_share = by_fixed(cases, lambda case: case.case["load"]["cpu-target"]["target"]["share"])
        found = [series(fixed, [step(case, fixed) for case in own], loss) for fixed, own in by_share]
        return [one for one in found if one]

    def gained(self, cases: list[Case]) -> list[dict[str, Any]]:
        """Share of the guest's CPUs at a load."""

        def step(case: Case) -> Step:
            values = self.figures.cpu(case.id, self.arm)
            return Step(case, values, values, {})

        def points(before: float, after: float, _: float) -> float:
            return (after - before) * 100

        by_load = by_fixed(cases, lambda case: self.figures.clients(case, self.arm))
        found = [series(fixed, [step(case) for case in own], points) for fixed, own in by_load]
        return [one for one in found if one]

    def of_instances(self, case: Case, metric: str | None) -> dict[int, ByBlock]:
        """By block and in it by instance."""
        found: dict[int, ByBlock] = {}
        for trial in case.all:
            if trial.arm != self.arm or not trial.completed:
                continue
            own = {
                part.instance: part.metrics[metric]
                for part in trial.parts
                if metric in part.metrics and part.instance is not None and part.driver is None
            }
            kept = {number: value for number, value in own.items() if math.isfinite(value) and value >= 0}
            if kept:
                found[trial.block] = kept
        return dict(sorted(found.items()))

    def side_by_side(self, case: Case) -> dict[str, Any] | None:
        """The instances of one guest: whether they were served alike."""
        rates, failed = self.of_instances(case, self.throughput), self.of_instances(case, FAILED)
        times = self.of_instances(case, self.response) if self.response else {}
        numbers = sorted({number for own in (*rates.values(), *times.values()) for number in own})
        if len(numbers) < 2:
            return None
        known = self.figures.loads(case, self.arm, [*rates, *times])
        clients = math.fsum(known.values()) / len(known) if known else 0.0
        instances, drivers = case.case["instances"], loads.guests_of(case.case)[1]
        each = [
            {
                "instance": number,
                "clients": dealt(clients, drivers, instances, number),
                "throughput": of_values([own[number] for own in rates.values() if number in own]),
                "response": of_values([own[number] for own in times.values() if number in own]),
                "failed": of_values([own[number] for own in failed.values() if number in own]),
            }
            for number in numbers
        ]
        found = {"case": case.id, "instances": instances, "clients": clients, "each": each}
        return {**found, "response_apart": apart(times, instances), "throughput_apart": apart(rates, instances)}


def apart(figures: dict[int, ByBlock], instances: int) -> dict[str, Any] | None:
    """The largest of a block over its smallest, over the blocks in which every instance has one; 1 at least."""
    whole = [own.values() for own in figures.values() if len(own) == instances and min(own.values()) > 0]
    found = of_values([max(own) / min(own) for own in whole])
    if found is None or found["low"] is None:
        return found
    return {**found, "low": max(found["low"], 1.0)}


def dealt(clients: float, drivers: int, instances: int, instance: int) -> float:
    """Clients of one instance: each driver deals its own in turn."""
    drivers, instances = max(drivers, 1), max(instances, 1)
    each = clients / drivers
    if each % 1 > 1e-9:
        return clients / instances
    return drivers * (each // instances + (1 if instance <= each % instances else 0))


def by_fixed(cases: list[Case], of: Callable[[Case], float | None]) -> list[tuple[float, list[Case]]]:
    """Cases with the same fixed value, of each number of instances the first."""
    found: list[tuple[float, list[Case]]] = []
    for case in cases:
        value = of(case)
        if value is None:
            continue
        own = next((own for known, own in found if same(known, value)), None)
        if own is None:
            found.append((value, [case]))
        elif all(other.case["instances"] != case.case["instances"] for other in own):
            own.append(case)
    return sorted(((value, sorted(own, key=lambda case: case.case["instances"])) for value, own in found), key=lambda one: one[0])


def series(fixed: float, steps: list[Step], change: Callable[[float, float, float], float]) -> dict[str, Any] | None:
    """What each added instance costs, paired within blocks; None with fewer than two numbers of instances."""
    steps = [step for step in steps if step.values]
    if len(steps) < 2:
        return None
    fewest = steps[0]

    def between(before: Step, after: Step) -> dict[str, Any] | None:
        added = after.instances - before.instances
        blocks = [block for block in after.compared if block in before.compared and block in fewest.compared]
        return of_differences(
            [change(before.compared[block], after.compared[block], fewest.compared[block]) / added for block in blocks]
        )

    points = [
        {
            "case": step.case,
            "instances": step.instances,
            "value": of_values(list(step.values.values())),
            "per_instance": between(fewest, step) if at else None,
            "step": between(steps[at - 1], step) if at else None,
            "held": of_values(list(step.held.values())),
        }
        for at, step in enumerate(steps)
    ]
    return {"fixed": fixed, "points": points}
