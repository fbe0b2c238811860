"""What `benchmarks/stopping.py` tells of the rule: intervals that share their error hold, and plain ones need not."""

from __future__ import annotations

import pytest
from benchmarks.stopping import Cell, by_formula, measure


@pytest.mark.parametrize("noise", [0.0, 100.0])
def test_shared_intervals_hold_at_any_width_and_plain_ones_do_not(noise: float) -> None:
    shared, plain = (by_formula(noise, rule, 40_000)["worst_covered"] for rule in ("shared", "plain"))
    assert isinstance(shared, float)
    assert isinstance(plain, float)
    assert plain < 0.945 < 0.97 < shared


def test_a_study_that_wants_an_auc_is_held_against_that_of_the_population() -> None:
    cell = Cell(epsilon=50.0, looks=(600, 1500), coefficient="AUC", half_width=0.08)
    (found,) = measure(cell, 4, "shared")
    assert isinstance(found["covered"], dict)
    assert set(found["covered"]) == {"(intercept)", "age", "treated", "dose", "AUC"}
    assert found["ledgers_equal_looks"] == 4
    assert found["covered"]["AUC"] >= 0.5  # of four: three may hold by bad luck
