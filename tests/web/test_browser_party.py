"""The party's pages in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.methods.averaging.statistic import local_model
from tacit.studies.study import Study
from tests.daemon.conftest import STUDY, allow
from tests.web.browser import Browser, LiveSite, live
from tests.web.conftest import PASSWORD
from tests.web.party import TRIAL, PartyOffice, make_party_office

EXACT = Study.parse(
    STUDY.replace('name = "trial"', 'name = "Exact fit of the ward"')
    .replace('name = "averaging"', 'name = "privlogit"')
    .replace("[privacy]\nepsilon = 1.0\n", "")
)


@pytest.fixture
def party(tmp_path: Path) -> Iterator[tuple[PartyOffice, LiveSite]]:
    """North's site, which listens."""
    made: list[PartyOffice] = []

    def make(port: int) -> tuple[object, object]:
        made.append(make_party_office(tmp_path, port=port))
        return made[0].app, made[0].site.live

    with live(make) as site:
        yield made[0], site
    made[0].close()


def test_an_owner_reads_accepts_agrees_and_leaves(browser: Browser, party: tuple[PartyOffice, LiveSite]) -> None:
    office, site = party
    allow(office.folder, 3.0, 3.0)
    digest = office.announce()
    page = browser.page()
    page.goto(f"{site.url}/log-in")
    browser.pictures(page, "party-log-in")
    browser.log_in(page, site.url, "owner", PASSWORD)
    assert "administrator" not in page.locator("header").text_content()  # there is one owner, and no other role
    page.get_by_role("link", name="trial").click()
    page.get_by_role("heading", name="What could go wrong").wait_for()
    browser.pictures(page, "party-consent")
    for name in ("south", "west"):
        page.get_by_label(f"{name} told me this by telephone").check()
        page.get_by_role("button", name=f"Accept {name}").click()
        page.get_by_text(f"{name} is accepted.").wait_for()
    page.get_by_label("How many runs").fill("3")
    page.get_by_label("I have read").check()
    page.get_by_role("button", name="Take part").click()
    page.get_by_text("You take part in trial.").wait_for()
    assert office.consent(digest).runs == 3
    browser.pictures(page, "party-taking-part")
    page.get_by_role("button", name="Leave this study").click()
    page.get_by_text("You have left trial.").wait_for()
    assert office.consent(digest).state == "out"


def test_the_other_pages_are_good_to_look_at(browser: Browser, party: tuple[PartyOffice, LiveSite]) -> None:
    office, site = party
    allow(office.folder, 3.0, 3.0)
    office.announce()
    exact = office.announce(EXACT)
    office.office.opt_in(TRIAL, runs=3)
    group = office.office.group(TRIAL)
    for run in ("first", "second"):
        office.office.begin(TRIAL, run, group)
        office.office.ask("north", TRIAL, run, office.office.question(TRIAL, run, group, local_model))
    data = office.office.root / "north.csv"
    lines = data.read_text().splitlines()
    lines[3], lines[7] = "forty,1,yes", "50,2,perhaps"
    data.write_text("\n".join(lines) + "\n")
    office.office.handlers["north"].news()
    page = browser.page()
    browser.log_in(page, site.url, "owner", PASSWORD)
    for name, path in (
        ("studies", "/"), ("warned", f"/studies/{exact}"), ("parties", "/parties"), ("left", "/left"), ("log", "/log"),
        ("policy", "/policy"), ("check", f"/check?study={TRIAL.digest()}"), ("notices", "/notices"),
    ):  # fmt: skip
        page.goto(f"{site.url}{path}")
        browser.pictures(page, f"party-{name}")
    page.goto(f"{site.url}/policy")
    page.get_by_label("Most in all studies").fill("much")
    page.get_by_role("button", name="Write the policy").click()
    wrong = page.get_by_text("'much' is not a number").last
    wrong.wait_for()
    assert wrong.evaluate("each => getComputedStyle(each, '::first-letter').textTransform") == "none"  # as it was typed
