"""Made-up records of a study's shape, for rehearsals: no fact about anybody, only what the schema and a guess say.

Numbers lie around the middle of their bounds, or as a typical value says (`tacit.data.typical`). The first of many
categories is the commonest. The classes follow a logistic model with random coefficients. Its intercept gives the
positive class the share that is guessed, and its coefficients are as strong as the guessed accuracy, or AUC, of the
best possible prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtr, softmax

from tacit.bisection import bisect
from tacit.data.encoding import Encoded
from tacit.data.feature import Binary, Categorical, Feature, Numeric
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.data.typical import TypicalValue
from tacit.errors import SettingError
from tacit.rand import Rng

Floats = NDArray[np.float64]

_WIDE, _NARROW = 1 / 6, 1 / 30  # standard deviations of numbers, as shares of their bounds
_TOGETHER = 0.7  # the correlation of any two columns, up to its sign, where they go together
_RARE = 0.3  # of records have the second value of a binary feature
_STRONGEST = 1e4  # factor on the coefficients
_ENOUGH = 20_000  # records to find the strength with
_USUAL_ACCURACY = 0.8  # of classes of equal size
_USUAL_AUC = 0.88  # which is the same strength, for classes of any size


@dataclass(frozen=True, kw_only=True)
class PublicGuess:
    """What is guessed of a population in public: how common the positive class is, and how well it can be predicted.

    Attributes:
        positive_share: of the last of two classes; None is a half, or classes of about equal size if there are more.
        accuracy: of the best possible prediction. None, and no `auc`: 0.8, or the AUC of 0.88 where classes differ.
        auc: of the best possible prediction of two classes, in place of the accuracy; the better guess of the two
            where a class is rare.
        typical: of single features, what is known in public.
        spread: of the other numbers, the standard deviation as a share of their bounds.
        together: how strongly columns go together: the correlation, up to its sign, of what is behind any two of them.
    """

    positive_share: float | None = None
    accuracy: float | None = None
    auc: float | None = None
    typical: tuple[TypicalValue, ...] = ()
    spread: float = _WIDE
    together: float = 0.0

    def check(self, schema: Schema) -> None:
        """Refuse what no population of the schema's classes can be like."""
        for value in self.typical:
            value.check(schema.features)
        if len({value.name for value in self.typical}) < len(self.typical):
            raise SettingError("typical values name a feature twice; every feature has one")
        if schema.n_classes > 2 and (self.positive_share is not None or self.auc is not None):
            raise SettingError(f"positive_share and auc are for two classes; the target has {schema.n_classes}")
        if self.positive_share is not None and not 0 < self.positive_share < 1:
            raise SettingError(f"positive_share = {self.positive_share} must lie between 0 and 1, such as 0.12")
        if self.accuracy is not None and self.auc is not None:
            raise SettingError("accuracy and auc are two guesses of one thing; give one of them")
        if self.auc is not None and not 0.5 < self.auc < 1:
            raise SettingError(f"auc = {self.auc} must lie between 0.5, which guessing reaches, and 1")
        share = 1 / schema.n_classes if self.positive_share is None else self.positive_share
        least = max(share, 1 - share) if schema.n_classes == 2 else share
        if self.accuracy is not None and not least < self.accuracy < 1:
            raise SettingError(
                f"accuracy = {self.accuracy} must lie between {least:.3g}, which always answering the commonest class "
                f"reaches, and 1; where a class is rare, guess the AUC"
            )

    def words(self, schema: Schema) -> str:
        """The guess, for whoever reads what was made of it."""
        return f"{self._class_words(schema)}; {self._spread_words(schema)}"

    def unknown_spreads(self, schema: Schema) -> list[str]:
        """The numbers of which nobody said how far they spread."""
        known = {value.name for value in self.typical}
        return [one.name for one in schema.features if isinstance(one, Numeric) and one.name not in known]

    def _spread_words(self, schema: Schema) -> str:
        unknown = self.unknown_spreads(schema)
        given = f"{len(self.typical)} features are as is guessed of them" if self.typical else ""
        if not unknown:
            return given or "it has no numbers"
        rest = "the other numbers" if self.typical else "numbers"
        return f"{given}{', ' if given else ''}{rest} spread over about 1/{1 / self.spread:.0f} of their bounds"

    def alternative(self) -> PublicGuess:
        """The other of two guesses where nobody knows better: narrow numbers, and columns that go together."""
        return replace(self, spread=_NARROW, together=_TOGETHER)

    def _class_words(self, schema: Schema) -> str:
        if schema.n_classes > 2:
            return f"of which the best model predicts {self.accuracy or _USUAL_ACCURACY:.0%}"
        positive = schema.target.classes[-1]
        share = 0.5 if self.positive_share is None else self.positive_share
        told = f"{share:.3g} of them {positive!r}" + (" for want of a guess" if self.positive_share is None else "")
        accuracy, auc = self._strength()
        best = f"predicts {accuracy:.1%}" if accuracy is not None else f"has an AUC of {auc:.3g}"
        return f"{told}, of which the best model {best}"

    def _strength(self) -> tuple[float | None, float | None]:
        """The accuracy or the AUC to be reached."""
        if self.accuracy is not None or self.auc is not None:
            return self.accuracy, self.auc
        return (_USUAL_ACCURACY, None) if self.positive_share in (None, 0.5) else (None, _USUAL_AUC)

    def probabilities(self, scores: Floats) -> Floats:
        """The probability of each of the classes (columns), from centred scores of them."""
        accuracy, auc = self._strength()
        if scores.shape[1] > 2:
            factor = _factor(lambda f: _mean_of_best(softmax(f * scores[:_ENOUGH], axis=1)) >= (accuracy or 0.0))
            return np.asarray(softmax(factor * scores, axis=1))
        share = 0.5 if self.positive_share is None else self.positive_share
        score = scores[:, 1] - scores[:, 0]
        few = score[:_ENOUGH]

        def is_strong(factor: float) -> bool:
            p = expit(factor * few + _intercept(factor * few, share))
            return _area(few, p) >= auc if auc is not None else _mean_of_best(_both(p)) >= (accuracy or 0.0)

        factor = _factor(is_strong)
        return _both(expit(factor * score + _intercept(factor * few, share)))


def synthetic_table(schema: Schema, n_records: int, *, guess: PublicGuess | None = None, rng: Rng) -> Table:
    """Records whose classes are as common, and as well predicted by the best linear model, as is guessed.

    Raises:
        SettingError: if no population can be like the guess.
    """
    guess = PublicGuess() if guess is None else guess
    guess.check(schema)
    generator = rng.generator()
    Z = _behind(len(schema.features), n_records, guess.together, generator)
    V = np.stack([_codes(feature, z, guess) for feature, z in zip(schema.features, Z, strict=True)])
    X, rows_clipped = schema.encode_codes(V)
    scores = (X - X.mean(axis=0)) @ generator.standard_normal((schema.n_columns, schema.n_classes))
    P = guess.probabilities(scores)
    y = (P.cumsum(axis=1) < generator.random(n_records)[:, None]).sum(axis=1)
    labels = np.minimum(y, schema.n_classes - 1).astype(np.int64)
    return Table.from_encoded("made-up records", schema, Encoded(X, labels, {}, rows_clipped, 0))


def _behind(n_features: int, n: int, together: float, generator: Generator) -> Floats:
    """Standard normal numbers behind each feature (rows), which share so much of their variance."""
    Z = generator.standard_normal((n_features, n))
    if together:
        shared, signs = generator.standard_normal(n), generator.choice([-1.0, 1.0], size=(n_features, 1))
        Z = np.sqrt(1 - together) * Z + np.sqrt(together) * signs * shared
    return Z


def _codes(feature: Feature, z: Floats, guess: PublicGuess) -> Floats:
    """The values of one feature, of which higher ones belong to higher z."""
    typical = next((value for value in guess.typical if value.name == feature.name), None)
    match feature:
        case Binary():
            share = _RARE if typical is None else typical.figures[0]
            return np.asarray(ndtr(z) > 1 - share, dtype=np.float64)
        case Categorical():
            weights = 1 / np.arange(1, len(feature.categories) + 1) if typical is None else np.array(typical.figures)
            edges = np.cumsum(weights / weights.sum())[:-1]
            return np.asarray(np.searchsorted(edges, ndtr(z)), dtype=np.float64)
        case _:
            low, high = feature.bounds or (-1.0, 1.0)
            if typical is not None:
                return typical.numbers(ndtr(z), low, high)
            middle, width = low / 2 + high / 2, high - low
            return np.clip(middle + guess.spread * width * z, low, high)


def _factor(is_strong: Callable[[float], bool]) -> float:
    """The factor on the scores from which on they are strong."""
    return bisect(is_strong, yes=_STRONGEST, no=0.0, tolerance=1e-9)


def _intercept(scores: Floats, share: float) -> float:
    """The constant with which the mean probability is the share."""
    middle, far = float(np.log(share / (1 - share))), float(np.max(np.abs(scores))) + 1.0
    found: float = brentq(lambda b: float(expit(scores + b).mean()) - share, middle - far, middle + far, xtol=1e-10)
    return found


def _area(scores: Floats, p: Floats) -> float:
    """The expected AUC of scores whose records are positive with probabilities `p`."""
    q = p[np.argsort(scores)]
    below = np.cumsum(1 - q) - (1 - q)
    return float((q @ below) / (q.sum() * (1 - q).sum() - q @ (1 - q)))


def _mean_of_best(P: Floats) -> float:
    """How often the likeliest class is right."""
    return float(P.max(axis=1).mean())


def _both(p: Floats) -> Floats:
    return np.column_stack([1 - p, p])
