"""What tare found beside what was made again: figure by figure."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .leaves import WORDS, Left, Near

# Relative difference up to which two figures are the same.
WITHIN = 1e-9
# Probabilities and differences of nearly equal figures have lost digits: what is nearer than this is the same.
ABSOLUTE = 1e-14


@dataclass
class Outcome:
    """Figures by what came of them."""

    checked: int = 0
    statements: int = 0
    left: Counter[str] = field(default_factory=Counter)
    near: Counter[str] = field(default_factory=Counter)
    mismatches: list[dict[str, Any]] = field(default_factory=list)

    def differs(self, path: str, theirs: Any, ours: Any, relative: float | None = None) -> None:
        self.mismatches.append({"figure": path, "tare": theirs, "again": ours, "relative": relative})


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def numbers(value: Any) -> int:
    """Numeric leaves below a place."""
    if isinstance(value, dict):
        return sum(map(numbers, value.values()))
    return sum(map(numbers, value)) if isinstance(value, list) else int(is_number(value))


def compare(theirs: Any, ours: Any, outcome: Outcome, path: str = "") -> None:
    """Every leaf of `theirs` with that of `ours`."""
    if isinstance(ours, Left):
        leave(theirs, ours, outcome, path)
    elif isinstance(ours, Near):
        near(theirs, ours, outcome, path)
    elif isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs:
            place = f"{path}.{key}" if path else key
            compare(theirs[key], ours.get(key, Left(f"no second path: {general(place)}")), outcome, place)
        for key in ours.keys() - theirs.keys():
            if ours[key] is not None and ours[key] is not WORDS:
                outcome.differs(f"{path}.{key}", None, plain(ours[key]))
    elif isinstance(theirs, list) and isinstance(ours, (list, tuple)):
        compare_lists(theirs, list(ours), outcome, path)
    elif is_number(theirs) and is_number(ours):
        number(theirs, ours, outcome, path)
    elif type(theirs) is type(ours) and theirs == ours:
        outcome.statements += theirs is not None
    else:
        outcome.differs(path, theirs if numbers(theirs) < 8 else "several figures", plain(ours))


def compare_lists(theirs: list[Any], ours: list[Any], outcome: Outcome, path: str) -> None:
    if len(theirs) != len(ours):
        outcome.differs(f"{path}, number of entries", len(theirs), len(ours))
        return
    for at, (one, other) in enumerate(zip(theirs, ours)):
        compare(one, other, outcome, f"{path}[{name_of(one, at)}]")


def name_of(entry: Any, at: int) -> str:
    """An entry by its name where it has one, else by its place."""
    if isinstance(entry, dict):
        spec = entry.get("spec")
        named = spec.get("id") if isinstance(spec, dict) else entry.get("id", entry.get("arm"))
        if isinstance(named, str):
            return named
    return str(at)


def number(theirs: float, ours: float, outcome: Outcome, path: str) -> None:
    off = relative(theirs, ours)
    # What is counted is the same or is not.
    same = theirs == ours if isinstance(theirs, int) else off <= WITHIN or abs(theirs - ours) <= ABSOLUTE
    if same:
        outcome.checked += 1
    else:
        outcome.differs(path, theirs, ours, off)


def relative(theirs: float, ours: float) -> float:
    if theirs == ours:
        return 0.0
    largest = max(abs(theirs), abs(ours))
    return abs(theirs - ours) / largest if math.isfinite(largest) else math.inf


def near(theirs: Any, ours: Near, outcome: Outcome, path: str) -> None:
    off = relative(theirs, ours.value) if is_number(theirs) else math.inf
    if off <= ours.within:
        outcome.near[ours.reason] += 1
    else:
        outcome.differs(path, theirs, ours.value, off)


def leave(theirs: Any, ours: Left, outcome: Outcome, path: str) -> None:
    if ours is WORDS:
        if theirs is None:
            outcome.differs(path, None, "words")
        elif numbers(theirs):
            outcome.left[f"no second path: {general(path)}"] += numbers(theirs)
        return
    if numbers(theirs):
        outcome.left[ours.reason] += numbers(theirs)


def general(path: str) -> str:
    """A place without the names of its entries."""
    return re.sub(r"\[[^\]]*\]", "[]", path)


def plain(value: Any) -> Any:
    if isinstance(value, Near):
        return value.value
    if isinstance(value, Left):
        return value.reason or "words"
    return value if not isinstance(value, (dict, list, tuple)) else "several figures"
