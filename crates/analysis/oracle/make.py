#!/usr/bin/env python3
"""Makes expected.json: what SciPy says about fixed data, for the tests of this crate.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install scipy && /tmp/oracle/bin/python make.py > expected.json

Intervals of rank tests are made by inverting SciPy's exact tests, not by the formulas that this crate uses.
"""
import json
import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(20260101)
ALPHA = 0.05


def inverted(candidates, p_value):
    """Ends of the set of shifts that a test does not reject; rejection can change only at candidates."""
    c = np.unique(candidates)
    between = np.concatenate([[c[0] - 1], (c[:-1] + c[1:]) / 2, [c[-1] + 1]])
    kept = [p_value(s) > ALPHA for s in between]
    if kept[0] or kept[-1]:
        return None
    first = kept.index(True)
    last = len(kept) - 1 - kept[::-1].index(True)
    return float(c[first - 1]), float(c[last])


def walsh(x):
    return np.array([(x[i] + x[j]) / 2 for i in range(len(x)) for j in range(i, len(x))])


def one_sample(n):
    x = rng.normal(0.02, 0.01, n)
    out = {"x": x.tolist()}
    if n >= 6:
        w = walsh(x)
        ends = inverted(w, lambda s: stats.wilcoxon(x - s, method="exact").pvalue)
        out["hodges_lehmann"] = float(np.median(w))
        out["low"], out["high"] = ends
    t = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    out["t_low"], out["t_high"] = float(t.low), float(t.high)
    return out


def two_sample(m, n):
    x, y = rng.normal(0, 1, m), rng.normal(0.5, 2, n)
    d = (y[:, None] - x[None, :]).ravel()
    ends = inverted(d, lambda s: stats.mannwhitneyu(y - s, x, method="exact").pvalue)
    welch = stats.ttest_ind(y, x, equal_var=False).confidence_interval(0.95)
    return {"x": x.tolist(), "y": y.tolist(), "shift": float(np.median(d)),
            "low": ends and ends[0], "high": ends and ends[1],
            "welch_low": float(welch.low), "welch_high": float(welch.high)}


def trend(n, slope, ties):
    y = 100 + slope * np.arange(n) + rng.normal(0, 1, n)
    y = np.round(y) if ties else y
    s = stats.kendalltau(np.arange(n), y, method="asymptotic", variant="b")
    return {"y": y.tolist(), "slope": float(stats.theilslopes(y).slope), "p": float(s.pvalue)}


t_quantiles = [[p, df, float(stats.t.ppf(p, df))] for df in (1, 2, 3, 4, 9, 29, 200) for p in (0.8, 0.9, 0.975, 0.984375, 0.995)]
print(json.dumps({
    "scipy": scipy.__version__,
    "t_quantiles": t_quantiles,
    "one_sample": [one_sample(n) for n in (2, 3, 5, 6, 7, 10, 15, 25, 40)],
    "two_sample": [two_sample(m, n) for m, n in ((3, 3), (4, 4), (5, 5), (3, 8), (6, 9), (12, 10))],
    "trend": [trend(12, 0.0, False), trend(40, 0.05, False), trend(60, -0.02, True)],
}, indent=1))
