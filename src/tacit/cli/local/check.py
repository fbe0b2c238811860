"""`tacit check`: does an owner's own file fit a study?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import working
from tacit.cli.inspected import show_inspected


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
    from tacit.methods import METHODS
    from tacit.studies.run import method_of
    from tacit.studies.study import Study

    asked = Study.read(study, known_methods=METHODS)
    method_of(asked).guarantee  # noqa: B018  # refuses settings that no run would take
    with working("checking"):
        found = [inspect_file(path, asked.schema, person=asked.person) for path in data]
    show_inspected(found, "the study", json_output=json_output, as_list=True)
