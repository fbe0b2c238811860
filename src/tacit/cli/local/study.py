"""`tacit study`: study files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.errors import SettingError

app = typer.Typer(help="Write study files.", no_args_is_help=True, rich_markup_mode=None)


@app.command("new")
def new(
    sample: Annotated[Path, typer.Option("--from", metavar="PUBLIC.csv", help="A PUBLIC sample of data of this kind.")],
    target: Annotated[str | None, typer.Option(help="The column to predict; the default is the last one.")] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write here, not to the terminal.")
    ] = None,
) -> None:
    """Draft a study file from a public sample.

    Column names, kinds and categories are taken from the sample. Bounds are left for you: reading them from private
    data would leak, and a bound must hold for everybody's.

    Examples:

      tacit study new --from public.csv --target disease > study.toml

      tacit study new --from public.csv --out study.toml
    """
    from tacit.storage import write_whole
    from tacit.studies.draft import draft

    text = draft(sample, target=target)
    if out_file is None:
        print(text, end="")
        return
    if out_file.exists():
        raise SettingError(f"{out_file} exists and is not written over; name another file")
    write_whole(out_file, text)


@app.callback()
def study() -> None:
    """Write study files."""
