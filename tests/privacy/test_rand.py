from __future__ import annotations

import copy
import multiprocessing
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import SettingError
from tacit.rand import Rng

from ..apart import apart


def test_only_the_system_source_is_private() -> None:
    assert Rng.system().is_private
    assert not Rng.seeded(1).is_private
    assert "NOT PRIVATE" in repr(Rng.seeded(1))
    assert Rng.system().child("a").is_private
    assert not Rng.seeded(1).child("a").is_private


@given(st.lists(st.integers(0, 200_000), max_size=6))
def test_a_seeded_stream_does_not_depend_on_the_sizes_of_requests(sizes: list[int]) -> None:
    whole, parts = Rng.seeded(7), Rng.seeded(7)
    assert whole.bytes(sum(sizes)) == b"".join(parts.bytes(n) for n in sizes)


def test_a_seeded_stream_is_pinned_for_ever() -> None:
    assert Rng.seeded(2024).bytes(8).hex() == "f90d3a0cc9079fa4"
    assert Rng.seeded(2024).child("noise").bytes(8).hex() == "4741ca72e48c3bf0"


def test_seeds_and_labels_give_different_streams() -> None:
    streams = [Rng.seeded(1), Rng.seeded(2), Rng.seeded(b"1"), Rng.seeded(1).child("a"), Rng.seeded(1).child("b")]
    streams.append(Rng.seeded(1).child("a").child("b"))
    assert len({stream.bytes(32) for stream in streams}) == len(streams)


def test_a_child_does_not_depend_on_what_its_parent_has_drawn() -> None:
    parent = Rng.seeded(1)
    before = parent.child("x").bytes(16)
    parent.bytes(1000)
    assert parent.child("x").bytes(16) == before


def test_a_seed_is_an_integer_or_bytes() -> None:
    with pytest.raises(SettingError, match="not float"):
        Rng.seeded(0.5)  # type: ignore[arg-type]


def test_below_is_uniform_and_stays_below() -> None:
    draws = Rng.seeded(3).below(7, 70_000)
    assert set(np.unique(draws)) == set(range(7))
    assert stats.chisquare(np.bincount(draws)).pvalue > 1e-3
    assert Rng.seeded(3).below(2**63, 100).min() >= 0
    assert (Rng.seeded(3).below(1, 5) == 0).all()
    with pytest.raises(SettingError, match="n = 0"):
        Rng.seeded(3).below(0, 5)


def test_below_rejects_the_words_that_would_favour_small_numbers() -> None:
    class Scripted(Rng):
        script = np.array([2**64 - 1, 5], dtype=np.uint64)

        def bytes(self, n: int) -> bytes:
            taken, self.script = self.script[: n // 8], self.script[n // 8 :]
            return taken.tobytes()

    # 2**64 - 1 is a multiple of 3, so the word 2**64 - 1 itself is one too many for a draw below 3.
    assert Scripted(b"").below(3, 1).tolist() == [2]


def test_permutations_are_uniform() -> None:
    rng = Rng.seeded(5)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        order = tuple(rng.permutation(3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3
    assert sorted(rng.permutation(1000).tolist()) == list(range(1000))


def test_bits_are_fair() -> None:
    assert abs(Rng.seeded(1).bits(100_001).mean() - 0.5) < 0.01
    assert Rng.seeded(1).bits(100_001).size == 100_001


def test_a_copy_of_a_system_source_shares_no_bits_with_it() -> None:
    rng = Rng.system()
    rng.bytes(1)  # fills the buffer
    for twin in (copy.copy(rng), copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))):  # noqa: S301
        assert twin.bytes(32) != rng.bytes(32)


def test_a_copy_of_a_seeded_source_goes_on_from_the_same_place() -> None:
    rng = Rng.seeded(9)
    rng.bytes(70_001)
    twin = copy.deepcopy(rng)
    assert twin.bytes(100) == rng.bytes(100)


def bits_of_a_fork_and_of_its_parent() -> tuple[bytes, bytes]:
    rng = Rng.system()
    rng.bytes(1)
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=lambda: writer.send_bytes(rng.bytes(32)))
    child.start()
    theirs = reader.recv_bytes()
    child.join()
    return theirs, rng.bytes(32)


def test_a_fork_shares_no_bits_with_its_parent() -> None:
    # Apart, because this process may have threads of other tests, which a fork would not have.
    theirs, own = apart(bits_of_a_fork_and_of_its_parent)
    assert len(theirs) == len(own) == 32
    assert theirs != own


def test_threads_never_get_the_same_bits() -> None:
    rng = Rng.system()
    taken: list[bytes] = []

    def draw() -> None:
        taken.extend([rng.bytes(16) for _ in range(3000)])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == len(taken) == 12_000


def test_generator_is_a_numpy_generator_that_differs_each_time() -> None:
    rng = Rng.seeded(1)
    assert rng.generator().random() != rng.generator().random()
    assert Rng.seeded(1).generator().random() == Rng.seeded(1).generator().random()
