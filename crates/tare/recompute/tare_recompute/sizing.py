"""Sizing: models fitted to the cases of a group on one arm, checked on what was held out, and what they say to build."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from . import loads, scalability
from .cases import Case
from .estimates import ALPHA, estimate, mean, of_values
from .folder import Spec
from .grouped import GUEST_CPU, Figures, groups, is_time
from .leaves import WORDS, Left, or_words
from .sizing_models import DRAWN, SATURATED, Core, Resampled, Row, Shape, drawings, fit, level_of, rms, stretch, terms
from .units import size

POINTS_MIN = 6
HEADROOM = 0.25
KNEES_DRAWN = 200
KNEES = Left("interval of the knee of a scalability law: 200 fits by iteration")
Seen = dict[str, float | None]


class Point:
    """A case on one arm, by block."""

    def __init__(self, figures: Figures, case: Case, arm: str, throughput: str, response: Spec | None, servers: int) -> None:
        rates, cpu = figures.blocks(case.id, arm, throughput), figures.cpu(case.id, arm)
        load = figures.loads(case, arm, list(rates))
        times = figures.blocks(case.id, arm, response.id) if response else {}
        self.case, self.instances, self.held_out = case.id, max(case.case["instances"], 1), case.case["held_out"]
        self.blocks: dict[int, Seen] = {}
        for block, rate in rates.items():
            if block in load and block in cpu and load[block] > 0 and rate > 0 and cpu[block] >= 0:
                time = times[block] if times.get(block, 0.0) > 0 else None
                queued = stretch(servers, cpu[block]) if time is not None and cpu[block] < SATURATED else None
                self.blocks[block] = {"load": load[block], "throughput": rate, "cpu": cpu[block], "response": time, "queued": queued}
        self.memory = {name: figures.estimate(case.id, arm, f"{name}_bytes") for name in ("instance_memory", "idle_memory")}

    def row(self, blocks: list[int]) -> Row | None:
        """Means over blocks, of which one may be named several times."""
        own = [self.blocks[block] for block in blocks if block in self.blocks]
        if not own:
            return None

        def of(name: str) -> float:
            return float(mean([float(seen[name] or 0.0) for seen in own]) or 0.0)

        times = [float(seen["response"]) for seen in own if seen["response"] is not None]
        queued = [(float(seen["queued"]), float(seen["response"] or 0.0)) for seen in own if seen["queued"] is not None]
        return Row(float(self.instances), of("load"), of("throughput"), of("cpu"), mean(times), queued)

    @property
    def mean(self) -> Row:
        found = self.row(list(self.blocks))
        assert found is not None
        return found

    @property
    def fits(self) -> bool:
        return not self.held_out and self.mean.cpu < SATURATED

    def estimate(self, name: str) -> dict[str, Any] | None:
        return of_values([float(seen[name]) for seen in self.blocks.values() if seen[name] is not None])

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "instances": self.instances,
            "load": self.mean.load,
            "held_out": self.held_out,
            "saturated": not self.held_out and not self.fits,
            **{name: self.estimate(name) for name in ("throughput", "cpu", "response")},
            **self.memory,
        }


def of_run(figures: Figures, theirs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of `theirs` the law of scalability, once it is known to be near."""
    if figures.run.study.get("published") is not None:
        return []
    found = []
    for group in groups(list(figures.cases.values())):
        if len(group) >= POINTS_MIN or any(case.case["instances"] > 1 or case.case["held_out"] for case in group):
            known = theirs[len(found)]["arms"] if len(found) < len(theirs) else []
            laws = {own["arm"]: own["model"]["scalability"] for own in known if own["model"]}
            found.append(Group(figures, group, laws).as_json())
    return [group for group in found if group["arms"]]


class Group:
    def __init__(self, figures: Figures, group: list[Case], laws: dict[str, Any]) -> None:
        self.figures, self.group, self.laws = figures, group, laws
        specs = [spec for spec in figures.specs(group) if is_time(spec)]
        bounded = {own["metric"] for case in group for own in case.case["qos"]}
        self.response = (
            figures.primary_time(group)
            or next((spec for spec in specs if spec.id in bounded), None)
            or next((spec for spec in specs if "response_time_" in spec.id), None)
        )
        self.clients = loads.is_closed(group[0].case)
        self.guest = group[0].case["guest"]
        there = len(figures.run.plan["cpus"]["guests"])
        self.cpus = max(min(self.guest["cpus"], there) if there else self.guest["cpus"], 1)

    def as_json(self) -> dict[str, Any]:
        arms = [self.arm(arm["id"]) for arm in self.figures.run.study["arms"]]
        return {
            "workload": self.group[0].case["workload"],
            "guest": self.guest,
            "load_unit": "clients" if self.clients else "arrivals/s",
            "response": self.response.as_json() if self.response else None,
            "arms": [arm for arm in arms if arm],
        }

    def arm(self, arm: str) -> dict[str, Any] | None:
        if not any(own["arm"] == arm for case in self.group for metric in case.metrics for own in metric.arms):
            return None
        nothing = {"arm": arm, "points": [], "model": None, "refused": WORDS, "checks": [], "advice": None}
        throughput = self.figures.throughput(self.group)
        if throughput is None:
            return nothing
        points = [Point(self.figures, case, arm, throughput.id, self.response, self.cpus) for case in self.group]
        points = [point for point in points if point.blocks]
        if not points and not any(self.figures.cpu(case.id, arm) for case in self.group):
            return nothing
        said = sorted((point.as_json() for point in points), key=lambda point: (point["load"], point["instances"]))
        fitted = Fitted.of([point for point in points if not point.held_out], self.cpus)
        if fitted is None:
            return {**nothing, "points": said}
        checks = [fitted.check(point) for point in points if point.held_out]
        unseen = [case for case in self.group if case.case["held_out"] and case.id not in {point.case for point in points}]
        checks += [self.not_measured(case, arm) for case in unseen]
        advice = Advice(self, fitted).as_json()
        model = fitted.as_json("client" if self.clients else "arrival a second", self.laws.get(arm, []))
        return {**nothing, "points": said, "refused": None, "model": model, "checks": checks, "advice": advice}

    def not_measured(self, case: Case, arm: str) -> dict[str, Any]:
        load = self.figures.clients(case, arm) or 0.0
        head = {"case": case.id, "instances": max(case.case["instances"], 1), "load": load, "cpu": [NOT_PREDICTED, NOT_PREDICTED]}
        return {**head, "response": None, "cpu_within": False, "response_within": None, "refused": WORDS}

    @property
    def bound(self) -> float:
        own = [
            own["bound"] for case in self.group for own in case.case["qos"] if self.response and own["metric"] == self.response.id
        ]
        return min(own, default=1.0)


NOT_PREDICTED = {**estimate(0.0, None, None, 1 - ALPHA, 0, ""), "method": WORDS}


def deviation(values: list[float], parameters: int) -> tuple[float, float]:
    """With how many degrees of freedom."""
    freedom = max(len(values) - parameters, 1)
    return math.sqrt(math.fsum(value * value for value in values) / freedom), float(freedom)


def half_of(residual: tuple[float, float]) -> float:
    return float(stats.t.ppf(1 - ALPHA / 2, residual[1])) * residual[0]


class Fitted:
    """The models of one arm."""

    def __init__(self, points: list[Point], rows: list[Row], shape: Shape, core: Core) -> None:
        self.points, self.rows, self.shape, self.core = points, rows, shape, core
        off = [row.cpu - core.cpu(row.instances, row.load) for row in rows]
        used = sum(shape.terms)
        self.of_cpu = (
            deviation(off, used),
            deviation([left / row.cpu for left, row in zip(off, rows) if row.cpu > 0], used),
        )
        modelled = [(core.response(row.instances, row.load), row.response) for row in rows]
        self.of_response = deviation([time / own - 1 for time, own in modelled if time is not None and own], 2) if core.time else None
        self.resampled = self.resample()

    @classmethod
    def of(cls, points: list[Point], servers: int) -> Fitted | None:
        """None where tare refuses: too few points or loads, no growth, no proportion, no bound of times."""
        rows = [point.mean for point in points if point.fits]
        if len(rows) < POINTS_MIN or apart([row.load for row in rows]) < 2:
            return None
        shape = Shape(servers, terms(rows))
        core = fit(rows, shape, level_of(rows, shape), False)
        if core is None or rms([core.slope * row.load / row.throughput - 1 for row in rows]) > 0.10:
            return None
        found = cls(points, rows, shape, core)
        return found if found.of_response is None or half_of(found.of_response) < 1 else None

    def resample(self) -> Resampled:
        used = [point for point in self.points if point.fits]
        blocks = sorted({block for point in used for block in point.blocks})
        cores: list[Core] = []
        for drawn in drawings(blocks, DRAWN) if len(blocks) > 1 else []:
            rows = [point.row(drawn) or point.mean for point in used]
            core = fit(rows, self.shape, None, True)
            cores += [core] if core is not None else []
        return Resampled(cores, len(blocks))

    def around(self, value: float, half: float | None) -> dict[str, Any]:
        half = half if half is not None and math.isfinite(half) else None
        low, high = (None, None) if half is None else (max(value - half, 0.0), value + half)
        return {**estimate(value, low, high, 1 - ALPHA, self.resampled.blocks, ""), "method": WORDS}

    def predict(self, instances: int, load: float) -> tuple[dict[str, Any], dict[str, Any] | None]:
        cpu = self.core.cpu(instances, load)
        drawn = self.resampled.half(lambda core: core.cpu(instances, load))
        residual = max(half_of(self.of_cpu[0]), half_of(self.of_cpu[1]) * cpu)
        predicted = self.around(cpu, math.hypot(drawn or 0.0, residual))
        time = self.core.response(instances, load)
        if time is None or self.of_response is None:
            return predicted, None
        drawn, off = self.resampled.half(lambda core: core.response(instances, load)), half_of(self.of_response)
        below, above = (math.hypot(drawn or 0.0, time * off / (1 + sign * off)) for sign in (1, -1))
        found = self.around(time, below)
        return predicted, {**found, "high": time + above if math.isfinite(time + above) else None}

    def outside(self, instances: int, load: float) -> bool:
        """Whether it lies beyond what was measured."""
        numbers, all_loads = [int(row.instances) for row in self.rows], [row.load for row in self.rows]
        busy, cpu = [row.cpu for row in self.rows], self.core.cpu(instances, load)
        return (
            not min(numbers) <= instances <= max(numbers)
            or not min(all_loads) * (1 - 1e-9) <= load <= max(all_loads) * (1 + 1e-9)
            or not min(busy) - 0.01 <= cpu <= max(busy) + 0.01
        )

    def check(self, point: Point) -> dict[str, Any]:
        load, refused = point.mean.load, self.outside(point.instances, point.mean.load)
        cpu, time = self.predict(point.instances, load)
        measured, response = point.estimate("cpu"), point.estimate("response")
        assert measured is not None
        times = [time, response] if time and response and not refused else None
        return {
            "case": point.case,
            "instances": point.instances,
            "load": load,
            "cpu": [NOT_PREDICTED if refused else cpu, measured],
            "response": times,
            "cpu_within": not refused and abs(cpu["value"] - measured["value"]) <= 0.05,
            "response_within": abs(times[0]["value"] / times[1]["value"] - 1) <= 0.15 if times else None,
            "refused": or_words(refused),
        }

    def left_out(self) -> tuple[list[float], list[float]]:
        """Errors of CPU and of time of each point by the models of all others."""
        cpu, time = [], []
        for at, row in enumerate(self.rows):
            others = self.rows[:at] + self.rows[at + 1 :]
            core = fit(others, self.shape, self.core.level, False)
            if core is None:
                continue
            cpu.append(core.cpu(row.instances, row.load) - row.cpu)
            found = core.response(row.instances, row.load)
            time += [found / row.response - 1] if found is not None and row.response else []
        return [value for value in cpu if math.isfinite(value)], [value for value in time if math.isfinite(value)]

    def parameter(self, name: str, used: bool = True) -> dict[str, Any]:
        if not used:
            return NOT_PREDICTED
        return self.around(getattr(self.core, name), self.resampled.half(lambda core: float(getattr(core, name))))

    def as_json(self, one: str, theirs: list[dict[str, Any]]) -> dict[str, Any]:
        core, rows = self.core, self.rows
        left_cpu, left_time = self.left_out()
        span = {name: [of(getattr(row, name) for row in rows) for of in (min, max)] for name in ("instances", "load", "cpu")}
        cpu = {
            "idle": self.parameter("idle", self.shape.terms[2]),
            "demand_s": self.parameter("demand"),
            "growth_s": self.parameter("growth", self.shape.terms[1]),
            "level": core.level if core.growth > 0 else 0,
            "formula": WORDS,
            "points": len(rows),
            "rmse": rms([row.cpu - core.cpu_of(row.instances, row.throughput) for row in rows]),
            "rmse_left_out": rms(left_cpu),
        }
        response = self.response_json(left_time) if core.time else None
        model = {"range": span, "throughput": self.parameter("slope"), "cpu": cpu, "response": response}
        return {**model, "scalability": self.scalability(one, theirs)}

    def response_json(self, left_out: list[float]) -> dict[str, Any]:
        assert self.core.time is not None
        own = [(self.core.response_of(row.cpu), row.response) for row in self.rows]

        def part(at: int) -> dict[str, Any]:
            assert self.core.time is not None
            return self.around(self.core.time[at], self.resampled.half(lambda core: core.time[at] if core.time else None))

        return {
            "floor_s": part(0),
            "scale_s": part(1),
            "servers": self.shape.servers,
            "formula": WORDS,
            "points": sum(row.response is not None for row in self.rows),
            "rmse": rms([time / measured - 1 for time, measured in own if time is not None and measured]),
            "rmse_left_out": rms(left_out),
        }

    def scalability(self, one: str, theirs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Of six loads and more: throughput against load by both models, with the interval of the line's knee."""
        blocks = sorted({block for point in self.points for block in point.blocks})

        def drawn(own: list[int]) -> list[tuple[float, float]]:
            return [(row.load, row.throughput) for row in (point.row(own) for point in self.points) if row]

        if apart([load for load, _ in drawn(blocks)]) < 6:
            return []
        known = {model["name"]: model for model in theirs}
        found = scalability.models(drawn(blocks), one, theirs)
        for model in (model for model in found if model["knee"] is not None and len(blocks) > 1):
            if model["name"] == scalability.LINE:
                again = [scalability.models(drawn(own), one, []) for own in drawings(blocks, KNEES_DRAWN)]
                knees = sorted(line["knee"] for own in again for line in own if line["knee"] is not None)
                model["parameters"].update(knee_interval(knees))
            else:
                ends = [name for name in known[model["name"]]["parameters"] if name in (LOWER, UPPER)]
                model["parameters"].update({name: KNEES for name in ends})
        return found


LOWER, UPPER = (f"knee, {end} end of its interval" for end in ("lower", "upper"))


def knee_interval(knees: list[float]) -> dict[str, float]:
    """Of drawings of which nineteen in twenty have a knee."""
    if len(knees) * 20 <= KNEES_DRAWN * 19:
        return {}
    at = [int((len(knees) - 1) * share + 0.5) for share in (ALPHA / 2, 1 - ALPHA / 2)]
    return {LOWER: knees[at[0]], UPPER: knees[at[1]]}


def apart(values: list[float]) -> int:
    """How many different ones there are."""
    found: list[float] = []
    for value in sorted(values):
        if not found or abs(value - found[-1]) > 1e-6 * abs(found[-1]):
            found.append(value)
    return len(found)


class Advice:
    """What to build, for a load that may grow by a quarter."""

    def __init__(self, group: Group, fitted: Fitted) -> None:
        self.group, self.fitted = group, fitted
        self.bound = group.bound if group.response else None
        numbers = [int(row.instances) for row in fitted.rows]
        self.fewest, self.most = min(numbers), max(numbers)

    def as_json(self) -> dict[str, Any]:
        each = None if self.fewest == self.most else self.usual_load()
        instances, load = self.by_load() if each is None else self.by_instances(each)
        cpu = self.fitted.predict(instances, load)[0] if load > 0 else NOT_PREDICTED
        response = self.fitted.predict(instances, load * (1 + HEADROOM))[1] if load > 0 else None
        qos = None if self.group.response is None else [self.group.response.id, self.bound]
        question = {"qos": qos, "headroom": HEADROOM, "load_per_instance": each, "total_load": None}
        own = each if each is not None else load / max(instances, 1)
        return {
            "question": question,
            "instances": instances,
            "load": load,
            "cpu": cpu,
            "response": response,
            "memory_bytes": self.memory(instances) if instances else None,
            "guests": None,
            "bound_by": WORDS,
            "published": self.published(own),
            "notes": WORDS,
        }

    def usual_load(self) -> float:
        own = [point for point in self.fitted.points if point.fits and point.instances == self.most]
        return max((point.mean.load / self.most for point in own), default=0.0)

    def memory(self, instances: int) -> float | None:
        def most(name: str) -> float | None:
            found = [point.memory[name] for point in self.fitted.points]
            return max((own["value"] for own in found if own is not None), default=None)

        each, idle = most("instance_memory"), most("idle_memory")
        return None if each is None or idle is None else idle + each * instances

    def holds(self, instances: int, load: float) -> bool:
        memory, stressed = self.memory(instances), load * (1 + HEADROOM)
        if self.fitted.outside(instances, load) or (memory is not None and memory > size(self.group.guest["memory"])):
            return False
        return not self.missed(instances, load) and not self.fitted.outside(instances, stressed) and not self.missed(instances, stressed)

    def missed(self, instances: int, load: float) -> bool:
        time = self.fitted.core.response(instances, load)
        return self.bound is not None and time is not None and not time <= self.bound

    def by_instances(self, each: float) -> tuple[int, float]:
        held = [n for n in range(self.fewest, self.most + 1) if self.holds(n, each * n)]
        return (held[-1], each * held[-1]) if held else (0, 0.0)

    def by_load(self) -> tuple[int, float]:
        all_loads = [row.load for row in self.fitted.rows]
        least, top = min(all_loads), max(all_loads) / (1 + HEADROOM)

        def whole(load: float) -> float:
            return float(math.floor(load + 1e-9)) if self.group.clients else load

        if self.holds(self.most, whole(top)):
            return self.most, whole(top)
        if not self.holds(self.most, least):
            return 0, 0.0
        low, high = least, top
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.holds(self.most, middle) else (low, middle)
        return self.most, max(whole(low), least)

    def published(self, each: float) -> list[int] | None:
        """Instances at 70 and 80 % CPU where each takes its load's CPU and 4 points."""
        core = self.fitted.core
        of_one = core.slope * each * core.demand / max(self.group.cpus, 1) + 0.04
        return [int(math.floor(share / of_one + 1e-9)) for share in (0.70, 0.80)] if each > 0 else None
