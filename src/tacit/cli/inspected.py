"""What a look through an owner's own records came to, as `tacit check` and `tacit party check` tell it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from tacit.cli.console import out

if TYPE_CHECKING:
    from tacit.data.inspection import Inspection


def show_inspected(found: Sequence[Inspection], study: str, *, json_output: bool, as_list: bool) -> None:
    """Tell of each table whether it fits, and what does not; exit status 2 if one does not fit."""
    if json_output:
        forms = [{**asdict(one), "fits": one.fits} for one in found]
        print(json.dumps(forms if as_list else forms[0]))
    else:
        for one in found:
            out.print("\n".join(one.lines()), markup=False, soft_wrap=True)
            out.print(f"{one.file}: {'fits' if one.fits else 'does not fit'} {study}", markup=False, soft_wrap=True)
    if not all(one.fits for one in found):
        raise typer.Exit(2)
