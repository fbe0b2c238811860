"""What the commands share: consoles, progress, and files written whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tacit.errors import SettingError

if TYPE_CHECKING:  # commands that need neither start without them
    from tacit.data.table import Table
    from tacit.federation.federation import Federation

JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

_ROOM = 1 << 20  # bytes: what a result's files take, and more

# Much of what is shown comes from elsewhere: a refusal, a name. So no text is markup, whoever wrote it.
# In a pipe or a file nobody's window is narrow: 80 columns would cut names off.
_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140
out = Console(highlight=False, markup=False, emoji=False, width=_WIDTH)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)


def is_terminal() -> bool:
    """Whether a person is there who can be asked."""
    return sys.stdin.isatty() and err.is_terminal


def number(text: str | float) -> float:
    """A number from the command line; an error that names what came instead."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on standard error while something runs; nothing if that is not a terminal."""
    with err.status(f"{what} ..."):
        yield


@contextmanager
def watching(parties: Federation, what: str) -> Iterator[None]:
    """A spinner that counts the rounds of a run."""
    with err.status(f"{what} ...") as status:
        parties.on_round = lambda rounds, step: status.update(f"{what}: round {rounds}, {step}")
        try:
            yield
        finally:
            parties.on_round = None


def folder(path: Path, option: str = "--out") -> Path:
    """The folder, made if it is not there; an error that names it if it cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path) as trial:  # before anything is spent
            trial.write(bytes(_ROOM))
            trial.flush()
    except OSError as error:
        raise SettingError(f"{option} {path} cannot be used as a folder: {error.strerror}; name another one") from error
    return path


def tell_counts(tables: Mapping[str, Table]) -> None:
    """Tell whoever holds the files what encoding did to them; counts of private records go into no report."""
    for name, table in tables.items():
        counts = table.counts
        told = [
            f"{count:,} values of {column!r} lay outside the declared bounds and were clipped to them"
            for column, count in counts.clipped.items()
        ]
        if counts.rows_clipped:
            told.append(f"{counts.rows_clipped:,} of {table.n_records:,} rows were scaled down to the norm bound")
        if counts.dropped:
            told.append(f"{counts.dropped:,} rows with missing values count as records and add nothing")
        for what in told:
            err.print(f"tacit: {name}: {what}", markup=False, soft_wrap=True)
