"""What a node demands of the envelopes of one sum: sealed for it, by these, to be added up with these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.errors import CenterError
from tacit.secure.envelope import OPEN, Contents, Label
from tacit.secure.ring import Words, add

Labels = Sequence[Label]
GroupNames = Sequence[str] | None
"""The names of all to whom a question was put; None where nobody signs."""


@dataclass(frozen=True, kw_only=True)
class WantedSum:
    """What the envelopes of one sum must say: which question, for what use, and to whom it was put."""

    context: str
    use: str
    sum_group: GroupNames
    run: str = ""  # the run that keeps the sum; none keeps what is opened

    def check_run(self, labels: Labels) -> None:
        """Refuse to keep what was sealed in another run: programs would compute with two runs' values."""
        stray = next((label for label in labels if self.run and label.run != self.run), None)
        if stray is not None:
            raise CenterError(f"party {stray.party!r} sealed its part in another run than {self.run!r}")

    def check_number(self, labels: Labels) -> None:
        """Refuse a sum over fewer parties than one of them lets be opened."""
        wary = next((label for label in labels if label.n_parties > len(labels)), None)
        if wary is not None:
            raise CenterError(
                f"party {wary.party!r} lets a sum over {wary.n_parties} parties be opened; {len(labels)} are in it"
            )

    def check(self, label: Label, party: str) -> None:
        """Refuse what a party sealed for something else, or for more parties than were asked."""
        if (label.context, label.party) != (self.context, party):
            raise CenterError(f"the envelope of party {party!r} belongs to another question or party")
        if label.use != self.use:
            wanted = "for opening" if self.use == OPEN else f"as {self.use!r}"
            raise CenterError(f"party {party!r} sealed its part as {label.use!r}, not {wanted}")
        if self.sum_group is not None and label.n_parties > len(self.sum_group):
            raise CenterError(
                f"party {party!r} asks for {label.n_parties} parties, and {len(self.sum_group)} were asked"
            )


@dataclass(frozen=True, kw_only=True)
class Signers:
    """Who must have signed the envelopes of a sum, with which keys, and for a sum within which sum group."""

    keys: Mapping[str, bytes]
    digest: str

    def check(self, label: Label) -> None:
        """Refuse what a party did not seal for a sum within this sum group, or in no state of its ledger."""
        if self.keys and label.sum_group != self.digest:
            raise CenterError(f"party {label.party!r} did not agree to be added up with all to whom the question went")
        if self.keys and label.ledger is None:
            raise CenterError(f"party {label.party!r} does not say in which state its ledger is; use the same release")


def added(contents: Mapping[str, Contents]) -> Words:
    """The sum of what parties sealed."""
    first, *others = contents.values()
    total = first.words()
    for found in others:
        total = add(total, found.words())
    return total


def labels_of(contents: Mapping[str, Contents]) -> Labels:
    """What parties bound to what they sealed."""
    return [found.label for found in contents.values()]


def same_contrasts(labels: Labels) -> str:
    """The contrasts that all parties of a sum declared; none if they differ."""
    declared = {label.contrasts for label in labels}
    return declared.pop() if len(declared) == 1 else ""
