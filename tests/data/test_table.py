"""Tables of every origin: the same records give the same blocks, and bad input is told without a value of it."""

from __future__ import annotations

import gc
import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data import Binary, Categorical, Numeric, Schema, Table, Target
from tacit.errors import DataError

SCHEMA = Schema(
    (
        Numeric("age", 20, 90),
        Binary("sex", ("female", "male")),
        Categorical("pain", ("typical", "atypical", "none"), missing="indicator", unknown="bucket"),
        Numeric("chol", 100, 600, missing="indicator"),
        Numeric("weight", missing="drop"),
    ),
    Target("disease", ("no", "yes")),
    norm_bound=30.0,
)


def records(n: int = 5000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(15, 95, n),
            "sex": rng.choice(["female", "male"], n),
            "pain": rng.choice(["typical", "atypical", "none", "odd", "?"], n),
            "chol": np.where(rng.random(n) < 0.1, np.nan, rng.normal(250, 90, n)),
            "weight": np.where(rng.random(n) < 0.05, np.nan, rng.normal(20, 10, n)),
            "disease": rng.choice(["no", "yes"], n),
        }
    )
    frame.loc[0, "weight"] = 20.0
    return frame


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        with duckdb.connect() as connection:
            connection.register("frame", frame)
            connection.execute(f"COPY (SELECT * FROM frame) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def from_duckdb(frame: pd.DataFrame, folder: Path) -> Table:
    with duckdb.connect(str(folder / "records.duckdb")) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    return Table.from_query("SELECT * FROM visits; ", SCHEMA, str(folder / "records.duckdb"))


def from_sqlite(frame: pd.DataFrame, folder: Path) -> Table:
    connection = sqlite3.connect(folder / "records.sqlite")
    frame.to_sql("visits", connection, index=False)
    connection.close()
    return Table.from_query("SELECT * FROM visits", SCHEMA, f"sqlite:{folder / 'records.sqlite'}")


ORIGINS: dict[str, Callable[[pd.DataFrame, Path], Table]] = {
    "csv": lambda frame, folder: Table.from_file(write(frame, folder / "a.csv"), SCHEMA),
    "csv.gz": lambda frame, folder: Table.from_file(write(frame, folder / "a.csv.gz"), SCHEMA),
    "tsv": lambda frame, folder: Table.from_file(write(frame, folder / "a.tsv"), SCHEMA),
    "parquet": lambda frame, folder: Table.from_file(write(frame, folder / "a.parquet"), SCHEMA),
    "query of a file": lambda frame, folder: Table.from_query(
        f"SELECT * FROM '{write(frame, folder / 'q.parquet')}' -- all of it", SCHEMA
    ),
    "duckdb": from_duckdb,
    "sqlite": from_sqlite,
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_every_origin_gives_the_same_blocks(origin, tmp_path) -> None:
    frame = records()
    expected = Table.from_frame(frame, SCHEMA)
    table = ORIGINS[origin](frame, tmp_path)
    assert table.n_complete == expected.n_complete < table.n_records == 5000
    assert table.counts == expected.counts
    assert table.counts.rows_clipped > 0
    assert table.counts.clipped["age"] > 0
    np.testing.assert_array_equal(table.class_counts, expected.class_counts)
    for block, other in zip(table.blocks(1000), expected.blocks(1000), strict=True):
        np.testing.assert_array_equal(block.X, other.X)
        np.testing.assert_array_equal(block.y, other.y)
        assert block.X.flags.c_contiguous


def test_arrays_equal_frame() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    schema = Schema((Numeric("a", -1, 1), Numeric("b"), Numeric("c", 0, 2)), Target("t", ("0", "1")), norm_bound=1.2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(t=y)
    one, other = Table.from_arrays(X, y, schema), Table.from_frame(frame, schema)
    np.testing.assert_array_equal(one.arrays()[0], other.arrays()[0])
    np.testing.assert_array_equal(one.arrays()[1], other.arrays()[1])
    assert one.counts == other.counts
    mixed = Schema((Binary("a"), Categorical("b", ("1", "2"))), Target("t", ("-1", "1")))
    table = Table.from_arrays([[0, 2], [1, 1]], [1.0, -1.0], mixed)
    np.testing.assert_array_equal(table.arrays()[0], [[0, 1], [1, 0]])
    assert table.arrays()[1].tolist() == [1, 0]


def test_arrays_are_not_copied_when_nothing_needs_clipping() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    schema = Schema.of_arrays(4, [0, 1], norm_bound=1e6)
    table = Table.from_arrays(X, np.arange(100) % 2, schema)
    assert all(np.shares_memory(block.X, X) for block in table.blocks(33))
    clipped = Table.from_arrays(X, np.arange(100) % 2, Schema.of_arrays(4, [0, 1], norm_bound=1.0))
    assert not np.shares_memory(clipped.arrays()[0], X)
    assert clipped.counts.rows_clipped == np.sum(np.linalg.norm(X, axis=1) > 1)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory) -> tuple[Table, Table]:
    path = write(records(20_000), tmp_path_factory.mktemp("records") / "a.parquet")
    return Table.from_file(path, SCHEMA), Table.concatenate(
        [Table.from_frame(records(n, n), SCHEMA) for n in (5, 3000, 77)]
    )


@given(rows=st.integers(1, 25_000))
@settings(deadline=None, max_examples=40)
def test_blocks_do_not_depend_on_their_size(rows, parquet) -> None:
    for table in parquet:
        whole = table.arrays()
        if table.n_records / rows > 300:
            rows = 300
        blocks = list(table.blocks(rows))
        assert all(len(block.y) == rows for block in blocks[:-1])
        assert 1 <= len(blocks[-1].y) <= rows
        np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), whole[0])
        np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), whole[1])


def test_two_passes_may_run_at_once(parquet) -> None:
    table = parquet[0]
    for one, other in zip(table.blocks(2000), table.blocks(2000), strict=True):
        np.testing.assert_array_equal(one.X, other.X)


def test_blocks_cannot_be_written_to() -> None:
    table = Table.from_arrays(np.ones((2, 1)), [0, 1], Schema.of_arrays(1, [0, 1]))
    block = next(table.blocks())
    with pytest.raises(ValueError, match="read-only"):
        block.X[0, 0] = 2.0


def test_concatenated_tables_add_up() -> None:
    tables = [Table.from_frame(records(300, seed), SCHEMA) for seed in (1, 2)]
    pooled = Table.concatenate(tables)
    assert pooled.n_records == sum(table.n_records for table in tables)
    assert pooled.counts.dropped == sum(table.counts.dropped for table in tables)
    assert pooled.counts.rows_clipped == sum(table.counts.rows_clipped for table in tables) > 0
    assert pooled.counts.clipped["chol"] == sum(table.counts.clipped["chol"] for table in tables)
    np.testing.assert_array_equal(pooled.class_counts, np.bincount(pooled.arrays()[1]))
    np.testing.assert_array_equal(pooled.arrays()[0], np.vstack([table.arrays()[0] for table in tables]))
    other = Table.from_arrays([[1.0]], [0], Schema.of_arrays(1, [0, 1]))
    with pytest.raises(DataError, match="another schema"):
        Table.concatenate([tables[0], other])
    with pytest.raises(DataError, match="tables is empty"):
        Table.concatenate([])


def test_moments_are_sums_over_the_complete_rows() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 3)), rng.integers(0, 3, 5000)
    schema = Schema.of_arrays(3, [0, 1, 2])
    halves = [Table.from_arrays(X[:2100], y[:2100], schema), Table.from_arrays(X[2100:], y[2100:], schema)]
    found = Table.concatenate(halves).moments
    np.testing.assert_allclose(found.square, X.T @ X, rtol=1e-12)
    np.testing.assert_allclose(found.by_class, [X[y == c].sum(axis=0) for c in range(3)], rtol=1e-10)
    np.testing.assert_allclose(found.total, X.sum(axis=0), rtol=1e-10)
    columns = Table.concatenate(halves).column_moments
    np.testing.assert_allclose(columns.squares, found.squares, rtol=1e-12)
    np.testing.assert_array_equal(columns.by_class, found.by_class)


def test_nothing_shows_a_record() -> None:
    table = Table.from_arrays([[123.25]], [1], Schema.of_arrays(1, [0, 1]))
    assert repr(table) == "Table('arrays', n_records=1, n_columns=1)"
    assert "123" not in repr(next(table.blocks()))
    assert not {"head", "sample", "to_frame", "rows"} & set(dir(table))


SMALL = Schema((Numeric("age", 20, 90), Categorical("pain", ("a", "b"))), Target("t", ("0", "1")), ignore=("note",))


def test_files_as_people_write_them(tmp_path) -> None:
    texts = {
        "bom.csv": "\ufeffage,pain,t\n30,a,1\n40,b,0\n",
        "crlf.csv": "age,pain,t\r\n30,a,1\r\n40,b,0\r\n",
        "semicolon.csv": 'age;pain;t;note\n30;a;1;"x;y"\n40;b;0;\n',
        "spaces.csv": "age, pain ,t\n 30 , a,1.0\n40.0,b ,0\n",
        "quotes.csv": '"age","pain","t"\n"30","a","1"\n"40","b","0"\n',
        "order.tsv": "t\tnote\tpain\tage\n1\tq\ta\t30\n0\t\tb\t4e1\n",
        "it's [odd] (1).csv": "age,pain,t\n30,a,1\n40,b,0",
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
        X, y = Table.from_file(tmp_path / name, SMALL).arrays()
        np.testing.assert_allclose(X, [[-5 / 7, 0], [-3 / 7, 1]], err_msg=name)
        assert y.tolist() == [1, 0], name


def test_surplus_columns_can_be_left_out(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("age,pain,t,id\n30,a,1,7\n")
    assert Table.from_file(tmp_path / "a.csv", SMALL, ignore=("id",)).n_records == 1
    frame = pd.DataFrame({"age": [30], "pain": ["a"], "t": [1], "id": [7]})
    assert Table.from_frame(frame, SMALL, ignore=("id",)).n_records == 1
    with pytest.raises(DataError, match=r"\['id'\] are not in the schema"):
        Table.from_frame(frame, SMALL)


@pytest.mark.parametrize(
    ("rule", "encoded", "dropped"),
    [("indicator", [[1, 0], [0, 1]], 0), ("middle", [[1], [0]], 0), ("drop", [[1]], 1)],
)
def test_missing_rules_of_files(rule, encoded, dropped, tmp_path) -> None:
    schema = Schema((Numeric("age", 20, 90, missing=rule),), Target("t", ("0", "1")))
    (tmp_path / "a.csv").write_text("age,t\n95,1\n?,0\n")
    table = Table.from_file(tmp_path / "a.csv", schema)
    np.testing.assert_array_equal(table.arrays()[0], encoded)
    assert (table.counts.dropped, table.counts.clipped) == (dropped, {"age": 1})


def test_a_file_that_changes_under_the_table_is_noticed(tmp_path) -> None:
    path = write(records(100), tmp_path / "a.parquet")
    table = Table.from_file(path, SCHEMA)
    table.arrays()
    write(records(200), path)
    with pytest.raises(DataError, match="has changed since it was opened"):
        table.arrays()


def test_a_text_file_is_a_snapshot(tmp_path) -> None:
    path = write(records(100), tmp_path / "a.csv")
    table = Table.from_file(path, SCHEMA)
    before = table.arrays()[0]
    path.unlink()
    np.testing.assert_array_equal(table.arrays()[0], before)


def test_one_class_and_one_record_are_allowed(tmp_path) -> None:
    with gzip.open(tmp_path / "one.csv.gz", "wt") as file:
        file.write("age,pain,t\n50,b,1\n")
    table = Table.from_file(tmp_path / "one.csv.gz", SMALL)
    assert table.class_counts.tolist() == [0, 1]
    assert (table.n_records, table.n_columns, table.n_classes, table.name) == (1, 2, 2, "one.csv.gz")


def test_the_private_store_is_removed_with_the_table(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "a.csv").write_text("age,pain,t\n50,b,1\n")
    table = Table.from_file(tmp_path / "a.csv", SMALL)
    assert len(list(tmp_path.glob("tacit-*"))) == 1
    del table
    gc.collect()
    assert list(tmp_path.glob("tacit-*")) == []


@pytest.mark.slow
def test_a_table_larger_than_the_memory_given_to_it(tmp_path) -> None:
    """Eighty million values, 640 MB as codes: a text file and a Parquet file give the same sums in two passes."""
    columns = ", ".join(f"(range * {j + 1} % 1009) / 1009 AS x{j}" for j in range(40))
    with duckdb.connect(config={"memory_limit": "1GB"}) as connection:
        query = f"SELECT {columns}, range % 2 AS y FROM range(2_000_000)"
        connection.execute(f"COPY ({query}) TO '{tmp_path / 'a.parquet'}' (FORMAT parquet)")
    schema = Schema(tuple(Numeric(f"x{j}", 0, 1) for j in range(40)), Target("y", ("0", "1")))
    streamed = Table.from_file(tmp_path / "a.parquet", schema)
    stored = Table.from_query(f"SELECT * FROM '{tmp_path / 'a.parquet'}'", schema)
    for table in (streamed, stored):
        assert table.class_counts.tolist() == [1_000_000, 1_000_000]
    for block, other in zip(streamed.blocks(), stored.blocks(), strict=True):
        assert np.array_equal(block.X, other.X)
        assert np.array_equal(block.y, other.y)
