"""`tacit plan`: what a study would spend and reveal, and how good its model would be, before anything is spent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, folder, number, out
from tacit.errors import SettingError

if TYPE_CHECKING:
    from tacit.methods import Method
    from tacit.studies.forecast import Outlook
    from tacit.studies.study import Study


def plan(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    method: Annotated[str | None, typer.Option(help="Another method than the study's.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(parser=number, metavar="E", help="Another epsilon than the study's.")
    ] = None,
    records: Annotated[
        list[str] | None,
        typer.Option("--records", metavar="NAME=N", help="A party and its number of records: adds a forecast."),
    ] = None,
    epsilons: Annotated[
        str, typer.Option(metavar="E,E,...", help="Further epsilons to forecast.")
    ] = "0.1,0.316,1,3.16",
    public: Annotated[
        Path | None, typer.Option(help="Public records of the study's columns to rehearse on; else they are made up.")
    ] = None,
    plain_accuracy: Annotated[
        float, typer.Option(help="Of made-up records: what the best model of them reaches.")
    ] = 0.8,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write forecast.json and forecast.svg.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Tell what a study would spend and reveal, and forecast its run; reads no party's data.

    With `--records` the run is rehearsed on records that are nobody's secret: rounds, bytes, time and the expected
    accuracy, at several epsilons.

    Examples:

      tacit plan study.toml

      tacit plan study.toml --method averaging --epsilon 0.5

      tacit plan study.toml --records north=5000 --records south=3000 --epsilons 0.1,1 --out forecast
    """
    from tacit.methods import METHODS
    from tacit.studies.run import method_of
    from tacit.studies.study import Study

    asked = Study.read(study, known_methods=METHODS)
    model = method_of(asked, method=method, epsilon=epsilon)
    model.guarantee  # noqa: B018  # refuses bad settings before anything is rehearsed
    outlook = None
    if records:
        levels = [number(level) for level in epsilons.split(",") if level.strip()]
        levels = levels if epsilon is None else [epsilon, *levels]
        outlook = _rehearse(asked, method, _sizes(records), levels, public, plain_accuracy)
        if out_dir is not None:
            _write(outlook, folder(out_dir))
    if json_output:
        print(json.dumps(_facts(asked, model, outlook)))
        return
    _tell(asked, model)
    if outlook is None:
        out.print("For a forecast of rounds, bytes, time and accuracy give each party's size: --records NAME=N")
    else:
        show(outlook)


def _rehearse(
    asked: Study,
    method: str | None,
    sizes: dict[str, int],
    levels: list[float],
    public: Path | None,
    plain_accuracy: float,
) -> Outlook:
    from rich.progress import Progress

    from tacit.data.table import Table
    from tacit.studies.forecast import forecast

    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("rehearsing", total=None)
        return forecast(
            asked,
            sizes,
            method=method,
            epsilons=levels,
            public=None if public is None else Table.from_file(public, asked.schema),
            plain_accuracy=plain_accuracy,
            on_run=lambda k, n, what: progress.update(task, completed=k, total=n, description=f"rehearsing {what}"),
        )


def _facts(asked: Study, model: Method, outlook: Outlook | None) -> dict[str, object]:
    from tacit.privacy.event import to_json
    from tacit.report.plain import plain

    return {
        "study": asked.name,
        "method": model.name,
        "guarantee": model.guarantee.as_dict() if model.guarantee.is_private else None,
        "event": to_json(model.event()),
        "columns": list(asked.schema.column_names),
        "radius": asked.schema.radius,
        "reveals": model.headings(),
        "forecast": None if outlook is None else plain(outlook),
    }


def _tell(asked: Study, model: Method) -> None:
    from tacit.report.text import who_saw_what_text

    schema = asked.schema
    lines = [
        f"Study     {asked.name}: {asked.purpose}",
        f"Predicts  {schema.target.name} ({', '.join(schema.target.classes)})",
        f"From      {len(schema.feature_names)} features, {schema.n_columns} encoded columns",
        f"Method    {model.name}",
        f"Spends    {model.guarantee.plain_words()}",
        "",
        who_saw_what_text(model.headings()),
    ]
    out.print("\n".join(lines), markup=False, soft_wrap=True)


def show(outlook: Outlook) -> None:
    """The forecasts as a table."""
    from rich.table import Table as Grid

    from tacit.report.number import byte_count, duration

    grid = Grid(
        title=f"Forecast of {outlook.forecasts[0].method}",
        caption=f"Rehearsed on {outlook.rehearsed_on}. The exact fit of them reaches {outlook.exact_accuracy:.3f}, "
        f"always answering the commonest class {outlook.majority_rate:.3f}.",
    )
    for column in ("epsilon", "accuracy", "lost to noise", "rounds", "bytes", "time"):
        grid.add_column(column, justify="right")
    for found in outlook.forecasts:
        grid.add_row(
            f"{found.epsilon:g}" if math.isfinite(found.epsilon) else "NOT PRIVATE",
            f"{found.accuracy.mean:.3f} +- {found.accuracy.standard_error:.3f}",
            f"{found.loss_of_accuracy:.3f}",
            str(found.rounds),
            byte_count(found.n_bytes),
            duration(found.seconds),
        )
    out.print(grid)
    for found in outlook.forecasts:
        if not found.is_useful:
            out.print(
                f"At epsilon {found.epsilon:g} the model would be no better than always answering the commonest class: "
                f"the study needs more records, fewer columns or a larger epsilon.",
                markup=False,
                soft_wrap=True,
            )


def _write(outlook: Outlook, directory: Path) -> None:
    from tacit.report.curve import curve_plot
    from tacit.report.plain import plain
    from tacit.storage import write_json, write_whole

    write_json(directory / "forecast.json", plain(outlook))
    if outlook.curve():
        lines = {"exact fit": outlook.exact_accuracy, "commonest class": outlook.majority_rate}
        curves = {outlook.forecasts[0].method: outlook.curve()}
        svg = curve_plot(curves, quantity="expected accuracy", lines=lines, figure_id="forecast")
        write_whole(directory / "forecast.svg", svg)


def _sizes(records: list[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for entry in records:
        name, _, count = entry.partition("=")
        if not name or not count.isdecimal() or int(count) < 1:
            raise SettingError(f"--records {entry!r} must read NAME=N with N at least 1, such as north=5000")
        if name in sizes:
            raise SettingError(f"--records names {name!r} twice; every party has one size")
        sizes[name] = int(count)
    return sizes
