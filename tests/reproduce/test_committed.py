"""The committed results: pages and verdicts follow from the numbers, and each verdict depends on them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.reproduce.page import pages, read_results
from tacit.reproduce.result import Claim
from tacit.reproduce.run import FinishedResult, finished_from

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"
RESULTS = read_results(FOLDER)
CLAIMS = [
    pytest.param(finished, k, id=f"{name}-{k + 1}")
    for name, finished in RESULTS.items()
    for k in range(len(finished.reproduction.claims))
]
OTHERS = (-1000.0, 0.0, 0.5, 1000.0)  # what a number is changed to
FACTORS = (0.5, 0.6, 0.7, 0.85, 1.15, 1.5, 2.0)  # what a number is multiplied by


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
    for picture in reproduction.summarise(finished.values).pictures:
        assert (FOLDER / picture).read_text(encoding="utf-8").lstrip().startswith("<svg")


@pytest.mark.parametrize(("finished", "k"), CLAIMS)
def test_a_claim_is_judged_by_the_numbers(finished: FinishedResult, k: int) -> None:
    """Some one number, changed, changes the verdict; or, of a claim that fails in many places, all of one name."""
    claim = finished.reproduction.claims[k]
    verdict = claim.check(finished.values).verdict
    assert any(_verdict(claim, changed) not in (verdict, None) for changed in _changed(finished.values))


def _verdict(claim: Claim, values: Any) -> str | None:
    try:
        return claim.check(values).verdict
    except ZeroDivisionError:  # a ratio to a number that was changed to 0
        return None


def _changed(values: Any) -> Iterator[Any]:
    """The values with one number changed at a time, and then with all numbers of one name changed."""
    paths = list(_paths(values))
    names = {_name(path) for path in paths}
    groups = [[path] for path in paths] + [[path for path in paths if _name(path) == name] for name in sorted(names)]
    for group in groups:
        for other, factor in [*((other, 0.0) for other in OTHERS), *((0.0, factor) for factor in FACTORS)]:
            changed = copy.deepcopy(values)
            for path in group:
                at = changed
                for step in path[:-1]:
                    at = at[step]
                at[path[-1]] = other + factor * at[path[-1]]
            yield changed


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
