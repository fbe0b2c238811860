"""The center of a simulated crowd: it adds up in this process what parties of this process sealed to it.

It holds parties to what nodes hold them to: one question, one sum, over no fewer parties than each of them asks for. It
has no nodes, so it splits nothing: whoever runs a simulation holds every record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tacit import wire
from tacit.errors import AddendRefused, CenterError
from tacit.secure.center.center import Center
from tacit.secure.center.product import EncryptedInverse, Form
from tacit.secure.center.wanted import WantedSum
from tacit.secure.envelope import OPEN, Label
from tacit.secure.process_key import ProcessKey
from tacit.secure.ring import Floats, Ints, Words, add, extend, total
from tacit.secure.share import narrow
from tacit.wire import Value

_SEVERAL = 4096  # addends that are held at once


class SimulatedCenter:
    """Adds up what parties of this process sealed, and opens the sum."""

    def __init__(self) -> None:
        self._key = ProcessKey()
        self._opened: dict[str, bytes] = {}  # by the question: which boxes were added up

    @property
    def keys(self) -> ProcessKey:
        """To which parties seal."""
        return self._key

    def computing(self) -> Center:
        """Three processes on this machine, started on first use and shared by all simulations of this process."""
        from tacit.secure.center.process import shared_center

        return shared_center()

    def open_sum(self, context: str, envelopes: Mapping[str, Sequence[bytes]]) -> Ints:
        """The sum over the parties of what they sealed for `context`.

        Raises:
            AddendRefused: naming parties whose boxes are not what they should be; nothing was opened.
            CenterError: if fewer parties are in the sum than one of them requires, if the question was summed before
                otherwise, or if the sum leaves 64 bits.
        """
        wanted = WantedSum(context=context, use=OPEN, sum_group=None)
        stated: dict[tuple[Label, int], _Sum] = {}
        refused: dict[str, str] = {}
        for party, (box,) in envelopes.items():
            try:
                found = self._key.open(box)
                wanted.check(replace(found.terms, party=found.party), party)
            except CenterError as error:
                refused[party] = str(error)
            else:
                stated.setdefault((found.terms, found.addend.size), _Sum()).take(party, found.addend)
        if refused:
            raise AddendRefused(refused)
        terms, most = _most(stated)
        if terms.n_parties > len(most.parties):
            raise CenterError(
                f"party {most.parties[0]!r} lets a sum over {terms.n_parties} parties be opened; "
                f"{len(most.parties)} are in it"
            )
        self._sum_once(context, envelopes)
        return most.opened()

    def keep(
        self, run: str, name: str, context: str, envelopes: Mapping[str, Sequence[bytes]], shape: tuple[int, ...]
    ) -> None:
        """Nothing is kept here."""
        raise _no_engine()

    def compute(self, run: str, program: str, **public: Value) -> dict[str, Floats]:
        """Nothing is computed here."""
        raise _no_engine()

    def encrypt_inverse(self, run: str, n_parties: int) -> EncryptedInverse:
        """Nothing is kept here that could be encrypted."""
        raise _no_engine()

    def open_product(self, run: str, context: str, envelopes: Mapping[str, bytes], form: Form) -> Floats:
        """Nothing is kept here that could be opened."""
        raise _no_engine()

    def forget(self, run: str) -> None:
        """Nothing is kept here."""

    def _sum_once(self, context: str, envelopes: Mapping[str, Sequence[bytes]]) -> None:
        """One question, one set of parties, one set of boxes."""
        seen = hashlib.sha256()
        for party in sorted(envelopes):
            seen.update(hashlib.sha256(wire.encode([party, *envelopes[party]])).digest())
        if self._opened.setdefault(context, seen.digest()) != seen.digest():
            raise CenterError("this sum was opened before over other parties, or of other answers of theirs")


class _Sum:
    """A sum of addends that state the same, modulo 2^128; some are held until they are enough to add up at once."""

    def __init__(self) -> None:
        self.parties: list[str] = []
        self._held: list[Ints] = []
        self._words: Words | None = None

    def take(self, party: str, addend: Ints) -> None:
        """Take one party's addend in."""
        self.parties.append(party)
        self._held.append(addend)
        if len(self._held) == _SEVERAL:
            self._add_up()

    def opened(self) -> Ints:
        """The sum; a `CenterError` if it leaves 64 bits."""
        if self._held:
            self._add_up()
        assert self._words is not None  # somebody is in it
        return narrow(self._words)

    def _add_up(self) -> None:
        words = total(np.swapaxes(extend(np.stack(self._held)), 0, 1))
        self._words = words if self._words is None else add(self._words, words)
        self._held = []


def _most(stated: Mapping[tuple[Label, int], _Sum]) -> tuple[Label, _Sum]:
    """What most parties state alike; an `AddendRefused` names the others."""
    if not stated:
        raise CenterError("there is nothing to add up: no party sent a box")
    ((terms, size), most), *others = sorted(stated.items(), key=lambda item: -len(item[1].parties))
    if others and 2 * len(most.parties) <= sum(len(one.parties) for one in stated.values()):
        raise CenterError("the parties state different terms of one sum, and none most")
    if others:
        why = f"it sent numbers on other terms than most, who sent {size}"
        raise AddendRefused({party: why for _, one in others for party in one.parties})
    return terms, most


def _no_engine() -> CenterError:
    return CenterError("this center only adds up; ask one that computes: `center.computing()`")
