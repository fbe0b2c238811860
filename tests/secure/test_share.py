"""Shares: any two nodes join to the number, one node's pair says nothing, and a mismatch is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import CenterError
from tacit.rand import Rng
from tacit.secure.share import add, join, split

int64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(int64, min_size=1, max_size=8))
def test_any_two_nodes_join_to_the_number(numbers: list[int]) -> None:
    x = np.array(numbers, dtype=np.int64)
    pairs = split(x, rng=Rng.seeded(1))
    for p in range(3):
        np.testing.assert_array_equal(join(p, pairs[p], pairs[(p + 1) % 3]), x)


@given(st.lists(st.integers(-(2**60), 2**60), min_size=2, max_size=7))
def test_pairs_add_up_like_the_numbers(numbers: list[int]) -> None:
    rng = Rng.seeded(2)
    shared = [split(np.array([n], dtype=np.int64), rng=rng) for n in numbers]
    totals = shared[0]
    for pairs in shared[1:]:
        totals = [add(a, b) for a, b in zip(totals, pairs, strict=True)]
    expected = sum(numbers)
    if -(2**63) <= expected < 2**63:
        assert join(1, totals[1], totals[2])[0] == expected
    else:
        with pytest.raises(CenterError, match="too large"):
            join(1, totals[1], totals[2])


@pytest.mark.parametrize("number", [0, 1, -1, 2**62])
def test_one_nodes_pair_is_uniform_whatever_the_number(number: int) -> None:
    pairs = split(np.full(20_000, number, dtype=np.int64), rng=Rng.seeded(number % 97))
    for pair in pairs:
        counts = np.bincount(pair.view(np.uint8).ravel(), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4
        joint = pair[0, :, 0].astype(np.float64), pair[1, :, 0].astype(np.float64)
        assert abs(np.corrcoef(*joint)[0, 1]) < 0.03


def test_a_node_that_altered_its_share_is_noticed() -> None:
    pairs = split(np.arange(5, dtype=np.int64), rng=Rng.seeded(3))
    pairs[1][0, 0, 0] += np.uint64(1)
    with pytest.raises(CenterError, match="different values of the same share"):
        join(0, pairs[0], pairs[1])
