"""A table's rows in passes, and sums over them: the one place that decides where a sum is computed.

A table consists of *parts*, in an order that never changes. `RowStream.total` computes one sum for each part and adds
these up in the order of the parts. Where a part is summed does not enter its sum: in this process, or at a worker of
the party's own cluster (`cluster`). A method gives a function of blocks and knows of nothing else.

Claim. A sum over parts has no longer chain of roundings than one over the whole table in one go, which is what plans
count on: ceil(n / m) additions of partial sums, each over at most m rows, for every m that divides BLOCK_ROWS.

Proof.
1. A table of one part is summed in one go. Other tables are cut after each PART_ROWS records that were read. So there
   are p = ceil(n / PART_ROWS) parts, and a part has at most c = PART_ROWS / m partial sums, which is a whole number.
2. An addend goes through at most c additions in its part, the first to zero included, and p - 1 afterwards.
3. For p >= 2 the table has more than (p - 1) PART_ROWS records. So ceil(n / m) >= (p - 1) c + 1 >= c + p - 1. QED
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.block import BLOCK_ROWS, Block, WeightedBlock, regroup
from tacit.errors import DataError

PART_ROWS = 8 * BLOCK_ROWS
"""After so many records of a Parquet file, or of several one after another, the next part begins."""

T = TypeVar("T")
Sum = TypeVar("Sum")
BlockStream = Callable[[int], Iterator[WeightedBlock]]
"""A function that starts a pass over rows, in blocks of about so many."""


class Parts(Protocol):
    """Where the rows of a table lie."""

    def stream(self, rows: int) -> Iterator[WeightedBlock]:
        """All rows, in blocks of about so many."""
        ...

    def each(self, part_sum: Callable[[BlockStream], T]) -> Iterator[T]:
        """What `part_sum` makes of each part, in the order of the parts."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class ArrayRows:
    """A pass over rows that are in memory; without weights each weighs 1."""

    X: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)
    weights: NDArray[np.float64] | None = field(default=None, repr=False)

    def __call__(self, rows: int) -> Iterator[WeightedBlock]:
        """All rows, in blocks of so many."""
        X, y = self.X, self.y
        weights = np.broadcast_to(1.0, len(y)) if self.weights is None else self.weights
        for i in range(0, len(y), rows):
            yield WeightedBlock(X[i : i + rows], y[i : i + rows], weights[i : i + rows])


@dataclass(frozen=True)
class LocalParts:
    """Parts that this process reads; `whole` reads all of them in one pass, if it can be had faster than one by one."""

    streams: Sequence[BlockStream]
    whole: BlockStream | None = None

    def stream(self, rows: int) -> Iterator[WeightedBlock]:
        """All rows."""
        if self.whole is not None:
            return self.whole(rows)
        return chain.from_iterable(stream(rows) for stream in self.streams)

    def each(self, part_sum: Callable[[BlockStream], T]) -> Iterator[T]:
        """One part after another."""
        return map(part_sum, self.streams)


@dataclass(frozen=True)
class JoinedParts:
    """The parts of several tables, one table after another."""

    tables: Sequence[Parts]

    def stream(self, rows: int) -> Iterator[WeightedBlock]:
        """All rows."""
        return chain.from_iterable(parts.stream(rows) for parts in self.tables)

    def each(self, part_sum: Callable[[BlockStream], T]) -> Iterator[T]:
        """The parts of each table in turn."""
        return chain.from_iterable(parts.each(part_sum) for parts in self.tables)


@dataclass(frozen=True)
class Weighing:
    """What each row of a pass weighs: what the table says, or `same` for all of them; times `share`.

    With neither, blocks come without weights.
    """

    own: bool = False
    same: float | None = None
    share: float = 1.0

    def __call__(self, block: WeightedBlock) -> Block | WeightedBlock:
        """A block as a pass gives it."""
        if not self.own and self.same is None:
            return Block(block.X, block.y)
        weights = block.weights if self.own else np.full(len(block.y), self.same)
        return WeightedBlock(block.X, block.y, weights if self.share == 1 else self.share * weights)


@dataclass(frozen=True, eq=False)
class RowStream:
    """A table's rows: call it for a pass over them, or let it sum a function of blocks where they lie.

    Example:
        table.stream().total(partial(loss.fold, theta=theta))

    Guarantees: `total` gives the same number to the last digit wherever the parts are summed, on machines of one kind
    and with one thread of linear algebra each.
    """

    name: str
    n_rows: int  # what a pass must give
    parts: Parts
    weighing: Weighing
    change: Callable[[Any], Any] | None = None  # of each block, before anybody sees it

    def __call__(self) -> Iterator[Any]:
        """A pass over all blocks: of BLOCK_ROWS rows each, but for the last."""
        return self.blocks(BLOCK_ROWS)

    def blocks(self, rows: int) -> Iterator[Any]:
        """The same in blocks of so many rows."""
        count = _Count()
        yield from self._seen(regroup(self.parts.stream(rows), rows), count)
        self._check(count.rows)

    def total(self, part_sum: Callable[[Iterator[Any]], Sum], join: Callable[[Sum, Sum], Sum] | None = None) -> Sum:
        """What `part_sum` makes of the blocks of each part, added up (or joined) in the order of the parts.

        A tuple is added up entry by entry. `part_sum` must be a function that can be pickled: a module's function, or a
        `functools.partial` of one.
        """
        sums = self.parts.each(_PartSum(replace(self, parts=LocalParts(())), part_sum))
        total, n_seen = next(sums)  # a table has one part at least
        for value, n_rows in sums:
            total, n_seen = (join or add)(total, value), n_seen + n_rows
        self._check(n_seen)
        result: Sum = total
        return result

    def through(self, change: Callable[[Any], Any]) -> RowStream:
        """The same rows, each block changed by a function that can be pickled."""
        assert self.change is None
        return replace(self, change=change)

    def chosen(self, mask: NDArray[np.bool_]) -> RowStream:
        """The rows that a mask over all rows names, read by this process: a mask knows places, and no part does."""
        return replace(self, n_rows=int(mask.sum()), parts=LocalParts((partial(_chosen, self.parts, mask),)))

    def _seen(self, blocks: Iterator[WeightedBlock], count: _Count) -> Iterator[Any]:
        for block in blocks:
            count.rows += len(block.y)
            block.X.flags.writeable = False
            block.y.flags.writeable = False
            given = self.weighing(block)
            yield given if self.change is None else self.change(given)

    def _check(self, n_seen: int) -> None:
        if n_seen != self.n_rows:
            raise DataError(f"{self.name} gave {n_seen} records in this pass, {self.n_rows} before; open it again")


@dataclass
class _Count:
    rows: int = 0


@dataclass(frozen=True)
class _PartSum:
    """One part's sum, and how many rows it had. It travels to a worker, so it holds no part."""

    of: RowStream
    part_sum: Callable[[Iterator[Any]], Any]

    def __call__(self, stream: BlockStream) -> tuple[Any, int]:
        count = _Count()
        value = self.part_sum(self.of._seen(regroup(stream(BLOCK_ROWS), BLOCK_ROWS), count))
        return value, count.rows


def _chosen(parts: Parts, mask: NDArray[np.bool_], rows: int) -> Iterator[WeightedBlock]:
    place = 0
    for X, y, weights in parts.stream(rows):
        kept = mask[place : place + len(y)]
        place += len(y)
        yield WeightedBlock(X[kept], y[kept], weights[kept])


def add(one: Any, other: Any) -> Any:
    """The sum of two sums; of tuples, entry by entry."""
    return tuple(map(add, one, other)) if isinstance(one, tuple) else one + other
