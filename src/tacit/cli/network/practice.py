"""`tacit practice`: a whole federation on this machine, to learn on."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import err, out
from tacit.cli.console import folder as made_folder

if TYPE_CHECKING:
    from tacit.daemon.practice.federation import PracticeFederation

_PROGRAM = "tacit.cli.network.practice_child"
_LOOK_SECONDS = 0.5


def practice(
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Where to keep it; the default is a temporary one.")
    ] = None,
    opted_in: Annotated[
        bool, typer.Option("--opted-in", help="Let all parties opt in, so that the study can run at once.")
    ] = False,
    no_web: Annotated[bool, typer.Option("--no-web", help="Start the daemons without their sites.")] = False,
) -> None:
    """Start a whole federation on this machine to learn on: server, center, three hospitals with data, a study.

    Everything listens on this machine only. Ctrl-C stops all of it and clears it away; a folder that you name is kept,
    and starts again where it was.

    Examples:

      tacit practice

      tacit practice --folder practice --opted-in
    """
    began = time.monotonic()

    def tell(what: str) -> None:
        err.print(f"[{time.monotonic() - began:4.1f} s] {what}", soft_wrap=True)

    tell("a federation to practise on; Ctrl-C clears it away")
    with _interrupted_by_signals(), _place(folder) as place:
        from tacit.daemon.practice.federation import PracticeFederation

        federation = PracticeFederation(place, _PROGRAM, tell)
        try:
            federation.start()
            if opted_in:
                federation.opt_everybody_in()
            tell("ready")
            _show(federation)
            while True:
                federation.check()
                time.sleep(_LOOK_SECONDS)
        except KeyboardInterrupt:
            tell("stopping")
        finally:
            _end(federation)
    tell("all is stopped" + (" and cleared away" if folder is None else f"; it is kept in {folder}"))


def _show(federation: PracticeFederation) -> None:
    """What is where, and what to try."""
    from rich.table import Table

    from tacit.daemon.practice.material import LATER, NODES, PARTIES, STUDY_FILE

    place = federation.folder
    table = Table("who", "is what", "folder", "log")
    table.add_row("coordinator", "runs studies", "coordinator", "coordinator.log")
    for name in NODES:
        table.add_row(name, "adds up", name, f"{name}.log")
    for name in PARTIES:
        table.add_row(name, "has patients", name, f"{name}.log")
    table.add_row(LATER, "may join later", f"{LATER}.invite", f"{LATER}.csv")
    out.print(table)
    out.print(f"cd {place}", soft_wrap=True)
    out.print("tacit party studies --folder north", soft_wrap=True)
    out.print("tacit party opt-in tumours --folder north", soft_wrap=True)
    out.print(f"tacit run {STUDY_FILE} --wait 600", soft_wrap=True)
    out.print("ready")


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    """The folder that was named, or one that is gone afterwards."""
    if folder is not None:
        yield made_folder(folder, "--folder").resolve()
        return
    with tempfile.TemporaryDirectory(prefix="tacit-practice-") as made:
        yield Path(made)


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Within this, a request to end is what Ctrl-C is; so is a terminal that closes."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(federation: PracticeFederation) -> None:
    """Stop everything, and let nobody interrupt that."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        federation.close()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
