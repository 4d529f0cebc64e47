"""What neighbours do to a victim: ratios within one and the same guest, over blocks (ADR 0035)."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any, Callable

import numpy as np

from .estimates import Sample, from_logs, of_values
from .folder import Run, Spec, Trial
from .leaves import WORDS

STARVED = 0.9
WORK = "aggressor_work_per_s"
HOST_DELAY = "host_delay_max_s"
ON = "log ratios to the same guest with its neighbours idle"
ByBlock = dict[int, Trial]


def condition(case: dict[str, Any]) -> dict[str, Any] | None:
    return case["schedule"].get("conditions")


def of_run(run: Run) -> list[dict[str, Any]]:
    """One entry a victim, in the order of the study."""

    def family(case: dict[str, Any]) -> str:
        own = condition(case)
        return own["victim"] if own else case["id"]

    families = [list(cases) for _, cases in groupby(run.study["cases"], key=family)]
    return [Victim(run, family).findings() for family in families if condition(family[0])]


class Victim:
    """A victim's cases, the first of which is with its neighbours idle."""

    def __init__(self, run: Run, cases: list[dict[str, Any]]) -> None:
        self.run, self.cases = run, cases
        ids = {case["id"] for case in cases}
        self.trials = [trial for trial in run.trials if trial.case in ids]
        done = [trial for trial in self.trials if trial.completed]
        specs: dict[str, Spec] = {}
        for trial in done:
            for spec in trial.specs:
                specs.setdefault(spec.id, spec)
        known = {metric for trial in done for metric in trial.metrics}
        specs = {name: spec for name, spec in specs.items() if name in known}
        self.time = specs.get("response_time_p99_s") or specs.get("response_time_mean_s")
        other = (spec for spec in specs.values() if spec.better == "higher" and spec.id != WORK)
        self.speed = specs.get("operations_per_s") or next(other, None)

    def findings(self) -> dict[str, Any]:
        head = condition(self.cases[0]) or {}
        working = [(case, own["work"]) for case in self.cases if (own := condition(case)) and own["work"] is not None]
        arms = [
            {"arm": arm["id"], "cells": [self.cell(arm["id"], case["id"], work) for case, work in working]}
            for arm in self.run.study["arms"]
        ]
        return {
            "victim": head["victim"],
            "label": head["label"],
            "time": self.time.label if self.time else WORDS,
            "speed": self.speed.label if self.speed else WORDS,
            "works": [work for _, work in working],
            "arms": arms,
            "sentences": WORDS,
        }

    def by_block(self, case: str, arm: str) -> ByBlock:
        return {trial.block: trial for trial in self.trials if trial.case == case and trial.arm == arm}

    def cell(self, arm: str, case: str, work: str) -> dict[str, Any]:
        own, idle = self.by_block(case, arm), self.by_block(self.cases[0]["id"], arm)
        baseline = self.run.study["baseline"]
        achieved = [value for value in map(figure(WORK), own.values()) if value is not None]
        share = None if arm == baseline else ratio(own, self.by_block(case, baseline), figure(WORK))
        time = speed = None
        if self.time:
            time = ratio(own, idle, figure(self.time.id))
            speed = ratio(own, idle, figure(self.speed.id)) if self.speed else None
        elif self.speed:
            time = ratio(idle, own, figure(self.speed.id))
        starved = share is not None and share["high"] is not None and share["high"] < STARVED
        return {
            "case": case,
            "work": work,
            "time": time,
            "speed": speed,
            "achieved_per_s": of_values(achieved),
            "achieved_share": share,
            "starved": starved or any(value <= 0 for value in achieved),
            "survival": survival(list(own.values())),
        }


def figure(metric: str) -> Callable[[Trial], float | None]:
    return lambda trial: trial.metrics.get(metric) if trial.completed else None


def ratio(own: ByBlock, to: ByBlock, of: Callable[[Trial], float | None]) -> dict[str, Any] | None:
    """Within blocks that have both trials; one without both figures may have had any ratio."""
    logs, missing = [], 0
    for block in sorted(own.keys() & to.keys()):
        value, other = of(own[block]), of(to[block])
        found = value / other if value is not None and other else math.nan
        if math.isfinite(found) and found > 0:
            logs.append(math.log(found))
        else:
            missing += 1
    located = Sample(np.array(logs), missing).located()
    return None if located is None else from_logs(located, len(logs), ON)


def survival(trials: list[Trial]) -> dict[str, Any]:
    """How all came through; not of trials that ended because another condition of their guest failed."""
    ran = [trial for trial in trials if not trial.has_flag("other-arm-failed")]
    done = [trial for trial in ran if trial.completed]
    failed = sum(trial.counts.get(name, 0) for trial in done for name in ("errors", "lost", "unfinished"))
    due = failed + sum(trial.counts.get("operations", 0) for trial in done)
    return {
        "trials": len(ran),
        "victim_lost": len(ran) - len(done),
        "failed_share": failed / due if due else 0.0,
        "contained": sum(trial.counts.get("aggressor_ended", 0) > 0 for trial in done),
        "refused": sum(trial.counts.get("aggressor_refused", 0) for trial in done),
        "host_delay_max_s": max((trial.metrics.get(HOST_DELAY, 0.0) for trial in done), default=0.0),
    }
