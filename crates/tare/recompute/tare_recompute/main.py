"""Reads a run folder and tare's findings of it, makes the findings again, and says where they differ: JSON on standard output."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from .compare import Outcome, compare
from .findings import findings
from .folder import read
from .raw import Metrics, check

# Mismatches that are listed; all are counted.
LISTED = 100


def report(outcome: Outcome, metrics: Metrics) -> dict[str, Any]:
    return {
        "checked": outcome.checked,
        "statements": outcome.statements,
        "near": dict(sorted(outcome.near.items())),
        "left_out": dict(sorted(outcome.left.items())),
        "metrics": dict(sorted(metrics.again.items())),
        "taken": dict(sorted(metrics.taken.items())),
        "metrics_differ": metrics.differ,
        "mismatches": len(outcome.mismatches),
        "listed": outcome.mismatches[:LISTED],
    }


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: recompute RUN FINDINGS", file=sys.stderr)
        return 2
    theirs = json.loads(Path(arguments[1]).read_text())
    with tempfile.TemporaryDirectory() as scratch:
        run = read(Path(arguments[0]), Path(scratch))
    outcome = Outcome()
    compare(theirs, findings(run, theirs), outcome)
    metrics = check(run, outcome)
    json.dump(report(outcome, metrics), sys.stdout)
    print()
    return 0
