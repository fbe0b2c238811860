"""The committed results: all are there, pages and verdicts follow from the numbers, and verdicts depend on them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.reproduce.hamm.figure import NOISELESS, groups_of
from tacit.reproduce.page import pages, read_results
from tacit.reproduce.pathak.figure_2 import AGGREGATES
from tacit.reproduce.registry import REPRODUCTIONS
from tacit.reproduce.result import Claim, together
from tacit.reproduce.run import FinishedResult, finished_from
from tacit.reproduce.wang.budget import ROWS
from tacit.reproduce.wang.regression import REAL

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"
RESULTS = read_results(FOLDER)
CLAIMS = [
    pytest.param(finished, k, id=f"{name}-{k + 1}")
    for name, finished in RESULTS.items()
    for k in range(len(finished.reproduction.claims))
]
OTHERS = (-1000.0, 0.0, 0.5, 1000.0)  # what a number is changed to
FACTORS = (0.5, 0.6, 0.7, 0.85, 1.15, 1.5, 2.0)  # what a number is multiplied by


def test_every_result_is_there_with_a_verdict() -> None:
    assert list(RESULTS) == list(REPRODUCTIONS)
    counted = [name for name, each in REPRODUCTIONS.items() if each.kind != "theorem"]
    assert len(counted) == 35
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    for name, finished in RESULTS.items():
        assert f"[`{name}`]" in index
        assert finished.verdict in ("holds", "holds in part", "does not hold")
    assert "35 of 35 tables and figures have been made again" in index
    assert "not run" not in index
    assert "quick run" not in index


def test_pages_are_what_the_numbers_say() -> None:
    for file, text in pages(RESULTS).items():
        assert (FOLDER / file).read_text(encoding="utf-8") == text, f"run `tacit reproduce` with --out docs: {file}"


@pytest.mark.parametrize("finished", RESULTS.values(), ids=list(RESULTS))
def test_a_committed_result_is_whole_and_in_full(finished: FinishedResult) -> None:
    reproduction = finished.reproduction
    assert not finished.quick
    cells = {cell.key: dict(cell.settings) for cell in reproduction.cells(False)}
    assert {key: cell["settings"] for key, cell in finished.cells.items()} == cells
    assert finished_from(finished.as_json(), reproduction).findings == finished.findings
    for picture, draw in reproduction.summarise(finished.values).pictures.items():
        shown = (FOLDER / picture).read_text(encoding="utf-8")
        assert _description(shown) == _description(draw())


def _description(svg: str) -> str:
    """The words for those who do not see it, which hold the numbers; lines may differ by the version of a library."""
    return svg.partition("<desc")[2].partition("</desc>")[0]


@pytest.mark.parametrize("name", RESULTS)
def test_the_committed_verdicts_are_those_of_the_numbers(name: str) -> None:
    kept = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert kept == RESULTS[name].as_json()


@pytest.mark.parametrize(("finished", "k"), CLAIMS)
def test_a_claim_is_judged_by_the_numbers(finished: FinishedResult, k: int) -> None:
    """Some one number, changed, changes the verdict; or, of a claim that fails in many places, all of one name."""
    claim = finished.reproduction.claims[k]
    verdict = claim.check(finished.values).verdict
    assert any(_verdict(claim, changed) not in (verdict, None) for changed in _changed(finished.values))


def test_the_verdict_of_a_result_is_that_of_its_claims() -> None:
    for finished in RESULTS.values():
        assert finished.verdict == together(finished.findings)


def test_table_3_1_has_the_printed_digits_but_for_one_misprint() -> None:
    values, off = RESULTS["wang-table-3.1"].values, []
    for row, (*_, basic, advanced) in enumerate(ROWS, start=1):
        for column, printed in (("basic", basic), ("advanced", advanced)):
            digits = len(printed.partition(".")[2])
            if abs(values[f"row-{row}"][column] - float(printed)) > 1.01 * 10.0**-digits:
                off.append(printed)
    assert off == ["14312.4"]  # twice 14312 half-epsilons are 14312.0


def test_hamms_noiseless_line_is_within_5_hundredths() -> None:
    groups = groups_of(RESULTS["hamm-figure-2"].values)
    for kind, printed in NOISELESS.items():
        assert groups["M1000"]["none"][kind] == pytest.approx(printed, abs=0.05)


def test_pathaks_order_shows() -> None:
    found = RESULTS["pathak-figure-2"]
    assert found.findings[0].verdict == "holds"
    for regularisation in ("0.1", "0.01"):
        at_first = [found.values[f"raw-{regularisation}-{split}"]["paper"][1][0] for split in AGGREGATES]
        assert at_first == sorted(at_first)


def test_privlogit_is_newton_to_8_digits_on_the_real_data() -> None:
    values = RESULTS["wang-figure-5.2"].values
    for name in REAL:
        assert values[name]["exact"]["error"] <= 1e-8


def _verdict(claim: Claim, values: Any) -> str | None:
    try:
        return claim.check(values).verdict
    except ZeroDivisionError:  # a ratio to a number that was changed to 0
        return None


def _changed(values: Any) -> Iterator[Any]:
    """The values with one number changed at a time, and then with all numbers of one name changed."""
    values = copy.deepcopy(values)
    paths = list(_paths(values))
    names = {_name(path) for path in paths}
    groups = [[path] for path in paths] + [[path for path in paths if _name(path) == name] for name in sorted(names)]
    for group in groups:
        kept = [_at(values, path) for path in group]
        for other, factor in [*((other, 0.0) for other in OTHERS), *((0.0, factor) for factor in FACTORS)]:
            for path, number in zip(group, kept, strict=True):
                _place(values, path)[path[-1]] = other + factor * number
            yield values
        for path, number in zip(group, kept, strict=True):
            _place(values, path)[path[-1]] = number


def _place(values: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        values = values[step]
    return values


def _at(values: Any, path: tuple[Any, ...]) -> Any:
    return _place(values, path)[path[-1]]


def _name(path: tuple[Any, ...]) -> str:
    return [step for step in path if isinstance(step, str)][-1]


def _paths(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _paths(part, (*so_far, key))
    elif isinstance(value, list):
        for k, part in enumerate(value):
            yield from _paths(part, (*so_far, k))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield so_far
