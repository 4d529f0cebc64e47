"""A run folder as it lies on disk: results.sqlite, plan.json, environment.json and the journal (ADR 0002)."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .histogram import Histogram

CPU_PARTS = (
    "window_s", "cpus", "guest_user_s", "guest_system_s", "neighbours_s", "softirq_s", "irq_s", "kernel_s", "foreign_s",
    "total_s", "steal_s", "probe_s",
)  # fmt: skip


@dataclass
class Spec:
    """A metric."""

    id: str
    label: str
    unit: Any
    better: str
    primary: bool

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "label": self.label, "unit": self.unit, "better": self.better, "primary": self.primary}


@dataclass
class Part:
    guest: int
    driver: int | None
    instance: int | None
    metrics: dict[str, float]


@dataclass
class Step:
    name: str
    within: bool
    times: Histogram


@dataclass
class Request:
    """Requests of one type."""

    counts: dict[str, Any]
    times: Histogram


@dataclass
class Try:
    """One load that was tried in a search."""

    load: float
    failed: str | None
    cause: str | None
    window: tuple[int, int]
    cpu: dict[str, float] | None
    requests: list[Request]
    flags: list[str]


@dataclass
class Search:
    held: float
    missed: float | None
    ended: str
    tries: list[Try]

    def iterations(self) -> list[Try]:
        """Tries at the load that held."""
        return [one for one in self.tries if one.failed is None and abs(one.load - self.held) < 1e-9]


@dataclass
class Level:
    guests: int
    failed: str | None
    cause: str | None
    metrics: dict[str, float]
    saved: dict[str, int]

    @property
    def worked(self) -> bool:
        return self.failed is None or self.cause == "qos"


@dataclass
class ScaleUp:
    stopped: str
    stopped_guests: int
    stopped_detail: str
    offered: float | None
    tile: list[str]
    levels: list[Level]
    course: list[dict[str, Any]]

    @property
    def held(self) -> int:
        return max((level.guests for level in self.levels if level.failed is None), default=0)


@dataclass
class Turns:
    start: int
    arms: int
    turn: int
    gap: int
    commands: int | None
    measured: int
    # By round: place, operations, bytes, measured_ns, response_ns, start_ns; -1 where the trial has none.
    rounds: np.ndarray


@dataclass
class Trial:
    """One trial as it is stored."""

    index: int
    block: int
    case: str
    arm: str
    started_at: str
    wall_s: float
    load_s: float
    outcome: str
    phase: str | None
    reason: str | None
    window: tuple[int, int] | None
    specs: list[Spec] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    incomplete: dict[str, tuple[float, float | None]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    parity: list[dict[str, Any]] = field(default_factory=list)
    flags: list[tuple[str, str]] = field(default_factory=list)
    cpu: dict[str, float] | None = None
    search: Search | None = None
    scale_up: ScaleUp | None = None
    cpu_search: dict[str, Any] | None = None
    turns: Turns | None = None
    # (source, series): moments in nanoseconds and values, in the order in which they were stored.
    samples: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @property
    def completed(self) -> bool:
        return self.outcome == "completed"

    def value(self, metric: str) -> float | None:
        """The finite value of a metric of a completed trial."""
        value = self.metrics.get(metric) if self.completed else None
        return value if value is not None and math.isfinite(value) else None

    def has_flag(self, kind: str) -> bool:
        return any(own == kind for own, _ in self.flags)

    def measured_s(self) -> float | None:
        """Seconds in which load was measured: the window, or the part of it that was the arm's own turns."""
        if self.window is None:
            return None
        own = self.turns.measured if self.turns else max(self.window[1] - self.window[0], 0)
        return own / 1e9


def number(value: float | None) -> float:
    """NULL stands for what is no number."""
    return math.nan if value is None else float(value)


@dataclass
class Run:
    """All that findings are made from."""

    plan: dict[str, Any]
    environment: dict[str, Any]
    trials: list[Trial]
    id: str
    version: str
    root_hash: str
    finished: bool
    # By case: how it ended, where its blocks followed from what was seen.
    ended: dict[str, dict[str, Any]]

    @property
    def study(self) -> dict[str, Any]:
        return self.plan["study"]

    def case(self, case: str) -> dict[str, Any]:
        return next(own for own in self.study["cases"] if own["id"] == case)

    def pairs(self, case: str) -> int:
        """Blocks of its own that a case has for each block of the study."""
        schedule = next((own["schedule"] for own in self.study["cases"] if own["id"] == case), {})
        return max(schedule.get("pairs", {}).get("pairs", 1), 1)

    def study_block(self, case: str, block: int) -> int:
        return max(block - 1, 0) // self.pairs(case) + 1


def read(folder: Path, scratch: Path) -> Run:
    """Reads a folder. `scratch`: a private directory for a copy of results that a crash left with a log."""
    plan = json.loads((folder / "plan.json").read_text())
    environment = json.loads((folder / "environment.json").read_text())
    entries = journal(folder / "journal.jsonl")
    events = [entry["event"] for entry in entries]
    begun = events[0]
    acknowledged: set[int] = set()
    for event in events:
        if event["kind"] == "trial-acknowledged":
            acknowledged.add(event["index"])
        elif event["kind"] == "trials-withdrawn":
            acknowledged -= set(event["indices"])
    described = [event for event in events if event["kind"] == "machine-described"]
    environment = with_machines(environment, described)
    ended = {event["case"]: event for event in events if event["kind"] == "case-ended"}
    with open_results(folder, scratch) as database:
        trials = [trial for trial in Reader(database).trials() if trial.index in acknowledged]
    return Run(
        plan=plan,
        environment=environment,
        trials=trials,
        id=begun["run_id"],
        version=begun["tare_version"],
        root_hash=entries[-1]["chain"],
        finished=any(event["kind"] == "run-finished" for event in events),
        ended=ended,
    )


def with_machines(environment: dict[str, Any], described: list[dict[str, Any]]) -> dict[str, Any]:
    machines = [{key: value for key, value in event.items() if key != "kind"} for event in described]
    return {**environment, "machines": environment.get("machines", []) + machines} if machines else environment


def journal(path: Path) -> list[dict[str, Any]]:
    """The whole lines; `tare verify` has checked their chain."""
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            break
        entries.append(entry)
    return entries


def open_results(folder: Path, scratch: Path) -> sqlite3.Connection:
    """Opens the results without writing into the folder."""
    results, log = folder / "results.sqlite", folder / "results.sqlite-wal"
    if log.exists() and log.stat().st_size > 0:
        for file in (results, log):
            shutil.copy(file, scratch / file.name)
        return sqlite3.connect(scratch / results.name)
    return sqlite3.connect(f"{results.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


class Reader:
    """The tables of results.sqlite."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.series = {row[0]: (row[1], row[2]) for row in self.rows("SELECT series_id, source, series FROM series")}

    def rows(self, statement: str, *of: Any) -> list[tuple[Any, ...]]:
        return self.database.execute(statement, of).fetchall()

    def trials(self) -> list[Trial]:
        found = self.rows(
            "SELECT trial, block, case_id, arm, started_at, wall_s, load_s, outcome, phase, reason, window_start_ns, window_end_ns "
            "FROM trials ORDER BY trial"
        )
        return [self.trial(row) for row in found]

    def trial(self, row: tuple[Any, ...]) -> Trial:
        index, block, case, arm, started_at, wall_s, load_s, outcome, phase, reason, start, end = row
        trial = Trial(
            index, block, case, arm, started_at, number(wall_s), number(load_s), outcome, phase, reason,
            None if start is None else (start, end),
        )  # fmt: skip
        self.measured(trial)
        trial.specs = [
            Spec(metric, label, unit_of(unit), better, bool(primary))
            for metric, label, unit, better, primary in self.rows(
                "SELECT metric, label, unit, better, is_primary FROM metric_specs WHERE trial = ? ORDER BY position", index
            )
        ]
        trial.parity = [
            {"resource": resource, "asked": asked, "granted": granted, "equal": bool(equal), "note": note}
            for resource, asked, granted, equal, note in self.rows(
                "SELECT resource, asked, granted, equal, note FROM parity WHERE trial = ? ORDER BY position", index
            )
        ]
        trial.flags = self.rows("SELECT kind, detail FROM flags WHERE trial = ? ORDER BY position", index)
        trial.cpu = self.account("cpu_accounts", "trial", index)
        trial.turns = self.turns(index)
        trial.samples = self.samples(index)
        return trial

    def measured(self, trial: Trial) -> None:
        """What a completed trial measured."""
        index = trial.index
        trial.metrics = self.numbers("SELECT metric, value FROM metrics WHERE trial = ?", index)
        trial.counts = dict(self.rows("SELECT name, value FROM counts WHERE trial = ?", index))
        trial.incomplete = {
            metric: (missing, alone)
            for metric, missing, alone in self.rows("SELECT metric, missing, completed_only FROM incomplete WHERE trial = ?", index)
        }
        trial.histograms = {
            row[1]: self.histogram("stored_bins", "histogram_id", row[0], row[2:])
            for row in self.rows(
                "SELECT histogram_id, name, min_ns, max_ns, sum_ns, operations_failed, operations_given_up, waited_ns "
                "FROM histograms WHERE trial = ?",
                index,
            )
        }
        trial.parts = [
            Part(guest, driver, instance, self.numbers("SELECT metric, value FROM stored_part_metrics WHERE part_id = ?", part))
            for part, guest, driver, instance in self.rows(
                "SELECT part_id, guest, driver, instance FROM stored_parts WHERE trial = ? ORDER BY position", index
            )
        ]
        trial.steps = [
            Step(row[1], bool(row[2]), self.histogram("stored_step_bins", "step_id", row[0], (*row[3:], 0, 0, 0)))
            for row in self.rows(
                "SELECT step_id, step, within, min_ns, max_ns, sum_ns FROM steps WHERE trial = ? ORDER BY position", index
            )
        ]
        trial.requests = self.requests("trial = ? AND try_id IS NULL", index)
        trial.search = self.search(index)
        trial.scale_up = self.scale_up(index)
        trial.cpu_search = self.cpu_search(index)

    def numbers(self, statement: str, of: int) -> dict[str, float]:
        return {name: number(value) for name, value in self.rows(statement, of)}

    def histogram(self, table: str, key: str, of: int, head: tuple[Any, ...]) -> Histogram:
        least, largest, total, failed, given_up, waited = head
        bins = self.rows(f"SELECT low_ns, high_ns, count FROM {table} WHERE {key} = ? ORDER BY low_ns", of)
        return Histogram(
            np.array(bins, dtype=np.int64).reshape(-1, 3), least, largest, int(total), failed, given_up, waited
        )

    def account(self, table: str, key: str, of: int) -> dict[str, float] | None:
        rows = self.rows(f"SELECT {', '.join(CPU_PARTS)} FROM {table} WHERE {key} = ?", of)
        return dict(zip(CPU_PARTS, (number(value) for value in rows[0]))) if rows else None

    def samples(self, index: int) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
        found: dict[int, list[tuple[int, float]]] = {}
        for series, at, value in self.rows(
            "SELECT series_id, at_ns, value FROM stored_samples WHERE trial = ? ORDER BY position", index
        ):
            found.setdefault(series, []).append((at, number(value)))
        return {
            self.series[series]: (
                np.array([at for at, _ in points], dtype=np.int64),
                np.array([value for _, value in points], dtype=float),
            )
            for series, points in found.items()
        }

    def turns(self, index: int) -> Turns | None:
        rows = self.rows("SELECT start_ns, arms, turn_ns, gap_ns, commands, measured_ns FROM trial_turns WHERE trial = ?", index)
        if not rows:
            return None
        start, arms, turn, gap, commands, measured = rows[0]
        rounds = self.rows(
            "SELECT place, operations, bytes, measured_ns, response_ns, start_ns FROM turns WHERE trial = ? ORDER BY round", index
        )
        known = [[-1 if value is None else value for value in row] for row in rounds]
        return Turns(start, arms, turn, gap, commands, measured, np.array(known, dtype=np.int64).reshape(-1, 6))

    def requests(self, where: str, of: int) -> list[Request]:
        names = ("requests", "good", "tolerable", "failed", "validation_errors", "bytes", "response_s", "target")
        rows = self.rows(
            f"SELECT request_id, type, {', '.join(names)}, min_ns, max_ns, sum_ns, operations_failed, operations_given_up, "
            f"waited_ns FROM stored_requests WHERE {where} ORDER BY number",
            of,
        )
        return [
            Request(
                {"name": row[1], **dict(zip(names, row[2:10]))},
                self.histogram("stored_request_bins", "request_id", row[0], row[10:]),
            )
            for row in rows
        ]

    def search(self, index: int) -> Search | None:
        rows = self.rows("SELECT held, missed, ended FROM searches WHERE trial = ?", index)
        if not rows:
            return None
        tries = [
            Try(
                number(load), failed, cause, (start, end), self.account("stored_try_cpu", "try_id", key),
                self.requests("try_id = ?", key),
                [kind for (kind,) in self.rows("SELECT kind FROM stored_try_flags WHERE try_id = ? ORDER BY number", key)],
            )  # fmt: skip
            for key, load, failed, cause, start, end in self.rows(
                "SELECT try_id, load, failed, cause, window_start_ns, window_end_ns FROM tries WHERE trial = ? ORDER BY position", index
            )
        ]
        held, missed, ended = rows[0]
        return Search(number(held), missed, ended, tries)

    def scale_up(self, index: int) -> ScaleUp | None:
        rows = self.rows(
            "SELECT stopped, stopped_guests, stopped_detail, offered_per_guest_per_s FROM scale_ups WHERE trial = ?", index
        )
        if not rows:
            return None
        saved = ("zero_bytes", "code_bytes", "data_bytes", "unknown_bytes")
        levels = [
            Level(
                row[1], row[2], row[3],
                self.numbers("SELECT metric, value FROM stored_level_metrics WHERE level_id = ?", row[0]),
                dict(zip(saved, row[4:])),
            )
            for row in self.rows(
                f"SELECT level_id, guests, failed, cause, {', '.join(saved)} FROM levels WHERE trial = ? ORDER BY position", index
            )
        ]  # fmt: skip
        points = ("at_s", "guests", "load", "available_bytes", "saved_bytes", "profit_bytes", "scanner_cpu_s")
        course = [
            {**dict(zip(points, row)), "load": bool(row[2])}
            for row in self.rows(f"SELECT {', '.join(points)} FROM courses WHERE trial = ? ORDER BY position", index)
        ]
        tile = [name for (name,) in self.rows("SELECT name FROM tiles WHERE trial = ? ORDER BY position", index)]
        stopped, guests, detail, offered = rows[0]
        return ScaleUp(stopped, guests, detail, offered, tile, levels, course)

    def cpu_search(self, index: int) -> dict[str, Any] | None:
        heads = ("target", "tolerance", "load", "share", "spread")
        rows = self.rows(f"SELECT {', '.join(heads)} FROM cpu_targets WHERE trial = ?", index)
        if not rows:
            return None
        steps = ("load", "share", "operations_per_s", "window_s")
        return {
            **dict(zip(heads, rows[0])),
            "steps": [
                dict(zip(steps, row))
                for row in self.rows(f"SELECT {', '.join(steps)} FROM cpu_target_steps WHERE trial = ? ORDER BY position", index)
            ],
            "course": [
                list(row) for row in self.rows("SELECT at_s, share FROM cpu_target_courses WHERE trial = ? ORDER BY position", index)
            ],
        }


def unit_of(stored: str) -> Any:
    """A unit as findings have it: a word, or a name of the user's own."""
    return {"other": stored[len("other:") :]} if stored.startswith("other:") else stored
