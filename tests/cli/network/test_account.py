"""`tacit coordinator account`, and a coordinator that serves its site."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tacit.federation.member.coordinator_folder import CoordinatorFolder
from tacit.federation.nats.server import ServerSettings
from tacit.web.account import Accounts, fits
from tacit.web.session import AuditTrail
from tacit.web.store import FILE, open_store

from ...daemon.conftest import free_port
from ..conftest import Outcome


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    CoordinatorFolder.make(tmp_path / "c", ServerSettings(port=free_port()), None).close()
    return tmp_path / "c"


def test_accounts_are_made_listed_shut_out_and_reset(run: Callable[..., Outcome], folder: Path) -> None:
    made = run("coordinator", "account", "add", "root", "--role", "administrator", "--folder", folder)
    assert made.status == 0
    password = made.out.split("password")[1].split()[0]
    accounts = Accounts(open_store(folder / FILE))
    assert fits(password, accounts.password_hash("root"))
    assert accounts.get("root").must_change
    assert run("coordinator", "account", "add", "ada", "--email", "ada@example.org", "--folder", folder).status == 0
    listed = run("coordinator", "account", "list", "--folder", folder).out
    assert "root" in listed
    assert "ada@example.org" in listed
    assert run("coordinator", "account", "disable", "ada", "--folder", folder).status == 0
    assert accounts.get("ada").disabled
    reset = run("coordinator", "account", "reset", "ada", "--folder", folder)
    assert fits(reset.out.split("password")[1].split()[0], accounts.password_hash("ada"))
    lines = [(line.what, line.object) for line in AuditTrail(open_store(folder / FILE)).lines()]
    assert lines[:2] == [("reset a password", "ada"), ("disabled an account", "ada")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("add", "Ada"), "cannot be an account's name"),
        (("add", "ada", "--role", "king"), "no role"),
        (("add", "ada", "--email", "nowhere"), "no e-mail address"),
        (("disable", "nobody"), "no account 'nobody'"),
        (("reset", "nobody"), "no account 'nobody'"),
    ],
)
def test_wrong_words_are_one_clear_line(
    run: Callable[..., Outcome], folder: Path, arguments: tuple[str, ...], told: str
) -> None:
    outcome = run("coordinator", "account", *arguments, "--folder", folder)
    assert outcome.status == 2
    assert told in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_folder_without_a_coordinator_gets_no_accounts(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run("coordinator", "account", "add", "ada", "--folder", tmp_path)
    assert outcome.status == 2
    assert "not the folder of a coordinator" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_every_address_of_a_machine_needs_a_name(run: Callable[..., Outcome], folder: Path) -> None:
    outcome = run("coordinator", "serve", "--web", "--web-listen", "0.0.0.0:0", "--folder", folder)
    assert outcome.status == 2
    assert "--web-host" in outcome.err


def test_a_coordinator_serves_its_site_and_stops_with_it(folder: Path) -> None:
    command = [sys.executable, "-m", "tacit.cli.main", "coordinator", "serve", "--web", "--web-listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--folder", str(folder)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as daemon:
        try:
            url = ""
            for line in daemon.stdout:
                event = json.loads(line)
                url = event.get("url", url)
                if event["event"] == "serving":
                    break
            answer = httpx.get(f"{url}/log-in", timeout=120)
            assert answer.status_code == 200
            assert "Log in" in answer.text
        finally:
            daemon.send_signal(signal.SIGTERM)
            rest = [json.loads(line)["event"] for line in daemon.stdout]
        assert daemon.wait(120) == 0
        assert rest[-1] == "stopped"
