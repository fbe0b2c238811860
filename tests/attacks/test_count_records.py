"""The attacker wants to know how many records a party has, where the promise is to records that come and go, or to
whole parties: then a number of records is a fact about those who are protected.

It reads what parties announce, the summary, the report and the file of a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit import Ensemble, Federation, PrivateNewton, TernaryDescent
from tacit.errors import PolicyRefusal, SettingError
from tacit.federation.group import SumGroup
from tacit.federation.policy import Policy
from tacit.methods import Method
from tacit.privacy.ledger import Budget
from tacit.studies.study import Study

from .learned_of_a_party import Daemon

SIZES = {"north": 211, "south": 223}
PUBLIC = [[0.1, 0.2], [-0.3, 0.4], [0.5, -0.5]]
HIDING: list[Method] = [
    Ensemble(epsilon=5.0, public=PUBLIC),
    TernaryDescent(epsilon=5.0, rounds=2, hidden_layer_sizes=()),
    PrivateNewton(epsilon=50.0, relation="add-remove", rounds=0),
]


def federation() -> Federation:
    chance = np.random.default_rng(0)
    X = chance.uniform(-0.7, 0.7, size=(sum(SIZES.values()), 2))
    groups = np.repeat(list(SIZES), list(SIZES.values()))
    return Federation.split(X, (X[:, 0] > 0).astype(int), groups=groups, norm_bound=1.0)


def numbers(form: Any) -> Iterator[Any]:
    match form:
        case dict():
            for value in form.values():
                yield from numbers(value)
        case list():
            for value in form:
                yield from numbers(value)
        case _:
            yield form


@pytest.mark.parametrize("method", HIDING, ids=lambda method: method.name)
def test_neither_report_nor_file_tells_how_many_records_there_are(method: Method, tmp_path: Path) -> None:
    model = method.fit(federation())
    assert [party.n_records for party in model.facts_.parties] == [None, None]
    assert model.facts_.n_records is None
    model.save(tmp_path / "model.json")
    told = set(numbers(json.loads((tmp_path / "model.json").read_text())))
    assert not told & {*SIZES.values(), sum(SIZES.values())}
    for text in (model.summary(), model.report.text()):
        assert not any(f" {n} " in text for n in (*SIZES.values(), sum(SIZES.values())))


@pytest.mark.parametrize("method", HIDING, ids=lambda method: method.name)
def test_nothing_of_a_run_follows_from_the_sizes(method: Method) -> None:
    """Group, plan and course are what they are with other numbers of records."""
    schema = federation().schema
    terms = [
        method.terms(schema, SumGroup.of(sizes, quorum=2, told=method.sizes_told))
        for sizes in (SIZES, {"north": 210, "south": 224})
    ]
    assert terms[0].digest == terms[1].digest


STUDY = """
[study]
name = "trial"
purpose = "Who recovers?"

[target]
name = "recovered"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 20
high = 90

[method]
name = "{method}"

[privacy]
epsilon = 1.0
unit = "{unit}"
relation = "{relation}"

[federation]
quorum = 1
"""


@pytest.mark.parametrize(
    ("method", "unit", "relation"),
    [
        ("ensemble", "party", "replace-one"),
        ("ternary-descent", "record", "add-remove"),
        ("private-newton", "record", "add-remove"),
    ],
)
def test_a_party_does_not_announce_its_size(method: str, unit: str, relation: str, tmp_path: Path) -> None:
    study = Study.parse(STUDY.format(method=method, unit=unit, relation=relation))
    cards = []
    for n in (30, 31):
        records = pd.DataFrame({"age": range(30, 30 + n), "recovered": (["no", "yes"] * n)[:n]})
        cards.append(Daemon(tmp_path / str(n), study, records).card())
    assert cards[0] == cards[1]
    assert cards[0]["n_records"] == 0


def test_what_needs_a_size_asks_for_a_declared_one() -> None:
    with pytest.raises(
        SettingError, match=r"party_records = None: with compression = 'none' .* declare about how many"
    ):
        TernaryDescent(compression="none").fit(federation())
    with pytest.raises(SettingError, match=r"party_records = None: the mean of models needs a bound"):
        Ensemble(labels="avg", release="minimiser").fit(federation())


def test_a_budget_for_records_that_come_and_go_tells_no_size_of_another_promise(tmp_path: Path) -> None:
    """The study's own promise is for records that are replaced, and would announce how many there are."""
    study = Study.parse(STUDY.format(method="noisy-descent", unit="record", relation="replace-one"))
    daemon = Daemon(tmp_path / "party", study, pd.DataFrame({"age": range(30, 60), "recovered": ["no", "yes"] * 15}))
    assert daemon.card()["n_records"] == 30
    file = tmp_path / "party" / "party.toml"
    file.write_text(file.read_text().replace('relation = "replace-one"', 'relation = "add-remove"'))
    with pytest.raises(PolicyRefusal, match="tells how many records it has"):
        Policy(budget=Budget(relation="add-remove")).check_sizes("a", "noisy-descent", "each")
    assert "n_records" not in daemon.card()
