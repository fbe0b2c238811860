"""A federation on a NATS cluster of three servers: any may be killed in a run, and nothing is lost or paid twice."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tacit.errors import RunError, SettingError
from tacit.federation.member.address import Address
from tacit.federation.member.coordinator_folder import CoordinatorFolder, Invite
from tacit.federation.member.folder import MemberFolder
from tacit.federation.member.invitation import Invitation
from tacit.federation.nats.cluster import ROUTE_PORTS, tell_cluster
from tacit.federation.nats.server import find_server
from tacit.studies.study import Study

from .conftest import Loopback, wait_for
from .test_federation import DESCENT, PARTIES, Watch, decisions, ledger, opt_in, run

RELOAD = """
import os, pathlib, signal
for file in pathlib.Path(os.environ["TACIT_CLUSTER"]).glob("*.pid"):
    try:
        os.kill(int(file.read_text()), signal.SIGHUP)
    except ProcessLookupError:
        pass
"""


class Servers:
    """Three servers on this machine, with routes to each other."""

    def __init__(self, root: Path) -> None:
        self.ports = _ports(3)
        self.urls = [f"tls://localhost:{port}" for port in self.ports]
        self.folder = root / "coordinator" / "cluster"
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, k: int) -> None:
        command = [find_server(), "--config", f"server-{k}.conf", "--pid", f"{k}.pid", "--log", f"{k}.log"]
        self.processes[k] = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL)
        wait_for(lambda: _listens(self.ports[k]), f"server {k} listening")

    def linked(self, n: int) -> bool:
        """Whether so many routes were made, as the servers' logs say."""
        logs = "".join((self.folder / f"{k}.log").read_text() for k in range(3))
        return logs.count("Route connection created") >= n

    def kill(self, k: int) -> None:
        process = self.processes.pop(k)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for k in list(self.processes):
            self.kill(k)


def _ports(n: int) -> list[int]:
    """Free ports, whose neighbours for routes are free as well."""
    found: list[int] = []
    port = 20_000 + os.getpid() % 20_000
    while len(found) < n:
        port += 1
        if not (_listens(port) or _listens(port + ROUTE_PORTS)):
            found.append(port)
    return found


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Loopback, Servers]]:
    servers, made = Servers(tmp_path), Loopback(tmp_path)
    script = tmp_path / "reload.py"
    script.write_text(RELOAD)
    CoordinatorFolder.make_on_cluster(made.coordinator, servers.urls, f"{sys.executable} {script}").close()
    try:
        for k in range(3):
            servers.start(k)
        made.start("coordinator", "coordinator")
        for node in ("node-a", "node-b", "node-c"):
            made.invite(node, "center")
            made.start(node, "center")
        for seed, (name, n) in enumerate({"north": 120, "south": 80, "west": 50}.items()):
            made.add_party(name, n, seed)
            made.start(name, "party")
        yield made, servers
    finally:
        for name in sorted(made.processes, key=lambda name: name == "coordinator"):
            made.stop(name)
        servers.close()


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
def test_a_study_runs_on_while_servers_of_the_cluster_are_killed(cluster: tuple[Loopback, Servers]) -> None:
    loopback, servers = cluster
    study = Study.parse(DESCENT)
    opt_in(loopback, study)
    assert servers.linked(3)
    asks = sha256(b"coordinator").digest()[0] % 3  # where the coordinator's own connection is
    other = (asks + 1) % 3

    def at_round(number: int) -> None:
        if number == 2:
            servers.kill(asks)
        if number == 4:
            servers.start(asks)
            servers.kill(other)

    finished = run(loopback, study, Watch(at_round))
    assert finished.model.n_rounds_ == 6
    assert not finished.model.facts_.notices
    for name in PARTIES:
        assert ledger(loopback, name).n_releases(name) == 6
        assert ledger(loopback, name).epsilon(name, delta=1e-6, study="trial") == pytest.approx(1.0, rel=2e-3)
        assert decisions(loopback, name) == {"began": 1, "released": 6}
    everybody = (*PARTIES, "node-a", "node-b", "node-c", "coordinator")
    begun_there = {name for name in everybody if sha256(name.encode()).digest()[0] % 3 in (asks, other)}
    moved = {name for name in everybody if "connected-again" in loopback.journal(name)}
    assert "coordinator" in begun_there <= moved
    loopback.add_party("late", 40, 9)  # members are still let in, through the servers that are left
    nkey = MemberFolder.load(loopback.folder("late"), "party").member.nkey
    assert nkey in (servers.folder / "members.conf").read_text()


def test_an_invitation_names_every_server(tmp_path: Path) -> None:
    urls = ["tls://a.example:4222", "tls://b.example:4222", "tls://c.example:4222"]
    made = CoordinatorFolder.make_on_cluster(tmp_path / "coordinator", urls, None)
    (tmp_path / "x.invite").write_text(made.invite(Invite(name="node-a", role="center")).text())
    made.close()
    assert Invitation.read(tmp_path / "x.invite").pinned.address.urls == tuple(urls)
    texts = [(tmp_path / f"coordinator/cluster/server-{k}.conf").read_text() for k in range(3)]
    assert all("verify: true" in text and "max_payload: 64MB" in text for text in texts)
    assert "nats-route://a.example:6222" not in texts[0]
    assert "nats-route://c.example:6222" in texts[0]
    users = (tmp_path / "coordinator/cluster/users.conf").read_text()
    assert users.lstrip().startswith("users = [")
    assert users in (tmp_path / "coordinator/cluster/members.conf").read_text()


def test_addresses_and_commands_that_cannot_be_meant_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="must start with tls://"):
        Address(url="tls://a:4222,nats://b:4222", authority="")
    with pytest.raises(SettingError, match="name one twice"):
        Address(url="tls://a:4222,tls://a:4222", authority="")
    with pytest.raises(SettingError, match="needs a host and a port"):
        CoordinatorFolder.make_on_cluster(tmp_path / "c", ["tls://a"], None)
    made = CoordinatorFolder.make_on_cluster(tmp_path / "d", ["tls://a:4222"], None)
    users = made.roster.users(made.identity.member)
    made.close()
    with pytest.raises(RunError, match=r"reload command 'false' ended with 1 .*servers may not know"):
        tell_cluster(tmp_path / "d", users, "false")
    with pytest.raises(RunError, match="does not run"):
        tell_cluster(tmp_path / "d", users, "/no/such/program")
