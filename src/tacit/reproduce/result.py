"""What one table, figure or theorem of a document is here: cells to compute, a summary of them, and claims to check.

A reproduction is a constant. Its cells are small computations that do not depend on each other, each a function of
its settings and of a seed. What they give is plain JSON, so it can be kept, committed and read again. The summary and
the claims look at these finished numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["holds", "holds in part", "does not hold"]
Known = Literal["printed", "words", "not given"]
Values = Mapping[str, Any]
"""What the cells gave, by their keys."""


@dataclass(frozen=True)
class Number:
    """A number of the document: printed, read from its words, or (None) not given."""

    what: str
    value: float | None
    known: Known = "printed"


@dataclass(frozen=True)
class ResultCell:
    """One computation: `compute(seed=..., **settings)` gives JSON. A key is plain enough for a file name.

    `shared_with` names the result whose cell of the same key and settings this one is, if there is one.
    """

    key: str
    compute: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    shared_with: str = ""


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds, and why we say so."""

    verdict: Verdict
    why: str


@dataclass(frozen=True)
class Claim:
    """What the document says of its result, and how finished numbers confirm or refute it."""

    says: str
    check: Callable[[Values], Finding]


@dataclass(frozen=True)
class NumberTable:
    """Numbers side by side."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def markdown(self) -> str:
        """The table as lines of Markdown."""
        lines = [self.caption, ""] if self.caption else []
        lines += [f"| {' | '.join(self.columns)} |", "|---" * len(self.columns) + "|"]
        return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in self.rows)])


@dataclass(frozen=True)
class Summary:
    """Tables, and pictures by file name; a picture is drawn when it is asked for."""

    tables: Sequence[NumberTable]
    pictures: Mapping[str, Callable[[], str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """One result of a document, made again.

    `name` is the document's name, then what it is: pathak-figure-2, wang-table-3.1, pathak-theorem-4.2. `cells` gives
    the computations, fewer or smaller ones if it is told True (quick). Raise `version` when a cell computes something
    else than before with the same settings: what was kept is then computed anew.
    """

    name: str
    title: str
    setting: str
    data: Sequence[str] = ()
    stand_in: str = ""  # why other data than the document's, if so
    numbers: Sequence[Number] = ()
    cells: Callable[[bool], Sequence[ResultCell]]
    summarise: Callable[[Values], Summary]
    claims: Sequence[Claim]
    version: int = 1

    @property
    def document(self) -> str:
        """The name of the document."""
        return self.name.partition("-")[0]

    @property
    def kind(self) -> str:
        """Table, figure or theorem."""
        return self.name.split("-")[1]

    def number(self, what: str) -> float:
        """A number that the document gives."""
        [found] = [number.value for number in self.numbers if number.what == what]
        if found is None:
            raise KeyError(f"{self.name} does not give {what!r}")
        return found


@dataclass(frozen=True)
class Publication:
    """A document and its results, in its own order."""

    name: str
    title: str
    results: Sequence[Reproduction]


def judged(parts: Sequence[bool], why: str) -> Finding:
    """*holds* if all parts do, *does not hold* if none does, *holds in part* otherwise."""
    held = sum(map(bool, parts))
    if held == len(parts):
        return Finding("holds", why)
    return Finding("holds in part" if held else "does not hold", why)


def together(findings: Sequence[Finding]) -> Verdict:
    """The verdict on a result from those on its claims."""
    verdicts = {finding.verdict for finding in findings}
    if len(verdicts) == 1:
        return verdicts.pop()
    return "holds in part"
