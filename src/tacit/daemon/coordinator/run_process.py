"""One run of a study in a process of its own, which may be killed at any moment: the next one resumes it.

Its arguments are the pipe's descriptor, the coordinator's folder, the study file, the folder for the result, and for
how many seconds it waits for parties. It tells events over the pipe, and ends with "finished" or "ended".
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path

from tacit.daemon.coordinator.run_event import EventWatcher, RunEvent
from tacit.daemon.coordinator.study_run import StudyRun
from tacit.errors import TacitError
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.methods import METHODS
from tacit.secure.center.child import end_with
from tacit.studies.export import write_exports
from tacit.studies.result import write_result
from tacit.studies.study import Study


def main(arguments: list[str]) -> None:
    """Run the study to its end."""
    pipe = Connection(int(arguments[0]))
    end_with(pipe)

    def tell(event: RunEvent) -> None:
        pipe.send_bytes(event.encode())

    try:
        run(Path(arguments[1]), Path(arguments[2]), Path(arguments[3]), float(arguments[4]), EventWatcher(tell))
    except TacitError as error:
        tell(RunEvent(kind="ended", words=str(error)))
    else:
        tell(RunEvent(kind="finished"))


def run(folder: Path, study: Path, results: Path, wait: float, watcher: EventWatcher) -> None:
    """Run a study file, or resume its run, and write the result."""
    asked = Study.read(study, known_methods=METHODS)
    own = CoordinatorFolder(folder)
    call = StudyRun(own, asked, watcher)
    try:
        finished = call(wait=wait)
    finally:
        call.close()
        own.close()
    write_result(finished.model, results, finished.facts)
    write_exports(finished.model, results)


if __name__ == "__main__":
    main(sys.argv[1:])
