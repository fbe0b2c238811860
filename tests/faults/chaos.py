"""Studies one after the other while daemons are killed at random points; and what must be true afterwards."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from tacit.daemon.coordinator.study_run import StudyRun
from tacit.errors import TacitError
from tacit.federation.log import Log
from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.server import running_pid
from tacit.privacy.ledger import Ledger
from tacit.studies.study import Study

from ..daemon.conftest import STUDY, Loopback, allow, build, wait_for
from ..daemon.life import PROCESSES
from ..daemon.test_federation import Watch
from .spy import Spy

PARTIES = ("north", "south", "west")
NODES = ("node-a", "node-b", "node-c")
VICTIMS = ("coordinator", "server", "run", *NODES, *PARTIES)
ROUNDS = 6
DEADLINE = 10.0
# A round waits for its deadline, then for a center node that is looked for and pinged, 10 s each. Parties are waited
# for before it, and a run that loses one of three begins again once, down to its quorum.
MOST_SECONDS = 2 * (DEADLINE + ROUNDS * (DEADLINE + 20.0))
CHAOS = (
    STUDY.replace('name = "averaging"', f'name = "noisy-descent"\nrounds = {ROUNDS}')
    .replace("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-6")
    .replace("deadline_seconds = 60", f"deadline_seconds = {DEADLINE:g}")
)


@dataclass(frozen=True)
class Outcome:
    """What the kills came to."""

    n_kills: int
    n_finished: int
    n_stopped: int
    n_releases: int
    n_questions: int
    victims: dict[str, int]


def run_with_kills(root: Path, n_kills: int, *, seed: int) -> Outcome:
    """Kill daemons at random points of running studies; then check all that must hold, and count."""
    chance = random.Random(seed)
    study = Study.parse(CHAOS)
    loopback = build(root, parties={"north": 120, "south": 80, "west": 50})
    for name in PARTIES:
        allow(loopback.folder(name), math.inf, math.inf)
        loopback.consent(name, study, runs=100_000)
    spy = Spy(loopback.coordinator)
    runner = _start_runner(root)
    victims: Counter[str] = Counter()
    try:
        for _ in range(n_kills):
            time.sleep(chance.uniform(0.0, 0.6))
            victim = chance.choice(VICTIMS)
            victims[victim] += 1
            if victim == "run":
                _kill(runner)
                runner = _start_runner(root)
            else:
                _kill_daemon(loopback, victim, chance.uniform(0.0, 0.5))
        (root / "stop").touch()
        runner.join(4 * MOST_SECONDS)
        assert not runner.is_alive(), "the last study did not end within its deadline"
        return _checked(loopback, spy, victims, n_kills)
    finally:
        if runner.is_alive():
            _kill(runner)
        spy.close()
        loopback.close()


def _kill(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def _kill_daemon(loopback: Loopback, victim: str, pause: float) -> None:
    if victim == "server":  # its daemon starts it again
        pid = running_pid(loopback.coordinator)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: running_pid(loopback.coordinator) not in (None, pid), "a new server")
        return
    loopback.stop(victim, signal.SIGKILL)
    time.sleep(pause)
    kind = "coordinator" if victim == "coordinator" else "center" if victim in NODES else "party"
    loopback.start(victim, kind)


def _start_runner(root: Path) -> BaseProcess:
    process = PROCESSES.Process(target=_run_studies, args=(root,), daemon=True)
    process.start()
    return process


def _run_studies(root: Path) -> None:
    """Runs of one study without end; each call ends well or with a reason, and the next resumes what stopped.

    When the kills are over two more end well: one that may resume what was stopped, and one from its beginning.
    """
    coordinator = CoordinatorFolder(root / "coordinator")
    study = Study.parse(CHAOS)
    with (root / "calls.jsonl").open("a") as log:
        n_undisturbed = 0
        while n_undisturbed < 2:
            undisturbed = (root / "stop").exists()
            call = StudyRun(coordinator, study, Watch())
            started, why = time.monotonic(), ""
            try:
                call()
            except TacitError as error:
                why = str(error) or type(error).__name__
                time.sleep(0.2)
            except BaseException as error:
                why = f"BUG {type(error).__name__}: {error}"
            n_undisturbed += undisturbed and not why
            print(json.dumps({"seconds": time.monotonic() - started, "why": why}), file=log, flush=True)
            call.close()
    os._exit(0)


def _checked(loopback: Loopback, spy: Spy, victims: Counter[str], n_kills: int) -> Outcome:
    calls = [json.loads(line) for line in (loopback.root / "calls.jsonl").read_text().splitlines()]
    for call in calls:
        assert not call["why"].startswith("BUG"), call["why"]
        assert call["seconds"] <= MOST_SECONDS, call
    n_releases = 0
    for name in PARTIES:
        assert '"crashed"' not in loopback.journal(name), loopback.journal(name)[-2000:]
        path = loopback.folder(name) / "ledger.db"
        ledger = Ledger(path)
        assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
        log = Log(ledger, name)
        log.verify()
        released = [line.decision["question"] for line in log.lines() if line.decision["decision"] == "released"]
        # Every release is in the ledger exactly once, with its line in the log ...
        assert len(set(released)) == len(released) == ledger.n_releases(name)
        n_releases += len(released)
        # ... and whatever was seen to leave is one of them: no question got two answers.
        seen = {question: answers for (party, question), answers in spy.answers.items() if party == name}
        assert len(seen) > 0
        for question, answers in seen.items():
            assert answers == set(ledger.answers([name], question).values())
        ledger.close()
    return Outcome(
        n_kills=n_kills,
        n_finished=sum(not call["why"] for call in calls),
        n_stopped=sum(bool(call["why"]) for call in calls),
        n_releases=n_releases,
        n_questions=len({question for _, question in spy.answers}),
        victims=dict(victims),
    )
