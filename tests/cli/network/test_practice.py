"""A whole federation by one command, and nothing left of it afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import Outcome
from tests.daemon.conftest import wait_for

Run = Callable[..., Outcome]


def processes_in(folder: Path) -> dict[int, str]:
    """The processes whose command line names something in the folder."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if f"{folder}/" in words and int(entry.name) != os.getpid():
            found[int(entry.name)] = words
    return found


# What is started in the background hears no Ctrl-C, nor does what it starts: a suite may be, and its tests press it.
_COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tacit.cli.main import main
main(sys.argv[1:])
"""


class Practice:
    """The command, under way."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, "practice", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.told: list[str] = []
        assert self.process.stderr is not None
        self.listener = threading.Thread(target=self.told.extend, args=(self.process.stderr,), daemon=True)
        self.listener.start()

    def wait_until_ready(self) -> str:
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if line.strip() == "ready":
                return said
        raise AssertionError(f"it ended: {self.told}")

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(300)


@contextmanager
def practising(*words: str, **environment: str) -> Iterator[Practice]:
    made = Practice(*words, **environment)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.end(signal.SIGTERM)
        made.listener.join(60)
        for stream in (made.process.stdout, made.process.stderr):
            if stream is not None:
                stream.close()


def test_a_study_runs_there_and_nothing_is_left(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with practising("--folder", str(folder), "--opted-in", "--no-web") as practice:
        said = practice.wait_until_ready()
        assert all(name in said for name in ("north", "south", "west", "east", "node-c", str(folder)))
        done = run("run", folder / "study.toml", "--folder", folder / "coordinator", "--json")
        assert done.status == 0, done.err
        assert len(done.json["parties"]) == 3
        assert practice.end(signal.SIGTERM) == 0
    assert "it is kept" in practice.told[-1]
    assert not processes_in(folder)
    with practising("--folder", str(folder), "--no-web") as again:
        again.wait_until_ready()
        spent = run("party", "ledger", "--folder", folder / "north", "--json")
        assert spent.json["in_all"] > 0
        assert again.end(signal.SIGKILL) == -signal.SIGKILL
        wait_for(lambda: not processes_in(folder), "the end of all daemons")


def test_a_daemon_that_dies_is_named_and_all_is_cleared_away(tmp_path: Path) -> None:
    with practising("--no-web", TMPDIR=str(tmp_path)) as practice:
        practice.wait_until_ready()
        (place,) = tmp_path.iterdir()
        (victim,) = (pid for pid, words in processes_in(place).items() if "party serve" in words and "/south" in words)
        os.kill(victim, signal.SIGKILL)
        assert practice.process.wait(300) == 1
    assert "south has ended" in "".join(practice.told)
    assert "Traceback" not in "".join(practice.told)
    assert not processes_in(place)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_else_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    done = run("practice", "--folder", tmp_path, "--no-web")
    assert done.status == 2
    assert f"{tmp_path} holds something else already; name an empty folder" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_cannot_be_made_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("practice", "--folder", tmp_path / "file" / "practice", "--no-web")
    assert done.status == 2
    assert "file/practice cannot be used as a folder: Not a directory; name another one" in done.err
