"""`tacit data`: public data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import JsonOutput, folder, out, working

app = typer.Typer(help="Public data sets, by name.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_(json_output: JsonOutput = False) -> None:
    """List the public data sets.

    Examples:

      tacit data list
    """
    from rich.table import Table

    from tacit import datasets as public

    told = {name: public.describe(name).splitlines()[0].partition(": ")[2] for name in public.names()}
    if json_output:
        print(json.dumps(told))
        return
    table = Table()
    table.add_column("name")
    table.add_column("what it is", overflow="fold")
    for name, words in told.items():
        table.add_row(name, words)
    out.print(table)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A name from `tacit data list`.")],
    json_output: JsonOutput = False,
) -> None:
    """Tell what a public data set holds, what was left out of it and why, and its terms.

    Examples:

      tacit data show heart_disease
    """
    from tacit import datasets as public

    told = public.describe(name)
    print(json.dumps({"name": name, "description": told}) if json_output else told)


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A name from `tacit data list`.")],
    out_dir: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write the files.")] = Path(),
    json_output: JsonOutput = False,
) -> None:
    """Write a public data set as CSV files, one for each part or party.

    Files are read from the folder that TACIT_DATA names, or downloaded and checked against their checksum.

    Examples:

      tacit data get heart_disease --out heart
    """
    from tacit import datasets as public

    with working(f"getting {name}"):
        written = public.export(name, folder(out_dir))
    if json_output:
        print(json.dumps([str(path) for path in written]))
        return
    for path in written:
        print(path)


@app.callback()
def data() -> None:
    """Public data sets, by name."""
