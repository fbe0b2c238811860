"""The page on federations says commands that there are, with options that they have."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli.main import app
from tacit.methods import METHODS

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs" / "federation.md", ROOT / "README.md"]


def commands(page: Path) -> list[str]:
    text = page.read_text()
    lines = [line.split("#")[0] for line in re.findall(r"^(?:    )?(tacit .*)$", text, re.MULTILINE)]
    spans = re.findall(r"`(tacit (?:coordinator|center|party|run|doctor)\b[^`]*)`", text)
    return [part.strip().rstrip("\\") for line in lines + spans for part in line.split("&&")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_on_the_page_exist_with_their_options(page: Path) -> None:
    found = commands(page)
    assert len(found) > 5
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    for command in found:
        words = shlex.split(command)[1:]
        groups = ("approver", "coordinator", "center", "party", "data", "study")
        depth = 2 if words[0] in groups else 1
        shown = runner.invoke(app, [*words[:depth], "--help"])
        assert shown.exit_code == 0, command
        for option in (word for word in words if word.startswith("--")):
            assert option in shown.output, command


def test_the_page_names_the_methods_that_can_do_without_a_party() -> None:
    line = next(line for line in PAGES[0].read_text().splitlines() if "dropouts = 1" in line)
    named = set(re.findall(r"`([a-z-]+)`", line))
    assert named == {name for name, method in METHODS.items() if not method.needs_everybody}
