"""`tacit methods`: what there is to choose from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tacit.cli.console import out


def methods(
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """List the methods: what each promises, whom one must trust, what it costs.

    Examples:

      tacit methods

      tacit methods --json
    """
    from rich.table import Table

    from tacit.methods import METHODS

    if json_output:
        print(json.dumps({name: method.headings() for name, method in METHODS.items()}))
        return
    table = Table(show_lines=True)
    table.add_column("method", no_wrap=True)
    for column in ("privacy", "trust", "cost"):
        table.add_column(column, overflow="fold")
    for name, method in METHODS.items():
        headings = method.headings()
        table.add_row(name, headings["Privacy"], headings["Trust"], headings["Cost"])
    out.print(table)
