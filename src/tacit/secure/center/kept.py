"""What a run keeps at a node: its shares of a value, and what the value is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tacit.errors import CenterError
from tacit.secure.center.program import BLOCK
from tacit.secure.share import Shared
from tacit.wire import Value


@dataclass(frozen=True, kw_only=True)
class KeptValue:
    """A value that a run keeps at this node.

    Attributes:
        shared: this node's shares.
        origin: a name for all that it is a function of.
        contexts: the questions that were answered with what it is made of.
        parties: who are in the sums that it is made of.
        contrasts: whose variances may be opened, as the parties declared them; empty: nobody's.
    """

    shared: Shared = field(repr=False)
    origin: str
    contexts: frozenset[str]
    parties: frozenset[str]
    contrasts: str

    @staticmethod
    def made_of(read: Sequence[KeptValue], shared: Shared, origin: str) -> KeptValue:
        """What a program keeps that read these."""
        return KeptValue(
            shared=shared,
            origin=origin,
            contexts=frozenset[str]().union(*(one.contexts for one in read)),
            parties=read[0].parties,
            contrasts=declared_by(read),
        )

    def answers(self) -> Value:
        """The questions behind it, as a node remembers them."""
        return [*sorted(self.contexts)]


def check_form(name: str, shape: tuple[int, ...]) -> None:
    """Refuse to keep a value in another shape than programs read it in, or under a name that none is kept under.

    Shapes come from the coordinator. In more dimensions the same numbers would be another program's: a curvature of
    shape (1, 1, d, d) is compared entry by entry, and a gradient of C classes, kept in two shapes, is multiplied twice.
    """
    match name:
        case "open":
            raise CenterError(f"{name!r} names what is opened; nothing is kept under it")
        case "curvature":
            is_fit = len(shape) == 2 and shape[0] == shape[1]
        case "blocks":
            is_fit = len(shape) == 3 and shape[1:] == (BLOCK, BLOCK)
        case "gradient":
            is_fit = len(shape) in (1, 2)
        case "likelihood":
            is_fit = shape == ()
        case _:
            is_fit = True  # parties seal nothing else that a program reads
    if not is_fit:
        raise CenterError(f"no program reads {name!r} in the shape {shape}; keep it as the parties' plan has it")


def check_read(program: str, read: Mapping[str, KeptValue]) -> None:
    """Refuse values that do not belong together: sums over different parties, or a gradient of another model."""
    check_parties(program, list(read.values()))
    if {"inverse", "gradient"} <= read.keys() and read["inverse"].shared.shape[-1] != read["gradient"].shared.shape[0]:
        raise CenterError(f"program {program!r} reads a gradient that is not of the inverse's features")
    if {"inverse_blocks", "gradient"} <= read.keys():
        n_blocks, n_features = read["inverse_blocks"].shared.shape[0], read["gradient"].shared.shape[0]
        if n_blocks != -(-n_features // BLOCK):
            raise CenterError(f"program {program!r} reads a gradient that is not of the blocks' features")


def check_parties(program: str, read: Sequence[KeptValue]) -> None:
    """Refuse to mix sums over different parties: one party's own value would stand for everybody's."""
    if len({one.parties for one in read}) != 1:
        raise CenterError(f"program {program!r} reads sums over different parties; it runs on those of one group")


def declared_by(read: Sequence[KeptValue]) -> str:
    """The contrasts that all declared who declared any; none if they differ."""
    declared = {one.contrasts for one in read} - {""}
    return declared.pop() if len(declared) == 1 else ""
