"""A party's daemon where the promise is for persons: what it reads, tells and refuses."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tacit.daemon.party.consent import FILE, Consents
from tacit.daemon.party.owner_text import study_lines, why_not
from tacit.data.inspection import inspect_file
from tacit.federation.policy import Policy
from tacit.methods.averaging.statistic import local_model
from tacit.studies.study import Study

from ...attacks.office import Office, refusal
from ..conftest import STUDY, records

PERSONS = Study.parse(STUDY.replace("epsilon = 1.0", 'epsilon = 1.0\nperson = "patient"'))
PARTIES = Study.parse(STUDY.replace("epsilon = 1.0", 'epsilon = 1.0\nunit = "party"'))


class Clinics(Office):
    """Three records a person; the last column says whose."""

    @staticmethod
    def table(seed: int, n: int) -> pd.DataFrame:
        return records(n, seed).assign(patient=[f"p{i // 3}" for i in range(n)])


def answered(office: Office, study: Study) -> list[int]:
    """Begin a run, and let every party answer; the sizes of the group."""
    office.opt_in(study)
    group = office.group(study)
    office.begin(study, "r1", group)
    question = office.question(study, "r1", group, local_model)
    for name in group.names:
        office.ask(name, study, "r1", question)
        assert office.n_releases(name) == 1
    return list(group.sizes)


def test_numbers_of_persons_are_told_and_answers_given(tmp_path: Path) -> None:
    office = Clinics(tmp_path, {"north": 60, "south": 31})
    assert answered(office, PERSONS) == [20, 11]
    office.close()


def test_a_phone_with_one_record_answers_by_default_where_the_party_is_the_unit(tmp_path: Path) -> None:
    office = Office(tmp_path, {"north": 1, "south": 40})
    assert answered(office, PARTIES) == []  # nobody is told a size
    office.close()


def test_a_record_of_nobody_keeps_its_place_and_its_owner_alone_reads_which(tmp_path: Path) -> None:
    office = Clinics(tmp_path, {"north": 60, "south": 30})
    frame = Clinics.table(0, 60)
    frame.loc[16, "patient"] = None
    frame.to_csv(tmp_path / "north.csv", index=False)
    office.opt_in(PERSONS)
    office.send("north", "hello", PERSONS)  # what a record is like decides nothing that others see
    office.close()
    found = inspect_file(tmp_path / "north.csv", PERSONS.schema, person="patient")
    assert [(misfit.line, misfit.column) for misfit in found.misfits] == [(18, "patient")]


def test_a_study_of_persons_needs_the_column(tmp_path: Path) -> None:
    office = Office(tmp_path, {"north": 60, "south": 30})
    office.opt_in(PERSONS)
    assert "lacks columns of the study" in refusal(lambda: office.send("north", "hello", PERSONS))
    office.close()


def test_an_owner_reads_how_persons_are_told_apart_and_may_keep_the_column(tmp_path: Path) -> None:
    office = Office(tmp_path, {"north": 60})
    office.opt_in(PERSONS)
    consents = Consents(office.folders["north"].path / FILE)
    offered = consents.named("trial")
    told = " ".join(" ".join(study_lines(offered, office.folders["north"], Policy())).split())
    consents.close()
    office.close()
    assert "your column patient says whose a record is" in told
    assert "all records of one person" in told
    allowed = ["age", "treated", "recovered"]
    assert why_not(offered, Policy(columns=allowed)) == "column 'patient' is not among policy.columns"
    assert why_not(offered, Policy(columns=[*allowed, "patient"])) == ""


def test_a_policy_that_keeps_the_column_answers_nothing(tmp_path: Path) -> None:
    columns = ["age", "treated", "recovered"]
    office = Clinics(tmp_path, {"north": 60})
    office.set_policy("north", r"^# columns = .*$", f"columns = {columns!r}")
    office.opt_in(PERSONS)
    assert "its policy does not allow this" in refusal(lambda: office.send("north", "hello", PERSONS))
    office.close()
