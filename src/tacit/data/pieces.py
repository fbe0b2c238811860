"""Tables of consecutive rows of one matrix: thousands of small parties, encoded in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.encoding import Floats
from tacit.data.person import person_codes, record_weights
from tacit.data.records import Facts
from tacit.data.schema import Schema
from tacit.data.stream import ArrayRows, LocalParts
from tacit.data.table import Table, encode_matrix


def cut_tables(
    X: Floats, y: NDArray[Any], schema: Schema, starts: Sequence[int], *, persons: ArrayLike | None = None
) -> list[Table]:
    """One table for each start: the rows from there up to the next start; `persons` are those of all rows.

    Each is what `Table.from_arrays` makes of its rows. Features are numbers without bounds.
    """
    encoded = encode_matrix(X, y, schema)
    edges = np.append(np.asarray(starts, dtype=np.int64), len(y))
    owners = np.repeat(np.arange(len(starts)), np.diff(edges))
    shape = len(starts), schema.n_classes
    counts = np.bincount(owners * shape[1] + encoded.y, minlength=shape[0] * shape[1]).reshape(shape)
    scaled = (encoded.X != X).any(axis=1) if encoded.rows_clipped else np.zeros(len(y), dtype=bool)
    n_scaled = np.bincount(owners[scaled], minlength=len(starts)).tolist()
    tables = []
    for i, (start, end) in enumerate(zip(edges.tolist(), edges[1:].tolist(), strict=False)):
        n_persons, weights = None, None
        if persons is not None:
            codes = person_codes(np.asarray(persons)[start:end], end - start, "arrays")
            n_persons, weights = int(codes.max()) + 1, record_weights(codes)
        facts = Facts(end - start, counts[i], {}, 0, n_persons)
        rows = ArrayRows(encoded.X[start:end], encoded.y[start:end], weights)
        tables.append(Table("arrays", schema, facts, LocalParts((rows,)), _Count(n_scaled[i])))
    return tables


class _Count:
    """A number that is known already."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self) -> int:
        return self.number
