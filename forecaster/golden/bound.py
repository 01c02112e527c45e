#!/usr/bin/env python3
"""Reference values for forecaster/src/bound: the maximum of correlated normals, shrunk correlations, and the three
aggregations of a small pool. Needs numpy and scipy; prints what the tests state and writes correlated.csv."""
import numpy as np
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm


def max_quantile(p, steps, rho):
    cov = np.full((steps, steps), rho) + (1 - rho) * np.eye(steps)
    mvn = multivariate_normal(np.zeros(steps), cov, maxpts=4_000_000, abseps=1e-9, releps=1e-9, seed=1)
    return brentq(lambda z: mvn.cdf(np.full(steps, z)) - p, 1.0, 2.5, xtol=1e-6)


for rho in (0.3, 0.5, 0.9):
    print(f"max of 4, rho {rho}: {max_quantile(0.9, 4, rho):.4f}")

# Two organizations, two steps.
mean = np.array([[10.0, 12.0], [20.0, 19.0]])
sd = np.array([[1.0, 2.0], [3.0, 3.0]])
z = norm.ppf(0.9)
print("sum of bounds, H = 1:", repr((mean + z * sd)[:, :1].max(1).sum()), " H = 2:", repr((mean + z * sd).max(1).sum()))
independent = mean.sum(0) + z * np.sqrt((sd**2).sum(0))
print("independent, H = 1:", repr(independent[0]), " H = 2:", repr(independent.max()))
r, rho = 0.5, 0.6
total_sd = np.sqrt((sd**2).sum(0) + 2 * r * sd[0] * sd[1])
z2 = max_quantile(0.9, 2, rho)
print("pooled, H = 1:", repr((mean.sum(0) + z * total_sd)[0]), " H = 2:", repr((mean.sum(0) + z2 * total_sd).max()), "z2", z2)

# Shrinkage toward the mean correlation, Schaefer and Strimmer 2005 (target of constant correlation).
rng = np.random.default_rng(3)
x = rng.standard_normal((40, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0, 0, 1.0]])
n = 40
x = x.round(6)
np.savetxt("correlated.csv", x, delimiter=",", fmt="%.6f")
R = np.corrcoef(x.T)
off = R[~np.eye(3, dtype=bool)]
mean_r = off.mean()
var = (1 - off**2) ** 2 / (n - 1)
lam = min(1.0, var.sum() / ((off - mean_r) ** 2).sum())
shrunk = (1 - lam) * R + lam * (mean_r + (1 - mean_r) * np.eye(3))
print("lambda", repr(lam), "shrunk", shrunk[0, 1], shrunk[0, 2], shrunk[1, 2])
