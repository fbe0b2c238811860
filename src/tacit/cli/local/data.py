"""`tacit data`: public data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import folder, out, working

app = typer.Typer(help="Public data sets, by name.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_() -> None:
    """List the public data sets.

    Examples:

      tacit data list
    """
    from rich.table import Table

    from tacit import datasets as public

    table = Table()
    table.add_column("name")
    table.add_column("what it is", overflow="fold")
    for name in public.names():
        table.add_row(name, public.describe(name).splitlines()[0].partition(": ")[2])
    out.print(table)


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="A name from `tacit data list`.")]) -> None:
    """Tell what a public data set holds, what was left out of it and why, and its terms.

    Examples:

      tacit data show heart_disease
    """
    from tacit import datasets as public

    print(public.describe(name))


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A name from `tacit data list`.")],
    out_dir: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write the files.")] = Path(),
) -> None:
    """Write a public data set as CSV files, one for each part or party.

    Files are read from the folder that TACIT_DATA names, or downloaded and checked against their checksum.

    Examples:

      tacit data get heart_disease --out heart
    """
    from tacit import datasets as public

    with working(f"getting {name}"):
        written = public.export(name, folder(out_dir))
    for path in written:
        print(path)


@app.callback()
def data() -> None:
    """Public data sets, by name."""
