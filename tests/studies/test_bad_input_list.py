"""What people have tried and got wrong: each is refused with the cause and the way out, and no exception is raw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tacit
from tacit.cli.main import main

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] > 0).astype(int)
SCHEMA = tacit.Schema((tacit.Numeric("a", 0, 1), tacit.Categorical("c", ("M", "F"))), tacit.Target("y", ("no", "yes")))
GROUPS = np.array(["a", "b", np.nan] * 100, dtype=object)
GROUPS[GROUPS != GROUPS] = None


def split(**changes: Any) -> tacit.Federation:
    return tacit.Federation.split(**{"X": X, "y": Y, "n_parties": 3} | changes)


def fitted() -> tacit.Pooled:
    return tacit.Pooled(l2=1.0).fit(split())


def study(**changes: Any) -> tacit.Study:
    return tacit.Study(**{"name": "s", "purpose": "p", "schema": SCHEMA} | changes)


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "epsilon of a billion": (
        lambda: tacit.PrivateNewton(epsilon=1e9).fit(split()),
        "promises nothing; choose 10 or less",
    ),
    "a study named like a path": (lambda: study(name="../../etc/passwd"), r"cannot name a folder.*begin with a letter"),
    "a party with a space": (
        lambda: study(federation={"parties": ["St. Mary", "b"]}),
        "give 1 to 63 lower-case letters",
    ),
    "a misspelt method": (lambda: tacit.Policy(not_private=["poold"]), "no method; did you mean 'pooled'"),
    "records of no party": (
        lambda: split(groups=GROUPS, n_parties=None),
        r"without a party.*the first in row 2; name one",
    ),
    "a continuous y": (lambda: split(y=RNG.normal(size=300)), "look continuous; give classes"),
    "an id as y": (lambda: split(y=np.arange(300)), "look like a quantity or an id; give classes"),
    "a sparse X": (lambda: split(X=scipy.sparse.csr_matrix(X)), r"X is a sparse matrix; give a dense one.*toarray"),
    "sparse rows to predict": (
        lambda: fitted().predict(scipy.sparse.csr_matrix(X)),
        r"sparse matrix; give a dense one",
    ),
    "fit as in scikit-learn": (
        lambda: tacit.Pooled().fit(X, Y),
        r"takes a Federation.*make one with tacit.Federation.split",
    ),
    "two and a half parties": (lambda: split(n_parties=2.5), "n_parties = 2.5 is no whole number; give how many"),
    "text to predict": (lambda: fitted().predict([["a", "b", "c"]]), r"row 0, column 'x0'.*correct them"),
    "a name to predict": (lambda: fitted().predict("rows.csv"), "X is a str; give a matrix of shape"),
    "nothing to predict": (lambda: fitted().predict(None), "X is a NoneType; give a matrix of shape"),
    "save where no folder is": (
        lambda: fitted().save("nowhere/model.json"),
        "there is no folder 'nowhere'; make it first",
    ),
    "a report where no folder is": (
        lambda: fitted().report.save("nowhere/r.html"),
        "name a file in a folder that exists",
    ),
    "a model that is not there": (lambda: tacit.load("nowhere.json"), "cannot be read.*give the path of a file"),
    "labels of other records": (lambda: fitted().score(X, Y[:5]), r"does not fit the 300 records of X; give one label"),
    "labels that mean the same": (
        lambda: tacit.Categorical("c", ("M", "m")),
        r"mean the same: \['M', 'm'\]; name each once",
    ),
    "a study without columns": (lambda: study(schema=None), "schema is a NoneType; give a tacit.Schema"),
    "privacy as a number": (lambda: study(privacy=1.0), r"privacy is a number; write privacy=\{'epsilon': 1\}"),
    "sizes without names": (lambda: study().plan([300, 200]), "must be names with whole numbers of records, such as"),  # type: ignore[arg-type]
    "half a record": (lambda: study().plan({"north": 2.5}), "must be names with whole numbers of records"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("what", BAD)
def test_it_is_refused_with_cause_and_way_out(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    attempt, words = BAD[what]
    with pytest.raises(tacit.TacitError, match=f"(?s){words}"):
        attempt()


def test_a_file_that_is_not_what_its_name_says(tmp_path: Path) -> None:
    (tmp_path / "fake.parquet").write_text("hello")
    with pytest.raises(
        tacit.TacitError, match=r"fake.parquet cannot be read; it is not of the kind.*Write it anew"
    ) as told:
        tacit.Table.from_file(tmp_path / "fake.parquet", SCHEMA)
    assert "Exception" not in str(told.value)


def test_case_does_not_make_a_category(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,c,y\n0.5,m,YES\n0.1,M,yes\n0.2,f,No\n")
    table = tacit.Table.from_file(tmp_path / "d.csv", SCHEMA)
    X_found, y_found = table.arrays()
    assert X_found[:, 1].tolist() == [0.0, 0.0, 1.0]
    assert y_found.tolist() == [1, 1, 0]


def test_the_line_of_what_is_no_number_is_told_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("a,c,y\n0.5,M,yes\nxx,M,yes\n")
    with pytest.raises(tacit.TacitError, match=r"(?s)not finite numbers.*`tacit check STUDY --data FILE` shows"):
        tacit.Table.from_file(tmp_path / "e.csv", SCHEMA)
    assert "line 3, column 'a': 'xx' is no finite number" in study().check(tmp_path / "e.csv").lines()[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "path.toml"], "study.name = '../../etc/passwd' cannot name a folder or a file"),
        (["plan", "mary.toml"], "'St. Mary' cannot be used: give 1 to 63 lower-case letters"),
        (
            ["plan", "good.toml", "--method", "pooled", "--epsilon", "1"],
            "pooled promises nothing; leave the epsilon out",
        ),
        (["plan", "good.toml", "--epsilon", "1e9"], "epsilon = 1e+09 promises nothing"),
    ],
)
def test_commands_say_it_in_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    good = study(privacy={"epsilon": 1.0}, federation={"parties": ["mary", "b"]}).to_toml()
    Path("good.toml").write_text(good)
    Path("path.toml").write_text(good.replace('name = "s"', 'name = "../../etc/passwd"'))
    Path("mary.toml").write_text(good.replace('"mary"', '"St. Mary"'))
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err
    assert told.err.count("\n") == 1
