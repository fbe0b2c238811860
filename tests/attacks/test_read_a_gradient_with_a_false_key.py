"""A coordinator gives parties an inverse under a key of its own, to read a gradient from what node 1 gets to see.

Node 1 is curious: it tells the coordinator every product that a party sealed to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from nacl.signing import SigningKey

pytest.importorskip("phe")
pytest.importorskip("gmpy2")

from tacit.errors import CenterError, NotAgreed
from tacit.federation.group import SumGroup
from tacit.federation.message import question_digest
from tacit.federation.policy import Policy
from tacit.methods.privlogit.method import QUESTIONS, PrivLogit
from tacit.methods.privlogit.statistic import Measure, Multiplied
from tacit.rand import Rng
from tacit.secure.center.node import NodeServer
from tacit.secure.center.product import ADDS, EncryptedInverse, ProductTerms, key_statement, matrix_statement
from tacit.secure.envelope import unseal_message
from tacit.secure.paillier.key import PrivateKey
from tacit.secure.paillier.vector import EncryptedMatrix, EncryptedVector
from tacit.secure.share import N_NODES, Shared

from ..secure.center.signed_center import keep_signed
from .organisation import NODE_SEALS, NODE_SIGNERS, SIGNERS, Organisation, node_of, organisation, signer

GROUP = SumGroup.of({"north": 60, "south": 60}, quorum=2)
TERMS = ProductTerms(n_features=3, n_parties=2)
OWN = PrivateKey.generate(rng=Rng.seeded(1))  # the coordinator's
RNG = Rng.system()


def matrix(key: PrivateKey) -> bytes:
    """The identity, under this key: what is multiplied with it can be read by whoever has the key."""
    public = key.public_key
    rows = [[int(i == j) for j in range(3)] for i in range(3)]
    packing = TERMS.packing(public)
    return EncryptedMatrix.encrypt(rows, public, packing, bound=TERMS.entry_bound, rng=RNG).to_bytes()


MATRIX = matrix(OWN)
UNSIGNED = EncryptedInverse(key=OWN.public_key.to_bytes(), matrix=MATRIX, terms=TERMS)


def party(name: str = "north") -> Organisation:
    """A party that answered about the curvature's bound, in a run `r`."""
    made = organisation(name, PrivLogit(protocol="local"), GROUP, policy=Policy(not_private=["privlogit"]))
    made.begin()
    made.ask(QUESTIONS.bound, Measure(units=None))
    return made


def context(asked: Organisation, run: str = "r") -> str:
    return question_digest(asked.question(QUESTIONS.bound, Measure(units=None), run=run).encode())


def vouched(inverse: EncryptedInverse, about: str, nodes: Sequence[SigningKey]) -> EncryptedInverse:
    """The inverse with signatures of these nodes, for answers to the question `about`."""
    return replace(
        inverse,
        key_signature=signer(nodes[0])(key_statement(about, inverse.terms, inverse.key)),
        matrix_signature=signer(nodes[1])(matrix_statement(about, inverse.terms, inverse.key, inverse.matrix)),
    )


def read_gradient(victim: Organisation, inverse: EncryptedInverse) -> list[int]:
    """What the coordinator reads, with node 1's help and its own key, of one party's gradient at 0."""
    answer = victim.ask(QUESTIONS.product, Multiplied(point=np.zeros(3), units=None, inverse=inverse))
    envelope: Any = answer.value["product"]
    _, product = unseal_message(envelope, NODE_SEALS[ADDS])
    key = OWN.public_key
    vector = EncryptedVector.from_bytes(product, key, TERMS.packing(key), size=3, bound=TERMS.product_bound)
    return vector.decrypt(OWN)


def true_gradient(victim: Organisation) -> np.ndarray:
    X, y = victim.guard.table.arrays()
    return np.append(X.T @ (y - 0.5), (y - 0.5).sum()) / GROUP.n_records


def test_this_is_how_it_would_be_read() -> None:
    """With the nodes' signatures under it, the coordinator's key opens the gradient to the last digit."""
    victim = party()
    found = read_gradient(victim, vouched(UNSIGNED, context(victim), NODE_SIGNERS))
    np.testing.assert_allclose(np.array(found, dtype=float) / 2.0**60, true_gradient(victim), atol=1e-12)


def forgeries() -> dict[str, Callable[[Organisation], EncryptedInverse]]:
    strangers = tuple(SigningKey(Rng.seeded(300 + i).bytes(32)) for i in range(3))
    coordinator = (SIGNERS["stranger"],) * 3

    def other_matrix(victim: Organisation) -> EncryptedInverse:
        return replace(vouched(UNSIGNED, context(victim), NODE_SIGNERS), matrix=matrix(OWN))

    def other_key(victim: Organisation) -> EncryptedInverse:
        theirs = PrivateKey.generate(rng=Rng.seeded(2)).public_key.to_bytes()
        true = vouched(replace(UNSIGNED, key=theirs), context(victim), NODE_SIGNERS)
        return replace(true, key=UNSIGNED.key)

    return {
        "a key of its own": lambda _: UNSIGNED,
        "signed by the coordinator": lambda victim: vouched(UNSIGNED, context(victim), coordinator),
        "signed by unknown nodes": lambda victim: vouched(UNSIGNED, context(victim), strangers),
        "of another run": lambda victim: vouched(UNSIGNED, context(victim, run="q"), NODE_SIGNERS),
        "node 1 alone": lambda victim: vouched(UNSIGNED, context(victim), (NODE_SIGNERS[1],) * 2),
        "node 0 alone": lambda victim: vouched(UNSIGNED, context(victim), (NODE_SIGNERS[0],) * 2),
        "nodes in each other's place": lambda victim: vouched(UNSIGNED, context(victim), NODE_SIGNERS[1::-1]),
        "another matrix": other_matrix,
        "another key": other_key,
    }


@pytest.mark.parametrize("name", forgeries())
def test_a_party_multiplies_with_nothing_that_the_nodes_did_not_sign_for_this_run(name: str) -> None:
    victim = party()
    inverse = forgeries()[name](victim)
    before = victim.guard.ledger.n_releases("north")
    with pytest.raises(NotAgreed, match="not one that the center's nodes signed for this run"):
        read_gradient(victim, inverse)
    assert victim.guard.ledger.n_releases("north") == before


def test_a_party_that_pinned_no_nodes_multiplies_with_nothing() -> None:
    with pytest.raises(NotAgreed, match="0 center nodes are pinned where 3 are due"):
        vouched(UNSIGNED, "q", NODE_SIGNERS).check("q", ())


# --- what true nodes sign --------------------------------------------------------------------------------------------


class Wires:
    """An engine without its secure computation: the nodes exchange messages, and a program hands its input on."""

    def __init__(self, rank: int, wires: Mapping[tuple[int, int], SimpleQueue[bytes]]) -> None:
        self.rank = rank
        self._wires = wires

    def send(self, rank: int, message: bytes) -> None:
        self._wires[self.rank, rank].put(message)

    def receive(self, rank: int) -> bytes:
        return self._wires[rank, self.rank].get(timeout=120)

    def agree(self, what: str, shares: Sequence[Shared]) -> bool:
        return True

    def refuse(self) -> None:
        """Nobody waits."""

    def prepare(self, task: Any) -> None:
        """Nothing is compiled."""

    def run(self, task: Any) -> dict[str, Shared]:
        return dict.fromkeys((*task.program.keeps, *task.program.opens), next(iter(task.inputs.values())))


def true_nodes() -> list[NodeServer]:
    wires: dict[tuple[int, int], SimpleQueue[bytes]] = {(i, j): SimpleQueue() for i in range(3) for j in range(3)}
    return [node_of(index, Wires(index, wires), signer(NODE_SIGNERS[index])) for index in range(N_NODES)]


def encrypted_by(nodes: Sequence[NodeServer], run: str) -> EncryptedInverse:
    """What the three nodes tell when they are asked to encrypt, at the same time."""
    replies: dict[int, Mapping[str, Any]] = {}
    threads = [
        threading.Thread(target=lambda p=p, node=node: replies.update({p: node.encrypt_inverse(run, 2)}))  # type: ignore[misc]
        for p, node in enumerate(nodes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = {key: value for key, value in {**replies[0], **replies[1]}.items() if key != "n_features"}
    return EncryptedInverse(terms=TERMS, **told)


def kept_bound(nodes: Sequence[NodeServer], parties: Sequence[Organisation], run: str) -> None:
    """Give the nodes what the parties sealed about the curvature's bound in run `r`, under any name of a run."""
    answers: dict[str, Any] = {
        one.guard.name: one.ask(QUESTIONS.bound, Measure(units=None)).value["curvature"] for one in parties
    }
    envelopes = {name: value["envelopes"] for name, value in answers.items()}
    keep_signed(nodes, run, "curvature", context(parties[0]), envelopes, (3, 3), ["north", "south"])
    for node in nodes:
        node.compute(run, "invert", {})


def test_what_true_nodes_make_is_taken_in_the_run_of_its_answers_and_in_no_other() -> None:
    """The nodes believe the envelopes, and not the coordinator, about which run it is."""
    nodes, parties = true_nodes(), [party("north"), party("south")]
    with pytest.raises(CenterError, match="sealed its part in another run"):
        kept_bound(nodes, parties, "a name that the coordinator made up")
    kept_bound(nodes, parties, "r")
    inverse = encrypted_by(nodes, "r")
    victim = parties[0]
    victim.ask(QUESTIONS.product, Multiplied(point=np.zeros(3), units=None, inverse=inverse))
    victim.begin("next")
    victim.ask(QUESTIONS.bound, Measure(units=None), run="next")
    with pytest.raises(NotAgreed, match="not one that the center's nodes signed for this run"):
        victim.ask(QUESTIONS.product, Multiplied(point=np.zeros(3), units=None, inverse=inverse), run="next")


def test_an_inverse_of_several_questions_is_not_signed() -> None:
    nodes, parties = true_nodes(), [party("north"), party("south")]
    kept_bound(nodes, parties, "r")
    node = nodes[0]
    kept = node._kept["r", "inverse"]
    node._kept["r", "inverse"] = replace(kept, contexts=kept.contexts | {"another"})
    with pytest.raises(CenterError, match="made of answers to several questions"):
        node.encrypt_inverse("r", 2)
