"""A study's way in a browser: typed and forecast, signed, run while somebody watches, and its result."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.daemon.coordinator.run_event import RunEvent
from tacit.daemon.coordinator.study_store import StudyVersion
from tacit.federation.member.approval import ApproverKey
from tacit.studies.export import write_exports
from tacit.studies.result import write_result
from tacit.studies.study import Study
from tacit.web.coordinator.forecaster import Forecaster
from tacit.web.coordinator.operations import keep_approval
from tests.daemon.conftest import records
from tests.web.browser import Browser, live
from tests.web.conftest import PASSWORD, Desk, LiveDesk, make_desk
from tests.web.test_deed import Operations

TYPED = {
    "Name": "Recovery after treatment",
    "Purpose": "Does the new treatment help patients to recover, and does that depend on their age?",
    "Column to be predicted": "recovered",
    "Its classes": "no, yes",
}
GRACE = ApproverKey("grace", b"g" * 32)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[tuple[LiveDesk, Operations]]:
    """A site with forecasts and a federation that is not there, an author and an approver."""
    made: list[Desk] = []
    forecaster = Forecaster(tmp_path)

    def make(port: int) -> tuple[object, object]:
        made.append(make_desk(is_public=True, port=port, forecaster=forecaster))
        return made[0].app, made[0].site.live

    with live(make) as site:  # type: ignore[arg-type]
        desk = LiveDesk(made[0].site, made[0].studies, made[0].app, live=site)
        operations = Operations(tmp_path, desk.studies)
        operations.show_on(desk.site)
        desk.app._app.state.desk.operations = operations  # type: ignore[attr-defined]
        desk.new_account("ada", "researcher")
        desk.new_account("grace", "approver")
        yield desk, operations
    forecaster.close()


def typed_in(browser: Browser, desk: LiveDesk) -> tuple[Any, str]:
    """The author's page with a study that was typed there, saved; and the study's id."""
    page = browser.page()
    browser.log_in(page, desk.url, "ada", PASSWORD)
    page.goto(f"{desk.url}/studies/new")
    for label, text in TYPED.items():
        page.get_by_label(label, exact=True).fill(text)
    first, second = (page.get_by_role("group", name=f"Column {k}") for k in (1, 2))
    first.get_by_label("Column", exact=True).fill("age")
    first.get_by_label("From").fill("90")
    first.get_by_label("To", exact=True).fill("20")
    second.get_by_label("Column", exact=True).fill("treated")
    second.get_by_label("Kind").select_option("binary")
    page.locator("#e-f0-low").get_by_text("must be below").wait_for()  # while one types, beside the field
    first.get_by_label("From").fill("20")
    first.get_by_label("To", exact=True).fill("90")
    page.get_by_text("Nobody's records were used").wait_for()
    page.get_by_label("Try another epsilon").press("ArrowRight")  # the slider types into the field
    assert page.get_by_label("Epsilon", exact=True).input_value() == "3"
    page.get_by_text("Epsilon 3:").wait_for()
    page.get_by_role("button", name="Save as a draft").click()
    page.wait_for_url(re.compile(r"/studies/[0-9a-f]+/edit"))
    return page, page.url.split("/")[-2]


def test_a_study_is_typed_signed_run_and_read(
    browser: Browser, office: tuple[LiveDesk, Operations], tmp_path: Path
) -> None:
    desk, operations = office
    page, study = typed_in(browser, desk)
    page.get_by_text("Nobody's records were used").wait_for()
    browser.pictures(page, "editor")
    page.get_by_role("button", name="Send to review").click()
    page.get_by_text("The study is in review").wait_for()

    approver = browser.page()
    browser.log_in(approver, desk.url, "grace", PASSWORD)
    approver.goto(f"{desk.url}/studies/{study}")
    browser.pictures(approver, "review")
    version: StudyVersion = desk.live.call(lambda: desk.studies.get(study))
    approver.get_by_label("Signature").fill(GRACE.approve(version.digest, author="ada").text())
    approver.get_by_role("button", name="Approve", exact=True).click()
    approver.get_by_text("Approved. Parties verify").wait_for()

    page.reload()
    page.get_by_role("button", name="Publish to the parties").click()
    page.get_by_text("Published. Every party").wait_for()
    watcher = browser.page()  # nobody in particular
    watcher.goto(f"{desk.url}/studies/{study}")
    happens(desk, operations, version, RunEvent(kind="consent", party="north", words="in"))
    watcher.get_by_text("opted in").wait_for()
    page.get_by_role("button", name="Start the run").click()
    page.get_by_text("The run has begun").wait_for()
    happens(desk, operations, version, *course())
    page.get_by_text("Round 3 is under way").wait_for()
    browser.pictures(page, "running")

    finish(desk, operations, version, tmp_path)
    page.goto(f"{desk.url}/studies/{study}")
    page.get_by_role("link", name="See the result").click()
    page.get_by_role("heading", name="What came out of").wait_for()
    browser.pictures(page, "result")
    page.get_by_role("button", name="New study from this one").click()
    page.get_by_text("This draft starts from the public model").wait_for()


def happens(desk: LiveDesk, operations: Operations, version: StudyVersion, *events: RunEvent) -> None:
    for event in events:
        desk.live.call(lambda event=event: operations.take(version.digest, event))


def course() -> list[RunEvent]:
    """Three rounds of three parties, of which one has not decided yet."""
    t = time.time() - 30
    events = [RunEvent(kind="began", words="r1", attempt=1, time=t)]
    refusal = "party 'west': its owner has not opted into a study with digest 3f2a; a changed study is another study"
    events += [RunEvent(kind="party", party="west", words=refusal, attempt=1, time=t + 2)]
    events += [RunEvent(kind="party", party=name, words="ready", attempt=1, time=t + 3) for name in ("north", "south")]
    for number in (1, 2, 3):
        begin = t + 6 * number
        events.append(RunEvent(kind="round", words="newton/responses", round=number, attempt=1, time=begin))
        for k, name in enumerate(("north", "south") if number < 3 else ("north",)):
            words = f"answered round {number}"
            answered = RunEvent(kind="answered", party=name, words=words, round=number, attempt=1, time=begin + 2 + k)
            events.append(answered)
    return events


def finish(desk: LiveDesk, operations: Operations, version: StudyVersion, folder: Path) -> None:
    """The run ends with a model of made-up records."""
    schema = Study.parse(version.text).schema
    tables = {name: tacit.Table.from_frame(records(900, k), schema) for k, name in enumerate(("north", "south"))}
    model = tacit.PrivateNewton(epsilon=3.0).fit(tacit.Federation.from_tables(tables))
    results = operations.supervisor.results(version.digest)
    results.mkdir(parents=True)
    write_result(model, results)
    write_exports(model, results)
    happens(desk, operations, version, RunEvent(kind="finished"))


def test_the_editor_works_without_javascript_and_by_keyboard(
    browser: Browser, office: tuple[LiveDesk, Operations]
) -> None:
    desk, _ = office
    page = browser.page(javascript=False)
    browser.log_in(page, desk.url, "ada", PASSWORD)
    page.goto(f"{desk.url}/studies/new")
    page.get_by_label("Name", exact=True).fill("Recovery")
    page.get_by_role("button", name="Check and forecast").press("Enter")
    page.get_by_text("no column is named yet").first.wait_for()
    assert page.get_by_label("Name", exact=True).input_value() == "Recovery"


LOOKS = """
[study]
name = "Recovery, in waves"
purpose = "Does the new treatment help patients to recover?"

[target]
name = "recovered"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 20
high = 90

[[feature]]
name = "treated"
kind = "binary"

[method]
name = "private-newton"

[privacy]
epsilon = 1.0

[federation]
quorum = 2

[stop]
looks = [5000, 10000, 20000]
coefficient = "treated"
half_width = 0.2
auc = 0.02

[enrolment]
until = 2127-01-31
"""


def moved(desk: LiveDesk, version: StudyVersion, *states: str) -> StudyVersion:
    """The version after these steps, the approval by grace."""

    def act() -> StudyVersion:
        now = version
        for state in states:
            if state == "approved":
                keep_approval(desk.studies, now, GRACE.approve(now.digest, author="ada", version=now.number))
            now = desk.studies.move(now, state, "grace" if state == "approved" else "ada")  # type: ignore[arg-type]
        return now

    return desk.live.call(act)  # type: ignore[no-any-return]


def test_a_study_is_good_to_look_at_in_every_state(browser: Browser, office: tuple[LiveDesk, Operations]) -> None:
    desk, operations = office
    page = browser.page()
    browser.log_in(page, desk.url, "ada", PASSWORD)
    page.goto(f"{desk.url}/studies/new")
    browser.pictures(page, "editor-new")
    version = desk.live.call(lambda: desk.studies.create("ada", LOOKS))
    here = f"{desk.url}/studies/{version.study}"
    page.goto(f"{here}/edit?text=true")
    browser.pictures(page, "editor-text")
    page.goto(f"{here}/edit")
    page.get_by_text("Nobody's records were used").wait_for()
    browser.pictures(page, "editor-looks")
    for name, state in (
        ("draft", ""),
        ("in-review", "in review"),
        ("approved", "approved"),
        ("published", "published"),
    ):
        version = moved(desk, version, state) if state else version
        page.goto(here)
        browser.pictures(page, f"study-{name}")
    happens(
        desk, operations, version, *(RunEvent(kind="consent", party=name, words="in") for name in ("north", "west"))
    )
    page.get_by_role("button", name="Start the run").click()
    page.get_by_text("begins when 5,000 records are enrolled").wait_for()
    browser.pictures(page, "study-waiting")
    told = "look 1 of 3 with 5,400 records: treated to 0.41; AUC to 0.062; the study goes on"
    happens(desk, operations, version, *course(), RunEvent(kind="look", words=told))
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused. Start goes on").wait_for()
    browser.pictures(page, "study-paused")
    page.get_by_role("button", name="Go on with the run").click()
    page.get_by_text("The run has begun").wait_for()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Stop the study").click()
    page.get_by_text("Stopped. What was spent stays spent.").wait_for()
    why = "6,100 records of 2 parties are enrolled, and look 2 of 3 begins with 10,000 of 2; let more opt in"
    happens(desk, operations, version, RunEvent(kind="ended", words=why))
    page.goto(here)
    page.get_by_text("The last run stopped").wait_for()
    browser.pictures(page, "study-stopped")
    page.get_by_role("button", name="Make a new version").click()
    page.wait_for_url(re.compile("/edit"))
    newer = LOOKS.replace("half_width = 0.2", "half_width = 0.25").replace("epsilon = 1.0", "epsilon = 1.5")
    version = desk.live.call(lambda: desk.studies.save(desk.studies.get(version.study), newer))
    moved(desk, version, "in review")
    page.goto(here)
    page.get_by_role("heading", name="What is new in version 2").wait_for()
    browser.pictures(page, "study-changed")
