"""One figure over several cases: 100 times the geometric mean of capacity over reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .cases import CAPACITY
from .estimates import Sample, from_logs, of_values
from .grouped import Figures


def of_run(figures: Figures) -> dict[str, Any] | None:
    spec, study = figures.run.study.get("score"), figures.run.study
    if not spec:
        return None
    by_arm = {arm["id"]: by_block(figures, arm["id"], spec["references"]) for arm in study["arms"]}
    base = by_arm[study["baseline"]]
    arms, ratios = [], []
    for arm, own in by_arm.items():
        found = of_values([own[block] for block in sorted(own)])
        if found is None:
            continue
        arms.append([arm, found])
        logs = [math.log(own[block] / base[block]) for block in sorted(own) if block in base]
        located = Sample(np.array(logs)).located()
        if arm != study["baseline"] and located is not None:
            ratios.append([arm, from_logs(located, len(logs), "log ratios")])
    return {"references": spec["references"], "arms": arms, "ratios": ratios}


def by_block(figures: Figures, arm: str, references: list[list[Any]]) -> dict[int, float]:
    """Of the blocks in which every case has a capacity above zero."""
    found = []
    for case, _ in references:
        metric = figures.metric(case, CAPACITY) if case in figures.cases else None
        found.append(dict(metric.values(arm)) if metric else {})
    scores = {}
    for block in found[0] if found else {}:
        capacities = [own.get(block, math.nan) for own in found]
        if all(math.isfinite(value) and value > 0 for value in capacities):
            logs = [math.log(value / reference) for value, (_, reference) in zip(capacities, references)]
            scores[block] = 100 * math.exp(math.fsum(logs) / len(logs))
    return scores
