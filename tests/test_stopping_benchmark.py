"""What `benchmarks/stopping.py` tells of the rule: intervals that share their error hold, and plain ones need not."""

from __future__ import annotations

import pytest
from benchmarks.stopping import by_formula


@pytest.mark.parametrize("noise", [0.0, 100.0])
def test_shared_intervals_hold_at_any_width_and_plain_ones_do_not(noise: float) -> None:
    shared, plain = (by_formula(noise, rule, 40_000)["worst_covered"] for rule in ("shared", "plain"))
    assert isinstance(shared, float)
    assert isinstance(plain, float)
    assert plain < 0.945 < 0.97 < shared
