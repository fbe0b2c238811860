"""Figure 2: test error of the averaged classifier against epsilon, on Adult (a9a).

Five parties in three splits, and one party with all data. The local fits do not depend on the noise, so each is made
once; the noise is drawn again for every repetition by the very plan and grid that a run of `Averaging` uses.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import datasets as public
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods.averaging.method import Averaging
from tacit.methods.averaging.statistic import Plan
from tacit.methods.newton.method import PrivateNewton
from tacit.models.solver import fit
from tacit.rand import Rng
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

SPLITS = {
    "all": (32561,),
    "6512": (6512, 6512, 6512, 6512, 6513),
    "4884": (4884, 6512, 6512, 6512, 8141),
    "3256": (3256, 6512, 6512, 6512, 9769),
}
AGGREGATES = ("6512", "4884", "3256")
NAMES = {"all": "all data", **{split: f"n(1) = {split}" for split in AGGREGATES}}
RADII = {"raw": math.sqrt(14), "norm1": 1.0}  # a row of a9a has 14 ones at most
LAMBDAS = (1.0, 0.1, 0.01)
EPSILONS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
QUICK_EPSILONS = (0.01, 0.05, 0.4)
DELTA = 1e-6
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"calibration": "paper"},
    "pure": {"delta": 0},
    "gauss": {"delta": DELTA},
}
SHOWN = {"paper": "as printed (NOT PRIVATE)", "pure": "sound, pure", "gauss": "sound, Gaussian"}


def cells(quick: bool) -> list[ResultCell]:
    """One cell a kind of rows, lambda and split; one an epsilon for PrivateNewton."""
    draws = {"paper": 20, "sound": 5} if quick else {"paper": 200, "sound": 50}
    epsilons = list(QUICK_EPSILONS if quick else EPSILONS)
    found = [
        ResultCell(
            f"{rows}-{regularisation:g}-{split}",
            averaging_errors,
            {"rows": rows, "regularisation": regularisation, "split": split, "epsilons": epsilons, "draws": draws},
        )
        for rows in RADII
        for regularisation in LAMBDAS
        for split in SPLITS
    ]
    newton = {"epsilons": epsilons, "runs": 2 if quick else 10}
    return [*found, ResultCell("newton", newton_errors, newton)]


@cache
def tables(rows: str) -> tuple[Table, Table]:
    """Training and test rows, as they are or of norm 1."""
    data = public.load("a9a")
    columns = data.schema.column_names
    schema = Schema.of_arrays(len(columns), ["0", "1"], norm_bound=RADII[rows], feature_names=columns)
    train, test = (Table.from_frame(data.frames[part], data.schema).arrays() for part in ("train", "test"))
    return Table.from_arrays(*train, schema), Table.from_arrays(*test, schema)


def parties(rows: str, split: str) -> dict[str, Table]:
    """The parties of a split, in the order of the file."""
    train, _ = tables(rows)
    X, y = train.arrays()
    ends = np.cumsum(SPLITS[split])
    return {
        f"party{j + 1}": Table.from_arrays(X[end - size : end], y[end - size : end], train.schema)
        for j, (size, end) in enumerate(zip(SPLITS[split], ends, strict=True))
    }


def averaging_errors(
    *, rows: str, regularisation: float, split: str, epsilons: list[float], draws: dict[str, int], seed: int
) -> dict[str, Any]:
    """Mean test error and its standard error for each calibration and epsilon, and the error without noise."""
    mine = parties(rows, split)
    federation = Federation.from_tables(mine, policy=Policy(not_private=["averaging"]))
    X, y = tables(rows)[1].arrays()
    l2 = 2 * regularisation * sum(SPLITS[split])  # lambda w'w beside a mean loss: Lam = 2 lambda
    rng = Rng.seeded(seed)
    thetas: dict[str, Floats] = {}
    found: dict[str, Any] = {}
    for variant, settings in VARIANTS.items():
        found[variant] = []
        for epsilon in epsilons:
            method = Averaging(epsilon=epsilon, l2=l2, fit_intercept=False, colluders=0, **settings)
            plan = federation.terms(method).plan
            assert isinstance(plan, Plan)
            if not thetas:
                thetas = {
                    name: fit(table.blocks, problem=plan.problem(table.n_records)).theta for name, table in mine.items()
                }
            models = [
                release(plan, mine, thetas, rng) for _ in range(draws["paper" if variant == "paper" else "sound"])
            ]
            found[variant].append(_mean_error(X, y, np.array(models)))
    exact = np.mean([theta.ravel() for theta in thetas.values()], axis=0)
    found["exact"] = _mean_error(X, y, exact[None, :])[0]
    found["commonest"] = float(min(np.mean(y), 1 - np.mean(y)))
    return found


def release(plan: Plan, mine: dict[str, Table], thetas: dict[str, Floats], rng: Rng) -> Floats:
    """One release of the average of these local models."""
    addends = [plan.seal(thetas[name], table.n_records, rng=rng).addend for name, table in mine.items()]
    return plan.grid.from_grid(np.sum(addends, axis=0))


def _mean_error(X: Floats, y: npt.NDArray[np.int64], models: Floats) -> list[float]:
    errors = np.mean((X @ models.T > 0) != (y == 1)[:, None], axis=0)
    spread = float(errors.std(ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else 0.0
    return [float(errors.mean()), spread]


def newton_errors(*, epsilons: list[float], runs: int, seed: int) -> list[list[float]]:
    """The same of PrivateNewton on rows of norm 1, for five equal parties."""
    federation = Federation.from_tables(parties("norm1", "6512"), rng=Rng.seeded(seed))
    test = tables("norm1")[1]
    found = []
    for epsilon in epsilons:
        method = PrivateNewton(epsilon=epsilon, delta=DELTA)
        errors = [1 - method.fit(federation).score(test) for _ in range(runs)]
        found.append([float(np.mean(errors)), float(np.std(errors, ddof=1) / math.sqrt(runs))])
    return found


def epsilons_of(values: Values) -> tuple[float, ...]:
    """The epsilons of a run; a quick one has fewer."""
    return EPSILONS if len(values["newton"]) == len(EPSILONS) else QUICK_EPSILONS


def summarise(values: Values) -> Summary:
    """A table for each kind of rows, and a panel for each lambda of the raw ones."""
    epsilons = epsilons_of(values)
    shown = []
    for rows in RADII:
        lines = []
        for regularisation in LAMBDAS:
            for variant, words in SHOWN.items():
                for split in SPLITS:
                    cell = values[f"{rows}-{regularisation:g}-{split}"]
                    means = [f"{mean:.3f}" for mean, _ in cell[variant]]
                    lines.append([f"{regularisation:g}", words, NAMES[split], *means, f"{cell['exact']:.3f}"])
        if rows == "norm1":
            newton = [f"{mean:.3f}" for mean, _ in values["newton"]]
            lines.append(["rule", f"PrivateNewton, delta {DELTA:g}", "five equal parties", *newton, ""])
        caption = f"Test error, rows {'as they are (norm up to 3.74)' if rows == 'raw' else 'of norm 1'}:"
        header = ["lambda", "noise", "parties", *(f"epsilon {e:g}" for e in epsilons), "no noise"]
        shown.append(NumberTable(header, lines, caption))
    return Summary(shown, {"pathak-figure-2.svg": partial(_picture, values)})


def _picture(values: Values) -> str:
    epsilons = epsilons_of(values)
    panels = []
    for regularisation in LAMBDAS:
        lines = {}
        for split in SPLITS:
            points = values[f"raw-{regularisation:g}-{split}"]["paper"]
            label = "DP all data" if split == "all" else f"DP aggregate {NAMES[split]}"
            lines[label] = PlotLine(epsilons, [mean for mean, _ in points], [error for _, error in points])
        marks = {"non-private all data": values[f"raw-{regularisation:g}-all"]["exact"]}
        panels.append(
            Panel(
                lines=lines,
                x="epsilon",
                y="test error",
                title=f"as printed, lambda {regularisation:g}",
                marks=marks,
                log_x=True,
            )
        )
    return panels_plot(panels, figure_id="pathak-figure-2", title="Test error of the averaged classifier, raw rows")


def _order(values: Values) -> Finding:
    """Whether a larger smallest party is better, at every lambda and epsilon, beyond .003 and two standard errors."""
    parts, told = [], []
    for regularisation in LAMBDAS:
        lines = [values[f"raw-{regularisation:g}-{split}"]["paper"] for split in AGGREGATES]
        apart = max(least[0] - even[0] for even, least in zip(lines[0], lines[2], strict=True)) > 0.005
        never_turned = all(
            better[0] <= worse[0] + max(0.003, 2 * math.hypot(better[1], worse[1]))
            for low, high in ((0, 1), (1, 2), (0, 2))
            for better, worse in zip(lines[low], lines[high], strict=True)
        )
        parts.append(apart and never_turned)
        middle = len(lines[0]) // 2
        errors = " / ".join(f"{line[middle][0]:.3f}" for line in lines)
        told.append(f"{errors} at lambda {regularisation:g}")
    epsilon = epsilons_of(values)[len(values["newton"]) // 2]
    why = f"errors of 6512 / 4884 / 3256 at epsilon {epsilon:g}: {'; '.join(told)}"
    first = " / ".join(f"{values[f'raw-1-{split}']['paper'][0][0]:.3f}" for split in AGGREGATES)
    commonest = values["raw-1-all"]["commonest"]
    why += f"; at lambda 1 the order shows at the smallest epsilon alone ({first}), then all give the commonest class"
    why += f" ({commonest:.3f})"
    return judged(parts, why)


def _convergence(values: Values) -> Finding:
    """Whether the error falls with epsilon to that of the fit of all data, within .02."""
    parts, told = [], []
    for regularisation in LAMBDAS:
        plain = values[f"raw-{regularisation:g}-all"]["exact"]
        line = values[f"raw-{regularisation:g}-6512"]["paper"]
        parts.append(line[-1][0] - plain < 0.02 and line[0][0] - line[-1][0] > 0.02)
        told.append(f"{line[0][0]:.3f} to {line[-1][0]:.3f}, plain {plain:.3f}, at lambda {regularisation:g}")
    why = f"even split, smallest to largest epsilon: {'; '.join(told)}"
    return judged(parts, f"{why} (a fall of .02, to within .02 of plain, is asked)")


def _all_data(values: Values) -> Finding:
    """Whether the perturbed fit of all data is below every aggregate, and equal to the plain one but at first."""
    parts, told = [], []
    for regularisation in LAMBDAS:
        whole = values[f"raw-{regularisation:g}-all"]
        aggregates = [values[f"raw-{regularisation:g}-{split}"]["paper"] for split in AGGREGATES]
        below = all(whole["paper"][0][0] < line[0][0] - 0.01 for line in aggregates)
        parts.append(below and whole["paper"][-1][0] - whole["exact"] < 0.01)
        told.append(f"{whole['paper'][0][0]:.3f} at first, plain {whole['exact']:.3f} (lambda {regularisation:g})")
    why = f"DP on all data at the smallest epsilon: {'; '.join(told)}"
    return judged(parts, f"{why} (.01 below the aggregates there, and .01 from plain at the largest, is asked)")


FIGURE_2 = Reproduction(
    name="pathak-figure-2",
    title="Test error of the averaged classifier against epsilon, three splits of Adult",
    setting=(
        "a9a, 32,561 training and 16,281 test rows of 123 columns, no intercept. Five parties, cut in the order of "
        "the file; mean of 200 draws of the printed noise, 50 of the sound one. The document states lambda = 1 and "
        "says that rows lie in the unit ball; its own rows do not (14 ones each), so both are shown. One lambda "
        "serves all."
    ),
    data=("a9a",),
    numbers=(
        Number("lambda", 1.0),
        Number("smallest party, even split", 6512),
        Number("smallest party, second split", 4884),
        Number("smallest party, third split", 3256),
        Number("lowest mark of the axis of errors", 0.2),
        Number("highest mark of the axis of errors", 0.5),
        Number("the curves' values (the text gives their order alone)", None, "not given"),
    ),
    cells=cells,
    summarise=summarise,
    claims=(
        Claim("The aggregate with n(1) = 6512 does consistently better than those with lower n(1).", _order),
        Claim(
            "The error of the aggregates drops with epsilon and converges to that of the fit of all data.", _convergence
        ),
        Claim(
            "The private fit of all data does much better than the aggregates, and is as good as the plain fit but "
            "for small epsilon.",
            _all_data,
        ),
    ),
)
