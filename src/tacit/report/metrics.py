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

    `base_log_loss` is that of the records' own class frequencies, given to everybody, and `majority_rate` the accuracy
    of always answering the commonest class. `accuracy_gain_error` and `log_loss_gain_error` are the standard errors of
    the differences from these, record by record. `auc_error` is DeLong's; with more classes it is the mean of theirs,
    which is not too small. `average_precision` is for two classes only, and says more than AUC where one is rare.
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
    class_counts: tuple[int, ...]
    auc_error: float | None
    average_precision: float | None
    base_log_loss: float
    accuracy_gain_error: float
    log_loss_gain_error: float


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
    counts = np.bincount(y, minlength=len(classes))
    base = np.log(counts[y] / len(y))  # each record's log-likelihood under the frequencies
    own = np.log(np.clip(P[np.arange(len(y)), y], np.finfo(np.float64).eps, 1.0))
    areas = _areas(y, P)
    return Metrics(
        n=len(y),
        accuracy=float(np.mean(predicted == y)),
        # recall over the classes that occur is balanced accuracy, without the warning for the others
        balanced_accuracy=float(recall_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0)),
        auc=None if not areas else float(np.mean([area for area, _ in areas])),
        log_loss=float(log_loss(y, P, labels=list(range(len(classes))))),
        brier=brier,
        majority_rate=float(counts.max() / len(y)),
        calibration=bins,
        expected_calibration_error=sum(b.count * abs(b.mean_predicted - b.observed_rate) for b in bins) / len(y),
        roc=_roc(y, P),
        class_counts=tuple(int(count) for count in counts),
        auc_error=None if not areas else float(np.mean([error for _, error in areas])),
        average_precision=_average_precision(y, P),
        base_log_loss=float(-base.mean()),
        accuracy_gain_error=_error((predicted == y).astype(float) - (y == counts.argmax())),
        log_loss_gain_error=_error(own - base),
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


def _areas(y: Ints, P: Floats) -> list[tuple[float, float]]:
    """AUC and its standard error: of the last class, or of each class against the rest; none if there is one class."""
    present = np.unique(y)
    if len(present) < 2:
        return []
    return [_area(y == c, P[:, c]) for c in (present[1:] if P.shape[1] == 2 else present)]


def _area(happened: NDArray[np.bool_], scores: Floats) -> tuple[float, float]:
    """The share of pairs that are in order, ties half, and DeLong's standard error of it (1988).

    V is for each record the share of the other kind that it is in order with. AUC is the mean of V over either kind.
    Its variance is the sum over both of var(V) / count. One record of a kind has the largest variance of a share.
    """
    from scipy.stats import rankdata

    n1, n0 = int(happened.sum()), int((~happened).sum())
    ranks = rankdata(scores)
    V1 = (ranks[happened] - rankdata(scores[happened])) / n0
    V0 = 1 - (ranks[~happened] - rankdata(scores[~happened])) / n1
    variances = [float(np.var(V, ddof=1)) / len(V) if len(V) > 1 else 0.25 for V in (V1, V0)]
    return float(V1.mean()), float(np.sqrt(sum(variances)))


def _average_precision(y: Ints, P: Floats) -> float | None:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(y, P[:, 1])) if P.shape[1] == 2 and len(np.unique(y)) > 1 else None


def _error(values: Floats) -> float:
    """The standard error of the mean; that of one value is unbounded."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


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
