"""Encoding against a reference that takes one record at a time and knows nothing of matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.data import Binary, Categorical, Numeric, Schema, Target
from tacit.data.encoding import clip_rows
from tacit.data.feature import Feature
from tacit.errors import DataError

TARGET = Target("t", ("a", "b", "c"))
RULES = st.sampled_from(["indicator", "middle", "drop"])


@st.composite
def schemas(draw) -> Schema:
    features: list[Feature] = []
    for position in range(draw(st.integers(1, 4))):
        name, kind = f"f{position}", draw(st.sampled_from(["bounded", "free", "binary", "labels"]))
        if kind == "bounded":
            low = draw(st.integers(-50, 50))
            features.append(Numeric(name, low, low + draw(st.integers(1, 90)), missing=draw(RULES)))
        elif kind == "free":
            features.append(Numeric(name, missing="drop"))
        elif kind == "binary":
            features.append(Binary(name, draw(st.sampled_from([("0", "1"), ("yes", "no")])), missing=draw(RULES)))
        else:
            labels = tuple("pqrs"[: draw(st.integers(2, 4))])
            features.append(Categorical(name, labels, draw(RULES), unknown="bucket"))
    bound = draw(st.none() | st.floats(0.1, 3))
    return Schema(tuple(features), TARGET, norm_bound=bound, coding=draw(st.sampled_from(["reference", "full"])))


def values_of(feature: Feature) -> st.SearchStrategy[object]:
    match feature:
        case Numeric():
            return st.none() | st.floats(-200, 200)
        case Binary():
            return st.sampled_from([None, 0, 1, "0", "1", "yes", "No", "TRUE", False, 1.0])
        case Categorical():
            return st.sampled_from([None, "p", " q ", "r", "s", "z", "?"])


def naive(schema: Schema, record: dict[str, object]) -> list[float] | None:
    """One encoded record, or None if it is dropped."""
    row: list[float] = []
    for feature in schema.features:
        value = record[feature.name]
        missing = value is None or value == "?"
        if missing and feature.missing == "drop":
            return None
        if isinstance(feature, Numeric):
            if feature.bounds is None:
                row.append(float(value))  # type: ignore[arg-type]
            else:
                low, high = feature.bounds
                inside = (low + high) / 2 if missing else min(max(float(value), low), high)  # type: ignore[arg-type]
                row.append((2 * inside - low - high) / (high - low))
        elif isinstance(feature, Binary):
            yes = not missing and str(value).lower() in ("1", "1.0", "yes", "true")
            flipped = feature.values == ("yes", "no")
            row.append((0.5 if feature.missing == "middle" else 0.0) if missing else float(yes != flipped))
        else:
            label = (
                "missing" if missing else str(value).strip() if str(value).strip() in feature.categories else "other"
            )
            shown = feature.categories[1:] if schema.coding == "reference" else feature.categories
            row += [float(label == name) for name in (*shown, "other")]
        if feature.missing == "indicator":
            row.append(float(missing))
    norm = float(np.linalg.norm(row))
    shrink = 1.0 if schema.norm_bound is None or norm <= schema.norm_bound else schema.norm_bound / norm
    return [shrink * x for x in row]


@given(data=st.data())
@settings(deadline=None)
def test_encoding_equals_the_record_by_record_reference(data) -> None:
    schema = data.draw(schemas())
    fields = {feature.name: values_of(feature) for feature in schema.features} | {"t": st.sampled_from(["a", "b", "c"])}
    records = data.draw(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=20))
    expected = [(naive(schema, record), record["t"]) for record in records]
    kept = [(row, TARGET.classes.index(label)) for row, label in expected if row is not None]
    columns = {name: np.array([record[name] for record in records], dtype=object) for name in fields}

    encoded = schema.encode(columns)

    assert encoded.dropped == len(records) - len(kept)
    assert encoded.X.flags.c_contiguous
    assert encoded.y.tolist() == [label for _, label in kept]
    rows = np.array([row for row, _ in kept]).reshape(len(kept), schema.n_columns)
    np.testing.assert_allclose(encoded.X, rows, atol=1e-12)
    outside = {}
    for feature in schema.features:
        if isinstance(feature, Numeric) and feature.bounds is not None:
            alive = [r[feature.name] for r, (row, _) in zip(records, expected, strict=True) if row is not None]
            count = sum(v is not None and not feature.bounds[0] <= v <= feature.bounds[1] for v in alive)
            outside |= {feature.name: count} if count else {}
    assert encoded.clipped == outside
    if schema.radius is not None:
        assert np.linalg.norm(encoded.X, axis=1).max(initial=0) <= schema.radius


@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 40)),
        elements=st.floats(-1e200, 1e200) | st.floats(-2, 2) | st.sampled_from([0.0, 1.0]),
    ),
    bound=st.floats(1e-3, 1e3),
)
@settings(deadline=None)
def test_no_clipped_row_exceeds_the_bound_even_in_floating_point(X, bound) -> None:
    before = X.copy()
    clipped, n_clipped = clip_rows(X, bound)
    assert (np.linalg.norm(clipped, axis=1) <= bound).all()
    assert all(np.linalg.norm(row) <= bound for row in clipped)
    np.testing.assert_array_equal(X, before)
    changed = (clipped != X).any(axis=1)
    assert changed.sum() == n_clipped
    # Rows are scaled, never up: the direction stays, and so does a row inside the bound.
    assert (np.abs(clipped) <= np.abs(X)).all()
    with np.errstate(over="ignore"):
        inside = np.linalg.norm(X, axis=1) <= bound
    np.testing.assert_array_equal(changed, ~inside)
    for row, short in zip(X[~inside], clipped[~inside], strict=True):
        direction = row / np.abs(row).max()
        np.testing.assert_allclose(short, direction / np.linalg.norm(direction) * bound, rtol=1e-9, atol=1e-300)


def test_rows_on_the_bound_are_left_alone() -> None:
    ones = np.ones((3, 14))
    clipped, n_clipped = clip_rows(ones, np.sqrt(14.0))
    assert clipped is ones
    assert n_clipped == 0


def encode_one(feature: Feature, values: list[object]) -> np.ndarray:
    schema = Schema((feature,), TARGET)
    return schema.encode_features({feature.name: np.array(values, dtype=object)})


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 1]),
        np.array([0.0, 1.0]),
        np.array([False, True]),
        np.array(["0", "1"]),
        np.array(["no", "YES"]),
        np.array(["False", "True"]),
        np.array([0, "yes"], dtype=object),
        np.array([False, 1.0], dtype=object),
    ],
)
def test_the_many_spellings_of_no_and_yes(values) -> None:
    for declared in (("0", "1"), ("no", "yes"), ("False", "True")):
        schema = Schema((Binary("b", declared),), Target("t", declared))
        encoded = schema.encode({"b": values, "t": values})
        assert encoded.X.ravel().tolist() == [0.0, 1.0]
        assert encoded.y.tolist() == [0, 1]


def test_a_declared_category_beats_a_missing_text() -> None:
    feature = Categorical("c", ("a", "NA"), missing="indicator")
    np.testing.assert_array_equal(encode_one(feature, ["a", "NA", "?"]), [[0, 0], [1, 0], [0, 1]])


@pytest.mark.parametrize(
    "text", ["abc", "1_000", "0x10", "1,5", "inf", "-Infinity", "\u0661", "12 kg", "true", "1e999"]
)
def test_what_is_not_a_finite_number_is_an_error_without_the_value(text) -> None:
    with pytest.raises(DataError, match="column 'a': 1 values are not finite numbers") as caught:
        encode_one(Numeric("a"), ["1", text])
    assert text not in str(caught.value)


def test_dates_are_not_numbers() -> None:
    schema = Schema((Numeric("a"),), TARGET)
    with pytest.raises(DataError, match="2 values are not finite numbers"):
        schema.encode_features({"a": np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]")})


def test_all_problems_are_told_at_once() -> None:
    schema = Schema((Numeric("a"), Categorical("c", ("x", "y")), Binary("b")), TARGET)
    columns = {"a": ["1", None, "q"], "c": ["x", "secret1", "secret2"], "b": ["0", "maybe", ""], "t": ["a", "d", None]}
    with pytest.raises(DataError, match="does not fit the schema") as caught:
        schema.encode({name: np.array(values, dtype=object) for name, values in columns.items()}, "north.csv")
    message = str(caught.value)
    for part in (
        *("north.csv", "column 'a': 1 missing values", "missing='drop'", "column 'a': 1 values are not finite numbers"),
        *("column 'c': 2 values (2 different ones)", "unknown='bucket'", "column 'b': 1 missing values"),
        *(
            "column 'b': 1 values (1 different ones)",
            "target 't': 1 missing labels",
            "target 't': 1 labels (1 different",
        ),
    ):
        assert part in message
    assert "secret" not in message
    assert "maybe" not in message


def test_a_record_to_predict_cannot_be_dropped() -> None:
    with pytest.raises(DataError, match=r"missing values \{'a': 1\} in columns with missing='drop'"):
        encode_one(Numeric("a", missing="drop"), [1.0, None])


def test_repr_of_encoded_shows_no_record() -> None:
    schema = Schema((Numeric("a"),), TARGET)
    assert repr(schema.encode({"a": np.array([123.0]), "t": np.array(["a"])})) == "Encoded(1 records x 1 columns)"
