"""Consent is to what files hold: their content is part of a study's digest, and nothing else is taken in its place."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tacit import wire
from tacit.data.rows import auxiliary_rows
from tacit.data.table import Table
from tacit.errors import NotAgreed, StudyError
from tacit.federation.agreement import Agreement
from tacit.federation.channel import Channel
from tacit.federation.engine import RunStart
from tacit.federation.federation import Federation
from tacit.methods import Ensemble
from tacit.studies.content import check_content, unstated
from tacit.studies.study import Study

from .test_stop import PLAIN

ROWS = "age,treated\n30,0\n50,1\n70,0\n"


def with_start(folder: Path) -> Path:
    study = folder / "study.toml"
    name = '"private-newton"'
    study.write_text(PLAIN.replace(name, f'{name}\nstart = "{folder / "model.json"}"'))
    return study


def test_the_content_of_a_file_is_part_of_the_digest(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("one")
    study = Study.read(with_start(tmp_path))
    assert study.content == {"start": hashlib.sha256(b"one").hexdigest()}
    announced = Study.parse(study.to_toml())  # as a party gets it, who has no such file
    assert (announced, announced.digest()) == (study, study.digest())
    (tmp_path / "model.json").write_text("two")
    other = Study.read(with_start(tmp_path))
    assert other.digest() != study.digest()
    with pytest.raises(StudyError, match=r"model.json' has other content \(SHA-256 .*than the study states"):
        check_content(study)
    check_content(other)


def test_a_file_that_is_missing_is_needed_by_whoever_runs_the_study(tmp_path: Path) -> None:
    path = with_start(tmp_path)
    with pytest.raises(
        StudyError, match=r"study.toml: method.start = .* cannot be read .* take the study as it was ann"
    ):
        Study.read(path)
    (tmp_path / "model.json").write_text("one")
    study = Study.read(path)
    path.write_text(study.to_toml())
    (tmp_path / "model.json").unlink()
    assert Study.read(path) == study  # its owner may read it
    with pytest.raises(StudyError, match="cannot be read"):
        check_content(study)


def test_a_study_that_does_not_state_what_it_names_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("one")
    path = with_start(tmp_path)
    silent = Study.parse(path.read_text())
    assert (unstated(silent), unstated(Study.read(path)), unstated(Study.parse(PLAIN))) == ("start", "", "")
    with pytest.raises(StudyError, match="does not state; read it from its file"):
        check_content(silent)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (f'[content]\nstart = "{"0" * 64}"', "content.start is the content of no file"),
        (f'[content]\ntarget = "{"0" * 64}"', "content.target is the content of no file"),
    ],
)
def test_content_of_nothing_is_refused(table: str, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        Study.parse(f"{PLAIN}\n{table}\n")
    named = PLAIN.replace('"private-newton"', '"private-newton"\nstart = "model.json"')
    with pytest.raises(StudyError, match=r"content\.start must be a SHA-256 of 64 hexadecimal digits"):
        Study.parse(f'{named}\n[content]\nstart = "short"\n')


def test_a_guard_answers_about_the_rows_that_were_consented_to_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    text = PLAIN.replace('"private-newton"', f'"ensemble"\npublic = "{tmp_path / "rows.csv"}"')
    (tmp_path / "study.toml").write_text(text)
    study = Study.read(tmp_path / "study.toml")
    assert study.content["public_rows"] == wire.digest(auxiliary_rows(tmp_path / "rows.csv", study.schema))
    table = Table.from_arrays(np.array([[30.0, 0], [50, 1]] * 10), np.array([0, 1] * 10), study.schema)
    other = Table.from_arrays(np.array([[30.0, 0], [50, 1]] * 10), np.array([0, 1] * 10), study.schema)

    def learn(public: Path) -> None:
        parties = Federation.from_tables({"north": table, "south": other})
        method = Ensemble(public=public)
        agreement = Agreement(study="trial", method=method, content=study.content)
        start = RunStart(run="run", agreement=agreement, group=parties.group(method))
        channel = Channel(parties.engine, parties.center, start)
        parties.engine.begin(start)
        method._learn(channel, channel.plan)

    learn(tmp_path / "rows.csv")
    (tmp_path / "others.csv").write_text(ROWS.replace("30,0", "31,0"))
    with pytest.raises(NotAgreed, match="brings other rows than study 'trial' states"):
        learn(tmp_path / "others.csv")
