"""What limits the precision of a case in turns, and what more effort would buy (ADR 0024; Kalibera and Jones, ISMM 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from . import power
from .cases import Case
from .comparison import Comparison
from .estimates import mean
from .folder import Spec, Trial
from .leaves import Near

BLOCKS_MIN = 6
ROUNDS_MIN = 16
BATCHES_MAX = 32
PROPOSED_MAX = 1000
LONGER = (0.5, 100.0)
# A difference of nearly equal variances has lost digits.
NEAR = 1e-7
EFFORT = "longer steady states, to 1e-7: differences of nearly equal variances"
# Columns of a trial's rounds.
OPERATIONS, BYTES, MEASURED, RESPONSE = 1, 2, 3, 4


def figure_of(spec: Spec, commands: bool) -> tuple[str, bool] | None:
    """What turns can tell of a metric, and whether that is the metric itself."""
    if commands:
        of_guests = spec.primary and spec.id in ("start_mean_s", "task_mean_s")
        return ("mean-response", True) if spec.id == "wall_time_s" or of_guests else None
    if spec.unit == "operations-per-second" or isinstance(spec.unit, dict):
        return "operations", True
    if spec.unit == "bits-per-second":
        return "bytes", True
    return ("mean-response", spec.id == "response_time_mean_s") if spec.unit == "seconds" else None


def parts(trial: Trial, figure: str) -> np.ndarray:
    """By round, a sum and what it is divided by."""
    assert trial.turns is not None
    rounds = trial.turns.rounds.astype(float)
    if figure == "mean-response":
        return np.stack([rounds[:, RESPONSE] * 1e-9, rounds[:, OPERATIONS]], axis=1)
    work = rounds[:, OPERATIONS if figure == "operations" else BYTES]
    return np.stack([work, rounds[:, MEASURED] * 1e-9], axis=1)


def log_ratio(rounds: np.ndarray) -> float | None:
    """Of all that both arms did in these rounds. `rounds`: round, arm, (sum, divisor)."""
    total = rounds.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = float(np.log((total[0, 0] / total[0, 1]) / (total[1, 0] / total[1, 1])))
    return log if math.isfinite(log) else None


def within(rounds: np.ndarray) -> tuple[float, float] | None:
    """Variance of a block's log ratio by the batch means of its own rounds, and its degrees of freedom."""
    batches = min(max(int(math.sqrt(len(rounds))), 1), BATCHES_MAX)
    size = -(-len(rounds) // batches)
    logs = [log_ratio(rounds[at : at + size]) for at in range(0, len(rounds) - size + 1, size)]
    if any(log is None for log in logs) or len(logs) < 2:
        return None
    whole = len(logs) * size / len(rounds)
    return float(np.var(np.array(logs, dtype=float), ddof=1)) / len(logs) * whole, len(logs) - 1.0


@dataclass(frozen=True)
class Components:
    """Variances of a block's log ratio: of its instances, and of what changes from turn to turn."""

    instances: float
    turns: float
    seen: bool

    def of_block(self, longer: float) -> float:
        return self.instances + self.turns / longer


def components(blocks: list[np.ndarray]) -> Components | None:
    if len(blocks) < BLOCKS_MIN or any(len(rounds) < ROUNDS_MIN for rounds in blocks):
        return None
    logs, inner = [log_ratio(rounds) for rounds in blocks], [within(rounds) for rounds in blocks]
    if any(log is None for log in logs) or any(own is None for own in inner):
        return None
    between = float(np.var(np.array(logs, dtype=float), ddof=1))
    known = [own for own in inner if own is not None]
    turns = float(mean([own[0] for own in known]) or 0.0)
    freedom = sum(own[1] for own in known)
    seen = bool(stats.f.sf(between / turns, len(logs) - 1, freedom) < 0.05) if turns > 0 else between > 0
    return Components(max(between - turns, 0.0), turns, seen)


@dataclass(frozen=True)
class Spent:
    """What a run spent on a case."""

    blocks: int
    comparisons: int
    components: Components
    around_s: float
    steady_wall_s: float
    steady_s: float

    def effort(self, blocks: int, longer: float) -> dict[str, Any]:
        block_s = self.around_s + longer * self.steady_wall_s
        return {"blocks": blocks, "steady_s": longer * self.steady_s, "minutes": blocks * block_s / 60}

    def proposed(self, blocks: int, longer: float) -> dict[str, Any]:
        """As `effort`, where how much longer is a difference of nearly equal variances."""
        found = self.effort(blocks, longer)
        return {**found, "steady_s": Near(found["steady_s"], NEAR, EFFORT), "minutes": Near(found["minutes"], NEAR, EFFORT)}

    def wanted(self, blocks: int) -> float | None:
        """The variance of a block by which so many blocks detect half of what this run does."""
        own, other = power.about(self.blocks, self.comparisons), power.about(blocks, self.comparisons)
        if own is None or other is None:
            return None
        return (0.5 * own / other * math.sqrt(self.components.of_block(1.0))) ** 2

    def longer(self, blocks: int) -> float | None:
        """How many times as long a steady state gives so many blocks that variance."""
        wanted = self.wanted(blocks)
        left = None if wanted is None else wanted - self.components.instances
        if left is None or left <= 0:
            return None
        longer = self.components.turns / left
        return longer if longer <= LONGER[1] else None

    def by_blocks(self) -> dict[str, Any] | None:
        now = self.components.of_block(1.0)
        for blocks in range(BLOCKS_MIN, PROPOSED_MAX + 1):
            wanted = self.wanted(blocks)
            if wanted is not None and now <= wanted:
                return self.effort(blocks, 1.0)
        return None

    def by_length(self) -> dict[str, Any] | None:
        longer = self.longer(self.blocks)
        return None if longer is None else self.proposed(self.blocks, longer)

    def least(self) -> dict[str, Any] | None:
        tried = ((blocks, self.longer(blocks)) for blocks in range(BLOCKS_MIN, PROPOSED_MAX + 1))
        longer = [(blocks, max(longer, LONGER[0])) for blocks, longer in tried if longer is not None]
        best = min(longer, key=lambda one: self.effort(*one)["minutes"], default=None)
        return None if best is None else self.proposed(*best)


def wall_s(trial: Trial) -> float:
    """Of one in turns that of its set, of which each trial has its part."""
    return trial.wall_s * (trial.turns.arms if trial.turns else 1)


def steady_wall_s(block: list[Trial]) -> float | None:
    """Wall time of the steady state of all arms of a set, seconds."""
    found = []
    for turns in (trial.turns for trial in block if trial.turns):
        measured = int(np.count_nonzero(turns.rounds[:, MEASURED] > 0))
        commands = turns.measured if turns.commands is not None else 0
        found.append(turns.arms * (measured * float(turns.turn + turns.gap) + commands) * 1e-9)
    return mean(found)


def of_case(case: Case) -> list[dict[str, Any]]:
    """Of each comparison of the primary metric but the replica's."""
    metric = next((metric for metric in case.metrics if metric.spec.primary), None)
    blocks: dict[int, list[Trial]] = {}
    for arm in sorted(case.by_arm):
        for trial in (trial for trial in case.done(arm) if trial.turns):
            blocks.setdefault(trial.block, []).append(trial)
    sets = [blocks[block] for block in sorted(blocks)]
    if metric is None:
        return []
    commands = any(trial.turns.commands is not None for trial in sets[0] if trial.turns) if sets else False
    figure = figure_of(metric.spec, commands)
    if figure is None:
        return []
    compared = [own for own in metric.comparisons if own.verdict != "noise-floor"]
    return [found for found in (of_comparison(case, own, sets, figure) for own in compared) if found]


def rounds_of(block: list[Trial], arms: tuple[str, str], figure: str) -> np.ndarray | None:
    """Rounds in which both arms were measured."""
    own = [next((trial for trial in block if trial.arm == arm), None) for arm in arms]
    if own[0] is None or own[1] is None:
        return None
    pair = [trial for trial in own if trial is not None and trial.turns is not None]
    number = min(len(trial.turns.rounds) for trial in pair if trial.turns)
    kept = np.all([trial.turns.rounds[:number, MEASURED] > 0 for trial in pair if trial.turns], axis=0)
    return np.stack([parts(trial, figure)[:number][kept] for trial in pair], axis=1)


def of_comparison(
    case: Case, comparison: Comparison, sets: list[list[Trial]], figure: tuple[str, bool]
) -> dict[str, Any] | None:
    found = (rounds_of(block, (comparison.arm, comparison.baseline), figure[0]) for block in sets)
    rounds = [own for own in found if own is not None]
    parted = components(rounds)
    if parted is None or comparison.detectable is None:
        return None
    pairs = case.run.pairs(case.id)
    wall = pairs * float(mean([wall_s(block[0]) for block in sets]) or 0.0)
    steady_wall = pairs * float(mean([own for own in map(steady_wall_s, sets) if own is not None]) or 0.0)
    steady = mean([own for own in (block[0].measured_s() for block in sets) if own is not None])
    spent = Spent(
        len(rounds), comparison.family, parted, max(wall - steady_wall, 0.0), steady_wall, float(steady or 0.0)
    )
    everything = parted.of_block(1.0)
    quiet = math.sqrt(parted.instances / everything) if everything > 0 else 1.0
    return {
        "arm": comparison.arm,
        "figure": figure[0],
        "of_primary": figure[1],
        "rounds": sum(len(own) for own in rounds) / len(rounds),
        "instances": parted.instances,
        "turns": parted.turns,
        "instances_seen": parted.seen,
        "detectable": comparison.detectable,
        "spent": spent.effort(spent.blocks, 1.0),
        "by_blocks": spent.by_blocks(),
        "by_length": spent.by_length(),
        "least": spent.least(),
        "quiet_host": math.expm1(math.log1p(comparison.detectable) * quiet),
    }
