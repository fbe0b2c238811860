"""The coordinator wants one question summed over different parties at different nodes, or invents nodes to listen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tacit.errors import CenterError
from tacit.federation.member.identity import Identity
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.member_list import MemberList
from tacit.secure.ring import Words

from ..secure.center.signed_center import SignedCenter

ALL, FEWER = ("a", "b", "c"), ("b", "c")


class Played:
    """A coordinator that asks each node what it likes."""

    def __init__(self) -> None:
        self.center = SignedCenter(ALL)
        self.sealed = {name: self.center.sealed(name, [7, -3], 10, n_parties=2) for name in ALL}

    def own(self, node: int, names: Sequence[str]) -> dict[str, bytes]:
        return {name: self.sealed[name][node] for name in names}

    def check(self, node: int, names: Sequence[str]) -> dict[str, bytes]:
        return self.center.nodes[node].check("q", "open", self.own(node, names), ALL, self.center.keys)

    def boxes(self, node: int, told: dict[int, dict[str, bytes]]) -> dict[str, bytes]:
        keys = self.center.keys
        return {keys[other].hex(): boxes[keys[node].hex()] for other, boxes in told.items() if other != node}

    def sum(self, node: int, names: Sequence[str], told: dict[int, dict[str, bytes]]) -> Words:
        return self.center.nodes[node].partial_sum("q", self.own(node, names), ALL, self.boxes(node, told))


def test_a_node_gives_no_share_of_another_sum_than_the_others_were_told_of() -> None:
    played = Played()
    told = {node: played.check(node, ALL) for node in range(3)}
    with pytest.raises(CenterError, match="asked to check different parties"):
        played.sum(2, FEWER, told)
    assert played.sum(0, ALL, told).shape == (2, 2, 2)
    with pytest.raises(CenterError, match="opened before over other parties"):
        played.check(0, FEWER)  # so node 2 never hears from it what a sum over fewer needs


def test_parties_only_become_fewer() -> None:
    played = Played()
    wide = {node: played.check(node, ALL) for node in range(3)}
    narrow = {node: played.check(node, FEWER) for node in range(3)}
    with pytest.raises(CenterError, match="told of other parties in this sum"):
        played.sum(0, ALL, wide)
    with pytest.raises(CenterError, match="parties only become fewer"):
        played.check(0, ALL)
    assert played.sum(0, FEWER, narrow).shape == (2, 2, 2)


def test_nodes_that_are_told_of_later_hear_nothing(tmp_path: Path) -> None:
    known = KnownMembers(tmp_path)
    nodes = [Identity(f"node-{k}", "center", bytes([k]) * 32).member for k in range(5)]
    nodes = [type(node)(**{**vars(node), "seal_key": bytes([9, k]) * 16}) for k, node in enumerate(nodes)]
    known.follow(MemberList(number=1, members=tuple(nodes[:3])))
    before = known.node_keys()
    known.follow(MemberList(number=2, members=tuple(nodes)))
    assert known.node_keys() == before == {node.seal_key for node in nodes[:3]}
    known.follow(MemberList(number=3, members=(*nodes[:2], *nodes[3:]), revoked=("node-2",)))
    assert known.node_keys() == {node.seal_key for node in nodes[:2]}  # nobody steps into its place
