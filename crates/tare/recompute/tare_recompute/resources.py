"""What was used of host and guest at the load that the figures of a case are of."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from . import loads, series
from .cases import Case
from .estimates import mean
from .folder import Trial
from .series import Points

# Least share of a window that samples must cover.
COVERED = 0.5
# Kinds of CPU time and where they belong: user, system, idle, waiting; stolen time is in the whole alone.
KINDS = (("user", 0), ("nice", 0), ("system", 1), ("irq", 1), ("softirq", 1), ("idle", 2), ("iowait", 3), ("steal", None))
DISK_PARTS = (("read_s", "read_requests"), ("write_s", "write_requests"))
Window = tuple[int, int]


def of_case(case: Case, always: float | None, with_requests: bool) -> list[dict[str, Any]]:
    asked = with_requests or case.run.study.get("published") or case.kind in ("capacity", "share-of")
    if not asked:
        return []
    found = []
    for arm in case.by_arm:
        trials = [of_trial(trial, always) for trial in case.done(arm)]
        if trials:
            figures = {name: average([own[name] for own in trials]) for name in trials[0]}
            found.append({"arm": arm, **figures, "load": figures["load"] or 0.0})
    return found


def average(values: list[Any]) -> Any:
    """Of those that there are; of lists place by place."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if isinstance(known[0], list):
        return [mean(place) for place in zip(*known)]
    return mean(known)


def of_trial(trial: Trial, always: float | None) -> dict[str, Any]:
    iterations = trial.search.iterations() if trial.search else []
    accounts = [one.cpu for one in iterations if one.cpu] or ([trial.cpu] if trial.cpu else [])
    windows = [one.window for one in iterations if one.window[1] > one.window[0]]
    if not windows and trial.window and trial.window[1] > trial.window[0]:
        windows = [trial.window]
    # The window of an arm in turns is that of others, too.
    own = [] if trial.turns else windows

    def cores(of: Callable[[dict[str, float]], float]) -> float | None:
        return mean([of(cpu) / cpu["window_s"] for cpu in accounts if cpu["window_s"] > 0])

    def over(of: Callable[[Trial, Window], Any]) -> Any:
        return average([of(trial, window) for window in own])

    by_guest = [cores(lambda cpu: cpu["guest_user_s"]), cores(lambda cpu: cpu["guest_system_s"])]
    swapped = [over(lambda trial, window: gain(trial, window, "host", name)) for name in ("swap_in_bytes", "swap_out_bytes")]
    memory = [found for found in (memory_bytes(trial, window) for window in windows) if found is not None]
    return {
        "load": loads.of_trial(trial, always),
        "response_s": response_s(trial),
        "host_cpu_cores": first(
            cores(lambda cpu: cpu["total_s"] - cpu["neighbours_s"] - cpu["foreign_s"]), trial.value("host_cpu_cores")
        ),
        "guest_cpu_cores": None if None in by_guest else by_guest,
        "host_cpu_shares": over(lambda trial, window: shares(trial, window, "host", "sut_cpu_") or shares(trial, window, "host", "cpu_")),
        "inside_cpu_shares": over(lambda trial, window: shares(trial, window, "in-guest:target", "cpu_")),
        "network_bits_per_s": first(over(sent), trial.value("network_bits_per_s")),
        "disk_s": first(over(disk_s), trial.value("disk_time_s")),
        "memory_bytes": max(memory, default=None),
        "swapped_bytes": None if None in swapped else swapped,
    }


def first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def response_s(trial: Trial) -> float | None:
    """Of all requests together; without request types that of the metric, or of the operations."""
    iterations = trial.search.iterations() if trial.search else []
    for types in ([own for one in iterations for own in one.requests], trial.requests):
        number = sum(own.counts["requests"] for own in types)
        if number:
            return math.fsum(own.counts["response_s"] for own in types) / number
    times = trial.histograms.get("response")
    of_operations = times.mean() if times else None
    return first(trial.metrics.get("response_time_mean_s"), None if of_operations is None else of_operations * 1e-9)


def inside(trial: Trial, window: Window, source: str, name: str) -> Points:
    at, value = series.points(trial, source, name)
    kept = (at >= window[0]) & (at <= window[1])
    return at[kept], value[kept]


def change(trial: Trial, window: Window, source: str, name: str) -> tuple[float, float] | None:
    """How much a counter grew in the window, and over how many seconds that was seen."""
    at, value = inside(trial, window, source, name)
    if not len(at):
        return None
    covered = float(at[-1] - at[0])
    if covered <= 0 or covered < COVERED * (window[1] - window[0]) or value[-1] < value[0]:
        return None
    return float(value[-1] - value[0]), covered * 1e-9


def gain(trial: Trial, window: Window, source: str, name: str) -> float | None:
    found = change(trial, window, source, name)
    return None if found is None else found[0]


def shares(trial: Trial, window: Window, source: str, prefix: str) -> list[float] | None:
    """Of all CPU time that a kernel tells: user, system, idle, waiting."""
    found, whole = [0.0] * 4, 0.0
    for kind, part in KINDS:
        own = gain(trial, window, source, f"{prefix}{kind}_s")
        if own is None:
            if kind == "idle":
                return None
            continue
        whole += own
        if part is not None:
            found[part] += own
    return [part / whole for part in found] if whole > 0 else None


def targets(of: Callable[[str], Any]) -> list[Any]:
    """What is known of the measured guests, up to the first of which nothing is."""
    found: list[Any] = []
    while (own := of("target" if not found else f"target-{len(found) + 1}")) is not None:
        found.append(own)
    return found


def sent(trial: Trial, window: Window) -> float | None:
    """Bits a second that the measured guests sent, at their own end of the link or the other one."""

    def of(guest: str) -> tuple[float, float] | None:
        own = change(trial, window, "host", f"nic_{guest}_tx_bytes")
        return own if own is not None else change(trial, window, "host", f"nic_{guest}-port_rx_bytes")

    found = targets(of)
    return math.fsum(own[0] * 8 / own[1] for own in found) if found else None


def disk_s(trial: Trial, window: Window) -> float | None:
    """Mean time of a request to the host's disks."""
    seconds, requests = 0.0, 0.0
    for time, count in DISK_PARTS:
        names = {name[: -len(time)] for _, name in trial.samples if name.startswith("disk_") and name.endswith(time)}
        for name in sorted(names):
            spent, done = gain(trial, window, "host", name + time), gain(trial, window, "host", name + count)
            if spent is not None and done is not None:
                seconds, requests = seconds + spent, requests + done
    return seconds / requests if requests > 0 else None


def memory_bytes(trial: Trial, window: Window) -> float | None:
    """Largest memory of the measured guests' control groups."""

    def of(guest: str) -> float | None:
        value = inside(trial, window, f"guest:{guest}", "memory_bytes")[1]
        return float(np.max(value)) if len(value) else None

    found = targets(of)
    return math.fsum(found) if found else None
