"""The owner is shown exactly the values that a study's table would not take as they are."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from tacit.data.feature import Binary, Categorical, Numeric, Target
from tacit.data.inspection import inspect_file, inspect_query
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import DataError

SCHEMA = Schema(
    features=(
        Numeric("age", 20, 90),
        Numeric("weight", 0, 300, missing="middle"),
        Categorical("ward", ("a", "b")),
        Binary("treated"),
    ),
    target=Target("recovered", ("no", "yes")),
    norm_bound=1.0,
)
HEADER = "age,weight,ward,treated,recovered\n"
ROWS = [
    "30,70,a,1,yes",
    "130,70,a,1,yes",  # clipped
    ",70,a,1,yes",
    "40,,a,0,no",  # may be missing
    'forty,70,"a\n",0,no',  # a text over two lines
    "50,70,<b>,0,no",
    "50,70,b,0,maybe",
]
EXPECTED = [
    (2, 3, "age", "130", "outside"),
    (3, 4, "age", "", "missing"),
    (5, 6, "age", "forty", "unreadable"),
    (6, 8, "ward", "<b>", "unreadable"),
    (7, 9, "recovered", "maybe", "unreadable"),
]


def told(path: Path) -> list[tuple[object, ...]]:
    found = inspect_file(path, SCHEMA)
    return [(one.record, one.line, one.column, one.value, one.trouble) for one in found.values]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "semicolon.csv"])
def test_values_are_shown_with_their_lines(tmp_path: Path, name: str) -> None:
    text = HEADER + "\n".join(ROWS) + "\n"
    if name == "semicolon.csv":
        text = text.replace(",", ";")
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert told(tmp_path / name) == EXPECTED
    found = inspect_file(tmp_path / name, SCHEMA)
    assert (found.n_records, found.n_unfit) == (7, 4)
    assert (found.columns["age"].missing, found.columns["age"].unreadable, found.columns["age"].outside) == (1, 1, 1)
    table = Table.from_file(tmp_path / name, SCHEMA, unfit="skip")
    assert table.n_records - table.n_complete == found.n_unfit  # what a study does with the same file


def test_a_query_has_records_and_no_lines(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "clinic.db")
    database.execute("CREATE TABLE t (age, weight, ward, treated, recovered)")
    database.execute("INSERT INTO t VALUES (30, 70, 'a', 1, 'yes'), ('x', 70, 'a', 1, 'yes')")
    database.commit()
    database.close()
    found = inspect_query("SELECT * FROM t", SCHEMA, f"sqlite:{tmp_path / 'clinic.db'}")
    assert [(one.record, one.line, one.value) for one in found.values] == [(2, None, "x")]


def test_a_file_that_fits_has_nothing_to_show(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + "30,70,a,1,yes\n\n40,,b,0,no\n")
    assert inspect_file(tmp_path / "t.csv", SCHEMA).is_well


def test_long_lists_are_cut(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + "1000,70,a,1,yes\n" * 300)
    found = inspect_file(tmp_path / "t.csv", SCHEMA, most=50)
    assert (len(found.values), found.columns["age"].outside) == (50, 300)


def test_other_columns_are_told_as_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,ward\n30,a\n")
    with pytest.raises(DataError, match=r"columns \['weight', 'treated', 'recovered'\] are missing"):
        inspect_file(tmp_path / "t.csv", SCHEMA)
