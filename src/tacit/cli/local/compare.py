"""`tacit compare`: several methods at several epsilons, side by side."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, folder, number, out
from tacit.cli.local.fit import read_parties
from tacit.errors import SettingError

if TYPE_CHECKING:
    from tacit.studies.compare import Comparison

# Methods that need nothing but the study and its parties.
DEFAULTS = (
    "pooled", "local", "private-newton", "averaging", "objective-perturbation", "functional-mechanism", "noisy-descent",
)  # fmt: skip


def compare_command(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    test: Annotated[Path, typer.Option(help="Records to measure on, which you may see.")],
    party: Annotated[
        list[str] | None, typer.Option("--party", metavar="NAME=FILE", help="A party and its CSV or Parquet file.")
    ] = None,
    methods: Annotated[
        str, typer.Option(metavar="A,B,...", help="Methods; the default is all that need no further data.")
    ] = "",
    epsilons: Annotated[
        str, typer.Option(metavar="E,E,...", help="Epsilons of the private methods.")
    ] = "0.1,0.316,1,3.16",
    repeats: Annotated[int, typer.Option(help="Runs of each, for the error bars.")] = 10,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write comparison.json and the plots.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Compare methods on one study, against epsilon, repeated: accuracy, AUC, loss, calibration, interval widths.

    Examples:

      tacit compare study.toml --party a=a.csv --party b=b.csv --test test.csv

      tacit compare study.toml --party a=a.csv --party b=b.csv --test test.csv --methods averaging --epsilons 0.1,1
    """
    from rich.progress import Progress

    from tacit.data.table import Table
    from tacit.methods import METHODS
    from tacit.report.plain import plain
    from tacit.studies.compare import compare
    from tacit.studies.study import Study

    asked = Study.read(study, known_methods=METHODS)
    names = [name.strip() for name in methods.split(",") if name.strip()] or list(DEFAULTS)
    levels = [number(level) for level in epsilons.split(",") if level.strip()]
    if not levels:
        raise SettingError(f"--epsilons {epsilons!r} names none; give numbers such as 0.1,1")
    tables = read_parties(party or [], asked)
    test_table = Table.from_file(test, asked.schema, ignore=asked.aside)
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("comparing", total=None)
        found = compare(
            asked,
            tables,
            test_table,
            methods=names,
            epsilons=levels,
            repeats=repeats,
            on_cell=lambda k, n, what: progress.update(task, completed=k, total=n, description=what),
        )
    if out_dir is not None:
        _write(found, folder(out_dir))
        err.print(f"wrote comparison.json and its plots to {out_dir}", soft_wrap=True)
    if json_output:
        print(json.dumps(plain(found)))
    else:
        show(found)


def show(found: Comparison) -> None:
    """The comparison as a table."""
    from rich.table import Table as Grid

    from tacit.report.number import widening

    grid = Grid(
        caption=f"The class frequencies alone: accuracy {found.majority_rate:.3f}, AUC 0.5, log-loss "
        f"{found.base_log_loss:.3f}. Interval: the median coefficient's 95 % interval, times the exact fit's width."
    )
    for column in ("method", "epsilon", "accuracy", "AUC", "log-loss", "cal. error", "interval", "runs"):
        is_name = column == "method"
        grid.add_column(column, justify="left" if is_name else "right", no_wrap=is_name, overflow="fold")
    for cell in found.cells:
        epsilon = f"{cell.epsilon:g}" if math.isfinite(cell.epsilon) else "NOT PRIVATE"
        error = f" +- {cell.accuracy.standard_error:.3f}" if cell.repeats > 1 else ""
        figures = [
            f"{cell.accuracy.mean:.3f}{error}",
            "-" if cell.auc is None else f"{cell.auc.mean:.3f}",
            f"{cell.log_loss.mean:.3f}",
            f"{cell.calibration_error.mean:.3f}",
        ]
        width = widening(None if cell.widening is None else cell.widening.mean)
        grid.add_row(cell.method, epsilon, *figures, width, str(cell.repeats))
    out.print(grid)
    for cell in found.cells:
        if cell.not_identified:
            words = f"{cell.not_identified:.1f} coefficients are not identified in a run, on average"
            out.print(f"{cell.method} at epsilon {cell.epsilon:g}: {words}.", soft_wrap=True)


def _write(found: Comparison, directory: Path) -> None:
    from tacit.report.curve import WIDENING, curve_plot
    from tacit.report.plain import plain
    from tacit.storage import write_json, write_whole

    write_json(directory / "comparison.json", plain(found))
    pictures = {"accuracy": "accuracy", "auc": "AUC", "log_loss": "log-loss", "widening": WIDENING}
    for quantity, words in pictures.items():
        curves = found.curves(quantity)
        if curves or quantity in ("accuracy", "log_loss"):
            svg = curve_plot(curves, quantity=words, lines=found.lines(quantity), figure_id=quantity)
            write_whole(directory / f"{quantity}.svg", svg)
