"""Theorems 4.2 to 4.4 as bounds beside what is measured: on a9a, and on two parties that are unlike each other.

The unlike parties: one has the rows (1, 0), the other (0, 1), all with label 1, n records each. A party's minimiser has
sigma(-w) = 2 lambda w in its coordinate; that of all data has sigma(-w) / 2 = 2 lambda w in each. So the mean of
the models and the model of all data are apart by a number that does not depend on n, while the bound falls with 1/n.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods.averaging.method import Averaging
from tacit.methods.averaging.statistic import Plan
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.rand import Rng
from tacit.reproduce.pathak.figure_2 import AGGREGATES, SPLITS, parties, release, tables
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

SIZES = (100, 1000, 10_000, 100_000, 1_000_000)
LAMBDAS = (1.0, 0.1, 0.01)
EPSILONS = (0.01, 0.1, 0.4)
FAILURE = 0.05  # delta of theorems 4.3 and 4.4: the bound may fail so often
UNLIKE_LAMBDA = 0.01
_SHARED = "pathak-theorem-4.2"  # all three look at the same runs


def objective(w: Floats, X: Floats, y: npt.NDArray[np.int64], regularisation: float) -> float:
    """J(w) = mean log(1 + exp(-y w.x)) + lambda w'w."""
    signs = np.where(y == 1, 1.0, -1.0)
    return float(np.logaddexp(0, -signs * (X @ w)).mean() + regularisation * (w @ w))


def distance_bound(K: int, n_least: int, regularisation: float) -> float:
    """Theorem 4.2: (K - 1) / (n(1) lambda)."""
    return (K - 1) / (n_least * regularisation)


def risk_bound(K: int, n_least: int, regularisation: float, epsilon: float, d: int) -> float:
    """Theorem 4.3: what the empirical risk may exceed that of the fit of all data by."""
    aggregation = (K - 1) ** 2 * (regularisation + 1) / (2 * n_least**2 * regularisation**2)
    scale = d * (regularisation + 1) / (n_least**2 * epsilon * regularisation**2) * math.log(d / FAILURE)
    return aggregation + 2 * scale * d * math.log(d / FAILURE) / epsilon + 2 * (K - 1) * scale


def true_risk_bound(K: int, n_least: int, regularisation: float, epsilon: float, d: int, n: int) -> float:
    """Theorem 4.4: twice that of theorem 4.3, and 16 (32 + log(1 / delta)) / (lambda n)."""
    sampling = 16 * (32 + math.log(1 / FAILURE)) / (regularisation * n)
    return 2 * risk_bound(K, n_least, regularisation, epsilon, d) + sampling


# --- cells -----------------------------------------------------------------------------------------------------------


def unlike_parties(*, sizes: list[int], epsilon: float, draws: int, seed: int) -> list[dict[str, float]]:
    """Distance and excess risk of the averaged model for two unlike parties of each size, beside the bounds."""
    schema = Schema.of_arrays(2, ["0", "1"], norm_bound=1.0)
    rng, found = Rng.seeded(seed), []
    for n in sizes:
        X = np.repeat(np.eye(2), n, axis=0)
        y = np.ones(2 * n, dtype=np.int64)
        two = {name: Table.from_arrays(X[k * n :][:n], y[:n], schema) for k, name in enumerate(("a", "b"))}
        measured = _measured(two, X, y, (X, y), UNLIKE_LAMBDA, epsilon, draws, rng)
        found.append(
            {
                **measured,
                "distance_bound": distance_bound(2, n, UNLIKE_LAMBDA),
                "risk_bound": risk_bound(2, n, UNLIKE_LAMBDA, epsilon, 2),
                "true_risk_bound": true_risk_bound(2, n, UNLIKE_LAMBDA, epsilon, 2, 2 * n),
            }
        )
    return found


def adult_parties(*, split: str, regularisation: float, epsilons: list[float], draws: int, seed: int) -> Any:
    """The same on a9a with rows of norm 1, at each epsilon."""
    mine, rng = parties("norm1", split), Rng.seeded(seed)
    train, test = tables("norm1")
    X, y = train.arrays()
    n_least, n = min(SPLITS[split]), sum(SPLITS[split])
    K, d = len(mine), X.shape[1]
    found = []
    for epsilon in epsilons:
        measured = _measured(mine, X, y, test.arrays(), regularisation, epsilon, draws, rng)
        found.append(
            {
                **measured,
                "distance_bound": distance_bound(K, n_least, regularisation),
                "risk_bound": risk_bound(K, n_least, regularisation, epsilon, d),
                "true_risk_bound": true_risk_bound(K, n_least, regularisation, epsilon, d, n),
            }
        )
    return found


def _measured(
    mine: dict[str, Table],
    X: Floats,
    y: npt.NDArray[np.int64],
    test: tuple[Floats, npt.NDArray[np.int64]],
    regularisation: float,
    epsilon: float,
    draws: int,
    rng: Rng,
) -> dict[str, float]:
    """How far the exact mean is from the fit of all data, and the 95th hundredth of the excess risks with noise."""
    n = len(X)
    federation = Federation.from_tables(mine, policy=Policy(not_private=["averaging"]))
    method = Averaging(
        epsilon=epsilon, l2=2 * regularisation * n, fit_intercept=False, colluders=0, calibration="paper"
    )
    plan = federation.terms(method).plan
    assert isinstance(plan, Plan)
    thetas = {name: fit(table.blocks, problem=plan.problem(table.n_records)).theta for name, table in mine.items()}
    mean = np.mean([theta.ravel() for theta in thetas.values()], axis=0)
    whole_problem = Problem(n_features=X.shape[1], l2=2 * regularisation * n, intercept="none")
    whole = fit(lambda: [(X, y)], problem=whole_problem).theta.ravel()
    released = [release(plan, mine, thetas, rng) for _ in range(draws)]

    def excess(rows: tuple[Floats, npt.NDArray[np.int64]]) -> float:
        base = objective(whole, *rows, regularisation)
        return float(np.quantile([objective(w, *rows, regularisation) - base for w in released], 1 - FAILURE))

    return {"distance": float(np.linalg.norm(mean - whole)), "risk": excess((X, y)), "true_risk": excess(test)}


def _cells(quick: bool) -> list[ResultCell]:
    draws = 10 if quick else 100
    sizes = list(SIZES[:3] if quick else SIZES)
    found = [ResultCell("unlike", unlike_parties, {"sizes": sizes, "epsilon": 1.0, "draws": draws}, _SHARED)]
    for split in AGGREGATES[:1] if quick else AGGREGATES:
        for regularisation in LAMBDAS:
            settings = {"split": split, "regularisation": regularisation, "epsilons": list(EPSILONS), "draws": draws}
            found.append(ResultCell(f"a9a-{split}-{regularisation:g}", adult_parties, settings, _SHARED))
    return found


# --- what is shown ---------------------------------------------------------------------------------------------------


def _summarise(name: str, quantity: str, values: Values) -> Summary:
    bound = f"{quantity}_bound"
    unlike = NumberTable(
        ["records of each party", "measured", "bound", "measured / bound"],
        [
            [f"{n:,}", f"{point[quantity]:.4g}", f"{point[bound]:.4g}", f"{point[quantity] / point[bound]:.3g}"]
            for n, point in zip(SIZES, values["unlike"], strict=False)
        ],
        f"Two unlike parties, lambda = {UNLIKE_LAMBDA:g}, epsilon = 1:",
    )
    rows = []
    for key, points in values.items():
        if key == "unlike":
            continue
        _, split, regularisation = key.split("-")
        for epsilon, point in zip(EPSILONS, points, strict=True):
            if quantity == "distance" and epsilon != EPSILONS[-1]:
                continue  # the exact mean has no epsilon
            told = [split, regularisation, *([] if quantity == "distance" else [f"{epsilon:g}"])]
            rows.append([*told, f"{point[quantity]:.4g}", f"{point[bound]:.4g}"])
    header = ["n(1)", "lambda", *([] if quantity == "distance" else ["epsilon"]), "measured", "bound"]
    adult = NumberTable(header, rows, "a9a, rows of norm 1, five parties:")
    return Summary([unlike, adult], {f"{name}.svg": partial(_picture, name, quantity, values)})


def _picture(name: str, quantity: str, values: Values) -> str:
    sizes = SIZES[: len(values["unlike"])]
    lines = {
        "measured": PlotLine(sizes, [point[quantity] for point in values["unlike"]]),
        "the theorem's bound": PlotLine(
            sizes, [point[f"{quantity}_bound"] for point in values["unlike"]], document=True
        ),
    }
    panel = Panel(lines=lines, x="records of each party", y=WORDS[quantity], log_x=True, log_y=True)
    return panels_plot([panel], figure_id=name, title="Two unlike parties: what is measured, and the bound")


WORDS = {
    "distance": "distance from the fit of all data",
    "risk": "excess of the empirical risk",
    "true_risk": "excess of the risk on other records",
}


def _holds(quantity: str, values: Values) -> Finding:
    """A bound for all data fails if it fails once."""
    bound = f"{quantity}_bound"
    worst = max(values["unlike"], key=lambda point: float(point[quantity]) / float(point[bound]))
    adult = [point for key, points in values.items() if key != "unlike" for point in points]
    broken = sum(point[quantity] > point[bound] for point in adult)
    why = (
        f"two unlike parties have {worst[quantity]:.4g} where the bound is {worst[bound]:.2g}; on a9a it is "
        f"exceeded in {broken} of {len(adult)} settings"
    )
    return judged([worst[quantity] <= worst[bound] and not broken], why)


def _says_something(values: Values) -> Finding:
    """Whether the bounds on risk are below ln 2, the risk of saying nothing, anywhere on a9a."""
    adult = [point for key, points in values.items() if key != "unlike" for point in points]
    useful = [point["true_risk_bound"] < math.log(2) for point in adult]
    least = min(point["true_risk_bound"] for point in adult)
    return judged(
        [any(useful)], f"the least bound on a9a is {least:.3g}; a model of zeros has a risk of 0.693, and no noise"
    )


def _theorem(number: str, title: str, quantity: str, *claims: Claim) -> Reproduction:
    name = f"pathak-theorem-{number}"
    return Reproduction(
        name=name,
        title=title,
        setting=(
            "The bound as printed, beside what is measured. On a9a rows have norm 1, as the theorems ask; risks "
            f"are the 95th hundredth of 100 draws of the printed noise (the theorems' delta is {FAILURE:g}). Two "
            "unlike parties: one has the rows (1, 0), the other (0, 1), all with label 1."
        ),
        data=("a9a",),
        numbers=(Number("the bound is a formula; no value of it is given", None, "not given"),),
        cells=_cells,
        summarise=partial(_summarise, name, quantity),
        claims=claims,
    )


THEOREM_4_2 = _theorem(
    "4.2",
    "The averaged model is within (K - 1) / (n(1) lambda) of the fit of all data",
    "distance",
    Claim(
        "The distance is at most (K - 1) / (n(1) lambda), whatever the parties' data are.", partial(_holds, "distance")
    ),
)
THEOREM_4_3 = _theorem(
    "4.3",
    "A bound on the empirical risk of the noisy average",
    "risk",
    Claim("The excess of the empirical risk is below the bound, but for a chance of delta.", partial(_holds, "risk")),
)
THEOREM_4_4 = _theorem(
    "4.4",
    "A bound on the true risk of the noisy average",
    "true_risk",
    Claim("The excess of the true risk is below the bound, but for a chance of delta.", partial(_holds, "true_risk")),
    Claim("The experiments verify the bound.", _says_something),
)
