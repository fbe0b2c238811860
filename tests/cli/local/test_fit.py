"""`tacit fit`: what it prints, writes and refuses."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import tacit
from tacit.errors import SettingError
from tacit.privacy.ledger import Ledger

from ..conftest import Outcome, frame, parties

Run = Callable[..., Outcome]
KEYS = {
    "method", "calibration", "parties", "coefficients", "standard_errors", "guarantee", "rounds", "bytes", "seconds",
    "metrics",
}  # fmt: skip


def test_json_is_one_object_with_the_promised_keys(run: Run, trial: Path) -> None:
    done = run("fit", trial / "study.toml", *parties(trial), "--test", trial / "test.csv", "--json")
    assert done.status == 0
    result = done.json
    assert result.keys() >= KEYS
    assert result["method"] == "averaging"
    assert result["guarantee"] == {"epsilon": 1.0, "delta": 1e-6, "unit": "record", "relation": "replace-one"}
    assert list(result["coefficients"]) == ["(intercept)", "age", "ward=b", "ward=c", "treated"]
    assert [party["n_records"] for party in result["parties"]] == [120, 80, 50]
    assert 0 < result["metrics"]["accuracy"] < 1
    assert result["rounds"] == 1
    assert result["bytes"] > 1000


def test_pooled_coefficients_are_in_original_units_and_equal_statsmodels(run: Run, trial: Path) -> None:
    done = run("fit", trial / "study.toml", *parties(trial), "--method", "pooled", "--json")
    assert done.status == 0
    records = pd.concat([frame(120, 0), frame(80, 1), frame(50, 2)])
    design = pd.DataFrame(
        {
            "(intercept)": 1.0,
            "age": records["age"],
            "ward=b": (records["ward"] == "b").astype(float),
            "ward=c": (records["ward"] == "c").astype(float),
            "treated": records["treated"].astype(float),
        }
    )
    plain = sm.Logit((records["recovered"] == "yes").astype(float), design).fit(disp=0, tol=1e-14)
    result = done.json
    for name in design:
        assert result["coefficients"][name] == pytest.approx(plain.params[name], abs=1e-6)
        assert result["standard_errors"][name] == pytest.approx(plain.bse[name], abs=1e-6)
    assert result["guarantee"] is None
    assert result["is_private"] is False


def test_a_person_reads_a_table_and_what_was_promised(run: Run, trial: Path) -> None:
    done = run("fit", trial / "study.toml", *parties(trial), "--test", trial / "test.csv")
    assert done.status == 0
    for words in ("treated", "by at most a factor of 2.72", "What was spent, by whom", "Who saw what", "accuracy"):
        assert words in done.out


def test_out_writes_the_model_the_report_and_the_result(run: Run, trial: Path) -> None:
    folder = trial / "deep" / "results"
    done = run("fit", trial / "study.toml", *parties(trial), "--out", folder)
    assert done.status == 0
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "report.html", "report.txt", "result.json"]
    model = tacit.load(folder / "model.json")
    written = json.loads((folder / "result.json").read_text())
    assert model.predict(frame(5, 3)).shape == (5,)
    assert written["coefficients"].keys() == {row.label for row in model.facts_.coefficients}
    assert "<html" in (folder / "report.html").read_text()


def test_epsilon_and_method_of_the_command_line_win(run: Run, trial: Path) -> None:
    done = run("fit", trial / "study.toml", *parties(trial), "--epsilon", "0.25", "--json")
    assert done.json["guarantee"]["epsilon"] == 0.25
    local = run("fit", trial / "study.toml", *parties(trial), "--method", "local", "--json")
    assert local.json["method"] == "local"


def test_a_ledger_file_remembers_what_was_spent(run: Run, trial: Path) -> None:
    for _ in range(2):
        assert run("fit", trial / "study.toml", *parties(trial), "--ledger", trial / "l.db", "--json").status == 0
    ledger = Ledger(trial / "l.db")
    assert ledger.n_releases("north", "trial") == 2
    assert 1.2 < ledger.epsilon("north", delta=1e-6, study="trial") < 2.0  # Gaussian noise adds up to less


def test_values_outside_the_bounds_are_clipped_and_counted(run: Run, trial: Path) -> None:
    records = frame(60, 4)
    records.loc[:6, "age"] = 200
    records.to_csv(trial / "north.csv", index=False)
    done = run("fit", trial / "study.toml", *parties(trial), "--json")
    assert done.status == 0
    assert "north: 7 values of 'age' lay outside the declared bounds and were clipped" in done.err


def spoil(folder: Path, column: str, value: object, rows: int = 3) -> None:
    records = frame(40, 4).astype(object)
    records.loc[: rows - 1, column] = value
    records.to_csv(folder / "north.csv", index=False)


BAD_FILES = {
    "empty file": (lambda f: (f / "north.csv").write_text(""), "north.csv"),
    "header only": (lambda f: frame(40, 1).iloc[:0].to_csv(f / "north.csv", index=False), r"north.csv.*no records"),
    "missing file": (lambda f: (f / "north.csv").unlink(), "north.csv"),
    "missing column": (
        lambda f: frame(40, 1).drop(columns="age").to_csv(f / "north.csv", index=False),
        "north.csv.*age",
    ),
    "extra column": (lambda f: frame(40, 1).assign(id=1).to_csv(f / "north.csv", index=False), "north.csv.*id.*ignore"),
    "NaN": (lambda f: spoil(f, "age", np.nan), r"north.csv.*age.*3.*missing"),
    "text in a number": (lambda f: spoil(f, "age", "old"), "north.csv.*age.*3"),
    "unknown category": (lambda f: spoil(f, "ward", "zebra"), "north.csv.*ward.*3"),
    "unknown class": (lambda f: spoil(f, "recovered", "maybe"), "north.csv.*recovered.*3"),
    "binary garbage": (lambda f: spoil(f, "treated", "perhaps"), "north.csv.*treated.*3"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_file_is_one_line_that_names_it_and_nothing_is_spent(run: Run, trial: Path, what: str) -> None:
    change, message = BAD_FILES[what]
    change(trial)
    done = run("fit", trial / "study.toml", *parties(trial), "--ledger", trial / "l.db", "--json")
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("tacit: ")
    assert done.err.count("\n") == 1
    assert re.search(message, done.err), done.err
    assert not any(value in done.err for value in ("zebra", "maybe", "perhaps", "old"))  # no record is shown
    assert not (trial / "l.db").exists() or Ledger(trial / "l.db").n_releases("south") == 0


def replaced(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / "study.toml").read_text()
        assert old in text
        (folder / "study.toml").write_text(text.replace(old, new, 1))

    return change


BAD_STUDIES = {
    "typo in a key": (replaced("epsilon =", "epsilom ="), "study.toml.*epsilom.*did you mean.*epsilon"),
    "typo in a table": (replaced("[privacy]", "[privcy]"), "study.toml.*privcy.*did you mean.*privacy"),
    "zero budget": (replaced("epsilon = 1.0", "epsilon = 0"), "study.toml.*epsilon = 0.* above 0"),
    "negative budget": (replaced("epsilon = 1.0", "epsilon = -1"), "study.toml.*epsilon = -1"),
    "NaN budget": (replaced("epsilon = 1.0", "epsilon = nan"), "study.toml.*epsilon = nan"),
    "unknown method": (replaced('"averaging"', '"averagin"'), "study.toml.*averagin.*did you mean.*averaging"),
    "unknown setting": (replaced('name = "averaging"', 'name = "averaging"\nl3 = 1'), "averaging has no setting 'l3'"),
    "bad bounds": (replaced("high = 90", "high = 10"), "study.toml.*age"),
    "one class": (replaced('["no", "yes"]', '["no"]'), "study.toml.*class"),
    "not TOML": (replaced("low = 20", "low = = 20"), "study.toml, line"),
    "no promise": (replaced('"averaging"', '"pooled"'), "pooled promises nothing"),
    "other relation": (replaced("epsilon = 1.0", 'epsilon = 1.0\nrelation = "add-remove"'), "protects one record"),
    "no persons": (replaced("epsilon = 1.0", 'epsilon = 1.0\nperson = "who"'), r"columns \['who'\] are missing"),
    "quorum": (replaced("[privacy]", "[federation]\nquorum = 4\n[privacy]"), "needs 4 parties and 3 were given"),
    "stranger": (
        replaced("[privacy]", '[federation]\nparties = ["north", "south"]\n[privacy]'),
        "'west' is not in the study",
    ),
}


@pytest.mark.parametrize("what", BAD_STUDIES)
def test_a_bad_study_is_one_line_that_says_what_to_do(run: Run, trial: Path, what: str) -> None:
    change, message = BAD_STUDIES[what]
    change(trial)
    done = run("fit", trial / "study.toml", *parties(trial), "--json")
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert re.search(message, done.err), done.err


def test_records_of_a_person_count_as_one(run: Run, trial: Path) -> None:
    replaced("epsilon = 1.0", 'epsilon = 1.0\nperson = "who"')(trial)
    for name in ("north", "south", "test"):
        data = pd.read_csv(trial / f"{name}.csv")
        data.assign(who=np.arange(len(data)) // 2).to_csv(trial / f"{name}.csv", index=False)
    given = [f"--party={name}={trial / name}.csv" for name in ("north", "south")]
    done = run("fit", trial / "study.toml", *given, "--test", trial / "test.csv", "--json")
    assert done.status == 0
    assert done.json["guarantee"]["unit"] == "person"
    assert [party["n_records"] for party in done.json["parties"]] == [60, 40]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--party", "north"], "'north' is not of the form NAME=FILE"),
        (["--party", "north=a.csv", "--party", "north=b.csv"], "'north' is given twice"),
        ([], "no party was given"),
        (["--epsilon", "0"], "epsilon = 0.0 must be a number above 0"),
        (["--epsilon", "nan"], "epsilon = nan"),
        (["--epsilon", "much"], "'much' is not a number.*see tacit fit --help"),
        (["--method", "magic"], "method 'magic' is unknown"),
        (["--colour", "red"], "[Nn]o such option.*--colour"),
    ],
)
def test_a_bad_argument_is_one_line(run: Run, trial: Path, arguments: list[str], message: str) -> None:
    done = run("fit", trial / "study.toml", *arguments)
    assert (done.status, done.out) == (2, "")
    assert re.search(message, done.err), done.err
    assert done.err.count("\n") == 1


def test_one_class_only_is_fine_for_a_private_fit_and_named_by_an_exact_one(run: Run, trial: Path) -> None:
    for name in ("north", "south"):
        frame(30, 1).assign(recovered="yes").to_csv(trial / f"{name}.csv", index=False)
    one_class = [f"--party={name}={trial / name}.csv" for name in ("north", "south")]
    assert run("fit", trial / "study.toml", *one_class, "--json").status == 0
    exact = run("fit", trial / "study.toml", *one_class, "--method", "pooled", "--json")
    assert exact.status == 1
    assert "no record has class" in exact.err


def test_no_traceback_when_it_is_run_as_a_program(trial: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tacit.cli.main", "fit", "nowhere.toml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("tacit: nowhere.toml: cannot be read")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is Linux's /dev/full")
def test_no_traceback_when_there_is_no_room_for_what_is_printed(trial: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "tacit.cli.main", "fit", trial / "study.toml", *parties(trial)]
        command += ["--out", trial / "results"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("tacit: there is no room left for what is printed")
    assert (trial / "results" / "model.json").exists()  # what was paid for is kept all the same
    assert "Traceback" not in done.stderr


def test_what_was_paid_for_is_shown_before_it_is_written(
    run: Run, trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may be full by then, and a private fit cannot be asked for again."""

    def full(*_: object) -> None:
        raise SettingError("'report.html' cannot be written (No space left on device)")

    monkeypatch.setattr("tacit.studies.result.write_result", full)
    for more in ((), ("--json",)):
        said = run("fit", trial / "study.toml", *parties(trial), "--out", trial / "results", *more)
        assert said.status == 2
        assert "treated" in said.out
        assert "No space left" in said.err


def test_a_folder_without_room_is_told_before_anything_is_spent(
    run: Run, trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tacit.cli.console.TemporaryFile", no_room)
    ledger = trial / "ledger.db"
    said = run("fit", trial / "study.toml", *parties(trial), "--out", trial / "results", "--ledger", ledger)
    assert said.status == 2
    assert "cannot be used as a folder: No space left on device" in said.err
    assert not ledger.exists() or Ledger(ledger).n_releases("north") == 0
