"""Accounts and tokens in a browser, and parts of a page that follow events."""

from __future__ import annotations

import pytest
from fastapi import APIRouter
from starlette.requests import Request

from tacit.web.page import show
from tacit.web.site import Site, SiteSettings, make_app, own_hosts, site_of
from tacit.web.store import open_store
from tests.web.browser import Browser, live
from tests.web.conftest import PASSWORD, LiveDesk

pytestmark = pytest.mark.slow


def test_an_administrator_lets_somebody_in(browser: Browser, live_desk: LiveDesk) -> None:
    live_desk.new_account("root", "administrator")
    live_desk.new_account("bob", "approver")
    page = browser.page()
    browser.log_in(page, live_desk.url, "root", PASSWORD)
    page.get_by_role("link", name="Accounts").click()
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_label("Role", exact=True).select_option("researcher")
    page.get_by_label("E-mail address").fill("ada@example.org")
    browser.pictures(page, "accounts")
    page.get_by_role("button", name="Make the account").click()
    password = page.locator("#secret").inner_text()
    browser.pictures(page, "first-password")
    page.get_by_role("link", name="Done").click()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("row").filter(has_text="bob").get_by_role("button", name="Disable").click()
    assert not live_desk.site.accounts.get("bob").disabled  # not sure, so nothing was sent
    page.get_by_role("link", name="Audit trail").click()
    page.get_by_text("made an account with the role researcher").wait_for()
    browser.pictures(page, "audit")
    other = browser.page()
    browser.log_in(other, live_desk.url, "ada", password)
    other.get_by_role("heading", name="Your password").wait_for()
    other.get_by_label("Present password").fill(password)
    other.get_by_label("New password", exact=True).fill("short")
    other.get_by_label("The new password again").fill("short")
    other.get_by_role("button", name="Change the password").click()
    other.locator(".error").get_by_text("has 5 characters").wait_for()
    other.problems.clear()  # the browser itself notes the 400
    browser.pictures(other, "password-refused")


def test_a_token_is_made_and_shown_once(browser: Browser, live_desk: LiveDesk) -> None:
    live_desk.new_account("ada", "researcher")
    page = browser.page()
    browser.log_in(page, live_desk.url, "ada", PASSWORD)
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("What it is for").fill("nightly report")
    page.get_by_role("button", name="Make the token").click()
    token = page.locator("#secret").inner_text()
    assert live_desk.live.call(lambda: live_desk.site.tokens.account_of(token).role) == "viewer"
    page.get_by_role("link", name="Done").click()
    page.get_by_role("rowheader", name="nightly report").wait_for()
    browser.pictures(page, "tokens")


def test_a_part_that_cannot_be_sent_says_so(browser: Browser, live_desk: LiveDesk) -> None:
    live_desk.new_account("ada", "researcher")
    page = browser.page()
    browser.log_in(page, live_desk.url, "ada", PASSWORD)
    page.goto(f"{live_desk.url}/tokens")
    live_desk.live.call(lambda: live_desk.site.sessions.end_all("ada"))
    page.evaluate("htmx.ajax('POST', '/tokens', {values: {label: 'a'}})")
    page.get_by_role("alert").get_by_text("Your session has ended").wait_for()
    page.problems.clear()  # the browser itself notes the 403
    browser.check(page)


def test_a_part_of_a_page_follows_events(browser: Browser) -> None:
    sites: list[Site] = []
    router = APIRouter()

    @router.get("/watch")
    async def watch(request: Request):
        return show(request, "test_watch.html.j2")

    @router.get("/events")
    async def events(request: Request):
        return site_of(request).live.watch(["a"])

    def make(port: int) -> tuple[object, object]:
        import jinja2

        site = Site(SiteSettings(name="A site", hosts=own_hosts(port)), open_store(None))
        page = """{% extends "base.html.j2" %}{% import "part.html.j2" as part with context %}
            {% block content %}<h1>Watch</h1><div hx-ext="sse" sse-connect="/events">
            {% call part.live("step", "Progress") %}nothing yet{% endcall %}</div>{% endblock %}"""
        own = jinja2.DictLoader({"test_watch.html.j2": page})
        site.environment.loader = jinja2.ChoiceLoader([own, site.environment.loader or own])
        sites.append(site)
        return make_app(site, [router]), site.live

    with live(make) as listening:
        page = browser.page()
        page.goto(f"{listening.url}/watch")
        page.get_by_text("nothing yet").wait_for()
        sites[0].live.publish("a", "step", "<p>round 3 of 7</p>")
        page.get_by_text("round 3 of 7").wait_for()
        sites[0].live.publish("a", "step", "<p>round 4 of 7</p><script>document.title = 'ran'</script>")
        page.get_by_text("round 4 of 7").wait_for()
        assert page.title() != "ran"
        assert page.get_by_text("round 3 of 7").count() == 0
        browser.check(page)
