#!/usr/bin/env python3
"""Writes scores.csv (series, step, mean, stddev, q0.5, q0.9, q0.95, actual) and scores.expected, the scores of these rows
computed with numpy and scipy alone. Ties, zero demand and zero deviations are among them."""
import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

rng = np.random.default_rng(42)
rows = []
for series in range(4):
    for k in range(30):
        mean = float(rng.uniform(0, 40)) if series else 0.0
        sd = float(rng.uniform(0.5, 6)) if k % 7 else 0.0
        q = [max(0.0, mean - 0.7 + sd * norm.ppf(p)) for p in (0.5, 0.9, 0.95)]
        actual = float(max(0, round(rng.normal(mean, 4)))) if series else 0.0
        if k % 5 == 0:
            actual = q[1]
        rows.append([series, k % 4 + 1, mean, sd, *q, actual])
a = np.array(rows)
np.savetxt("scores.csv", a, delimiter=",", fmt="%.17g")
s, mean, sd, q50, y = a[:, 0], a[:, 2], np.maximum(a[:, 3], 1e-3), a[:, 4], a[:, 7]
em, ea = np.abs(q50 - y), np.abs(mean - y)
out = {"mae_median": em.mean(), "mae_mean": ea.mean(), "rmse_median": np.sqrt((em**2).mean()), "rmse_mean": np.sqrt((ea**2).mean())}
out["mape_median"] = (em[y > 0] / y[y > 0]).mean()
out["nmae_median"] = np.mean([em[s == k].mean() / y[s == k].mean() for k in np.unique(s) if y[s == k].mean() > 0.5])
for p, c in ((0.9, 5), (0.95, 6)):
    out[f"cov{p}"] = (y <= a[:, c] + 1e-6).mean()
for p, c in ((0.9, 5), (0.95, 6)):
    miss = [max(0, p - (y[s == k] <= a[s == k, c] + 1e-6).mean(), (y[s == k] < a[s == k, c] - 1e-6).mean() - p) for k in np.unique(s)]
    out[f"maqe{p}"] = np.mean(miss)
for p, c in ((0.9, 5), (0.95, 6)):
    e = y - a[:, c]
    out[f"pin{p}"] = np.where(e >= 0, p * e, (p - 1) * e).mean()


def crps(y, m, s):  # by its definition, the integral of (F(x) - 1{x >= y})^2, in units of s around m
    z = (y - m) / s
    low = quad(lambda t: norm.cdf(t) ** 2, -12, min(max(z, -12), 12), epsabs=1e-13, epsrel=1e-12, limit=400)[0]
    high = quad(lambda t: norm.sf(t) ** 2, min(max(z, -12), 12), 12, epsabs=1e-13, epsrel=1e-12, limit=400)[0]
    return s * (low + high + max(0.0, abs(z) - 12))


out["crps"] = np.mean([crps(*v) for v in zip(y, mean, sd)])
out["nll"] = -norm.logpdf(y, mean, sd).mean()
with open("scores.expected", "w") as f:
    f.writelines(f"{k} {float(v)!r}\n" for k, v in out.items())
