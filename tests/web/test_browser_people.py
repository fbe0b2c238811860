"""Accounts and tokens in a browser, and parts of a page that follow events."""

from __future__ import annotations

import time
from urllib.parse import urlencode

import pytest
from fastapi import APIRouter
from starlette.requests import Request

from tacit.web.account import ONE_TIME_DAYS
from tacit.web.open_id import Provider, ProviderSettings
from tacit.web.page import show
from tacit.web.site import Site, SiteSettings, make_app, own_hosts, site_of
from tacit.web.store import open_store
from tests.web.browser import Browser, live
from tests.web.conftest import PASSWORD, LiveDesk
from tests.web.provider import ISSUER, TestProvider

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


def test_pages_for_those_who_do_not_get_in_are_good_to_look_at(browser: Browser, live_desk: LiveDesk) -> None:
    provider = TestProvider(claims={"sub": "eve", "email": "eve@example.org", "email_verified": True})
    settings = ProviderSettings(label="the university", issuer=ISSUER, client_id="tacit", client_secret="the secret")
    password = live_desk.live.call(lambda: live_desk.site.accounts.add("ada", "researcher"))
    live_desk.site.provider = Provider(settings, transport=provider)
    page = browser.page()
    page.goto(f"{live_desk.url}/log-in")
    page.get_by_role("link", name="Log in with the university").wait_for()
    browser.pictures(page, "sign-on")

    away: list[str] = []
    page.route(f"{ISSUER}/**", lambda route: (away.append(route.request.url), route.fulfill(body="the university")))
    page.get_by_role("link", name="Log in with the university").click()
    page.get_by_text("the university").wait_for()
    back = provider.confirm(away[0])
    page.goto(f"{live_desk.url}/sign-on/back?{urlencode(back)}")
    page.get_by_text("ask the administrator").first.wait_for()
    page.problems.clear()  # the browser itself notes the 403
    browser.pictures(page, "sign-on-refused")

    old = time.time() - (ONE_TIME_DAYS + 1) * 86400
    expire = "UPDATE account SET expires = ? WHERE name = 'ada'"
    live_desk.live.call(lambda: live_desk.site.accounts._database.execute(expire, (old,)))
    page.goto(f"{live_desk.url}/log-in")
    for given, words, name in ((password, "has expired", "expired"), ("a guess", "Too many attempts", "too-often")):
        for _ in range(1 if name == "expired" else 6):
            page.get_by_label("Name").fill("ada")
            page.get_by_label("Password").fill(given)
            page.get_by_role("button", name="Log in", exact=True).click()
            page.get_by_role("alert").wait_for()
        page.get_by_role("alert").get_by_text(words).wait_for()
        page.problems.clear()
        browser.pictures(page, f"log-in-{name}")


def test_an_error_of_ours_has_a_page(browser: Browser, live_desk: LiveDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    live_desk.site.on_failure = lambda error: None  # a failure is what is wanted here
    monkeypatch.setattr(live_desk.studies, "all", lambda *_, **__: 1 / 0)
    page = browser.page()
    page.goto(live_desk.url)
    page.get_by_role("heading", name="Something went wrong here").wait_for()
    page.problems.clear()  # the browser itself notes the 500
    browser.pictures(page, "error")
