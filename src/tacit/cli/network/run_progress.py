"""What `tacit run` shows while a run gets on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tacit.cli.console import err
from tacit.daemon.coordinator.run_event import EventWatcher, RunEvent


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
