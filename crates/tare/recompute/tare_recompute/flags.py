"""Trials that completed and carry a flag: those that were stored, and those that follow from the record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from .cases import stolen
from .estimates import autocorrelation
from .folder import Run, Trial
from .leaves import WORDS
from .series import Points, averaged, points, turn_ends, turn_rates
from .units import nanoseconds

CHANGE = 0.05
UNSTEADY = 0.01
POINTS_MIN = 10
POINTS_MAX = 240
CORRELATION_MAX = 0.98
GAP_INTERVALS = 3.0


def of_run(run: Run) -> list[dict[str, Any]]:
    interval = nanoseconds(run.study["lab"]["sample_interval"]) * 1e-9
    found = []
    for trial in (trial for trial in run.trials if trial.completed):
        kinds = of_trial(trial, interval)
        if kinds:
            flags = [{"kind": kind, "detail": WORDS} for kind in kinds]
            found.append({"block": trial.block, "case": trial.case, "arm": trial.arm, "flags": flags})
    return found


def of_trial(trial: Trial, interval: float) -> list[str]:
    stored = [kind for kind, _ in trial.flags]
    gap = longest_gap(trial)
    drifts = trial.cpu_search is not None and unsteady([value for _, value in trial.cpu_search["course"]])
    follow = [
        ("steal", stolen(trial)),
        ("lost-samples", gap is not None and 0 < interval * GAP_INTERVALS < gap),
        ("not-steady", unsteady(rate(trial)) or unsteady(response(trial))),
        ("parity", any(not row["equal"] for row in trial.parity)),
        ("cpu-adrift", drifts),
        ("unfinished", trial.counts.get("unfinished", 0) > 0),
        ("lost", trial.counts.get("lost", 0) > 0),
        ("errors", any(n > 0 for name, n in trial.counts.items() if name == "errors" or name.startswith("errors: "))),
    ]
    of_tries = [kind for one in (trial.search.iterations() if trial.search else []) for kind in one.flags]
    added = [kind for kind, holds in follow if holds] + of_tries
    return stored + [kind for kind in added if kind not in stored]


def longest_gap(trial: Trial) -> float | None:
    """Between two looks at the host that touch the window, seconds."""
    own = [at for (source, _), (at, _) in trial.samples.items() if source == "host"]
    if trial.window is None or not own:
        return None
    at = np.unique(np.concatenate(own))
    touching = (at[1:] > trial.window[0]) & (at[:-1] < trial.window[1])
    gaps = np.diff(at)[touching]
    return float(gaps.max()) * 1e-9 if len(gaps) else None


def in_window(trial: Trial, own: Points) -> list[float]:
    assert trial.window is not None
    at, value = own
    return value[(at > trial.window[0]) & (at <= trial.window[1])].tolist()


def rate(trial: Trial) -> list[float]:
    """The driver's rate inside the window; of an arm in turns that of each turn."""
    if trial.window is None:
        return []
    if trial.turns:
        return turn_rates(trial)[1][1].tolist()
    found = (points(trial, "client", name) for name in ("operations_per_s", "bits_per_s"))
    return in_window(trial, next((own for own in found if len(own[0])), (np.zeros(0), np.zeros(0))))


def response(trial: Trial) -> list[float]:
    """The mean response time of what ended in each interval, or in each turn."""
    if trial.turns:
        operations, spent = trial.turns.rounds[:, 1], trial.turns.rounds[:, 4]
        kept = (operations > 0) & (spent > 0) & (turn_ends(trial) != -1)
        return (spent[kept] * 1e-9 / operations[kept]).tolist()
    if trial.window is None:
        return []
    at, value = points(trial, "client", "operations_per_s")
    rates = dict(zip(at.tolist(), value.tolist()))
    at, value = points(trial, "client", "response_s_per_s")
    found = [(moment, spent / rates[moment]) for moment, spent in zip(at.tolist(), value.tolist()) if rates.get(moment, 0) > 0]
    return [mean for moment, mean in found if trial.window[0] < moment <= trial.window[1]]


def unsteady(series: list[float]) -> bool:
    """By the tests of Mann and Kendall and of Pettitt, for what neighbours have in common (docs/reference/flags.md)."""
    if len(series) < POINTS_MIN:
        return False
    values = np.array([value for _, value in averaged([[0.0, value] for value in series], POINTS_MAX)])
    centre = float(np.median(values))
    if centre <= 0:
        return False
    n = len(values)
    i, j = np.triu_indices(n, 1)
    slope = float(np.median((values[j] - values[i]) / (j - i)))
    signs = np.sign(values[j] - values[i])
    place, most = shifted(values)
    inflation = inflated(values, slope, place)
    _, tied = np.unique(values, return_counts=True)
    ties = float(np.sum(tied * (tied - 1.0) * (2.0 * tied + 5.0)))
    variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18 * inflation
    p_trend = 2 * float(stats.norm.sf(abs(float(signs.sum()) / math.sqrt(variance)))) if variance > 0 else 1.0
    if p_trend < UNSTEADY and abs(slope * (n - 1) / centre) > CHANGE:
        return True
    change = (float(np.median(values[place:])) - float(np.median(values[:place]))) / centre
    p_shift = min(2 * math.exp(-6 * most * most / (float(n) ** 3 + float(n) ** 2) / inflation), 1.0)
    return p_shift < UNSTEADY and abs(change) > CHANGE


def shifted(values: np.ndarray) -> tuple[int, float]:
    """Points before the likeliest shift, and Pettitt's statistic there."""
    each = np.sign(values[:, None] - values[None, :]).sum(axis=1)
    statistic = np.abs(np.cumsum(each)[:-1])
    at = int(np.argmax(statistic))
    return at + 1, float(statistic[at])


def inflated(values: np.ndarray, slope: float, place: int) -> float:
    """How much larger the variance of a sum is than if neighbours had nothing in common."""
    line = values - slope * np.arange(len(values))
    levels = np.where(np.arange(len(values)) < place, np.median(values[:place]), np.median(values[place:]))
    r = min(max(min(autocorrelation(line), autocorrelation(values - levels)), 0.0), CORRELATION_MAX)
    return (1 + r) / (1 - r)
