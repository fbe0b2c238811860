"""The center: three nodes that add up what none of them can read.

Parties   the center's three nodes; the coordinator relays envelopes to them and their partial sums back
Trust     honest but curious nodes of which no two collude; then nobody learns any party's addend
Travels   party -> node p: an envelope with the pair (s_p, s_{p+1}); node p -> coordinator: the sum of those pairs
Revealed  the sum over the parties, to the coordinator; who took part, to everybody
Privacy   none of its own: the addends carry the noise, and the event of the opened sum
Assumes   every addend is within the grid's declared bounds; `join` notices a sum that leaves 64 bits
Cost      one message from each party to each node, one back; additions modulo 2^128
Paper     replicated secret sharing as in Araki et al. 2016 and ABY3 (Mohassel and Rindal 2018)

A node opens a context once: a second request is answered only if it names the same parties. Otherwise the difference
of two sums would show one party's addend with that party's noise alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nacl.public import PrivateKey

from tacit.errors import CenterError
from tacit.secure.envelope import OPEN, unseal
from tacit.secure.share import N_NODES, Ints, Words, add, join

Envelopes = Mapping[str, Sequence[bytes]]  # party -> one envelope for each node


class Center(Protocol):
    """Whoever opens sums: nodes in this process, or on three machines."""

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The nodes' public keys, to which parties seal."""
        ...

    def open_sum(self, context: str, envelopes: Envelopes) -> Ints:
        """The sum over the parties of what they sealed for `context`."""
        ...


class Node:
    """One node of the center: its key, and what it has opened."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._key = PrivateKey.generate()
        self._opened: dict[str, frozenset[str]] = {}

    @property
    def public_key(self) -> bytes:
        """The key to which parties seal."""
        return bytes(self._key.public_key)

    def partial_sum(self, context: str, envelopes: Mapping[str, bytes]) -> Words:
        """The sum of this node's pairs over the parties.

        Raises:
            CenterError: if an envelope is for another context or from another party, if fewer parties are in the sum
                than one of them requires, or if the context was opened before over other parties.
        """
        # 1. Open every envelope and check what its party bound into it.
        parties = frozenset(envelopes)
        total: Words | None = None
        for party, envelope in envelopes.items():
            contents = unseal(envelope, self._key)
            label = contents.label
            if (label.context, label.party) != (context, party):
                raise CenterError(f"the envelope of party {party!r} belongs to another question or party")
            if label.use != OPEN:
                raise CenterError(f"party {party!r} sealed its part as {label.use!r}, not for opening")
            if label.n_parties > len(parties):
                raise CenterError(
                    f"party {party!r} lets a sum over {label.n_parties} parties be opened; {len(parties)} are in it"
                )
            if total is not None and total.shape != contents.pair.shape:
                raise CenterError(f"party {party!r} sent {contents.pair.shape[1]} numbers, others {total.shape[1]}")
            # 2. Add its pair.
            total = contents.pair if total is None else add(total, contents.pair)
        if total is None:
            raise CenterError("there is nothing to add up: no party sent an envelope")
        # 3. One context, one set of parties, for good.
        if self._opened.setdefault(context, parties) != parties:
            raise CenterError(
                "this sum was opened before over other parties; the difference would show one party's part"
            )
        return total


class EmbeddedCenter:
    """Three nodes in this process: the default of a simulation, and the same code that three machines run."""

    def __init__(self) -> None:
        self._nodes = tuple(Node(index) for index in range(N_NODES))

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The nodes' public keys, to which parties seal."""
        return tuple(node.public_key for node in self._nodes)

    def open_sum(self, context: str, envelopes: Envelopes) -> Ints:
        """The sum over the parties of what they sealed for `context`."""
        partial = [
            node.partial_sum(context, {party: sealed[node.index] for party, sealed in envelopes.items()})
            for node in self._nodes
        ]
        opened = [join(p, partial[p], partial[(p + 1) % N_NODES]) for p in range(N_NODES)]
        return opened[0]
