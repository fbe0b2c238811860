"""Columns as people have them: other spellings, codes, dates, and a public value for what is missing."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from tacit.data import Binary, Categorical, Numeric, Schema, Table, Target
from tacit.errors import DataError, SchemaError, StudyError
from tacit.studies.study import Study

TARGET = Target("t", ("no", "yes"))


def both(tmp_path, frame: pd.DataFrame, schema: Schema) -> np.ndarray:
    """The encoded rows of a frame; a file of it must give the same."""
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    X, y = Table.from_frame(frame, schema).arrays()
    X_file, y_file = Table.from_file(path, schema).arrays()
    np.testing.assert_array_equal(X, X_file)
    np.testing.assert_array_equal(y, y_file)
    return X


def test_the_case_of_a_label_does_not_matter(tmp_path) -> None:
    frame = pd.DataFrame({"sex": ["M", "m", "F", " f "], "t": ["YES", "no", "No", "yes"]})
    X = both(tmp_path, frame, Schema((Binary("sex", ("M", "F")),), TARGET))
    assert X[:, 0].tolist() == [0, 0, 1, 1]
    with pytest.raises(SchemaError, match="mean the same"):
        Categorical("c", ("M", "m", "x"))


def test_letters_with_rules_of_their_own_are_compared_as_they_are(tmp_path) -> None:
    schema = Schema((Categorical("c", ("ΟΔΟΣ", "İ", "straße")),), TARGET)
    X = both(tmp_path, pd.DataFrame({"c": ["ΟΔΟΣ", "İ", "STRAßE"], "t": "no"}), schema)
    assert X.tolist() == [[0, 0], [1, 0], [0, 1]]
    with pytest.raises(DataError, match="not among its declared categories"):
        Table.from_frame(pd.DataFrame({"c": ["οδος"], "t": ["no"]}), schema)


def test_aliases_stand_for_a_label(tmp_path) -> None:
    schema = Schema(
        (
            Binary("sex", ("M", "F"), aliases={"F": ["female", "2"], "M": ["male", 1]}),
            Categorical("pain", ("none", "typical", "other"), aliases={"typical": ["T"]}),
        ),
        Target("t", ("no", "yes"), aliases={"yes": ["malignant"]}),
    )
    frame = pd.DataFrame(
        {"sex": ["Female", "1", "F", "2.0"], "pain": ["t", "none", "other", "T"], "t": ["malignant", "no", "yes", "0"]}
    )
    X = both(tmp_path, frame, schema)
    assert X.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1], [1, 1, 0]]
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ({"X": ["x"]}, "names 'X', which is none of"),
        ({"F": ["m"]}, "'m' would stand for 'M' and for 'F'"),
        ({"F": ["w"], "M": ["W"]}, "'W' would stand for 'F' and for 'M'"),
        ({"F": "female"}, "must be a list of labels"),
        ("female", "must be a table"),
    ],
)
def test_aliases_are_checked(aliases, message) -> None:
    with pytest.raises(SchemaError, match=message):
        Binary("sex", ("M", "F"), aliases=aliases)


def test_whole_numbers_are_categories(tmp_path) -> None:
    schema = Schema((Categorical("grade", (1, 2, 3)),), TARGET)
    X = both(tmp_path, pd.DataFrame({"grade": [1, 2, 3], "t": "no"}), schema)
    assert X.tolist() == [[0, 0], [1, 0], [0, 1]]


def test_a_public_value_stands_for_what_is_missing(tmp_path) -> None:
    frame = pd.DataFrame({"lactate": [1.5, np.nan, 30.0], "t": "no"})
    X = both(tmp_path, frame, Schema((Numeric("lactate", 0, 30, missing_value=1.5),), TARGET))
    assert X[:, 0] == pytest.approx([-0.9, -0.9, 1.0])
    marked = Schema((Numeric("lactate", 0, 30, missing="indicator", missing_value=1.5),), TARGET)
    assert both(tmp_path, frame, marked) == pytest.approx(np.array([[-0.9, 0], [-0.9, 1], [1, 0]]))
    assert Schema.from_dict(marked.to_dict()) == marked
    assert Numeric("lactate", 0, 30, missing_value=1.5).missing == "value"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"missing_value": 31.0}, "lies outside low=0"),
        ({"missing": "value"}, "needs a missing_value"),
        ({"missing": "drop", "missing_value": 1.0}, "has no use for a missing_value"),
        ({"missing_value": "much"}, "is not a finite number"),
        ({"date": "week"}, "is not 'year', 'month' or 'days since"),
        ({"date": "days since 2020-13-01"}, "is not 'year', 'month' or 'days since"),
    ],
)
def test_rules_of_numbers_are_checked(settings, message) -> None:
    with pytest.raises(SchemaError, match=message):
        Numeric("lactate", 0.0, 30.0, **settings)


def test_dates_are_numbers_and_months(tmp_path) -> None:
    schema = Schema(
        (
            Numeric("visit", 0, 100, date="days since 2026-01-01", missing="middle"),
            Numeric("born", 1926, 2026, date="year"),
            Categorical("season", date="month"),
        ),
        TARGET,
    )
    frame = pd.DataFrame(
        {
            "visit": ["2026-01-01", "2026-04-11 08:30:00", None],
            "born": ["1926-05-05", "2026-01-31", "1976-12-31T23:59"],
            "season": ["2026-01-09", "2026-12-09", "2026-02-09"],
            "t": "no",
        }
    )
    X = both(tmp_path, frame, schema)
    assert X[:, :2] == pytest.approx(np.array([[-1, -1], [1, 1], [0, 0]]))
    assert schema.column_names[2:] == tuple(f"season={month}" for month in range(2, 13))
    assert X[:, 2:].argmax(axis=1).tolist() == [0, 10, 0]
    assert X[0, 2:].sum() == 0
    assert Schema.from_dict(schema.to_dict()) == schema
    times = frame.assign(born=pd.to_datetime(frame["born"], format="ISO8601"), season=[datetime.date(2026, 1, 9)] * 3)
    assert Table.from_frame(times, schema).arrays()[0][:, 1] == pytest.approx([-1, 1, 0])


@pytest.mark.parametrize("text", ["3/4/26", "2026-02-30", "26-02-03", "SECRET", "2026-02-03x"])
def test_what_is_no_date_is_an_error_without_the_value(text, tmp_path) -> None:
    schema = Schema((Numeric("visit", 2000, 2030, date="year"),), TARGET)
    frame = pd.DataFrame({"visit": [text], "t": ["no"]})
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    for read in (lambda: Table.from_frame(frame, schema), lambda: Table.from_file(path, schema)):
        with pytest.raises(DataError, match="column 'visit': 1 values are no dates such as 2026-11-18") as caught:
            read()
        assert "SECRET" not in str(caught.value)


STUDY = """
[study]
name = "s"
purpose = "p"

[target]
name = "t"
classes = ["no", "yes"]
aliases = { yes = ["malignant"] }

[[feature]]
name = "lactate"
kind = "numeric"
low = 0
high = 30
missing_value = 1.5

[[feature]]
name = "visit"
kind = "numeric"
low = 0
high = 1000
date = "days since 2026-01-01"

[[feature]]
name = "season"
kind = "categorical"
date = "month"

[[feature]]
name = "sex"
kind = "binary"
values = ["M", "F"]
aliases = { F = ["female", "w"] }
"""


def test_a_study_file_says_all_of_this() -> None:
    study = Study.parse(STUDY)
    assert Study.parse(study.to_toml()) == study
    assert Study.parse(study.to_toml()).digest() == study.digest()
    with pytest.raises(StudyError, match="does not apply to a binary feature"):
        Study.parse(STUDY.replace('values = ["M", "F"]', "missing_value = 1"))
