"""What `benchmarks/million.py` and `benchmarks/tabular.py` measure: small crowds and files give figures too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import million, tabular


def test_a_small_crowd_is_measured_drawn_and_told(tmp_path: Path) -> None:
    rows = {str(n): million.measure(n) for n in (200, 400)}
    assert [row["parties"] for row in rows.values()] == [200, 400]
    assert all(0 < row["made_processor"] < row["processor"] for row in rows.values())
    assert all(0 <= row["accuracy"] <= 1 for row in rows.values())  # noise drowns so small a crowd
    (tmp_path / "parties.json").write_text(json.dumps(rows))
    (tmp_path / "scale.md").write_text(f"before\n{million.BEGIN}old\n{million.END}\nafter\n")
    million.draw(tmp_path)
    page = (tmp_path / "scale.md").read_text()
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert "| 400 |" in page
    assert "old" not in page
    assert "400 parties" in (tmp_path / "parties.svg").read_text()


def test_a_small_file_is_read_and_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = tabular.write(tmp_path, 3000)
    for kind, path in paths.items():
        tabular.compare(kind, path, 3000)
    told = capsys.readouterr().out
    assert "parquet: 3,000 records" in told
    assert "csv: against DuckDB into numpy" in told
    tabular.fit(paths["parquet"])
    assert json.loads(capsys.readouterr().out)["megabytes"] > 0
