"""The two ways to code a value, in NumPy and in SQL, must never part."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.data import Binary, Categorical, Numeric, Target
from tacit.data.coding import code_column
from tacit.data.feature import Feature
from tacit.data.source import connect
from tacit.data.sql import code_expression

CONNECTION = connect()
ITEMS: list[Feature | Target] = [
    Numeric("a"),
    Binary("a"),
    Binary("a", ("no", "yes")),
    Categorical("a", ("1", "2.5", "it's", "NA", "Yes")),
    Categorical("a", ("x", "01"), unknown="bucket"),
    Target("a", ("-1", "1")),
]
WORDS = (
    *("", " ", "NA", "na", "NaN", "nan", "NULL", "null", "?", "0", "1", "-1", "1.0", "1.", "01", "-0.0", "+1", "1.50"),
    *("2.5", "1e3", "1E-3", ".5", "5.", "1e", "e1", "0x10", "1_0", "1,5", "inf", "-inf", "Infinity", "true", "TRUE"),
    *(
        "Yes",
        "yEs",
        "no",
        "False",
        "x",
        " x ",
        "\tx\r",
        "it's",
        'a"b',
        "\u0661",
        "\xa01",
        "1\xa0",
        "12 kg",
        "--1",
        "nan ",
    ),
)


def by_sql(item: Feature | Target, frame: pd.DataFrame, column_type: str) -> tuple[np.ndarray, np.ndarray]:
    CONNECTION.register("frame", frame)
    query = f"SELECT {code_expression(item, 'a', column_type)} FROM (SELECT CAST(a AS {column_type}) AS a FROM frame)"
    values = [row[0] for row in CONNECTION.execute(query).fetchall()]
    CONNECTION.unregister("frame")
    codes = np.array([np.nan if value is None else value for value in values], dtype=float)
    return codes, np.array([value is not None and np.isnan(value) for value in values])


@pytest.mark.parametrize("item", ITEMS, ids=repr)
@given(
    texts=st.lists(st.sampled_from(WORDS) | st.none() | st.text("01.-+eE _xNA?\t", max_size=5), min_size=1, max_size=30)
)
@example(texts=list(WORDS))
@settings(deadline=None, max_examples=60)
def test_texts_are_coded_alike(item, texts) -> None:
    frame = pd.DataFrame({"a": pd.Series(texts, dtype=object)})
    codes, unreadable = by_sql(item, frame, "VARCHAR")
    expected, expected_unreadable, _ = code_column(item, np.array(texts, dtype=object))
    np.testing.assert_array_equal(codes, expected, err_msg=repr(texts))
    np.testing.assert_array_equal(unreadable, expected_unreadable, err_msg=repr(texts))


@pytest.mark.parametrize("item", ITEMS, ids=repr)
@pytest.mark.parametrize(
    ("values", "column_type"),
    [
        (np.array([0, 1, -1, 7]), "INTEGER"),
        (np.array([0.0, 1.0, -1.0, 2.5, np.nan, np.inf]), "DOUBLE"),
        (np.array([True, False]), "BOOLEAN"),
        (np.array(["2020-01-01", "2021-05-05", "NaT"], dtype="datetime64[ns]"), "TIMESTAMP"),
    ],
)
def test_numbers_are_coded_alike(item, values, column_type) -> None:
    codes, unreadable = by_sql(item, pd.DataFrame({"a": values}), column_type)
    expected, expected_unreadable, _ = code_column(item, values)
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_array_equal(unreadable, expected_unreadable)
