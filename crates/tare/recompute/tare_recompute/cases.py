"""The trials of one case by arm, its metrics and comparisons; and the metrics of the guest over all cases."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Iterable

from .comparison import Comparison, compare
from .estimates import mean, of_values
from .folder import Run, Spec, Trial
from .leaves import or_words

OUTSIDE = ("steal", "foreign-load", "alongside")
STEAL_MAX = 0.01
START_PARTS = ("start_firmware_s", "start_kernel_s", "start_agent_s")
OF_THE_GUEST = ("start_time_s", "idle_memory_bytes")
GUEST_METRICS = ("start_time_s", *START_PARTS, "idle_memory_bytes")
CAPACITY = "capacity"
DENSITY = ("guests_held", "tiles_held", "operations_per_s")
BOUNDED_BY_DRIVER = ("seconds", "operations-per-second", "bits-per-second")


def stolen(trial: Trial) -> bool:
    if trial.cpu is None:
        return False
    whole = trial.cpu["window_s"] * trial.cpu["cpus"]
    share = trial.cpu["steal_s"] / whole if whole else math.nan
    return math.isfinite(share) and share > STEAL_MAX


def disturbed(trial: Trial) -> bool:
    """By something outside its arm."""
    return any(trial.has_flag(kind) for kind in OUTSIDE) or stolen(trial)


def lost(trial: Trial, metric: str) -> bool:
    """Whether it has no value for a reason that may have to do with its arm."""
    return trial.value(metric) is None and not trial.has_flag("other-arm-failed")


def role(run: Run, arm: dict[str, Any], trials: Iterable[Trial]) -> str:
    baseline = run.study["baseline"]
    if arm.get("replica_of") == baseline:
        return "replica"
    own = {trial.arm for trial in trials if trial.has_flag("not-comparable")}
    return "not-comparable" if arm["id"] in own or baseline in own else "ordinary"


@dataclass
class CaseMetric:
    """One metric over all arms of a case, or over all cases."""

    spec: Spec
    arms: list[dict[str, Any]]
    comparisons: list[Comparison]
    incomplete: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self, case: str | None) -> dict[str, Any]:
        return {
            "spec": self.spec.as_json(),
            "arms": [{"case": case, "metric": self.spec.id, **arm} for arm in self.arms],
            "comparisons": [own.as_json(case, self.spec.id) for own in self.comparisons],
            "incomplete": self.incomplete,
        }

    def values(self, arm: str) -> list[tuple[int, float]]:
        return next((own["blocks"] for own in self.arms if own["arm"] == arm), [])


class Case:
    """The trials of a case."""

    def __init__(self, run: Run, case: dict[str, Any]) -> None:
        self.run, self.case, self.id = run, case, case["id"]
        self.all = [trial for trial in run.trials if trial.case == self.id]
        self.disturbed: dict[int, bool] = {}
        for trial in self.all:
            block = run.study_block(self.id, trial.block)
            self.disturbed[block] = self.disturbed.get(block, False) or disturbed(trial)
        self.replaced = self.to_replace()
        counted = [trial for trial in self.all if run.study_block(self.id, trial.block) not in self.replaced]
        self.counted = counted
        self.by_arm = self.grouped(counted)
        self.metrics: list[CaseMetric] = []

    def to_replace(self) -> list[int]:
        """Blocks that do not count: of more than were planned, disturbed ones, the last of them first."""
        if not self.run.study.get("spare_blocks"):
            return []
        order = sorted((why, block) for block, why in self.disturbed.items())
        return sorted(block for _, block in order[self.run.study["blocks"] :])

    def grouped(self, trials: list[Trial]) -> dict[str, list[Trial]]:
        arms = {arm["id"]: [] for arm in self.run.study["arms"]}
        for trial in sorted(trials, key=lambda trial: trial.block):
            arms[trial.arm].append(trial)
        return arms

    @property
    def kind(self) -> str:
        """Of its load: fixed, share-of, density, capacity or cpu-target."""
        return next(iter(self.case["load"]))

    @property
    def schedule(self) -> str:
        return next(iter(self.case["schedule"]))

    @property
    def blocks(self) -> int:
        """Blocks of the study that count, or were to."""
        planned, ended = self.run.study["blocks"], self.run.ended.get(self.id)
        return min(ended["blocks"], planned) if ended else planned

    def done(self, arm: str) -> list[Trial]:
        return [trial for trial in self.by_arm[arm] if trial.completed]

    def values(self, arm: str, metric: str) -> list[tuple[int, float]]:
        """(block, value) of the completed trials that have one."""
        found = ((trial.block, trial.value(metric)) for trial in self.by_arm[arm])
        return [(block, value) for block, value in found if value is not None]

    def specs(self) -> list[Spec]:
        """Every metric that a trial knows, primary first."""
        found: dict[str, Spec] = {}
        for trials in self.by_arm.values():
            for spec in (spec for trial in trials for spec in trial.specs):
                found.setdefault(spec.id, spec)
        return sorted(found.values(), key=lambda spec: not spec.primary)

    def withheld(self, arm: str, metric: str) -> bool:
        """Whether trials of the arm completed and none has the metric."""
        return bool(self.done(arm)) and not self.values(arm, metric)

    def measured(self) -> list[Spec]:
        """The metrics that there is something to say about."""
        kept = []
        for spec in self.specs():
            some = any(self.values(arm, spec.id) for arm in self.by_arm)
            without = any(self.withheld(arm, spec.id) for arm in self.by_arm)
            by_nature = spec.id in START_PARTS or (spec.id.startswith("kvm_") and spec.id.endswith("_per_operation"))
            if some or (not by_nature and (spec.primary or not without)):
                kept.append(spec)
        return kept

    def find_metrics(self) -> list[CaseMetric]:
        self.metrics = [self.metric(spec) for spec in self.measured()]
        if self.schedule == "conditions":
            for metric in self.metrics:
                metric.comparisons = []
        return self.metrics

    def metric(self, spec: Spec) -> CaseMetric:
        arms = []
        for arm in self.by_arm:
            blocks = self.values(arm, spec.id)
            estimate = of_values([value for _, value in blocks])
            if estimate is not None:
                arms.append({"arm": arm, "estimate": estimate, "blocks": [list(block) for block in blocks]})
        incomplete = [self.incomplete(arm, spec.id) for arm in self.by_arm]
        return CaseMetric(spec, arms, self.comparisons(spec), [own for own in incomplete if own])

    def incomplete(self, arm: str, metric: str) -> dict[str, Any] | None:
        """What the trials of an arm leave out of a figure of response time."""
        own = [(trial, trial.incomplete.get(metric)) for trial in self.done(arm)]
        blocks = [[trial.block, left_out(found)] for trial, found in own if found]
        if not blocks:
            return None
        missed = [trial.block for trial, found in own if found and metric not in trial.metrics]
        return {"arm": arm, "blocks": blocks, "not_reached": missed, "note": or_words(True)}

    def comparisons(self, spec: Spec) -> list[Comparison]:
        if self.kind == "density" and spec.id not in DENSITY:
            return []
        baseline = self.run.study["baseline"]
        others = [arm for arm in self.run.study["arms"] if arm["id"] != baseline]
        replica = next((arm for arm in others if arm.get("replica_of") == baseline), None)
        against = self.compare(spec, replica, None) if replica else None
        found = []
        for arm in others:
            said = not self.withheld(arm["id"], spec.id) and not self.withheld(baseline, spec.id)
            if (spec.primary or said) and self.same_work(arm["id"], spec.id):
                found.append(self.compare(spec, arm, against))
        return found

    def same_work(self, arm: str, metric: str) -> bool:
        """Whether a metric of a search is of the same load on both arms in every block."""
        if self.kind != "capacity" or metric == CAPACITY:
            return True
        base = {trial.block: trial.search.held for trial in self.done(self.run.study["baseline"]) if trial.search}
        both = [(trial.search.held, base[trial.block]) for trial in self.done(arm) if trial.search and trial.block in base]
        return bool(both) and all(own > 0 and abs(own - other) < 1e-9 for own, other in both)

    def compare(self, spec: Spec, arm: dict[str, Any], replica: Comparison | None) -> Comparison:
        study, own = self.run.study, self.by_arm[arm["id"]]
        base = dict(self.values(study["baseline"], spec.id))
        pairs = [(block, value, base[block]) for block, value in self.values(arm["id"], spec.id) if block in base]
        beside = {}
        for trial in self.by_arm[study["baseline"]]:
            beside.setdefault(trial.block, trial)
        missing = sum(
            lost(trial, spec.id) or (trial.block in beside and lost(beside[trial.block], spec.id)) for trial in own
        )
        comparison = Comparison(
            arm["id"], study["baseline"], spec.better, self.blocks, missing, self.limited(spec, arm["id"]),
            role(self.run, arm, self.counted), study.get("margin") if spec.primary else None,
        )  # fmt: skip
        return compare(comparison, pairs, study.get("precision") is not None, replica)

    def limited(self, spec: Spec, arm: str) -> tuple[int, int]:
        """Blocks in which the driver was at its limit with the arm, and with the baseline in the arm's blocks."""
        if spec.unit not in BOUNDED_BY_DRIVER:
            return 0, 0
        blocks = {trial.block for trial in self.by_arm[arm]}

        def count(of: str) -> int:
            return sum(trial.has_flag("driver-saturated") and trial.block in blocks for trial in self.done(of))

        return count(arm), count(self.run.study["baseline"])


def left_out(found: tuple[float, float | None]) -> dict[str, Any]:
    return {"missing": found[0], "completed_only": found[1]}


class Guests:
    """A metric of an arm's guests by block of the study, where every case that ran in the block has it."""

    def __init__(self, run: Run, trials: list[Trial], arm: str, metric: str, cases: dict[int, set[str]]) -> None:
        self.values: dict[int, dict[tuple[str, int], float]] = {}
        self.ran: set[int] = set()
        self.lost: set[int] = set()
        for trial in (trial for trial in trials if trial.arm == arm):
            block = run.study_block(trial.case, trial.block)
            if trial.case not in cases.get(block, set()):
                continue
            self.ran.add(block)
            value = trial.value(metric)
            if value is not None:
                self.values.setdefault(block, {})[(trial.case, trial.block)] = value
            elif lost(trial, metric):
                self.lost.add(block)
        whole = {block for block, own in self.values.items() if cases[block] <= {case for case, _ in own}}
        self.values = {block: self.values[block] for block in sorted(whole)}

    def by_block(self, beside: Guests) -> list[tuple[int, float]]:
        """Means over the cases of each block, of what is there beside the others too."""
        found = []
        for block, own in self.values.items():
            both = [value for key, value in own.items() if key in beside.values.get(block, {})]
            if both:
                found.append((block, float(mean(both) or 0.0)))
        return found


def across(run: Run, cases: list[Case]) -> list[CaseMetric]:
    """The metrics of the guest, over the trials of all cases that count."""
    trials = [trial for case in cases for arm in sorted(case.by_arm) for trial in case.by_arm[arm]]
    blocks = max((case.blocks for case in cases), default=run.study["blocks"])
    found = []
    for metric in GUEST_METRICS:
        spec = next((spec for trial in trials for spec in trial.specs if spec.id == metric), None)
        own = over_cases(run, trials, spec, blocks) if spec else None
        if own and own.arms:
            found.append(own)
    return found


def over_cases(run: Run, trials: list[Trial], spec: Spec, planned: int) -> CaseMetric:
    study, asked = run.study, spec.id in OF_THE_GUEST
    having = {trial.case for trial in trials if trial.value(spec.id) is not None}
    cases: dict[int, set[str]] = {}
    for trial in (trial for trial in trials if trial.case in having):
        cases.setdefault(run.study_block(trial.case, trial.block), set()).add(trial.case)
    guests = {arm["id"]: Guests(run, trials, arm["id"], spec.id, cases) for arm in study["arms"]}
    arms = []
    for arm, own in guests.items():
        blocks = own.by_block(own)
        estimate = of_values([value for _, value in blocks])
        if estimate is not None:
            arms.append({"arm": arm, "estimate": estimate, "blocks": [list(block) for block in blocks]})
    base = guests[study["baseline"]]

    def against(arm: dict[str, Any], replica: Comparison | None) -> Comparison:
        own = guests[arm["id"]]
        pairs = [(block, value, other) for (block, value), (_, other) in zip(own.by_block(base), base.by_block(own))]
        missing = len([block for block in own.ran if block in own.lost or block in base.lost])
        comparison = Comparison(
            arm["id"], study["baseline"], spec.better, planned, missing, (0, 0), role(run, arm, trials),
            study.get("margin") if asked else None,
        )  # fmt: skip
        return compare(comparison, pairs, study.get("precision") is not None, replica)

    def has(own: Guests) -> bool:
        return bool(own.values) or (asked and bool(own.lost))

    others = [arm for arm in study["arms"] if arm["id"] != study["baseline"] and has(guests[arm["id"]])]
    replica = next((arm for arm in others if arm.get("replica_of") == study["baseline"]), None)
    floor = against(replica, None) if replica else None
    return CaseMetric(spec, arms, [against(arm, floor) for arm in others] if has(base) else [])
