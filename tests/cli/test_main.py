"""The command line as a whole: its help, its version, its completion and its exit statuses."""

from __future__ import annotations

import inspect
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import typer

import tacit
from tacit.cli.local.study import app as study_app
from tacit.cli.main import COMMANDS
from tacit.errors import RunError

from .conftest import Outcome

Run = Callable[..., Outcome]
TACIT = [sys.executable, "-m", "tacit.cli.main"]


def every_command() -> Iterator[tuple[list[str], Callable[..., object]]]:
    """The words of each command, and the function behind it."""
    for name, command in COMMANDS.items():
        found = command.load()
        if isinstance(found, typer.Typer):
            for below in found.registered_commands:
                assert below.callback is not None
                yield [name, str(below.name)], below.callback
        else:
            yield [name], found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    found = COMMANDS[name].load()
    if isinstance(found, typer.Typer):
        assert found.info.help == COMMANDS[name].help
        assert found.registered_callback is not None
        found = found.registered_callback.callback
    assert (inspect.getdoc(found) or "").splitlines()[0] == COMMANDS[name].help


@pytest.mark.parametrize("words", [words for words, _ in every_command()], ids=" ".join)
def test_every_commands_help_has_an_example(run: Run, words: list[str]) -> None:
    done = run(*words, "--help")
    assert (done.status, done.err) == (0, "")
    _, _, examples = done.out.partition("Examples:")
    assert f"tacit {' '.join(words)}" in examples


@pytest.mark.parametrize("group", [[], ["study"], ["data"], ["coordinator"], ["party"], ["center"]], ids=" ".join)
def test_nothing_asked_shows_the_help(run: Run, group: list[str]) -> None:
    bare = run(*group)
    assert (bare.status, bare.err) == (0, "")
    assert "Commands:" in bare.out
    assert bare == run(*group, "--help") == run(*group, "-h")


def test_the_help_names_every_command_and_the_list_every_reproduction(run: Run) -> None:
    from tacit.reproduce.registry import REPRODUCTIONS

    listed = run("--help").out
    assert all(f"\n  {name} " in listed for name in COMMANDS)
    assert [line.split()[0] for line in run("reproduce", "--list").out.splitlines()] == list(REPRODUCTIONS)


def test_the_version_is_the_packages_own(run: Run) -> None:
    done = run("--version")
    assert (done.status, done.out, done.err) == (0, f"tacit {tacit.__version__}\n", "")


def test_a_command_that_does_not_exist_is_one_line_with_the_nearest(run: Run) -> None:
    done = run("fitt")
    assert (done.status, done.out) == (2, "")
    assert done.err == "tacit: No such command 'fitt'. Did you mean 'fit'? (see tacit --help)\n"
    assert "No such command 'nw'" in run("study", "nw").err


@pytest.mark.parametrize(("error", "status"), [(RunError("it broke"), 1), (KeyboardInterrupt(), 130)])
def test_a_failed_run_ends_with_1_and_a_stopped_one_with_130(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(study_app.registered_commands[0], "callback", fail)
    done = run("study", "new")
    assert (done.status, done.out) == (status, "")
    assert done.err.startswith("tacit: ")
    assert done.err.count("\n") == 1


def test_the_shell_is_given_a_script_that_completes_tacit() -> None:
    in_bash = ["bash", "-c", f"{shlex.join(TACIT)} --show-completion bash; exit $?"]  # Typer asks which shell calls it
    done = subprocess.run(in_bash, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "complete -o default -F _tacit_completion tacit" in done.stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("tacit pa", ["party"]), ("tacit party opt", ["opt-in", "opt-out"]), ("tacit fit --led", ["--ledger"])],
)
def test_commands_and_options_are_completed(typed: str, completed: list[str]) -> None:
    asked = {"_TACIT_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = subprocess.run(TACIT, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert done.stdout.split() == completed, done.stderr
