"""A daemon's life in a process of its own, for tests: forked from a clean server process, not from the tests' own.

The tests' process has run whatever other tests ran (engines, networks, threads, connections), and a fork of it would
inherit all that half alive. The server has imported what daemons need and done nothing, so its forks start at once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.daemon.center.handler import NodeHandler
from tacit.daemon.coordinator.server import CoordinatorDaemon
from tacit.daemon.party.handler import PartyHandler
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.member.folder import MemberFolder
from tacit.federation.nats.journal import Journal
from tacit.federation.nats.service import MemberService, stop_on_signals

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "tacit.daemon.coordinator.server",
        "tacit.daemon.center.handler",
        "tacit.daemon.party.handler",
        "tacit.daemon.coordinator.study_run",
        "tacit.methods",
    ]
)

Handler = Callable[[MemberFolder, Journal], Any]

_HANDLERS: dict[str, Handler] = {"party": PartyHandler, "center": NodeHandler}


def live(root: Path, name: str, kind: str, handler: Handler | None, faults: dict[str, float]) -> None:
    """Be the daemon `name` until a signal comes, in a world with `faults`."""
    status = 0
    if "skew" in faults:  # seconds by which its clock is wrong
        right = time.time
        time.time = lambda: right() + faults["skew"]
    if "file_bytes" in faults:  # a disk that is full as soon as a file is so long
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(faults["file_bytes"]),) * 2)
    with (root / f"{name}.log").open("a") as stream:
        journal = Journal(name, stream)
        try:
            asyncio.run(_serve(root, name, kind, handler, journal))
        except BaseException as error:
            journal.note("crashed", error=type(error).__name__, why=str(error))
            status = 1
    os._exit(status)


async def _serve(root: Path, name: str, kind: str, handler: Handler | None, journal: Journal) -> None:
    stop = stop_on_signals()
    if kind == "coordinator":
        await CoordinatorDaemon(CoordinatorFolder(root / name), journal).serve(stop)
        return
    folder = MemberFolder.load(root / name, "center" if kind == "center" else "party")
    await MemberService(folder, (handler or _HANDLERS[kind])(folder, journal), journal).serve(stop)
