"""What every method is: an estimator in scikit-learn's sense that learns from a federation instead of an array.

Settings go into the constructor, `fit(parties)` learns, learned things end in an underscore. The guarantee is a fact
about the settings and needs no data.
"""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError as ScikitNotFittedError

from tacit.data.rows import Rows, encode_rows, positions_of
from tacit.data.schema import Schema
from tacit.errors import SettingError, UserError
from tacit.federation.agreement import Ask, Terms
from tacit.federation.channel import Channel, Given
from tacit.federation.federation import Federation
from tacit.federation.group import SizesTold, SumGroup
from tacit.methods.cohort import Cohort, Promise
from tacit.methods.learned import Learned, effective_settings, notices_of, traffic_facts
from tacit.methods.model_file import ModelFile
from tacit.methods.neighbour import Neighbours
from tacit.methods.setting import settings_of
from tacit.privacy.accounting import epsilon_of, guarantee_of
from tacit.privacy.event import Composed, Event, Gaussian
from tacit.privacy.guarantee import Guarantee, Relation, Unit
from tacit.report.coefficient import coefficient_rows, coefficient_table, fit_facts, interval_table
from tacit.report.facts import PartyFacts, RunFacts
from tacit.report.heading import parse_headings
from tacit.report.identity import column_facts
from tacit.report.joint import joint_tests
from tacit.report.metrics import Metrics, evaluate
from tacit.report.notebook import rounds_shown
from tacit.report.page import Report
from tacit.report.text import summary_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Learned", "Method", "NotFittedError"]

Floats = npt.NDArray[np.float64]


class NotFittedError(UserError, ScikitNotFittedError):  # type: ignore[misc]
    """A model was asked for something before it was fitted."""


class Method(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """One way to learn a classifier from parties.

    Records to predict are in the columns' own units, encoded by the schema as the parties' tables are. A data frame's
    columns are found by name. An array, or a data frame whose columns are numbered, has one column for each feature, in
    the order of `schema_.feature_names`.

    A subclass states its settings in `__init__`, its cost in `event`, and what a run is in `plan` and `course`, which
    follow from settings and cohort alone; it learns in `_learn`. One whose model is not linear also overrides
    `decision_function`, `_state` and `_restore`.

    Attributes:
        classes_: the labels; of two, the last is the positive one.
        coef_: of shape (1, d) for two classes, (C, d) for more; only linear models have it. Its d columns are the
            encoded ones, `schema_.column_names`: a number with bounds is scaled by them to [-1, 1], a category is 0 or
            1. A federation made from arrays declares no bounds, so that there these are the array's own columns.
            `table()` and `summary()` are in original units.
        intercept_: of shape (1,) or (C,), over the same columns.
        n_features_in_: how many features the schema has.
        feature_names_in_: their names, if they were given any.
        schema_: the public facts about the columns.
        guarantee_, delta_: what the run promises; its delta, as the number of records settled it.
        n_rounds_: how many rounds the run took.
        facts_: the run in plain facts, for reports.
        metrics_: what `evaluate` measured, by label.
    """

    name: ClassVar[str]
    unit: Unit = "record"
    relation: Relation = "replace-one"
    needs_everybody: ClassVar[bool] = True  # whether a round cannot go on without a few parties
    takes_offers: bool = False  # whether a party may offer less epsilon than is asked
    resumes: ClassVar[bool] = True  # whether a run that broke off can go on; else a new one begins

    @property
    def sizes_told(self) -> SizesTold:
        """What is told of the parties' numbers of records: nothing, where neighbours may differ in them."""
        may_differ = self.unit == "party" or self.relation == "add-remove"
        return "none" if may_differ and self.promise.not_private is None else "each"

    @abstractmethod
    def event(self) -> Event:
        """What one run costs each record; needs no data."""

    @abstractmethod
    def plan(self, cohort: Cohort) -> Any:
        """The public plan of a run with this cohort: every party works out the same."""

    @abstractmethod
    def course(self, plan: Any) -> tuple[Ask, ...]:
        """Which steps a run with this plan asks, in which order, and how often at most."""

    @abstractmethod
    def _check_settings(self) -> None:
        """Refuse settings that cannot be honoured."""

    @abstractmethod
    def _learn(self, channel: Channel, plan: Any) -> Learned:
        """Ask the parties and put their answers together."""

    @property
    def promise(self) -> Promise:
        """What the settings promise, before any size is known."""
        return Promise(
            method=type(self).__name__,
            epsilon=getattr(self, "epsilon", math.inf),
            delta=getattr(self, "delta", 0.0),
            relation=self.relation,
            calibration=getattr(self, "calibration", "sound"),
        )

    @property
    def guarantee(self) -> Guarantee:
        """What one run promises; needs no data."""
        self._check_settings()
        promised = guarantee_of(self.event(), self.promise.settled_delta, self.unit, self.relation)
        return replace(promised, epsilon=self._as_asked(promised.epsilon))

    @property
    def weighted_unit(self) -> Unit:
        """Whose records weigh 1 together in a sum; a method that cannot choose its unit weighs all records alike."""
        return self.unit if "unit" in settings_of(type(self)) else "record"

    def terms(self, schema: Schema, group: SumGroup) -> Terms:
        """What a run with this group is: the same for the coordinator and for every party."""
        self._check_settings()
        cohort = self.cohort(schema, group)
        plan, delta = self.plan(cohort), self.promise.settled(cohort.n_units or None).settled_delta
        return Terms(plan=plan, course=self.course(plan), delta=delta)

    def cohort(self, schema: Schema, group: SumGroup) -> Cohort:
        """Who takes part in a run with this group, with the settings' intercept and colluders."""
        constant = 1.0 if getattr(self, "fit_intercept", False) else 0.0
        colluders, method = getattr(self, "colluders", None), type(self).__name__
        cohort = Cohort.of(
            schema, group, colluders=colluders, constant=constant, method=method, unit=self.weighted_unit
        )
        return cohort.with_offers(self.promise.settled(cohort.n_units), taken=self.takes_offers)

    def _as_asked(self, epsilon: float) -> float:
        """The epsilon that was asked for, where the accountant's differs from it by its rounding alone."""
        asked = getattr(self, "epsilon", None)
        return float(asked) if asked is not None and math.isclose(epsilon, asked, rel_tol=1e-9) else epsilon

    def at_noise(self, factor: float) -> Self:
        """The same method with `factor` times the noise, that is, with the epsilon for which that noise is right.

        For audits: what claims this method's epsilon and has half its noise must be caught. Right as it stands for a
        pure release whose noise is in proportion to 1/epsilon, and for Gaussian noise; others override it.
        """
        promise = self.promise
        if promise.is_pure:
            epsilon = promise.epsilon / factor
        else:
            epsilon = epsilon_of(Gaussian(noise_multiplier=factor / promise.mu), promise.settled_delta)
        return type(self)(**self.get_params() | {"epsilon": epsilon})

    @classmethod
    def worst_neighbours(cls) -> list[Neighbours]:
        """Pairs of neighbouring federations that this method can tell apart as well as it ever can, for audits."""
        return []

    @classmethod
    def person_neighbours(cls, copies: int = 8) -> list[Neighbours]:
        """Pairs that differ in all records of one person, or party: so many copies of what differs in the others."""
        return [pair.of_persons(copies) for pair in cls.worst_neighbours()]

    @classmethod
    def printed_neighbours(cls) -> list[Neighbours]:
        """The same for the calibration that a document prints: pairs that bring its mistake out."""
        return cls.worst_neighbours()

    def fit(self, parties: Federation, y: None = None) -> Self:
        """Learn from the parties; returns self.

        Args:
            parties: who takes part; they have the labels.
            y: nothing; it is here because scikit-learn's estimators have it.
        """
        if not isinstance(parties, Federation) or y is not None:
            given = type(parties).__name__ + ("" if y is None else " and labels")
            raise SettingError(
                f"{type(self).__name__}.fit takes a Federation, not a {given}; "
                f"make one with tacit.Federation.split(X, y, ...) or .from_files(schema, ...)"
            )
        self._check_settings()
        started = time.perf_counter()
        before = parties.told_sizes(self)
        with rounds_shown(parties, f"fitting {self.name}"):
            run = parties.begin(self)
            self.delta_: float = run.delta
            with run:
                learned = self._learn(run, run.plan)
        self._take_columns(parties.schema, parties.labels)
        if learned.coef is not None and learned.intercept is not None:
            self.coef_: Floats = learned.coef
            self.intercept_: Floats = learned.intercept
        self.n_rounds_: int = run.traffic.rounds
        promised = self.guarantee
        if promised.delta > self.delta_:  # told for the rule's largest delta; the noise was sized for what was asked
            promised = replace(promised, epsilon=max(promised.epsilon, self.promise.epsilon), delta=self.delta_)
        self.guarantee_: Guarantee = promised
        self.metrics_: dict[str, Metrics] = {}
        self.facts_: RunFacts = self._facts(run, learned, before, time.perf_counter() - started)
        return self

    # --- prediction, by scikit-learn's conventions -------------------------------------------------------------------

    def decision_function(self, X: Rows) -> Floats:
        """Log odds of the last class (two classes), or one score for each class."""
        scores: Floats = self._encoded(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Rows) -> Floats:
        """The probability of each class, of shape (n, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        probabilities: Floats = softmax(scores, axis=1)
        return probabilities

    def predict(self, X: Rows) -> npt.NDArray[Any]:
        """The likeliest class of each row."""
        likeliest = np.argmax(self.predict_proba(X), axis=1)
        predicted: npt.NDArray[Any] = self.classes_[likeliest]
        return predicted

    def score(self, X: Rows, y: npt.ArrayLike | None = None) -> float:
        """Accuracy; a `Table` brings its own labels."""
        return float(np.mean(np.argmax(self.predict_proba(X), axis=1) == self._truth(X, y)))

    def evaluate(self, X: Rows, y: npt.ArrayLike | None = None, *, label: str = "test data") -> Metrics:
        """Measure on records that the caller may see, and put the figures into the report."""
        classes = [str(c) for c in self.classes_]
        self.metrics_[label] = metrics = evaluate(self._truth(X, y), self.predict_proba(X), classes)
        return metrics

    # --- what is told ------------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """What the model is worth, if it was measured, and the regression table in original units, as text."""
        self._check_fitted()
        return summary_text(self.facts_, self.metrics_)

    def table(self) -> pd.DataFrame:
        """The regression table as a data frame, in original units: one estimator a row, the odds ratio included.

        A row that is not `identified` has NaN for all numbers but `prediction`, with which the model predicts.
        """
        self._check_fitted()
        return coefficient_table(self.facts_.coefficients)

    def conf_int(self) -> pd.DataFrame:
        """The 95 % interval of each term (`low`, `high`), by its name; unbounded where it is not identified."""
        self._check_fitted()
        return interval_table(self.facts_.coefficients)

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
        self._check_fitted()
        ModelFile(
            method=self.name,
            schema=self.schema_,
            classes=self.classes_,
            state=self._state(),
            n_rounds=self.n_rounds_,
            delta=self.delta_,
            facts=self.facts_,
        ).write(path)

    def take_file(self, file: ModelFile) -> Self:
        """Become the fitted model that a file holds; `tacit.load` makes the method with its settings first."""
        self._take_columns(file.schema, file.classes)
        self._restore(file.state)
        self.n_rounds_ = file.n_rounds
        self.delta_ = file.delta
        assert file.facts.guarantee is not None
        self.guarantee_ = file.facts.guarantee
        self.facts_ = file.facts
        self.metrics_ = {}
        return self

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that make up the model, for its file."""
        return {"coef": self.coef_, "intercept": self.intercept_}

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take the model from what `_state` gave."""
        self.coef_ = np.asarray(state["coef"], dtype=np.float64)
        self.intercept_ = np.asarray(state["intercept"], dtype=np.float64)

    def _html_repr(self) -> str:
        """A fitted model as a notebook shows it; of one that is not, its settings."""
        fitted = self.__sklearn_is_fitted__()
        return self.report.brief_html() if fitted else str(BaseEstimator._html_repr(self))

    # --- inside ------------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        """Whether it has learned; a run that broke off leaves no model."""
        return hasattr(self, "facts_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} has not learned anything yet; call fit(parties) first")

    def _take_columns(self, schema: Schema, labels: npt.NDArray[Any]) -> None:
        self.schema_: Schema = schema
        self.classes_: npt.NDArray[Any] = labels
        self.n_features_in_: int = len(schema.features)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        if schema.has_own_names:
            self.feature_names_in_: npt.NDArray[Any] = np.array(schema.feature_names, dtype=object)

    def _encoded(self, X: Rows) -> Floats:
        self._check_fitted()
        return encode_rows(X, self.schema_, type(self).__name__)

    def _truth(self, X: Rows, y: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
        self._check_fitted()
        return positions_of(X, y, self.classes_)

    def _facts(self, run: Channel, learned: Learned, sizes: Mapping[str, int | None], seconds: float) -> RunFacts:
        columns = column_facts(run.schema)
        return RunFacts(
            method=type(self).__name__,
            method_name=self.name,
            calibration=getattr(self, "calibration", None),
            settings=self.get_params(),
            effective=effective_settings(self.get_params(), run.plan, self.delta_),
            headings=self.headings(),
            classes=tuple(str(c) for c in self.classes_),
            target=run.schema.target.name,
            parties=tuple(self._party_facts(name, size, run.traffic.given.get(name)) for name, size in sizes.items()),
            guarantee=self.guarantee_,
            traffic=traffic_facts(run.traffic),
            seconds=seconds,
            coefficients=coefficient_rows(learned.coef, learned.intercept, run.schema, learned.inference),
            columns=columns,
            joint=joint_tests(learned.inference, run.schema, columns, 0 if learned.coef is None else len(learned.coef)),
            fit=fit_facts(learned.inference, run.n_records or None),
            notices=notices_of(learned, self.weighted_unit, run.offers, run.plan),
            seeded=run.seeded,
            verdict=learned.verdict,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            version=sys.modules["tacit"].__version__,
        )

    def _party_facts(self, name: str, n_records: int | None, given: Given | None) -> PartyFacts:
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
