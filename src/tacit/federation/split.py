"""How arrays and files become the parties of a simulation, and what of them is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.data.matrix import to_numbers
from tacit.errors import DataError, SettingError
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
MOST_CLASSES = 100  # of whole numbers, where most records have one of their own: more are a quantity or an id
MOST_NUMBERS = 50  # more different numbers with a point than this are measurements and no labels


def checked_arrays(X: Any, y: Any) -> tuple[Floats, npt.NDArray[Any]]:
    """Features and class labels, or an error that says what they are instead."""
    X = to_numbers(X, "X")
    if y is None:
        raise SettingError("Federation.split requires y to be passed, but the target y is None")
    labels = np.asarray(y)
    if labels.shape != (len(X),):
        raise SettingError(f"X of shape {X.shape} and y of shape {labels.shape} do not fit: give (n, d) and (n,)")
    if not X.shape[1]:
        raise SettingError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    _check_labels(labels)
    return X, labels


def _check_labels(labels: npt.NDArray[Any]) -> None:
    missing = np.asarray(pd.isna(labels))
    if missing.any():
        raise DataError(
            f"y has {np.count_nonzero(missing)} missing labels (NaN or None), the first in row {np.argmax(missing)}; "
            f"leave those records out"
        )
    try:
        distinct = np.unique(labels)
    except TypeError as error:
        raise DataError("y has labels of several kinds, such as text and numbers; give all of them as text") from error
    if labels.dtype.kind == "f" and (len(distinct) > MOST_NUMBERS or np.any(distinct != np.floor(distinct))):
        raise DataError(
            f"Unknown label type: y holds {len(distinct)} different numbers with a point, which look continuous; "
            f"give classes: whole numbers or text"
        )
    if labels.dtype.kind in "iu" and len(distinct) > MOST_CLASSES and 2 * len(distinct) > len(labels):
        raise DataError(
            f"Unknown label type: y holds {len(distinct)} different numbers for {len(labels)} records, which look like "
            f"a quantity or an id; give classes, such as y > 10"
        )
    if len(distinct) < 2:
        raise DataError(f"y has {len(distinct)} class; a classifier needs records of at least 2")


def check_files(files: Mapping[str, str | Path]) -> None:
    """Refuse one file under the names of two parties: its records would count twice."""
    owners: dict[Path, str] = {}
    for name, path in files.items():
        other = owners.setdefault(Path(path).resolve(), name)
        if other != name:
            raise SettingError(
                f"parties {other!r} and {name!r} have the same file, {path}, whose records would count twice; "
                f"give each party its own"
            )


def assign_parties(
    n: int, groups: npt.ArrayLike | None, n_parties: int | None, weights: Sequence[float] | None, *, seed: int
) -> npt.NDArray[np.str_]:
    """The party of each of `n` records: by `groups`, or at random in proportion to `weights`."""
    if groups is not None:
        if n_parties is not None or weights is not None:
            raise SettingError("give either groups, or n_parties with optional weights, not both")
        return _by_group(n, groups)
    n_parties = (3 if weights is None else len(weights)) if n_parties is None else n_parties
    if isinstance(n_parties, bool) or not isinstance(n_parties, Integral):
        raise SettingError(f"n_parties = {n_parties!r} is no whole number; give how many parties there are")
    shares = np.ones(max(n_parties, 0)) if weights is None else np.asarray(weights, dtype=float)
    if n_parties < 1 or shares.shape != (n_parties,) or not np.all(np.isfinite(shares)) or np.any(shares <= 0):
        raise SettingError(f"n_parties = {n_parties} and weights = {weights} do not fit: one positive weight for each")
    if n < n_parties:
        raise SettingError(f"{n} records cannot be cut into {n_parties} parties of at least one")
    cuts = np.round(np.cumsum(shares) / shares.sum() * n).astype(int)
    sizes = np.maximum(np.diff(cuts, prepend=0), 1)
    sizes[np.argmax(sizes)] += n - sizes.sum()
    width = len(str(n_parties))
    names = np.array([f"party{i + 1:0{width}d}" for i in range(n_parties)])
    assigned = np.repeat(names, sizes)
    return assigned[Rng.seeded(seed).permutation(n)]


def _by_group(n: int, groups: npt.ArrayLike) -> npt.NDArray[np.str_]:
    given = np.asarray(groups)
    if given.shape != (n,):
        raise SettingError(f"groups of shape {given.shape} must name one party for each of {n} records")
    missing = np.asarray(pd.isna(given))
    if missing.any():
        raise SettingError(
            f"groups has {np.count_nonzero(missing)} records without a party (NaN or None), the first in row "
            f"{np.argmax(missing)}; name one for each"
        )
    return given.astype(str, copy=False)
