"""`tacit run`: a study's run with parties that are elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import folder
from tacit.cli.result import show_result


def run(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")],
    coordinator: Annotated[Path, typer.Option("--folder", metavar="DIR", help="The coordinator's folder.")] = Path(
        "coordinator"
    ),
    test: Annotated[Path | None, typer.Option(help="Records to measure the model on, which you may see.")] = None,
    wait: Annotated[float | None, typer.Option(metavar="SECONDS", help="How long parties may take to opt in.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin a new run, even if one could be resumed.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write model.json, report.html, report.txt, result.json, log.jsonl."),
    ] = None,
) -> None:
    """Run a study between the members of a federation.

    The study is announced, and parties that have opted in are waited for. A run that was interrupted is resumed: what
    was answered is not asked anew. If a party leaves, the run begins again with the rest, down to the quorum.

    A study with looks (`[stop]`) goes through them, each when its records are enrolled, and stops when it is precise
    enough. Where too few are enrolled it ends with a line that says so; run it again later.

    Examples:

      tacit run study.toml --out results

      tacit run study.toml --wait 600 --json
    """
    from tacit.cli.network.run_progress import Progress
    from tacit.daemon.coordinator.study_run import StudyRun
    from tacit.data.table import Table
    from tacit.federation.member.coordinator_folder import CoordinatorFolder
    from tacit.methods import METHODS
    from tacit.studies.study import Study

    asked = Study.read(study, known_methods=METHODS)
    test_table = None if test is None else Table.from_file(test, asked.schema, ignore=asked.aside)
    own = CoordinatorFolder(coordinator)
    target = None if out_dir is None else folder(out_dir)
    with Progress(asked.name, target) as progress:
        call = StudyRun(own, asked, progress)
        try:
            finished = call(wait=wait, fresh=new)
        finally:
            call.close()
            own.close()
    model = finished.model
    if test_table is not None:
        model.evaluate(test_table)
    show_result(model, target, as_json=json_output, extra=finished.facts)
