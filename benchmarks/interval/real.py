"""Real records, and the exact estimate that a private interval is held against."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.data.encoding import Encoded
from tacit.data.feature import Numeric
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.datasets import load
from tacit.models.inference import infer
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.report.row import INTERCEPT

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CAMPAIGN = (10, 50, 100)  # upper bounds of the number of calls
SETS = ("adult", *(f"bank_marketing-{bound}" for bound in CAMPAIGN), "default_credit", "heart_disease")
ROBUST = ("adult", "bank_marketing-50")
EPSILONS = (0.3, 1.0, 3.0)


@dataclass(frozen=True)
class RealCell:
    """One line of the second table."""

    data_set: str
    epsilon: float
    robust: bool = False  # with the sandwich

    @property
    def name(self) -> str:
        """As `--cells` and the file of results have it."""
        return f"real/{self.data_set}/{self.epsilon:g}" + ("/robust" if self.robust else "")


@dataclass(frozen=True)
class Exact:
    """The exact fit of all records, in original units, of those coefficients that have one."""

    names: tuple[str, ...]
    estimate: Floats
    standard_error: Floats


@dataclass(frozen=True)
class Real:
    """Encoded records of all parties, and their exact fit."""

    schema: Schema
    X: Floats
    y: Ints
    exact: Exact

    def parties(self, n_parties: int, seed: int) -> dict[str, Table]:
        """The records, cut at random into parties of equal size."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return {
            str(i): Table.from_encoded(str(i), self.schema, Encoded(self.X[part], self.y[part], {}, 0, 0))
            for i, part in enumerate(np.array_split(order, n_parties))
        }


def real_cells() -> list[RealCell]:
    """Every data set at every epsilon; two of them with the sandwich, too."""
    found = [RealCell(data_set, epsilon) for data_set in SETS for epsilon in EPSILONS]
    return found + [RealCell(data_set, epsilon, robust=True) for data_set in ROBUST for epsilon in EPSILONS]


@lru_cache(maxsize=1)
def real_data(name: str) -> Real:
    """A data set by its name here: after the hyphen stands the upper bound of `campaign`."""
    own_name, _, bound = name.partition("-")
    public = load(own_name)
    schema = with_bound(public.schema, "campaign", float(bound)) if bound else public.schema
    tables = [Table.from_frame(frame, schema, name=table) for table, frame in public.frames.items()]
    X, y = Table.concatenate(tables).arrays()
    return Real(schema, X, y, exact_fit(X, y, schema))


def with_bound(schema: Schema, column: str, high: float) -> Schema:
    """The schema with another upper bound of one column."""
    features = tuple(
        dataclasses.replace(feature, high=high) if isinstance(feature, Numeric) and feature.name == column else feature
        for feature in schema.features
    )
    return dataclasses.replace(schema, features=features)


def exact_fit(X: Floats, y: Ints, schema: Schema) -> Exact:
    """The maximum-likelihood fit; coefficients that have none are left out, and change no other.

    1. Where all records of a category have one label, its coefficient runs off to infinity. In the limit those records
       are predicted without an error and say nothing of any other coefficient: both leave.
    2. A column that is constant among the rest has no coefficient of its own, and leaves. If it is not 0, the intercept
       has none either.
    3. The fit of what is left, in original units.
    """
    columns, records, has_intercept = _fittable(X, y)
    rows, labels = X[np.ix_(records, columns)], y[records]
    found = fit(lambda: iter([(rows, labels)]), problem=Problem(n_features=len(columns)))
    J = schema.original_units()
    left_out = np.setdiff1d(np.arange(X.shape[1]), columns)
    has_intercept = has_intercept and not J[-1, left_out].any()
    own = [*columns.tolist(), X.shape[1]]
    told = infer(found, units=J[np.ix_(own, own)])
    names = (*(schema.column_names[j] for j in columns), INTERCEPT)
    end = len(names) if has_intercept else -1
    return Exact(names[:end], told.estimate[:end], told.standard_error[:end])


def _fittable(X: Floats, y: Ints) -> tuple[Ints, Ints, bool]:
    """The columns that have a finite coefficient, the records that decide on them, and whether the intercept is one."""
    columns, records = np.arange(X.shape[1]), np.arange(len(y))
    has_intercept, is_changed = True, True
    while is_changed:
        is_changed = False
        for j in columns:
            values = X[records, j]
            if np.ptp(values) == 0:
                has_intercept = has_intercept and values[0] == 0
            elif np.isin(values, (0.0, 1.0)).all() and np.ptp(y[records[values == 1]]) == 0:
                records = records[values == 0]
            else:
                continue
            columns = columns[columns != j]
            is_changed = True
    return columns, records, bool(has_intercept)
