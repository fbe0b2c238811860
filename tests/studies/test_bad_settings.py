"""What a study, a policy or a command cannot mean is refused in one line that says the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit import Federation, Policy
from tacit.data import Numeric, Schema, Target
from tacit.errors import DataError, SettingError, StudyError
from tacit.federation.policy import METHOD_NAMES
from tacit.methods import METHODS
from tacit.methods.evaluation.method import PrivateEvaluation
from tacit.privacy.guarantee import LARGEST_EPSILON
from tacit.studies.run import method_of
from tacit.studies.study import FederationRequest, PrivacyRequest, Study

SCHEMA = Schema((Numeric("age", 0, 100),), Target("t", ("no", "yes")))


def study(**settings) -> Study:
    return Study(**{"name": "s", "purpose": "p", "schema": SCHEMA} | settings)


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "a\\b", ".hidden", "c:d", "-rf"])
def test_a_study_cannot_be_named_like_a_path(name) -> None:
    with pytest.raises(StudyError, match="cannot name a folder or a file"):
        study(name=name)


@pytest.mark.parametrize("name", ["heart", "Herz 2026", "étude", "3rd look (b)"])
def test_ordinary_names_of_studies(name) -> None:
    assert study(name=name).name == name


@pytest.mark.parametrize("name", ["St. Mary", "North", "a.b", "coordinator"])
def test_parties_have_names_that_the_network_can_carry(name) -> None:
    with pytest.raises(StudyError, match=r"federation\.parties: .* cannot be used: give 1 to 63 lower-case letters"):
        FederationRequest(parties=(name, "b"))


def test_an_epsilon_for_a_method_that_promises_nothing_is_refused() -> None:
    with pytest.raises(StudyError, match=r"epsilon = 0.5 was asked for, and pooled promises nothing"):
        method_of(study(), method="pooled", epsilon=0.5)
    assert method_of(study(), method="private-newton", epsilon=0.5).epsilon == 0.5


def test_an_epsilon_that_promises_nothing_is_refused() -> None:
    with pytest.raises(StudyError, match="promises nothing; choose 10 or less, or inf"):
        PrivacyRequest(epsilon=1e9)
    largest = method_of(study(privacy=PrivacyRequest(epsilon=LARGEST_EPSILON)))
    assert largest.guarantee.epsilon == pytest.approx(LARGEST_EPSILON)


@pytest.mark.parametrize("setting", ["methods", "not_private"])
def test_a_policy_with_a_slip_of_the_pen_is_refused(setting) -> None:
    with pytest.raises(SettingError, match=f"{setting} names 'poold', which is no method; did you mean 'pooled'"):
        Policy(**{setting: ["poold"]})
    assert Policy(**{setting: ["pooled", "a method of our own"]})


def test_a_policy_knows_the_names_of_all_methods() -> None:
    assert set(METHOD_NAMES) == {*METHODS, PrivateEvaluation.name}


def test_one_file_is_one_party(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,t\n30,no\n40,yes\n")
    with pytest.raises(SettingError, match="parties 'north' and 'south' have the same file"):
        Federation.from_files(SCHEMA, {"north": path, "south": tmp_path / "." / "a.csv"})


def test_a_file_that_is_not_of_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "fake.parquet"
    path.write_text("age,t\n30,no\n")
    with pytest.raises(DataError, match=r"fake.parquet cannot be read; it is not of the kind"):
        Federation.from_files(SCHEMA, {"north": path})
