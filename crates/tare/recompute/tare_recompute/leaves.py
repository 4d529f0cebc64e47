"""Marks for places of findings that are not made again as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Left:
    """Nothing below this place is made again; why, in a few words."""

    reason: str


@dataclass(frozen=True)
class Near:
    """A figure of a search that ends at a stated distance from its goal: equal to so much, relative."""

    value: float
    within: float
    reason: str


# Words, whatever they are: they state figures that are made again elsewhere.
WORDS = Left("")


def or_words(condition: Any) -> Left | None:
    """Words where there is something to say, else nothing."""
    return WORDS if condition else None
