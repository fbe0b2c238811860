"""`tacit fit`: one study, run on files that are on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.console import folder, number, tell_counts, watching, working
from tacit.cli.result import show_result
from tacit.errors import SettingError, StudyError

if TYPE_CHECKING:
    from tacit.data.table import Table
    from tacit.methods import Method
    from tacit.studies.study import Study


def fit(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    party: Annotated[
        list[str] | None, typer.Option("--party", metavar="NAME=FILE", help="A party and its CSV or Parquet file.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Records to measure the model on, which you may see.")] = None,
    method: Annotated[
        str | None, typer.Option(help="Another method than the study's; `tacit methods` lists them.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(parser=number, metavar="E", help="Another epsilon than the study's.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Keep what is spent in this file; the default forgets it.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write model.json, report.html, report.txt and result.json."),
    ] = None,
) -> None:
    """Fit a study's model from the parties' files.

    The files are all on this machine, so this is a simulation of a federation: every value still passes the parties'
    guards, is charged to a ledger and counted. Of a study with looks (`[stop]`) the parties join in the order given.

    Examples:

      tacit fit study.toml --party north=north.csv --party south=south.parquet

      tacit fit study.toml --party a=a.csv --party b=b.csv --test test.csv --epsilon 0.5 --out results

      tacit fit study.toml --party a=a.csv --party b=b.csv --method pooled --json
    """
    from tacit.data.table import Table
    from tacit.federation.federation import Federation
    from tacit.federation.policy import Policy
    from tacit.methods import METHODS
    from tacit.privacy.ledger import Ledger
    from tacit.studies.result import named_after
    from tacit.studies.run import method_of
    from tacit.studies.study import Study

    asked = Study.read(study, known_methods=METHODS)
    model = method_of(asked, method=method, epsilon=epsilon)
    model.guarantee  # noqa: B018  # refuses bad settings before any file is read
    tables = read_parties(party or [], asked)
    test_table = None if test is None else Table.from_file(test, asked.schema, ignore=asked.aside)
    if out_dir is not None:
        folder(out_dir)
    given: dict[str, Any] = {
        "policy": Policy(not_private=[model.name]),  # whoever runs this holds every party's file already
        "ledger": None if ledger is None else Ledger(ledger),
    }
    if asked.stop is not None and method is None:
        model = _fitted_in_looks(asked, epsilon, tables, given)
    else:
        dropouts = asked.federation.dropouts_among(len(tables))
        parties = Federation.from_tables(tables, study=asked.name, dropouts=dropouts, **given)
        with watching(parties, f"fitting {model.name}"):
            model.fit(parties)
    named_after(model, asked)
    if test_table is not None:
        model.evaluate(test_table)
    show_result(model, out_dir, as_json=json_output)


def _fitted_in_looks(
    study: Study, epsilon: float | None, tables: Mapping[str, Table], given: Mapping[str, Any]
) -> Method:
    """The model of the look at which the study stops; parties join in the order in which they were given."""
    from tacit.studies.looking import fit_in_looks

    if epsilon is not None and study.privacy is not None:
        study = replace(study, privacy=replace(study.privacy, epsilon=epsilon))
    with working("fitting in looks"):
        return fit_in_looks(study, tables, **given).model


def read_parties(pairs: list[str], study: Study) -> dict[str, Table]:
    """The tables of the parties given as NAME=FILE, and a word about what encoding did to them."""
    from tacit.data.table import Table
    from tacit.federation.split import check_files

    files = _parse_parties(pairs, study)
    check_files(files)
    with working("reading"):
        tables = {name: Table.from_file(path, study.schema, person=study.person) for name, path in files.items()}
    tell_counts(tables)
    return tables


def _parse_parties(pairs: list[str], study: Study) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise SettingError(f"--party {pair!r} is not of the form NAME=FILE, such as --party north=north.csv")
        if name in files:
            raise SettingError(f"--party {name!r} is given twice; every party needs a name of its own")
        files[name] = Path(path)
    if not files:
        raise SettingError("no party was given; add --party NAME=FILE for each, such as --party north=north.csv")
    expected = study.federation.parties
    if expected is not None:
        strangers = [name for name in files if name not in expected]
        if strangers:
            raise StudyError(f"party {strangers[0]!r} is not in the study, which names {', '.join(expected)}")
    quorum = study.federation.quorum
    if quorum is not None and len(files) < quorum:
        raise StudyError(f"the study needs {quorum} parties and {len(files)} were given; add --party NAME=FILE")
    return files
