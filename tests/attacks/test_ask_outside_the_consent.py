"""A coordinator that asks more, of others or otherwise than the owners agreed to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from tacit.daemon.party.consent import FILE as CONSENT_FILE
from tacit.daemon.party.consent import Consents
from tacit.daemon.party.owner_text import study_lines
from tacit.daemon.party.settings import PartyFile
from tacit.federation.policy import Policy
from tacit.methods.descent.statistic import Iterate, party_gradient
from tacit.methods.privlogit.method import QUESTIONS
from tacit.methods.privlogit.statistic import Measure
from tacit.studies.run import method_of
from tacit.studies.study import Study

from ..daemon.conftest import STUDY
from .office import Office, PartyRefused, refusal

PARTIES = {"north": 40, "south": 30, "west": 25}
WITHOUT_QUORUM = STUDY.replace("quorum = 2\n", "")


def exact(name: str, secure: str, federation: str = "", text: str = WITHOUT_QUORUM) -> Study:
    """An exact study; its owners name the method in their policies."""
    text = text.replace('name = "averaging"', f'name = "privlogit"\nsecure = "{secure}"')
    text = text.replace("[privacy]\nepsilon = 1.0\n", "")
    return trial(name, text.replace("deadline_seconds = 60", f"deadline_seconds = 60\n{federation}"))


def trial(name: str, text: str = STUDY) -> Study:
    """The study under a name of its own."""
    return Study.parse(text.replace('name = "trial"', f'name = "{name}"'))


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """One for all tests: each has a study of a name of its own."""
    made = Office(tmp_path_factory.mktemp("office"), PARTIES)
    yield made
    made.close()


def test_a_study_of_steps_alone_is_asked_for_the_pooled_squares(office: Office) -> None:
    study = exact("steps", "center")
    office.opt_in(study)
    group = office.group(study)
    office.begin(study, "steps", group)
    before = [office.n_releases(name) for name in PARTIES]
    message = office.question(study, "steps", group, QUESTIONS.open_bound, values=Measure(units=None))
    for name in PARTIES:
        with pytest.raises(PartyRefused, match="the study's method never asks step 'privlogit/open-bound'"):
            office.ask(name, study, "steps", message)
    assert before == [office.n_releases(name) for name in PARTIES]


def test_further_runs_average_the_noise_away(office: Office) -> None:
    study = trial("runs", WITHOUT_QUORUM)
    office.opt_in(study, runs=2)
    group = office.group(study)
    said = [refusal(partial(office.begin, study, f"runs {k}", group)) for k in range(10)]
    assert said[:2] == ["", ""]
    assert all("owner agreed to 2 runs of study 'runs', and as many have begun" in words for words in said[2:])


def open_squares(office: Office, study: Study, run: str, names: tuple[str, ...]) -> None:
    """Let these parties seal X'X, to be added up among them alone."""
    group = office.group(study, *names)
    office.begin(study, run, group)
    message = office.question(study, run, group, QUESTIONS.open_bound, values=Measure(units=None))
    for name in names:
        office.ask(name, study, run, message)


def pairwise_sums(office: Office, study: Study) -> dict[tuple[str, ...], str]:
    """What is said to each group: sums over three pairs give each party's own squares."""
    groups = [*combinations(PARTIES, 2), tuple(PARTIES)]
    return {
        names: refusal(partial(open_squares, office, study, f"{study.name} {k}", names))
        for k, names in enumerate(groups)
    }


def test_three_pairwise_sums_give_each_partys_own_squares(office: Office) -> None:
    for study in (exact("pairs", "sums"), exact("named pairs", "sums", f"parties = {[*PARTIES]!r}")):
        office.opt_in(study, runs=4)
        said = pairwise_sums(office, study)
        assert said.pop(tuple(PARTIES)) == ""
        assert all("a run is with north, south, west and nobody else" in words for words in said.values())


def test_a_quorum_allows_one_group_for_what_is_exact(office: Office) -> None:
    study = exact("quorum", "sums", text=STUDY)
    office.opt_in(study, runs=4)
    said = pairwise_sums(office, study)
    assert said.pop(("north", "south")) == ""
    assert all("in a run with other parties" in words for words in said.values()), said


def test_the_one_group_is_not_forgotten_with_a_run_that_is_given_up(office: Office) -> None:
    study = exact("wiped", "sums", text=STUDY)
    office.opt_in(study, runs=4)
    open_squares(office, study, "w1", ("north", "south"))
    office.begin(study, study.digest(), office.group(study, "north", "south"))  # a run named like the study's digest
    for name in ("north", "south"):
        office.send(name, "abandon", study, study.digest(), b"")
    said = refusal(partial(open_squares, office, study, "w2", tuple(PARTIES)))
    assert "in a run with other parties" in said


def test_runs_that_began_before_the_first_answer_open_no_second_group(office: Office) -> None:
    study = exact("early", "sums", text=STUDY)
    office.opt_in(study, runs=2)
    groups = {run: office.group(study, *names) for run, names in (("a", ("north", "south")), ("b", tuple(PARTIES)))}
    for run, group in groups.items():
        office.begin(study, run, group)
    messages = {
        run: office.question(study, run, group, QUESTIONS.open_bound, values=Measure(units=None))
        for run, group in groups.items()
    }
    before = office.n_releases("north")
    first = office.ask("north", study, "a", messages["a"])
    with pytest.raises(PartyRefused, match=r"in a run with other parties, and the two sums would differ"):
        office.ask("north", study, "b", messages["b"])
    assert office.ask("north", study, "a", messages["a"]) == first
    assert office.n_releases("north") == before + 1


def test_dropouts_open_a_sum_over_fewer_than_the_quorum(office: Office) -> None:
    study = trial("fewer", STUDY.replace("quorum = 2", "quorum = 3\ndropouts = 2"))
    office.opt_in(study, runs=3)
    for fewest in (1, 2):
        with pytest.raises(
            PartyRefused, match=f"would go on with {fewest} of 3 parties, and the study with no fewer than 3"
        ):
            office.begin(study, f"fewer {fewest}", office.group(study, quorum=fewest))
    office.begin(study, "enough", office.group(study))


def test_a_group_is_stretched_by_somebody_whom_the_owner_did_not_accept(office: Office) -> None:
    study = trial("stranger")
    office.opt_in(study, accepted=("north", "south"))
    group = office.group(study)
    with pytest.raises(PartyRefused, match="would add it up with 'west', whom its owner has not accepted"):
        office.begin(study, "stranger", group)


def test_a_run_is_begun_a_second_time_with_another_group(office: Office) -> None:
    study = trial("again")
    office.opt_in(study)
    office.begin(study, "again", office.group(study))
    other = office.group(study, "north", "south")
    with pytest.raises(PartyRefused, match="run 'again' began with another group or study; begin a new run"):
        office.send("north", "begin", study, "again", other.encode())


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_101_answers_are_given_where_10_were_agreed_to(office: Office, relation: str) -> None:
    study = trial(
        relation,
        WITHOUT_QUORUM.replace('name = "averaging"', 'name = "noisy-descent"\nrounds = 5').replace(
            "epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-6"
        ),
    )
    office.set_policy("north", r"^relation = \S+", f'relation = "{relation}"')
    office.set_policy("north", r"^epsilon_per_study = \S+", "epsilon_per_study = 1000.0")
    office.set_policy("north", r"^epsilon_in_all = \S+", "epsilon_in_all = 1000.0")
    office.opt_in(study, runs=2)
    if relation == "add-remove":  # a promise for records that are replaced says nothing where they come and go
        assert "its policy does not allow this" in refusal(partial(office.group, study))
        office.set_policy("north", r"^relation = \S+", 'relation = "replace-one"')
        return
    group = office.group(study)
    shape = method_of(study).terms(study.schema, group).plan.loss.shape
    before = office.n_releases("north")
    for run in (f"{relation} {k}" for k in range(4)):
        begun = refusal(partial(office.send, "north", "begin", study, run, group.encode()))
        for turn in range(7):
            values = Iterate(theta=np.full(shape, turn / 100))
            message = office.question(study, run, group, party_gradient, turn=turn, values=values)
            said = refusal(partial(office.ask, "north", study, run, message))
            assert (said == "") == (begun == "" and turn < 5), said
    assert office.n_releases("north") - before == 10


def test_the_page_shows_another_quorum_than_is_enforced(office: Office) -> None:
    def shown(study: Study) -> str:
        folder = office.folders["north"]
        consents = Consents(folder.path / CONSENT_FILE)
        consents.keep(study)
        offered = consents.find(study.digest())
        consents.close()
        assert offered is not None
        lines = study_lines(offered, folder, PartyFile.read(folder.path).policy)
        text = " ".join(" ".join(lines).split())
        return text.partition("Quorum ")[2].partition(" Policy")[0]

    none = trial("page", WITHOUT_QUORUM)
    assert shown(none) == "all: every run is with all whom you accept when you opt in and with nobody else"
    office.opt_in(none)
    assert shown(none) == "all: every run is with these parties, north, south, west, and with nobody else"
    group = office.group(none, "north", "south")
    with pytest.raises(PartyRefused, match="a run is with north, south, west and nobody else; this one is with north"):
        office.send("north", "begin", none, "page", group.encode())
    assert shown(Study.parse(STUDY)) == "2: a run is with so many or more of those whom you accept"
    assert "the parties of the first run that you answer are those of every later one" in shown(
        exact("shown", "sums", text=STUDY)
    )


def test_a_column_that_the_owner_keeps_back_is_not_learned_as_the_target(office: Office) -> None:
    study = trial("target")
    office.opt_in(study)
    features = [*study.schema.feature_names]
    office.set_policy("north", r"^(# )?columns = .*", f"columns = {features!r}")
    assert "its policy does not allow this" in refusal(partial(office.group, study))
    office.set_policy("north", r"^columns = .*", f"columns = {[*features, study.schema.target.name]!r}")
    assert refusal(partial(office.group, study)) == ""


@pytest.mark.parametrize(
    ("stated", "said"),
    [("colluders = 0", "NONE: if one other party"), ("colluders = 1", "though 1 of the other parties")],
)
def test_the_page_says_against_how_many_the_promise_holds(office: Office, stated: str, said: str) -> None:
    study = trial(f"page of {stated}", STUDY.replace("[federation]", f"[federation]\n{stated}"))
    office.opt_in(study)
    offered = Consents(office.folders["north"].path / CONSENT_FILE).named(study.digest())
    page = " ".join(" ".join(study_lines(offered, office.folders["north"], Policy())).split())
    assert said in page
