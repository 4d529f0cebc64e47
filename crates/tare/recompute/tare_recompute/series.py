"""Samples over time: the trial of each arm that stands for it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .cases import Case
from .folder import Trial
from .units import nanoseconds

POINTS_MAX = 400
# Moments in nanoseconds and values.
Points = tuple[np.ndarray, np.ndarray]
NOTHING: Points = (np.zeros(0, dtype=np.int64), np.zeros(0))
BUSY = ("user", "nice", "system", "irq", "softirq")


def points(trial: Trial, source: str, series: str) -> Points:
    """Finite values in order of time."""
    at, value = trial.samples.get((source, series), NOTHING)
    kept = np.isfinite(value)
    at, value = at[kept], value[kept]
    order = np.argsort(at, kind="stable")
    return at[order], value[order]


def rates(counter: Points) -> Points:
    """A counter's change a second at the end of each interval; not where it fell."""
    at, value = counter
    kept = (np.diff(at) > 0) & (np.diff(value) >= 0)
    return at[1:][kept], np.diff(value)[kept] / (np.diff(at)[kept] * 1e-9)


def averaged(own: list[list[float]], most: int) -> list[list[float]]:
    """Means of consecutive groups, so that at most `most` points are left."""
    size = max(-(-len(own) // max(most, 1)), 1)
    chunks = (own[at : at + size] for at in range(0, len(own), size))
    return [[math.fsum(point[axis] for point in chunk) / len(chunk) for axis in (0, 1)] for chunk in chunks]


def without_stubs(own: Points) -> Points:
    """Without what follows the point before it within half the usual interval, at the end."""
    at, value = own
    gaps = np.sort(np.diff(at))
    usual = int(gaps[len(gaps) // 2]) if len(gaps) else 0
    while len(at) > 1 and at[-1] - at[-2] < usual // 2:
        at, value = at[:-1], value[:-1]
    return at, value


def summed(counters: list[Points], all_of_them: bool) -> Points:
    """Counters added up by moment; with `all_of_them` where each was read."""
    sums: dict[int, tuple[int, float]] = {}
    for at, value in counters:
        for moment, one in zip(at.tolist(), value.tolist()):
            read, total = sums.get(moment, (0, 0.0))
            sums[moment] = (read + 1, total + one)
    kept = [moment for moment in sorted(sums) if not all_of_them or sums[moment][0] == len(counters)]
    return np.array(kept, dtype=np.int64), np.array([sums[moment][1] for moment in kept])


def turn_ends(trial: Trial) -> np.ndarray:
    """End of each turn: as planned, or of each command as it was."""
    turns = trial.turns
    assert turns is not None
    place, measured, start = turns.rounds[:, 0], turns.rounds[:, 3], turns.rounds[:, 5]
    if turns.commands is not None:
        return start + measured
    slots = np.arange(len(place)) * turns.arms + place
    return turns.start + (turns.turn + turns.gap) * slots + turns.turn


def turn_rates(trial: Trial) -> tuple[str, Points]:
    """The driver's rate in each measured turn, and the name of that series."""
    assert trial.turns is not None
    operations, carried, measured = (trial.turns.rounds[:, column].astype(float) for column in (1, 2, 3))
    kept = measured > 0
    by_bytes = operations[kept].sum() <= 0 < carried[kept].sum()
    work = carried * 8 if by_bytes else operations
    rate = work[kept] / (measured[kept] * 1e-9)
    return "bits_per_s" if by_bytes else "operations_per_s", (turn_ends(trial)[kept], rate)


def guests(trial: Trial) -> list[str]:
    return sorted({source[len("guest:") :] for source, _ in trial.samples if source.startswith("guest:")})


def is_measured(guest: str) -> bool:
    return guest == "target" or (guest.startswith("target-") and guest[len("target-") :].isdigit())


def busy(trial: Trial) -> Points:
    """Busy CPU seconds of the SUT's CPUs, or of the host's where it has none of its own."""
    for prefix in ("sut_", ""):
        found = summed([points(trial, "host", f"{prefix}cpu_{kind}_s") for kind in BUSY], False)
        if len(found[0]):
            return found
    return NOTHING


def shown(trial: Trial) -> dict[str, Points]:
    """The series that tell how a trial went."""
    found: dict[str, Points] = {}
    if trial.turns:
        name, rate = turn_rates(trial)
        found[name] = rate
    else:
        for name in ("operations_per_s", "bits_per_s"):
            found[name] = without_stubs(points(trial, "client", name))
    for kind in ("user", "system", "irq", "softirq", "steal"):
        sut = points(trial, "host", f"sut_cpu_{kind}_s")
        found[f"host_cpu_{kind}_cpus"] = rates(sut if len(sut[0]) else points(trial, "host", f"cpu_{kind}_s"))
    found["host_cpu_busy_cpus"] = rates(busy(trial))
    for name in ("run_queue_tasks", "memory_available_bytes"):
        found[f"host_{name}"] = points(trial, "host", name)
    for resource in ("cpu", "memory", "io"):
        found[f"host_pressure_{resource}_share"] = rates(points(trial, "host", f"pressure_{resource}_some_s"))
    of_guests(trial, found)
    for source, prefix in (("user-command", "by_command_"), ("hypervisor", "by_hypervisor_")):
        for name in (name for own, name in trial.samples if own == source):
            found[prefix + name] = points(trial, source, name)
    return found


def of_guests(trial: Trial, found: dict[str, Points]) -> None:
    for guest in guests(trial):
        for kind in ("total", "user", "system"):
            found[f"guest_{guest}_cpu_{kind}_cpus"] = rates(points(trial, f"guest:{guest}", f"cpu_{kind}_s"))
        found[f"guest_{guest}_throttled_share"] = rates(points(trial, f"guest:{guest}", "throttled_s"))
    measured = [guest for guest in guests(trial) if is_measured(guest)]
    if len(measured) > 1:
        counters = [points(trial, f"guest:{guest}", "cpu_total_s") for guest in measured]
        found["guests_measured_cpu_total_cpus"] = rates(summed(counters, True))


def timeline(case: Case, arm: str, metric: str) -> dict[str, Any] | None:
    """The trial whose value of the metric is the lower median, over time."""
    ranked = [(trial.value(metric), trial) for trial in case.by_arm[arm]]
    known = sorted(((value, trial) for value, trial in ranked if value is not None), key=lambda one: one[0])
    if not known:
        return None
    trial = known[(len(known) - 1) // 2][1]
    if trial.window is None:
        return None
    phases = case.case["phases"]
    before = nanoseconds(phases["warm-up"]) + nanoseconds(phases["ramp-up"])
    zero = trial.turns.start if trial.turns else max(trial.window[0] - before, 0)

    def seconds(at: int) -> float:
        return (float(at) - float(zero)) * 1e-9

    series = {}
    for name, (at, value) in shown(trial).items():
        if len(at) > 1:
            moments = [seconds(moment) for moment in at.tolist()]
            series[name] = averaged([list(point) for point in zip(moments, value.tolist())], POINTS_MAX)
    return {"arm": arm, "block": trial.block, "steady_s": [seconds(moment) for moment in trial.window], "series": series}
