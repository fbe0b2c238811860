"""A whole federation on loopback: a real message server with TLS and keys, and members in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.daemon.center.handler import prepare_engine
from tacit.daemon.coordinator.joining import join
from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.settings import DataSource, write_party_file
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.known_members import KnownMembers
from tacit.federation.nats.server import ServerSettings
from tacit.privacy.ledger import Ledger
from tacit.studies.study import Study

from .life import PROCESSES, Handler, live

STUDY = """
[study]
name = "trial"
purpose = "Who recovers?"

[target]
name = "recovered"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 20
high = 90

[[feature]]
name = "treated"
kind = "binary"

[method]
name = "averaging"

[privacy]
epsilon = 1.0

[federation]
quorum = 2
deadline_seconds = 60
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def records(n: int, seed: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    age = chance.uniform(20, 90, n).round(1)
    treated = chance.integers(0, 2, n)
    odds = -0.04 * (age - 55) + 1.5 * treated
    recovered = np.where(chance.uniform(size=n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return pd.DataFrame({"age": age, "treated": treated, "recovered": recovered})


def wait_for(holds: Callable[[], object], what: str, seconds: float = 300.0) -> None:
    """Wait until something holds; `seconds` bounds a failure, on a slow and loaded machine too."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s"
        time.sleep(0.02)


def allow(folder: Path, per_study: float = 10.0, in_all: float = 20.0) -> None:
    """Let a party spend so much, where what is tested is not its budget."""
    path = folder / "party.toml"
    text, n_changed = re.subn(r"(?m)^epsilon_per_study = [\w.]+", f"epsilon_per_study = {per_study}", path.read_text())
    text, n_more = re.subn(r"(?m)^epsilon_in_all = [\w.]+", f"epsilon_in_all = {in_all}", text)
    assert (n_changed, n_more) == (1, 1)
    path.write_text(text)


@dataclass
class Loopback:
    """The folders and processes of one federation."""

    root: Path
    processes: dict[str, BaseProcess] = field(default_factory=dict)

    @property
    def coordinator(self) -> Path:
        return self.root / "coordinator"

    def folder(self, name: str) -> Path:
        return self.root / name

    def journal(self, name: str) -> str:
        path = self.root / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def start(self, name: str, kind: str, handler: Handler | None = None, **faults: float) -> None:
        """Run a daemon in a process of its own, in a world with `faults`; returns when it serves.

        `handler` does its work, where that is not the daemon's own.
        """
        already = self.journal(name).count('"serving"')
        process = PROCESSES.Process(target=live, args=(self.root, name, kind, handler, faults), daemon=True)
        process.start()
        self.processes[name] = process
        wait_for(lambda: self.journal(name).count('"serving"') > already or not process.is_alive(), f"{name} serving")
        assert process.is_alive(), f"{name} ended with {process.exitcode}: {self.journal(name)[-500:]}"

    def stop(self, name: str, number: int = signal.SIGTERM) -> int | None:
        process = self.processes.pop(name)
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, number)
        process.join(80)
        if process.is_alive():  # a test that fails must leave no process behind
            process.kill()
            process.join()
        return process.exitcode

    def invite(self, name: str, role: str = "party", **wish: object) -> None:
        coordinator = CoordinatorFolder(self.coordinator)
        made = coordinator.invite(Invite(name=name, role=role, **wish))  # type: ignore[arg-type]
        coordinator.close()
        (self.root / f"{name}.invite").write_text(made.text())
        from tacit.federation.member.invitation import Invitation

        join(Invitation.read(self.root / f"{name}.invite"), self.folder(name))
        if role == "center":
            prepare_engine(self.folder(name), None)
            KnownMembers(self.folder(name)).believe_all()  # an operator's explicit choice

    def add_party(self, name: str, n: int, seed: int) -> None:
        self.invite(name)
        records(n, seed).to_csv(self.root / f"{name}.csv", index=False)
        write_party_file(self.folder(name), DataSource(file=self.root / f"{name}.csv"))
        allow(self.folder(name))

    def consent(self, name: str, study: Study, state: str = "in", runs: int = 2, offer: float | None = None) -> None:
        coordinator = CoordinatorFolder(self.coordinator)
        sum_group = {member.name: member.letter_key for member in coordinator.roster.members("party")}
        coordinator.close()
        consents = Consents(self.folder(name) / CONSENT_FILE)
        consents.keep(study)
        consents.decide(study.digest(), state, runs, sum_group, offer=offer)
        consents.close()

    def n_releases(self, name: str, study: Study) -> int:
        ledger = Ledger(self.folder(name) / "ledger.db")
        try:
            return ledger.n_releases(name, study.name)
        finally:
            ledger.close()

    def close(self) -> None:
        for name in sorted(self.processes, key=lambda name: name == "coordinator"):
            if self.processes[name].is_alive():
                self.stop(name)
        from tacit.federation.nats.server import MessageServer

        coordinator = CoordinatorFolder(self.coordinator)
        MessageServer(self.coordinator, coordinator.settings).stop()
        coordinator.close()


def build(root: Path, *, parties: dict[str, int], center: bool = True) -> Loopback:
    """A federation with its members joined and serving."""
    made = Loopback(root)
    CoordinatorFolder.make(made.coordinator, ServerSettings(port=free_port()), None).close()
    try:
        made.start("coordinator", "coordinator")
        if center:
            for node in ("node-a", "node-b", "node-c"):
                made.invite(node, "center")
                made.start(node, "center")
        for seed, (name, n) in enumerate(parties.items()):
            made.add_party(name, n, seed)
            made.start(name, "party")
    except BaseException:  # a test that fails must leave no process behind
        made.close()
        raise
    return made


@pytest.fixture
def loopback(tmp_path: Path) -> Iterator[Loopback]:
    made = build(tmp_path, parties={"north": 120, "south": 80, "west": 50})
    yield made
    made.close()


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """One for all tests of a file: each leaves it as it found it, and has a study of a name of its own."""
    made = build(tmp_path_factory.mktemp("federation"), parties={"north": 120, "south": 80, "west": 50})
    yield made
    made.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parties that are there are waited for, however slow the machine is; who says no is not waited for."""
    monkeypatch.setattr("tacit.federation.nats.engine._REPLY_SECONDS", 300.0)


@pytest.fixture
def study() -> Study:
    return Study.parse(STUDY)
