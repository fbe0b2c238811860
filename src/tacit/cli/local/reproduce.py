"""`tacit reproduce`: the documents' tables, figures and theorems, made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, folder
from tacit.errors import DataError, SettingError

if TYPE_CHECKING:
    from tacit.reproduce.result import Reproduction
    from tacit.reproduce.run import FinishedResult


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Results such as pathak-figure-2, or documents such as pathak."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Make every result.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer draws and smaller settings, to try it.")] = False,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write numbers, pictures and pages.")
    ] = None,
    cache_dir: Annotated[
        Path | None, typer.Option("--cache", metavar="DIR", help="Keep finished cells here, not in the user's cache.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the names, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make the documents' tables and figures again, and judge their claims.

    Every finished cell is kept, so that the same command goes on where it was stopped.

    Examples:

      tacit reproduce --list

      tacit reproduce pathak-figure-2 --quick

      tacit reproduce --all --out docs/reproduction
    """
    from tacit.reproduce.registry import REPRODUCTIONS, chosen

    if listed:
        _print_list(list(REPRODUCTIONS.values()), as_json=as_json)
        return
    if every and names:
        raise SettingError(f"--all makes every result; leave out {' '.join(names)}, or --all")
    if not every and not names:
        raise SettingError("nothing to make again; name results or documents (see --list), or say --all")
    results = list(REPRODUCTIONS.values()) if every else chosen(names or [])
    if out_dir is not None:
        folder(out_dir)
    cache = folder(_default_cache() if cache_dir is None else cache_dir, "--cache")
    finished, failed = _make(results, quick=quick, cache=cache, out_dir=out_dir)
    _show(finished, out_dir, as_json=as_json)
    if failed:
        err.print(f"tacit: {len(failed)} of {len(results)} could not be made: {', '.join(failed)}", soft_wrap=True)
        raise typer.Exit(1)


def _make(
    results: list[Reproduction], *, quick: bool, cache: Path, out_dir: Path | None
) -> tuple[list[FinishedResult], list[str]]:
    """Make the results; one whose data are missing is told of and left out."""
    from tacit.reproduce.page import write_result
    from tacit.reproduce.run import run

    finished, failed = [], []
    with err.status("reproduce ...") as status:
        for k, result in enumerate(results):

            def tell(cell: int, cells: int, key: str, name: str = result.name, k: int = k) -> None:
                status.update(f"{k + 1} of {len(results)}, {name}: cell {cell + 1} of {cells}, {key}")

            try:
                done = run(result, quick=quick, cache=cache, on_cell=tell)
            except DataError as error:
                err.print(f"tacit: {result.name} is left out: {error}", soft_wrap=True)
                failed.append(result.name)
                continue
            finished.append(done)
            if out_dir is not None:
                write_result(done, out_dir)
            err.print(f"{result.name}: {done.verdict} ({done.seconds:.0f} s of computing)", soft_wrap=True)
    return finished, failed


def _show(finished: list[FinishedResult], out_dir: Path | None, *, as_json: bool) -> None:
    from tacit.reproduce.page import result_section, write_pages

    written = write_pages(out_dir) if out_dir is not None else []
    if as_json:
        print(json.dumps([done.as_json() for done in finished]))
    elif out_dir is None:
        print("\n\n".join(result_section(done) for done in finished))
    else:
        print("\n".join(map(str, written)))


def _print_list(results: list[Reproduction], *, as_json: bool) -> None:
    if as_json:
        told = [{"name": each.name, "title": each.title, "data": list(each.data)} for each in results]
        print(json.dumps(told))
        return
    width = max(len(each.name) for each in results)
    for each in results:
        print(f"{each.name:<{width}}  {each.title}")


def _default_cache() -> Path:
    import pooch

    return Path(pooch.os_cache("tacit")) / "reproduce"
