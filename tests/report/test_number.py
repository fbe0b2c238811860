from __future__ import annotations

import math

import pytest

from tacit.report.number import byte_count, count, duration, number, p_value, percent, plural, short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.5, "1,234"),
        (1234567.0, "1,235,000"),
        (0.00012345678, "0.0001235"),
        (-0.0213, "-0.02130"),
        (9.9999, "10.00"),
        (0.0, "0"),
        (1e-9, "1.000e-09"),
        (3e12, "3.000e+12"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "-"),
        (None, "-"),
    ],
)
def test_four_significant_digits(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_chosen_number_is_never_rounded_to_nothing() -> None:
    assert [short(v) for v in (1.0, 0.1, 1e-6, 1e-12, math.inf, None)] == ["1", "0.1", "1e-06", "1e-12", "inf", "-"]


def test_a_small_p_is_not_zero() -> None:
    assert [p_value(v) for v in (0.0, 0.00099, 0.001, 0.0496, 1.0, None)] == [
        "<0.001",
        "<0.001",
        "0.001",
        "0.050",
        "1.000",
        "-",
    ]


def test_bytes_take_the_unit_that_fits() -> None:
    sizes = [byte_count(v) for v in (0, 1023, 1024, 1536, 1024**2, 5 * 1024**3, 2048 * 1024**3)]
    assert sizes == ["0 B", "1,023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 GiB", "2.0 TiB"]


def test_counts_times_and_shares() -> None:
    assert (count(1234567), count(None)) == ("1,234,567", "-")
    assert [duration(v) for v in (0.0123, 1.53, 119.0, 600.0, 9000.0)] == [
        "12 ms",
        "1.5 s",
        "119.0 s",
        "10 min",
        "2.5 h",
    ]
    assert (percent(0.8149), percent(None)) == ("81.5 %", "-")
    assert (plural(1, "party", "parties"), plural(1200, "record")) == ("1 party", "1,200 records")
