"""The comparison of `benchmarks/private_accuracy.py`: one relation a table, marks that can be missed, enough runs."""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

from tacit.methods import make

ROOT = Path(__file__).parent.parent
PLAIN = {"n": 80.0, "d": 3.0, "positive": 0.3, "accuracy": 0.9, "auc": 0.95, "average_precision": 0.8, "log_loss": 0.2}
MARKS = {"frequencies": {"accuracy": 0.7, "log_loss": 0.61}}


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The script and its parts."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        names = ("accuracy_cell", "accuracy_page", "accuracy_below")
        parts = {name: importlib.import_module(f"peers.{name}") for name in names}
        yield SimpleNamespace(script=importlib.import_module("private_accuracy"), **parts)
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def cell(method: str, *accuracies: float, losses: tuple[float, ...] = (), **facts: Any) -> dict[str, Any]:
    runs = [{"accuracy": a, "auc": a, "average_precision": a, "seconds": 1.0} for a in accuracies]
    for run, loss in zip(runs, losses, strict=False):
        run["log_loss"] = loss
    return {"set": "made_up", "method": method, "epsilon": 1.0, "runs": runs} | facts


def page_of(bench: Any, *cells: dict[str, Any], plain: dict[str, Any] = PLAIN | MARKS, **more: Any) -> str:
    text: str = bench.accuracy_page.page({"plain": {"made_up": plain}, "cells": list(cells)} | more)
    return text


def below(text: str) -> str:
    return text.partition("below the class frequencies\n")[2].partition("Runs of each")[0]


def test_a_method_is_measured_under_the_relations_it_has(bench) -> None:
    relations_of = bench.accuracy_cell.relations_of
    assert relations_of("private-newton") == ("replace-one", "add-remove")
    assert relations_of("ternary-descent") == relations_of("opacus") == ("add-remove",)
    for peer in set(bench.script.PEERS) - {"diffprivlib", "opacus"}:
        assert relations_of(peer) == ("replace-one", "add-remove")
    assert set(bench.script.PEERS) == set(bench.accuracy_cell.PEER_RELATIONS)
    for method in ("functional-mechanism", "noisy-descent", "objective-perturbation", "averaging", "diffprivlib"):
        assert relations_of(method) == ("replace-one",)


def test_a_model_has_the_relation_of_its_cell(bench) -> None:
    for method in bench.accuracy_cell.OURS:
        for relation in bench.accuracy_cell.relations_of(method):
            settings = bench.accuracy_cell.settings_of(bench.accuracy_cell.Cell("a9a", method, 1.0, relation))
            assert make(method, {"epsilon": 1.0, "delta": 1e-6} | settings).guarantee.relation == relation


def test_older_cells_have_the_relation_that_their_method_had(bench) -> None:
    of = bench.accuracy_cell.Cell.of
    assert of(cell("opacus", 0.8)).relation == "add-remove"
    assert of(cell("private-newton", 0.8)).relation == "replace-one"
    assert of(cell("private-newton", 0.8, relation="add-remove")).relation == "add-remove"


def test_an_older_cell_is_measured_again_since_it_has_no_log_loss(bench) -> None:
    is_done = bench.accuracy_cell.is_done
    assert not is_done(cell("averaging", 0.8, 0.8), 2)
    assert not is_done(cell("averaging", 0.8, 0.8, losses=(0.5,)), 2)
    assert is_done(cell("averaging", 0.8, 0.8, losses=(0.5, 0.5)), 2)
    assert not is_done(cell("averaging", 0.8, 0.8, losses=(0.5, 0.5)), 3)


@pytest.mark.parametrize(("spent", "runs"), [(9.9, 20), (10.1, 5)])
@pytest.mark.parametrize("method", ["averaging", "opacus"])
def test_the_first_run_decides_how_many_there_are(bench, monkeypatch, method: str, spent: float, runs: int) -> None:
    later = {"cpu_seconds": 11.0, "seconds": 99.0}
    monkeypatch.setattr(bench.script, "data", lambda name: None)
    monkeypatch.setattr(bench.script, "federation", lambda name: None)
    monkeypatch.setattr(
        bench.script, "one_run", lambda *given, seed: later | ({"cpu_seconds": spent} if seed == 0 else {})
    )
    asked = bench.accuracy_cell.Cell("a9a", method, 1.0, "replace-one")
    assert len(bench.script.run_cell(asked, 20)) == runs
    assert len(bench.script.run_cell(asked, 2)) == 2


def made_up_data(bench: Any) -> Any:
    rng = np.random.default_rng(3)
    X, X_test = (rng.uniform(-0.5, 0.5, size=(size, 2)) for size in (400, 200))
    y, y_test = ((rows[:, 0] > 0.2).astype(np.int64) for rows in (X, X_test))
    return bench.script.Data(X, y, X_test, y_test)


def test_log_loss_is_that_of_the_test_labels(bench) -> None:
    found = made_up_data(bench)
    scores = 3 * found.X_test[:, 0] - 0.5
    assert found.figures(scores)["log_loss"] == pytest.approx(log_loss(found.y_test, 1 / (1 + np.exp(-scores))))
    assert math.isfinite(found.figures(1e6 * scores)["log_loss"])
    share = found.y.mean()
    expected = {"accuracy": np.mean(found.y_test == 0), "log_loss": log_loss(found.y_test, np.full(200, share))}
    assert found.frequencies() == pytest.approx(expected)


def test_shuffled_labels_say_nothing_and_test_labels_stay(bench, monkeypatch) -> None:
    found = made_up_data(bench)
    monkeypatch.setattr(bench.script, "data", lambda name: found)
    asked = bench.accuracy_cell.Cell("made_up", "averaging", 1e6, "replace-one")
    assert bench.script.run_cell(asked, 1)[0]["auc"] > 0.99
    areas = [run["auc"] for run in bench.script.shuffled_cell(asked, 5)]
    assert len(set(areas)) == 5
    assert 0.05 < np.mean(areas) < 0.95
    assert found.shuffled(1).y.sum() == found.y.sum()
    assert found.shuffled(1).y_test is found.y_test


@pytest.mark.skipif(not os.environ.get("TACIT_DATA"), reason="set TACIT_DATA to the data folder")
def test_records_of_all_tables_are_used(bench) -> None:
    found = bench.script.data("wine_quality")
    assert len(found.y) + len(found.y_test) == 1_599 + 4_898


def test_rivals_are_those_under_the_same_relation(bench) -> None:
    ours, theirs = cell("private-newton", 0.80, 0.80), cell("opacus", 0.85, 0.85)
    assert "Nowhere by more" in page_of(bench, ours, theirs)
    assert "It was not run." in page_of(bench, theirs)
    text = page_of(bench, ours | {"relation": "add-remove"}, theirs)
    assert "made_up, add-remove, accuracy, epsilon 1: 0.8000 against 0.8500 of opacus" in text
    assert "made_up, replace-one" not in text


def test_a_verdict_tells_methods_for_parties_from_peers(bench) -> None:
    ours, slower = cell("private-newton", 0.80, 0.80), cell("averaging", 0.79, 0.79)
    peer = cell("tight-objective", 0.85, 0.85)
    assert "| made_up | replace-one | accuracy | all | all |" in page_of(bench, ours, slower)
    assert "| made_up | replace-one | accuracy | no other was run | none |" in page_of(bench, ours, peer)
    text = page_of(bench, ours, slower, peer)
    assert "| made_up | replace-one | accuracy | all | none |" in text
    assert "epsilon 1: 0.8000 against 0.8500 of tight-objective\n" in text
    other = cell("averaging", 0.82, 0.82)
    text = page_of(bench, ours, other, peer, ours | {"epsilon": 3.0})
    assert "| made_up | replace-one | accuracy | 3 | 3 |" in text
    assert "epsilon 1: 0.8000 against 0.8500 of tight-objective, and 0.8200 of averaging" in text


def test_of_log_loss_less_is_better(bench) -> None:
    ours = cell("private-newton", 0.8, 0.8, losses=(0.5, 0.5))
    text = page_of(bench, ours, cell("averaging", 0.8, 0.8, losses=(0.4, 0.4)))
    assert "| averaging | **0.4000 (0.0000)** |" in text
    assert "made_up, replace-one, log-loss, epsilon 1: 0.5000 against 0.4000 of averaging" in text


def test_a_loss_beyond_all_measure_is_told_in_its_order(bench) -> None:
    text = page_of(bench, cell("averaging", 0.8, 0.8, losses=(1.2e7, 1.4e7)))
    assert "| averaging | **1e+07 (1e+06)** |" in text


def test_the_page_names_who_is_below_the_class_frequencies(bench) -> None:
    table = below(
        page_of(
            bench,
            cell("averaging", 0.60, 0.62, losses=(0.6, 0.6)),
            cell("noisy-descent", 0.60, 0.79, losses=(0.7, 0.72)),  # accuracy within a standard error
            cell("objective-perturbation", 0.71, 0.71, losses=(0.6, 0.6)),
        )
    )
    assert "| replace-one | averaging | 1 (0.09) | nowhere |" in table
    assert "| replace-one | noisy-descent | nowhere | 1 (0.1) |" in table
    assert "objective-perturbation" not in table
    clean = below(page_of(bench, cell("averaging", 0.7, 0.7, losses=(0.61, 0.61))))
    assert "No method falls below the class frequencies" in clean


def test_what_was_not_measured_is_not_called_clean(bench) -> None:
    old = cell("averaging", 0.8, 0.8)
    assert "| averaging | nowhere | not measured |" in below(page_of(bench, old, plain=PLAIN))
    new = cell("averaging", 0.8, 0.8, losses=(0.7, 0.7), epsilon=3.0)
    assert "| averaging | nowhere | 3 (0.09); not measured at 1 |" in below(page_of(bench, old, new))


def test_who_had_fewer_runs_is_named(bench) -> None:
    many, few = cell("averaging", 0.8, 0.8, 0.8), cell("tuned-dp-sgd", 0.8, 0.8, relation="add-remove")
    text = page_of(bench, many, few, many | {"epsilon": 3.0})
    assert "Runs of each cell: 3; 2 of tuned-dp-sgd (add-remove).\n" in text
    assert "Runs of each cell: 3.\n" in page_of(bench, many)


def test_a_rare_class_is_judged_by_the_order_and_the_loss(bench) -> None:
    ours = cell("averaging", 0.8, 0.8, losses=(0.5, 0.5))
    rare = page_of(bench, ours, plain=PLAIN | MARKS | {"positive": 0.01})
    for words in ("Average precision;", "Area under the curve;", "Log-loss (less is better);"):
        assert words in rare
    assert "Accuracy;" not in rare
    assert "Area under the curve;" not in page_of(bench, ours)


@pytest.mark.parametrize(
    ("areas", "said"),
    [
        ((0.90, 0.92), "holds no information on labels that shows"),
        ((0.80, 0.81), "72% needs no labels"),
        ((0.50, 0.51), "most of that area comes from labels"),
    ],
)
def test_the_paragraph_on_shuffled_labels_follows_the_figures(bench, areas: tuple[float, ...], said: str) -> None:
    true, shuffled = cell("averaging", 0.92, 0.93), cell("averaging", *areas, relation="replace-one")
    text = page_of(bench, true, shuffled=[shuffled])
    assert said in text
    assert f"an area under the curve of {np.mean(areas):.3f}" in text
    assert "shuffled" not in page_of(bench, true)


def test_sets_on_which_no_rule_was_chosen_are_named(bench) -> None:
    bank = cell("averaging", 0.8, set="bank_marketing")
    plain = {"bank_marketing": PLAIN, "made_up": PLAIN}
    text = bench.accuracy_page.page({"plain": plain, "cells": [bank, cell("averaging", 0.8)]})
    assert "- Sets on this page that no rule was chosen on: made_up.\n" in text
    assert "Rules were chosen on this set." in text.partition("## bank_marketing")[2].partition("## made_up")[0]
    assert "**No rule was chosen on this set.**" in text.partition("## made_up")[2]
    rules = importlib.import_module("newton_rules")
    assert set(rules.SETS) == set(bench.accuracy_page.CHOSEN_ON)


def test_the_page_in_docs_is_that_of_the_kept_cells(bench) -> None:
    results = json.loads((ROOT / "docs" / "accuracy.json").read_text())
    assert bench.accuracy_page.page(results) == (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")


def test_cells_of_a_method_that_has_changed_are_named_until_they_are_measured_again(bench, tmp_path) -> None:
    kept = bench.script.Kept.read(tmp_path / "accuracy.json")
    runs = [{"accuracy": 0.8, "auc": 0.8, "average_precision": 0.8, "log_loss": 0.4, "seconds": 1.0}] * 2
    ours, theirs = (
        bench.accuracy_cell.Cell("made_up", name, 1.0, "replace-one") for name in ("private-newton", "averaging")
    )
    kept.take("cells", ours, runs)
    kept.take("cells", theirs, runs)
    kept.outdate("private-newton")
    assert kept.done("cells", 2) == {theirs}
    kept.results["plain"] = {"made_up": PLAIN | MARKS}
    assert "before the last change of the method: private-newton (replace-one) at 1." in bench.accuracy_page.page(
        kept.results
    )
    kept.take("cells", ours, runs)
    assert kept.done("cells", 2) == {ours, theirs}
    assert "before the last change" not in bench.accuracy_page.page(kept.results)
