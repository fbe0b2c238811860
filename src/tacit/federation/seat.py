"""Where a party sits in a run, and with whom it lets itself be added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.errors import PolicyRefusal
from tacit.federation.message import Question
from tacit.federation.reply import Encrypted, Kept, Sealed
from tacit.secure.signature import Sign


@dataclass(frozen=True, kw_only=True)
class Bond:
    """With whom a party lets itself be added up, and how it signs that; in a simulation nobody signs.

    Attributes:
        sum_group: the names and public keys of all who are in the sum, this party among them.
        sign: signs as this party.
        nodes: the public keys of the center nodes' signatures, as this party pinned them, in the order of their seats.
    """

    sum_group: Mapping[str, bytes]
    sign: Sign
    nodes: tuple[bytes, ...]

    def check(self, reply: Sealed | Kept | Encrypted) -> None:
        """Refuse to seal for fewer than the reply counts on, and what is exact for nobody else."""
        n_needed = max(reply.n_parties, 2 if reply.exact else 1)
        if len(self.sum_group) < n_needed:
            raise PolicyRefusal(
                f"this is sealed to be added up over {n_needed} parties or more, and the run has "
                f"{len(self.sum_group)}; ask all parties of the study"
            )


@dataclass(frozen=True, kw_only=True)
class Seat:
    """Where a party sits in a run, for steps that look at what others signed.

    Attributes:
        party: its name.
        question: the question that is being answered: it names study, run, group and plan.
        names: the parties of the run's group, in their order.
        bond: whose signatures are believed, and how the party itself signs; None in a simulation, where nobody signs.
    """

    party: str
    question: Question
    names: tuple[str, ...]
    bond: Bond | None = None
