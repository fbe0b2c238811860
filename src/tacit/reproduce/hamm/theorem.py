"""Theorem 4 as a bound beside what is measured: the risk of the noisy soft classifier, over that of a reference.

R(w_p) <= R(w_0) + 4 d^2 (c + lambda) log^2(d / delta_p) / (lambda^2 M^2 epsilon^2) + 16 (32 + log(1 / delta_s)) /
(lambda N) + (lambda / 2) ||w_0||^2, with c = 1/4 for logistic loss. R is the expected loss under the ensemble's own
votes: it is measured on auxiliary rows that the classifier did not see. w_0 is the fit of those rows, the hardest one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.methods.cohort import Promise
from tacit.methods.ensemble.label import fit_labels, lengthened
from tacit.rand import Rng
from tacit.reproduce.hamm.crowd import entity, learn
from tacit.reproduce.hamm.figure import network_crowd
from tacit.reproduce.plot import Panel, PlotLine, panels_plot
from tacit.reproduce.result import (
    Claim,
    Finding,
    Number,
    NumberTable,
    Reproduction,
    ResultCell,
    Summary,
    Values,
    judged,
)

Floats = npt.NDArray[np.float64]

LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FAILURE = 0.05  # delta_p = delta_s
SMOOTHNESS = 0.25  # c: of logistic loss


def bound(d: int, N: int, M: int, regularisation: float, epsilon: float, norm: float) -> float:
    """What theorem 4 allows R(w_p) over R(w_0)."""
    noise = 4 * d**2 * (SMOOTHNESS + regularisation) * math.log(d / FAILURE) ** 2
    noise /= (regularisation * M * epsilon) ** 2
    sampling = 16 * (32 + math.log(1 / FAILURE)) / (regularisation * N)
    return noise + sampling + regularisation / 2 * norm**2


def excess_risks(*, crowd: dict[str, Any], epsilon: float, draws: int, seed: int) -> list[dict[str, float]]:
    """At each lambda: the 95th hundredth of the excess over `draws` of the printed noise, and the bound."""
    made = network_crowd(**crowd, seed=seed)
    Z, shares = lengthened(made.auxiliary, 1.0) / math.sqrt(2), learn(made).shares  # rows of norm 1
    half = len(Z) // 2
    train, other = slice(None, half), slice(half, None)
    release = entity(made, "soft", Promise(method="Ensemble", epsilon=epsilon, calibration="paper"))
    rng, found = Rng.seeded(seed), []

    def risk(w: Floats) -> float:
        scores = Z[other] @ w
        return float(np.mean(np.logaddexp(0, scores) - shares[other, 1] * scores))

    for regularisation in LAMBDAS:
        reference = _fit(Z[other], shares[other], regularisation)
        own = _fit(Z[train], shares[train], regularisation)
        at = replace(release, l2_mean=regularisation, radius=1.0, rows=Z[train])
        excess = [risk(at.noised(own, rng=rng)) - risk(reference) for _ in range(draws)]
        norm = float(np.linalg.norm(reference))
        allowed = bound(Z.shape[1], half, made.n_parties, regularisation, epsilon, norm)
        found.append({"excess": float(np.quantile(excess, 1 - FAILURE)), "bound": allowed})
    return found


def _fit(Z: Floats, shares: Floats, regularisation: float) -> Floats:
    return fit_labels(Z, shares.T @ Z / len(Z), regularisation).theta.ravel()


def _cells(quick: bool) -> list[ResultCell]:
    crowd = {"parties": 1000 if quick else 10_000, "size": 22, "auxiliary": 4000 if quick else 43_000}
    settings = {"crowd": {**crowd, "components": False}, "draws": 20 if quick else 100}
    return [ResultCell(f"epsilon-{e:g}", excess_risks, {**settings, "epsilon": e}) for e in (0.1, 1.0)]


def _summarise(values: Values) -> Summary:
    rows = [
        [key.partition("-")[2], f"{regularisation:g}", f"{point['excess']:.4g}", f"{point['bound']:.4g}"]
        for key, points in values.items()
        for regularisation, point in zip(LAMBDAS, points, strict=True)
    ]
    table = NumberTable(["epsilon", "lambda", "measured excess", "bound"], rows)
    return Summary([table], {"hamm-theorem-4.svg": partial(_picture, values)})


def _picture(values: Values) -> str:
    panels = []
    for key, points in values.items():
        lines = {
            "measured": PlotLine(LAMBDAS, [max(point["excess"], 1e-6) for point in points]),
            "theorem 4": PlotLine(LAMBDAS, [point["bound"] for point in points], document=True),
        }
        title, marks = key.replace("-", " "), {"a model of zeros": math.log(2)}
        panels.append(Panel(lines=lines, marks=marks, x="lambda", y="excess risk", title=title, log_x=True, log_y=True))
    return panels_plot(panels, figure_id="hamm-theorem-4", title="Excess risk, and theorem 4's bound")


def _kept(values: Values) -> Finding:
    points = [point for found in values.values() for point in found]
    broken = sum(point["excess"] > point["bound"] for point in points)
    nearest = max(point["excess"] / point["bound"] for point in points)
    return judged(
        [not broken], f"exceeded in {broken} of {len(points)} settings; at most {nearest:.2g} of it is reached"
    )


def _says_something(values: Values) -> Finding:
    parts, told = [], []
    for key, points in values.items():
        least = min(point["bound"] for point in points)
        parts.append(least < math.log(2))
        told.append(f"{least:.3g} at {key.replace('-', ' ')}")
    why = f"the least bound over lambda is {'; '.join(told)}; a model of zeros has a risk of 0.693 without any data"
    return judged(parts, f"{why}. O(epsilon^-2 M^-2) hides lambda^-2")


THEOREM_4 = Reproduction(
    name="hamm-theorem-4",
    title="A bound on the risk of the noisy soft classifier",
    setting=(
        "KDD-99, 10,000 parties of 22 records, 21,500 auxiliary rows to learn from and 21,500 to measure on, rows "
        "of norm 1 with their intercept; the 95th hundredth of 100 draws of the printed noise, delta_p = delta_s = "
        "0.05."
    ),
    data=("kdd99",),
    numbers=(Number("the bound is a formula; no value of it is given", None, "not given"),),
    cells=_cells,
    summarise=_summarise,
    claims=(
        Claim("The excess of the risk is below the bound, but for a chance of delta_p + delta_s.", _kept),
        Claim("So the classifier converges to the ensemble at the rate O(epsilon^-2 M^-2).", _says_something),
    ),
)
