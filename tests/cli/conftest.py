"""A small study with three parties' files, and a way to run the command line in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.cli.main import main

STUDY = """
[study]
name = "trial"
purpose = "Who recovers?"

[target]
name = "recovered"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 20
high = 90

[[feature]]
name = "ward"
kind = "categorical"
categories = ["a", "b", "c"]

[[feature]]
name = "treated"
kind = "binary"

[method]
name = "averaging"

[privacy]
epsilon = 1.0
"""


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return Outcome(int(caught.value.code or 0), told.out, told.err)

    return call


def frame(n: int, seed: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    age = chance.uniform(20, 90, n).round(1)
    treated = chance.integers(0, 2, n)
    odds = -0.04 * (age - 55) + 1.5 * treated
    recovered = np.where(chance.uniform(size=n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return pd.DataFrame({"age": age, "ward": chance.choice(list("abc"), n), "treated": treated, "recovered": recovered})


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """A folder with study.toml, north.csv, south.csv and west.parquet."""
    (tmp_path / "study.toml").write_text(STUDY)
    for i, (name, n) in enumerate([("north", 120), ("south", 80), ("west", 50)]):
        frame(n, i).to_csv(tmp_path / f"{name}.csv", index=False)
    import duckdb

    duckdb.sql(f"COPY (FROM read_csv('{tmp_path / 'west.csv'}')) TO '{tmp_path / 'west.parquet'}' (FORMAT parquet)")
    frame(100, 9).to_csv(tmp_path / "test.csv", index=False)
    return tmp_path


def parties(folder: Path) -> list[str]:
    return [
        f"--party=north={folder / 'north.csv'}",
        f"--party=south={folder / 'south.csv'}",
        f"--party=west={folder / 'west.parquet'}",
    ]
