"""The part of a table that a model is measured on: one record moves no other between the parts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.feature import Numeric, Target
from tacit.data.part import ONE_IN
from tacit.data.schema import Schema
from tacit.data.table import Table

Record = tuple[float, int]

SCHEMA = Schema((Numeric("x", missing="drop"),), Target("y", ("no", "yes")), norm_bound=10.0)
record = st.tuples(st.sampled_from([0.0, -0.0, 1.0, 2.0, float("nan")]), st.integers(0, 1))


def table_of(records: list[Record]) -> Table:
    rows = np.array([[x] for x, _ in records])
    return Table.from_arrays(rows, np.array(["no", "yes"])[[y for _, y in records]], SCHEMA)


def parts(records: list[Record]) -> tuple[Counter[Record], Counter[Record]]:
    """The records that are measured on, and the others."""
    table = table_of(records)
    X, y = table.arrays()
    complete = list(zip(X[:, 0].tolist(), y.tolist(), strict=True))
    chosen = [Counter(one for one, is_in in zip(complete, table.measured, strict=True) if is_in == part)
              for part in (True, False)]  # fmt: skip
    return chosen[0], chosen[1]


@given(st.lists(record, min_size=2, max_size=40), record, st.integers(0, 39))
@settings(max_examples=400, deadline=None)
def test_replacing_a_record_takes_one_out_of_a_part_and_puts_one_into_one(
    records: list[Record], other: Record, place: int
) -> None:
    records = [(3.0, 0), *records]  # one that is always complete
    changed = [*records]
    changed[1 + place % (len(records) - 1)] = other
    before, after = parts(records), parts(changed)
    gone = [sum((before[part] - after[part]).values()) for part in (0, 1)]
    come = [sum((after[part] - before[part]).values()) for part in (0, 1)]
    assert sum(gone) <= 1
    assert sum(come) <= 1


def test_the_order_of_records_says_nothing() -> None:
    chance = np.random.default_rng(1)
    records = [(float(x), int(y)) for x, y in zip(chance.integers(0, 4, 300), chance.integers(0, 2, 300), strict=True)]
    shuffled = [records[k] for k in chance.permutation(300)]
    assert parts(records) == parts(shuffled)


@pytest.mark.parametrize("kind", ["alike", "apart"])
def test_one_in_three_is_chosen_and_what_it_says_has_no_part_in_it(kind: str) -> None:
    chance = np.random.default_rng(2)
    x = np.zeros(30_000) if kind == "alike" else chance.normal(size=30_000)
    y = chance.integers(0, 2, 30_000)
    table = table_of(list(zip(x.tolist(), y.tolist(), strict=True)))
    measured: npt.NDArray[np.bool_] = table.measured
    spread = np.sqrt((1 - 1 / ONE_IN) / ONE_IN / 15_000)
    for group in (y == 0, y == 1, *(() if kind == "alike" else (x < -0.5, x > 0.5))):
        assert abs(measured[group].mean() - 1 / ONE_IN) < 6 * spread
    neighbours = np.corrcoef(measured[1:], measured[:-1])[0, 1]
    assert abs(neighbours) < 6 / np.sqrt(30_000)


def test_blocks_of_any_size_have_the_same_parts() -> None:
    from tacit.data.part import measured_rows

    table = table_of([(float(k % 7), k % 2) for k in range(100)])
    for rows in (1, 7, 100):
        np.testing.assert_array_equal(measured_rows(table.blocks(rows)), table.measured)
