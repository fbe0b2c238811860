"""Whose a record is: weights from a column of names, the same from arrays, frames and files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from tacit.data import Numeric, Schema, Table, Target
from tacit.data.person import person_codes, record_weights
from tacit.errors import DataError

SCHEMA = Schema(features=[Numeric("x", low=-5, high=5, missing="drop")], target=Target("y", classes=["no", "yes"]))
FRAME = pd.DataFrame(
    {
        "x": [1.0, 2.0, None, 4.0, 3.0, 0.0],
        "y": ["no", "yes", "no", "yes", "no", "no"],
        "patient": ["a", "b", "a", "a", " b ", "c"],
    }
)
WEIGHTS = [1 / 2, 1 / 2, 1 / 2, 1 / 2, 1]  # the third record is incomplete


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    duckdb.from_df(frame).write_parquet(str(path))


def weights_of(table: Table, unit: str = "person", rows: int = 2) -> list[float]:
    blocks = list(table.weighted_blocks(unit, rows))  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), table.arrays()[0])
    return [float(w) for block in blocks for w in block.weights]


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "query"])
def test_a_record_weighs_one_over_the_complete_records_of_its_person(kind: str, tmp_path: Path) -> None:
    csv, parquet = tmp_path / "t.csv", tmp_path / "t.parquet"
    FRAME.to_csv(csv, index=False)
    write_parquet(FRAME, parquet)
    tables = {
        "frame": lambda: Table.from_frame(FRAME, SCHEMA, person="patient"),
        "csv": lambda: Table.from_file(csv, SCHEMA, person="patient"),
        "parquet": lambda: Table.from_file(parquet, SCHEMA, person="patient"),
        "query": lambda: Table.from_query(f"SELECT * FROM '{parquet}'", SCHEMA, person="patient"),
    }
    table = tables[kind]()
    assert weights_of(table) == WEIGHTS
    assert (table.n_persons, table.n_records, table.n_complete) == (3, 6, 5)
    assert [table.n_units(unit) for unit in ("record", "person", "party")] == [6, 3, 1]  # type: ignore[arg-type]
    assert table.person_column == "patient"
    assert weights_of(table, "record") == [1.0] * 5
    assert weights_of(table, "party") == [1 / 5] * 5
    np.testing.assert_array_equal(table.arrays()[1], [0, 1, 1, 0, 0])


def test_rows_of_a_large_file_keep_their_order_and_their_persons(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    n = 30_000
    persons = chance.integers(5000, size=n)
    frame = pd.DataFrame({"x": chance.uniform(-5, 5, n), "y": np.where(chance.random(n) < 0.5, "no", "yes")})
    write_parquet(frame.assign(who=persons), tmp_path / "t.parquet")
    table = Table.from_file(tmp_path / "t.parquet", SCHEMA, person="who")
    in_memory = Table.from_arrays(frame[["x"]].to_numpy(), frame["y"].to_numpy(), SCHEMA, persons=persons)
    np.testing.assert_array_equal(table.arrays()[0], in_memory.arrays()[0])
    weights = np.array(weights_of(table, rows=16384))
    np.testing.assert_array_equal(weights, 1 / np.bincount(persons)[persons])
    np.testing.assert_array_equal(weights, weights_of(in_memory, rows=777))


def test_a_person_all_of_whose_records_are_incomplete_counts_and_adds_nothing() -> None:
    table = Table.from_frame(FRAME.assign(patient=["a", "b", "lost", "a", "b", "c"]), SCHEMA, person="patient")
    assert table.n_persons == 4
    assert weights_of(table) == [1 / 2, 1 / 2, 1 / 2, 1 / 2, 1]


@pytest.mark.parametrize("missing", [None, "", "NA", " ? ", float("nan")])
def test_a_record_of_nobody_is_refused_and_named_by_its_place(missing: object, tmp_path: Path) -> None:
    frame = FRAME.assign(patient=["a", "b", "a", missing, "b", missing])
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"column 'patient': 2 records name no person, the first is record 4 "):
        Table.from_file(tmp_path / "t.csv", SCHEMA, person="patient")
    with pytest.raises(DataError, match="2 records name no person, the first is record 4 "):
        Table.from_frame(frame, SCHEMA, person="patient")


def test_a_column_that_is_not_there_and_a_table_without_persons_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"columns \['who'\] are missing"):
        Table.from_frame(FRAME, SCHEMA, person="who", ignore=["patient"])
    with pytest.raises(DataError, match="does not tell whose a record is"):
        list(Table.from_frame(FRAME, SCHEMA, ignore=["patient"]).weighted_blocks("person"))
    with pytest.raises(DataError, match=r"persons of shape \(2,\) must name one person for each of 3 records"):
        Table.from_arrays(np.zeros((3, 1)), ["no"] * 3, SCHEMA, persons=[1, 2])


def test_names_are_compared_as_labels_are() -> None:
    codes = person_codes(np.array([7, "7.0", "x", " 7 ", "x"], dtype=object), 5, "t")
    np.testing.assert_array_equal(record_weights(codes), [1 / 3, 1 / 3, 1 / 2, 1 / 3, 1 / 2])


def test_tables_put_together_keep_their_persons_apart() -> None:
    one = Table.from_frame(FRAME, SCHEMA, person="patient")
    assert Table.concatenate([one, one]).n_persons == 6
    assert weights_of(Table.concatenate([one, one])) == WEIGHTS * 2
    assert Table.concatenate([one, Table.from_frame(FRAME, SCHEMA, ignore=["patient"])]).n_persons is None
    alone = one.each_a_person()
    assert (alone.n_persons, weights_of(alone)) == (6, [1.0] * 5)


def test_at_a_daemon_a_record_without_a_name_keeps_its_place_and_adds_nothing(tmp_path) -> None:
    path = tmp_path / "visits.csv"
    rows = ["age,patient,t", "30,a,no", "40,a,yes", "50,,no", "60,b,yes"]
    path.write_text("\n".join(rows) + "\n")
    schema = Schema((Numeric("age", 0, 100),), Target("t", ("no", "yes")))
    with pytest.raises(DataError, match="1 records name no person"):
        Table.from_file(path, schema, person="patient")
    table = Table.from_file(path, schema, person="patient", unfit="skip")
    assert (table.n_records, table.n_complete, table.n_persons) == (4, 3, 3)
    blocks = list(table.weighted_blocks("person"))
    assert np.concatenate([block.weights for block in blocks]).tolist() == [0.5, 0.5, 1.0]
    assert table.class_counts.tolist() == [1, 2]
