"""Pathak, Rane and Raj 2010, figure 2: test error of the averaged classifier against epsilon, on Adult (a9a).

Five parties in three splits. The local fits do not depend on the noise, so each is made once, and the noise is drawn
again for every repetition by the very plan and grid that a run of `Averaging` uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tacit import datasets as public
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods.averaging.method import Averaging
from tacit.methods.averaging.statistic import Plan
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.rand import Rng
from tacit.report.curve import CurvePoint, curve_plot
from tacit.reproduce.result import Result

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

SPLITS = {
    "20 %": (6512, 6512, 6512, 6512, 6513),
    "15 %": (4884, 6512, 6512, 6512, 8141),
    "10 %": (3256, 6512, 6512, 6512, 9769),
}
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
DELTA = 1e-6
DOCUMENT_LAMBDA = 1.0  # the document adds lambda w'w to the mean loss, so that Lam = 2 lambda
VARIANTS: dict[str, dict[str, object]] = {
    "as printed (NOT PRIVATE)": {"calibration": "paper"},
    "sound, pure": {"delta": 0},
    "sound, Gaussian": {"delta": DELTA},
}
WORDS = (
    "Test error of the averaged classifier on a9a (rows of norm 1, no intercept), five parties, mean of {repeats} "
    "draws of the noise. The three splits give the smallest party 20, 15 or 10 % of the records. `document` is the "
    "regularisation that the document states (lambda = 1), `rule` the public rule of `Averaging`. Gaussian noise has "
    f"delta = {DELTA:g}. The plain fit has l2 = 1. With rows of norm 1 the document's regularisation gives the "
    "commonest class, or noise around it, at every epsilon. Averaging cannot do much better than the rule, because its "
    "noise carries 1/lambda."
)


def figure_2(
    *,
    repeats: int = 50,
    splits: Sequence[str] = tuple(SPLITS),
    epsilons: Sequence[float] = EPSILONS,
    rng: Rng | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Result:
    """The figure as a table and pictures, at the document's regularisation and at the public rule."""
    rng = Rng.system() if rng is None else rng
    data = public.load("a9a")
    columns = data.schema.column_names
    schema = Schema.of_arrays(len(columns), ["0", "1"], norm_bound=1.0, feature_names=columns)
    (X, y), (X_test, y_test) = (Table.from_frame(data.frames[part], data.schema).arrays() for part in ("train", "test"))
    test = Table.from_arrays(X_test, y_test, schema)
    rows, curves = [], {}
    for split in splits:
        fits = _Fits(_cut(X, y, SPLITS[split], schema))
        for regularisation, l2 in (("document", 2 * DOCUMENT_LAMBDA * len(X)), ("rule", None)):
            for variant, settings in VARIANTS.items():
                if on_progress is not None:
                    on_progress(f"split {split}, {regularisation}, {variant}")
                methods = [
                    Averaging(epsilon=epsilon, l2=l2, fit_intercept=False, **settings)  # type: ignore[arg-type]
                    for epsilon in epsilons
                ]
                points = [fits.point(method, test, repeats, rng) for method in methods]
                curves[f"{split}, {regularisation}, {variant}"] = points
                rows.append([split, regularisation, variant, *(f"{p.mean:.3f}" for p in points)])
    lines = {
        "plain fit": _plain_error(X, y, test),
        "commonest class": 1 - float(test.class_counts.max() / test.n_complete),
    }
    rows += [["all", "", name, *[f"{value:.3f}"] * len(epsilons)] for name, value in lines.items()]
    header = ["smallest party", "regularisation", "noise", *(f"epsilon {e:g}" for e in epsilons)]
    return Result(
        title="Pathak, Rane and Raj 2010, figure 2",
        words=WORDS.format(repeats=repeats),
        columns=header,
        rows=rows,
        pictures=_pictures(curves, lines),
    )


def _pictures(curves: dict[str, list[CurvePoint]], lines: dict[str, float]) -> dict[str, str]:
    """One picture for each regularisation."""
    return {
        f"pathak-{regularisation}.svg": curve_plot(
            {name: points for name, points in curves.items() if f", {regularisation}," in name},
            quantity="test error",
            lines=lines,
            figure_id=f"pathak-{regularisation}",
        )
        for regularisation in ("document", "rule")
    }


def _cut(X: Floats, y: Labels, sizes: tuple[int, ...], schema: Schema) -> dict[str, Table]:
    ends = np.cumsum(sizes)
    return {
        f"party{j + 1}": Table.from_arrays(X[end - size : end], y[end - size : end], schema)
        for j, (size, end) in enumerate(zip(sizes, ends, strict=True))
    }


class _Fits:
    """The parties of one split, and their exact local fits, each made once."""

    def __init__(self, tables: dict[str, Table]) -> None:
        self._tables = tables
        self._parties = Federation.from_tables(tables, policy=Policy(not_private=["averaging"]))
        self._thetas: dict[tuple[str, float], Floats] = {}

    def point(self, method: Averaging, test: Table, repeats: int, rng: Rng) -> CurvePoint:
        """The mean test error of `repeats` releases of `method`, with its standard error."""
        errors = self.errors(method, test, repeats, rng)
        return CurvePoint(method.epsilon, float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(repeats)))

    def errors(self, method: Averaging, test: Table, repeats: int, rng: Rng) -> Floats:
        """The test errors of `repeats` releases of `method`."""
        plan = self._parties.terms(method).plan
        assert isinstance(plan, Plan)
        thetas = [(table.n_records, self._theta(name, plan)) for name, table in self._tables.items()]
        released = []
        for _ in range(repeats):
            addends = [plan.seal(theta, n, rng=rng).addend for n, theta in thetas]
            released.append(plan.grid.from_grid(np.sum(addends, axis=0)))
        X, y = test.arrays()
        predicted = X @ np.array(released).T > 0
        return np.asarray(np.mean(predicted != (y == 1)[:, None], axis=0))

    def _theta(self, name: str, plan: Plan) -> Floats:
        if (name, plan.l2_mean) not in self._thetas:
            table = self._tables[name]
            self._thetas[name, plan.l2_mean] = fit(table.stream(), problem=plan.problem(table.n_records)).theta
        return self._thetas[name, plan.l2_mean]


def _plain_error(X: Floats, y: Labels, test: Table) -> float:
    """The error of one fit of all training records, with l2 = 1 and an intercept."""
    X_test, y_test = test.arrays()
    rows = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    solution = fit(lambda: [(rows, y)], problem=Problem(n_features=X.shape[1], l2=1.0))
    return float(np.mean((X_test @ solution.coef[0] + solution.intercept[0] > 0) != (y_test == 1)))
