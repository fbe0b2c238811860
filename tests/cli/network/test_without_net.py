"""Without the packages of tacit[net] everything else works, and the commands say what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.server import ServerSettings

from ...daemon.conftest import free_port

BLOCKED = """
import importlib.util, sys
found = importlib.util.find_spec
gone = ("nats", "nkeys", "cryptography")
importlib.util.find_spec = lambda name, package=None: None if name in gone else found(name, package)
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("nats", "nkeys"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Gone())
from tacit.cli.main import main
main(sys.argv[1:])
"""


def test_the_commands_say_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, "party", "serve"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "needs the package nats; install it with: pip install 'tacit[net]'" in done.stderr
    other = subprocess.run(
        [sys.executable, "-c", BLOCKED, "methods", "--json"], capture_output=True, text=True, check=False
    )
    assert other.returncode == 0


def test_the_sites_say_what_to_install(tmp_path: Path) -> None:
    blocked = BLOCKED.replace('("nats", "nkeys", "cryptography")', '("fastapi",)').replace(
        '("nats", "nkeys")', '("fastapi",)'
    )
    CoordinatorFolder.make(tmp_path / "c", ServerSettings(port=free_port()), None).close()
    for command in (["serve", "--web"], ["account", "list"]):
        done = subprocess.run(
            [sys.executable, "-c", blocked, "coordinator", *command, "--folder", str(tmp_path / "c")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert "need the package fastapi; install it with: pip install 'tacit[web]'" in done.stderr
