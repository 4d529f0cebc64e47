"""The findings of a run, made again."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Any

from . import consolidation, density, figures, flags, held, isolation, limits, loads, resources, score, series, sizing
from .cases import CAPACITY, OF_THE_GUEST, Case, CaseMetric, across
from .comparison import Comparison, settle_primary
from .folder import Run, Trial
from .grouped import Figures
from .leaves import WORDS, Left, or_words
from .limits import wall_s

ANSWER_RANKS = (
    ("better", "worse", "lead"),
    ("equivalent",),
    ("no-difference-seen", "within-floor", "noise-floor"),
    ("too-noisy",),
    ("cannot-say",),
    ("not-comparable",),
)


def findings(run: Run, theirs: dict[str, Any]) -> dict[str, Any]:
    """Of `theirs` the outcome of the audit is taken, which is not made again, and fits once they are known to be near."""
    cases = [Case(run, case) for case in run.study["cases"]]
    known = {case["id"]: case for case in theirs["cases"]}
    for case in cases:
        case.find_metrics()
        take_fits(case, known.get(case.id, {}))
    metrics = [metric for case in cases for metric in case.metrics]
    over_all = across(run, cases)
    settle(metrics, over_all)
    for case in cases:
        judge_held(case, known.get(case.id, {}))
        audited(case, theirs["audit"])
    found = [of_case(case, known.get(case.id, {})) for case in cases]
    by_block = Figures(run, cases)
    return {
        "schema": 1,
        "run": summary(run),
        "answer": answer(run, cases, found, over_all),
        "cases": found,
        "across": [metric.as_json(None) for metric in over_all],
        "warnings": WORDS,
        "audit": Left("audit: words"),
        "score": score.of_run(by_block),
        "consolidation": consolidation.of_run(by_block, found),
        "sizing": sizing.of_run(by_block, theirs["sizing"]),
        "isolation": isolation.of_run(run),
        "deviations": WORDS,
        "differences": WORDS,
        "not_completed": not_completed(run),
        "flagged": flags.of_run(run),
        "unchecked": WORDS,
        "parity": parity(run),
        "environment": run.environment,
        "plan": as_planned(run, theirs),
        "method": WORDS,
    }


def as_planned(run: Run, theirs: dict[str, Any]) -> dict[str, Any]:
    """The plan, whose arms that must not be compared bear that in their labels."""
    arms = [{**arm, "label": WORDS} for arm in run.study["arms"]]
    return {**run.plan, "study": {**run.study, "arms": arms}}


def settle(metrics: list[CaseMetric], over_all: list[CaseMetric]) -> None:
    asked = [metric for metric in metrics if metric.spec.primary]
    asked += [metric for metric in over_all if metric.spec.id in OF_THE_GUEST]
    primary = [own for metric in asked for own in metric.comparisons]
    settle_primary([own for own in primary if own.role != "replica" and own.verdict != "not-comparable"])


def take_fits(case: Case, theirs: dict[str, Any]) -> None:
    """What instances hold takes the place of what the blocks found."""
    if case.kind == "density":
        density.take_fits(case, theirs.get("density"))
    elif case.metrics and case.metrics[0].spec.id == CAPACITY:
        held.put_in(case, {own["arm"]: own["fit"] for own in theirs.get("capacity", []) if own["fit"] is not None}, 1)


def judge_held(case: Case, theirs: dict[str, Any]) -> None:
    if case.kind == "density":
        density.judge_numbers(case, theirs.get("density"))
    else:
        held.judge_searches(case, theirs.get("capacity", []))


def audited(case: Case, audit: list[dict[str, Any]]) -> None:
    """Broken checks take the verdicts that they concern."""
    broken = [entry for entry in audit if entry["outcome"] == "broken" and entry["case"] in ("", case.id)]
    for own in (own for metric in case.metrics for own in metric.comparisons):
        if any(set(entry["arms"]) <= {own.arm, own.baseline} for entry in broken):
            own.taken_by_audit()


def of_case(case: Case, theirs: dict[str, Any]) -> dict[str, Any]:
    always = loads.fixed(case.run, case)
    primary = next((spec.id for spec in case.measured()), "")
    requests = [own for own in (figures.requests(case, arm, always) for arm in case.by_arm) if own]
    ended = case.run.ended.get(case.id)
    return {
        "id": case.id,
        "label": case.case["label"],
        "blocks": {key: value for key, value in ended.items() if key != "kind"} if ended else None,
        "metrics": [metric.as_json(case.id) for metric in case.metrics],
        "replaced": [{"block": block, "why": WORDS} for block in case.replaced],
        "over_all": over_all_blocks(case),
        "groups": figures.groups(case.metrics),
        "distributions": [own for arm in case.by_arm for own in figures.distributions(case, arm)],
        "cpu": [own for own in (figures.cpu(case, arm) for arm in case.by_arm) if own],
        "timelines": [own for own in (series.timeline(case, arm, primary) for arm in case.by_arm) if own],
        "accounts": [own for own in (figures.account(case, arm, always) for arm in case.by_arm) if own],
        "objectives": figures.objectives(case),
        "not_measured": WORDS,
        "parts": figures.parts(case),
        "steps": [own for own in (figures.steps(case, arm) for arm in case.by_arm) if own],
        "density": density.of_case(case, theirs.get("density")) if case.kind == "density" else None,
        "capacity": held.searches(case, theirs.get("capacity", [])) if case.kind == "capacity" else [],
        "requests": requests,
        "resources": resources.of_case(case, always, bool(requests)),
        "limits": limits.of_case(case),
        # The workload's own view may name it.
        "operation": WORDS,
        "sections": Left("sections: what a workload's own view shows, by its own rules"),
        "cpu_searches": cpu_searches(case),
    }


def over_all_blocks(case: Case) -> list[dict[str, Any]]:
    """Ratios of the primary metric with the blocks that do not count."""
    metric = next((metric for metric in case.metrics if metric.spec.primary), None)
    if metric is None or not case.replaced:
        return []
    everything = Case(case.run, case.case)
    everything.counted, everything.by_arm = everything.all, everything.grouped(everything.all)
    return [{"arm": own.arm, "ratio": own.ratio} for own in everything.comparisons(metric.spec)]


def cpu_searches(case: Case) -> list[list[Any]]:
    found = [[arm, [[trial.block, trial.cpu_search] for trial in case.done(arm) if trial.cpu_search]] for arm in case.by_arm]
    return [own for own in found if own[1]]


def seconds(at: str) -> float:
    """Of a moment as RFC 3339 gives it, seconds since 1970."""
    whole, _, fraction = at.rstrip("Z").partition(".")
    begin = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return begin.timestamp() + float(f"0.{fraction or 0}")


def wanted(run: Run) -> list[dict[str, Any]]:
    """Planned trials, without those of blocks that their cases do not take."""

    def taken(planned: dict[str, Any]) -> bool:
        ended = run.ended.get(planned["case"])
        return ended is None or run.study_block(planned["case"], planned["block"]) <= ended["blocks"]

    return [planned for planned in run.plan["trials"] if taken(planned)]


def summary(run: Run) -> dict[str, Any]:
    # Of figures that others published nobody knows when they began.
    begun = [trial for trial in run.trials if trial.started_at]
    first = min(begun, key=lambda trial: seconds(trial.started_at), default=None)
    return {
        "id": run.id,
        "tare_version": run.version,
        "root_hash": run.root_hash,
        "started_at": first.started_at if first else "",
        "finished_at": or_words(run.finished and begun),
        "planned": len(wanted(run)),
        "completed": sum(trial.completed for trial in run.trials),
        "wall_s": total(run.trials, "wall_s"),
        "load_s": total(run.trials, "load_s"),
    }


def total(trials: list[Trial], part: str) -> float:
    return math.fsum(value for value in (getattr(trial, part) for trial in trials) if math.isfinite(value))


def not_completed(run: Run) -> list[dict[str, Any]]:
    by_index, found = {trial.index: trial for trial in run.trials}, []
    for planned in wanted(run):
        trial = by_index.get(planned["index"])
        if trial is not None and trial.completed:
            continue
        how = "not run" if trial is None else "invalid" if trial.outcome == "invalid" else f"failed in {trial.phase}"
        entry = {"block": planned["block"], "case": planned["case"], "arm": planned["arm"], "how": how}
        found.append({**entry, "reason": trial.reason if trial else WORDS})
    return found


def parity(run: Run) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for trial in (trial for trial in run.trials if trial.parity):
        found.setdefault((trial.arm, trial.case), {"arm": trial.arm, "case": trial.case, "rows": trial.parity})
    return list(found.values())


def answer(
    run: Run, cases: list[Case], found: list[dict[str, Any]], over_all: list[CaseMetric]
) -> list[dict[str, Any]]:
    """Effects first, the largest foremost; then what is equivalent, what was not detected, what cannot be said."""
    arms = [arm["id"] for arm in run.study["arms"] if arm["id"] != run.study["baseline"] and arm.get("replica_of") is None]
    said: list[dict[str, Any]] = []
    asked = [case for case in cases if case.schedule != "conditions"]
    if asked or not cases:
        for metric in (metric for metric in over_all if metric.spec.id in OF_THE_GUEST):
            said += [answered(None, metric.spec.id, own) for own in of_arms(metric, arms)]
    for case in asked:
        primary = next((metric for metric in case.metrics if metric.spec.primary), None)
        for arm in arms:
            own = next(of_arms(primary, [arm]), None) if primary else None
            metric_id = primary.spec.id if primary else ""
            said.append(answered(case.id, metric_id, own) if own else unanswered(case.id, arm, metric_id))
        for metric in case.metrics:
            if metric.spec.id == "service_demand_cpu_s" and not metric.spec.primary:
                said += [answered(case.id, metric.spec.id, own) for own in of_arms(metric, arms) if own.verdict == "lead"]
    return sorted(said, key=order)


def of_arms(metric: CaseMetric, arms: list[str]) -> Any:
    return (own for arm in arms for own in metric.comparisons if own.arm == arm)


def answered(case: str | None, metric: str, own: Comparison) -> dict[str, Any]:
    ratio = own.ratio if own.ratio["n"] > 0 else None
    return entry(case, own.arm, metric, ratio, own.verdict)


def unanswered(case: str, arm: str, metric: str) -> dict[str, Any]:
    return entry(case, arm, metric, None, "cannot-say")


def entry(case: str | None, arm: str, metric: str, ratio: Any, verdict: str) -> dict[str, Any]:
    name = f"{case}/{arm}/{metric}" if case is not None else f"{arm}/{metric}"
    return {"id": name, "case": case, "arm": arm, "metric": metric, "ratio": ratio, "verdict": verdict, "sentence": WORDS}


def order(said: dict[str, Any]) -> tuple[int, float]:
    rank = next(rank for rank, verdicts in enumerate(ANSWER_RANKS) if said["verdict"] in verdicts)
    value = said["ratio"]["value"] if said["ratio"] and rank == 0 else 1.0
    return rank, -abs(math.log(value)) if value > 0 else 0.0
