"""`tacit run`: a study's run with parties that are elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import err, folder
from tacit.cli.result import show_result
from tacit.daemon.coordinator.run_event import EventWatcher, RunEvent


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


class Progress(EventWatcher):
    """A run's progress: a live table on a terminal, plain lines elsewhere, and a log beside the results."""

    def __init__(self, study: str, target: Path | None) -> None:
        from rich.live import Live

        super().__init__(self._take)
        self._study = study
        self._states: dict[str, str] = {}
        self._title = study
        self._live = Live(console=err, transient=True, refresh_per_second=4) if err.is_terminal else None
        self._log = None if target is None else (target / "log.jsonl").open("a", encoding="utf-8")

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._write("ended", why=None if error is None else str(error))
        if self._live is not None:
            self._live.stop()
        if self._log is not None:
            self._log.close()

    def _take(self, event: RunEvent) -> None:
        match event.kind:
            case "began" | "resumed":
                doing = "resuming" if event.kind == "resumed" else "beginning"
                self._title = f"{self._study}, run {event.words}{', resumed' if event.kind == 'resumed' else ''}"
                self._tell(f"{doing} run {event.words} of {self._study}")
                self._write(event.kind, run=event.words, attempt=event.attempt)
            case "round":
                self._title = f"{self._study}: round {event.round}, {event.words}"
                self._write("round", number=event.round, step=event.words)
            case "answered" | "party":
                if event.kind == "party" and self._states.get(event.party) != event.words:
                    self._tell(f"{event.party}: {event.words}")
                self._states[event.party] = event.words
                self._write("party", name=event.party, state=event.words)
            case "left":
                self._states.pop(event.party, None)
                self._tell(f"{event.party} is left out ({event.words}); beginning again with the rest")
                self._write("left", name=event.party, why=event.words)
            case "look":
                self._tell(event.words)
                self._write("look", words=event.words)
        if event.kind in ("round", "answered", "party"):
            self._show()

    def _tell(self, line: str) -> None:
        if self._live is None:
            print(f"tacit: {line}", file=sys.stderr, flush=True)

    def _show(self) -> None:
        from rich.table import Table as Grid

        if self._live is None:
            return
        grid = Grid(title=self._title)
        grid.add_column("party")
        grid.add_column("state", overflow="fold")
        for name, state in sorted(self._states.items()):
            grid.add_row(name, state)
        self._live.update(grid)

    def _write(self, event: str, **facts: str | int | None) -> None:
        if self._log is not None:
            line = {"event": event, **{key: value for key, value in facts.items() if value is not None}}
            self._log.write(json.dumps(line) + "\n")
            self._log.flush()
