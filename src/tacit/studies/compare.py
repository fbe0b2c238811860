"""Compare methods on one study: how good they are and how wide their intervals, against epsilon, with error bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from tacit.data.table import Table
from tacit.errors import RunError, SettingError
from tacit.federation.federation import Federation
from tacit.federation.policy import Policy
from tacit.methods import METHODS
from tacit.report.curve import CurvePoint
from tacit.studies.expectation import Expectation, expectation, measure_run, median_widths
from tacit.studies.run import method_of
from tacit.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class Cell(Expectation):
    """One method at one epsilon (infinite if it has none), over repeated runs."""

    method: str
    epsilon: float
    repeats: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All cells, and what the test data's class frequencies alone reach."""

    cells: tuple[Cell, ...]
    majority_rate: float
    base_log_loss: float

    def curves(self, quantity: str) -> dict[str, list[CurvePoint]]:
        """The curve of each method that has an epsilon; `quantity` is "accuracy", "auc", "log_loss", "widening", ..."""
        found: dict[str, list[CurvePoint]] = {}
        for cell in self.cells:
            point = getattr(cell, quantity)
            if math.isfinite(cell.epsilon) and point is not None and math.isfinite(point.mean):
                found.setdefault(cell.method, []).append(point)
        return found

    def lines(self, quantity: str) -> dict[str, float]:
        """What methods without an epsilon reach."""
        points = {cell.method: getattr(cell, quantity) for cell in self.cells if math.isinf(cell.epsilon)}
        return {method: point.mean for method, point in points.items() if point is not None}


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
    """Fit every method at every epsilon `repeats` times and measure on `test`; exact methods are fitted once.

    The exact fit is always made, for the widths of intervals to be held against: whoever compares has all the tables.

    Example:
        >>> import tacit
        >>> data = tacit.datasets.load("readmission")
        >>> study = tacit.Study(name="readmission", purpose="Who comes back?", schema=data.schema)
        >>> hospitals = {name: data.tables[name] for name in ("north", "south", "west")}
        >>> found = tacit.compare(
        ...     study, hospitals, data.tables["east"], methods=["private-newton"], epsilons=[1.0], repeats=2
        ... )
        >>> type(found).__name__
        'Comparison'
    """
    if repeats < 2:
        raise SettingError(f"repeats = {repeats} gives no error bars; give at least 2")
    plans = []
    for name in methods:
        private = name in METHODS and "epsilon" in METHODS[name]._get_param_names()
        plans += [(name, epsilon) for epsilon in epsilons] if private else [(name, math.inf)]
    for name, epsilon in plans:  # refuses what is wrong before anything runs
        method_of(study, method=name, epsilon=None if math.isinf(epsilon) else epsilon).guarantee  # noqa: B018
    policy, dropouts = Policy(not_private=[*methods, "pooled"]), study.federation.dropouts_among(len(tables))
    parties = Federation.from_tables(tables, policy=policy, study=study.name, dropouts=dropouts)
    exact = _exact_widths(parties, test)
    cells = []
    for k, (name, epsilon) in enumerate(plans):
        if on_cell is not None:
            on_cell(k, len(plans), f"{name}, epsilon {epsilon:g}")
        times = repeats if math.isfinite(epsilon) else 1
        models = (method_of(study, method=name, epsilon=None if math.isinf(epsilon) else epsilon) for _ in range(times))
        found = expectation(epsilon, [measure_run(model.fit(parties), test) for model in models], exact)
        told = {field.name: getattr(found, field.name) for field in fields(found)}
        cells.append(Cell(**told, method=name, epsilon=epsilon, repeats=times))
    counts = test.class_counts / test.n_complete
    base = -float(np.sum(counts * np.log(np.where(counts > 0, counts, 1.0))))
    return Comparison(cells=tuple(cells), majority_rate=float(counts.max()), base_log_loss=base)


def _exact_widths(parties: Federation, test: Table) -> dict[str, float]:
    """The half-widths to compare with; none if the exact fit does not exist, as where nobody has one of the classes."""
    try:
        return median_widths([measure_run(METHODS["pooled"](l2=1.0).fit(parties), test)])
    except RunError:
        return {}
