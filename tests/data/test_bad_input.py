"""Input that does not fit is refused with the way out, and without a value of it."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

from tacit.data import Categorical, Numeric, Schema, Table, Target
from tacit.errors import DataError

SMALL = Schema((Numeric("age", 20, 90), Categorical("pain", ("a", "b"))), Target("t", ("0", "1")), ignore=("note",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; it needs a first line"),
        ("\n", "is empty; it needs a first line"),
        ("age,pain,t\n", "has column names but no records"),
        ("age,t\n30,1\n", r"columns \['pain'\] are missing"),
        ("30,a,1\n31,a,0\n", r"columns \['age', 'pain', 't'\] are missing"),
        ("age,pain,t,id\n30,a,1,7\n", r"columns \['id'\] are not in the schema.*ignore=\('id',\)"),
        ("age,age,pain,t\n30,30,a,1\n", r"columns \['age'\] appear more than once"),
        ("age,pain,t\n,a,1\nNA,a,1\nNaN,a,0\n ? ,a,0\n", "column 'age': 4 missing values.*missing='indicator'"),
        ("age,pain,t\nold,a,1\nSECRET,a,1\n", "column 'age': 2 values are not finite numbers"),
        ("age,pain,t\n1_000,a,1\n", "column 'age': 1 values are not finite numbers"),
        ("age,pain,t\ninf,a,1\n", "column 'age': 1 values are not finite numbers"),
        ("age,pain,t\n30,SECRET,1\n30,SECRET,1\n30,y,0\n", r"column 'pain': 3 values \(2 different ones\).*'bucket'"),
        ("age,pain,t\n30,a,SECRET\n", r"target 't': 1 labels \(1 different ones\) are not among its classes"),
        ("age,pain,t\n30,a,\n", "target 't': 1 missing labels"),
        ("age,pain,t\n30,a,1\n30,a,1,SECRET\n", "cannot be read in line 3"),
        ('age,pain,t\n30,"a,1\n30,SECRET,1\n', "cannot be read"),
    ],
)
def test_bad_files_are_told_without_their_values(text, message, tmp_path) -> None:
    path = tmp_path / "north.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=f"(?s)north.csv.*{message}") as caught:
        Table.from_file(path, SMALL)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.csv.gz"])
def test_bytes_that_are_no_table(name, tmp_path) -> None:
    path = tmp_path / name
    path.write_bytes(b"\xff\xfe\x00SECRET\x00\x81")
    with pytest.raises(DataError, match=f"{name} cannot be read") as caught:
        Table.from_file(path, SMALL)
    assert "SECRET" not in str(caught.value)


def test_files_of_no_known_kind(tmp_path) -> None:
    with pytest.raises(DataError, match="is not a file"):
        Table.from_file(tmp_path / "none.csv", SMALL)
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(DataError, match="of no known kind; known endings"):
        Table.from_file(tmp_path / "a.xlsx", SMALL)


def test_all_records_dropped(tmp_path) -> None:
    schema = Schema((Numeric("age", missing="drop"),), Target("t", ("0", "1")))
    (tmp_path / "a.csv").write_text("age,t\n?,1\n")
    with pytest.raises(DataError, match="all 1 records have missing values"):
        Table.from_file(tmp_path / "a.csv", schema)
    with pytest.raises(DataError, match="all 1 records have missing values"):
        Table.from_frame(pd.DataFrame({"age": [np.nan], "t": [1]}), schema)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, np.nan], [1.0, np.nan]], [0, 1], r"column 'x1': 2 missing values"),
        ([[1.0, np.inf]], [0], r"column 'x1': 1 values are not finite"),
        ([[1.0, 2.0]], [2], r"target 'y': 1 labels"),
        ([[1.0]], [0], r"X has shape \(1, 1\)"),
        ([1.0, 2.0], [0, 1], r"X has shape \(2,\)"),
        ([[1.0, 2.0]], [0, 1], r"y has shape \(2,\)"),
        (np.empty((0, 2)), [], "no records"),
    ],
)
def test_bad_arrays(X, y, message) -> None:
    with pytest.raises(DataError, match=message):
        Table.from_arrays(X, y, Schema.of_arrays(2, [0, 1]))


def test_bad_queries_and_databases(tmp_path) -> None:
    with pytest.raises(DataError, match="the query cannot be run"):
        Table.from_query("SELEC 1", SMALL)
    with pytest.raises(DataError, match="the query cannot be run"):
        Table.from_query("SELECT * FROM nowhere", SMALL)
    with pytest.raises(DataError, match="cannot be read") as caught:
        Table.from_query("SELECT CAST('SECRET' || range AS INTEGER) AS age, 'a' AS pain, 1 AS t FROM range(2)", SMALL)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(DataError, match="is not a file; give a DuckDB file"):
        Table.from_query("SELECT 1", SMALL, str(tmp_path / "none.duckdb"))
    with pytest.raises(DataError, match="is not a file; give the path of a SQLite"):
        Table.from_query("SELECT 1", SMALL, f"sqlite:{tmp_path / 'none.sqlite'}")
    (tmp_path / "no.db").write_text("x" * 5000)
    with pytest.raises(DataError, match="cannot be opened"):
        Table.from_query("SELECT 1", SMALL, str(tmp_path / "no.db"))
    with pytest.raises(DataError, match="cannot be run by SQLite"):
        Table.from_query("SELECT * FROM visits", SMALL, f"sqlite:{tmp_path / 'no.db'}")
    with pytest.raises(DataError, match="PostgreSQL database cannot be opened") as caught:
        Table.from_query("SELECT 1", SMALL, "postgres:host=127.0.0.1 port=1 password=SECRET")
    assert "SECRET" not in str(caught.value)


def test_text_of_sqlite_that_is_not_utf8_is_not_quoted(tmp_path) -> None:
    connection = sqlite3.connect(tmp_path / "a.sqlite")
    connection.execute("CREATE TABLE visits AS SELECT 30 AS age, CAST(x'534543524554FF' AS TEXT) AS pain, 1 AS t")
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match=r"column 'pain': 1 values \(1 different ones\)") as caught:
        Table.from_query("SELECT * FROM visits", SMALL, f"sqlite:{tmp_path / 'a.sqlite'}")
    assert "SECRET" not in str(caught.value)


def test_rows_below_one_are_refused() -> None:
    table = Table.from_arrays([[1.0]], [0], Schema.of_arrays(1, [0, 1]))
    with pytest.raises(DataError, match="rows=0"):
        next(table.blocks(0))
