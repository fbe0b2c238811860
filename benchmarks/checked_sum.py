"""What it costs to check addends: the same secure sums with and without proofs, in turn, in the same run.

    python benchmarks/checked_sum.py [--parties 1000] [--numbers 1000] [--repeats 3]

All parties and nodes are in this process, and processor time is what counts. Timed is everything from numbers to the
opened sum: noise, splitting, proving, signing, sealing; opening, verifying, checking, adding. Without proofs everything
else is the same, signatures included.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from nacl.signing import SigningKey

from tacit.privacy.noise.grid import NoiseGrid, VectorSum, gaussian_grid
from tacit.rand import Rng
from tacit.secure import envelope as sealing
from tacit.secure.bound import NormBound, terms_of
from tacit.secure.center.center import Center, MessageCenter
from tacit.secure.center.node import NodeServer
from tacit.secure.center.wanted import WantedSum, added
from tacit.secure.envelope import Label, LedgerMark, seal, sum_group_digest
from tacit.secure.ring import Floats, Ints, Words
from tacit.secure.share import split

RNG = Rng.system()


class AddingNode(NodeServer):
    """A node that verifies signatures and adds up, whatever it is: as nodes did before there were proofs."""

    def _total(
        self, wanted: WantedSum, envelopes: Mapping[str, bytes], boxes: Mapping[str, bytes]
    ) -> tuple[Words, str]:
        contents = self._opened(wanted, envelopes)
        self._memory.take_sum(wanted.context, wanted.use, envelopes, {})
        return added(contents), ""


class SignedCenter(MessageCenter):
    """Nodes that know the parties' keys, and check; or, without `checks`, that only add up."""

    def _check(self, *arguments: Any) -> list[Mapping[str, bytes]]:
        return super()._check(*arguments) if self.checks else [{}, {}, {}]

    def __init__(self, n_parties: int, *, checks: bool) -> None:
        self.signers = {f"p{i}": SigningKey.generate() for i in range(n_parties)}
        self.pinned = {name: bytes(key.verify_key) for name, key in self.signers.items()}
        self.checks, self.number = checks, 0
        self.nodes: list[NodeServer] = []
        kind = NodeServer if checks else AddingNode
        self.nodes += [
            kind(index, members=lambda: self.pinned, peers=lambda: [node.public_key for node in self.nodes])
            for index in range(3)
        ]

    @property
    def keys(self) -> tuple[bytes, ...]:
        return tuple(node.public_key for node in self.nodes)

    def computing(self) -> Center:
        return self

    def asked(self, context: str) -> Sequence[str] | None:
        return tuple(self.signers)

    def exchange(self, requests: Sequence[bytes]) -> list[bytes]:
        return [node.handle(request) for node, request in zip(self.nodes, requests, strict=True)]

    def envelopes(self, context: str, addends: Ints, norm: int) -> dict[str, list[bytes]]:
        bound = (NormBound(size=addends.shape[1], norm=norm),)
        digest = sum_group_digest(self.pinned)
        sealed = {}
        for name, addend in zip(self.signers, addends, strict=True):
            self.number += 1
            mark = LedgerMark(epoch=name, number=self.number, line=0, head="")
            label = Label(
                context=context, party=name, n_parties=len(addends), sum_group=digest, bound=bound, ledger=mark
            )
            sign = self._signer(name)
            sealed[name] = (
                seal(addend, label, self.keys, rng=RNG, sign=sign) if self.checks else self._bare(addend, label, sign)
            )
        return sealed

    def _bare(self, addend: Ints, label: Label, sign: Callable[[bytes], bytes]) -> list[bytes]:
        """Signed, without a proof: what a party sent before there were any."""
        return [
            sealing._encrypt(sealing._Addend(label=label, size=addend.size, parts=tuple(parts)), key, sign)
            for key, parts in zip(self.keys, split(addend, rng=RNG), strict=True)
        ]

    def _signer(self, name: str) -> Callable[[bytes], bytes]:
        return lambda text: bytes(self.signers[name].sign(text).signature)


def once(center: SignedCenter, grid: NoiseGrid, values: Floats) -> tuple[float, float, int]:
    """Seconds of all parties together, seconds of the nodes, and bytes sent."""
    context, norm = RNG.bytes(8).hex(), grid.norm_bound
    start = time.process_time()
    addends = np.stack([grid.to_grid(value, rng=RNG) for value in values])
    envelopes = center.envelopes(context, addends, norm)
    sealed = time.process_time()
    total = center.open_sum(context, envelopes)
    end = time.process_time()
    assert np.array_equal(total, addends.sum(axis=0))
    return sealed - start, end - sealed, sum(len(e) for own in envelopes.values() for e in own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, default=1000)
    parser.add_argument("--numbers", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    total = VectorSum(
        dimension=arguments.numbers, sensitivity=1.0, value_bound=1.0, norm_bound=1.0, n_parties=arguments.parties
    )
    grid = gaussian_grid(total, epsilon=1.0, delta=1e-6)
    values = np.random.default_rng(0).normal(size=(arguments.parties, arguments.numbers))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    norm = grid.norm_bound
    terms = terms_of((NormBound(size=arguments.numbers, norm=norm),))
    print(
        f"{arguments.parties} parties, {arguments.numbers} numbers, norm < 2^{norm.bit_length()}: "
        f"{terms.n_projections} projections, {terms.n_digits} digits"
    )
    centers = {name: SignedCenter(arguments.parties, checks=name == "checked") for name in ("unchecked", "checked")}
    found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in centers}
    for _ in range(arguments.repeats):
        for name, center in centers.items():
            found[name].append(once(center, grid, values))
    best = {name: tuple(min(one[i] for one in times) for i in range(3)) for name, times in found.items()}
    for name, (parties, nodes, sent) in best.items():
        print(f"{name:<10} parties {parties:6.2f} s   nodes {nodes:6.2f} s   {sent / 1e6:7.1f} MB")
    ratio = sum(best["checked"][:2]) / sum(best["unchecked"][:2])
    nodes_ratio = best["checked"][1] / best["unchecked"][1]
    print(f"checked takes {ratio:.2f} times as long; the nodes alone {nodes_ratio:.2f} times")


if __name__ == "__main__":
    main()
