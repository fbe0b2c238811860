"""Local classifiers: what a party may train on its own records to vote on public rows.

A classifier never travels; its name does. `register_local_classifier` gives a name to anything with scikit-learn's
`fit(X, y)` and `predict(X)`; every party that is asked for it must have registered it. `assign_local_classifier` is a
party's own choice for its own table, and wins over what the study names.

Votes are an arbitrary function of a party's table as far as privacy goes, so nothing here needs a proof. But no error
of a classifier may leave a party, for whether it fails depends on records: a party whose classifier fails votes for
the first class. So that a broken classifier does not hide behind this rule, it is tried on made-up rows when it is
registered or assigned, and its errors there are shown.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tacit.data.table import Table
from tacit.errors import DataError, RunError, SettingError
from tacit.models.batch import fit_many
from tacit.models.loss import Loss
from tacit.models.problem import Problem
from tacit.models.solver import fit
from tacit.rand import Rng

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Votes = npt.NDArray[Any]  # class indices: one byte each, or eight for more than 256 classes

LOGISTIC = "logistic"
_CROWD = 2048  # parties whose rows are copied at once
_SCORES = 2**22  # scores held at once: 32 MB


class Classifier(Protocol):
    """Whatever learns and predicts as scikit-learn's classifiers do; classes are indices 0 to C-1."""

    def fit(self, X: Floats, y: Ints) -> Any:
        """Learn from rows and class indices."""
        ...

    def predict(self, X: Floats) -> npt.ArrayLike:
        """The class index of each row."""
        ...


Factory = Callable[[], Classifier]


# Imported when they are made: every daemon and command imports this module, and hardly any needs them.


def _tree() -> Classifier:
    from sklearn.tree import DecisionTreeClassifier

    made: Classifier = DecisionTreeClassifier(random_state=0)
    return made


def _forest() -> Classifier:
    from sklearn.ensemble import RandomForestClassifier

    made: Classifier = RandomForestClassifier(n_estimators=30, random_state=0)
    return made


def _naive_bayes() -> Classifier:
    from sklearn.naive_bayes import GaussianNB

    made: Classifier = GaussianNB(var_smoothing=1e-3)
    return made


_FACTORIES: dict[str, Factory] = {"tree": _tree, "forest": _forest, "naive-bayes": _naive_bayes}
_OWN: WeakKeyDictionary[Table, Factory | None] = WeakKeyDictionary()  # None is "logistic"


def register_local_classifier(name: str, factory: Factory) -> None:
    """Let studies name a classifier in this process: `factory()` makes a fresh one.

    Example:
        >>> import tacit
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> tacit.register_local_classifier("small-tree", lambda: DecisionTreeClassifier(max_depth=3))
        >>> data = tacit.datasets.load("readmission")
        >>> parties = tacit.Federation.from_tables({name: data.tables[name] for name in ("north", "south", "west")})
        >>> model = tacit.Ensemble(epsilon=1.0, public=data.frames["public"], local="small-tree").fit(parties)
        >>> model.guarantee_.unit
        'party'
    """
    if name == LOGISTIC or name in _FACTORIES:
        raise SettingError(f"a local classifier {name!r} is registered already; choose another name")
    _rehearse(factory, f"the local classifier {name!r}")
    _FACTORIES[name] = factory


def assign_local_classifier(table: Table, classifier: str | Classifier) -> None:
    """A party's own choice for its table: a registered name, or a classifier that is copied before it learns.

    Example:
        >>> import tacit
        >>> from sklearn.naive_bayes import GaussianNB
        >>> data = tacit.datasets.load("readmission")
        >>> tacit.assign_local_classifier(data.tables["north"], GaussianNB())  # north's own choice
    """
    if isinstance(classifier, str):
        check_local_classifiers((classifier,))
        _OWN[table] = _FACTORIES.get(classifier)
        return

    def factory() -> Classifier:
        made: Classifier = clone(classifier)
        return made

    _rehearse(factory, f"the local classifier {type(classifier).__name__}")
    _OWN[table] = factory


def local_classifiers() -> tuple[str, ...]:
    """The names that can be asked for in this process."""
    return (LOGISTIC, *_FACTORIES)


def check_local_classifiers(names: Sequence[str]) -> None:
    """Refuse names that nobody registered here."""
    for name in names:
        if name not in local_classifiers():
            raise SettingError(
                f"local = {name!r} is no registered classifier; choose of {', '.join(local_classifiers())}, "
                f"or register it at every party with register_local_classifier"
            )
    if not names:
        raise SettingError("local = [] names no classifier; None takes logistic regression")


def party_l2(n_records: int) -> float:
    """The rule for a party's own l2, where none is given: (n / 300)^2, and 1 from 300 records on.

    Chance errors of many small parties average out in their common votes, and the bias of a penalty does not. So small
    parties are hardly penalised. A large one is as by scikit-learn's default, since there are few of them to average.
    The rule was chosen with parties of 6 to 300 records, on the 21 people of HAPT that no test uses, and on training
    records of Adult, credit and wine. `benchmarks/ensemble.py --activities` judges it on the other nine people. Votes
    may depend on a party's own table in any way, so the rule costs nothing.
    """
    return min(1.0, (max(n_records, 1) / 300) ** 2)


def votes_of(
    tables: Sequence[Table], X: Floats, *, names: Sequence[str], l2: float | None, rngs: Sequence[Rng]
) -> Votes:
    """The votes of each party's classifier on the rows of X: class indices of shape (parties, rows).

    Where several classifiers are named, each party draws one of them by its own chance. Without `l2` each party takes
    that of its own size (`party_l2`).
    """
    n_classes = tables[0].n_classes
    chosen = [_choose(table, names, rng) for table, rng in zip(tables, rngs, strict=True)]
    votes: Votes = np.zeros((len(tables), len(X)), dtype=np.uint8 if n_classes <= 256 else np.int64)
    logistic = [i for i, factory in enumerate(chosen) if factory is None]
    for start in range(0, len(logistic), _CROWD):
        crowd = logistic[start : start + _CROWD]
        theta = local_models([tables[i] for i in crowd], l2=l2, constant=1.0)
        _predict(theta, X, n_classes, votes, crowd)
    for i, factory in enumerate(chosen):
        if factory is not None:
            votes[i] = _votes_of_one(factory, tables[i], X)
    return votes


def local_models(tables: Sequence[Table], *, l2: float | None, constant: float) -> Floats:
    """Penalised logistic or softmax models of each table, of shape (parties, k) or (parties, C, k).

    A fit that rounding spoils is a model of zeros.
    """
    penalties = [party_l2(table.n_complete) if l2 is None else l2 for table in tables]
    problem = Problem(
        n_features=tables[0].n_columns,
        n_classes=tables[0].n_classes,
        l2=penalties[0],
        intercept="feature" if constant else "none",
        constant=constant or 1.0,
    )
    try:
        if len(tables) == 1:
            return fit(tables[0].blocks, problem=problem).theta[None]
        rows = [table.arrays() for table in tables]
        offsets = np.concatenate([[0], np.cumsum([len(y) for _, y in rows])])
        X, y = np.concatenate([X for X, _ in rows]), np.concatenate([y for _, y in rows])
        return fit_many(X, y, offsets, problem=problem, l2=np.array(penalties)).theta
    except (RunError, DataError):  # no complete record at all is a DataError
        if len(tables) == 1:
            return np.zeros((1, *problem.loss.shape))
        return np.concatenate([local_models([table], l2=l2, constant=constant) for table in tables])


def _choose(table: Table, names: Sequence[str], rng: Rng) -> Factory | None:
    """None is logistic regression."""
    if table in _OWN:
        return _OWN[table]
    name = names[0] if len(names) == 1 else names[int(rng.below(len(names), 1)[0])]
    return _FACTORIES.get(name)


def _predict(theta: Floats, X: Floats, n_classes: int, votes: Votes, at: Sequence[int]) -> None:
    """Fill in the votes of linear models, some parties at a time."""
    loss = Loss(n_features=X.shape[1], n_classes=n_classes)
    per_party = max(1, len(X) * (1 if n_classes == 2 else n_classes))
    several = max(1, _SCORES // per_party)
    for start in range(0, len(at), several):
        some = theta[start : start + several]
        scores = loss.scores(X, some.reshape(-1, loss.width)).T.reshape(*some.shape[:-1], len(X))
        votes[at[start : start + several]] = scores > 0 if n_classes == 2 else scores.argmax(axis=1)


def _votes_of_one(factory: Factory, table: Table, X: Floats) -> Ints:
    """The votes of a scikit-learn classifier; the first class if it fails."""
    own, y = table.arrays()
    n_classes = table.n_classes
    if (y == y[:1]).all():
        return np.full(len(X), y[0] if len(y) else 0)  # many classifiers refuse a single class
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = factory()
            model.fit(own.copy(), y.copy())
            predicted = np.asarray(model.predict(X.copy()))
        votes = predicted.astype(np.int64)
    except Exception:  # whether it fails depends on records, so nobody may hear of it
        return np.zeros(len(X), dtype=np.int64)
    fits = votes.shape == (len(X),) and ((votes >= 0) & (votes < n_classes)).all()
    return votes if fits else np.zeros(len(X), dtype=np.int64)


def _rehearse(factory: Factory, what: str) -> None:
    """Try a classifier on made-up rows, where its errors tell nothing."""
    X = np.array([[0.0, 0.1], [0.2, 0.0], [0.1, 0.3], [0.9, 1.0], [1.0, 0.8], [0.7, 0.9]])
    y = np.array([0, 0, 0, 1, 1, 1])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = factory()
            model.fit(X, y)
            predicted = np.asarray(model.predict(X))
    except Exception as error:
        raise SettingError(f"{what} cannot learn and predict six made-up rows: {error}") from error
    if predicted.shape != y.shape or not np.isin(predicted, (0, 1)).all():
        raise SettingError(f"{what} does not predict one of the class indices that it was given for each row")
