"""`tacit check`: whether a party's records fit a study, for whoever holds them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import out, working
from tacit.errors import DataError
from tacit.visible import shown

if TYPE_CHECKING:
    from tacit.data.inspection import Inspection

WORDS = {
    "missing": "is missing",
    "unreadable": "cannot be read",
    "outside": "lies outside the bounds and is clipped",
}


def check(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Your records: CSV, TSV or Parquet.")],
) -> None:
    """Look through a party's file for what does not fit a study, and say in which line.

    What is printed holds values of your records: show it to nobody. Exit status 0 if every record counts, 2 if not.

    Examples:

      tacit check study.toml north.csv
    """
    from tacit.data.inspection import inspect_file
    from tacit.methods import METHODS
    from tacit.studies.study import Study

    asked = Study.read(study, known_methods=METHODS)
    with working("looking"):
        found = inspect_file(file, asked.schema)
    show_inspection(found, asked.name)


def show_inspection(found: Inspection, study: str) -> None:
    """Print what does not fit; a DataError at the end if a record does not count."""
    for value in found.values:
        place = f"record {value.record}" if value.line is None else f"line {value.line}"
        told = f" '{shown(value.value)}'" if value.value else ""
        out.print(f"{place}: {value.column}{told} {WORDS[value.trouble]}", soft_wrap=True)
    n_found = sum(c.missing + c.unreadable + c.outside for c in found.columns.values())
    if n_found > len(found.values) >= found.most:
        out.print(f"of each column the first {found.most} values are listed", soft_wrap=True)
    if found.n_unfit:
        raise DataError(
            f"{found.n_unfit:,} of {found.n_records:,} records would add nothing to {study!r}; mend them, or go on: "
            f"the others count"
        )
    out.print(f"all {found.n_records:,} records count in {study!r}", soft_wrap=True)
