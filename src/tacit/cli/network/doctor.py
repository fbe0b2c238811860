"""`tacit doctor`: what is wrong with this member, and what to do about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import JsonOutput, out, working
from tacit.errors import RunError, SettingError

if TYPE_CHECKING:
    from tacit.daemon.checkup import CheckResult


def doctor(
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="A member's folder; the default is whichever is here."),
    ] = None,
    json_output: JsonOutput = False,
) -> None:
    """Check connection, clock, certificates, permissions, data source, schema and disk, and say what to do.

    Exit status 0 if all is well, 1 if something is not.

    Examples:

      tacit doctor

      tacit doctor --folder party
    """
    import asyncio

    from tacit.daemon.checkup import check_coordinator, check_member
    from tacit.federation.member.coordinator_folder import FACTS
    from tacit.federation.member.folder import PINNED

    found = _find(folder)
    with working("looking"):
        if (found / FACTS).exists():
            results = asyncio.run(check_coordinator(found))
        else:
            is_node = '"role": "center"' in (found / PINNED).read_text(encoding="utf-8").split('"seat"')[0]
            results = asyncio.run(check_member(found, "center" if is_node else "party"))
    if json_output:
        print(json.dumps([asdict(result) for result in results]))
    for result in () if json_output else results:
        out.print(_line(result), markup=False, soft_wrap=True)
    wrong = [result.what for result in results if not result.is_well]
    if wrong:
        raise RunError(f"not well: {', '.join(wrong)}")


def _line(result: CheckResult) -> str:
    return f"{'ok  ' if result.is_well else 'FAIL'}  {result.what:<14} {' '.join(result.told.split())}"


def _find(folder: Path | None) -> Path:
    from tacit.federation.member.coordinator_folder import FACTS
    from tacit.federation.member.folder import PINNED

    candidates = [folder] if folder is not None else [Path(), Path("party"), Path("center"), Path("coordinator")]
    for candidate in candidates:
        if (candidate / FACTS).exists() or (candidate / PINNED).exists():
            return candidate
    where = "here" if folder is None else f"in {folder}"
    raise SettingError(f"no member's folder was found {where}; name one with --folder")
