from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.data import Binary, Categorical, Numeric, Schema, Target
from tacit.errors import DataError, SchemaError

TARGET = Target("disease", ("no", "yes"))


def heart() -> Schema:
    return Schema(
        (
            Numeric("age", 20, 90),
            Binary("sex", ("female", "male")),
            Categorical("pain", ("typical", "atypical", "none"), missing="indicator", unknown="bucket"),
            Numeric("chol", 100, 600, missing="indicator"),
        ),
        TARGET,
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Numeric("age", 90, 20), "must be below high"),
        (lambda: Numeric("age", 20, 20), "must be below high"),
        (lambda: Numeric("age", -1.7e308, 1.7e308), "finite distance"),
        (lambda: Numeric("age", math.nan, 20), "not a finite number"),
        (lambda: Numeric("age", 0, math.inf), "not a finite number"),
        (lambda: Numeric("age", low=0), "both bounds or neither"),
        (lambda: Numeric("age", "0", 3), "not a finite number"),  # type: ignore[arg-type]
        (lambda: Numeric("age", missing="middle"), "there are no bounds"),
        (lambda: Numeric("age", 0, 1, missing="ignore"), "missing='ignore' is not one of"),  # type: ignore[arg-type]
        (lambda: Numeric(""), "is not a column name"),
        (lambda: Numeric(" age"), "is not a column name"),
        (lambda: Categorical("c", ("a",)), "two categories or more"),
        (lambda: Categorical("c", ("a", "b", "a")), "labels that mean the same"),
        (lambda: Categorical("c", ("1", "1.0")), "labels that mean the same"),
        (lambda: Categorical("c", "ab"), "must be a list of labels"),  # type: ignore[arg-type]
        (lambda: Categorical("c", ("a", " ")), "not a label"),
        (lambda: Categorical("c", ("a", "b"), unknown="drop"), "unknown='drop' is not one of"),  # type: ignore[arg-type]
        (lambda: Binary("b", ("a", "b", "c")), "two values, not 3"),
        (lambda: Target("t", ("a",)), "two classes or more"),
        (lambda: Target("t", ("a", "a")), "labels that mean the same"),
    ],
)
def test_contradictory_features_are_refused(make, message) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": ()}, "features is empty"),
        ({"features": (Numeric("a"), Binary("a"))}, "declared more than once"),
        ({"features": (Numeric("disease"),)}, "is also a feature"),
        ({"norm_bound": 0.0}, "norm_bound=0.0 must be a positive"),
        ({"norm_bound": math.inf}, "norm_bound=inf"),
        ({"norm_bound": True}, "norm_bound=True"),
        ({"coding": "effect"}, "coding='effect'"),
        ({"ignore": ("a",)}, "ignore names 'a'"),
        ({"features": ("age",)}, "features has a str"),
        ({"target": "disease"}, "target is a str"),
        ({"features": (Categorical("c", ("a", "other"), unknown="bucket"),)}, "more than one source"),
        ({"features": (Categorical("c", ("a", "missing"), missing="indicator"),)}, "more than one source"),
        ({"features": (Categorical("c", ("a", "b")), Numeric("c=b"))}, "more than one source"),
    ],
)
def test_contradictory_schemas_are_refused(settings, message) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema(**{"features": (Numeric("a"),), "target": TARGET} | settings)


def test_columns_are_named_after_features_and_categories() -> None:
    assert heart().column_names == (
        *("age", "sex", "pain=atypical", "pain=none", "pain=other", "pain=missing", "chol", "chol=missing"),
    )
    full = Schema((Categorical("c", ("a", "b")),), TARGET, coding="full")
    assert full.column_names == ("c=a", "c=b")
    assert (full.n_columns, full.n_classes, full.feature_names) == (2, 2, ("c",))


def test_radius_is_the_smaller_of_norm_bound_and_what_the_bounds_imply() -> None:
    assert heart().radius == 2.0
    assert Schema(heart().features, TARGET, norm_bound=1.5).radius == 1.5
    assert Schema(heart().features, TARGET, norm_bound=3).radius == 2.0
    assert Schema((Numeric("a"),), TARGET).radius is None
    assert Schema((Numeric("a"),), TARGET, norm_bound=3).radius == 3.0


def test_no_row_exceeds_the_radius_and_one_reaches_it() -> None:
    ages, sexes, pains, chols = ([20, 55, 90], ["female", "male"], ["typical", "none", "x", None], [100, 600, None])
    rows = [(a, s, p, c) for a in ages for s in sexes for p in pains for c in chols]
    columns = {
        n: np.array(v, dtype=object) for n, v in zip(heart().feature_names, zip(*rows, strict=True), strict=True)
    }
    norms = np.linalg.norm(heart().encode_features(columns), axis=1)
    assert norms.max() == heart().radius


def test_of_arrays_names_the_columns() -> None:
    schema = Schema.of_arrays(2, [0.0, 1.0], norm_bound=2)
    assert schema.column_names == ("x0", "x1")
    assert schema.target.classes == ("0", "1")
    assert Schema.of_arrays(1, [-1, 1], feature_names=["y"]).target.name == "target"
    with pytest.raises(SchemaError, match="has 1 names for n_features=2"):
        Schema.of_arrays(2, [0, 1], feature_names=["a"])


def test_dict_round_trip_and_digest() -> None:
    schema = Schema(heart().features, TARGET, norm_bound=2, coding="full", ignore=("id",))
    form = schema.to_dict()
    assert form["features"][0] == {"name": "age", "kind": "numeric", "low": 20.0, "high": 90.0}
    assert form["target"] == {"name": "disease", "classes": ["no", "yes"]}
    assert Schema.from_dict(form) == schema
    assert Schema.from_dict(form).digest() == schema.digest()
    assert schema.digest() != heart().digest()
    # Pinned: a change here changes what every stored study is called.
    assert heart().digest() == "b98aa5d67a78947d766a13c25fac59d62babf11f85908e4ec79853f5994b4ad7"


def test_whole_and_real_bounds_mean_the_same() -> None:
    assert Schema((Numeric("a", 0, 1),), TARGET).digest() == Schema((Numeric("a", 0.0, 1.0),), TARGET).digest()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm_bond": 1}, "unknown key 'norm_bond'.*did you mean 'norm_bound'"),
        ({"features": [{"name": "a", "kind": "numerc"}]}, "did you mean 'numeric'"),
        ({"features": [{"name": "a", "kind": "numeric", "hihg": 3}]}, "feature 'a' has an unknown key 'hihg'"),
        ({"features": [{"kind": "numeric"}]}, "lacks 'name'"),
        ({"features": [{"name": "a", "kind": "categorical"}]}, "lacks 'categories'"),
        ({"features": ["a"]}, "feature 1 is a str"),
        ({"features": "abc"}, "must be a list"),
        ({"target": "y"}, "the target is a str"),
        ({"ignore": "id"}, "must be a list of column names"),
    ],
)
def test_written_schemas_are_read_strictly(change, message) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(heart().to_dict() | change)


def test_written_categories_may_be_numbers() -> None:
    entry = {"name": "cp", "kind": "categorical", "categories": [1, 2, 3]}
    schema = Schema.from_dict({"features": [entry], "target": {"name": "t", "classes": [0, 1]}})
    assert schema.features[0] == Categorical("cp", ("1", "2", "3"))


def test_original_units_give_the_same_linear_predictor() -> None:
    schema = heart()
    raw = {"age": np.array([30.0, 71.5]), "sex": np.array(["male", "female"])}
    raw |= {"pain": np.array(["none", "atypical"]), "chol": np.array([240.0, 180.0])}
    theta = np.random.default_rng(1).normal(size=schema.n_columns + 1)
    X = schema.encode_features(raw)
    original = X.copy()
    original[:, schema.column_names.index("age")] = raw["age"]
    original[:, schema.column_names.index("chol")] = raw["chol"]
    theta_original = schema.original_units() @ theta
    np.testing.assert_allclose(original @ theta_original[:-1] + theta_original[-1], X @ theta[:-1] + theta[-1])


def test_encode_needs_vectors_of_one_length() -> None:
    schema = Schema((Numeric("a"), Numeric("b")), TARGET)
    with pytest.raises(DataError, match="one length"):
        schema.encode_features({"a": np.zeros(2), "b": np.zeros(3)})
    with pytest.raises(DataError, match=r"columns \['b'\] are missing"):
        schema.encode_features({"a": np.zeros(2)})
