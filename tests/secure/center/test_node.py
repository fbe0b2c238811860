"""A node answers its own requests, checks what parties bound into envelopes, and tells no share in an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.signing import SigningKey

from tacit import wire
from tacit.errors import CenterError
from tacit.rand import Rng
from tacit.record import to_value
from tacit.secure.bound import NormBound
from tacit.secure.center.node import NodeServer
from tacit.secure.center.wanted import GroupNames
from tacit.secure.envelope import OPEN, Label, seal, seal_message, sum_group_digest, unseal_message
from tacit.secure.ring import Words

from .conftest import mark

RNG = Rng.seeded(7)
LABEL = Label(context="q", party="a", n_parties=1)


def ask(node: NodeServer, **request: wire.Value) -> wire.Value:
    return wire.decode(node.handle(wire.encode(request)))


def envelope(node: NodeServer, label: Label = LABEL, addend: tuple[int, ...] = (1, 2)) -> bytes:
    return seal(np.array(addend, dtype=np.int64), label, [node.public_key] * 3, rng=RNG)[node.index]


def test_it_says_its_key_and_what_it_has() -> None:
    node = NodeServer(2)
    assert ask(node, ask="keys") == {"done": {"index": 2, "key": node.public_key}}
    assert ask(node, ask="status") == {"done": {"n_kept": 0, "n_compiled": 0}}


def test_a_sum_is_answered_with_this_nodes_share_alone() -> None:
    nodes = [NodeServer(index) for index in range(3)]
    envelopes = seal(np.array([5, -6]), LABEL, [node.public_key for node in nodes], rng=RNG)
    for node, sealed in zip(nodes, envelopes, strict=True):
        reply = ask(node, ask="sum", context="q", envelopes={"a": sealed}, sum_group=None, boxes={})
        assert isinstance(reply, dict)
        assert reply["done"]["words"].shape == (2, 2, 2)


@given(st.binary(max_size=80))
def test_bytes_that_are_no_request_are_refused(message: bytes) -> None:
    reply = wire.decode(NODE.handle(message))
    assert isinstance(reply, dict)
    assert list(reply) == ["refused"]


NODE = NodeServer(0)
KEEP: dict[str, wire.Value] = {
    "ask": "keep", "run": "r", "name": "n", "context": "q", "envelopes": {}, "sum_group": None, "boxes": {},
}  # fmt: skip


@pytest.mark.parametrize(
    "request_",
    [
        None,
        {},
        {"ask": "shares"},
        {"ask": "keep", "run": "r"},
        {"ask": "sum", "context": "q", "envelopes": {}},
        {"ask": "sum", "context": "q", "envelopes": {"a": 1}, "sum_group": None, "boxes": {}},
        {**KEEP, "shape": ["x"]},
        {**KEEP, "shape": [-1]},
    ],
)
def test_values_that_are_no_request_are_refused(request_: wire.Value) -> None:
    reply = wire.decode(NODE.handle(wire.encode(request_)))
    assert isinstance(reply, dict)
    assert list(reply) == ["refused"]


def test_what_is_kept_is_sealed_for_that_name_and_shape() -> None:
    node = NodeServer(0)
    label = Label(context="q", party="a", n_parties=1, use="gradient")
    with pytest.raises(CenterError, match="sealed its part as 'gradient', not as 'curvature'"):
        node.keep("run", "curvature", "q", {"a": envelope(node, label)}, (2, 2))
    with pytest.raises(CenterError, match="sealed its part as 'open', not as 'gradient'"):
        node.keep("run", "gradient", "q", {"a": envelope(node)}, (2,))
    with pytest.raises(CenterError, match="'open' names what is opened"):
        node.keep("run", OPEN, "q", {"a": envelope(node)}, (2,))
    sealed = {"a": envelope(node, label)}
    with pytest.raises(CenterError, match=r"do not fill an array of shape \(3,\)"):
        node.keep("run", "gradient", "q", sealed, (3,))
    node.keep("run", "gradient", "q", sealed, (2, 1))
    assert ask(node, ask="status") == {"done": {"n_kept": 1, "n_compiled": 0}}


def test_what_is_kept_counts_on_enough_parties_and_on_the_same() -> None:
    node = NodeServer(0)

    @cache
    def sealed(party: str, n_parties: int) -> bytes:
        return envelope(node, Label(context="q", party=party, n_parties=n_parties, use="gradient"))

    def kept(*parties: str, n_parties: int = 2) -> None:
        node.keep("run", "gradient", "q", {party: sealed(party, n_parties) for party in parties}, (2,))

    with pytest.raises(CenterError, match="a sum over 3 parties be opened; 2 are in it"):
        kept("a", "b", n_parties=3)
    kept("a", "b", "c")
    kept("a", "b", "c")
    with pytest.raises(CenterError, match="opened before over other parties"):
        kept("a", "b")
    with pytest.raises(CenterError, match="answered before, by the same parties with other envelopes"):
        kept("a", "b", "c", n_parties=1)


def test_a_run_can_be_forgotten() -> None:
    node = NodeServer(0)
    for run in ("one", "two"):
        label = Label(context=run, party="a", n_parties=1, use="gradient")
        node.keep(run, "gradient", run, {"a": envelope(node, label)}, (2,))
    assert ask(node, ask="forget", run="one") == {"done": {}}
    assert ask(node, ask="status") == {"done": {"n_kept": 1, "n_compiled": 0}}


def test_an_envelope_for_another_key_or_altered_does_not_open() -> None:
    node = NodeServer(0)
    foreign = seal(np.array([1]), LABEL, [bytes(PrivateKey.generate().public_key)] * 3, rng=RNG)
    with pytest.raises(CenterError, match="sealed for another key, or altered"):
        node.partial_sum("q", {"a": foreign[0]})
    own = bytearray(envelope(node))
    own[-1] ^= 1
    with pytest.raises(CenterError, match="sealed for another key, or altered"):
        node.partial_sum("q", {"a": bytes(own)})


GARBAGE: list[wire.Value] = [
    None,
    {"context": "q"},
    {"label": to_value(LABEL), "size": 3, "parts": [bytes(32)], "digests": b"", "salt": b""},
    {"label": to_value(LABEL), "size": 3, "parts": [bytes(32), bytes(31)], "digests": b"", "salt": b""},
    {"label": to_value(LABEL), "size": 3, "parts": [bytes(32), np.zeros((3, 2))], "digests": b"", "salt": b""},
    {
        "label": to_value(LABEL),
        "size": 3,
        "parts": [bytes(32), np.zeros((4, 2), dtype=np.uint64)],
        "digests": b"",
        "salt": b"",
    },
    {"label": to_value(LABEL), "size": 3, "parts": [bytes(32), "words"], "digests": b"", "salt": b""},
    {"label": to_value(LABEL), "size": -1, "parts": [bytes(32), bytes(32)], "digests": b"", "salt": b""},
    {"label": to_value(LABEL), "size": 2**40, "parts": [bytes(32), bytes(32)], "digests": b"", "salt": b""},
]


@pytest.mark.parametrize("contents", GARBAGE)
def test_garbage_in_an_envelope_is_refused(contents: wire.Value) -> None:
    node = NodeServer(0)
    box = SealedBox(PublicKey(node.public_key)).encrypt(
        wire.encode({"contents": wire.encode(contents), "signature": b""})
    )
    with pytest.raises(CenterError, match="not shares of whole numbers"):
        node.partial_sum("q", {"a": box})


def test_no_error_and_no_text_holds_a_share() -> None:
    node = NodeServer(0)
    label = Label(context="q", party="a", n_parties=1, use="gradient")
    node.keep("run", "gradient", "q", {"a": envelope(node, label)}, (2,))
    (kept,) = node._kept.values()
    word = str(int(kept.shared.words[0, 0, 0]))
    assert word not in repr(kept)
    assert word not in repr(kept.shared)
    reply = node.handle(wire.encode({"ask": "compute", "run": "run", "program": "step", "public": {}}))
    assert kept.shared.words[0, 0].tobytes() not in reply


def test_what_goes_wrong_inside_is_told_by_its_kind_only(monkeypatch: pytest.MonkeyPatch) -> None:
    node = NodeServer(1)

    def fail(*_: object) -> None:
        raise ValueError("secret words")

    monkeypatch.setattr(node, "forget", fail)
    assert ask(node, ask="forget", run="x") == {"refused": "node 1 cannot answer: ValueError"}


def test_a_node_with_a_home_keeps_its_key_and_its_word(tmp_path: Path) -> None:
    first = NodeServer(0, home=tmp_path)
    labels = [Label(context="q", party=party, n_parties=1) for party in "ab"]
    both = {label.party: envelope(first, label) for label in labels}
    first.partial_sum("q", both)
    again = NodeServer(0, home=tmp_path)
    assert again.public_key == first.public_key
    again.partial_sum("q", both)
    with pytest.raises(CenterError, match="opened before over other parties"):
        again.partial_sum("q", {"a": both["a"]})
    assert (tmp_path / "node.key").stat().st_mode & 0o777 == 0o600


KEYS = {name: SigningKey(name.encode() * 32) for name in "abcx"}
PINNED = {name: bytes(key.verify_key) for name, key in KEYS.items() if name != "x"}
SUM_GROUP = ["a", "b"]


def signed(
    nodes: Sequence[NodeServer], party: str, signer: str = "", sum_group: Sequence[str] = SUM_GROUP, **label: Any
) -> list[bytes]:
    """What a party seals for a sum within the sum group, signed by itself or by another."""
    keys = {name: PINNED[name] for name in sum_group}
    bound = (NormBound(size=2, norm=3),)
    told = {"context": "q", "party": party, "n_parties": 2, "sum_group": sum_group_digest(keys), "bound": bound}
    told |= {"ledger": mark()}
    sign = None if signer == "nobody" else lambda text: KEYS[signer or party].sign(text).signature
    return seal(np.array([1, 2]), Label(**{**told, **label}), [n.public_key for n in nodes], rng=RNG, sign=sign)


def knowing() -> list[NodeServer]:
    """Three nodes that know the parties and each other."""
    nodes: list[NodeServer] = []
    for index in range(3):
        nodes.append(NodeServer(index, members=lambda: PINNED, peers=lambda: [node.public_key for node in nodes]))
    return nodes


def summed(
    nodes: Sequence[NodeServer], envelopes: Mapping[str, list[bytes]], group: GroupNames = None, context: str = "q"
) -> Words:
    """The first node's share of the sum, after the nodes told each other of the proofs."""
    keys = [node.public_key for node in nodes]
    own = [{name: sealed[p] for name, sealed in envelopes.items()} for p in range(3)]
    told = [node.check(context, OPEN, one, group, keys) for node, one in zip(nodes, own, strict=True)]
    boxes = {keys[p].hex(): told[p][keys[0].hex()] for p in (1, 2)}
    return nodes[0].partial_sum(context, own[0], group, boxes)


def test_signed_envelopes_of_known_parties_are_added_up_also_if_one_of_the_sum_group_is_missing() -> None:
    nodes = knowing()
    assert summed(nodes, {name: signed(nodes, name) for name in "ab"}, SUM_GROUP).shape == (2, 2, 2)
    three = {name: signed(nodes, name, sum_group="abc", context="r") for name in "ab"}
    assert summed(nodes, three, ["a", "b", "c"], "r").shape == (2, 2, 2)


@pytest.mark.parametrize("signer", ["b", "x", "nobody"])
def test_nobody_seals_in_anothers_name(signer: str) -> None:
    nodes = knowing()
    forged = {"a": signed(nodes, "a"), "b": signed(nodes, "b", signer if signer != "b" else "a")}
    with pytest.raises(CenterError, match="not signed by the party in whose name it came"):
        summed(nodes, forged, SUM_GROUP)


def test_an_invented_party_is_in_no_sum() -> None:
    """The coordinator fills a sum up with parties of its own making, to open one real party's part."""
    nodes = knowing()
    real = signed(nodes, "a")
    with pytest.raises(CenterError, match="knows no party 'x'"):
        summed(nodes, {"a": real, "x": real}, ["a", "x"])
    # A member that the coordinator holds in its hands, and with which the real party was never to be added up:
    puppet = signed(nodes, "c", sum_group=["a", "c"])
    with pytest.raises(CenterError, match="party 'a' did not agree to be added up with all"):
        summed(nodes, {"a": real, "c": puppet}, ["a", "c"])
    with pytest.raises(CenterError, match="was not put to party 'c'"):
        summed(nodes, {"a": real, "c": puppet}, SUM_GROUP)
    with pytest.raises(CenterError, match="was not put to party 'a'"):
        summed(nodes, {"a": real})
    with pytest.raises(CenterError, match="a sum over 2 parties be opened; 1 are in it"):
        summed(nodes, {"a": real}, SUM_GROUP)


def test_what_is_signed_for_one_node_is_no_message_to_another() -> None:
    nodes, others = knowing(), knowing()
    moved = [
        SealedBox(PublicKey(other.public_key)).encrypt(SealedBox(node._key).decrypt(sealed))
        for node, other, sealed in zip(nodes, others, signed(nodes, "a"), strict=True)
    ]
    with pytest.raises(CenterError, match="not signed by the party in whose name it came"):
        summed(others, {"a": moved, "b": signed(others, "b")}, SUM_GROUP)


def test_kept_sums_and_products_are_signed_too() -> None:
    nodes = knowing()
    keys = [node.public_key for node in nodes]
    parts = {name: signed(nodes, name, use="gradient", run="run") for name in "ab"}
    own = [{name: sealed[p] for name, sealed in parts.items()} for p in range(3)]
    told = [node.check("q", "gradient", one, SUM_GROUP, keys) for node, one in zip(nodes, own, strict=True)]
    boxes = {keys[p].hex(): told[p][keys[0].hex()] for p in (1, 2)}
    nodes[0].keep("run", "gradient", "q", own[0], (2,), SUM_GROUP, boxes)
    forged = {**own[0], "b": signed(nodes, "b", "a", use="gradient", run="run")[0]}
    with pytest.raises(CenterError, match="not signed by the party"):
        nodes[0].keep("run", "gradient", "q", forged, (2,), SUM_GROUP, boxes)
    label = Label(context="q", party="a", n_parties=1, use="product", sum_group=sum_group_digest({"a": PINNED["a"]}))
    key = nodes[0]._key
    sealed = seal_message(b"m", label, nodes[0].public_key, sign=lambda text: KEYS["a"].sign(text).signature)
    assert unseal_message(sealed, key, PINNED["a"]) == (label, b"m")
    with pytest.raises(CenterError, match="not signed by the party"):
        unseal_message(sealed, key, PINNED["b"])
