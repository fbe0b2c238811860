"""A center node wants another sum to be opened, or to learn of a party by lying: it is noticed, and named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tacit import wire
from tacit.errors import CenterError
from tacit.record import from_value, to_value
from tacit.secure.center.message import Boxes, PartialSum
from tests.secure.center.signed_center import SignedCenter

NORM = 1000
ADDENDS = {"north": [300, -400], "south": [5, 6], "west": [0, NORM]}


class LyingCenter(SignedCenter):
    """A center of which one node changes its replies."""

    def __init__(self, liar: int, lie: Callable[[dict[str, wire.Value]], object]) -> None:
        super().__init__(list(ADDENDS))
        self._liar, self._lie = liar, lie

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        replies = super().exchange(requests)
        reply = wire.decode(replies[self._liar])
        assert isinstance(reply, dict)
        if isinstance(reply.get("done"), dict):
            changed = self._lie(reply["done"])
            replies[self._liar] = wire.encode({"done": to_value(changed)})
        return replies

    def open(self) -> list[int]:
        envelopes = {name: self.sealed(name, addend, NORM, n_parties=3) for name, addend in ADDENDS.items()}
        return self.open_sum("q", envelopes).tolist()


def shifted(*parts: int) -> Callable[[dict[str, wire.Value]], object]:
    """Add to one or both of the parts that the node holds of the sum."""

    def lie(reply: dict[str, wire.Value]) -> object:
        if "words" not in reply:
            return from_value(Boxes, reply)
        words = from_value(PartialSum, reply).words.copy()
        words[list(parts), 0, 0] += np.uint64(10**6)
        return PartialSum(words=words)

    return lie


def test_the_center_opens_the_sum_when_nobody_lies() -> None:
    assert LyingCenter(0, shifted()).open() == [305, -394 + NORM]


@pytest.mark.parametrize("liar", range(3))
def test_a_node_that_alters_the_sum_is_named(liar: int) -> None:
    with pytest.raises(CenterError, match=f"node {liar} holds other values than both other nodes"):
        LyingCenter(liar, shifted(0, 1)).open()


@pytest.mark.parametrize("liar", range(3))
@pytest.mark.parametrize("part", range(2))
def test_a_node_that_alters_one_part_is_named_with_who_holds_the_other_copy(liar: int, part: int) -> None:
    other = (liar - 1 if part == 0 else liar + 1) % 3
    first, second = sorted([liar, other])
    with pytest.raises(CenterError, match=f"nodes {first} and {second} hold different values"):
        LyingCenter(liar, shifted(part)).open()


def test_a_node_that_lies_of_the_proofs_opens_nothing() -> None:
    """It can have parties refused, which everybody sees; it cannot make another node open."""

    def lie(reply: dict[str, wire.Value]) -> object:
        if "words" in reply:
            return from_value(PartialSum, reply)
        boxes = from_value(Boxes, reply).boxes
        return Boxes(boxes={name: bytes(len(box)) for name, box in boxes.items()})

    with pytest.raises(CenterError, match="altered on the way"):
        LyingCenter(1, lie).open()


def test_what_a_node_hears_of_a_proof_is_uniform() -> None:
    """Both others' words about an honest party, without their masks, would be a function of its addend."""
    center = SignedCenter(list(ADDENDS))
    heard = []
    for context in ("one", "two"):
        envelopes = {name: center.sealed(name, addend, NORM, context=context) for name, addend in ADDENDS.items()}
        with center_listening(center) as told:
            center.open_sum(context, envelopes)
        heard.append(told)
    bits = np.unpackbits(np.concatenate([np.frombuffer(b"".join(told), dtype=np.uint8) for told in heard]))
    assert abs(bits.mean() - 0.5) < 5 / (2 * np.sqrt(bits.size))


class center_listening:  # noqa: N801
    """What node 0 is told by node 1, word for word."""

    def __init__(self, center: SignedCenter) -> None:
        self._center = center
        self._told: list[bytes] = []

    def __enter__(self) -> list[bytes]:
        check = self._center.nodes[0]._check
        read = check._read

        def listen(*arguments: object) -> object:
            told = read(*arguments)  # type: ignore[arg-type]
            self._told.append(told.words.tobytes())
            return told

        check._read = listen  # type: ignore[method-assign, assignment]
        return self._told

    def __exit__(self, *_: object) -> None:
        del self._center.nodes[0]._check._read


def test_nodes_do_not_check_with_strangers() -> None:
    """The coordinator names a node of its own making among the three."""
    center = SignedCenter(list(ADDENDS))
    envelopes = {name: center.sealed(name, addend, NORM) for name, addend in ADDENDS.items()}
    pinned = list(center.keys[:2])
    center.nodes[0]._check._peers = lambda: pinned
    with pytest.raises(CenterError, match="or of strangers"):
        center.open_sum("q", envelopes)
