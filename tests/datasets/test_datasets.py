"""Public data sets against the counts that their documentation states."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from tacit import datasets as public
from tacit.data import Table
from tacit.datasets.dataset import DataSet, PublicFile
from tacit.errors import DataError

needs_data = pytest.mark.skipif(
    not os.environ.get("TACIT_DATA"),
    reason="set TACIT_DATA to the data folder, or run `tacit data get NAME`",
)

# Records and percentage of the positive (last) class of each table, as the data sets' pages state them.
DOCUMENTED: dict[str, dict[str, tuple[int, float]]] = {
    "adult": {"train": (32_561, 24.08), "test": (16_281, 23.62)},
    "a9a": {"train": (32_561, 24.08), "test": (16_281, 23.62)},
    "bank_marketing": {"clients": (45_211, 11.70)},
    "coil2000": {"train": (5_822, 5.98), "test": (4_000, 5.95)},
    "default_credit": {"clients": (30_000, 22.12)},
    "heart_disease": {
        "cleveland": (303, 45.87),
        "hungarian": (294, 36.05),
        "switzerland": (123, 93.50),
        "va": (200, 74.5),
    },
    "lending_club": {"loans": (39_786, 14.25)},
    "online_news": {"articles": (39_644, 53.36)},
}
DOCUMENTED_LARGE: dict[str, dict[str, tuple[int, float]]] = {
    "amazon_sentiment": dict.fromkeys(("books", "dvd", "electronics", "kitchen"), (2_000, 50.0)),
    "creditcard_fraud": {"transactions": (284_807, 0.1727)},
    "kdd99": {"train": (494_021, 80.31), "test": (311_029, 80.52)},
}
LEAKS = {
    "bank_marketing": r"duration",
    "lending_club": r"pymnt|recover|^last_|settlement|out_prncp|total_rec|collection|hardship|title|desc|url|id$",
    "online_news": r"url|timedelta|^shares",
    "default_credit": r"^ID$",
    "creditcard_fraud": r"^Time$",
    "kdd99": r"label",
}


def check_documented(name: str, documented: dict[str, tuple[int, float]]) -> None:
    data = public.load(name)
    assert list(data.tables) == list(documented)
    for table_name, (n_records, percentage) in documented.items():
        table = data.tables[table_name]
        assert table.n_records == n_records
        assert 100 * table.class_counts[-1] / n_records == pytest.approx(percentage, abs=0.005)
        assert table.counts.dropped == 0
        assert set(data.frames[table_name].columns) == {*data.schema.feature_names, data.schema.target.name}
        for block in table.blocks():
            assert np.isfinite(block.X).all()
            if data.schema.radius is not None:
                assert np.linalg.norm(block.X, axis=1).max() <= data.schema.radius


@needs_data
@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_counts(name) -> None:
    check_documented(name, DOCUMENTED[name])


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTED_LARGE)
def test_documented_counts_of_large_sets(name) -> None:
    check_documented(name, DOCUMENTED_LARGE[name])


@needs_data
def test_wine_has_the_documented_share_of_good_wines() -> None:
    tables = public.load("wine_quality").tables
    assert {name: table.n_records for name, table in tables.items()} == {"red": 1_599, "white": 4_898}
    pooled = Table.concatenate(list(tables.values()))
    assert 100 * pooled.class_counts[1] / pooled.n_records == pytest.approx(63.3, abs=0.05)


@needs_data
def test_adult_as_the_benchmark_prepares_it() -> None:
    tables = public.load("adult_dpml").tables
    assert (tables["train"].n_records, tables["test"].n_records) == (36_176, 9_044)
    pooled = Table.concatenate(list(tables.values()))
    assert (pooled.n_columns, pooled.class_counts.tolist()) == (104, [34_014, 11_206])
    assert np.linalg.norm(pooled.arrays()[0], axis=1).max() == pytest.approx(3.3382742)


@needs_data
@pytest.mark.slow
def test_windows_of_thirty_people() -> None:
    tables = public.load("hapt").tables
    assert list(tables) == [f"subject{subject:02d}" for subject in range(1, 31)]
    pooled = Table.concatenate(list(tables.values()))
    assert pooled.n_records == 10_411
    assert (pooled.class_counts > 1_000).all()
    # Bounds from physics must leave almost every value inside.
    n_values = pooled.n_records * pooled.n_columns
    assert sum(pooled.counts.clipped.values()) / n_values < 0.005


@needs_data
@pytest.mark.slow
def test_newsgroups_have_bodies_of_norm_one() -> None:
    tables = public.load("newsgroups20").tables
    assert (tables["train"].n_records, tables["test"].n_records) == (11_314, 7_532)
    assert tables["train"].class_counts.min() == 377  # talk.religion.misc, the smallest group
    assert tables["train"].counts.rows_clipped == 0


@needs_data
def test_the_pooled_fit_of_the_four_hospitals_exists() -> None:
    data = public.load("heart_disease")
    X, y = Table.concatenate(list(data.tables.values())).arrays()
    design = np.column_stack([X, np.ones(len(X))])
    assert np.linalg.cond(design) < 100
    fit = sm.Logit(y, design).fit(disp=0)
    assert fit.mle_retvals["converged"]
    assert np.abs(fit.params).max() < 5  # separated data would send a coefficient away
    assert fit.bse.max() < 1
    theta = fit.params
    original = data.schema.original_units() @ theta
    age = data.schema.column_names.index("age")
    assert original[age] == pytest.approx(theta[age] / 35)  # ages 20 to 90 became -1 to 1


@needs_data
def test_export_writes_files_that_read_back_the_same(tmp_path) -> None:
    data = public.load("heart_disease")
    paths = public.export("heart_disease", tmp_path / "heart")
    assert [path.name for path in paths] == ["cleveland.csv", "hungarian.csv", "switzerland.csv", "va.csv"]
    for path in paths:
        X, y = Table.from_file(path, data.schema).arrays()
        np.testing.assert_array_equal(X, data.tables[path.stem].arrays()[0])
        np.testing.assert_array_equal(y, data.tables[path.stem].arrays()[1])


def test_all_sets_are_known_and_described_without_their_files(monkeypatch) -> None:
    monkeypatch.setenv("TACIT_DATA", "nowhere")
    assert len(public.names()) == 16
    for name in public.names():
        text = public.describe(name)
        assert text.startswith(f"{name}: ")
        assert "Terms: " in text


def test_made_up_patients_need_no_file_and_are_the_same_every_time(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TACIT_DATA", "nowhere")
    paths = public.export("readmission", tmp_path)
    assert [path.name for path in paths] == ["north.csv", "south.csv", "west.csv", "east.csv", "public.csv"]
    assert [len(path.read_text().splitlines()) - 1 for path in paths] == [3000, 2400, 1800, 1500, 200]
    texts = [path.read_text() for path in paths]
    assert len(set(texts)) == len(texts)
    assert [path.read_text() for path in public.export("readmission", tmp_path / "again")] == texts


@pytest.mark.parametrize("name", LEAKS)
def test_columns_that_give_the_label_away_are_left_out(name) -> None:
    leaks = [column for column in public.load(name).schema.feature_names if re.search(LEAKS[name], column)]
    assert leaks == []


def test_an_unknown_name_is_told_with_a_suggestion() -> None:
    with pytest.raises(DataError, match=r"no public data set 'hart_disease'.*did you mean 'heart_disease'"):
        public.load("hart_disease")


def a_set(file: PublicFile) -> DataSet:
    def read(paths: dict[str, Path]) -> dict[str, pd.DataFrame]:
        return {"only": pd.read_csv(paths[file.name])}

    schema = public.load("wine_quality").schema
    return DataSet("some", "a title", schema, (file,), read, "its home", "its terms", "a note")  # type: ignore[arg-type]


def test_files_are_found_in_either_form_and_checked(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    text = b"a,b\n1,2\n"
    file = PublicFile("x.csv.gz", "0" * 64, plain_sha256=hashlib.sha256(text).hexdigest())
    with pytest.raises(DataError, match=r"x.csv.gz is missing; set TACIT_DATA to a folder that holds some/x.csv.gz"):
        a_set(file).frames()
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "x.csv").write_bytes(text)
    assert a_set(file).frames()["only"].shape == (1, 2)
    (tmp_path / "some" / "x.csv").write_bytes(text + b"3,4\n")
    with pytest.raises(DataError, match=r"has the SHA-256 [0-9a-f]{64}, not .*; replace it by the original"):
        a_set(file).frames()


def test_without_a_folder_and_an_address_the_way_out_is_told(monkeypatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)
    with pytest.raises(DataError, match=r"has no public address.*set TACIT_DATA.*published at its home"):
        a_set(PublicFile("x.csv", "0" * 64)).frames()


def test_downloads_are_kept_and_checked(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setattr("tacit.datasets.dataset.pooch.os_cache", lambda name: tmp_path / name)
    asked: dict[str, object] = {}

    def retrieve(url: str, **settings: object) -> str:
        asked.update(settings, url=url)
        (tmp_path / "x.csv").write_text("a\n1\n")
        return str(tmp_path / "x.csv")

    monkeypatch.setattr("tacit.datasets.dataset.pooch.retrieve", retrieve)
    file = PublicFile("x.csv.gz", "0" * 64, plain_sha256="1" * 64, url="https://example.org/x.csv")
    assert a_set(file).frames()["only"].shape == (1, 1)
    assert asked["known_hash"] == "sha256:" + "1" * 64
    assert (asked["url"], asked["fname"], asked["path"]) == (file.url, "x.csv", tmp_path / "tacit" / "some")

    def refuse(url: str, **settings: object) -> str:
        raise ValueError("SHA256 hash of downloaded file does not match")

    monkeypatch.setattr("tacit.datasets.dataset.pooch.retrieve", refuse)
    with pytest.raises(DataError, match=r"could not be had .its checksum is not the known one.; set TACIT_DATA"):
        a_set(file).frames()


def test_export_writes_over_nothing_of_yours(tmp_path) -> None:
    (tmp_path / "south.csv").write_text("mine\n1\n")
    with pytest.raises(DataError, match=r"south\.csv exists, holds something else and is not written over"):
        public.export("readmission", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["south.csv"]
    assert (tmp_path / "south.csv").read_text() == "mine\n1\n"
