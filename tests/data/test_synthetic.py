"""Made-up records: of the schema's shape, and as predictable as asked."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from tacit.data.feature import Binary, Categorical, Numeric, Target
from tacit.data.schema import Schema
from tacit.data.synthetic import PublicGuess, synthetic_table
from tacit.data.typical import TypicalValue
from tacit.errors import SettingError
from tacit.rand import Rng

FEATURES = (
    Numeric("age", 20, 90),
    Numeric("pressure", 80, 200),
    Binary("smoker"),
    Categorical("pain", ("a", "b", "c", "d")),
)


def schema(n_classes: int) -> Schema:
    return Schema(FEATURES, Target("disease", tuple(f"c{k}" for k in range(n_classes))), norm_bound=1.5)


@pytest.mark.parametrize(("n_classes", "accuracy"), [(2, 0.75), (2, 0.95), (3, 0.7)])
def test_the_best_model_reaches_the_asked_accuracy(n_classes: int, accuracy: float) -> None:
    table = synthetic_table(schema(n_classes), 40_000, guess=PublicGuess(accuracy=accuracy), rng=Rng.seeded(1))
    X, y = table.arrays()
    found = LogisticRegression(max_iter=1000).fit(X, y).score(X, y)
    # rows that were clipped blur the model a little
    assert found == pytest.approx(accuracy, abs=0.015)


@pytest.mark.parametrize(("share", "auc"), [(0.12, 0.8), (0.02, 0.95), (0.9, 0.7)])
def test_the_positive_class_is_as_common_and_as_well_ranked_as_guessed(share: float, auc: float) -> None:
    guess = PublicGuess(positive_share=share, auc=auc)
    X, y = synthetic_table(schema(2), 40_000, guess=guess, rng=Rng.seeded(1)).arrays()
    assert y.mean() == pytest.approx(share, abs=3 * np.sqrt(share * (1 - share) / 40_000))
    scores = LogisticRegression(max_iter=1000).fit(X, y).decision_function(X)
    assert roc_auc_score(y, scores) == pytest.approx(auc, abs=0.02)


def test_a_skewed_accuracy_is_that_of_the_best_model() -> None:
    guess = PublicGuess(positive_share=0.2, accuracy=0.9)
    X, y = synthetic_table(schema(2), 40_000, guess=guess, rng=Rng.seeded(1)).arrays()
    assert LogisticRegression(max_iter=1000).fit(X, y).score(X, y) == pytest.approx(0.9, abs=0.015)


def test_the_guess_is_said_aloud() -> None:
    assert "0.5 of them 'c1' for want of a guess, of which the best model predicts 80.0%" in PublicGuess().words(
        schema(2)
    )
    told = PublicGuess(positive_share=0.12).words(schema(2))
    assert told == (
        "0.12 of them 'c1', of which the best model has an AUC of 0.88; numbers spread over about 1/6 of their bounds"
    )


@pytest.mark.parametrize(
    ("guess", "n_classes", "match"),
    [
        (PublicGuess(positive_share=1.0), 2, "positive_share = 1.0 must lie between 0 and 1"),
        (PublicGuess(positive_share=0.1, accuracy=0.85), 2, "between 0.9, which always answering the commonest class"),
        (PublicGuess(auc=0.5), 2, "auc = 0.5 must lie between 0.5"),
        (PublicGuess(auc=0.9, accuracy=0.9), 2, "two guesses of one thing"),
        (PublicGuess(positive_share=0.1), 3, "for two classes; the target has 3"),
    ],
)
def test_a_guess_that_cannot_be_is_refused(guess: PublicGuess, n_classes: int, match: str) -> None:
    with pytest.raises(SettingError, match=match):
        synthetic_table(schema(n_classes), 10, guess=guess, rng=Rng.seeded(3))


def test_rows_keep_the_schemas_bounds() -> None:
    table = synthetic_table(schema(2), 5000, rng=Rng.seeded(2))
    X, _ = table.arrays()
    assert np.linalg.norm(X, axis=1).max() <= 1.5 * (1 + 1e-12)
    assert (table.class_counts > 500).all()


@pytest.mark.parametrize("accuracy", [0.5, 1.0, 0.2])
def test_an_accuracy_that_cannot_be_is_refused(accuracy: float) -> None:
    with pytest.raises(SettingError, match=f"accuracy = {accuracy} must lie between 0.5"):
        synthetic_table(schema(2), 10, guess=PublicGuess(accuracy=accuracy), rng=Rng.seeded(3))


BOUNDED = Schema(
    (
        Numeric("age", 0, 120),
        Numeric("visits", 1, 100),
        Numeric("score", 0, 10),
        Binary("smoker", ("no", "yes")),
        Categorical("blood", ("o", "a", "b")),
    ),
    Target("ill", ("no", "yes")),
)


def test_numbers_are_as_typical_values_say() -> None:
    texts = ("age=54,9", "visits=3,4", "score=9,0.8", "smoker=0.05", "blood=0.1,0.2,0.7")
    guess = PublicGuess(typical=tuple(map(TypicalValue.parse, texts)))
    X, _ = synthetic_table(BOUNDED, 40_000, guess=guess, rng=Rng.seeded(4)).arrays()
    middle, factor = BOUNDED.layout.middle[:3], BOUNDED.layout.factor[:3]
    raw = X[:, :3] / factor + middle
    assert raw.mean(axis=0) == pytest.approx([54, 3, 9], rel=0.03)
    assert raw.std(axis=0) == pytest.approx([9, 4, 0.8], rel=0.06)
    assert raw.min(axis=0) == pytest.approx([20, 1, 5], abs=5)
    assert (X[:, 3] > X[:, 3].mean()).mean() == pytest.approx(0.05, abs=0.005)
    assert X[:, 4:].mean(axis=0)[-2:] == pytest.approx([0.2, 0.7], abs=0.01)
    assert "5 features are as is guessed of them" in guess.words(BOUNDED)
    assert guess.unknown_spreads(BOUNDED) == []


def test_other_numbers_keep_to_the_spread_that_is_guessed() -> None:
    X, _ = synthetic_table(BOUNDED, 20_000, guess=PublicGuess(spread=1 / 30), rng=Rng.seeded(4)).arrays()
    assert X[:, :3].std(axis=0) == pytest.approx(np.full(3, 2 / 30), rel=0.05)
    some = PublicGuess(typical=(TypicalValue.parse("age=54,9"),))
    assert some.unknown_spreads(BOUNDED) == ["visits", "score"]
    assert "1 features are as is guessed of them, the other numbers spread over about 1/6" in some.words(BOUNDED)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age", "must read NAME=MEAN,SD"),
        ("age=54,nine", "must read NAME=MEAN,SD"),
        ("age=", "must read NAME=MEAN,SD"),
        ("age=54,9,1", "a mean between 0 and 120"),
        ("weight=70,9", "no such feature; choose one of age, visits, score, smoker, blood"),
        ("blood=0.5,0.5", "must be 3 shares that add up to 1"),
        ("blood=0.5,0.5,0.5", "must be 3 shares that add up to 1"),
        ("age=130,9", "a mean between 0 and 120"),
        ("age=54", "a mean between 0 and 120"),
        ("age=54,0", "a standard deviation above 0"),
        ("smoker=20", "a share between 0 and 1"),
        ("smoker=0.2,0.1", "a share between 0 and 1"),
    ],
)
def test_a_typical_value_that_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        PublicGuess(typical=(TypicalValue.parse(text),)).check(BOUNDED)


def test_columns_of_the_other_guess_go_together() -> None:
    X, _ = synthetic_table(BOUNDED, 20_000, guess=PublicGuess().alternative(), rng=Rng.seeded(4)).arrays()
    assert np.abs(np.corrcoef(X[:, :3].T))[np.triu_indices(3, 1)] == pytest.approx(np.full(3, 0.7), abs=0.03)
    apart, _ = synthetic_table(BOUNDED, 20_000, rng=Rng.seeded(4)).arrays()
    assert np.abs(np.corrcoef(apart[:, :4].T) - np.eye(4)).max() < 0.04


def test_a_feature_has_one_typical_value() -> None:
    twice = (TypicalValue.parse("age=54,9"), TypicalValue.parse("age=50,9"))
    with pytest.raises(SettingError, match="name a feature twice"):
        PublicGuess(typical=twice).check(BOUNDED)
