"""Compare methods on one study: accuracy and loss against epsilon, repeated, with error bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods import METHODS
from tacit.report.curve import CurvePoint
from tacit.report.metrics import evaluate
from tacit.studies.run import method_of
from tacit.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method at one epsilon (infinite if it has none), over repeated runs."""

    method: str
    epsilon: float
    repeats: int
    accuracy: CurvePoint
    log_loss: CurvePoint


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All cells, and what the commonest class alone reaches on the test data."""

    cells: tuple[Cell, ...]
    majority_rate: float

    def curves(self, quantity: str) -> dict[str, list[CurvePoint]]:
        """The curve of each method that has an epsilon; `quantity` is "accuracy" or "log_loss"."""
        found: dict[str, list[CurvePoint]] = {}
        for cell in self.cells:
            if math.isfinite(cell.epsilon):
                found.setdefault(cell.method, []).append(getattr(cell, quantity))
        return found

    def lines(self, quantity: str) -> dict[str, float]:
        """What methods without an epsilon reach."""
        return {cell.method: getattr(cell, quantity).mean for cell in self.cells if math.isinf(cell.epsilon)}


def compare(
    study: Study,
    tables: Mapping[str, Table],
    test: Table,
    *,
    methods: Sequence[str],
    epsilons: Sequence[float],
    repeats: int = 10,
    on_cell: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Fit every method at every epsilon `repeats` times and measure on `test`; exact methods are fitted once."""
    if repeats < 2:
        raise SettingError(f"repeats = {repeats} gives no error bars; give at least 2")
    plans = []
    for name in methods:
        private = name in METHODS and "epsilon" in METHODS[name]._get_param_names()
        plans += [(name, epsilon) for epsilon in epsilons] if private else [(name, math.inf)]
    for name, epsilon in plans:  # refuses what is wrong before anything runs
        method_of(study, method=name, epsilon=None if math.isinf(epsilon) else epsilon).guarantee  # noqa: B018
    policy, dropouts = Policy(not_private=list(methods)), study.federation.dropouts_among(len(tables))
    parties = Federation.from_tables(tables, policy=policy, study=study.name, dropouts=dropouts)
    cells = []
    for k, (name, epsilon) in enumerate(plans):
        if on_cell is not None:
            on_cell(k, len(plans), f"{name}, epsilon {epsilon:g}")
        cells.append(_cell(study, parties, test, name, epsilon, repeats if math.isfinite(epsilon) else 1))
    return Comparison(cells=tuple(cells), majority_rate=float(test.class_counts.max() / test.n_complete))


def _cell(study: Study, parties: Federation, test: Table, name: str, epsilon: float, repeats: int) -> Cell:
    figures = []
    classes = study.schema.target.classes
    truth = test.arrays()[1]
    for _ in range(repeats):
        model = method_of(study, method=name, epsilon=None if math.isinf(epsilon) else epsilon).fit(parties)
        metrics = evaluate(truth, model.predict_proba(test), classes)
        figures.append((metrics.accuracy, metrics.log_loss))
    means = np.mean(figures, axis=0)
    errors = np.std(figures, axis=0, ddof=1) / math.sqrt(repeats) if repeats > 1 else np.zeros(2)
    accuracy, log_loss = (CurvePoint(epsilon, float(m), float(e)) for m, e in zip(means, errors, strict=True))
    return Cell(method=name, epsilon=epsilon, repeats=repeats, accuracy=accuracy, log_loss=log_loss)
