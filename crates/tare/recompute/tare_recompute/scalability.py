"""Operations a second against guests or load: a line with a cap, and the universal scalability law, by least squares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize

from .leaves import WORDS, Left, Near

LEVELS_MIN = 4
BEND_MIN = 0.05
DRAWN = 120
FITTED = "scalability laws by least squares, to 0.1 % and to 1 % of a knee"
EXACT = Left("residuals of models that go through all points: rounding")
LINE, LAW = "capped line", "universal scalability law"


def rmse(points: np.ndarray, model: np.ndarray) -> float:
    return float(np.sqrt(np.mean((points[:, 1] - model) ** 2)))


def capped(points: np.ndarray) -> tuple[float, float]:
    """Slope and cap of the least squares of min(slope N, cap); no cap where it bends by less than a twentieth."""
    n, x = points[:, 0], points[:, 1]
    levels = np.unique(n)

    def through(knee: float) -> tuple[float, float]:
        at = np.minimum(n, knee)
        slope = float(at @ x / (at @ at))
        return slope, slope * knee

    found = [through(float(knee)) for knee in levels]
    for low, high in zip(levels[:-1], levels[1:]):
        left = n <= low
        slope = float(n[left] @ x[left] / (n[left] @ n[left]))
        cap = float(np.mean(x[~left]))
        if slope > 0 and low <= cap / slope <= high:
            found.append((slope, cap))
    best = min(found, key=lambda line: rmse(points, np.minimum(line[0] * n, line[1])))
    return best if best[0] * levels[-1] >= best[1] * (1 + BEND_MIN) else through(math.inf)


def law(n: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    own, sigma, kappa = parameters
    return own * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def fitted_law(points: np.ndarray) -> np.ndarray:
    """The least squares of all its parameters, none below zero; from several starts."""
    n, x = points[:, 0], points[:, 1]
    first = float(np.max(x / n))
    starts = [(sigma, kappa) for sigma in (1e-4, 0.01, 0.3) for kappa in (0.0, 1e-6, 1e-3)]
    tried = [
        optimize.least_squares(
            lambda own: law(n, own) - x, (first, *start), bounds=(0, math.inf), x_scale=(first, 0.01, 1e-4), xtol=1e-15, ftol=1e-15, gtol=1e-15
        )
        for start in starts
    ]
    return min(tried, key=lambda one: one.cost).x


def models(own: list[tuple[float, float]], one: str, theirs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The model with the smaller residual first. Curve and knee of the law are of tare's parameters, which are near."""
    points = np.array(own, dtype=float).reshape(-1, 2)
    usable = len(points) > 0 and bool(np.all(np.isfinite(points))) and bool(np.all(points[:, 0] > 0)) and bool(np.all(points[:, 1] >= 0))
    if not usable or len(np.unique(points[:, 0])) < LEVELS_MIN or not np.any(points[:, 1]):
        return []
    found = [line_model(points, one)]
    known = next((model for model in theirs if model["name"] == LAW), None)
    if known is not None:
        found.append(law_model(points, one, known))
    residuals = {model["name"]: model["rmse"].value if isinstance(model["rmse"], Near) else model["rmse"] for model in found}
    scale = 1e-9 * float(np.max(points[:, 1]))
    if max(residuals.values()) < scale:
        # Both go through all points.
        found = [{**model, "rmse": EXACT} for model in found]
    if max(residuals.values()) - min(residuals.values()) < scale:
        # Rounding decides which comes first.
        names = [model["name"] for model in theirs]
        return sorted(found, key=lambda model: names.index(model["name"]) if model["name"] in names else 0)
    return sorted(found, key=lambda model: residuals[model["name"]])


def line_model(points: np.ndarray, one: str) -> dict[str, Any]:
    slope, cap = capped(points)
    most = float(np.max(points[:, 0]))
    knee = cap / slope if slope else math.inf
    seen = knee < most
    article = "an" if one[0] in "aeio" else "a"
    parameters = {f"operations a second of {article} {one}": slope}
    if seen:
        parameters["cap, operations a second"] = cap
    at = most * np.arange(DRAWN + 1) / DRAWN
    return {
        "name": LINE,
        "formula": WORDS,
        "parameters": parameters,
        "rmse": rmse(points, np.minimum(slope * points[:, 0], cap)),
        "knee": knee if seen else None,
        "curve": [[float(n), float(min(slope * n, cap))] for n in at],
    }


def law_model(points: np.ndarray, one: str, theirs: dict[str, Any]) -> dict[str, Any]:
    name = f"lambda, operations a second of one {one}"
    own, most = fitted_law(points), float(np.max(points[:, 0]))
    residual = rmse(points, law(points[:, 0], own))
    at = most * np.arange(DRAWN + 1) / DRAWN
    given = np.array([theirs["parameters"][key] for key in (name, "sigma", "kappa")])
    knee = math.sqrt((1 - given[1]) / given[2]) if given[2] > 0 and given[1] < 1 else math.inf
    # Parameters trade off where the law is flat: what it says of the points is what must agree.
    apart = np.max(np.abs(law(points[:, 0], given) - law(points[:, 0], own)) / np.max(points[:, 1]))
    within = math.inf if apart < 1e-3 else 1e-3
    return {
        "name": LAW,
        "formula": WORDS,
        "parameters": {key: Near(float(value), within, FITTED) for key, value in zip((name, "sigma", "kappa"), own)},
        "rmse": Near(residual, 1e-3, FITTED),
        "knee": knee if knee < most else None,
        "curve": [[float(n), float(law(n, given)) if n > 0 else 0.0] for n in at],
    }
