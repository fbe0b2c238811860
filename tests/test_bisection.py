"""The one bisection: it answers from the side of yes."""

from __future__ import annotations

import math

import pytest

from tacit.bisection import bisect, geometric_mean


@pytest.mark.parametrize("tolerance", [1e-1, 1e-6, 1e-12, 0.0])
def test_it_rounds_to_the_side_of_yes(tolerance: float) -> None:
    above = bisect(lambda x: x * x >= 2, yes=9.0, no=0.0, tolerance=tolerance)
    below = bisect(lambda x: x * x <= 2, yes=0.0, no=9.0, tolerance=tolerance)
    assert below**2 <= 2 <= above**2
    assert above - below <= 2 * (tolerance + 2**-52) * above


def test_with_no_tolerance_it_ends_at_neighbouring_numbers() -> None:
    found = bisect(lambda x: x >= 0.1, yes=1.0, no=0.0, tolerance=0.0)
    assert found == 0.1


def test_ends_of_different_order_are_reached_in_few_questions() -> None:
    asked: list[float] = []

    def question(x: float) -> bool:
        asked.append(x)
        return x >= 3e-11

    found = bisect(question, yes=1e12, no=1e-12, tolerance=1e-3, middle=geometric_mean)
    assert 3e-11 <= found <= 3e-11 * 1.002
    assert len(asked) <= 17
    assert asked[0] == pytest.approx(1.0)


def test_the_ends_are_not_asked() -> None:
    def question(x: float) -> bool:
        assert 0 < x < 1, "an end was asked, where the answer is known"
        return True

    assert bisect(question, yes=1.0, no=0.0, tolerance=1e-3) < 1e-3
    assert bisect(lambda _: False, yes=1.0, no=0.0, tolerance=1e-3) == 1.0
    assert bisect(lambda _: math.nan > 0, yes=2.0, no=2.0, tolerance=0.0) == 2.0
