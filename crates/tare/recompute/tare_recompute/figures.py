"""What stands beside the metrics of a case: distributions, CPU, steps, accounts, parts, objectives, groups, requests."""

from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from . import loads
from .cases import Case, CaseMetric, left_out
from .estimates import estimate, mean, median, of_values
from .folder import CPU_PARTS, Part, Request, Spec, Trial
from .histogram import BEYOND, Histogram, merged
from .leaves import or_words

QUANTILES = (0.50, 0.90, 0.95, 0.99, 0.999, 0.9999)
STEP_QUANTILES = (0.50, 0.90, 0.99, 0.999)
CURVE_MAX = 300
NS = 1e-9


class Mixture:
    """Histograms merged so that each block counts the same."""

    def __init__(self, blocks: list[Histogram]) -> None:
        blocks = [block for block in blocks if not block.empty]
        shares: dict[int, list[float]] = {}
        for block in blocks:
            weight = 1 / (block.operations * len(blocks))
            for low, high, count in block.bins.tolist():
                known = shares.setdefault(low, [high, 0.0])
                known[0] = max(known[0], high)
                known[1] += count * weight
        lows = sorted(shares)
        self.low = np.array(lows, dtype=float)
        self.high = np.array([shares[low][0] for low in lows], dtype=float)
        self.share = np.array([shares[low][1] for low in lows])
        done = [block for block in blocks if len(block.bins)]
        self.least = float(min((block.least for block in done), default=0))
        self.largest = float(max((block.largest for block in done), default=0))
        self.missing = math.fsum(block.missing for block in blocks) / max(len(blocks), 1)

    def quantile(self, share: float) -> float | None:
        seen = np.cumsum(self.share)
        at = np.flatnonzero(seen >= share * (1 - 1e-12))
        if not len(at):
            return None
        return min(max((self.low[at[0]] + self.high[at[0]]) / 2, self.least), self.largest)

    def curve(self) -> list[tuple[float, float]]:
        """(seconds, share of operations that took longer), from the shortest to the longest."""
        beyond, points = self.missing, []
        for high, share in zip(self.high[::-1].tolist(), self.share[::-1].tolist()):
            if beyond > 0:
                points.append((high * NS, beyond))
            beyond += share
        points.append((self.least * NS, 1.0))
        return points[::-1]


def thinned(points: list[tuple[float, float]]) -> list[list[float]]:
    """Keeps a point where the curve moved by 1/148 of either logarithmic axis since the last one that was kept, and both ends."""
    if len(points) <= CURVE_MAX:
        return [list(point) for point in points]
    places = [(math.log(max(x, 1e-12)), math.log(y)) for x, y in points]
    steps = CURVE_MAX // 2 - 2
    step = [abs(places[-1][axis] - places[0][axis]) / steps for axis in (0, 1)]
    kept, at = [points[0]], places[0]
    for point, place in zip(points[1:-1], places[1:-1]):
        if any(abs(place[axis] - at[axis]) >= step[axis] for axis in (0, 1)):
            kept.append(point)
            at = place
    return [list(point) for point in [*kept, points[-1]]]


def quantiles(blocks: list[Histogram]) -> tuple[list[list[Any]], list[list[Any]]]:
    """Percentiles that the blocks support, seconds; and those that operations that did not complete move."""
    if not any(len(block.bins) for block in blocks):
        return [], []
    everything, done = Mixture(blocks), Mixture([block.completed() for block in blocks])
    operations = sum(block.operations for block in blocks)
    found: list[list[Any]] = []
    moved: list[list[Any]] = []
    for share in QUANTILES:
        if operations * (1 - share) < BEYOND * (1 - 1e-9):
            continue
        value, alone = everything.quantile(share), done.quantile(share)
        if value != alone:
            moved.append([share, left_out((everything.missing, None if alone is None else alone * NS))])
        if value is not None:
            found.append([share, quantile(share, value * NS, blocks)])
    return found, moved


def quantile(share: float, value: float, blocks: list[Histogram]) -> dict[str, Any]:
    """With the interval of the blocks' own."""
    own = [block.percentile(share) for block in blocks]
    if all(isinstance(one, float) for one in own):
        of_blocks = of_values([float(one) * NS for one in own])
        if of_blocks is not None:
            method = f"blocks merged with equal weight; interval of the blocks' own: {of_blocks['method']}"
            return {**of_blocks, "value": value, "method": method}
    why = (
        "a block did not reach it, for too many operations did not complete"
        if "not reached" in own
        else f"a block has fewer than {BEYOND:.0f} operations beyond it"
    )
    return estimate(value, None, None, 0.95, len(blocks), f"blocks merged with equal weight; no interval: {why}")


def histograms(trials: Sequence[Trial], name: str) -> list[Histogram]:
    found = (trial.histograms.get(name) for trial in trials)
    return [one for one in found if one is not None and not one.empty]


def same(one: Histogram | None, other: Histogram | None) -> bool:
    if one is None or other is None:
        return one is other
    heads = [(own.least, own.largest, own.total, own.failed, own.given_up, own.waited) for own in (one, other)]
    return heads[0] == heads[1] and np.array_equal(one.bins, other.bins)


def distributions(case: Case, arm: str) -> list[dict[str, Any]]:
    trials = case.done(arm)
    names = ["response", "service", "latency probe response"]
    response, service = histograms(trials, "response"), histograms(trials, "service")
    if len(response) == len(service) and all(same(one, other) for one, other in zip(response, service)):
        names.remove("service")
    found = []
    for name in names:
        blocks = histograms(trials, name)
        if not any(len(block.bins) for block in blocks):
            continue
        values, moved = quantiles(blocks)
        found.append(
            {
                "arm": arm,
                "name": name,
                "operations": sum(block.operations for block in blocks),
                "not_completed": sum(block.not_completed for block in blocks),
                "quantiles": values,
                "incomplete": moved,
                "ccdf": thinned(Mixture(blocks).curve()),
            }
        )
    return found


def cpu(case: Case, arm: str) -> dict[str, Any] | None:
    """Mean CPU account of the completed trials."""
    trials = [trial for trial in case.done(arm) if trial.cpu]
    if not trials:
        return None
    n = len(trials)
    operations, carried = (math.fsum(trial.counts.get(name, 0) for trial in trials) / n for name in ("operations", "bytes"))
    by_operation = operations > 0 or carried == 0
    demand = of_values([trial.metrics["service_demand_cpu_s"] for trial in trials if "service_demand_cpu_s" in trial.metrics])
    account = {part: math.fsum(trial.cpu[part] for trial in trials if trial.cpu) / n for part in CPU_PARTS}
    return {
        "arm": arm,
        "account": {**account, "cpus": trials[0].cpu["cpus"]},
        "work": operations if by_operation else carried,
        "unit_of_work": "operation" if by_operation else "byte",
        "per_work_s": demand["value"] if demand else None,
    }


def whole(trial: Trial) -> Histogram | None:
    """Times of whole operations, from their actual start."""
    found = histograms([trial], "service") or histograms([trial], "response")
    return found[0] if found else None


def stepped(trial: Trial) -> int | None:
    """Operations whose steps were timed: in a closed loop those that the end cut off are among them."""
    counted = trial.counts.get("operations", 0) or None
    times = whole(trial)
    timed = (times.count + times.given_up or None) if times else None
    closed = same(trial.histograms.get("service"), trial.histograms.get("response"))
    return (None if closed else counted) or timed or counted


def steps(case: Case, arm: str) -> dict[str, Any] | None:
    timed = [(trial, stepped(trial)) for trial in case.done(arm) if trial.steps]
    own = [(trial, float(number)) for trial, number in timed if number]
    heads: dict[str, bool] = {}
    for step in (step for trial, _ in own for step in trial.steps):
        heads.setdefault(step.name, step.within)
    found = [one_step(name, within, own) for name, within in heads.items()]
    if not found:
        return None
    wholes = [time.mean() for time in (whole(trial) for trial, _ in own) if time is not None]
    operation = of_values([one * NS for one in wholes if one is not None])
    within = math.fsum(step["of_operation_s"]["value"] for step in found if step["within"])
    rest = None
    if operation is not None and within <= operation["value"] * 1.02:
        rest = max(operation["value"] - within, 0.0)
    return {"arm": arm, "steps": found, "operation_s": operation, "rest_s": rest}


def one_step(name: str, within: bool, own: list[tuple[Trial, float]]) -> dict[str, Any]:
    times = [(next((step.times for step in trial.steps if step.name == name), Histogram()), n) for trial, n in own]
    return {
        "name": name,
        "within": within,
        "per_operation": math.fsum(time.count / n for time, n in times) / len(times),
        "of_operation_s": of_values([time.total * NS / n for time, n in times]),
        "quantiles": [
            entry for entry in quantiles([time for time, _ in times if not time.empty])[0] if entry[0] in STEP_QUANTILES
        ],
    }


def account(case: Case, arm: str, always: float | None) -> dict[str, Any] | None:
    """Counts, lateness and rates."""
    trials = case.done(arm)
    if not trials:
        return None
    counts = {"errors": 0, "lost": 0, "unfinished": 0}
    for name, n in ((name, n) for trial in trials for name, n in trial.counts.items()):
        known = counts.get(name, 0)
        counts[name] = max(known, n) if name.endswith("_max") else known + n
        if name.startswith("errors: "):
            counts["errors"] += n
    offered = offered_per_s(case, trials, always)
    rates = [rate for rate in (achieved(trial, offered is not None) for trial in trials) if rate is not None]
    return {
        "arm": arm,
        "trials": len(trials),
        "counts": counts,
        "lateness": [] if offered is None else quantiles(histograms(trials, "lateness"))[0],
        "offered_per_s": offered,
        "achieved_per_s": of_values(rates),
        "facts": or_words(True),
    }


def offered_per_s(case: Case, trials: list[Trial], always: float | None) -> float | None:
    """Operations a second that were to be started by all guests together."""
    if case.kind == "density":
        ups = [trial.scale_up for trial in trials if trial.scale_up and trial.scale_up.held > 0]
        return mean([up.offered * up.held for up in ups if up.offered is not None])
    if loads.is_closed(case.case):
        return None
    found = [load for load in (loads.of_trial(trial, always) for trial in trials) if load is not None]
    each = mean(found)
    return None if each is None else each * max(loads.guests_of(case.case)[0], 1)


def achieved(trial: Trial, is_open: bool) -> float | None:
    """Operations a second, or sessions that began where arrivals are sessions."""
    seconds = trial.measured_s()
    began = trial.counts.get("sessions_began") if is_open else None
    began = trial.counts.get("operations", 0) if began is None else began
    return began / seconds if seconds and began else None


class GuestParts:
    """What the guests of one trial contributed to a metric."""

    def __init__(self, parts: list[Part], metric: str) -> None:
        self.whole: dict[int, float] = {}
        self.drivers: dict[int, dict[int, float]] = {}
        self.instances: dict[int, dict[int, float]] = {}
        self.guests: list[int] = []
        own = [(part, part.metrics[metric]) for part in parts if metric in part.metrics]
        if not all(math.isfinite(value) for _, value in own):
            return
        for part, value in own:
            if part.instance is not None:
                sums = self.instances.setdefault(part.guest, {})
                sums[part.instance] = sums.get(part.instance, 0.0) + value
            elif part.driver is not None:
                self.drivers.setdefault(part.guest, {})[part.driver] = value
            else:
                self.whole[part.guest] = value
        self.guests = sorted({part.guest for part, _ in own})

    def value(self, guest: int) -> float:
        if guest in self.whole:
            return self.whole[guest]
        return math.fsum((self.drivers.get(guest) or self.instances.get(guest, {})).values())

    def sum(self) -> float:
        return math.fsum(self.value(guest) for guest in self.guests)


def parts(case: Case) -> list[dict[str, Any]]:
    """The first metric that adds up over guests and drivers, by each of them."""
    if case.kind == "density":
        return []
    for spec in case.measured():
        of_arms = {arm: [(trial, GuestParts(trial.parts, spec.id)) for trial in case.done(arm)] for arm in case.by_arm}
        of_arms = {arm: [one for one in own if one[1].guests] for arm, own in of_arms.items()}
        if all(adds_up(spec, own) for own in of_arms.values()):
            found = [part for part in (arm_parts(arm, spec, [one for _, one in own]) for arm, own in of_arms.items()) if part]
            if found:
                return found
    return []


def adds_up(spec: Spec, own: list[tuple[Trial, GuestParts]]) -> bool:
    if not own:
        return True
    if spec.unit not in ("operations-per-second", "bits-per-second") and not isinstance(spec.unit, dict):
        return False
    sums = ((one.sum(), trial.metrics.get(spec.id, math.nan)) for trial, one in own)
    return all(abs(total - value) <= 0.01 * abs(value) for total, value in sums)


def arm_parts(arm: str, spec: Spec, own: list[GuestParts]) -> dict[str, Any] | None:
    guests = sorted({guest for one in own for guest in one.guests})
    drivers = sorted({(guest, driver) for one in own for guest in one.guests for driver in one.drivers.get(guest, {})})
    if len(guests) < 2 and len(drivers) < 2:
        return None
    found: list[dict[str, Any]] = []
    for guest in guests:
        for driver in [driver for of, driver in drivers if of == guest]:
            values = [one.drivers[guest][driver] for one in own if driver in one.drivers.get(guest, {})]
            found.append({"guest": guest, "driver": driver, "estimate": median(values)})
        values = [one.value(guest) for one in own if guest in one.guests]
        found.append({"guest": guest, "driver": None, "estimate": median(values)})
    return {"arm": arm, "metric": spec.id, "parts": found, "total": median([one.sum() for one in own])}


def meets(better: str, value: float, bound: float) -> bool:
    return value >= bound if better == "higher" else value <= bound


def objectives(case: Case) -> list[dict[str, Any]]:
    if case.kind == "capacity":
        return []
    specs, found = {spec.id: spec for spec in case.specs()}, []
    for objective in case.case["qos"]:
        spec = specs.get(objective["metric"])
        for arm, trials in case.by_arm.items():
            if spec is None or not trials:
                continue
            times = case.run.pairs(case.id) if arm == case.run.study["baseline"] else 1
            blocks = [[block, value, meets(spec.better, value, objective["bound"])] for block, value in case.values(arm, spec.id)]
            found.append(
                {
                    "arm": arm,
                    "spec": spec.as_json(),
                    "bound": objective["bound"],
                    "blocks": blocks,
                    "planned": max(case.blocks * times, len(trials)),
                    "sentence": or_words(True),
                }
            )
    return found


def groups(metrics: list[CaseMetric]) -> list[dict[str, Any]]:
    """Arms whose blocks fall into two groups: a gap of more than twice the wider group's range, and of 5 %."""
    found = []
    for own in (arm for metric in metrics if metric.spec.primary for arm in metric.arms):
        blocks = sorted((tuple(block) for block in own["blocks"]), key=lambda block: block[1])
        if len(blocks) < 8 or blocks[0][1] <= 0:
            continue
        logs = [math.log(value) for _, value in blocks]
        for at in range(2, len(logs) - 1):
            gap = logs[at] - logs[at - 1]
            if gap >= math.log(1.05) and gap > 2 * max(logs[at - 1] - logs[0], logs[-1] - logs[at]):
                low, high = blocks[:at], blocks[at:]
                found.append({"arm": own["arm"], "low": group(low), "high": group(high)})
                break
    return found


def group(blocks: list[tuple[int, float]]) -> list[Any]:
    return [sorted(block for block, _ in blocks), float(np.median([value for _, value in blocks]))]


def requests(case: Case, arm: str, always: float | None) -> dict[str, Any] | None:
    """Requests by type: of a search every iteration at the load that held, of others one a block."""
    tables = []
    for trial in case.done(arm):
        if trial.search:
            tries = [one for one in trial.search.iterations() if one.requests]
            for number, one in enumerate(tries, 1):
                seconds = max(one.window[1] - one.window[0], 0) * NS
                tables.append(table(trial.block, number, one.load, seconds, True, one.requests))
        elif trial.requests:
            load = loads.of_trial(trial, always) or 0.0
            tables.append(table(trial.block, 1, load, trial.measured_s() or 0.0, met(case, trial), trial.requests))
    return {"arm": arm, "iterations": tables} if tables else None


def met(case: Case, trial: Trial) -> bool:
    better = {spec.id: spec.better for spec in trial.specs}
    return all(
        own["metric"] in trial.metrics and meets(better.get(own["metric"], "lower"), trial.metrics[own["metric"]], own["bound"])
        for own in case.case["qos"]
    )


def table(block: int, iteration: int, load: float, seconds: float, good: bool, types: list[Request]) -> dict[str, Any]:
    added = ("requests", "good", "tolerable", "failed", "validation_errors", "bytes", "response_s")
    total = {name: sum(own.counts[name] for own in types) for name in added}
    everything = Request({"name": "all types", **total, "target": None}, merged([own.times for own in types]))
    waited = everything.counts["response_s"]
    return {
        "block": block,
        "iteration": iteration,
        "load": load,
        "window_s": seconds,
        "rows": [row(own, waited) for own in types],
        "total": row(everything, waited),
        "met": good,
    }


def row(own: Request, waited: float) -> dict[str, Any]:
    number, time = own.counts["requests"], own.times.percentile(0.99)
    return {
        "counts": {**own.counts, "times": NO_TIMES},
        "weighted_byte_rate": own.counts["bytes"] / waited if waited > 0 else 0.0,
        "response_s": own.counts["response_s"] / number if number else 0.0,
        "bytes_per_request": own.counts["bytes"] / number if number else 0.0,
        "p99_s": time * NS if isinstance(time, float) else None,
    }


NO_TIMES = {"bins": [], "min": 0, "max": 0, "sum": 0, "failed": 0, "given_up": 0, "waited_ns": 0}
