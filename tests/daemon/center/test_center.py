"""Center nodes in processes of their own: sums, programs, and what they refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import CenterError, NotAgreed, WireError
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.identity import Identity
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.member.node_card import NodeCard, Peers
from tacit.federation.nats.blocking import BlockingConnection
from tacit.federation.nats.center import RemoteCenter
from tacit.rand import Rng
from tacit.record import from_value, to_value
from tacit.secure.bound import NormBound
from tacit.secure.envelope import OPEN, Label, seal, sum_group_digest

from ...secure.center.conftest import mark
from ..conftest import Loopback, build

A = np.array([[0.9, 0.1], [0.1, 0.5]])


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Loopback]:
    made = build(tmp_path, parties={}, center=False)
    coordinator = CoordinatorFolder(made.coordinator)
    for party in (P, Q):
        coordinator.admit(
            coordinator.invite(Invite(name=party.name, role="party", without_center=True)).id, party.member
        )
    coordinator.close()
    for node in ("node-a", "node-b", "node-c"):
        made.invite(node, "center")
        KnownMembers(made.folder(node)).learn([P.member, Q.member])  # before its daemon is there to be told of them
        made.start(node, "center")
    yield made
    made.close()


P = Identity("p", "party", b"p" * 32)
Q = Identity("q", "party", b"q" * 32)


def sealed(
    center: RemoteCenter, values: np.ndarray, context: str, use: str = OPEN, party: Identity = P, run: str = ""
) -> dict[str, list[bytes]]:
    fixed = np.round(values * 2**40).astype(np.int64).ravel()
    sum_group = sum_group_digest({party.name: party.member.letter_key})
    center.note_asked(context, [party.name])
    bound = (NormBound(size=fixed.size, norm=2**43),)
    label = Label(
        context=context,
        party=party.name,
        n_parties=1,
        use=use,
        sum_group=sum_group,
        bound=bound,
        run=run,
        ledger=mark(),
    )
    return {party.name: seal(fixed, label, center.keys, rng=Rng.system(), sign=party.sign)}


def invert(center: RemoteCenter, run: str) -> float:
    center.keep(run, "curvature", run, sealed(center, A, run, "curvature", run=run), (2, 2))
    return float(center.compute(run, "invert", tolerance=1e-6, condition_bits=4)["residual_ok"])


def test_a_sum_is_opened_once_over_one_set_of_parties_also_after_a_restart(nodes: Loopback) -> None:
    with BlockingConnection(CoordinatorFolder(nodes.coordinator)) as connection:
        center = connection.center()
        envelopes = sealed(center, np.array([1.0, -2.0]), "c")
        np.testing.assert_array_equal(center.open_sum("c", envelopes), [2**40, -(2**41)])
        nodes.stop("node-b", signal.SIGKILL)
        nodes.start("node-b", "center")
        np.testing.assert_array_equal(center.open_sum("c", envelopes), [2**40, -(2**41)])
        with pytest.raises(CenterError, match="opened before over other parties"):
            center.open_sum("c", sealed(center, np.array([1.0, 1.0]), "c", party=Q))
        center.note_asked("c", ["p", "q"])
        with pytest.raises(CenterError, match="'p' did not agree to be added up with all"):
            center.open_sum("c", envelopes)
        with pytest.raises(CenterError, match="knows no party 'r'"):
            center.open_sum("c", {**envelopes, "r": envelopes["p"]})


def test_a_center_that_is_not_complete_says_so() -> None:
    center = RemoteCenter(lambda request: {}, [])
    with pytest.raises(CenterError, match="0 of 3 center nodes have joined"):
        center.open_sum("c", {"p": []})


def test_a_node_that_is_gone_is_named(nodes: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.federation.nats.center._LOOK_SECONDS", 1.0)
    monkeypatch.setattr("tacit.federation.nats.center._PING_SECONDS", 4.0)
    nodes.stop("node-c")
    with BlockingConnection(CoordinatorFolder(nodes.coordinator)) as connection:
        center = connection.center()
        with pytest.raises(CenterError, match=r"'node-c' does not answer; start it .*resume"):
            center.open_sum("c", sealed(center, np.array([1.0]), "c"))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("spu") is None, reason="the engine is not installed")
def test_programs_run_between_nodes_and_a_killed_engine_begins_a_new_session(nodes: Loopback) -> None:
    with BlockingConnection(CoordinatorFolder(nodes.coordinator)) as connection:
        center = connection.center()
        center.computing()
        assert invert(center, "r") == 1
        center.keep("r", "gradient", "g", sealed(center, np.array([0.25, 0.5]), "g", "gradient", run="r"), (2,))
        step = center.compute("r", "step")["step"]
        np.testing.assert_allclose(step, np.linalg.solve(A, [0.25, 0.5]), atol=1e-9)
        pinned = [MemberFolder.load(nodes.folder(f"node-{seat}"), "center").member.letter_key for seat in "abc"]
        inverse = center.encrypt_inverse("r", 1)
        inverse.check("r", pinned)  # as each node signed it
        with pytest.raises(NotAgreed, match="not one that the center's nodes signed"):
            inverse.check("another question", pinned)
        found = subprocess.run(
            ["pgrep", "-f", f"daemon.center.process .* {nodes.folder('node-b')}"], capture_output=True, text=True
        )
        os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
        with pytest.raises(CenterError, match="resume"):
            center.forget("r")
    with BlockingConnection(CoordinatorFolder(nodes.coordinator)) as connection:
        again = connection.center()
        again.computing()
        assert invert(again, "r2") == 1
    assert nodes.journal("node-a").count('"session"') >= 2
    assert len(json.loads((nodes.folder("node-a") / "peers.json").read_text())) == 3


def test_a_card_is_believed_if_its_node_signed_it() -> None:
    one, two = (Identity(name, "center", name.encode() * 32) for name in ("a", "b"))
    card = NodeCard.make(one, "127.0.0.1:1", "certificate")
    peers = Peers(session="s", members=(one.member,), cards=(card,))
    assert Peers.decode(peers.encode()) == peers
    assert NodeCard.decode(card.encode("s")) == (card, "s")
    for forged in (
        replace(peers, members=(two.member,)),
        replace(peers, cards=(replace(card, address="127.0.0.1:2"),)),
        replace(peers, cards=(replace(card, certificate="another"),)),
    ):
        with pytest.raises(WireError, match="is not signed by it"):
            Peers.decode(forged.encode())
    with pytest.raises(WireError, match="1 cards are told of 0 center nodes"):
        from_value(Peers, {**to_value(peers), "members": []})
