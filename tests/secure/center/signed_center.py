"""A center as between organisations, in this process: nodes that know the parties' keys and each other's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from nacl.signing import SigningKey

from tacit.rand import Rng
from tacit.secure.bound import Bound, NormBound
from tacit.secure.center.center import Center, MessageCenter
from tacit.secure.center.node import NodeServer
from tacit.secure.envelope import Label, seal_words, sum_group_digest
from tacit.secure.ring import Words, extend

from .conftest import mark

RNG = Rng.seeded(11)


class SignedCenter(MessageCenter):
    """Three nodes; `parties` are the names of those whose keys they pinned."""

    def __init__(self, parties: Sequence[str]) -> None:
        self.signers = {name: SigningKey(RNG.bytes(32)) for name in parties}
        self.pinned = {name: bytes(key.verify_key) for name, key in self.signers.items()}
        self.group = tuple(parties)
        self.nodes: list[NodeServer] = []
        self.know(lambda: self.pinned)
        self.requests: list[Sequence[bytes]] = []

    def know(self, members: Callable[[], Mapping[str, bytes]]) -> None:
        """Begin anew with nodes that know these parties."""
        self.nodes = [
            NodeServer(index, members=members, peers=lambda: [node.public_key for node in self.nodes])
            for index in range(3)
        ]

    @property
    def keys(self) -> tuple[bytes, ...]:
        return tuple(node.public_key for node in self.nodes)

    def computing(self) -> Center:
        return self

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        self.requests.append(requests)
        return [node.handle(request) for node, request in zip(self.nodes, requests, strict=True)]

    def asked(self, context: str) -> Sequence[str]:
        return self.group

    def sealed(
        self,
        party: str,
        addend: npt.ArrayLike | Words,
        bound: Bound | int,
        *,
        context: str = "q",
        n_parties: int = 1,
        use: str = "open",
        run: str = "",
    ) -> list[bytes]:
        """What a party seals, signed: whole numbers, or words modulo 2^128; a bound may be one norm for all."""
        array = np.asarray(addend)
        words = array if array.dtype == np.uint64 else extend(array.astype(np.int64).ravel())
        blocks = (NormBound(size=len(words), norm=bound),) if isinstance(bound, int) else bound
        label = Label(
            context=context, party=party, n_parties=n_parties, use=use, sum_group=sum_group_digest(self.pinned),
            bound=blocks, run=run, ledger=mark(),
        )  # fmt: skip
        return seal_words(
            words, label, self.keys, rng=RNG, sign=lambda text: bytes(self.signers[party].sign(text).signature)
        )


def keep_signed(
    nodes: Sequence[NodeServer],
    run: str,
    name: str,
    context: str,
    envelopes: Mapping[str, Sequence[bytes]],
    shape: tuple[int, ...],
    group: Sequence[str],
) -> None:
    """Let three nodes tell each other of the parties' proofs, and keep the sum."""
    keys = [node.public_key for node in nodes]
    own = [{party: sealed[p] for party, sealed in envelopes.items()} for p in range(len(nodes))]
    told = [node.check(context, name, one, group, keys) for node, one in zip(nodes, own, strict=True)]
    for p, node in enumerate(nodes):
        boxes = {keys[q].hex(): told[q][keys[p].hex()] for q in range(len(nodes)) if q != p}
        node.keep(run, name, context, own[p], shape, group, boxes)
