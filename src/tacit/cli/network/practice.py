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
    from tacit.web.practice import PracticeSites

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

    Each has a site of its own; addresses and passwords are printed. Everything listens on this machine only. Ctrl-C
    stops all of it and clears it away; a folder that you name is kept, and starts again where it was.

    Examples:

      tacit practice

      tacit practice --folder practice --opted-in --no-web
    """
    began = time.monotonic()

    def tell(what: str) -> None:
        err.print(f"[{time.monotonic() - began:4.1f} s] {what}", soft_wrap=True)

    tell("a federation to practise on; Ctrl-C clears it away")
    with _interrupted_by_signals(), _place(folder) as place:
        from tacit.daemon.practice.federation import PracticeFederation

        federation = PracticeFederation(place, _PROGRAM, tell)
        try:
            sites = None if no_web else _sites(federation)
            federation.start(_nothing if sites is None else sites.options)
            if opted_in:
                federation.opt_everybody_in()
            tell("ready")
            _show(federation, sites)
            while True:
                federation.check()
                time.sleep(_LOOK_SECONDS)
        except KeyboardInterrupt:
            tell("stopping")
        finally:
            _end(federation)
    tell("all is stopped" + (" and cleared away" if folder is None else f"; it is kept in {folder}"))


def _nothing(role: str, folder: Path) -> list[str]:
    """What a daemon without a site is told."""
    return []


def _sites(federation: PracticeFederation) -> PracticeSites:
    from tacit.web.practice import PracticeSites

    return PracticeSites(is_new=federation.is_new)


def _show(federation: PracticeFederation, sites: PracticeSites | None) -> None:
    """What is where, and what to try."""
    from rich.table import Table

    from tacit.daemon.practice.material import LATER, NODES, PARTIES

    if sites is None:
        table = Table("who", "is what", "folder", "log")
        table.add_row("coordinator", "runs studies", "coordinator", "coordinator.log")
        for name in NODES:
            table.add_row(name, "adds up", name, f"{name}.log")
        for name in PARTIES:
            table.add_row(name, "has patients", name, f"{name}.log")
    else:
        table = Table("site of", "address", "log in as", "password, good once")
        for entry in sites.entries:
            table.add_row(entry.whose, entry.url, entry.account, entry.password or "the one that you chose")
    out.print(table)
    steps = _steps_by_command() if sites is None else _steps_in_browser()
    out.print("\n".join([f"in {federation.folder}:", *steps]), soft_wrap=True)
    out.print(f"{LATER} may join later: tacit party init --invite {LATER}.invite --data {LATER}.csv --folder {LATER}")
    out.print("ready")


def _steps_by_command() -> list[str]:
    from tacit.daemon.practice.material import STUDY_FILE

    return [
        "  tacit party show readmission --folder north",
        "  tacit party opt-in readmission --folder north",
        f"  tacit run {STUDY_FILE} --wait 600",
    ]


def _steps_in_browser() -> list[str]:
    from tacit.daemon.practice.material import APPROVER, APPROVER_FOLDER, AUTHOR

    return [
        "  1. at north's site: read the study readmission, accept the others, take part; then at south's and west's",
        f"  2. at the coordinator's site, as {AUTHOR}: start the run and watch it",
        f"  3. write a study of your own as {AUTHOR}; {APPROVER} signs it with the key in {APPROVER_FOLDER}/",
    ]


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
