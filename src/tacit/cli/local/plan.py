"""`tacit plan`: what a study would spend and reveal, and how good its model would be, before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, folder, number, out
from tacit.cli.local.looks import rehearse_looks, show_looks
from tacit.cli.local.outlook import needed_words, show, write_outlook
from tacit.errors import SettingError

if TYPE_CHECKING:
    from tacit.data.synthetic import PublicGuess
    from tacit.methods import Method
    from tacit.studies.forecast import Outlook
    from tacit.studies.look_forecast import LooksForecast
    from tacit.studies.power import RecordsNeeded
    from tacit.studies.rehearsal import Rehearsal
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
    positive: Annotated[
        float | None,
        typer.Option(
            parser=number, metavar="P", help="Of made-up records: the positive class's share.  [default: 0.5]"
        ),
    ] = None,
    plain_accuracy: Annotated[
        float | None,
        typer.Option(
            parser=number, metavar="A", help="Of made-up records: what the best model reaches.  [default: 0.8]"
        ),
    ] = None,
    plain_auc: Annotated[
        float | None,
        typer.Option(parser=number, metavar="A", help="The same as an AUC: the better guess if a class is rare."),
    ] = None,
    typical: Annotated[
        list[str] | None,
        typer.Option(
            "--typical",
            metavar="NAME=MEAN,SD",
            help="Of made-up records: a column's mean and deviation, or the shares of its categories.",
        ),
    ] = None,
    half_width: Annotated[
        float | None,
        typer.Option(
            parser=number, metavar="W", help="How many records give --coefficient's interval this half-width?"
        ),
    ] = None,
    coefficient: Annotated[
        str | None, typer.Option(metavar="TERM", help="The coefficient of --half-width, as the table names it.")
    ] = None,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write forecast.json and plots against epsilon.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Tell what a study would spend and reveal, and forecast its run; reads no party's data.

    With `--records` the run is rehearsed on records that are nobody's secret: rounds, bytes and time, and at several
    epsilons the expected accuracy, AUC, log-loss, calibration, and width of each coefficient's interval. Widths rest on
    how far columns spread, how common categories are and how columns go together. Public records tell that best.
    `--typical` tells the first two, such as a published mean and standard deviation. Made-up records have two
    shapes, so that there are two guesses of AUC and widths. They are no bounds.

    Of a study with looks (`[stop]`) it tells what each costs, and how likely it is to end the study.

    Examples:

      tacit plan study.toml

      tacit plan study.toml --method averaging --epsilon 0.5

      tacit plan study.toml --records north=5000 --records south=3000 --epsilons 0.1,1 --out forecast

      tacit plan study.toml --records north=5000 --positive 0.12 --plain-auc 0.8

      tacit plan study.toml --records north=5000 --typical age=54,9 --typical smoker=0.2

      tacit plan study.toml --records north=5000 --coefficient age --half-width 0.01
    """
    from tacit.data.synthetic import PublicGuess
    from tacit.data.typical import TypicalValue
    from tacit.methods import METHODS
    from tacit.studies.run import method_of
    from tacit.studies.study import Study

    asked = Study.read(study, known_methods=METHODS)
    model = method_of(asked, method=method, epsilon=epsilon)
    model.guarantee  # noqa: B018  # refuses bad settings before anything is rehearsed
    if (half_width is None) != (coefficient is None):
        raise SettingError("--half-width and --coefficient belong together; give both or neither")
    if records is None and half_width is not None:
        raise SettingError("--half-width needs the parties to begin with; give each party's size: --records NAME=N")
    outlook = needed = looks = None
    if records:
        own = [] if epsilon is None else [epsilon]
        levels = own + [number(level) for level in epsilons.split(",") if level.strip()]
        given = tuple(TypicalValue.parse(text) for text in typical or ())
        guess = PublicGuess(positive_share=positive, accuracy=plain_accuracy, auc=plain_auc, typical=given)
        rehearsal = _rehearsal(asked, method, _sizes(records), public, guess)
        outlook = _rehearse(rehearsal, levels)
        if half_width is not None and coefficient is not None:
            needed = _solve(rehearsal, coefficient, half_width, epsilon)
        looks = rehearse_looks(rehearsal) if epsilon is None else None
        if out_dir is not None:
            write_outlook(outlook, folder(out_dir), coefficient)
            err.print(f"wrote forecast.json and its plots to {out_dir}", soft_wrap=True)
    if json_output:
        print(json.dumps(_facts(asked, model, outlook, needed) | _look_facts(asked, looks)))
        return
    _tell(asked, model)
    if outlook is None:
        out.print("For a forecast of rounds, bytes, time and accuracy give each party's size: --records NAME=N")
    else:
        show(outlook)
    show_looks(asked, looks)
    if needed is not None:
        out.print(needed_words(needed), soft_wrap=True)


def _rehearsal(
    asked: Study,
    method: str | None,
    sizes: dict[str, int],
    public: Path | None,
    guess: PublicGuess,
) -> Rehearsal:
    from tacit.data.table import Table
    from tacit.studies.rehearsal import Rehearsal

    records = None if public is None else Table.from_file(public, asked.schema, ignore=asked.aside)
    return Rehearsal(study=asked, sizes=sizes, method=method, public=records, guess=guess)


def _rehearse(rehearsal: Rehearsal, levels: list[float]) -> Outlook:
    from rich.progress import Progress

    from tacit.studies.forecast import outlook_of

    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("rehearsing", total=None)
        return outlook_of(
            rehearsal,
            levels,
            lambda k, n, what: progress.update(task, completed=k, total=n, description=f"rehearsing {what}"),
        )


def _solve(rehearsal: Rehearsal, term: str, half_width: float, epsilon: float | None) -> RecordsNeeded:
    from tacit.studies.power import records_needed

    with err.status("rehearsing ...") as status:
        return records_needed(
            rehearsal,
            term=term,
            half_width=half_width,
            epsilon=epsilon,
            on_run=lambda what: status.update(f"rehearsing with {what}"),
        )


def _facts(asked: Study, model: Method, outlook: Outlook | None, needed: RecordsNeeded | None) -> dict[str, object]:
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
        "records_needed": None if needed is None else plain(needed),
    }


def _look_facts(asked: Study, looks: LooksForecast | None) -> dict[str, object]:
    from tacit.report.plain import plain
    from tacit.studies.looks import planned_looks

    if asked.stop is None:
        return {}
    return {"looks": plain(planned_looks(asked)), "look_forecast": None if looks is None else plain(looks)}


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
