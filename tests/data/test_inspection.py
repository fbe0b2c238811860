"""An owner learns line, column and value of everything in the own file that does not fit a schema."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from tacit.data import Binary, Categorical, Numeric, Schema, Table, Target
from tacit.data.inspection import MOST_MISFITS, inspect_file, inspect_query
from tacit.errors import DataError

SCHEMA = Schema(
    (Numeric("age", 20, 90), Categorical("pain", ("none", "typical")), Binary("sex", ("M", "F"))),
    Target("disease", ("no", "yes")),
)
HEAD = "age,pain,sex,disease\n"
GOOD = "30,none,M,no\n41,typical,F,yes\n"


def inspected(tmp_path, text, schema=SCHEMA):
    path = tmp_path / "north.csv"
    path.write_text(text)
    return inspect_file(path, schema)


def test_a_file_that_fits(tmp_path) -> None:
    found = inspected(tmp_path, HEAD + GOOD)
    assert found.fits
    assert not found.misfits
    assert found.class_counts == {"no": 1, "yes": 1}
    assert found.lines() == ["north.csv: 2 records: 1 of class 'no', 1 of class 'yes'"]


@pytest.mark.parametrize(
    ("row", "column", "value", "why"),
    [
        ("old,none,M,no", "age", "old", "is no finite number"),
        (",none,M,no", "age", "", "is missing; fill it in"),
        ("30,Tpical,M,no", "pain", "Tpical", "is 'typical' meant"),
        ("30,none,W,no", "sex", "W", "declared are M, F"),
        ("30,none,M,maybe", "disease", "maybe", "is not declared; declared are no, yes"),
        ("30,none,M,", "disease", "", "is no label"),
    ],
)
def test_every_fault_has_its_line_and_value(row, column, value, why, tmp_path) -> None:
    found = inspected(tmp_path, HEAD + GOOD + row + "\n" + GOOD)
    assert not found.fits
    (misfit,) = found.misfits
    assert (misfit.line, misfit.record, misfit.column, misfit.value) == (4, 3, column, value)
    assert why in misfit.why
    with pytest.raises(DataError, match=column):
        Table.from_file(tmp_path / "north.csv", SCHEMA)


def test_lines_are_those_of_the_file_where_a_cell_is_broken_over_two(tmp_path) -> None:
    schema = Schema(SCHEMA.features, SCHEMA.target, ignore=("note",))
    text = 'age;note;pain;sex;disease\n30;"two\nlines";none;M;no\n\n40;x;none;M;no\nold;x;none;M;no\n'
    found = inspected(tmp_path, text, schema)
    assert [(misfit.record, misfit.line) for misfit in found.misfits] == [(3, 6)]


def test_a_compressed_file_has_lines_and_a_parquet_file_has_records(tmp_path) -> None:
    packed, columns = tmp_path / "north.csv.gz", tmp_path / "north.parquet"
    packed.write_bytes(gzip.compress((HEAD + GOOD + "old,none,M,no\n").encode()))
    assert [misfit.line for misfit in inspect_file(packed, SCHEMA).misfits] == [4]
    frame = pd.DataFrame({"age": ["30", "old"], "pain": "none", "sex": "M", "disease": "no"})
    import duckdb

    duckdb.sql("SELECT * FROM frame").write_parquet(str(columns))
    (misfit,) = inspect_file(columns, SCHEMA).misfits
    assert (misfit.record, misfit.line) == (2, None)
    assert "record 2, column 'age'" in misfit.told()
    assert len(frame) == 2


def test_columns_are_told_with_near_names(tmp_path) -> None:
    found = inspected(tmp_path, "Age,pain,sex,disease,id\n30,none,M,no,7\n")
    assert found.problems == (
        "column 'age' is missing; is it the column 'Age'?",
        "columns ['Age', 'id'] are not in the study; leave them out with ignore = ['Age', 'id'] in [study]",
    )
    assert not found.fits


def test_what_the_schema_has_a_rule_for_is_no_error(tmp_path) -> None:
    schema = Schema(
        (Numeric("age", 20, 90, missing="middle"), Categorical("pain", ("none", "typical"), unknown="bucket")),
        Target("disease", ("no", "yes")),
    )
    found = inspected(tmp_path, "age,pain,disease\n,none,no\n300,odd,yes\n30,none,no\n", schema)
    assert found.fits
    assert [(m.column, m.line) for m in found.misfits] == [("age", 2), ("age", 3), ("pain", 3)]
    Table.from_file(tmp_path / "north.csv", schema)


def test_long_lists_are_cut_and_counted(tmp_path) -> None:
    found = inspected(tmp_path, HEAD + "old,none,M,no\n" * (MOST_MISFITS + 5))
    assert len(found.misfits) == MOST_MISFITS
    assert found.counts == {"age": MOST_MISFITS + 5}
    assert "north.csv: column 'age' has 5 more of these" in found.lines()


def test_another_unit_is_an_error(tmp_path) -> None:
    found = inspected(tmp_path, HEAD + "0.3,none,M,no\n" * 10)
    assert found.problems == (
        "column 'age': every value lies outside the declared 20 to 90; it is probably in another unit",
    )
    with pytest.raises(DataError, match="column 'age': every value lies outside the declared 20 to 90"):
        Table.from_file(tmp_path / "north.csv", SCHEMA)
    with pytest.raises(DataError, match="another unit"):
        Table.from_frame(pd.DataFrame({"age": [0.3] * 10, "pain": "none", "sex": "M", "disease": "no"}), SCHEMA)
    table = Table.from_file(tmp_path / "north.csv", SCHEMA, unfit="skip")  # a daemon must not tell by an error
    assert table.counts.clipped == {"age": 10}


def test_a_query_is_looked_through_as_a_file_is(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "clinic.db")
    columns = ", ".join(SCHEMA.feature_names)
    database.execute(f"CREATE TABLE visits ({columns}, {SCHEMA.target.name})")
    marks = ", ".join("?" for _ in range(len(SCHEMA.features) + 1))
    database.execute(f"INSERT INTO visits VALUES ({marks})", ["?!"] * (len(SCHEMA.features) + 1))
    database.commit()
    database.close()
    found = inspect_query("SELECT * FROM visits", SCHEMA, f"sqlite:{tmp_path / 'clinic.db'}")
    assert not found.fits
    assert {(one.record, one.line, one.value) for one in found.misfits} == {(1, None, "?!")}
