"""Studies with looks on the command line: what `tacit plan` and `tacit fit` tell of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import STUDY, Outcome, parties

Run = Callable[..., Outcome]
LOOKS = STUDY.replace('"averaging"', '"private-newton"') + """
[federation]
quorum = 2

[stop]
looks = [150, 250]
coefficient = "treated"
half_width = 0.001
"""  # fmt: skip


def test_plan_tells_what_each_look_costs_and_how_likely_it_is_to_end_the_study(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(LOOKS)
    done = run("plan", path)
    assert done.status == 0, done.err
    assert "Planned looks" in done.out
    assert "0.689" in done.out  # epsilon of each of two looks, at delta 1e-6
    told = run("plan", path, "--json").json
    assert [look["n_records"] for look in told["looks"]] == [150, 250]
    assert told["look_forecast"] is None
    forecast = run("plan", path, "--records", "a=50", "--records", "b=50", "--epsilons", "1", "--json").json
    assert [look["ends"] for look in forecast["look_forecast"]["looks"]] == [0.0, 1.0]


def test_fit_goes_through_the_looks(run: Run, trial: Path) -> None:
    (trial / "study.toml").write_text(LOOKS)
    done = run("fit", trial / "study.toml", *parties(trial), "--json")
    assert done.status == 0, done.err
    assert any("It stopped at look 2 of 2, which is the last." in notice for notice in done.json["notices"])
    assert done.json["guarantee"]["epsilon"] == pytest.approx(1.0, rel=2e-3)
    told = {party["name"]: party["epsilon"] for party in done.json["parties"]}
    assert [*told.values()] == pytest.approx([1.0, 1.0, 0.689], rel=1e-2)
    half = run("fit", trial / "study.toml", *parties(trial), "--epsilon", "0.5", "--json")
    assert half.json["guarantee"]["epsilon"] == pytest.approx(0.5, rel=2e-3)


def test_a_coefficient_that_does_not_exist_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(LOOKS.replace('coefficient = "treated"', 'coefficient = "treatd"'))
    done = run("plan", path)
    assert done.status == 2
    assert "stop.coefficient = 'treatd' is no coefficient of the study; did you mean 'treated'?" in done.err
