"""`tacit export`: a model for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import JsonOutput, err
from tacit.errors import SettingError


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL.json", help="What `fit`, `run` or a study's page wrote.")],
    to: Annotated[str, typer.Option(metavar="onnx|csv", help="An ONNX file that predicts, or the coefficients.")],
    out_file: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")],
    json_output: JsonOutput = False,
) -> None:
    """Write a model for other programs: ONNX, or its coefficients as CSV.

    The ONNX file takes records in the columns' own units: a number or a text for each feature. The CSV file has the
    regression table in original units.

    Examples:

      tacit export results/model.json --to onnx -o heart.onnx

      tacit export results/model.json --to csv -o heart.csv
    """
    from tacit.methods import load
    from tacit.storage import write_whole
    from tacit.studies.export import EXPORTS

    if to not in EXPORTS:
        raise SettingError(f"--to {to!r} is unknown; choose one of {', '.join(EXPORTS)}")
    content = EXPORTS[to](load(model))
    write_whole(out_file, content)
    if json_output:
        print(json.dumps({"file": str(out_file), "bytes": len(content)}))
        return
    err.print(f"wrote {out_file}, {len(content):,} bytes", markup=False, soft_wrap=True)
