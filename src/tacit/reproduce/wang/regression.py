"""Chapter 5: exact fits that nobody can look into. PrivLogit and Newton on real and simulated tables, five parties.

All runs are on shares, in three processes on this machine. What the center compiles is compiled before a clock starts.
The document's own steps are those without acceleration; its stop, a relative change of the likelihood below 1e-6, is
looked up afterwards among the iterates, which are public.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tacit import datasets
from tacit.errors import TacitError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods.baseline.pooled import Pooled
from tacit.methods.method import Method
from tacit.methods.privlogit.method import PrivLogit
from tacit.methods.privlogit.secure_newton import SecureNewton
from tacit.rand import public_choices

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

N_PARTIES = 5
L2 = 1.0
STOP = 1e-6
RECORDS = 20_000  # of a simulated table
POLICY = Policy(not_private=["privlogit", "secure-newton", "pooled"])

# Newton's and PrivLogit's iterations; seconds of Newton, PrivLogit-Hessian and PrivLogit-Local, as printed
PRINTED: dict[str, tuple[int, int, float | None, float | None, float]] = {
    "Wine": (5, 13, 32, 24, 17),
    "Loans": (6, 17, 492, 260, 104),
    "Insurance": (7, 28, 843, 520, 144),
    "News": (5, 13, 1442, 621, 313),
    "SimuX10": (6, 20, 26, 24, 13),
    "SimuX12": (6, 22, 38, 37, 17),
    "SimuX50": (6, 32, 1550, 1052, 383),
    "SimuX100": (7, 59, 13138, 7817, 1807),
    "SimuX150": (7, 83, 42951, 25030, 6055),
    "SimuX200": (8, 105, 114522, 56917, 14105),
    "SimuX400": (8, 206, None, None, 110598),
}
REAL = {"Wine": "wine_quality", "Loans": "lending_club", "Insurance": "coil2000", "News": "online_news"}
LENGTHS = {10: 2.02, 12: 2.19, 50: 2.77, 100: 3.58, 150: 4.16, 200: 4.56, 400: 6.03}
MOST_NEWTON = 200  # columns; the document has no Newton beyond, either
MOST_LOCAL = 60  # columns; a round takes (d + 1)^2 / 8 exponentiations of every party
STARTS = (0.8, 1.0, 1.5, 2.0)


def simulated(d: int, n: int) -> tuple[Floats, Labels]:
    """Normal columns, and coefficients as long as the document's iterations take with these steps and this stop."""
    rng = public_choices(0)
    X, beta = rng.normal(size=(n, d)), rng.normal(size=d)
    return X, (rng.random(n) < expit(X @ beta * LENGTHS[d] / np.linalg.norm(beta))).astype(np.int64)


def table_of(name: str, quick: bool) -> tuple[Floats, Labels]:
    """The rows and labels of a data set of table 5.1; a tenth of them if quick."""
    if name in REAL:
        tables = datasets.load(REAL[name]).tables
        arrays = [table.arrays() for table in tables.values()]
        X, y = np.concatenate([rows for rows, _ in arrays]), np.concatenate([labels for _, labels in arrays])
        if name == "Wine":  # red or white is the twelfth feature
            X = np.column_stack([X, np.repeat(np.arange(len(arrays)), [len(labels) for _, labels in arrays])])
        order = public_choices(0).permutation(len(y))[: len(y) // 4 if quick else None]
        X, y = X[order], y[order]
        return np.ascontiguousarray(X[:, X.std(axis=0) > 0]), y
    return simulated(int(name.removeprefix("SimuX")), RECORDS // 10 if quick else RECORDS)


def parties_of(X: Floats, y: Labels) -> Federation:
    """Five parties."""
    return Federation.split(X, y, n_parties=N_PARTIES, policy=POLICY)


def methods_of(d: int) -> dict[str, Method]:
    """What is run on a table of d columns."""
    rough: dict[str, Any] = {"l2": L2, "standard_errors": False, "tol": 1e-3}
    found: dict[str, Method] = {
        "hessian": PrivLogit(acceleration=None, **rough),
        "accelerated": PrivLogit(**rough),
        "exact": PrivLogit(l2=L2),
    }
    if d <= MOST_NEWTON:
        found["newton"] = SecureNewton(l2=L2, damping=None)
    if d <= MOST_LOCAL:
        found["local"] = PrivLogit(protocol="local", **rough)
    return found


def secure_run(*, data: str, quick: bool, seed: int) -> dict[str, Any]:
    """Iterations, seconds, likelihoods and coefficients of all methods on one data set."""
    X, y = table_of(data, quick)
    d = X.shape[1]
    parties, methods = parties_of(X, y), methods_of(d)
    _compile(d)
    truth = _theta(Pooled(l2=L2).fit(parties))
    found: dict[str, Any] = {"records": len(y), "columns": d, "truth": truth}
    for kind, method in methods.items():
        begun = time.monotonic()
        method.fit(parties)
        seconds = time.monotonic() - begun
        theta = _theta(method)
        path = [*method.iterates_, theta]
        changes = relative_changes(X, y, path)
        stop = next((k for k, change in enumerate(changes, start=1) if change < STOP), None)
        at_stop = path[len(path) - 1 if stop is None else stop]
        found[kind] = {
            "asked": len(path) - 1,
            "iterations": stop,
            "seconds": seconds,
            "error": _apart(theta, truth),
            "error_at_stop": _apart(at_stop, truth),
            "changes": changes,
        }
        if kind == "exact":
            found["coefficients"] = theta
    return found


def _compile(d: int) -> None:
    """Let the center compile its programs for d columns, on a small table."""
    rng = public_choices(1)
    X = rng.normal(size=(5 * d + 100, d))
    small = parties_of(X, (rng.random(len(X)) < expit(X[:, 0])).astype(np.int64))
    PrivLogit(l2=L2).fit(small)


def _theta(model: Any) -> Floats:
    return np.append(model.coef_, model.intercept_)


def _apart(theta: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(theta - truth) / np.linalg.norm(truth))


def relative_changes(X: Floats, y: Labels, path: list[Floats]) -> list[float]:
    """Of the penalised log-likelihood, from each point of a path to the next."""
    likelihoods = []
    for theta in path:
        margin = X @ theta[:-1] + theta[-1]
        penalty = L2 / 2 * float(theta[:-1] @ theta[:-1])
        likelihoods.append(float((y * margin - np.logaddexp(0, margin)).sum()) - penalty)
    return [abs(after - before) / abs(before) for before, after in pairwise(likelihoods)]


def start_paths(*, start: float, quick: bool, seed: int) -> dict[str, Any]:
    """SimuX50 from all coefficients at `start`: the distance from the optimum after each iteration."""
    X, y = simulated(50, RECORDS // 10 if quick else RECORDS)
    parties = parties_of(X, y)
    truth = _theta(Pooled(l2=L2).fit(parties))
    given = (np.full((1, 50), start), np.full(1, start))
    kept: dict[str, Any] = {"l2": L2, "start": given}
    tried: dict[str, Method] = {
        "PrivLogit": PrivLogit(
            acceleration=None, secure="sums", worse_start="keep", standard_errors=False, tol=1e-6, **kept
        ),
        "accelerated": PrivLogit(secure="sums", worse_start="keep", standard_errors=False, tol=1e-6, **kept),
        "Newton": SecureNewton(damping=None, max_rounds=10, **kept),
        "damped Newton": SecureNewton(**kept),
    }
    found: dict[str, Any] = {}
    for label, method in tried.items():
        try:
            method.fit(parties)
            path = [*method.iterates_, _theta(method)]
            converged = True
        except TacitError:  # it ran away; its iterates are kept
            path, converged = list(method.iterates_), False
        distances = [float(np.linalg.norm(point - truth)) for point in path]
        found[label] = {"converged": int(converged), "distances": distances}
    return found
