"""`tacit check`: does an owner's own file fit a study?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import out, working


def check(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    data: Annotated[list[Path], typer.Option("--data", metavar="FILE", help="Your own CSV, TSV or Parquet file.")],
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Compare your own file with a study: line, column and value of everything that does not fit.

    Nothing leaves this machine, and nothing is spent. Exit status 0: the file fits; 2: it does not.

    Examples:

      tacit check study.toml --data north.csv

      tacit check study.toml --data north.csv --data south.parquet --json
    """
    from tacit.data.inspection import inspect_file
    from tacit.studies.study import Study

    asked = Study.read(study)
    with working("checking"):
        found = [inspect_file(path, asked.schema, person=asked.person) for path in data]
    if json_output:
        print(json.dumps([{**asdict(one), "fits": one.fits} for one in found]))
    else:
        for one in found:
            out.print("\n".join(one.lines()), markup=False, soft_wrap=True)
            out.print(f"{one.file}: {'fits the study' if one.fits else 'does not fit the study'}", markup=False)
    if not all(one.fits for one in found):
        raise typer.Exit(2)
