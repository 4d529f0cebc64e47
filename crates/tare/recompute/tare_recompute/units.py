"""Lengths of time, rates and sizes as plans write them."""

from __future__ import annotations

import re
from typing import Any

TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parts(text: str) -> tuple[float, str]:
    found = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", text)
    if found is None:
        raise ValueError(f"`{text}` is no number with a unit")
    return float(found[1]), found[2]


def nanoseconds(text: str) -> int:
    number, unit = parts(text)
    return round(number * TIMES[unit or "ns"])


def size(text: Any) -> int:
    if isinstance(text, int):
        return text
    number, unit = parts(text)
    return round(number * SIZES[unit or "B"])


def rate(text: Any) -> float:
    """Arrivals a second."""
    return float(text) if isinstance(text, (int, float)) else float(text.split("/")[0])


def load_number(load: dict[str, Any]) -> float:
    """Clients, or arrivals a second."""
    return float(load["closed"]["clients"]) if "closed" in load else rate(load["open"]["rate"])
