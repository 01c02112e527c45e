#!/usr/bin/env python3
"""Writes orglinear.json: OrgLinear computed step by step with numpy as the paper states it (Eqs. 1 to 8), with the
corrections of the design: decompose each window, attend over the attributes, concatenate, project. The Rust model folds
the decomposition into its heads, so agreement is no matter of course. Both variants of padding, attention and calendar."""
import json
import numpy as np
from scipy.stats import norm

L, H, D, A, KERNEL = 10, 3, 2, 4, 5
SERIES = [("c1", "A10", "o1"), ("c1", "A10", "o2"), ("c1", "H800", "o1")]
rng = np.random.default_rng(5)


def f32(x):
    return np.asarray(x, np.float32).astype(float)


def draw(*shape):
    return f32(rng.normal(0, 0.5, shape))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def run(padding, before, each_target):
    hours = H if each_target else 1
    width = L + (3 + 3 * hours) * D
    w = {"embedding.gpu_model": draw(2, D), "embedding.cluster": draw(1, D), "embedding.organization": draw(2, D),
         "embedding.hour_of_day": draw(24, D), "embedding.weekday": draw(7, D), "embedding.day_off": draw(2, D)}
    for name, out in (("query", A), ("key", A), ("value", D)):
        w[f"attention.{name}.weight"], w[f"attention.{name}.bias"] = draw(D, out), draw(out)
    for name in ("cycle", "trend", "stddev"):
        w[f"{name}.weight"], w[f"{name}.bias"] = draw(width, H), draw(H)
    x, y = draw(3, L), draw(3, H)
    calendar = [[[5, 6, 1], [6, 6, 1], [23, 6, 1]], [[22, 4, 0], [23, 4, 0], [0, 5, 1]], [[0, 0, 0], [1, 0, 0], [2, 0, 0]]]
    counted = [[1, 1, 1], [1, 0, 1], [0, 1, 1]]
    places = {"A10": 0, "H800": 1, "c1": 0, "o1": 0, "o2": 1}
    mu, sigma = np.zeros((3, H)), np.zeros((3, H))
    for n, (cluster, model, organization) in enumerate(SERIES):
        half = KERNEL // 2
        padded = np.pad(x[n], half, mode="reflect" if padding == "reflection" else "edge")
        trend = np.array([padded[k:k + KERNEL].mean() for k in range(L)])  # Eq. 1
        cycle = x[n] - trend  # Eq. 2
        tokens = np.stack([w["embedding.gpu_model"][places[model]], w["embedding.cluster"][places[cluster]], w["embedding.organization"][places[organization]]])
        q, k, v = (tokens @ w[f"attention.{a}.weight"] + w[f"attention.{a}.bias"] for a in ("query", "key", "value"))
        attention = softmax(q @ k.T / np.sqrt(A)) if before else softmax(q @ k.T) / np.sqrt(A)
        c_o = (attention @ v).reshape(-1)  # Eq. 4
        encoded = calendar[n][:hours]  # all hours of day, then weekdays, then days off, each hour by hour
        c_t = np.concatenate([np.concatenate([w["embedding.hour_of_day"][h], w["embedding.weekday"][d], w["embedding.day_off"][o]]) for h, d, o in encoded])  # Eq. 3
        context = np.concatenate([c_o, c_t])
        head = lambda part, name: np.concatenate([part, context]) @ w[f"{name}.weight"] + w[f"{name}.bias"]
        mu[n] = head(cycle, "cycle") + head(trend, "trend")  # Eqs. 5, 6
        sigma[n] = np.log1p(np.exp(head(x[n], "stddev"))) + 1e-3  # Eq. 7, kept off zero
    z = (y - mu) / sigma
    each = 0.5 * np.log(2 * np.pi) + np.log(sigma) + 0.5 * z**2  # Eq. 8 with its log sigma
    loss = (each * counted).sum() / np.sum(counted)
    score = sigma * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    crps = (score * counted).sum() / np.sum(counted)
    return {"padding": padding, "before_softmax": before, "each_target": each_target, "inputs": x.tolist(), "targets": y.tolist(),
            "counted": counted, "calendar": calendar, "weights": {k: {"shape": v.shape, "values": v.reshape(-1).tolist()} for k, v in w.items()},
            "mean": mu.tolist(), "stddev": sigma.tolist(), "loss": float(loss), "crps": float(crps)}


cases = [run("reflection", True, True), run("edge", False, False)]
with open("orglinear.json", "w") as f:
    json.dump({"series": SERIES, "lookback": L, "horizon": H, "embedding_width": D, "attention_width": A, "moving_average": KERNEL, "cases": cases}, f)
