"""Throughput, CPU and response time against load and instances, by least squares (ADR 0015, docs/reference/sizing.md)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Callable

import numpy as np
from scipy import stats

from .estimates import ALPHA

SATURATED = 0.97
DRAWN = 1000
SEED = 0x74617265
# Share of a column that must not follow from those before it.
OWN_MIN = 1e-3


def stretch(servers: int, busy: float) -> float:
    """Mean time in an M/M/c queue over its service time (Erlang C)."""
    if math.isnan(busy) or busy >= 1:
        return math.inf
    if busy <= 0:
        return 1.0
    offered = busy * servers
    # Erlang B by its sum, from which C follows.
    terms = np.cumprod([1.0, *(offered / k for k in range(1, servers + 1))])
    blocked = float(terms[-1] / terms.sum())
    waits = blocked / (1 - busy * (1 - blocked))
    return 1 + waits / (servers * (1 - busy))


@dataclass
class Row:
    """One point: means over blocks. `times`: (stretch at the CPU of a block, its response time)."""

    instances: float
    load: float
    throughput: float
    cpu: float
    response: float | None
    times: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Shape:
    """CPUs, and which terms of the CPU the points tell apart: demand, growth, idle."""

    servers: int
    terms: tuple[bool, ...]


def columns(instances: float, throughput: float, level: int) -> list[float]:
    return [throughput, throughput * min(max(instances - 1, 0.0), level), instances]


def cpu_equations(rows: list[Row], servers: int, level: int) -> tuple[np.ndarray, np.ndarray]:
    left = np.array([columns(row.instances, row.throughput, level) for row in rows])
    return left, np.array([row.cpu * servers for row in rows])


def most_level(rows: list[Row]) -> int:
    return max((int(row.instances) for row in rows), default=1) - 1


def terms(rows: list[Row]) -> tuple[bool, ...]:
    """Columns that do not follow from those before them."""
    left, _ = cpu_equations(rows, 1, most_level(rows))
    kept: list[int] = []
    for column in range(3):
        whole = float(left[:, column] @ left[:, column])
        own = whole
        if kept and whole > 0:
            by, *_ = np.linalg.lstsq(left[:, kept], left[:, column], rcond=None)
            rest = left[:, column] - left[:, kept] @ by
            own = float(rest @ rest)
        if 0 < whole < math.inf and own > OWN_MIN * whole:
            kept.append(column)
    return tuple(column in kept for column in range(3))


def solve(left: np.ndarray, right: np.ndarray, used: tuple[bool, ...]) -> tuple[np.ndarray, float] | None:
    """Least squares of the columns that are used; None where they have no one solution."""
    own = [column for column in range(len(used)) if used[column]]
    if not own:
        return None
    scale = np.sqrt((left[:, own] ** 2).sum(axis=0))
    if not np.all(np.isfinite(scale)) or np.any(scale <= 0):
        return None
    scaled = left[:, own] / scale
    if len(scaled) < len(own) or np.linalg.cond(scaled) > 1e6:
        return None
    by, *_ = np.linalg.lstsq(scaled, right, rcond=None)
    found = np.zeros(len(used))
    found[own] = by / scale
    rest = right - left @ found
    return found, float(rest @ rest)


def least(left: np.ndarray, right: np.ndarray, used: tuple[bool, ...], free: bool) -> tuple[np.ndarray, float] | None:
    """Of any sign where `free`, else of none below zero."""
    whole = solve(left, right, used)
    if whole is not None and (free or np.all(whole[0] >= 0)):
        return whole
    sets = (own for own in itertools.product((True, False), repeat=len(used)) if all(u or not o for u, o in zip(used, own)))
    fits = [found for found in (solve(left, right, own) for own in sets) if found is not None and np.all(found[0] >= 0)]
    return min(fits, key=lambda found: found[1], default=None)


def least_level(rows: list[Row], loss: Callable[[int], float]) -> int:
    """Of the smallest loss; of equal ones the largest, which claims no end of growth."""
    best = (math.inf, 1)
    for level in range(max(most_level(rows), 1), 0, -1):
        own = loss(level)
        if own < best[0] * (1 - 1e-9):
            best = (own, level)
    return best[1]


def level_of(rows: list[Row], shape: Shape) -> int:
    """By the residual of points that are left out one at a time."""
    if not shape.terms[1]:
        return 0

    def left_out(level: int) -> float:
        left, right = cpu_equations(rows, shape.servers, level)
        total = 0.0
        for at in range(len(rows)):
            found = least(np.delete(left, at, axis=0), np.delete(right, at), shape.terms, False)
            total += math.inf if found is None else float(right[at] - left[at] @ found[0]) ** 2
        return total

    return least_level(rows, left_out)


@dataclass(frozen=True)
class Core:
    """X = slope N; U c = X (demand + growth min(n - 1, level)) + idle n; R = floor + scale Q(U)."""

    slope: float
    demand: float
    growth: float
    idle: float
    level: int
    time: tuple[float, float] | None
    servers: int

    def cpu_of(self, instances: float, throughput: float) -> float:
        parts = zip((self.demand, self.growth, self.idle), columns(instances, throughput, self.level))
        return math.fsum(by * column for by, column in parts) / self.servers

    def cpu(self, instances: float, load: float) -> float:
        return self.cpu_of(instances, self.slope * load)

    def response_of(self, cpu: float) -> float | None:
        if self.time is None:
            return None
        floor, scale = self.time
        return floor + scale * stretch(self.servers, cpu) if scale != 0 else floor

    def response(self, instances: float, load: float) -> float | None:
        return self.response_of(self.cpu(instances, load))


def fit(rows: list[Row], shape: Shape, level: int | None, free: bool) -> Core | None:
    ratios = np.array([row.load / row.throughput for row in rows if row.throughput > 0])
    slope = float(ratios.sum() / (ratios @ ratios)) if len(ratios) else math.nan

    def loss(level: int) -> float:
        found = least(*cpu_equations(rows, shape.servers, level), shape.terms, free)
        return math.inf if found is None else found[1]

    if level is None:
        level = least_level(rows, loss) if shape.terms[1] else 0
    found = least(*cpu_equations(rows, shape.servers, level), shape.terms, free)
    if found is None or not 0 < slope < math.inf:
        return None
    demand, growth, idle = (float(value) for value in found[0])
    return Core(slope, demand, growth, idle, level, times(rows, free), shape.servers)


def times(rows: list[Row], free: bool) -> tuple[float, float] | None:
    """Floor and scale of the least residuals relative to the model, from the blocks' own times; weighed anew twice."""
    if sum(bool(row.times) for row in rows) < 3:
        return None
    all_of = np.array([own for row in rows for own in row.times])

    def weighed(weight: np.ndarray) -> tuple[float, float] | None:
        kept = np.isfinite(weight) & (weight > 0)
        left = np.stack([weight[kept], all_of[kept, 0] * weight[kept]], axis=1)
        found = least(left, all_of[kept, 1] * weight[kept], (True, True), free) if kept.any() else None
        return None if found is None else (float(found[0][0]), float(found[0][1]))

    with np.errstate(divide="ignore", invalid="ignore"):
        found = weighed(1 / all_of[:, 1])
        for _ in range(2):
            if found is not None:
                found = weighed(1 / (found[0] + found[1] * all_of[:, 0])) or found
    return found


def drawings(blocks: list[int], times_drawn: int) -> list[list[int]]:
    """Blocks drawn with replacement by SplitMix64: the high half of each number times their count."""
    state, mask, found = SEED, 2**64 - 1, []
    for _ in range(times_drawn):
        own = []
        for _ in blocks:
            state = (state + 0x9E3779B97F4A7C15) & mask
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
            own.append(blocks[((z ^ (z >> 31)) * len(blocks)) >> 64])
        found.append(own)
    return found


class Resampled:
    """The models fitted anew to blocks that were drawn with replacement."""

    def __init__(self, cores: list[Core], blocks: int) -> None:
        self.cores, self.blocks = cores, blocks

    def half(self, of: Callable[[Core], float | None]) -> float | None:
        """Half an interval: the deviation of the drawings, widened for the number of blocks."""
        drawn = [value for value in map(of, self.cores) if value is not None and math.isfinite(value)]
        if len(drawn) <= DRAWN // 2:
            return None
        t = float(stats.t.ppf(1 - ALPHA / 2, self.blocks - 1))
        return t * float(np.std(drawn, ddof=1)) * math.sqrt(self.blocks / (self.blocks - 1))


def rms(values: list[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values) / len(values)) if values else 0.0
