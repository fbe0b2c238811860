"""The documents' figures, in small."""

from __future__ import annotations

import os

import pytest

from tacit.rand import Rng
from tacit.reproduce.pathak import figure_2

needs_data = pytest.mark.skipif(
    "TACIT_DATA" not in os.environ,
    reason="set TACIT_DATA to the folder of the public data sets, or run `tacit data get a9a`",
)


@needs_data
@pytest.mark.slow
def test_pathaks_figure_2() -> None:
    result = figure_2(repeats=5, splits=["20 %"], epsilons=[1.0], rng=Rng.seeded(1))
    errors = {(row[1], row[2]): float(row[3]) for row in result.rows}
    assert errors["document", "sound, pure"] == pytest.approx(0.236, abs=0.002)  # the commonest class
    assert errors["", "plain fit"] == pytest.approx(0.150, abs=0.002)
    assert errors["", "commonest class"] == pytest.approx(0.236, abs=0.001)
    assert errors["rule", "sound, Gaussian"] < errors["rule", "as printed (NOT PRIVATE)"]
    assert errors["rule", "sound, Gaussian"] < 0.175
    assert set(result.pictures) == {"pathak-document.svg", "pathak-rule.svg"}
    assert result.markdown().count("\n| ") == 2 + len(result.rows) - 1
