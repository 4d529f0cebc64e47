"""The distribution of what instances hold, from loads that held and loads that did not (ADR 0013).

Logarithms of thresholds are normal with mean `mu` and standard deviation `sigma`; a share of the variance (0, 0.5 or 0.9) is of the
block. ln(sigma) has a normal prior of mean -3 and deviation 1.1, from -6.9 to 1.1. Where tare searches by sections, this takes the
largest of finer and finer grids.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Callable

import numpy as np
from scipy import optimize, special, stats

PRIOR = (-3.0, 1.1)
SPREADS = (-6.9, 1.1)
SHARES = (0.0, 0.5, 0.9)
EXCESS = 1.15
# The standard normal deviate that 95 of 100 exceed.
SURE = -1.6448536269514722
# The trapezoid rule, finer than tare's: of a steep function it is better than that of Gauss and Hermite.
STEP = 0.2
NODES = STEP * np.arange(-25, 26)
WEIGHTS = stats.norm.logpdf(NODES) + math.log(STEP)


@dataclass(frozen=True)
class Seen:
    """Logarithms of a load that an instance held, and of one that it did not; infinite where none is known."""

    block: int
    low: float
    high: float


def ln_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Logarithm of the probability of a standard normal number between the two."""
    flip = low + high > 0
    near = special.log_ndtr(np.where(flip, -low, high))
    far = special.log_ndtr(np.where(flip, -high, low))
    with np.errstate(divide="ignore"):
        return near + np.log1p(-np.exp(np.minimum(far - near, 0.0)))


class Fit:
    """The most likely distribution of all that was seen."""

    def __init__(self, seen: list[Seen]) -> None:
        by_block: dict[int, list[Seen]] = {}
        for one in seen:
            by_block.setdefault(one.block, []).append(one)
        self.blocks = [np.array([[one.low, one.high] for one in own]) for own in by_block.values()]
        self.alone = all(len(own) == 1 for own in self.blocks)
        ends = [end for one in seen for end in (one.low, one.high)]
        self.below = any(math.isfinite(one.low) for one in seen)
        self.above = any(math.isfinite(one.high) for one in seen)
        finite = [end for end in ends if math.isfinite(end)]
        self.range = (min(finite) - 1, max(finite) + 1)
        self.profile = functools.lru_cache(maxsize=None)(self.most_likely)
        self.mu = math.nan
        self.top, self.sigma = -math.inf, math.nan
        if self.below and self.above:
            # Each share by itself: together they may have a hump each.
            found = [argmax(lambda mu, share=share: self.with_share(share, 0.0, mu)[0], *self.range) for share in self.shares]
            self.mu = max(found, key=lambda mu: self.profile(0.0, mu)[1])
            self.sigma, self.top = self.profile(0.0, self.mu)

    @property
    def n(self) -> int:
        return len(self.blocks)

    @property
    def excess(self) -> float:
        return 1.0 if self.alone else EXCESS

    def likelihood(self, mu: np.ndarray, sigma: np.ndarray, share: float) -> np.ndarray:
        """Logarithms, without the prior; both of one length."""
        total = np.zeros(len(sigma))
        for own in self.blocks:
            if share == 0 or len(own) == 1:
                total += chances(own, mu[:, None], sigma[:, None]).sum(axis=-1)[:, 0]
                continue
            moved = mu[:, None] + NODES * (sigma * math.sqrt(share))[:, None]
            within = np.broadcast_to((sigma * math.sqrt(1 - share))[:, None], moved.shape)
            total += special.logsumexp(chances(own, moved, within).sum(axis=-1) + WEIGHTS, axis=1)
        return total

    @property
    def shares(self) -> tuple[float, ...]:
        return SHARES[:1] if self.alone else SHARES

    def with_share(self, share: float, z: float, at: float) -> tuple[float, float]:
        """The penalised likelihood of the most likely spread where the quantile `z` lies at `at`, and the spread's logarithm."""
        low, high = SPREADS
        for _ in range(3):
            grid = np.linspace(low, high, 33)
            sigma = np.exp(grid)
            value = self.likelihood(at - z * sigma, sigma, share) - ((grid - PRIOR[0]) / PRIOR[1]) ** 2 / 2
            best, step = int(np.argmax(value)), (high - low) / 32
            low, high = max(grid[best] - step, SPREADS[0]), min(grid[best] + step, SPREADS[1])
        return float(value[best]), float(grid[best])

    def most_likely(self, z: float, at: float) -> tuple[float, float]:
        """The most likely spread where the quantile `z` lies at `at`, and the penalised likelihood there."""
        top, spread = max(self.with_share(share, z, at) for share in self.shares)
        return math.exp(spread), top

    def loss(self, z: float, at: float) -> float:
        return max(2 * (self.top - self.profile(z, at)[1]), 0.0) / self.excess

    def limit(self, alpha: float) -> float:
        return loss_of(float(stats.t.ppf(1 - alpha / 2, self.n - 1)), self.n)

    def end(self, z: float, sign: int, limit: float) -> float:
        """Where the loss of the quantile passes the limit; infinite where nothing bounds it."""
        if not (self.below if sign < 0 else self.above):
            return sign * math.inf
        start = self.mu + z * self.sigma
        return passes(start, sign * self.sigma / math.sqrt(self.n), limit, lambda at: self.loss(z, at))

    def quantile(self, z: float, alpha: float) -> tuple[float, float, float]:
        """Its logarithm with the ends of its interval."""
        value = self.mu + z * self.sigma
        if self.n < 2:
            return value, -math.inf, math.inf
        limit = self.limit(alpha)
        return value, self.end(z, -1, limit), self.end(z, 1, limit)


def chances(own: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return ln_between((own[:, 0] - mu[..., None]) / sigma[..., None], (own[:, 1] - mu[..., None]) / sigma[..., None])


def argmax(of: Callable[[float], float], low: float, high: float) -> float:
    """Of a function of one hump."""
    grid = np.linspace(low, high, 65)
    best = int(np.argmax([of(float(at)) for at in grid]))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, 64)])
    return float(optimize.minimize_scalar(lambda at: -of(float(at)), bounds=bounds, method="bounded", options={"xatol": 1e-5}).x)


def passes(start: float, step: float, limit: float, loss: Callable[[float], float]) -> float:
    """Where the loss passes the limit in the direction of the step, which is doubled 23 times."""
    within = start
    for doubling in range(24):
        beyond = start + step * 2**doubling
        if loss(beyond) > limit:
            return float(optimize.brentq(lambda at: loss(at) - limit, within, beyond, xtol=1e-5))
        within = beyond
    return math.copysign(math.inf, step)


def loss_of(t: float, n: int) -> float:
    return n * math.log1p(t * t / (n - 1))


def p_of(loss: float, n: int) -> float:
    """Two-sided probability of a loss so large, by Student's t over n blocks."""
    return min(2 * float(stats.t.sf(math.sqrt((n - 1) * math.expm1(loss / n)), n - 1)), 1.0)


def shift(arm: Fit, base: Fit, alpha: float) -> tuple[float, float, float]:
    """Ends of how far the arm lies above the baseline, on logarithms, and the probability of no difference."""
    n = min(arm.n, base.n)
    if n < 2:
        return -math.inf, math.inf, 1.0
    limit = loss_of(float(stats.t.ppf(1 - alpha / 2, n - 1)), n)
    value = arm.mu - base.mu
    return value - reach(arm, base, limit), value + reach(base, arm, limit), p_equal(arm, base, n)


def reach(down: Fit, up: Fit, limit: float) -> float:
    """How far the one may be moved down and the other up, together, until the loss of both passes the limit."""
    most = down.mu - down.end(0.0, -1, limit), up.end(0.0, 1, limit) - up.mu
    if math.isinf(sum(most)):
        return math.inf

    def loss(distance: float) -> float:
        least, largest = max(distance - most[1], 0.0), min(distance, most[0])

        def of(part: float) -> float:
            return down.loss(0.0, down.mu - part) + up.loss(0.0, up.mu + distance - part)

        if largest - least < 1e-12:
            return of(least)
        return float(optimize.minimize_scalar(of, bounds=(least, largest), method="bounded", options={"xatol": 1e-3}).fun)

    return float(optimize.brentq(lambda distance: loss(distance) - limit, 0.0, sum(most), xtol=1e-4))


def p_equal(arm: Fit, base: Fit, n: int) -> float:
    low, high = sorted((arm.mu, base.mu))

    def of(mu: float) -> float:
        return arm.profile(0.0, mu)[1] + base.profile(0.0, mu)[1]

    top = of(argmax(of, low, high)) if high - low > 1e-9 else of(low)
    loss = 2 * (arm.top + base.top - max(top, of(low), of(high))) / max(arm.excess, base.excess)
    return p_of(max(loss, 0.0), n)
