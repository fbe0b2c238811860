"""A round goes on without a few parties, where the study says so and the method can."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from tacit.daemon.coordinator.run_record import FILE, Runs
from tacit.errors import StudyError
from tacit.studies.run import method_of
from tacit.studies.study import Study

from ..faults.test_connection import Silent
from .conftest import STUDY, Loopback
from .test_federation import DESCENT, PARTIES, Watch, opt_in, run

DEADLINE = 10.0  # by far more than a round takes, and waited for in full by two tests
LOSSY = DESCENT.replace("quorum = 2", "quorum = 2\ndropouts = 1").replace(
    "deadline_seconds = 60", f"deadline_seconds = {DEADLINE:g}"
)


def study_of(name: str) -> Study:
    return Study.parse(LOSSY.replace('"trial"', f'"{name}"'))


@pytest.mark.slow
def test_a_party_that_falls_silent_holds_up_one_round_and_the_report_says_so(federation: Loopback) -> None:
    study = study_of("silent")
    opt_in(federation, study)
    federation.stop("west")
    federation.start("west", "party", Silent)
    begun: list[float] = []
    finished = run(federation, study, Watch(lambda _: begun.append(time.monotonic())), wait=60)
    federation.stop("west")
    federation.start("west", "party")
    assert finished.run.attempt == 1
    assert finished.model.n_rounds_ == len(begun) == 6
    first, *others = [end - start for start, end in pairwise(begun)]
    assert first >= DEADLINE > max(others)
    assert any("without a party: west in 6" in notice for notice in finished.model.facts_.notices)
    assert [federation.n_releases(name, study) for name in ("north", "south")] == [6, 6]


@pytest.mark.slow
def test_a_resumed_run_counts_those_in_who_were_in_then(federation: Loopback) -> None:
    """The center opens a question's sum over one set of parties: whoever answers later is not in it."""
    study = study_of("resumed")
    opt_in(federation, study)
    federation.stop("west")
    federation.start("west", "party", Silent)

    def interrupt(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        run(federation, study, Watch(interrupt), wait=60)
    federation.stop("west")
    federation.start("west", "party")  # from now on it answers, also what it was asked before
    finished = run(federation, study, wait=60)
    assert finished.run.attempt == 1
    assert any("without a party: west in 2" in notice for notice in finished.model.facts_.notices)
    assert federation.n_releases("north", study) == 6


def test_parties_that_are_all_there_are_all_in(federation: Loopback) -> None:
    study = study_of("all")
    opt_in(federation, study)
    finished = run(federation, study, wait=60)
    assert not finished.model.facts_.notices
    assert [federation.n_releases(name, study) for name in PARTIES] == [6, 6, 6]


def test_presence_is_kept_as_it_was_first(federation: Loopback) -> None:
    runs = Runs(federation.coordinator / FILE)
    one = runs.begin("d" * 64, "presence")
    attendance = runs.presence(one)
    assert attendance.find("q") is None
    attendance.keep("q", ("north", "west"))
    attendance.keep("q", ("north",))
    assert runs.presence(one).find("q") == ("north", "west")
    one.attempt += 1
    assert runs.presence(one).find("q") is None
    runs.close()


def test_a_method_that_needs_everybody_refuses_the_setting() -> None:
    with pytest.raises(StudyError, match=r"dropouts = 1, and private-newton needs every party .* choose one of averag"):
        method_of(Study.parse(LOSSY.replace('"noisy-descent"\nrounds = 6', '"private-newton"')))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("dropouts = -1", r"federation\.dropouts is -1; give a whole number of at least 0"),
        ('dropouts = 2\nparties = ["a", "b", "c"]', r"dropouts = 2 of the 3 parties .* fewer than the quorum of 2"),
    ],
)
def test_dropouts_that_contradict_the_quorum_are_refused(setting: str, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        Study.parse(STUDY.replace("quorum = 2", f"quorum = 2\n{setting}"))


def test_dropouts_without_a_quorum_are_refused() -> None:
    with pytest.raises(
        StudyError, match=r"federation\.dropouts = 1 needs a federation\.quorum: without one every party"
    ):
        Study.parse(STUDY.replace("quorum = 2", "dropouts = 1"))


def test_the_setting_is_part_of_what_is_consented_to_and_no_dropouts_are_not_spoken_of() -> None:
    plain = Study.parse(STUDY)
    assert Study.parse(STUDY.replace("quorum = 2", "quorum = 2\ndropouts = 0")).digest() == plain.digest()
    lossy = Study.parse(STUDY.replace("quorum = 2", "quorum = 2\ndropouts = 1"))
    assert lossy.digest() != plain.digest()
    assert Study.parse(lossy.to_toml()) == lossy
    assert [lossy.federation.dropouts_among(n) for n in (2, 3, 4)] == [0, 1, 1]
