"""The catalogue and the way in, in a browser."""

from __future__ import annotations

import pytest

from tests.web.browser import Browser
from tests.web.conftest import PASSWORD, STUDY, LiveDesk
from tests.web.test_catalogue import WAY

NAMES = {
    "Readmission within a month": "running",
    "Falls on the ward": "finished",
    "Sepsis, early signs": "published",
    "Length of stay after hip surgery": "in review",
}

pytestmark = pytest.mark.slow


def fill(desk: LiveDesk) -> str:
    """Studies in several states; the id of the last one."""

    def make() -> str:
        first = None
        for name, state in NAMES.items():
            study = desk.studies.create("ada", STUDY.replace("Readmission", name), builds_on=first)
            for each in WAY[: WAY.index(state) + 1]:
                study = desk.studies.move(study, each, "bob" if each == "approved" else "ada")
            first = first or study.study
            last = study.study if state == "published" else first
        return last

    return desk.live.call(make)


def test_the_catalogue_and_a_study_are_good_to_look_at(browser: Browser, live_desk: LiveDesk) -> None:
    fill(live_desk)
    page = browser.page()
    page.goto(live_desk.url)
    browser.pictures(page, "catalogue")
    page.get_by_role("link", name="Sepsis, early signs").click()
    page.get_by_role("heading", name="What it promises").wait_for()
    browser.pictures(page, "study")
    page.goto(f"{live_desk.url}/studies/nothing")
    page.get_by_role("heading", name="There is no such page").wait_for()
    page.problems.clear()  # the browser itself notes the 404
    browser.pictures(page, "not-found")


def test_logging_in_by_keyboard_alone(browser: Browser, live_desk: LiveDesk) -> None:
    live_desk.new_account("ada", "researcher")
    page = browser.page()
    page.goto(live_desk.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.goto(f"{live_desk.url}/log-in")
    page.get_by_label("Name").focus()
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Log out").wait_for()
    page.goto(f"{live_desk.url}/password")
    browser.pictures(page, "password")


def test_reading_and_logging_in_work_without_javascript(browser: Browser, live_desk: LiveDesk) -> None:
    study = fill(live_desk)
    live_desk.new_account("ada", "researcher")
    page = browser.page(javascript=False)
    browser.log_in(page, live_desk.url, "ada", PASSWORD)
    assert page.get_by_role("link", name="Length of stay after hip surgery").is_visible()
    page.get_by_role("searchbox").fill("sepsis")
    page.get_by_role("button", name="Search").click()
    assert page.get_by_role("link", name="Length of stay after hip surgery").count() == 0
    page.goto(f"{live_desk.url}/studies/{study}")
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()


def test_what_was_typed_is_not_lost_with_the_session(browser: Browser, live_desk: LiveDesk) -> None:
    live_desk.new_account("ada", "researcher")
    page = browser.page()
    browser.log_in(page, live_desk.url, "ada", PASSWORD)
    page.goto(f"{live_desk.url}/tokens")
    page.get_by_label("What it is for").fill("the report that runs every night")
    live_desk.live.call(lambda: live_desk.site.sessions.end_all("ada"))
    page.get_by_role("button", name="Make the token").click()
    page.get_by_role("heading", name="This form came too late").wait_for()
    page.problems.clear()  # the browser itself notes the 403
    browser.pictures(page, "too-late")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Log in, in another tab").click()
    browser.log_in(opened.value, live_desk.url, "ada", PASSWORD)
    for _ in range(2):  # the first page was still that of a visitor
        page.get_by_role("button", name="Send it again").click()
        page.wait_for_load_state()
    page.locator("#secret").wait_for()
    assert [each.label for each in live_desk.site.tokens.of("ada")] == ["the report that runs every night"]


def test_a_failed_log_in_is_told_where_reading_goes_on(browser: Browser, live_desk: LiveDesk) -> None:
    page = browser.page()
    page.goto(f"{live_desk.url}/log-in")
    page.get_by_label("Name").fill("nobody")
    page.get_by_label("Password").fill("nothing")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("alert").wait_for()
    page.wait_for_function("document.activeElement.getAttribute('role') === 'alert'")
    page.problems.clear()  # the browser itself notes the 401
    browser.pictures(page, "log-in-failed")
