"""The target's side of hypothesis transfer: its own rows, the prior that the sources' models make, and its fits.

No record of a party is seen here: the rows are the analyst's own or public, and the models are what sources released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import softmax

from tacit.data.encoding import clip_rows
from tacit.data.schema import Schema
from tacit.data.source import connect, no_records_in_errors, open_file
from tacit.data.table import Table
from tacit.errors import DataError, SettingError
from tacit.models.loss import Loss
from tacit.models.problem import Problem
from tacit.models.solver import fit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows: TypeAlias = npt.ArrayLike | pd.DataFrame | Table | str | Path
"""Rows without labels: a table, a frame, a file's path, or an array of encoded columns."""
Labelled: TypeAlias = Table | pd.DataFrame | str | Path | tuple[Any, Any]
"""Rows with labels: a table, a frame, a file's path, or a pair (array of encoded columns, labels)."""


def feature_rows(name: str, given: Rows | Labelled, schema: Schema) -> Floats:
    """The encoded rows of what was given as the setting `name`; labels that come with them are not read."""
    if isinstance(given, Table):
        return _same_columns(name, given, schema).arrays()[0]
    if isinstance(given, str | Path):
        given = _read_features(Path(given), schema)
    if isinstance(given, pd.DataFrame):
        if not len(given):
            raise SettingError(f"{name} has no rows; give at least one")
        columns = {column: given[column].to_numpy() for column in schema.feature_names if column in given}
        return schema.encode_features(columns, name)
    return _encoded_array(name, given[0] if isinstance(given, tuple) else given, schema)


def labelled_rows(name: str, given: Rows | Labelled, schema: Schema) -> tuple[Floats, Ints]:
    """The encoded rows and class indices of what was given as the setting `name`."""
    if isinstance(given, Table):
        return _same_columns(name, given, schema).arrays()
    if isinstance(given, str | Path):
        return Table.from_file(given, schema).arrays()
    if isinstance(given, pd.DataFrame):
        return Table.from_frame(given, schema, name=name).arrays()
    if not isinstance(given, tuple) or len(given) != 2:
        raise SettingError(f"{name} has no labels; give a Table, a data frame, a path, or a pair (X, y)")
    X, labels = _encoded_array(name, given[0], schema), np.asarray(given[1])
    if labels.shape != X.shape[:1]:
        raise SettingError(f"{name} has {len(X)} rows and labels of shape {labels.shape}; give one for each row")
    return X, schema.encode_labels(labels, name)


def _same_columns(name: str, table: Table, schema: Schema) -> Table:
    if table.schema != schema:
        raise SettingError(f"{name} is a table of another schema than the federation's; encode it by the same one")
    return table


def _encoded_array(name: str, given: Any, schema: Schema) -> Floats:
    try:
        X = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(f"{name} is no matrix of numbers; give one column for each encoded column") from None
    if X.size == 0 or X.ndim != 2 or X.shape[1] != schema.n_columns:
        raise SettingError(
            f"{name} has shape {X.shape}; give at least one row, and the federation's {schema.n_columns} columns"
        )
    if not np.isfinite(X).all():
        raise SettingError(f"{name} has {np.sum(~np.isfinite(X))} values that are missing or infinite; remove them")
    return X if schema.norm_bound is None else clip_rows(X, schema.norm_bound, overwrite=False)[0]


def _read_features(path: Path, schema: Schema) -> pd.DataFrame:
    connection = connect()
    source = open_file(path, schema.feature_names, connection)
    places = {name: place for name, place, _ in source.columns}
    missing = [name for name in schema.feature_names if name not in places]
    if missing:
        raise DataError(f"{path.name}: columns {missing} are missing; the schema names {list(schema.feature_names)}")
    with no_records_in_errors(path.name):
        wanted = ", ".join(places[name] for name in schema.feature_names)
        frame = connection.execute(f"SELECT {wanted} FROM {source.relation}").df()
    return frame.set_axis(list(schema.feature_names), axis="columns")


@dataclass(frozen=True, kw_only=True)
class OwnData:
    """What the analyst brought, encoded: the target's labelled records, perhaps none; its other rows; public rows."""

    X: Floats
    y: Ints
    unlabelled: Floats | None
    public: Floats | None

    @classmethod
    def read(
        cls, schema: Schema, target: Labelled | None, unlabelled: Rows | Labelled | None, public: Rows | None
    ) -> OwnData:
        """Encode what was given; labels must be of two classes at least."""
        X, y = np.zeros((0, schema.n_columns)), np.zeros(0, dtype=np.int64)
        if target is not None:
            X, y = labelled_rows("target", target, schema)
            if len(np.unique(y)) < 2:
                raise SettingError(f"target has {len(y)} labelled records of one class only; give some of another")
        return cls(
            X=X,
            y=y,
            unlabelled=None if unlabelled is None else feature_rows("unlabelled", unlabelled, schema),
            public=None if public is None else feature_rows("public", public, schema),
        )

    def rows(self) -> Floats:
        """All rows of the target, labelled or not."""
        return self.X if self.unlabelled is None else np.concatenate([self.X, self.unlabelled])

    def with_true_labels(self, unlabelled: Rows | Labelled, schema: Schema) -> OwnData:
        """The same with the other rows labelled as well."""
        X, y = labelled_rows("unlabelled", unlabelled, schema)
        return replace(self, X=np.concatenate([self.X, X]), y=np.concatenate([self.y, y]), unlabelled=None)

    def notices(self) -> tuple[str, ...]:
        """What a reader of the report should know about these data."""
        if not len(self.rows()):
            return ()
        return (
            f"the target's own {len(self.rows())} rows ({len(self.y)} labelled) are NOT protected: the model may tell "
            f"about them to whoever sees it",
        )


@dataclass(frozen=True, kw_only=True)
class Prior:
    """A Gaussian prior: the mean in the parameter's shape, and one standard deviation for each column."""

    mean: Floats
    std: Floats

    def with_ridge(self, l2: float) -> Prior:
        """This prior times N(0, 1 / l2): where the sources know nothing, what is left is the plain penalty."""
        precision = 1 / self.std**2 + l2
        return Prior(mean=self.mean / self.std**2 / precision, std=1 / np.sqrt(precision))


def informative_prior(models: Floats, weights: Floats, noise_std: Floats | None, floor: float) -> Prior:
    """The prior that K models make (Wang, 4.2), with a floor under its spread.

    mean = sum_k w_k theta_k and variance = K/(K-1) sum_k w_k (theta_k - mean)^2, which is 0/0 for one model and 0 for
    weights on one only. With `noise_std`, those of the noise in each model's entries, the floor is raised by the
    noise of the mean, sum_k w_k^2 noise_std_k^2. Of more than two classes a column has one variance, the mean.

    Args:
        models: of shape (K, k) or (K, C, k).
        weights: of shape (K,), summing to 1.
        noise_std: of shape (K,), or None to leave the noise out.
        floor: the least standard deviation.
    """
    K = len(models)
    mean: Floats = np.tensordot(weights, models, axes=1)
    square: Floats = np.tensordot(weights, (models - mean) ** 2, axes=1)
    if square.ndim == 2:
        square = square.mean(axis=0)
    spread = square * (K / (K - 1)) if K > 1 else square
    noise = 0.0 if noise_std is None else float(weights**2 @ noise_std**2)
    return Prior(mean=mean, std=np.sqrt(np.maximum(spread, floor**2 + noise)))


def posterior_mode(X: Floats, y: Ints, prior: Prior, loss: Loss) -> Floats:
    """The mode of the posterior: argmin of the loss on the rows + sum_j (theta_j - mean_j)^2 / (2 std_j^2).

    In units of the standard deviations, phi = theta / std, it is a fit with l2 = 1 and the linear term -mean / std.
    """
    if not len(X):
        return prior.mean
    d = loss.n_features
    scaled = np.ascontiguousarray(X * prior.std[:d])
    start = prior.mean / prior.std
    problem = Problem(
        n_features=d,
        n_classes=loss.n_classes,
        l2=1.0,
        intercept="feature" if loss.constant else "none",
        constant=loss.constant * float(prior.std[-1]) if loss.constant else 1.0,
        start=start,
        linear=-start,
    )
    return fit(lambda: [(scaled, y)], problem=problem).theta * prior.std


def plain_fit(X: Floats, y: Ints, l2: float, loss: Loss, linear: Floats | None = None) -> Floats:
    """The penalised fit, every parameter penalised; `linear`.theta is added to its objective."""
    problem = Problem(
        n_features=loss.n_features,
        n_classes=loss.n_classes,
        l2=l2,
        intercept="feature" if loss.constant else "none",
        constant=loss.constant or 1.0,
        linear=linear,
    )
    return fit(lambda: [(X, y)], problem=problem).theta


def soft_label_fit(labelled: tuple[Floats, Ints], rows: Floats, shares: Floats, l2: float, loss: Loss) -> Floats:
    """The penalised fit to labelled rows, and to rows of which a share counts for each class.

    A row's soft loss sum_c share_c loss(c) is its loss as class 0, plus theta_0.x - sum_c share_c theta_c.x: linear.
    """
    X, y = labelled
    lengthened = np.column_stack([rows, np.full(len(rows), loss.constant)]) if loss.constant else rows
    if loss.n_classes == 2:
        linear = -shares[:, 1] @ lengthened
    else:
        first = np.eye(loss.n_classes)[0]
        linear = (first - shares).T @ lengthened
    everything = np.concatenate([X, rows])
    classes = np.concatenate([y, np.zeros(len(rows), dtype=np.int64)])
    return plain_fit(everything, classes, l2, loss, linear)


def votes(models: Floats, X: Floats, loss: Loss) -> Ints:
    """The class that each model gives each row, of shape (K, n)."""
    scores = [loss.scores(X, theta) for theta in models]
    if loss.n_classes == 2:
        return np.array([(score > 0).astype(np.int64) for score in scores])
    return np.array([np.argmax(softmax(score, axis=1), axis=1) for score in scores])


def best_model(models: Floats, X: Floats, y: Ints, loss: Loss) -> int:
    """The model that is right most often on the rows; among equals the first."""
    return int(np.argmax((votes(models, X, loss) == y).mean(axis=1)))


def shapes_text(given: object) -> str:
    """What may be told of data that were given as a setting: their kind and size, and none of their values."""
    if isinstance(given, tuple) and given:
        return f"({', '.join(shapes_text(part) for part in given)})"
    if isinstance(given, Table):
        return repr(given)
    shape = getattr(given, "shape", None)
    if shape is None and isinstance(given, Sequence):
        shape = (len(given),)
    return f"{type(given).__name__} of shape {shape}" if shape is not None else type(given).__name__


def soft_shares(models: Floats, X: Floats, loss: Loss) -> Floats:
    """alpha(x), Wang (4.4): the share of the models that vote for each class, of shape (n, C)."""
    cast = votes(models, X, loss)
    return np.stack([(cast == c).mean(axis=0) for c in range(loss.n_classes)], axis=1)
