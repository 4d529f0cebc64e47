"""Metrics of trials, made again from what they were made of: histograms, counts, times and CPU accounts."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from .compare import WITHIN, Outcome, relative
from .folder import Run, Trial

# Percentiles by the end of a metric's id, and the end of its label: a workload may have a percentile by a rule of its own.
SHARES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999}
PLAIN = {
    "mean": "mean", "p50": "median", "p90": "90th percentile", "p95": "95th percentile", "p99": "99th percentile",
    "p999": "99.9th percentile",
}  # fmt: skip
START = ("start_firmware_s", "start_kernel_s", "start_agent_s")


@dataclass
class Metrics:
    """Metrics by their ids: made again, and taken as the trial has them."""

    again: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    differ: int = 0


def check(run: Run, outcome: Outcome) -> Metrics:
    found = Metrics()
    for trial in (trial for trial in run.trials if trial.completed):
        for metric, stored in trial.metrics.items():
            made = None if trial.scale_up or run.study.get("published") else again(trial, metric)
            if made is None or not math.isfinite(stored):
                found.taken[metric] += 1
            elif relative(stored, made) <= WITHIN:
                found.again[metric] += 1
            else:
                found.differ += 1
                place = f"results.sqlite: trial {trial.index}, metric {metric}"
                outcome.differs(place, stored, made, relative(stored, made))
    return found


def again(trial: Trial, metric: str) -> float | None:
    """None where nothing is stored that it could be made of."""
    if metric.startswith("response_time_"):
        which = metric[len("response_time_") : -len("_s")]
        label = next((spec.label for spec in trial.specs if spec.id == metric), "")
        return of_times(trial, "response", which) if which in PLAIN and label.endswith(PLAIN[which]) else None
    if metric.startswith("latency_under_load_"):
        return of_times(trial, "latency probe response", metric[len("latency_under_load_") : -len("_s")])
    if metric == "service_demand_cpu_s":
        return demand(trial)
    if metric == "start_time_s" and all(part in trial.metrics for part in START):
        return math.fsum(trial.metrics[part] for part in START)
    seconds = trial.measured_s()
    # Where some were wrong the workload says which of them count.
    right = trial.metrics.get("failed_share", 0.0) == 0
    if metric == "operations_per_s" and "operations" in trial.counts and seconds and right:
        return trial.counts["operations"] / seconds
    if metric == "throughput_bits_per_s" and "bytes" in trial.counts and seconds:
        return trial.counts["bytes"] * 8 / seconds
    return None


def of_times(trial: Trial, name: str, which: str) -> float | None:
    """Seconds; `which`: `p99`, say, or `mean`."""
    times = trial.histograms.get(name)
    if times is None:
        return None
    if which == "mean":
        number = sum(own.counts["requests"] for own in trial.requests)
        if number:
            return math.fsum(own.counts["response_s"] for own in trial.requests) / number
        mean = times.mean()
        return None if mean is None else mean / 1e9
    value = times.percentile(SHARES[which]) if which in SHARES else None
    return value / 1e9 if isinstance(value, float) else None


def demand(trial: Trial) -> float | None:
    """CPU seconds of the SUT for an operation, or for a byte: all but neighbours' and foreign tasks'. Operations that are not timed may
    be another unit of work than what is counted."""
    unit = next((spec.unit for spec in trial.specs if spec.id == "service_demand_cpu_s"), "")
    timed = "response" in trial.histograms or "wall_time_s" in trial.metrics
    work = trial.counts.get("bytes") if unit == "cpu-seconds-per-byte" else trial.counts.get("operations") if timed else None
    if trial.cpu is None or not work:
        return None
    return (trial.cpu["total_s"] - trial.cpu["neighbours_s"] - trial.cpu["foreign_s"]) / work
