"""A study in code does what its file and the commands do; notebooks show studies, parties, models and rounds."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import SettingError, StudyError
from tacit.federation.federation import Federation
from tacit.studies import study as written

EVIL = "<script>alert(1)</script>"


def study(**changes: Any) -> tacit.Study:
    schema = tacit.Schema(
        (tacit.Numeric("age", 20, 90), tacit.Binary("treated")), tacit.Target("recovered", ("no", "yes"))
    )
    given: dict[str, Any] = {"name": "trial", "purpose": "Who recovers?", "schema": schema, "privacy": {"epsilon": 1.0}}
    return tacit.Study(**given | changes)


def frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, treated = rng.uniform(20, 90, n), rng.integers(0, 2, n)
    chance = 1 / (1 + np.exp(0.04 * (age - 55) - 1.5 * treated))
    return pd.DataFrame({"age": age, "treated": treated, "recovered": np.where(rng.random(n) < chance, "yes", "no")})


def frames() -> dict[str, pd.DataFrame]:
    return {name: frame(400, k) for k, name in enumerate(("north", "south", "west"))}


def test_file_and_code_are_two_faces_of_one_thing(tmp_path: Path) -> None:
    asked = study(federation={"quorum": 2, "parties": ["north", "south", "west"]})
    assert asked.save(tmp_path / "study.toml") == tmp_path / "study.toml"
    again = tacit.Study.from_file(tmp_path / "study.toml")
    assert again == asked == written.Study.read(tmp_path / "study.toml")
    assert repr(again) == "Study(name='trial', target='recovered', n_features=2, epsilon=1)"
    assert again.digest() == asked.digest()
    assert again.federation.quorum == 2


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"privacy": {"epsilom": 1.0}}, "privacy has an unknown key 'epsilom'; did you mean 'epsilon'"),
        ({"privacy": {"delta": 1e-6}}, r"privacy.epsilon is missing; give it \(1 is usual\)"),
        ({"federation": {"quorums": 2}}, "federation has an unknown key 'quorums'; did you mean 'quorum'"),
    ],
)
def test_a_table_given_in_code_is_read_as_strictly(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(StudyError, match=why):
        study(**changes)


def test_an_unknown_method_is_refused_when_the_file_is_read(tmp_path: Path) -> None:
    study(method="private-newten").save(tmp_path / "study.toml")
    with pytest.raises(StudyError, match=r"private-newten.*did you mean 'private-newton'"):
        tacit.Study.from_file(tmp_path / "study.toml")


def test_a_person_names_the_unit() -> None:
    asked = study(privacy={"epsilon": 1.0, "person": "patient"})
    assert asked.privacy is not None
    assert asked.privacy.unit == "person"


def test_check_tells_line_and_column(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    frame(50, 0).to_csv(good, index=False)
    frame(50, 0).assign(treated="maybe").to_csv(bad, index=False)
    assert study().check(good).fits
    found = study().check(str(bad))
    assert not found.fits
    assert "bad.csv, line 2, column 'treated': 'maybe' is not declared" in found.lines()[0]


def test_plan_promises_without_data_and_forecasts_with_sizes() -> None:
    plan = study().plan()
    assert (plan.guarantee.epsilon, plan.outlook, plan.method.name) == (1.0, None, "private-newton")
    assert "by at most a factor of 2.72" in str(plan)
    public = tacit.Table.from_frame(frame(400, 5), study().schema)
    told = str(study(method="averaging").plan({"north": 300, "south": 300}, public=public))
    assert "Forecast  At epsilon 1 the model would be" in told


def test_fit_takes_files_frames_tables_or_a_federation(tmp_path: Path) -> None:
    asked = study(privacy=None)
    given = frames()
    for name, records in given.items():
        records.to_csv(tmp_path / f"{name}.csv", index=False)
    tables = {name: tacit.Table.from_frame(records, asked.schema) for name, records in given.items()}
    files = {name: tmp_path / f"{name}.csv" for name in given}
    joined = tacit.Federation.from_tables(tables, policy=tacit.Policy.disclosing_everything(), study="trial")
    models = [asked.fit(parties) for parties in (given, tables, files, joined)]
    for model in models:
        np.testing.assert_allclose(model.coef_, models[0].coef_, rtol=1e-6)
        assert model.facts_.study is not None
        assert model.facts_.study.digest == asked.digest()


def test_a_private_fit_is_charged_to_the_ledger_that_is_given(tmp_path: Path) -> None:
    ledger = tacit.Ledger(tmp_path / "ledger.db")
    model = study().fit(frames(), ledger=ledger)
    assert model.facts_.is_private
    assert ledger.epsilon("north", delta=model.delta_, study="trial") == pytest.approx(1.0, rel=0.01)


def test_looks_are_run_as_the_file_plans_them() -> None:
    text = (
        study(federation={"quorum": 2}).to_toml()
        + '\n[stop]\nlooks = [800, 1200]\ncoefficient = "age"\nhalf_width = 1.0\n'
    )
    model = tacit.Study.parse(text).fit(frames())
    assert "It stopped at look 1" in model.summary() or "look 1 of 2" in model.summary()


@pytest.mark.parametrize(
    ("parties", "why"),
    [
        ({}, "parties is a dict; give a Federation, or names with files"),
        (["north.csv"], "parties is a list; give a Federation"),
        ({"north": 3}, "party 'north' has a int; give a file's path, a data frame or a Table"),
        ({"north": "x.csv", "south": "x.csv"}, "x.csv"),
    ],
)
def test_what_is_no_party_is_refused(parties: Any, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        study().fit(parties)


def test_a_federation_keeps_its_own_settings() -> None:
    tables = {name: tacit.Table.from_frame(records, study().schema) for name, records in frames().items()}
    with pytest.raises(SettingError, match="a Federation has its own ledger"):
        study().fit(tacit.Federation.from_tables(tables), ledger=None)


def test_a_notebook_shows_studies_parties_and_models_as_text_whatever_they_contain() -> None:
    asked = study(purpose=EVIL)
    tables = {name: tacit.Table.from_frame(records, asked.schema) for name, records in frames().items()}
    parties = Federation.from_tables(tables, study=EVIL)
    model = asked.fit(parties)
    html = model._repr_mimebundle_()["text/html"]
    for shown, words in ((asked._repr_html_(), "20 to 90"), (parties._repr_html_(), "west"), (html, "treated")):
        assert words in shown
        assert "<script>alert" not in shown
    assert "model.report" in html
    assert "Promised." in html
    assert "treated" not in tacit.PrivateNewton(epsilon=1.0)._repr_mimebundle_()["text/html"]
    assert repr(parties).startswith("Federation(study=")


class Kernel:
    """A stand-in for a notebook's kernel: it keeps what it is asked to show."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, html: str, *, display_id: bool) -> Kernel:
        assert display_id
        self.shown.append(html)
        return self

    def update(self, html: str) -> None:
        self.shown.append(html)


def test_a_notebook_counts_the_rounds_and_clears_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, ipython, display = Kernel(), ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: type("Shell", (), {"kernel": kernel})()  # type: ignore[attr-defined]
    display.display, display.HTML = kernel.display, str  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    model = study().fit(frames())
    rounds = [line for line in kernel.shown if ": round " in line]
    assert kernel.shown[0] == "<em>fitting private-newton ...</em>"
    assert len(rounds) == model.n_rounds_
    assert "round 1, private-newton/squares" in rounds[0]
    assert kernel.shown[-1] == ""


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    study().fit(frames())
    assert capsys.readouterr() == ("", "")
