"""The center: nodes that add up, and compute with, what none of them can read.

Parties   the center's three nodes; the coordinator relays envelopes to them and their shares of results back
Trust     no two nodes collude; then nobody learns any party's addend. A node that lies about an opened sum is
          noticed; programs count on honest but curious nodes. No node conspires with a party that spoils a sum
Travels   party -> node p: an envelope with the pair (s_p, s_{p+1}) and a proof that the addend is short; node -> node,
          in boxes through the coordinator: their shares of the proofs' checks; node p -> coordinator: its shares of an
          opened sum, or of what a program opens; node -> node, while a program runs: messages of the engine,
          in a tunnel that lets in exactly the other two nodes
Revealed  an opened sum, to the coordinator; of a kept sum, what the table of programs opens and nothing else; who took
          part, and whose proof fails, to everybody
Privacy   none of its own: the addends carry the noise, and the event of what is opened
Assumes   nothing of addends: every party states the bound that follows from the plan, and proves that it keeps it
          (`secure.proof`). In a simulation nobody proves anything: whoever runs it has all the data
Cost      one message from each party to each node; two to each node and back. Additions modulo 2^128, and for each
          party a proof of some 450 numbers. An inverse is 28 secure products
          of matrices, a step one product of a matrix and a vector
Paper     replicated secret sharing as in Araki et al. 2016 and ABY3 (Mohassel and Rindal 2018)

Between organisations every party signs what it seals, and signs with it the names and keys of all to whom the question
was put. A node that knows the parties' keys adds up nothing that is not signed, and nobody with others than those. So
whoever relays the envelopes can neither invent parties nor speak for real ones.

A node sums a context once: a second request is answered only if it names the same parties. Otherwise the difference
of two sums would show one party's addend with that party's noise alone. For the same reason a program runs on the same
values with one set of public arguments only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from tacit import wire
from tacit.errors import AddendRefused, CenterError, WireError
from tacit.record import encode_record, from_value
from tacit.secure.center.message import (
    Boxes,
    Check,
    Compute,
    Encrypt,
    Forget,
    InverseParts,
    Keep,
    Opened,
    OpenedStep,
    PartialSum,
    Product,
    Request,
    Sum,
)  # fmt: skip
from tacit.secure.center.product import ADDS, DECRYPTS, EncryptedInverse, Form, ProductTerms
from tacit.secure.envelope import OPEN
from tacit.secure.process_key import ProcessKey
from tacit.secure.ring import Floats, Ints
from tacit.secure.share import Shared, join_all, join_real
from tacit.wire import Value

Envelopes = Mapping[str, Sequence[bytes]]  # party -> one envelope for each node

_BLOCKS = 2  # further blocks of steps, if an inverse has not settled


class Center(Protocol):
    """Whoever opens sums and computes: nodes in this process, on this machine, or on three."""

    @property
    def keys(self) -> tuple[bytes, ...] | ProcessKey:
        """To which parties seal: the nodes' public keys, or the key of this process."""
        ...

    def open_sum(self, context: str, envelopes: Envelopes) -> Ints:
        """The sum over the parties of what they sealed for `context`."""
        ...

    def computing(self) -> Center:
        """A center that can run programs: this one, if it can."""
        ...

    def keep(self, run: str, name: str, context: str, envelopes: Envelopes, shape: tuple[int, ...]) -> None:
        """Leave the sum over the parties with the nodes, unopened, as `name` of the run."""
        ...

    def compute(self, run: str, program: str, **public: Value) -> dict[str, Floats]:
        """Run a program on what the run keeps; what it opens."""
        ...

    def encrypt_inverse(self, run: str, n_parties: int) -> EncryptedInverse:
        """What the run keeps as its inverse, encrypted, for up to `n_parties` parties to multiply with."""
        ...

    def open_product(self, run: str, context: str, envelopes: Mapping[str, bytes], form: Form) -> Floats:
        """The sum of the parties' products with the encrypted inverse, of shape (d, n_vectors)."""
        ...

    def forget(self, run: str) -> None:
        """Let the nodes drop all that the run keeps."""
        ...


class MessageCenter(ABC):
    """A center whose nodes are reached by messages: one to each node, one back from each."""

    @property
    @abstractmethod
    def keys(self) -> tuple[bytes, ...]:
        """The nodes' public keys, to which parties seal."""

    @abstractmethod
    def computing(self) -> Center:
        """A center that can run programs: this one, if it can."""

    @abstractmethod
    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        """Give one message to each node, and return their answers."""

    def asked(self, context: str) -> Sequence[str] | None:
        """All parties to whom the question was put, for nodes that know whom each of them agreed to; else None."""
        return None

    def open_sum(self, context: str, envelopes: Envelopes) -> Ints:
        """The sum over the parties of what they sealed for `context`.

        Raises:
            AddendRefused: naming parties whose addends are not what they declare; nothing was opened.
            CenterError: if a node refuses, if the nodes disagree, or if the sum leaves 64 bits.
        """
        sum_group, sealed = self._sum_group(context), self._sorted(envelopes)
        boxes = self._check(context, OPEN, sealed, sum_group)
        requests = [
            Sum(context=context, envelopes=own, sum_group=sum_group, boxes=told)
            for own, told in zip(sealed, boxes, strict=True)
        ]
        return join_all([from_value(PartialSum, reply).words for reply in self._ask(requests)])

    def keep(self, run: str, name: str, context: str, envelopes: Envelopes, shape: tuple[int, ...]) -> None:
        """Leave the sum over the parties with the nodes, unopened, as `name` of the run.

        Raises:
            AddendRefused: naming parties whose addends are not what they declare; nothing was kept.
            CenterError: if a party sealed its part for something else than `name`, or a node refuses otherwise.
        """
        sum_group, sealed = self._sum_group(context), self._sorted(envelopes)
        boxes = self._check(context, name, sealed, sum_group)
        self._ask(
            [
                Keep(run=run, name=name, context=context, envelopes=own, sum_group=sum_group, boxes=told, shape=shape)
                for own, told in zip(sealed, boxes, strict=True)
            ]
        )

    def compute(self, run: str, program: str, **public: Value) -> dict[str, Floats]:
        """Run a program of the table on what the run keeps, and return what it opens.

        `invert` goes on with blocks of `refine`, up to two, while residual_ok is 0.

        Raises:
            CenterError: if a node refuses or is gone, or if a result leaves the range of fixed point.
        """
        return self._invert(run, public) if program == "invert" else self._run(run, program, public)

    def encrypt_inverse(self, run: str, n_parties: int) -> EncryptedInverse:
        """What the run keeps as its inverse, encrypted, for up to `n_parties` parties to multiply with.

        Parties call its `times` and seal the result to node 1 alone, for `product.USE`: `seal_message(..., keys[1])`.
        """
        replies = self._ask([Encrypt(run=run, n_parties=n_parties)] * len(self.keys))
        parts = from_value(InverseParts, {**replies[DECRYPTS], **replies[ADDS]})
        return EncryptedInverse(
            key=parts.key,
            matrix=parts.matrix,
            terms=ProductTerms(n_features=parts.n_features, n_parties=n_parties),
            key_signature=parts.key_signature,
            matrix_signature=parts.matrix_signature,
        )

    def open_product(self, run: str, context: str, envelopes: Mapping[str, bytes], form: Form) -> Floats:
        """The sum of the parties' products with the encrypted inverse, of shape (d, n_vectors).

        Raises:
            CenterError: if a node refuses or is gone, or if a party sent something else.
        """
        sum_group = self._sum_group(context)
        requests = [
            Product(run=run, context=context, envelopes=envelopes if p == ADDS else {}, sum_group=sum_group, form=form)
            for p in range(len(self.keys))
        ]
        return from_value(OpenedStep, self._ask(requests)[DECRYPTS]).step

    def forget(self, run: str) -> None:
        """Let the nodes drop all that the run keeps."""
        self._ask([Forget(run=run)] * len(self.keys))

    def _check(
        self, context: str, use: str, sealed: Sequence[Mapping[str, bytes]], sum_group: tuple[str, ...] | None
    ) -> list[Mapping[str, bytes]]:
        """What the other nodes tell each node of the parties' proofs; nothing where nobody signs."""
        if sum_group is None:
            return [{} for _ in self.keys]
        replies = self._ask(
            [Check(context=context, use=use, envelopes=own, sum_group=sum_group, nodes=self.keys) for own in sealed]
        )
        told = [from_value(Boxes, reply).boxes for reply in replies]
        return [
            {
                sender.hex(): boxes[key.hex()]
                for sender, boxes in zip(self.keys, told, strict=True)
                if key.hex() in boxes
            }
            for key in self.keys
        ]

    def _invert(self, run: str, public: Mapping[str, Value]) -> dict[str, Floats]:
        opened = self._run(run, "invert", public)
        tolerance = {key: value for key, value in public.items() if key == "tolerance"}
        for _ in range(_BLOCKS):
            if opened["residual_ok"] > 0:
                break
            opened = self._run(run, "refine", tolerance)
        return opened

    def _run(self, run: str, program: str, public: Mapping[str, Value]) -> dict[str, Floats]:
        request = Compute(run=run, program=program, public=public)
        replies = [from_value(Opened, reply).opened for reply in self._ask([request] * len(self.keys))]
        if any(set(reply) != set(replies[0]) for reply in replies):
            raise CenterError(f"the nodes opened different things after program {program!r}")
        return {
            name: join_real([Shared(reply[name].words, reply[name].shape) for reply in replies]) for name in replies[0]
        }

    def _ask(self, requests: Sequence[Request]) -> list[Mapping[str, Value]]:
        answers: list[Mapping[str, Value]] = []
        refusals: dict[str, str] = {}
        misfits: dict[str, str] = {}
        for index, message in enumerate(self.exchange([encode_record(request) for request in requests])):
            match wire.decode(message):
                case {"done": dict(answer)}:
                    answers.append(answer)
                case {"misfits": dict(named)}:
                    misfits |= {str(party): str(why) for party, why in named.items() if party not in misfits}
                case {"refused": str(why)}:
                    refusals.setdefault("refused", why)
                case {"broken": str(why)} | {"followed": str(why)}:
                    refusals.setdefault("followed", why)
                case _:
                    raise WireError(f"node {index} of the center gave an answer that is none of a node's")
        if misfits:
            raise AddendRefused(misfits)
        if refusals:  # the reason of who would not, before that of who could then not go on
            raise CenterError(refusals.get("refused") or refusals["followed"])
        return answers

    def _sum_group(self, context: str) -> tuple[str, ...] | None:
        asked = self.asked(context)
        return None if asked is None else tuple(sorted(asked))

    def _sorted(self, envelopes: Envelopes) -> list[dict[str, bytes]]:
        n_nodes = len(self.keys)
        for party, sealed in envelopes.items():
            if len(sealed) != n_nodes:
                raise CenterError(f"party {party!r} sent {len(sealed)} envelopes; the center has {n_nodes} nodes")
        return [{party: sealed[p] for party, sealed in envelopes.items()} for p in range(n_nodes)]
