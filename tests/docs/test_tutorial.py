"""The tutorial as a stranger walks it: every command and snippet, literally, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import ROOT
from .walk import Walk, blocks, commands

TUTORIAL = ROOT / "docs" / "tutorial.md"


@pytest.mark.slow
def test_the_tutorial_leads_to_a_model_and_to_a_deployed_study(tmp_path: Path) -> None:
    shells = blocks(TUTORIAL, "sh")
    start = next(k for k, block in enumerate(shells) if block.startswith("tacit practice"))
    with Walk(tmp_path) as walk:
        said = [walk.run(block) for block in shells[:start]]
        assert "north.csv: fits the study" in said[2]
        assert "Forecast of private-newton" in said[3]
        assert "earlier_admissions" in said[4]
        for name in ("report.html", "model.json", "result.json", "report.txt"):
            assert (tmp_path / "results" / name).stat().st_size > 1000, name
        assert "<svg" in (tmp_path / "results" / "report.html").read_text()
        assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 1501
        assert (tmp_path / "coefficients.csv").read_text().count("\n") == 6
        assert len(walk.typed) <= 8, "a stranger needs no more than eight commands"
        before = len(walk.typed)
        said = [walk.run(block) for block in shells[start:]]
        assert len(walk.typed) - before <= 10, "a deployed study needs no more than ten commands"
        assert (tmp_path / "practice" / "results" / "report.html").exists()
        assert "8 releases, each with its line" in said[-1]


def test_the_python_of_the_tutorial_runs(tmp_path: Path, monkeypatch, capsys) -> None:
    with Walk(tmp_path) as walk:
        for block in blocks(TUTORIAL, "sh")[:2]:
            walk.run(block)
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(TUTORIAL, "python")
    exec(compile(block, "tutorial.md", "exec"), {})
    assert "days_in_hospital" in capsys.readouterr().out
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "model.json").exists()


def test_a_block_is_a_list_of_commands() -> None:
    assert commands("a b \\\n    c\n\n# a comment\nd  # why\n") == ["a b      c", "d"]


def test_what_fails_is_noticed(tmp_path: Path) -> None:
    with Walk(tmp_path) as walk, pytest.raises(AssertionError, match=r"nowhere\.toml"):
        walk.run("tacit check nowhere.toml --data x.csv")
