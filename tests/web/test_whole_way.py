"""The whole way in a browser, in a practice federation: from a study that somebody writes to the next one.

Ada writes a study, Ben signs it, it is published; three hospitals consent on their own pages; it runs and is watched;
the result appears, and its download is what the interface for scripts gives. Then one hospital leaves, a fourth joins,
and a new study starts from the result.
"""

from __future__ import annotations

import re

from tests.web.way import STUDY, Way, joined


def test_from_a_study_to_the_next(way: Way) -> None:
    place = way.write(STUDY)
    digest = way.approve(place)
    hospitals = ("north", "south", "west")
    for name in hospitals:
        way.consent(name, digest, tuple(other for other in hospitals if other != name))
    way.run(place)
    ada = way.page("ada")
    ada.goto(place)
    way.browser.pictures(ada, "way-study")
    ada.get_by_role("link", name="See the result").click()
    ada.get_by_role("heading", name="What came out of").wait_for()
    way.browser.pictures(ada, "way-result")
    check_downloads(way, place)

    left = way.page("west")
    way.leave("west", digest)
    left.goto(f"{way.url('west')}/left")
    assert left.get_by_text("private-newton/squares").count() == 1
    way.browser.pictures(left, "way-left")

    ada.get_by_role("button", name="New study from this one").click()
    ada.wait_for_url(lambda at: at.endswith("/edit"))
    with joined(way, "east"):
        next_study(way)


def next_study(way: Way) -> None:
    """The next study starts from the result, with the fourth hospital and without the one that left."""
    ada, trio = way.page("ada"), ("north", "south", "east")
    ada.goto(f"{ada.url}?text=true")
    text = str(ada.get_by_label("The study file").input_value())
    assert "start = " in text
    ada.get_by_label("The study file").fill(re.sub(r"parties = .*", 'parties = ["north", "south", "east"]', text))
    ada.get_by_role("button", name="Save", exact=True).click()
    ada.get_by_text(re.compile("saved|kept")).first.wait_for()
    place = way.review(ada)
    digest = way.approve(place)
    for name in trio:
        way.consent(name, digest, tuple(other for other in trio if other != name))
    way.run(place)
    ada.goto(f"{place}/result")
    ada.get_by_role("heading", name="What each party gave").wait_for()
    told = str(ada.locator("main").text_content())
    assert "east" in told
    assert "west" not in told


def check_downloads(way: Way, place: str) -> None:
    """Each file of the result is the one that a script gets."""
    ada = way.page("ada")
    study = place.rpartition("/")[2]
    links = [str(link.get_attribute("href")) for link in ada.locator(".downloads a").all()]
    assert any("model.json" in link for link in links)
    ada.goto(f"{way.url('ada')}/tokens")
    ada.get_by_label("What it is for").fill("a script")
    ada.get_by_role("button", name="Make the token").click()
    token = str(ada.locator("#secret").text_content()).strip()
    for name in ("model.json", "result.json"):
        asked = {"Authorization": f"Bearer {token}"}
        by_script = ada.request.get(f"{way.url('ada')}/api/v1/studies/{study}/results/{name}", headers=asked)
        assert by_script.status == 200, name
        link = next((link for link in links if f"/{name}" in link), None)
        if link is not None:
            assert ada.request.get(f"{way.url('ada')}{link}").body() == by_script.body()
    ada.goto(f"{place}/result")
