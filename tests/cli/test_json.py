"""Every command that tells something can tell it as JSON; the others have a reason."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import typer

from tacit.cli.main import COMMANDS
from tacit.methods import METHODS

from .conftest import parties
from .test_main import Run

ACTS = "it does one thing and says so in a line; its exit status tells a script whether it did"
SERVES = "it runs until it is stopped"
WRITES = "what it has to say is the file that it writes"
READ = "a person reads it before deciding; `tacit party studies --json` has the facts"

WITHOUT_JSON = {
    "study new": WRITES,
    "reproduce": WRITES,
    "practice": SERVES,
    "coordinator init": ACTS,
    "coordinator serve": SERVES,
    "coordinator invite": WRITES,
    "coordinator revoke": ACTS,
    "coordinator announce": ACTS,
    "coordinator renew": ACTS,
    "coordinator account add": ACTS,
    "coordinator account disable": ACTS,
    "coordinator account reset": ACTS,
    "party init": ACTS,
    "party serve": SERVES,
    "party password": ACTS,
    "party show": READ,
    "party accept": ACTS,
    "party opt-in": ACTS,
    "party opt-out": ACTS,
    "party log": "each line is one JSON object already, as it was hashed",
    "party abandon-ledger": ACTS,
    "party policy": "it shows party.toml, which is TOML",
    "party accept-key": ACTS,
    "party rotate-key": ACTS,
    "center init": ACTS,
    "center serve": SERVES,
    "center accept": ACTS,
    "center accept-key": ACTS,
    "center rotate-key": ACTS,
    "center accept-ledger": ACTS,
    "approver init": ACTS,
    "approver sign": WRITES,
}


def walk(words: str, found: Any) -> dict[str, Any]:
    """Every command below, by its words."""
    if not isinstance(found, typer.Typer):
        return {words: found}
    told: dict[str, Any] = {}
    for below in found.registered_commands:
        told |= walk(f"{words} {below.name}", below.callback)
    for group in found.registered_groups:
        told |= walk(f"{words} {group.name}", group.typer_instance)
    return told


ALL = {words: found for name, command in COMMANDS.items() for words, found in walk(name, command.load()).items()}


@pytest.mark.parametrize("words", ALL)
def test_a_command_has_json_or_a_reason(words: str) -> None:
    has = "json_output" in inspect.signature(ALL[words]).parameters
    assert has != (words in WITHOUT_JSON), f"tacit {words}: give it --json, or say why not"


def test_no_reason_is_given_for_a_command_that_is_gone() -> None:
    assert set(WITHOUT_JSON) <= set(ALL)


def test_what_local_commands_print_is_json_and_nothing_else(run: Run, trial: Path) -> None:
    study, test, out = trial / "study.toml", trial / "test.csv", trial / "results"
    fitted = run("fit", study, *parties(trial), "--out", out, "--json")
    assert fitted.json["study"] == "trial"
    for words in (
        ("methods",),
        ("methods", "pooled"),
        ("check", study, "--data", test),
        ("plan", study),
        ("data", "list"),
        ("data", "show", "heart_disease"),
        ("export", out / "model.json", "--to", "csv", "--out", trial / "c.csv"),
        (
            "compare",
            study,
            *parties(trial),
            "--test",
            test,
            "--methods",
            "averaging",
            "--epsilons",
            "1",
            "--repeats",
            "2",
        ),
        ("audit", "averaging", "--runs", "40"),
    ):
        done = run(*words, "--json")
        assert done.status in (0, 1), done.err
        assert json.loads(done.out), words
    lines = run("predict", out / "model.json", test, "--json").out.splitlines()
    assert len(lines) == 100
    assert all("predicted" in json.loads(line) for line in lines)


def test_methods_are_two_lines_each_and_all_about_one_on_request(run: Run) -> None:
    listed = run("methods").out.splitlines()
    for k, name in enumerate(METHODS):
        assert listed[2 * k].startswith(f"{name} ")
        assert "When to use: " in listed[2 * k + 1]
    assert len(listed) == 2 * len(METHODS) + 2
    about = run("methods", "private-newton").out
    for words in ("When to use", "In plain words", "Settings", "epsilon:", "Trust", "Revealed", "Cost"):
        assert words in about
    wrong = run("methods", "private-newten")
    assert (wrong.status, wrong.out) == (2, "")
    assert "private-newton" in wrong.err
