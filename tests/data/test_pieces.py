"""Tables that are cut from one matrix are those that are made of their rows alone."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.pieces import cut_tables
from tacit.data.schema import Schema
from tacit.data.table import Table
from tacit.errors import DataError

STARTS = [0, 3, 4, 9]


@pytest.mark.parametrize("norm_bound", [None, 1.0, 100.0])
@pytest.mark.parametrize("with_persons", [False, True])
def test_pieces_are_tables_of_their_own(norm_bound: float | None, with_persons: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 3, 12)
    persons = np.array(list("aabbbcacacab")) if with_persons else None
    schema = Schema.of_arrays(3, ["0", "1", "2"], norm_bound=norm_bound)
    pieces = cut_tables(X.copy(), y, schema, STARTS, persons=persons)
    for start, end, piece in zip(STARTS, [*STARTS[1:], 12], pieces, strict=True):
        alone = Table.from_arrays(
            X[start:end], y[start:end], schema, persons=None if persons is None else persons[start:end]
        )
        np.testing.assert_array_equal(piece.arrays()[0], alone.arrays()[0])
        np.testing.assert_array_equal(piece.arrays()[1], alone.arrays()[1])
        np.testing.assert_array_equal(piece.class_counts, alone.class_counts)
        assert (piece.n_records, piece.n_persons, piece.counts) == (alone.n_records, alone.n_persons, alone.counts)
        if with_persons:
            weights = [next(table.weighted_blocks("person")).weights for table in (piece, alone)]
            np.testing.assert_array_equal(*weights)


def test_a_value_that_is_none_is_an_error_as_it_is_of_a_table() -> None:
    X = np.zeros((4, 2))
    X[2, 1] = np.nan
    with pytest.raises(DataError, match="missing"):
        cut_tables(X, np.array([0, 1, 0, 1]), Schema.of_arrays(2, ["0", "1"]), [0, 2])
