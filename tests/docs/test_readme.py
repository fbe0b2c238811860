"""The README as a stranger follows it: every command, literally, on machines of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .conftest import ROOT
from .walk import A_LONG_WHILE, Walk, blocks, commands

README = ROOT / "README.md"
SHELL = blocks(README, "sh")
NODES, PARTIES = ("node-a", "node-b", "node-c"), ("north", "south", "west")


def block(start: str) -> str:
    (found,) = [each for each in SHELL if each.startswith(start)]
    return found


def test_every_block_is_run_by_a_test_here() -> None:
    starts = (
        "make demo", "pip install", "tacit data", "tacit practice", "tacit coordinator init", "tacit center init",
        "tacit coordinator invite north", "tacit party init", "tacit run",
    )  # fmt: skip
    assert [each for each in SHELL if not each.startswith(starts)] == []
    assert len(SHELL) == len(starts)


@pytest.mark.slow
def test_make_demo(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (tmp_path / ".venv" / ".installed").touch()  # what is tested here is not the installation
    with Walk(tmp_path) as walk:
        assert "Together they reach" in walk.run(block("make demo"))
    assert (tmp_path / "demo" / "report.html").exists()


@pytest.mark.slow
def test_pip_install(tmp_path: Path) -> None:
    """The command itself; the environment keeps pip from the network and from this very installation."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    with Walk(tmp_path) as walk:
        walk.environment |= {
            "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_TARGET": str(tmp_path / "made"), "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
        }  # fmt: skip
        assert "Successfully installed tacit" in walk.run(block("pip install"))
    assert (tmp_path / "made" / "tacit" / "__init__.py").exists()


@pytest.mark.slow
def test_the_commands_lead_to_a_model(tmp_path: Path) -> None:
    with Walk(tmp_path) as walk:
        said = walk.run(block("tacit data"))
        assert len(walk.typed) <= 8
    assert "fits the study" in said
    assert (tmp_path / "results" / "report.html").exists()
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 1501


@pytest.mark.slow
def test_practice_has_a_site_for_everybody(tmp_path: Path) -> None:
    with Walk(tmp_path) as walk:
        said = walk.run(block("tacit practice"))
    assert all(name in said for name in ("coordinator", *PARTIES))
    assert "password, good once" in said


@pytest.fixture
def network() -> Iterator[tuple[str, ...]]:
    """A network of its own, where the default ports are free; without the right to make one, this machine's."""
    with contextlib.ExitStack() as stack:
        made = subprocess.Popen(
            ["unshare", "--map-root-user", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        stack.callback(made.wait)
        stack.callback(made.kill)
        assert made.stdout is not None
        stack.callback(made.stdout.close)
        isolated = made.stdout.readline() == "up\n"
        yield ("nsenter", f"--target={made.pid}", "--user", "--net", "--preserve-credentials") if isolated else ()


def wait_until_told(party: Walk, names: tuple[str, ...]) -> None:
    """Until a party's daemon has heard of the others and of the study."""
    deadline = time.monotonic() + A_LONG_WHILE
    members = party.folder / "party" / "members.json"  # not there before the coordinator's first word
    while not (
        members.exists()
        and all(f'"{name}"' in members.read_text() for name in names)
        and "readmission" in party.run("tacit party studies")
    ):
        assert time.monotonic() < deadline, f"{party.folder} is not told of {names}"
        time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="networks of one's own are Linux's")
def test_a_federation_of_three_nodes_and_three_parties(tmp_path: Path, network: tuple[str, ...]) -> None:
    with contextlib.ExitStack() as stack:

        def machine(name: str) -> Walk:
            (tmp_path / name).mkdir()
            return stack.enter_context(Walk(tmp_path / name, network))

        hub = machine("hub")
        hub.run("".join(f"{line}\n" for line in commands(block("tacit data"))[:2]))  # its study file
        hub.run(block("tacit coordinator init"))
        at = {name: machine(name) for name in (*NODES, *PARTIES)}

        def join_node(name: str) -> None:
            shutil.move(tmp_path / "hub" / f"{name}.invite", tmp_path / name)  # handed over in confidence
            at[name].run(block("tacit center init").replace("node-a", name))

        def join_party(name: str) -> None:
            shutil.move(tmp_path / "hub" / f"{name}.invite", tmp_path / name)
            shutil.move(tmp_path / "hub" / f"{name}.csv", tmp_path / name)
            at[name].run("\n".join(commands(block("tacit party init").replace("north", name))[:2]))

        def consent(name: str) -> str:
            wait_until_told(at[name], (*PARTIES, *NODES))
            return at[name].run("\n".join(commands(block("tacit party init").replace("north", name))[2:]))

        with ThreadPoolExecutor(3) as people:
            list(people.map(join_node, NODES))
            hub.run(block("tacit coordinator invite north"))
            list(people.map(join_party, PARTIES))
            for said in people.map(consent, PARTIES):
                assert "What leaves you, and who sees it" in said
                assert "in: readmission" in said
        assert "earlier_admissions" in hub.run(block("tacit run"))
    assert (tmp_path / "hub" / "results" / "model.json").exists()
