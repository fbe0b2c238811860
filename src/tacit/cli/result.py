"""A fitted model's result, shown; and written as the same four files by every command that fits one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.console import err, out

if TYPE_CHECKING:
    from tacit.methods import Method


def show_result(
    model: Method, directory: Path | None, *, as_json: bool, extra: Mapping[str, object] | None = None
) -> None:
    """Print a fitted model's report, or one JSON object; and write its files if there is a directory for them.

    `extra` are further facts of the run, which come first in the JSON object.
    """
    from tacit.studies.result import result_of, write_result

    try:  # what was spent cannot be asked anew: a full disk takes nothing from the screen, nor a closed pipe the files
        if as_json:
            print(json.dumps(result_of(model, extra)), flush=True)
        else:
            out.print(model.report.text(), markup=False, soft_wrap=True)
    finally:
        if directory is not None:
            write_result(model, directory, extra)
    if directory is not None and not as_json:
        err.print(f"wrote {directory / 'report.html'}, report.txt, model.json and result.json", markup=False)
