"""The other commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import DataError
from tacit.methods import METHODS
from tacit.studies import Study

from ..conftest import STUDY, Outcome, frame, parties

Run = Callable[..., Outcome]


def test_demo_gives_a_table_and_a_page(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path / "demo", "--repeats", "2", "--epsilon", "3")
    assert done.status == 0
    for label in ("screening alone", "county alone", "oncology alone", "together, private, epsilon 3", "+- "):
        assert label in done.out
    page = (tmp_path / "demo" / "report.html").read_text()
    HTMLParser().feed(page)
    assert "<svg" in page
    assert "NOT PRIVATE" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    results = json.loads((tmp_path / "demo" / "report.json").read_text())
    assert results["together, private, epsilon 3"]["is_private"] is True
    # Joining helps: that is what the demo is there to show.
    together = results["together, data shared"]["mean_accuracy"]
    assert together > 0.9
    assert all(
        results[f"{name} alone"]["mean_accuracy"] < together - 0.04 for name in ("screening", "county", "oncology")
    )
    assert results["together, exact secure sums"]["mean_accuracy"] == pytest.approx(together, abs=0.01)


def test_a_bad_epsilon_stops_the_demo_before_it_writes(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path / "demo", "--epsilon", "-2")
    assert (done.status, done.out) == (2, "")
    assert "epsilon = -2.0" in done.err
    assert not (tmp_path / "demo").exists()


def test_an_out_folder_that_cannot_be_made_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("demo", "--out", tmp_path / "file" / "demo")
    assert done.status == 2
    assert "cannot be used as a folder" in done.err


def test_methods_lists_every_method_with_promise_trust_and_cost(run: Run) -> None:
    done = run("methods")
    assert done.status == 0
    assert all(name in done.out for name in METHODS)
    assert run("methods", "--json").json.keys() == METHODS.keys()


def test_plan_tells_what_would_be_spent_and_revealed_without_data(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    done = run("plan", path)
    assert done.status == 0
    assert "Who recovers?" in done.out
    assert "by at most a factor of 2.72" in done.out
    assert "Revealed" in done.out
    path.write_text(STUDY.replace("epsilon = 1.0", "epsilon = 1.0\ndelta = 0"))
    told = run("plan", path, "--epsilon", "0.5", "--json").json
    assert told["event"] == {"kind": "pure", "epsilon": 0.5}
    assert told["columns"] == ["age", "ward=b", "ward=c", "treated"]
    assert run("plan", path, "--method", "pooled", "--json").json["guarantee"] is None


def test_plan_forecasts_the_run(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    records = ("--records", "a=2400", "--records", "b=1600")  # so many that five rehearsals tell
    done = run("plan", path, *records, "--epsilons", "0.001,3", "--out", tmp_path / "out")
    assert done.status == 0, done.err
    assert "lost to noise" in done.out
    assert "no better than always answering the commonest class" in done.out  # at epsilon 0.001
    assert (tmp_path / "out" / "forecast.svg").read_text().startswith("<svg")
    told = json.loads((tmp_path / "out" / "forecast.json").read_text())
    assert [f["epsilon"] for f in told["forecasts"]] == [0.001, 1.0, 3.0]
    assert run("plan", path, *records, "--epsilons", "1", "--json").json["forecast"]["forecasts"][0]["rounds"] == 1
    for wrong in ("a", "a=0", "a=x", "=3"):
        refused = run("plan", path, "--records", wrong)
        assert refused.status == 2
        assert f"--records {wrong!r} must read NAME=N" in refused.err
    assert "names 'a' twice" in run("plan", path, "--records", "a=1", "--records", "a=2").err


def test_plan_tells_widths_and_how_many_records_an_interval_needs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace('"averaging"', '"private-newton"'))
    base = ("plan", path, "--records", "a=2400", "--records", "b=1600", "--epsilons", "3", "--positive", "0.12")
    power = ("--coefficient", "age", "--half-width", "0.02")
    done = run(*base, *power, "--out", tmp_path / "out")
    assert done.status == 0, done.err
    words = " ".join(done.out.split())
    assert "Expected half-width of each coefficient's 95 % interval" in words
    assert "0.12 of them 'yes'" in words
    assert "For a half-width of 0.0200 for age at epsilon 1 all parties together need about" in words
    assert "A forecast, not a promise" in words
    for name in ("forecast.svg", "auc.svg", "widths.svg"):
        assert (tmp_path / "out" / name).read_text().startswith("<svg")
    assert "the median coefficient" in (tmp_path / "out" / "widths.svg").read_text()
    assert "there are two guesses" in words
    told = run(*base, *power, "--typical", "age=60,20", "--typical", "ward=0.2,0.3,0.5", "--json").json
    assert "2 features are as is guessed of them" in told["forecast"]["rehearsed_on"]
    assert len(told["forecast"]["alternative"]) == len(told["forecast"]["forecasts"])
    assert told["records_needed"]["n_records"] > 1000
    first = told["forecast"]["forecasts"][0]
    assert first["auc"]["mean"] > 0.5
    assert [width["term"] for width in first["widths"]] == ["(intercept)", "age", "ward=b", "ward=c", "treated"]
    refused = {
        ("--half-width", "0.1"): "--half-width and --coefficient belong together",
        ("--positive", "2"): "positive_share = 2.0 must lie between 0 and 1",
        ("--plain-accuracy", "0.8"): "accuracy = 0.8 must lie between 0.88",
        ("--typical", "age=200,9"): "typical value of 'age' must be a mean between",
    }
    for arguments, message in refused.items():
        assert message in run(*base, *arguments).err
    assert "needs the parties to begin with" in run("plan", path, *power).err


def test_a_draft_needs_a_human_and_then_is_a_study(run: Run, tmp_path: Path) -> None:
    frame(30, 0).to_csv(tmp_path / "public.csv", index=False)
    done = run("study", "new", "--from", tmp_path / "public.csv", "--out", tmp_path / "draft.toml")
    assert done.status == 0
    unfilled = run("plan", tmp_path / "draft.toml")
    assert unfilled.status == 2
    assert "age" in unfilled.err
    text = (tmp_path / "draft.toml").read_text()
    filled = text.replace("# low = ?  ", "low = 0 #").replace("# high = ?  ", "high = 120 #")
    filled = filled.replace('# purpose = "?"', 'purpose = "why"')
    assert Study.parse(filled, known_methods=METHODS).schema.target.name == "recovered"
    again = run("study", "new", "--from", tmp_path / "public.csv", "--out", tmp_path / "draft.toml")
    assert again.status == 2
    assert "exists and is not written over" in again.err


def test_data_list_and_show_and_an_unknown_name(run: Run, tmp_path: Path) -> None:
    assert "heart_disease" in run("data", "list").out
    assert "hospital" in run("data", "show", "heart_disease").out
    done = run("data", "get", "heart_diseas", "--out", tmp_path)
    assert done.status == 2
    assert "heart_disease" in done.err


def test_compare_gives_a_table_json_and_plots(run: Run, trial: Path) -> None:
    arguments = ["compare", trial / "study.toml", *parties(trial), "--test", trial / "test.csv"]
    chosen = ["--methods", "pooled,averaging", "--epsilons", "1,10", "--repeats", "3"]
    done = run(*arguments, *chosen, "--out", trial / "cmp")
    assert done.status == 0
    assert "averaging" in done.out
    assert "+-" in done.out
    written = json.loads((trial / "cmp" / "comparison.json").read_text())
    assert [(cell["method"], cell["epsilon"], cell["repeats"]) for cell in written["cells"]] == [
        ("pooled", None, 1),
        ("averaging", 1.0, 3),
        ("averaging", 10.0, 3),
    ]
    assert all(
        (trial / "cmp" / name).read_text().startswith("<svg") for name in ("accuracy.svg", "auc.svg", "log_loss.svg")
    )
    told = run(*arguments, "--methods", "pooled,private-newton", "--epsilons", "1", "--repeats", "2", "--json").json
    assert told["majority_rate"] > 0.4
    assert 0.6 < told["base_log_loss"] <= 0.6932
    pooled, private = told["cells"]
    assert pooled["auc"]["mean"] > 0.5
    assert pooled["widening"]["mean"] == pytest.approx(1, abs=0.1)
    assert private["widening"] is None or private["widening"]["mean"] is None or private["widening"]["mean"] > 1
    assert [width["term"] for width in pooled["widths"]] == ["(intercept)", "age", "ward=b", "ward=c", "treated"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilons", "0.1,much"], "'much' is not a number"),
        (["--epsilons", ","], "names none"),
        (["--epsilons", "0"], "epsilon = 0.0"),
        (["--methods", "averagin"], "did you mean 'averaging'"),
        (["--repeats", "1"], "no error bars"),
    ],
)
def test_a_bad_comparison_is_one_line(run: Run, trial: Path, arguments: list[str], message: str) -> None:
    done = run("compare", trial / "study.toml", *parties(trial), "--test", trial / "test.csv", *arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_audit_tells_a_bound_and_its_power(run: Run, tmp_path: Path) -> None:
    done = run("audit", "averaging", "--runs", "60", "--out", tmp_path)
    assert done.status == 0
    assert "epsilon >=" in done.out
    assert "half the noise" in done.out
    assert (tmp_path / "audit.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "audit.json").read_text())["method"] == "averaging"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["averagin"], "did you mean 'averaging'"),
        (["pooled"], "pooled has no epsilon to audit"),
        (["averaging", "--runs", "3"], "too few"),
        (["averaging", "--epsilon", "inf"], "no epsilon that could be audited"),
    ],
)
def test_an_audit_that_cannot_be_made_says_why(run: Run, arguments: list[str], message: str) -> None:
    done = run("audit", *arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pathak-figur-2"], "did you mean 'pathak-figure-2'"),
        ([], "name results or documents"),
        (["pathak", "--all"], "leave out pathak"),
    ],
)
def test_a_reproduction_that_cannot_be_made_says_why(run: Run, arguments: list[str], message: str) -> None:
    done = run("reproduce", *arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_missing_data_leave_a_result_out_and_the_others_go_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.reproduce import registry
    from tacit.reproduce.result import Claim, NumberTable, Reproduction, ResultCell, Summary, judged

    def made(name: str, compute: Any) -> Reproduction:
        return Reproduction(
            name=name,
            title="Toy",
            setting="None.",
            cells=lambda quick: [ResultCell("one", compute)],
            summarise=lambda values: Summary([NumberTable(["ours"], [[str(values["one"])]])]),
            claims=(Claim("It is 7.", lambda values: judged([values["one"] == 7], str(values["one"]))),),
        )

    def missing(seed: int) -> float:
        raise DataError("toys.csv is missing; set TACIT_DATA to a folder that holds it")

    both = {
        name: made(name, compute) for name, compute in {"toy-table-1": missing, "toy-table-2": lambda seed: 7}.items()
    }
    monkeypatch.setattr(registry, "REPRODUCTIONS", both)
    done = run("reproduce", "--all", "--json", "--cache", str(tmp_path))
    assert done.status == 1
    assert "toy-table-1 is left out: toys.csv is missing; set TACIT_DATA" in done.err
    assert "1 of 2 could not be made: toy-table-1" in done.err
    [told] = json.loads(done.out)
    assert (told["name"], told["verdict"], told["cells"]["one"]["value"]) == ("toy-table-2", "holds", 7)
