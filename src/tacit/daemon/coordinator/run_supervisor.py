"""Runs of studies under the coordinator's site: each in a process of its own that can be stopped and resumed.

A run is a deterministic program of questions that were answered or not (`study_run.py`). So it may be killed at any
moment, and the next process goes on where it stopped, at no further cost for what was answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.daemon.coordinator.run_event import RunEvent
from tacit.errors import SettingError, WireError
from tacit.secure.center.child import ChildProcess
from tacit.storage import make_private_folder, write_whole

_PROGRAM = ("-m", "tacit.daemon.coordinator.run_process")
MOST_RUNS = 4  # at once: each is a process with its own connection

OnEvent = Callable[[str, RunEvent], None]


@dataclass
class _Running:
    child: ChildProcess
    reader: threading.Thread
    is_stopped: bool = False


class RunSupervisor:
    """The runs that are under way.

    Guarantees:
        A study has one process at most. `on_event` is told, in a thread of its own, whatever a run tells, and last of
        all "finished" or "ended", unless the run was stopped here.
    """

    def __init__(self, folder: Path, on_event: OnEvent) -> None:
        """Run studies of the coordinator whose folder this is."""
        self._folder = folder
        self._on_event = on_event
        self._runs: dict[str, _Running] = {}
        self._lock = threading.Lock()

    def results(self, digest: str) -> Path:
        """Where the result of a study is written."""
        return self._folder / "results" / digest

    def is_running(self, digest: str) -> bool:
        """Whether a process runs this study."""
        with self._lock:
            return digest in self._runs

    def start(self, digest: str, text: str, *, wait: float) -> None:
        """Begin a run of the study with this digest and text, or resume the one that did not end."""
        with self._lock:
            if digest in self._runs:
                return
            if len(self._runs) >= MOST_RUNS:
                raise SettingError(f"{MOST_RUNS} runs are under way, which is the most; wait until one has ended")
            results = make_private_folder(self.results(digest))
            write_whole(results / "study.toml", text)
            arguments = (str(self._folder), str(results / "study.toml"), str(results), f"{wait!r}")
            child = ChildProcess(_PROGRAM, arguments, results / "process.log")
            reader = threading.Thread(target=self._read, args=(digest,), daemon=True)
            self._runs[digest] = _Running(child=child, reader=reader)
            reader.start()

    def stop(self, digest: str) -> bool:
        """Stop a run; it can be resumed. False if there was none."""
        with self._lock:
            found = self._runs.get(digest)
            if found is None:
                return False
            found.is_stopped = True
            found.child.kill()
        found.reader.join()
        return True

    def close(self) -> None:
        """Stop all runs; the next start of the site resumes them."""
        for digest in [*self._runs]:
            self.stop(digest)

    def _read(self, digest: str) -> None:
        with self._lock:
            running = self._runs[digest]
        last: RunEvent | None = None
        while True:
            try:
                last = RunEvent.decode(running.child.pipe.recv_bytes())
            except (EOFError, OSError, WireError):
                break
            self._on_event(digest, last)
        running.child.pipe.close()
        running.child.join()
        with self._lock:
            del self._runs[digest]
        if not running.is_stopped and (last is None or last.kind not in ("finished", "ended")):
            why = "the run's process ended; what it printed is in process.log in the folder of its results"
            self._on_event(digest, RunEvent(kind="ended", words=why))
