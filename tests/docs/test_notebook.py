"""The notebook runs from its first cell to its last, and is kept without outputs."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from .conftest import ROOT

NOTEBOOK = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def shown(cell: str, names: dict[str, object]) -> object:
    """Run a cell; the value of its last expression, as a notebook shows it."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "tutorial.ipynb", "exec"), names)
    return eval(compile(ast.Expression(last.value), "tutorial.ipynb", "eval"), names) if last else None  # type: ignore[attr-defined]  # noqa: S307


def test_the_notebook_runs(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    values = [shown(cell, names) for cell in CELLS]
    tables = [value for value in values if hasattr(value, "to_html")]
    assert list(tables[0]["term"])[1:] == ["age", "days_in_hospital", "earlier_admissions", "emergency"]
    told = capsys.readouterr().out
    assert "better than guessing" in told
    assert "epsilon 0.1: emergency from" in told
    assert (tmp_path / "report.html").exists()


def test_the_notebook_is_kept_without_outputs() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    for cell in NOTEBOOK["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
