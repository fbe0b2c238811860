"""A study in waves, in a browser: it looks, goes on with other parties, and stops when it knows enough.

Three hospitals are in the first look, whose share of the promise is small: the interval is too long. Then one leaves,
and a fourth joins. The second look is precise enough, so the third never takes place.
"""

from __future__ import annotations

from typing import Any

import pytest

from tacit.datasets.made_up import patients
from tests.web.way import STUDY, Way, joined

pytestmark = pytest.mark.slow

FOURTH = 4000  # records: with them the second look begins, although west is gone
WAVES = f"""{STUDY.partition("parties =")[0]}
[stop]
looks = [7000, 9000, 12000]
shares = [0.05, 0.9, 0.05]
coefficient = "age"
half_width = 0.012  # the first look comes to 0.03 or more, the second to about 0.005

[enrolment]
until = 2127-01-31
"""


def ledger_runs(way: Way, name: str) -> list[str]:
    """What each run has cost a party at most, as its own page says; the first run first."""
    page = way.page(name)
    page.goto(f"{way.url(name)}/left")
    rows = page.locator("table", has_text="Epsilon at most").locator("tbody tr")
    told = [row.locator("td, th").all_text_contents() for row in rows.all()]
    assert {row[0] for row in told} == {"Who comes back"}
    return [row[2] for row in reversed(told)]


def first_wave(way: Way, place: str, digest: str) -> Any:
    """Three hospitals take part in the first look, which does not suffice; the live part of the page."""
    hospitals = ("north", "south", "west")
    for name in hospitals:
        way.consent(name, digest, tuple(other for other in hospitals if other != name))
    live = way.start(place)
    live.get_by_text("the study goes on").wait_for(timeout=300_000)
    assert "look 1 of 3 with 7,200 records: age to 0.0" in live.text_content()
    live.get_by_text("Look 2 of 3 begins when 9,000 records are enrolled.").wait_for(timeout=300_000)
    assert way.page("ada").get_by_role("link", name="See the result").count() == 0
    return live


def test_a_fourth_party_joins_and_the_wanted_precision_ends_the_study(way: Way) -> None:
    place = way.write(WAVES)
    digest = way.approve(place)
    live = first_wave(way, place, digest)
    way.leave("west", digest)
    (way.folder / "east.csv").write_text(patients(FOURTH, 7).to_csv(index=False))
    with joined(way, "east"):
        for name, others in (("north", ("east",)), ("south", ("east",)), ("east", ("north", "south"))):
            way.consent(name, digest, others)
        live.get_by_text("It stopped at look 2 of 3: what was wanted is known (age to 0.00").wait_for(timeout=300_000)
        assert "look 2 of 3 with 9,400 records" in live.text_content()
        way.wait_until_finished(place)
        costs = {name: ledger_runs(way, name) for name in ("north", "south", "west", "east")}
    first, second = costs["north"]
    assert float(first) < float(second)
    assert costs == {"north": [first, second], "south": [first, second], "west": [first], "east": [second]}

    ada = way.page("ada")
    ada.goto(place)
    way.browser.pictures(ada, "waves-study")
    ada.get_by_role("link", name="See the result").click()
    ada.get_by_role("heading", name="What each party gave").wait_for()
    told = str(ada.locator("main").text_content())
    assert "It stopped at look 2 of 3: what was wanted is known" in told
    assert "east" in told
    assert "west" not in told
