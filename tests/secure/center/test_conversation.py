"""What nodes tell each other: nobody speaks for another, and nothing told elsewhere or before counts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest
from nacl.signing import SigningKey

from tacit.errors import CenterError
from tacit.secure.center.conversation import Conversation, NodeKeys

KEYS = [SigningKey(bytes([seat]) * 32) for seat in range(3)]


class Wires:
    """The messages under way; whoever has them can take, add and exchange any."""

    def __init__(self) -> None:
        self.queues: dict[tuple[int, int], SimpleQueue[bytes]] = {
            (i, j): SimpleQueue() for i in range(3) for j in range(3)
        }

    def end(self, rank: int) -> End:
        return End(self, rank)


class End:
    def __init__(self, wires: Wires, rank: int) -> None:
        self._wires, self._rank = wires, rank

    def send(self, rank: int, message: bytes) -> None:
        self._wires.queues[self._rank, rank].put(message)

    def recv(self, rank: int) -> bytes:
        return self._wires.queues[rank, self._rank].get(timeout=60)


def signers(seat: int) -> NodeKeys:
    key = KEYS[seat]
    return NodeKeys(
        sign=lambda message: bytes(key.sign(message).signature), keys=tuple(bytes(k.verify_key) for k in KEYS)
    )


def at_once(call: Callable[[int], object]) -> list[object]:
    results: dict[int, object] = {}
    threads = [threading.Thread(target=lambda seat=seat: results.update({seat: call(seat)})) for seat in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [results[seat] for seat in range(3)]


def begin(wires: Wires) -> list[Conversation]:
    made: dict[int, Conversation] = {}
    at_once(lambda seat: made.update({seat: Conversation(seat, wires.end(seat), signers(seat))}))
    return [made[seat] for seat in range(3)]


def test_nodes_agree_only_if_all_say_the_same() -> None:
    nodes = begin(Wires())
    assert at_once(lambda seat: nodes[seat].all_say("open")) == [True] * 3
    assert at_once(lambda seat: nodes[seat].all_say("open" if seat else "other")) == [False] * 3
    assert at_once(lambda seat: nodes[seat].all_say("open" if seat else None)) == [False] * 3
    assert at_once(lambda seat: nodes[seat].all_say("again")) == [True] * 3


@pytest.mark.parametrize("who", ["nobody", "another node"])
def test_what_a_node_did_not_sign_is_not_said_by_it(who: str) -> None:
    wires = Wires()
    nodes = begin(wires)
    if who == "another node":
        nodes[2].send(0, b"open")
        wires.queues[1, 0].put(wires.queues[2, 0].get())
    else:
        wires.queues[1, 0].put(b"open")
    with pytest.raises(CenterError, match="what came in the name of node 1 is not signed by it"):
        nodes[0].receive(1)


def test_what_was_said_before_or_to_another_or_elsewhere_does_not_count() -> None:
    wires = Wires()
    nodes = begin(wires)
    nodes[1].send(0, b"open")
    said = wires.queues[1, 0].get()
    wires.queues[1, 0].put(said)
    assert nodes[0].receive(1) == b"open"
    wires.queues[1, 0].put(said)  # again
    with pytest.raises(CenterError, match="as its next message"):
        nodes[0].receive(1)
    nodes[1].send(0, b"open")
    wires.queues[1, 2].put(wires.queues[1, 0].get())  # to another
    with pytest.raises(CenterError, match="as its next message"):
        nodes[2].receive(1)
    later = Wires()
    nodes = begin(later)
    later.queues[1, 0].put(said)  # in another conversation
    with pytest.raises(CenterError, match="as its next message"):
        nodes[0].receive(1)


def test_every_node_has_a_key() -> None:
    with pytest.raises(CenterError, match="has 3 nodes; 0 keys"):
        NodeKeys(sign=lambda message: message, keys=())
