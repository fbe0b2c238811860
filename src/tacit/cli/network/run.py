"""`tacit run`: a study's run with parties that are elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, folder
from tacit.cli.result import show_result
from tacit.visible import shown

if TYPE_CHECKING:
    from tacit.daemon.coordinator.run_record import Run
    from tacit.studies.looking import LookOutcome


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
    extra: dict[str, object] = {"run": finished.run.id, "attempt": finished.run.attempt}
    if finished.outcomes:
        extra["looks"] = [outcome.as_dict() for outcome in finished.outcomes]
    show_result(model, target, as_json=json_output, extra=extra)


class Progress:
    """A run's progress: a live table on a terminal, plain lines elsewhere, and a log beside the results."""

    def __init__(self, study: str, target: Path | None) -> None:
        from rich.live import Live

        self._study = study
        self._states: dict[str, str] = {}
        self._rounds = 0
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

    def began(self, run: Run, *, resumed: bool) -> None:
        """The run has a name."""
        self._title = f"{self._study}, run {run.id}{', resumed' if resumed else ''}"
        self._tell(f"{'resuming' if resumed else 'beginning'} run {run.id} of {self._study}")
        self._write("resumed" if resumed else "began", run=run.id, attempt=run.attempt, study=run.study)

    def party(self, name: str, state: str) -> None:
        """A party's state has changed, or it has answered. What a party says is shown with nothing hidden in it."""
        from tacit.federation.nats.kind import ANSWER, HELLO, NODE, PING

        if state in (HELLO, NODE, PING):
            return
        state = shown(state)
        if state == ANSWER:
            state = f"answered round {self._rounds}"
        elif self._states.get(name) != state:
            self._tell(f"{name}: {state}")
        self._write("party", name=name, state=state)
        self._states[name] = state
        self._show()

    def round(self, number: int, step: str) -> None:
        """A round begins."""
        self._rounds = number
        self._title = f"{self._study}: round {number}, {step}"
        self._write("round", number=number, step=step)
        self._show()

    def lost(self, left: dict[str, str]) -> None:
        """Parties are gone; the run begins again without them."""
        for name, why in left.items():
            self._states.pop(name, None)
            self._tell(f"{name} is left out ({shown(why)}); beginning again with the rest")
            self._write("left", name=name, why=why)

    def looked(self, outcome: LookOutcome) -> None:
        """A look of the study is over."""
        widths = {one.coefficient: one.half_width for one in outcome.reached}
        told = "; ".join(f"{name} {'not identified' if w is None else f'to {w:.3g}'}" for name, w in widths.items())
        why = outcome.why or f"{told or 'it has no goal'}; the study goes on"
        self._tell(f"{outcome.look.words} with {outcome.n_records:,} records: {why}")
        self._write("look", number=outcome.look.number, records=outcome.n_records, why=outcome.why or None)

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
