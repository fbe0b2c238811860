"""A party or a coordinator whose words break the page on which others read them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tacit.cli import console
from tacit.cli.network import run_progress
from tacit.cli.network.run_progress import Progress
from tacit.errors import SettingError
from tacit.federation.member.identity import Identity, Member


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal in place of standard error, with the settings of the real one."""
    stream = io.StringIO()
    likewise = {"markup": console.err._markup, "emoji": console.err._emoji, "highlight": False}
    monkeypatch.setattr(run_progress, "err", Console(file=stream, force_terminal=True, width=100, **likewise))
    return stream


def test_a_refusal_with_markup_in_it_ends_the_run_of_everybody(terminal: io.StringIO) -> None:
    with Progress("[/x] [bold]", None) as progress:
        progress.party("north", "refused: [/x] [link=https://elsewhere]press here[/link]")
        progress.round(1, "[/x]")
        progress.lost({"north": "[/y]"})
    assert "refused: [/x] [link=https://elsewhere]" in terminal.getvalue()


def test_a_refusal_rewrites_the_analysts_screen(terminal: io.StringIO) -> None:
    with Progress("trial", None) as progress:
        progress.party("north", "refused\x1b[2K\x1b]0;all went well\x07")
    assert "refused\\u001b[2K\\u001b]0;all went well\\u0007" in terminal.getvalue()


def test_a_member_has_a_name_that_looks_like_anothers() -> None:
    forms = Identity("north", "party", b"n" * 32).member.as_dict()
    for name in ("north\u200b", "n\x1b[2K", "[/x]", "North", "a" * 64, ""):
        with pytest.raises(SettingError, match=r"the name of a member, .* cannot be used: give 1 to 63 lower-case"):
            Member.from_dict(forms | {"name": name})
