"""Forecasts in a process of their own: answered, remembered, outdated ones stopped, endless ones ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.studies.forecast_process import ForecastQuestion
from tacit.web.coordinator.forecaster import Forecaster

from .conftest import STUDY

SMALL = ForecastQuestion(text=STUDY, sizes={"a": 200, "b": 200}, epsilons=(1.0,), repeats=2)
LARGE = ForecastQuestion(text=STUDY, sizes={"a": 200_000}, epsilons=tuple(0.1 * k for k in range(1, 60)), repeats=50)


@pytest.fixture
def forecaster(tmp_path: Path) -> Iterator[Forecaster]:
    made = Forecaster(tmp_path)
    yield made
    made.close()


def test_an_answer_comes_and_is_remembered(forecaster: Forecaster) -> None:
    assert not forecaster.ask(SMALL, "ada").is_done
    answer = forecaster.wait(SMALL, "ada", 300.0)
    assert answer.error == ""
    assert answer.result is not None
    (found,) = answer.result["numbers"]["forecasts"]
    assert 0.4 < found["accuracy"]["mean"] < 1
    assert answer.result["pictures"]["forecast"].startswith("<svg")
    assert forecaster.ask(SMALL, "somebody else") is answer


def test_a_newer_question_stops_the_older_one_and_others_wait_their_turn(forecaster: Forecaster) -> None:
    assert not forecaster.ask(LARGE, "ada").is_done
    answer = forecaster.wait(SMALL, "ada", 300.0)  # were the large one not stopped, this would not end
    assert answer.result is not None
    wrong = ForecastQuestion(text=STUDY, sizes={"a": 200}, epsilons=(1.0,), auc=0.1)
    assert "auc" in forecaster.wait(wrong, "eve", 300.0).error


def test_a_forecast_without_end_is_ended(tmp_path: Path) -> None:
    forecaster = Forecaster(tmp_path, seconds=0.01)
    try:
        assert "takes longer than 0.01 s" in forecaster.wait(LARGE, "ada", 300.0).error
    finally:
        forecaster.close()
