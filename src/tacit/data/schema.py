"""The schema: everything about a table that is public and fixed before a record is read.

Encoding depends on the schema alone, so it costs no privacy: bounds and categories are facts of the field, never
estimates from the data.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.coding import code_column, finding_of
from tacit.data.encoding import Encoded, Floats, Ints, Layout, clip_rows
from tacit.data.feature import Binary, Categorical, Coding, Feature, Numeric, Target
from tacit.data.finding import ColumnFinding, check_findings
from tacit.data.form import schema_from_dict, schema_to_dict
from tacit.data.label import normal
from tacit.errors import DataError, SchemaError

__all__ = ["Binary", "Categorical", "Encoded", "Numeric", "Schema", "Target"]


@dataclass(frozen=True)
class Schema:
    """The features with their bounds or categories, the target with its classes, and the norm bound.

    Guarantees: `encode` depends on each record by itself and on these fields; every encoded row has a norm of at most
    `radius`; two schemas with the same `digest()` encode alike.

    Example:
        >>> import tacit
        >>> features = (tacit.Numeric("age", 20, 90), tacit.Categorical("stage", ("I", "II", "III")))
        >>> schema = tacit.Schema(features=features, target=tacit.Target("relapse", ("no", "yes")))
        >>> schema.column_names
        ('age', 'stage=II', 'stage=III')
    """

    features: tuple[Feature, ...]
    target: Target
    norm_bound: float | None = None  # rows longer than this are scaled down to it; None: no clipping
    coding: Coding = "reference"  # "reference": the first category has no column; "full": every one has
    ignore: tuple[str, ...] = ()  # columns that a file may have and that nobody reads

    def __post_init__(self) -> None:
        """Check that the facts do not contradict each other."""
        object.__setattr__(self, "features", tuple(self.features))
        object.__setattr__(self, "ignore", (self.ignore,) if isinstance(self.ignore, str) else tuple(self.ignore))
        if not self.features:
            raise SchemaError("features is empty; a schema needs at least one feature")
        for feature in self.features:
            if not isinstance(feature, Numeric | Categorical | Binary):
                raise SchemaError(f"features has a {type(feature).__name__}; use Numeric, Categorical or Binary")
        if not isinstance(self.target, Target):
            raise SchemaError(f"target is a {type(self.target).__name__}; use Target(name, classes)")
        if self.coding not in ("reference", "full"):
            raise SchemaError(f"coding={self.coding!r} is not 'reference' or 'full'")
        self._check_norm_bound()
        self._check_names()

    def _check_norm_bound(self) -> None:
        bound = self.norm_bound
        if bound is None:
            return
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 < bound < math.inf:
            raise SchemaError(f"norm_bound={bound!r} must be a positive finite number, or None for no clipping")
        object.__setattr__(self, "norm_bound", float(bound))

    def _check_names(self) -> None:
        names = [feature.name for feature in self.features]
        for doubled in _doubled(names):
            raise SchemaError(f"feature {doubled!r} is declared more than once; give each feature its own name")
        if self.target.name in names:
            raise SchemaError(f"target {self.target.name!r} is also a feature; a target cannot predict itself")
        for name in sorted({*self.ignore} & {*names, self.target.name}):
            raise SchemaError(f"ignore names {name!r}, which is also a feature or the target; keep one of the two")
        columns = self.column_names
        if len(set(columns)) < len(columns):
            raise SchemaError(
                f"encoded columns {_doubled(columns)} have more than one source; rename a feature or a category"
            )

    @classmethod
    def of_arrays(
        cls,
        n_features: int,
        classes: Sequence[Any],
        norm_bound: float | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Schema:
        """The schema of plain arrays: numbers without bounds, named x0, x1, ... unless names are given."""
        names = list(_array_names(n_features) if feature_names is None else feature_names)
        if len(names) != n_features:
            raise SchemaError(f"feature_names has {len(names)} names for n_features={n_features}; give one for each")
        target = next(free for free in _target_names() if free not in names)
        labels = tuple(label if isinstance(label, str) else normal(label) for label in classes)
        return cls(tuple(Numeric(name) for name in names), Target(target, labels), norm_bound)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, as a file has them."""
        return tuple(feature.name for feature in self.features)

    @property
    def has_own_names(self) -> bool:
        """Whether the features have other names than those that `of_arrays` makes up."""
        return self.feature_names != _array_names(len(self.features))

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The names of the encoded columns, such as "age" and "chest_pain=atypical"."""
        return tuple(column for feature in self.features for column in feature.columns(self.coding))

    @property
    def n_columns(self) -> int:
        """How many columns an encoded row has."""
        return len(self.column_names)

    @property
    def n_classes(self) -> int:
        """How many classes the target has."""
        return len(self.target.classes)

    @cached_property
    def layout(self) -> Layout:
        """Which feature goes to which encoded columns."""
        return Layout(self.features, self.coding)

    @cached_property
    def radius(self) -> float | None:
        """The largest L2 norm that an encoded row can have, or None if nothing bounds it."""
        implied = math.sqrt(sum(feature.largest_square for feature in self.features))
        radius = implied if self.norm_bound is None else min(implied, self.norm_bound)
        return None if math.isinf(radius) else radius

    @cached_property
    def clips_rows(self) -> bool:
        """Whether a row can exceed the norm bound at all: not if the bounds of the features keep it below."""
        implied = math.sqrt(sum(feature.largest_square for feature in self.features))
        return self.norm_bound is not None and implied > self.norm_bound

    def encode(self, columns: Mapping[str, NDArray[Any]], where: str = "the table") -> Encoded:
        """Encode records with their labels; columns that the schema does not name are not read.

        Raises a DataError with all that does not fit. Values outside the bounds are clipped and counted.
        """
        V, unreadable, distinct = self._codes((*self.features, self.target), columns, where)
        n_read, drop = V.shape[1], self.layout.drop_rows
        gone = (np.isnan(V[drop]) & ~unreadable[drop]).any(axis=0)
        if gone.any():
            V, unreadable = V[:, ~gone], unreadable[:, ~gone]
        findings = self._findings((*self.features, self.target), V, unreadable, distinct)
        check_findings(self.features, self.target, findings, where)
        X, rows_clipped = self.encode_codes(V[:-1])
        clipped = {name: found.outside for name, found in findings.items() if found.outside}
        return Encoded(
            X, V[-1].astype(np.int64), clipped, rows_clipped, n_read - V.shape[1], gone if gone.any() else None
        )

    def encode_features(self, columns: Mapping[str, NDArray[Any]], where: str = "the table") -> Floats:
        """Encode records without labels, for prediction: one row for each record.

        A missing value in a feature with missing="drop" is an error here, for a record to predict cannot be dropped. An
        error names the row and column of the first value that does not fit: these are the caller's own records.
        """
        V, unreadable, distinct = self._codes(self.features, columns, where)
        findings = self._findings(self.features, V, unreadable, distinct)
        where += self._first_fault(V, unreadable)
        check_findings(self.features, None, findings, where)
        gone = {f.name: findings[f.name].missing for f in self.features if f.missing == "drop"}
        if any(gone.values()):
            counts = {name: count for name, count in gone.items() if count}
            raise DataError(
                f"{where}: missing values {counts} in columns with missing='drop'; remove those records first"
            )
        return self.encode_codes(V)[0]

    def encode_labels(self, labels: NDArray[Any], where: str = "the table") -> Ints:
        """The class indices of labels."""
        codes, unreadable, distinct = code_column(self.target, np.asarray(labels))
        check_findings((), self.target, {self.target.name: finding_of(self.target, codes, unreadable, distinct)}, where)
        return codes.astype(np.int64)

    def encode_codes(self, V: Floats) -> tuple[Floats, int]:
        """Encode codes of shape (n_features, m) that were checked before; also the number of rows clipped."""
        X = self.layout.encode(V)
        if self.norm_bound is None or not self.clips_rows:
            return X, 0
        return clip_rows(X, self.norm_bound, overwrite=not np.may_share_memory(X, V))

    def _codes(
        self, wanted: Sequence[Feature | Target], columns: Mapping[str, NDArray[Any]], where: str
    ) -> tuple[Floats, NDArray[np.bool_], list[int]]:
        missing = [item.name for item in wanted if item.name not in columns]
        if missing:
            raise DataError(f"{where}: columns {missing} are missing; the schema names {list(self.feature_names)}")
        arrays = [np.asarray(columns[item.name]) for item in wanted]
        lengths = {item.name: array.shape for item, array in zip(wanted, arrays, strict=True)}
        if len(set(lengths.values())) > 1 or arrays[0].ndim != 1:
            raise DataError(f"{where}: columns must be vectors of one length, but their shapes are {lengths}")
        V = np.empty((len(wanted), len(arrays[0])))
        unreadable = np.zeros(V.shape, dtype=bool)
        distinct = []
        for i, (item, array) in enumerate(zip(wanted, arrays, strict=True)):
            V[i], unreadable[i], n_distinct = code_column(item, array)
            distinct.append(n_distinct)
        return V, unreadable, distinct

    def _findings(
        self, wanted: Sequence[Feature | Target], V: Floats, unreadable: NDArray[np.bool_], distinct: list[int]
    ) -> dict[str, ColumnFinding]:
        return {item.name: finding_of(item, V[i], unreadable[i], distinct[i]) for i, item in enumerate(wanted)}

    def _first_fault(self, V: Floats, unreadable: NDArray[np.bool_]) -> str:
        required = np.array([feature.missing in ("error", "drop") for feature in self.features])
        faults = np.argwhere((unreadable | (np.isnan(V) & required[:, None])).T)
        if not len(faults):
            return ""
        row, j = faults[0].tolist()
        return f" (the first missing (NaN) or unreadable value is in row {row}, column {self.feature_names[j]!r})"

    def original_units(self) -> Floats:
        """The matrix J of shape (d+1, d+1) that takes a binary model's (coef, intercept) to the original units.

        theta_original = J @ theta and cov_original = J @ cov @ J.T. Columns of categories and indicators keep their
        coefficients: a missing value then stands for the middle of its bounds. Rows that were clipped to the norm bound
        are no linear function of the original values, so J speaks for rows inside it.

        Guarantees: encoded_row @ coef + intercept == original_row @ coef_original + intercept_original for every row
        inside the bounds.
        """
        J = np.eye(self.n_columns + 1)
        columns, factor, middle = self.layout.value_columns, self.layout.factor, self.layout.middle
        J[columns, columns] = factor  # w_j (v - middle_j) factor_j: the slope per unit of v,
        J[-1, columns] = -middle * factor  # and the part that is the same for all records
        return J

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, in the form of a study file; settings at their defaults are left out."""
        return schema_to_dict(self)

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote; an unknown key is a SchemaError."""
        return cls(**schema_from_dict(form))

    def digest(self) -> str:
        """The SHA-256 of the canonical form: the same for the same facts, on every machine."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _array_names(n_features: int) -> tuple[str, ...]:
    """The names of columns that have none."""
    return tuple(f"x{j}" for j in range(n_features))


def _target_names() -> Iterator[str]:
    """Names for the labels of arrays: the first that is not taken."""
    yield from ("y", "target")
    yield from (f"target{j}" for j in count(1))


def _doubled(names: Iterable[str]) -> list[str]:
    """The names that occur more than once."""
    return sorted(name for name, n_times in Counter(names).items() if n_times > 1)
