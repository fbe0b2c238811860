"""A method is an estimator as scikit-learn understands it, but for `fit`, which takes a federation.

scikit-learn's own checks call `fit(X, y)`. So each method under test here is given that one function, which cuts the
arrays into three parties; everything else that is checked is the method's own.
"""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError as ScikitNotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted

import tacit
from tacit import Averaging, Binary, Categorical, Federation, Numeric, PrivateNewton, Schema, Table, Target
from tacit.errors import DataError, SettingError
from tacit.methods import METHODS, Method
from tacit.methods.method import NotFittedError
from tacit.rand import Rng

from .conftest import make_data


class OnArrays(Method):
    """scikit-learn's `fit`, for the checks; the bound is wide enough to clip none of their rows."""

    def fit(self, X: Any, y: Any = None) -> Self:
        parties = Federation.split(X, y, n_parties=3, norm_bound=100.0, rng=Rng.seeded(0))
        return super().fit(parties)


class AveragingOnArrays(OnArrays, Averaging):
    """`Averaging` with scikit-learn's `fit`."""


class PrivateNewtonOnArrays(OnArrays, PrivateNewton):
    """`PrivateNewton` with scikit-learn's `fit`."""


ESTIMATORS = [AveragingOnArrays(epsilon=math.inf), PrivateNewtonOnArrays(epsilon=math.inf)]
CANNOT_PASS = {
    "check_supervised_y_2d": (
        "labels in a column are refused: reshaping them with a warning would be a second way",
        r"y of shape \(30, 1\) do not fit",
    ),
    "check_dtype_object": (
        "an object that is no number is a `ValueError` that names its column, where the check wants a `TypeError`",
        "X holds what is no number in column 0",
    ),
}
"""scikit-learn's checks that do not hold: why, and the error instead."""

CHECKS = [
    pytest.param(model, check, id=f"{type(model).__name__}-{check.func.__name__}-{i}")
    for estimator in ESTIMATORS
    for i, (model, check) in enumerate(estimator_checks_generator(estimator))
]


@pytest.mark.filterwarnings("ignore:Can't check")
@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_scikit_learns_own_check(model: Method, check: Any) -> None:
    if check.func.__name__ in CANNOT_PASS:
        with pytest.raises(ValueError, match=CANNOT_PASS[check.func.__name__][1]):
            check(model)
    else:
        check(model)


def test_the_docs_list_the_checks_that_do_not_hold() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `check_")]
    assert rows == [f"| `{name}` | {why} |" for name, (why, _) in CANNOT_PASS.items()]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_a_classifier_whose_constructor_only_keeps_its_settings(name: str) -> None:
    model = METHODS[name]()
    assert is_classifier(model)
    settings = model.get_params(deep=False)
    defaults = {key: p.default for key, p in inspect.signature(METHODS[name]).parameters.items()}
    assert settings == defaults
    assert vars(model).keys() == defaults.keys()
    assert clone(model).get_params(deep=False) == settings
    assert repr(model).startswith(type(model).__name__ + "(")
    for key, value in settings.items():
        marked = object()
        assert getattr(model.set_params(**{key: marked}), key) is marked
        model.set_params(**{key: value})
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        model.set_params(nonsense=1)


@pytest.mark.parametrize("name", METHODS)
def test_an_estimator_that_has_not_learned_says_so_as_scikit_learn_does(name: str) -> None:
    model = METHODS[name]()
    with pytest.raises(ScikitNotFittedError, match="not fitted"):
        check_is_fitted(model)
    for ask in (model.predict, model.predict_proba, model.decision_function, model.score):
        with pytest.raises(ScikitNotFittedError, match="call fit"):
            ask(np.zeros((1, 4)))
    with pytest.raises(NotFittedError, match="call fit"):
        model.save("nowhere.json")


def test_a_wrong_setting_is_a_value_error() -> None:
    X, y = make_data()
    with pytest.raises(ValueError, match="epsilon = -1"):
        Averaging(epsilon=-1).fit(Federation.split(X, y, norm_bound=1.0))


@pytest.mark.parametrize("arguments", [(np.zeros((3, 2)),), (np.zeros((3, 2)), [0, 1, 0]), (pd.DataFrame(), None)])
def test_arrays_in_place_of_a_federation_get_one_sentence(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(SettingError, match=r"Averaging.fit takes a Federation, not a .*Federation\.split\(X, y"):
        Averaging().fit(*arguments)


# --- records to predict, in the columns' own units -------------------------------------------------------------------

SCHEMA = Schema(
    (Numeric("age", 0, 100), Categorical("pain", ("none", "some", "much")), Binary("smokes", ("no", "yes"))),
    Target("ill", ("no", "yes")),
    norm_bound=2.0,
)
NAMES = ["age", "pain", "smokes"]
FRAME = pd.DataFrame({"age": [30, 60.5, 150, -3], "pain": ["none", "much", "some", "none"], "smokes": list("0110")})


@pytest.fixture(scope="module")
def model() -> Averaging:
    chance = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame({
        "age": chance.uniform(0, 100, n),
        "pain": chance.choice(["none", "some", "much"], n),
        "smokes": chance.choice(["no", "yes"], n),
    })  # fmt: skip
    frame["ill"] = np.where(frame["age"] + 20 * (frame["smokes"] == "yes") + chance.normal(0, 20, n) > 60, "yes", "no")
    tables = {f"party{i}": Table.from_frame(frame[i::3], SCHEMA) for i in range(3)}
    policy = tacit.Policy(not_private=["averaging"])
    return Averaging(epsilon=math.inf).fit(Federation.from_tables(tables, policy=policy))


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function"])
def test_an_array_is_in_raw_units_in_the_schemas_order(model: Averaging, ask: str) -> None:
    expected = getattr(model, ask)(FRAME)
    rows = FRAME[NAMES].to_numpy()  # objects: numbers and text
    np.testing.assert_array_equal(getattr(model, ask)(rows), expected)
    np.testing.assert_array_equal(getattr(model, ask)(rows.tolist()), expected)
    np.testing.assert_array_equal(getattr(model, ask)(FRAME[NAMES[::-1]]), expected)
    labelled = Table.from_frame(FRAME.assign(ill="no"), SCHEMA)
    np.testing.assert_array_equal(getattr(model, ask)(labelled), expected)


def test_values_beyond_the_bounds_count_as_the_bounds(model: Averaging) -> None:
    far, near = [[150, "none", "no"], [-1e9, "some", "yes"]], [[100, "none", "no"], [0, "some", "yes"]]
    np.testing.assert_array_equal(model.decision_function(far), model.decision_function(near))


def test_scores_go_the_same_way(model: Averaging) -> None:
    truth = model.predict(FRAME)
    assert model.score(FRAME[NAMES].to_numpy(), truth) == 1.0
    assert model.evaluate(FRAME[NAMES].to_numpy(), truth).accuracy == 1.0


def test_the_attributes_count_features_and_coef_counts_encoded_columns(model: Averaging, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    for one in (model, tacit.load(tmp_path / "model.json")):
        assert one.n_features_in_ == 3
        assert one.feature_names_in_.tolist() == NAMES
        assert one.coef_.shape == (1, len(one.schema_.column_names)) == (1, 4)
    raw = {row.name: row.estimate for row in model.facts_.coefficients}
    assert raw["age"] == pytest.approx(model.coef_[0, 0] / 50)  # 100 years are two units


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([math.nan, "none", "no"], r"the first missing \(NaN\) or unreadable value is in row 1, column 'age'"),
        ([None, "none", "no"], r"the first missing \(NaN\) or unreadable value is in row 1, column 'age'"),
        (["old", "none", "no"], r"the first missing \(NaN\) or unreadable value is in row 1, column 'age'"),
        ([math.inf, "none", "no"], r"the first missing \(NaN\) or unreadable value is in row 1, column 'age'"),
        ([3, "terrible", "no"], r"the first missing \(NaN\) or unreadable value is in row 1, column 'pain'"),
        ([3, "none", 7], r"the first missing \(NaN\) or unreadable value is in row 1, column 'smokes'"),
    ],
)
def test_a_value_that_does_not_fit_is_named_by_row_and_column(model: Averaging, row: list[Any], message: str) -> None:
    good = [30, "some", "yes"]
    for X in ([good, row, good], np.array([good, row], dtype=object), pd.DataFrame([good, row, row], columns=NAMES)):
        with pytest.raises(DataError, match=message):
            model.predict(X)


def test_what_is_no_matrix_of_the_models_features_is_refused(model: Averaging) -> None:
    with pytest.raises(SettingError, match=r"X has 2 features, but Averaging is expecting 3 .*: age, pain, smokes"):
        model.predict(np.zeros((2, 2)))
    with pytest.raises(SettingError, match=r"X of shape \(3,\) is no matrix .* Reshape your data"):
        model.predict([30, "none", "no"])
    with pytest.raises(SettingError, match="rows have different lengths"):
        model.predict([[30, "none", "no"], [30]])
    with pytest.raises(DataError, match=r"columns \['smokes'\] are missing"):
        model.predict(FRAME[["age", "pain"]])
    other = Table.from_arrays(np.zeros((2, 1)), [0, 1], Schema.of_arrays(1, ["0", "1"]))
    with pytest.raises(SettingError, match="a table of another schema"):
        model.predict(other)


def test_a_model_of_plain_arrays_takes_them_as_they_are() -> None:
    X, y = make_data()
    model = Averaging(epsilon=math.inf).fit(Federation.split(X, y, norm_bound=10.0))
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])
    with pytest.raises(DataError, match=r"the first missing \(NaN\) or unreadable value is in row 1, column 'x2'"):
        model.predict([[0, 0, 0, 0], [0, 0, math.nan, 0]])
    named = Averaging(epsilon=math.inf).fit(Federation.split(pd.DataFrame(X, columns=list("abcd")), y, norm_bound=10.0))
    assert named.feature_names_in_.tolist() == list("abcd")
    refitted = named.fit(Federation.split(X, y, norm_bound=10.0))
    assert not hasattr(refitted, "feature_names_in_")


def test_a_model_is_not_saved_into_a_folder_that_is_not_there(model: Averaging, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"there is no folder '.*nowhere'; make it first"):
        model.save(tmp_path / "nowhere" / "model.json")
