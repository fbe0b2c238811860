"""Which records a model is measured on, and not fitted to: about one in three, by what a record is.

Claim: replacing one record of a table takes at most one record out of each part and puts at most one into each. Proof.
1. A record's part follows from its encoded row, its label and its number among its copies, which are the complete
   records that are equal to it, byte for byte. So the parts follow from the set of pairs (record, number of copy).
2. Take one of m copies away: the pairs with numbers 1 to m - 1 stay as they are, and the pair with number m goes.
   Which of the copies went does not matter, since they are equal. Adding a record adds one pair alike.
3. A record that is not complete has no pair. So replacing one record takes at most one pair away and adds at most one.
4. Two records that are not equal count as copies if their digests are the same (BLAKE2b, 128 bits). In a table of 2^30
   records the chance is below 2^-64; whoever looks for such a pair needs about 2^64 tries.
So no place in a file enters: a record that becomes incomplete, or a row that is inserted, moves no other record.

Chance. The choice looks at a digest. To records that are drawn independently it is as good as a coin that is tossed
for each: a model of the one part knows nothing of the other. A record stays in its part from look to look.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tacit.data.block import Block

ONE_IN = 3
"""One record in so many is measured on, on average."""

_GOLDEN, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def measured_rows(blocks: Iterable[Block]) -> npt.NDArray[np.bool_]:
    """Whether each row is one to measure on, in the order of the stream; needs 16 bytes a row on the way."""
    digests = np.concatenate([np.empty((0, 2), dtype=np.uint64), *(_digests(block) for block in blocks)])
    with np.errstate(over="ignore"):  # whole numbers of 64 bits go round
        mixed = _mixed(digests[:, 0] + _copies(digests) * _GOLDEN)
    chosen: npt.NDArray[np.bool_] = mixed % np.uint64(ONE_IN) == 0
    return chosen


def _digests(block: Block) -> npt.NDArray[np.uint64]:
    rows = np.column_stack([block.X, block.y.astype(np.float64)])
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows)
    return np.frombuffer(digests, dtype="<u8").reshape(-1, 2).astype(np.uint64)


def _copies(digests: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """How many equal rows stand before each."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))  # stable: copies keep their order
    inside = digests[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (inside[1:] != inside[:-1]).any(axis=1)
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    copies = np.empty(len(order), dtype=np.uint64)
    copies[order] = (np.arange(len(order)) - starts).astype(np.uint64)
    return copies


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Every bit depends on every bit (the last step of SplitMix64, Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
