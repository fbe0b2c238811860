"""Cells are kept whole, an interrupted run goes on, and a folder's pages are made from its numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import DataError, SettingError
from tacit.reproduce import page, registry
from tacit.reproduce.result import (
    Claim,
    Number,
    NumberTable,
    Publication,
    Reproduction,
    ResultCell,
    Summary,
    Values,
    judged,
    together,
)
from tacit.reproduce.run import FinishedResult, run, seed_of


class Counted:
    """A computation that counts its calls, and is broken off in one of its cells."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, int]] = []
        self.broken_at: float | None = None

    def __call__(self, *, x: float, seed: int) -> dict[str, Any]:
        self.calls.append((x, seed))
        if x == self.broken_at:
            raise KeyboardInterrupt("Ctrl-C")
        return {"square": x * x + 1 / 3e9, "none": float("nan")}


def small(compute: Counted, version: int = 1) -> Reproduction:
    def summarise(values: Values) -> Summary:
        rows = [[key, f"{value['square']:g}"] for key, value in values.items()]
        return Summary([NumberTable(["x", "ours"], rows)], {"toy-figure-1.svg": lambda: "<svg></svg>"})

    return Reproduction(
        name="toy-figure-1",
        title="Squares",
        setting="Numbers.",
        numbers=(Number("the square of 2", 4.0), Number("its curve", None, "not given")),
        cells=lambda quick: [ResultCell(f"x{x}", compute, {"x": x}) for x in ((1,) if quick else (1, 2, 3))],
        summarise=summarise,
        claims=(Claim("Squares grow.", lambda v: judged([v["x1"]["square"] < 2], f"{v['x1']['square']:g}")),),
        version=version,
    )


def test_a_run_goes_on_where_it_was_broken_off(tmp_path: Path) -> None:
    compute = Counted()
    compute.broken_at = 3
    with pytest.raises(KeyboardInterrupt, match="Ctrl-C"):
        run(small(compute), cache=tmp_path)
    compute.broken_at = None
    told: list[tuple[int, int, str]] = []
    done = run(small(compute), cache=tmp_path, on_cell=lambda *what: told.append(what))
    assert [x for x, _ in compute.calls] == [1, 2, 3, 3]
    assert told == [(0, 3, "x1"), (1, 3, "x2"), (2, 3, "x3")]
    assert done.values["x2"] == {"square": 4.0, "none": None}
    assert done.cells["x2"]["seed"] == compute.calls[1][1] == seed_of("toy-figure-1", "x2")


def test_what_is_kept_is_used_for_the_same_settings_and_version_alone(tmp_path: Path) -> None:
    compute = Counted()
    run(small(compute), cache=tmp_path)
    run(small(compute), quick=True, cache=tmp_path)
    assert len(compute.calls) == 3
    run(small(compute, version=2), quick=True, cache=tmp_path)
    assert len(compute.calls) == 4


def test_a_broken_file_in_the_cache_is_named(tmp_path: Path) -> None:
    run(small(Counted()), quick=True, cache=tmp_path)
    [file] = (tmp_path / "toy-figure-1").iterdir()
    file.write_text("{")
    with pytest.raises(DataError, match="is not what a run has written; delete it"):
        run(small(Counted()), quick=True, cache=tmp_path)


def test_pages_are_made_from_what_a_folder_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = small(Counted())
    monkeypatch.setattr(page, "DOCUMENTS", (Publication("toy", "Toys 1999", (toy,)),))
    monkeypatch.setattr(page, "REPRODUCTIONS", {toy.name: toy})
    assert [path.name for path in page.write_pages(tmp_path)] == ["index.md"]
    assert "0 of 1 tables and figures" in (tmp_path / "index.md").read_text()
    page.write_result(run(toy, cache=tmp_path / "cache"), tmp_path)
    assert (tmp_path / "toy-figure-1.svg").read_text() == "<svg></svg>"
    assert [path.name for path in page.write_pages(tmp_path)] == ["index.md", "toy.md"]
    text = (tmp_path / "toy.md").read_text()
    assert "| x2 | 4 |" in text
    assert "Printed: the square of 2: 4. Not given: its curve." in text
    assert "| Squares grow. | **holds** | 1 |" in text
    assert "[`toy-figure-1`](toy.md#toy-figure-1) | Squares | **holds** | 1 |" in (tmp_path / "index.md").read_text()
    (tmp_path / "toy-figure-1.json").write_text(json.dumps({"name": "toy-figure-1"}))
    with pytest.raises(DataError, match="is no result of `tacit reproduce`"):
        page.write_pages(tmp_path)


def test_an_older_version_counts_as_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = small(Counted())
    page.write_result(run(toy, cache=tmp_path), tmp_path)
    monkeypatch.setattr(page, "REPRODUCTIONS", {toy.name: toy})
    assert list(page.read_results(tmp_path)) == [toy.name]
    monkeypatch.setattr(page, "REPRODUCTIONS", {toy.name: small(Counted(), version=2)})
    assert page.read_results(tmp_path) == {}


def test_verdicts_of_parts() -> None:
    assert judged([True, True], "").verdict == "holds"
    assert judged([True, False], "").verdict == "holds in part"
    assert judged([False], "").verdict == "does not hold"
    assert together([judged([True], ""), judged([False], "")]) == "holds in part"
    assert together([judged([False], "")]) == "does not hold"


def test_a_documents_name_takes_all_of_its_results() -> None:
    assert [each.name for each in registry.chosen(["pathak"])] == [each.name for each in registry.DOCUMENTS[0].results]
    assert [each.name for each in registry.chosen(["pathak-figure-2"])] == ["pathak-figure-2"]
    with pytest.raises(SettingError, match="did you mean 'pathak-figure-2'"):
        registry.chosen(["pathak-figur-2"])
    with pytest.raises(SettingError, match="--list"):
        registry.chosen(["zzz"])


def test_names_and_documents_agree() -> None:
    for document in registry.DOCUMENTS:
        assert {each.document for each in document.results} == {document.name}
    assert {each.kind for each in registry.REPRODUCTIONS.values()} <= {"table", "figure", "theorem"}
    assert isinstance(FinishedResult(registry.REPRODUCTIONS["pathak-figure-2"], False, {}).cells, dict)


def test_results_may_share_cells(tmp_path: Path) -> None:
    compute = Counted()
    first = small(compute)
    second = replace(
        first,
        name="toy-figure-2",
        cells=lambda quick: [replace(cell, shared_with="toy-figure-1") for cell in first.cells(quick)],
    )
    assert run(first, cache=tmp_path).cells == run(second, cache=tmp_path).cells
    assert len(compute.calls) == 3


def test_what_results_share_counts_once(tmp_path: Path) -> None:
    first = small(Counted())
    second = replace(
        first,
        name="toy-figure-2",
        cells=lambda quick: [replace(cell, shared_with="toy-figure-1") for cell in first.cells(quick)],
    )
    done = {each.name: run(each, cache=tmp_path) for each in (first, second)}
    timed = {
        name: replace(each, cells={key: {**cell, "seconds": 2.0} for key, cell in each.cells.items()})
        for name, each in done.items()
    }
    assert [each.seconds for each in timed.values()] == [6.0, 6.0]
    assert page.total_seconds(timed) == 6.0


def test_seconds_are_those_of_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([(1.0, 0.5, 0.0, 0.0, 100.0), (3.0, 0.75, 1.0, 0.25, 900.0)])
    monkeypatch.setattr("os.times", lambda: next(ticks))
    assert run(small(Counted()), quick=True, cache=tmp_path).seconds == 3.5
