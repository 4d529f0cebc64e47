#!/usr/bin/env python3
"""Makes change_points.json: where Apache Otava finds changes in seeded series, for the tests of this crate.

    python3 -m venv /tmp/otava && /tmp/otava/bin/pip install apache-otava==0.8.0
    /tmp/otava/bin/python change_points.py > change_points.json

`otava.analysis` alone is used, which needs no more than NumPy and SciPy.
"""
import json
import numpy as np
from otava.analysis import TTestSignificanceTester, compute_change_points, split

rng = np.random.default_rng(20261126)
NOISE = {"normal": lambda n: rng.normal(0, 1, n), "heavy": lambda n: rng.standard_t(2, n),
         "skewed": lambda n: rng.exponential(1, n), "coarse": lambda n: np.round(rng.normal(0, 1, n))}


def levels(n, steps, size):
    """As many steps at random places, each of a random size up to `size` standard deviations."""
    at = sorted(rng.choice(np.arange(1, n), size=min(steps, n - 1), replace=False)) if n > 1 else []
    out = np.zeros(n)
    for place in at:
        out[place:] += rng.uniform(-size, size)
    return out


def outliers(n, how_many):
    out = np.zeros(n)
    out[rng.choice(n, size=min(how_many, n), replace=False)] = 15
    return out


def series():
    for kind in NOISE:
        for n in (3, 4, 6, 10, 20, 35, 50, 80, 130):
            for steps in (0, 1, 2):
                yield kind, NOISE[kind](n) + levels(n, steps, 8)
    for n in (20, 60, 110):
        yield "outliers", rng.normal(0, 1, n) + outliers(n, 2)
        yield "drift", rng.normal(0, 1, n) + np.arange(n) * 0.1
        yield "no noise", levels(n, 3, 8)
        yield "many steps", rng.normal(0, 0.3, n) + levels(n, n // 10, 8)


def merged(points, values, p):
    """Otava's merge step, with the p-values of both neighbours of a removed point computed anew, as Fleming et al. write it: 0.8.0 computes
    that of the left one no more (said in apache/otava pull request 96)."""
    tester = TTestSignificanceTester(p)
    while points:
        intervals = tester.get_intervals(points)
        points = [tester.change_point(own.to_candidate(), values, intervals) for own in points]
        weakest = max(points, key=lambda own: own.stats.pvalue)
        if weakest.stats.pvalue < p:
            break
        points.remove(weakest)
    return points


def changes(values, window, p):
    as_it_is, _ = compute_change_points(values, window_len=window, max_pvalue=p)
    candidates = split(values, window, p * 10 if p < 0.05 else p * 2)
    found = merged(candidates, values, p)
    return {"window": window, "p": p, "at": [int(own.index) for own in found],
            "p_values": [float(own.stats.pvalue) for own in found],
            "otava": [int(own.index) for own in as_it_is]}


rows = [(kind, [round(float(value), 3) for value in values]) for kind, values in series()]
rules = ((50, 0.001), (20, 0.05))
rows = [{"kind": kind, "values": values, "by": [changes(values, *rule) for rule in rules]} for kind, values in rows]
print("{\"otava\": \"0.8.0\", \"series\": [\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]}")
