"""What every method is: an estimator in scikit-learn's sense that learns from a federation instead of an array.

Settings go into the constructor, `fit(parties)` learns, learned things end in an underscore. The guarantee is a fact
about the settings and needs no data.
"""

from __future__ import annotations

import math
import sys
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator

from tacit.data.encoding import clip_rows
from tacit.data.label import normal
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import NotFittedError, SettingError
from tacit.federation.federation import Federation, Given
from tacit.methods.coefficient import coefficient_rows
from tacit.methods.neighbour import Neighbours
from tacit.models.inference import Inference
from tacit.privacy.accounting import epsilon_for, epsilon_of, guarantee_of, rho_for
from tacit.privacy.event import Composed, Event
from tacit.privacy.guarantee import Guarantee, Relation, Unit
from tacit.report.facts import HEADINGS, FitFacts, PartyFacts, RunFacts, Traffic
from tacit.report.metrics import Metrics, evaluate
from tacit.report.page import Report
from tacit.report.text import summary_text

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a method brings home from the parties, in encoded units.

    Attributes:
        coef: of shape (1, d) for two classes, (C, d) for more; None if the model is not linear.
        intercept: of shape (1,) or (C,); None if the model is not linear.
        inference: standard errors and likelihood, in original units, where the fit is exact.
        notices: what a reader of the report should know.
    """

    coef: Floats | None
    intercept: Floats | None
    inference: Inference | None = None
    notices: tuple[str, ...] = ()


class Method(BaseEstimator, ABC):  # type: ignore[misc]
    """One way to learn a classifier from parties.

    A subclass states its settings in `__init__`, its cost in `event`, and learns in `_learn`. One whose model is not
    linear also overrides `decision_function`, `_state` and `_restore`.
    """

    name: ClassVar[str]
    unit: Unit = "record"
    relation: Relation = "replace-one"
    needs_everybody: ClassVar[bool] = True  # whether a round cannot go on without a few parties

    @abstractmethod
    def event(self) -> Event:
        """What one run costs each record; needs no data."""

    @abstractmethod
    def _check_settings(self) -> None:
        """Refuse settings that cannot be honoured."""

    @abstractmethod
    def _learn(self, parties: Federation) -> Learned:
        """Ask the parties and put their answers together."""

    @property
    def guarantee(self) -> Guarantee:
        """What one run promises; needs no data."""
        self._check_settings()
        delta = float(getattr(self, "delta", None) or 0.0)
        promised = guarantee_of(self.event(), delta, self.unit, self.relation)
        return replace(promised, epsilon=self._as_asked(promised.epsilon), delta=delta)

    def _as_asked(self, epsilon: float) -> float:
        """The epsilon that was asked for, where the accountant's differs from it by its rounding alone."""
        asked = getattr(self, "epsilon", None)
        return float(asked) if asked is not None and math.isclose(epsilon, asked, rel_tol=1e-9) else epsilon

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise, that is, with the epsilon for which that noise is right.

        For audits: what claims this method's epsilon and has half its noise must be caught. Right as it stands for a
        pure release whose noise is in proportion to 1/epsilon, and for Gaussian noise; others override it.
        """
        settings = self.get_params()
        delta = settings.get("delta")
        if delta is None:
            epsilon = settings["epsilon"] / factor
        else:
            epsilon = epsilon_for(rho_for(settings["epsilon"], delta) / factor**2, delta)
        return type(self)(**settings | {"epsilon": epsilon})

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """Pairs of neighbouring federations that this method can tell apart as well as it ever can, for audits."""
        return []

    @classmethod
    def printed_neighbours(cls) -> list[Neighbours]:
        """The same for the calibration that a document prints: pairs that bring its mistake out."""
        return cls.worst_neighbours()

    def fit(self, parties: Federation) -> Self:
        """Learn from the parties; returns self."""
        if not isinstance(parties, Federation):
            raise SettingError(
                f"{type(self).__name__}.fit takes a Federation, not a {type(parties).__name__}; "
                f"make one with tacit.Federation.split(X, y, ...) or .from_files(schema, ...)"
            )
        self._check_settings()
        started = time.perf_counter()
        before = {name: card.n_records for name, card in parties.cards.items()}
        run = parties.begin(self.name)
        learned = self._learn(run)
        self.schema_: Schema = parties.schema
        self.classes_: npt.NDArray[Any] = parties.labels
        if learned.coef is not None and learned.intercept is not None:
            self.coef_: Floats = learned.coef
            self.intercept_: Floats = learned.intercept
        self.n_features_in_: int = parties.schema.n_columns
        self.n_rounds_: int = run.traffic.rounds
        self.guarantee_: Guarantee = self.guarantee
        self.metrics_: dict[str, Metrics] = {}
        self.facts_: RunFacts = self._facts(run, learned, before, time.perf_counter() - started)
        return self

    # --- prediction, by scikit-learn's conventions -------------------------------------------------------------------

    def decision_function(self, X: npt.ArrayLike | pd.DataFrame | Table) -> Floats:
        """Log odds of the last class (two classes), or one score for each class."""
        rows = self._encoded(X)
        scores: Floats = rows @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: npt.ArrayLike | pd.DataFrame | Table) -> Floats:
        """The probability of each class, of shape (n, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        probabilities: Floats = softmax(scores, axis=1)
        return probabilities

    def predict(self, X: npt.ArrayLike | pd.DataFrame | Table) -> npt.NDArray[Any]:
        """The likeliest class of each row."""
        likeliest = np.argmax(self.predict_proba(X), axis=1)
        predicted: npt.NDArray[Any] = self.classes_[likeliest]
        return predicted

    def score(self, X: npt.ArrayLike | pd.DataFrame | Table, y: npt.ArrayLike | None = None) -> float:
        """Accuracy; a `Table` brings its own labels."""
        truth = self._truth(X, y)
        return float(np.mean(np.argmax(self.predict_proba(X), axis=1) == truth))

    def evaluate(
        self, X: npt.ArrayLike | pd.DataFrame | Table, y: npt.ArrayLike | None = None, *, label: str = "test data"
    ) -> Metrics:
        """Measure on records that the caller may see, and put the figures into the report."""
        classes = [str(c) for c in self.classes_]
        self.metrics_[label] = metrics = evaluate(self._truth(X, y), self.predict_proba(X), classes)
        return metrics

    # --- what is told ------------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """The regression table as text, in the columns' original units."""
        self._check_fitted()
        return summary_text(self.facts_)

    @property
    def report(self) -> Report:
        """The run in full: what was learned, spent, sent and seen. `report.save("report.html")` writes a page."""
        self._check_fitted()
        return Report(self.facts_, dict(self.metrics_))

    @classmethod
    def headings(cls) -> dict[str, str]:
        """The eight headings with which the method's file opens."""
        return parse_headings(sys.modules[cls.__module__].__doc__ or "")

    # --- keeping it --------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; `tacit.load` reads it. Nothing in the file can run."""
        from tacit.methods.file import save

        self._check_fitted()
        save(self, Path(path))

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that make up the model, for its file."""
        return {"coef": self.coef_, "intercept": self.intercept_}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take the model from what `_state` gave."""
        self.coef_ = np.asarray(state["coef"], dtype=np.float64)
        self.intercept_ = np.asarray(state["intercept"], dtype=np.float64)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "facts_"):
            raise NotFittedError(f"this {type(self).__name__} has not learned anything yet; call fit(parties) first")

    def _encoded(self, X: npt.ArrayLike | pd.DataFrame | Table) -> Floats:
        self._check_fitted()
        if isinstance(X, Table):
            return X.arrays()[0]
        if isinstance(X, pd.DataFrame):
            return self.schema_.encode_features(
                {name: X[name].to_numpy() for name in self.schema_.feature_names if name in X}
            )
        matrix = np.asarray(X, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != self.n_features_in_:
            raise SettingError(
                f"X of shape {matrix.shape} does not fit a model of {self.n_features_in_} columns; give one for each"
            )
        if self.schema_.norm_bound is None:
            return matrix
        return clip_rows(matrix, self.schema_.norm_bound, overwrite=False)[0]

    def _truth(self, X: npt.ArrayLike | pd.DataFrame | Table, y: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
        self._check_fitted()
        if isinstance(X, Table):
            return X.arrays()[1]
        if y is None:
            raise SettingError("y is missing: give the true classes, or a Table, which brings its own")
        position = {normal(label): i for i, label in enumerate(self.classes_.tolist())}
        values, inverse = np.unique(np.asarray(y), return_inverse=True)
        indices = np.array([position.get(normal(value), -1) for value in values.tolist()], dtype=np.int64)
        if np.any(indices < 0):
            raise SettingError(
                f"y holds {np.sum(indices < 0)} labels that are none of the classes {', '.join(position)}"
            )
        return indices[inverse]

    def _facts(self, run: Federation, learned: Learned, sizes: Mapping[str, int], seconds: float) -> RunFacts:
        inference = learned.inference
        return RunFacts(
            method=type(self).__name__,
            method_name=self.name,
            calibration=getattr(self, "calibration", None),
            settings=self.get_params(),
            headings=self.headings(),
            classes=tuple(str(c) for c in self.classes_),
            target=run.schema.target.name,
            parties=tuple(self._party_facts(name, size, run.traffic.given.get(name)) for name, size in sizes.items()),
            guarantee=self.guarantee_,
            traffic=Traffic(
                rounds=run.traffic.rounds,
                messages=run.traffic.messages,
                bytes_up=run.traffic.bytes_up,
                bytes_down=run.traffic.bytes_down,
            ),
            seconds=seconds,
            coefficients=()
            if learned.coef is None or learned.intercept is None
            else coefficient_rows(learned.coef, learned.intercept, run.schema, inference),
            fit=None
            if inference is None
            else FitFacts(log_likelihood=inference.log_likelihood, aic=inference.aic, n_records=sum(sizes.values())),
            notices=learned.notices,
            seeded=run.seeded,
        )

    def _party_facts(self, name: str, n_records: int, given: Given | None) -> PartyFacts:
        events = () if given is None else tuple(given.events)
        delta = self.guarantee_.delta
        return PartyFacts(
            name=name,
            n_records=n_records,
            epsilon=self._as_asked(epsilon_of(Composed(events=events), delta, relation=self.relation)),
            delta=delta if events else 0.0,
            bytes_sent=0 if given is None else given.n_bytes,
            releases=len(events),
        )


def parse_headings(text: str) -> dict[str, str]:
    """The eight headings of a method's or protocol's docstring, each with its text on one line."""
    found: dict[str, list[str]] = {}
    current: str | None = None
    for line in textwrap.dedent(text).splitlines():
        word, _, rest = line.partition(" ")
        if word in HEADINGS and word not in found:
            current = word
            found[current] = [rest.strip()]
        elif current is not None and line.startswith(" ") and line.strip():
            found[current].append(line.strip())
        else:
            current = None
    return {heading: " ".join(lines) for heading, lines in found.items()}
