"""How good a model is on records with known answers.

Nothing here is private: a figure measured on somebody's records is a release about them, and is only for whoever may
see those records anyway (a public test set, or a party that measures on its own).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import DataError

N_BINS = 10
MOST_ROC_POINTS = 200

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CalibrationBin:
    """Records whose predicted probability fell into one tenth of [0, 1]."""

    mean_predicted: float
    observed_rate: float
    count: int


@dataclass(frozen=True)
class RocPoint:
    """One threshold: how many negatives (share) are called positive, and how many positives."""

    false_positive_rate: float
    true_positive_rate: float


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Figures on one set of records.

    With two classes, probabilities are those of the last class. With more, `auc` is the mean of one class against the
    rest, the calibration bins are of the most likely class (is it right as often as it is sure?), and `roc` is empty.
    `auc` is None where the records are all of one class. `brier` with two classes is the mean squared error of the
    probability of the last; with more it is summed over the classes.
    """

    n: int
    accuracy: float
    balanced_accuracy: float
    auc: float | None
    log_loss: float
    brier: float
    majority_rate: float
    calibration: tuple[CalibrationBin, ...]
    expected_calibration_error: float
    roc: tuple[RocPoint, ...]


def evaluate(y_true_index: ArrayLike, probabilities: ArrayLike, classes: Sequence[str]) -> Metrics:
    """Measure `probabilities` (n x classes) against the true classes' positions in `classes`.

    Guarantees:
        Every figure equals scikit-learn's where scikit-learn defines it. Records of one class only give `auc` None and
        no warning. No error names a record's value.
    """
    from sklearn.metrics import log_loss, recall_score  # with half a second's imports, which a daemon does without

    y, P = _checked(y_true_index, probabilities, len(classes))
    predicted = P.argmax(axis=1)
    if len(classes) == 2:
        p, happened = P[:, 1], y == 1
        brier = float(np.mean((p - happened) ** 2))
    else:
        p, happened = P.max(axis=1), predicted == y
        brier = float(np.mean(np.sum((P - np.eye(len(classes))[y]) ** 2, axis=1)))
    bins = _calibration(p, happened)
    return Metrics(
        n=len(y),
        accuracy=float(np.mean(predicted == y)),
        # recall over the classes that occur is balanced accuracy, without the warning for the others
        balanced_accuracy=float(recall_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0)),
        auc=_auc(y, P),
        log_loss=float(log_loss(y, P, labels=list(range(len(classes))))),
        brier=brier,
        majority_rate=float(np.bincount(y).max() / len(y)),
        calibration=bins,
        expected_calibration_error=sum(b.count * abs(b.mean_predicted - b.observed_rate) for b in bins) / len(y),
        roc=_roc(y, P),
    )


def _checked(y_true_index: ArrayLike, probabilities: ArrayLike, n_classes: int) -> tuple[Ints, Floats]:
    y: NDArray[Any] = np.asarray(y_true_index)
    P: Floats = np.asarray(probabilities, dtype=np.float64)
    if n_classes < 2:
        raise DataError(f"classes has {n_classes} entries; a classifier has at least two")
    if P.ndim != 2 or P.shape[1] != n_classes:
        raise DataError(f"probabilities has shape {P.shape}; expected one row per record and {n_classes} columns")
    if y.shape != (len(P),):
        raise DataError(f"y_true_index has shape {y.shape}; expected ({len(P)},), one entry per row of probabilities")
    if len(y) == 0:
        raise DataError("there are no records to measure on; give at least one")
    if y.dtype.kind not in "iu":
        raise DataError(f"y_true_index holds {y.dtype}; expected whole numbers, the positions of the classes")
    wrong = int(np.sum((y < 0) | (y >= n_classes)))
    if wrong:
        raise DataError(f"{wrong} entries of y_true_index are no position of one of the {n_classes} classes")
    with np.errstate(invalid="ignore"):
        wrong = int(np.sum(~(np.all((P >= 0) & (P <= 1), axis=1) & (np.abs(P.sum(axis=1) - 1) <= 1e-6))))
    if wrong:
        raise DataError(f"{wrong} rows of probabilities do not lie in [0, 1] or do not add up to 1")
    return y.astype(np.int64), P / P.sum(axis=1, keepdims=True)


def _auc(y: Ints, P: Floats) -> float | None:
    from sklearn.metrics import roc_auc_score

    present = np.unique(y)
    if len(present) < 2:
        return None
    if P.shape[1] == 2:
        return float(roc_auc_score(y, P[:, 1]))
    return float(np.mean([roc_auc_score(y == c, P[:, c]) for c in present]))


def _roc(y: Ints, P: Floats) -> tuple[RocPoint, ...]:
    from sklearn.metrics import roc_curve

    if P.shape[1] != 2 or len(np.unique(y)) < 2:
        return ()
    false_positive, true_positive, _ = roc_curve(y, P[:, 1])
    if len(false_positive) > MOST_ROC_POINTS:
        # even steps along the curve, so that its steep start keeps as many points as its flat end
        travelled = false_positive + true_positive
        wanted = np.linspace(0.0, 2.0, MOST_ROC_POINTS)
        kept = np.unique(np.minimum(np.searchsorted(travelled, wanted), len(travelled) - 1))
        false_positive, true_positive = false_positive[kept], true_positive[kept]
    return tuple(RocPoint(float(a), float(b)) for a, b in zip(false_positive, true_positive, strict=True))


def _calibration(p: Floats, happened: NDArray[np.bool_]) -> tuple[CalibrationBin, ...]:
    which = np.minimum((p * N_BINS).astype(np.int64), N_BINS - 1)
    bins = []
    for k in np.unique(which):
        inside = which == k
        bins.append(CalibrationBin(float(p[inside].mean()), float(happened[inside].mean()), int(inside.sum())))
    return tuple(bins)
