"""`tacit doctor`: what is wrong with this member, and what to do about it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.show import out, working
from tacit.daemon.checkup import Finding, check_coordinator, check_member
from tacit.errors import RunError, SettingError
from tacit.federation.net.headquarters import FACTS
from tacit.federation.net.place import PINNED


def doctor(
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="A member's folder; the default is whichever is here."),
    ] = None,
) -> None:
    """Check connection, clock, certificates, permissions, data source, schema and disk, and say what to do.

    Exit status 0 if all is well, 1 if something is not.

    Examples:

      tacit doctor

      tacit doctor --folder party
    """
    place = _find(folder)
    with working("looking"):
        if (place / FACTS).exists():
            findings = asyncio.run(check_coordinator(place))
        else:
            is_node = '"role": "center"' in (place / PINNED).read_text(encoding="utf-8").split('"seat"')[0]
            findings = asyncio.run(check_member(place, "center" if is_node else "party"))
    for finding in findings:
        out.print(_line(finding), markup=False, soft_wrap=True)
    wrong = [finding.what for finding in findings if not finding.is_well]
    if wrong:
        raise RunError(f"not well: {', '.join(wrong)}")


def _line(finding: Finding) -> str:
    return f"{'ok  ' if finding.is_well else 'FAIL'}  {finding.what:<14} {' '.join(finding.told.split())}"


def _find(folder: Path | None) -> Path:
    candidates = [folder] if folder is not None else [Path(), Path("party"), Path("center"), Path("coordinator")]
    for candidate in candidates:
        if (candidate / FACTS).exists() or (candidate / PINNED).exists():
            return candidate
    where = "here" if folder is None else f"in {folder}"
    raise SettingError(f"no member's folder was found {where}; name one with --folder")
