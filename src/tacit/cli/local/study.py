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
    name: Annotated[
        str | None, typer.Option(help="What people call the study; the default is the file's name.")
    ] = None,
    purpose: Annotated[str | None, typer.Option(help="What it wants to know; parties read it.")] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bounds", metavar="NAME=LOW,HIGH", help="A numeric feature's bounds, from the field."),
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write here, not to the terminal.")
    ] = None,
) -> None:
    """Draft a study file from a public sample.

    Column names, kinds and categories are taken from the sample. Bounds are for you to give, here or in the file.
    Reading them from private data would leak, and a bound must hold for everybody's data.

    Examples:

      tacit study new --from public.csv --target disease --bounds age=20,90 --out study.toml

      tacit study new --from public.csv > study.toml
    """
    from tacit.storage import write_whole
    from tacit.studies.draft import Known, draft

    text = draft(sample, target=target, known=Known(name=name, purpose=purpose, bounds=_bounds(bounds or [])))
    if out_file is None:
        print(text, end="")
        return
    if out_file.exists():
        raise SettingError(f"{out_file} exists and is not written over; name another file")
    write_whole(out_file, text)


def _bounds(told: list[str]) -> dict[str, tuple[float, float]]:
    """Bounds by name, from NAME=LOW,HIGH."""
    found = {}
    for text in told:
        name, _, pair = text.rpartition("=")
        low, _, high = pair.partition(",")
        try:
            found[name.strip()] = (float(low), float(high))
        except ValueError:
            raise SettingError(f"--bounds {text!r} is not NAME=LOW,HIGH; say for instance --bounds age=20,90") from None
    return found


@app.callback()
def study() -> None:
    """Write study files."""
