"""Shares: any two nodes hold the number, one node's pair says nothing, and a mismatch is noticed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import CenterError
from tacit.rand import Rng
from tacit.secure.ring import Words, add
from tacit.secure.share import SEED_BYTES, Shared, expand, join_all, join_real, split

int64 = st.integers(-(2**63), 2**63 - 1)


def words_of(x: npt.NDArray[np.int64], rng: Rng) -> list[Words]:
    return [expand(parts, x.size) for parts in split(x, rng=rng)]


@settings(deadline=None)  # a loaded machine is no fault
@given(st.lists(int64, min_size=1, max_size=8))
def test_any_two_nodes_hold_all_parts_of_the_number(numbers: list[int]) -> None:
    x = np.array(numbers, dtype=np.int64)
    pairs = words_of(x, Rng.seeded(1))
    for p in range(3):
        one, following = pairs[p], pairs[(p + 1) % 3]
        total = add(add(one[0], one[1]), following[1])
        np.testing.assert_array_equal(total[:, 0].view(np.int64), x)
        np.testing.assert_array_equal(total[:, 1].view(np.int64), x >> 63)


@settings(deadline=None)  # a loaded machine is no fault
@given(st.lists(st.integers(-(2**60), 2**60), min_size=2, max_size=7))
def test_pairs_add_up_like_the_numbers(numbers: list[int]) -> None:
    rng = Rng.seeded(2)
    shared = [words_of(np.array([n], dtype=np.int64), rng) for n in numbers]
    totals = shared[0]
    for pairs in shared[1:]:
        totals = [add(a, b) for a, b in zip(totals, pairs, strict=True)]
    expected = sum(numbers)
    if -(2**63) <= expected < 2**63:
        assert join_all(totals)[0] == expected
    else:
        with pytest.raises(CenterError, match="too large"):
            join_all(totals)


@pytest.mark.parametrize("number", [0, 1, -1, 2**62])
def test_one_nodes_pair_is_uniform_whatever_the_number(number: int) -> None:
    pairs = words_of(np.full(20_000, number, dtype=np.int64), Rng.seeded(number % 97))
    for pair in pairs:
        counts = np.bincount(pair.view(np.uint8).ravel(), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4
        joint = pair[0, :, 0].astype(np.float64), pair[1, :, 0].astype(np.float64)
        assert abs(np.corrcoef(*joint)[0, 1]) < 0.03


def test_a_node_that_altered_its_share_is_noticed() -> None:
    pairs = words_of(np.arange(5, dtype=np.int64), Rng.seeded(3))
    pairs[1][0, 0, 0] += np.uint64(1)
    with pytest.raises(CenterError, match="nodes 0 and 1 hold different values"):
        join_all(pairs)


@settings(deadline=None)  # a loaded machine is no fault
@given(st.lists(int64, min_size=1, max_size=8))
def test_all_nodes_join_to_the_number(numbers: list[int]) -> None:
    x = np.array(numbers, dtype=np.int64)
    np.testing.assert_array_equal(join_all(words_of(x, Rng.seeded(4))), x)


def test_shares_of_two_nodes_are_not_joined() -> None:
    with pytest.raises(CenterError, match="a center has 3 nodes; shares of 2 came"):
        join_all(words_of(np.arange(3, dtype=np.int64), Rng.seeded(4))[:2])


def test_only_the_last_part_travels_in_full() -> None:
    x = np.arange(1000, dtype=np.int64)
    dealt = split(x, rng=Rng.seeded(5))
    assert [sum(isinstance(part, bytes) for part in parts) for parts in dealt] == [2, 1, 1]
    assert all(len(part) == SEED_BYTES for parts in dealt for part in parts if isinstance(part, bytes))


def test_real_numbers_are_whole_numbers_of_a_small_unit() -> None:
    x = np.array([[1.5, -(2.0**22)], [2.0**-40, 0.0]])
    held = words_of((x * 2.0**40).astype(np.int64).ravel(), Rng.seeded(6))
    np.testing.assert_array_equal(join_real([Shared(words, (2, 2)) for words in held]), x)
    with pytest.raises(CenterError, match="different shapes"):
        join_real([Shared(held[0], (2, 2)), Shared(held[1], (4,)), Shared(held[2], (2, 2))])
    doubled = [add(add(words, words), add(words, words)) for words in held]
    with pytest.raises(CenterError, match=r"not within 2\*\*23"):
        join_real([Shared(words, (2, 2)) for words in doubled])


def test_shares_fill_their_shape_and_are_not_shown() -> None:
    (words, *_) = words_of(np.arange(6, dtype=np.int64), Rng.seeded(8))
    assert repr(Shared(words, (2, 3))) == "Shared(shape=(2, 3))"
    with pytest.raises(CenterError, match=r"do not fill an array of shape \(7,\)"):
        Shared(words, (7,))
    with pytest.raises(CenterError, match="shares of different shapes"):
        join_all([words, words[:, :3], words])
