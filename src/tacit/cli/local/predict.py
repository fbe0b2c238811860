"""`tacit predict`: a model's chances for records in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import err, working
from tacit.errors import SettingError


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL.json", help="A model file, as `tacit fit --out` writes it.")],
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="Records to predict: CSV, TSV or Parquet.")],
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Copy this column, such as an id, into the result.")
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write a CSV file; the default prints it.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of CSV.")] = False,
) -> None:
    """Predict the records of a file: the likeliest class, and the chance of each class.

    The file has the columns of the model's study, in their own units, and may have others. Nothing leaves this machine.

    Examples:

      tacit predict results/model.json new.csv

      tacit predict results/model.json new.csv --keep patient --out chances.csv
    """
    from tacit.data.rows import read_frame
    from tacit.methods import load
    from tacit.storage import write_whole

    fitted = load(model)
    with working("predicting"):
        frame = read_frame(rows, fitted.schema_.feature_names)
        for name in keep or []:
            if name not in frame:
                raise SettingError(f"--keep {name!r} is no column of {rows.name}; it has {', '.join(frame.columns)}")
        told = frame[keep or []].copy()
        chances = fitted.predict_proba(frame)
        told["predicted"] = fitted.classes_[chances.argmax(axis=1)]
        for position, label in enumerate(fitted.classes_):
            told[f"chance of {label}"] = chances[:, position]
    text = told.to_json(orient="records", lines=True) if json_output else told.to_csv(index=False)
    if out_file is None:
        sys.stdout.write(text)
        return
    write_whole(out_file, text)
    err.print(f"wrote {len(told):,} predictions to {out_file}", markup=False)
