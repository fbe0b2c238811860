"""`tacit reproduce`: a document's table or figure, made again."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import err, folder
from tacit.errors import SettingError


def reproduce(
    name: Annotated[str, typer.Argument(help="What to make again: pathak.")],
    repeats: Annotated[int, typer.Option(help="Draws of the noise.")] = 50,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the page and its pictures.")
    ] = None,
) -> None:
    """Make a document's table or figure again, beside our own calibration.

    Examples:

      tacit reproduce pathak --repeats 50 --out docs/reproduce
    """
    from tacit.reproduce import REPRODUCTIONS
    from tacit.storage import write_whole

    if name not in REPRODUCTIONS:
        close = difflib.get_close_matches(name, REPRODUCTIONS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(REPRODUCTIONS)}"
        raise SettingError(f"there is no reproduction {name!r}; {hint}")
    if repeats < 2:
        raise SettingError(f"--repeats {repeats} gives no error bars; give at least 2")
    with err.status(f"{name} ...") as status:
        result = REPRODUCTIONS[name](repeats=repeats, on_progress=lambda what: status.update(f"{name}: {what}"))
    if out_dir is None:
        print(result.markdown())
        return
    folder(out_dir)
    for file, svg in result.pictures.items():
        write_whole(out_dir / file, svg)
    page = out_dir / f"{name}.md"
    write_whole(page, result.markdown())
    print(page)
