"""Three real processes: they compute, they die and come back, and they leave nothing behind."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import CenterError
from tacit.rand import Rng
from tacit.secure.center import process
from tacit.secure.center.child import ChildProcess
from tacit.secure.center.embedded import EmbeddedCenter
from tacit.secure.center.process import ProcessCenter, shared_center
from tacit.secure.envelope import Label, seal

from .conftest import curvature, keep, newton, seal_all

A_WHILE = 300.0  # seconds: bounds a failure, on a slow and loaded machine too


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + A_WHILE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_the_embedded_center_computes_with_the_shared_processes(computing: ProcessCenter) -> None:
    assert EmbeddedCenter().computing() is computing is shared_center() is computing.computing()
    assert len({node.pid for node in computing._nodes} | {os.getpid()}) == 4


def test_sums_are_opened_by_processes_as_by_embedded_nodes(computing: ProcessCenter) -> None:
    context = Rng.system().bytes(8).hex()
    labels = [Label(context=context, party=party, n_parties=2) for party in "ab"]
    addends = np.array([[1, -(2**61), 7], [10, 5, -8]])
    envelopes = {
        label.party: seal(addend, label, computing.keys, rng=Rng.system())
        for label, addend in zip(labels, addends, strict=True)
    }
    np.testing.assert_array_equal(computing.open_sum(context, envelopes), addends.sum(axis=0))
    with pytest.raises(CenterError, match="a sum over 2 parties be opened; 1 are in it"):
        computing.open_sum(context, {"a": envelopes["a"]})


def test_a_party_that_sealed_to_a_wrong_key_is_refused(computing: ProcessCenter) -> None:
    foreign = EmbeddedCenter()
    with pytest.raises(CenterError, match="sealed for another key, or altered"):
        computing.keep("run", "vector", "foreign", seal_all(foreign, "vector", np.ones(3), "foreign"), (3,))


def test_a_node_that_dies_is_named_and_the_run_can_be_resumed(
    computing: ProcessCenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, A, g = Rng.system().bytes(8).hex(), curvature(150, 10), np.ones(150)
    sealed = {name: seal_all(computing, name, v, f"{run} {name}") for name, v in (("curvature", A), ("gradient", g))}
    keys, failures = computing.keys, []

    def keep_again() -> None:
        computing.keep(run, "curvature", f"{run} curvature", sealed["curvature"], A.shape)
        computing.keep(run, "gradient", f"{run} gradient", sealed["gradient"], g.shape)

    def compute() -> None:
        try:
            newton(computing, run)
        except CenterError as error:
            failures.append(str(error))

    keep_again()
    last, asked = computing._nodes[-1].pipe, threading.Event()
    send = last.send_bytes

    def send_and_tell(request: bytes) -> None:
        send(request)
        asked.set()

    monkeypatch.setattr(last, "send_bytes", send_and_tell)
    thread = threading.Thread(target=compute)
    thread.start()
    assert asked.wait(A_WHILE)  # the engine now compiles and computes, for seconds
    os.kill(computing._nodes[1].pid, signal.SIGKILL)
    thread.join(A_WHILE)
    assert len(failures) == 1
    assert "node 1 of the center has ended" in failures[0]
    assert "restart()" in failures[0]
    assert computing.is_broken
    with pytest.raises(CenterError, match="the center's nodes were stopped"):
        newton(computing, run)
    # The parties' stored answers, sealed to the same keys, are kept again.
    computing.restart()
    assert computing.keys == keys
    with pytest.raises(CenterError, match="reads curvature, which the run does not keep"):
        newton(computing, run)
    keep_again()
    np.testing.assert_allclose(newton(computing, run)["step"], np.linalg.solve(A, g), atol=1e-6)


def test_a_shared_center_with_a_dead_node_is_started_again(computing: ProcessCenter) -> None:
    computing.keys  # noqa: B018 - started
    os.kill(computing._nodes[2].pid, signal.SIGKILL)
    assert eventually(lambda: computing.is_broken)
    assert shared_center() is computing
    assert not computing.is_broken
    run = Rng.system().bytes(8).hex()
    keep(computing, run, inverse=np.ones((1, 13)), gradient=np.ones(13))
    assert computing.compute(run, "step") == {"step": pytest.approx(np.array([13]))}


def test_engines_meet_where_only_this_account_may_enter(computing: ProcessCenter) -> None:
    run = Rng.system().bytes(8).hex()
    keep(computing, run, inverse=np.ones((1, 13)), gradient=np.ones(13))
    computing.compute(run, "step")  # linked
    meeting = computing._home / "engines"
    assert {path.name for path in meeting.iterdir() if path.is_socket()} == {"0.sock", "1.sock", "2.sock"}
    assert stat.S_IMODE(meeting.stat().st_mode) == 0o700
    listening = {
        f"socket:[{row[9]}]"
        for table in ("tcp", "tcp6")
        for row in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines()[1:])
        if row[3] == "0A"
    }
    for node in computing._nodes:  # and nowhere else
        opened = {str(path.readlink()) for path in Path(f"/proc/{node.pid}/fd").iterdir() if path.is_symlink()}
        assert not opened & listening


CHILD = """
    import sys
    from tacit.secure.center.process import ProcessCenter
    from tests.secure.center.conftest import keep

    center = ProcessCenter(announce=lambda text: print(text, flush=True))
    keep(center, "run", inverse=[[1.0, 2.0]], gradient=[3.0, 4.0])
    product = center.compute("run", "step")["step"][0].round(6) if sys.argv[1] == "compute" else 11.0
    print(product, *[node.pid for node in center._nodes], center._home, flush=True)
    sys.stdin.read(1)
"""


def start_child(*, task: str) -> tuple[subprocess.Popen[str], list[int], Path]:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), task],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    if line.startswith("starting the center's 3 nodes"):
        line = child.stdout.readline()
    product, *pids, home = line.split()
    assert product == "11.0"
    return child, [int(pid) for pid in pids], Path(home)


def test_openmp_gives_a_child_one_thread_whatever_number_a_library_asks_for(tmp_path: Path) -> None:
    team = """
        import ctypes, sys
        from multiprocessing.connection import Connection
        openmp = ctypes.CDLL("libgomp.so.1")
        openmp.omp_set_num_threads(4)  # as the engine does, whatever OMP_NUM_THREADS says
        Connection(int(sys.argv[1])).send_bytes(str(openmp.omp_get_thread_limit()).encode())
    """
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        pytest.skip("this machine has no OpenMP library of its own")
    child = ChildProcess(["-c", textwrap.dedent(team)], [], tmp_path / "log")
    assert child.pipe.recv_bytes() == b"1"
    child.join()


def test_a_center_left_open_ends_with_its_process_and_says_nothing() -> None:
    child, pids, home = start_child(task="compute")
    assert all(map(is_running, pids))
    _, errors = child.communicate("x", timeout=A_WHILE)
    assert child.returncode == 0
    assert errors == ""
    assert not any(map(is_running, pids))
    assert not home.exists()


def test_no_node_outlives_a_process_that_was_killed() -> None:
    child, pids, home = start_child(task="add")
    child.kill()
    child.communicate()
    assert eventually(lambda: not any(map(is_running, pids)))
    process._sweep()  # as the next center does when it starts
    assert not home.exists()


def test_waiting_for_a_slow_start_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SILENT_SECONDS", 0.0)
    said: list[str] = []
    with ProcessCenter(announce=said.append) as center:
        assert len(center.keys) == 3
    assert said == ["starting the center's 3 nodes on this machine ..."]
    with pytest.raises(CenterError, match="closed; make a new one"):
        center.restart()
