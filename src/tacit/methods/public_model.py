"""Linear models that are public: made from public data (`pretrain`), or given from outside (`linear_model`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import SettingError
from tacit.methods.exact_fit import exact_problem
from tacit.methods.model_file import ModelFile
from tacit.methods.setting import check_l2
from tacit.models.problem import Problem
from tacit.models.solver import fit

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicModel:
    """A linear classifier that anybody may see, in encoded units and scikit-learn's shapes.

    Attributes:
        coef_: of shape (1, d) for two classes, (C, d) for more.
        intercept_: of shape (1,) or (C,).
        schema_: how the columns were encoded, where that is known.
    """

    coef_: Floats
    intercept_: Floats
    schema_: Schema | None = None


def pretrain(public: Table | npt.ArrayLike, y: npt.ArrayLike | None = None, *, l2: float = 1.0) -> PublicModel:
    """Fit a model to PUBLIC records, as a start for a private method. Its records are not protected in any way.

    Args:
        public: a table of public records, best made with the schema of the study; or rows X, in encoded units and of
            norms within the study's bound, with
        y: their labels, whose sorted values are the classes.
        l2: regularisation of the sum over the public records, 1/C of scikit-learn; the intercept is free.

    Example:
        >>> import tacit
        >>> data = tacit.datasets.load("readmission")
        >>> start = tacit.pretrain(data.tables["public"])
        >>> parties = tacit.Federation.from_tables({name: data.tables[name] for name in ("north", "south", "west")})
        >>> tacit.PrivateNewton(epsilon=0.3, start=start).fit(parties).classes_.tolist()
        ['no', 'yes']
    """
    check_l2(l2, zero=True)
    if isinstance(public, Table):
        if y is not None:
            raise SettingError("y is given beside a Table, which brings its own labels; leave y out")
        solution = fit(public.blocks, problem=exact_problem(public.schema, l2, True))
        return PublicModel(coef_=solution.coef, intercept_=solution.intercept, schema_=public.schema)
    if y is None:
        raise SettingError("y is missing: give the public labels, or a Table, which brings its own")
    X, labels = np.asarray(public, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or labels.shape != (len(X),):
        raise SettingError(f"X of shape {X.shape} and y of shape {labels.shape} do not fit: give (n, d) and (n,)")
    classes, indices = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise SettingError(f"y has {len(classes)} class; public data to learn from needs at least 2")
    problem = Problem(n_features=X.shape[1], n_classes=len(classes), l2=float(l2), intercept="free")
    solution = fit(lambda: [(X, indices.astype(np.int64))], problem=problem)
    return PublicModel(coef_=solution.coef, intercept_=solution.intercept)


def linear_model(model: object, schema: Schema, name: str) -> PublicModel:
    """The coefficients of a public `model`, checked to fit the columns and classes of `schema`.

    `model` has `coef_` and `intercept_` (a fitted method of this package, a scikit-learn estimator, what `pretrain`
    gives), or is a mapping with "coef" and "intercept", a pair of the two, or the path of a saved model. `name` is what
    messages call it.
    """
    if isinstance(model, str | os.PathLike):
        model = _from_file(Path(model), name)
    coef, intercept = _parts(model, name)
    known = getattr(model, "schema_", None)
    if isinstance(known, Schema):
        _check_schema(known, schema, name)
    n_scores = 1 if schema.n_classes == 2 else schema.n_classes
    if coef.shape != (n_scores, schema.n_columns) or intercept.shape != (n_scores,):
        raise SettingError(
            f"{name} has coefficients of shape {coef.shape} and an intercept of shape {intercept.shape}; "
            f"{schema.n_columns} columns and {schema.n_classes} classes need {(n_scores, schema.n_columns)} and "
            f"({n_scores},)"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise SettingError(f"{name} has a coefficient that is not finite; give a model that was fitted")
    return PublicModel(coef_=coef, intercept_=intercept, schema_=schema)


def _from_file(path: Path, name: str) -> PublicModel:
    file = ModelFile.read(path)
    if not {"coef", "intercept"} <= file.state.keys():
        raise SettingError(f"{name} = {path} holds a {file.facts.method}, which is no linear model; give one that is")
    return PublicModel(coef_=file.state["coef"], intercept_=file.state["intercept"], schema_=file.schema)


def _parts(model: object, name: str) -> tuple[Floats, Floats]:
    parts: tuple[Any, Any]
    match model:
        case {"coef": coef, "intercept": intercept}:
            parts = coef, intercept
        case (coef, intercept):
            parts = coef, intercept
        case _ if hasattr(model, "coef_") and hasattr(model, "intercept_"):
            parts = model.coef_, model.intercept_
        case _:
            keys = f" with {', '.join(map(repr, model))}" if isinstance(model, Mapping) else ""
            raise SettingError(
                f"{name} is a {type(model).__name__}{keys} and no linear model that was fitted: give one with coef_ "
                f"and intercept_, or a pair (coef, intercept)"
            )
    try:
        coef, intercept = (np.array(part, dtype=np.float64) for part in parts)
    except (TypeError, ValueError) as error:
        raise SettingError(f"{name} has coefficients that are not arrays of numbers") from error
    return np.atleast_2d(coef), np.atleast_1d(intercept)


def _check_schema(known: Schema, schema: Schema, name: str) -> None:
    """Refuse a model of other columns; the norm bound may differ, for it does not change what a coefficient means."""
    if known.column_names != schema.column_names:
        odd = sorted(set(known.column_names) ^ set(schema.column_names))
        what = f"{odd[0]!r} is only in one of the two" if odd else "they stand in another order"
        raise SettingError(f"{name} was learned from other columns than the study's: {what}; use the study's schema")
    if (known.features, known.coding) != (schema.features, schema.coding):
        raise SettingError(f"{name} was learned from columns in other units (bounds or categories); use one schema")
    if known.target.classes != schema.target.classes:
        raise SettingError(
            f"{name} knows the classes {', '.join(known.target.classes)}, the study {', '.join(schema.target.classes)}"
        )
