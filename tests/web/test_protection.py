"""What stands before every page."""

from __future__ import annotations

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request

from tacit.web.coordinator.application import ROUTERS
from tacit.web.protection import POLICY
from tacit.web.session import IDLE_SECONDS, SiteSessions
from tacit.web.site import Site, SiteSettings, make_app, own_hosts
from tacit.web.store import open_store
from tests.web.conftest import HOST, PASSWORD, Client, Desk, make_desk


@pytest.mark.parametrize("path", ["/", "/log-in", "/nothing", "/static/site.css", "/studies/none", "/api/v1/none"])
def test_every_answer_has_the_headers(public_desk: Desk, path: str) -> None:
    headers = public_desk.visitor().get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "frame-ancestors 'none'" in POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "strict-transport-security" not in headers  # plain HTTP on this machine


def test_on_tls_there_is_hsts_and_cookies_are_secure() -> None:
    visitor = make_desk(tls=True).visitor(scheme="https")
    answer = visitor.client.get("/log-in")
    assert answer.headers["strict-transport-security"].startswith("max-age=31536000")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert "; Secure" in cookie


def test_cookies_are_for_the_server_alone_and_for_this_site(desk: Desk) -> None:
    desk.site.accounts.add("ada", "viewer")
    desk.site.accounts.set_password("ada", PASSWORD)
    visitor = desk.visitor()
    for answer in (visitor.get("/log-in"), visitor.log_in("ada")):
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert "Domain" not in cookie
    assert make_desk().site.visits.session_cookie != desk.site.visits.session_cookie  # ports share cookies


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:8021", "127.0.0.1:8020.evil.example", ""])
def test_other_host_names_reach_no_page(public_desk: Desk, host: str) -> None:
    answer = public_desk.visitor().client.get("/", headers={"host": host})
    assert answer.status_code == 400
    assert "not one under which" in answer.text


def test_a_form_without_its_token_changes_nothing(desk: Desk) -> None:
    ada = desk.member("ada", "viewer")
    for token in ("", "0" * 64, "\x00", "é", desk.visitor().token("/log-in")):
        assert ada.client.post("/log-out", data={"csrf": token}).status_code == 403
    assert ada.client.post("/log-out").status_code == 403
    assert ada.get("/").status_code == 200  # still logged in
    assert ada.post("/log-out", {}, page="/").status_code == 303
    assert ada.get("/").headers["location"] == "/log-in?next=/"


def test_htmx_sends_the_token_in_a_header(desk: Desk) -> None:
    ada = desk.member("ada", "viewer")
    answer = ada.client.post("/log-out", headers={"x-csrf-token": ada.token("/"), "hx-request": "true"})
    assert answer.headers["hx-redirect"] == "/log-in"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8021"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_from_another_site_is_refused_with_its_token_too(desk: Desk, headers: dict[str, str]) -> None:
    ada = desk.member("ada", "viewer")
    form = {"csrf": ada.token("/"), "purpose": "typed elsewhere"}
    answer = ada.client.post("/log-out", data=form, headers=headers)
    assert answer.status_code == 403
    assert "not sent from here" in answer.text
    assert "typed elsewhere" not in answer.text
    assert ada.client.post("/log-out", data=form, headers={"origin": f"http://{HOST}"}).status_code == 303


def test_every_page_that_changes_something_asks_for_the_token(desk: Desk) -> None:
    ada = desk.member("ada", "administrator")
    changing = [
        (route.path, method)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
        if method not in ("GET", "HEAD", "OPTIONS") and not route.path.startswith("/api/")
    ]
    assert ("/log-in", "POST") in changing
    for path, method in changing:
        assert ada.client.request(method, path).status_code == 403, path


def test_what_was_typed_outlasts_an_expired_session(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = desk.member("ada", "viewer")
    token = ada.token("/password")
    monkeypatch.setattr("tacit.web.session.IDLE_SECONDS", -1.0)
    form = {"csrf": token, "purpose": "a long <b>text</b>", "password": "not this"}
    answer = ada.client.post("/password", data=form)
    assert answer.status_code == 403
    assert "session has ended" in answer.text
    assert "a long &lt;b&gt;text&lt;/b&gt;" in answer.text
    assert "not this" not in answer.text


def test_a_session_ends_when_it_is_not_used_and_after_half_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1e9]
    monkeypatch.setattr("time.time", lambda: now[0])
    sessions = SiteSessions(open_store(None))
    key = sessions.begin("ada")
    for _ in range(13):
        assert sessions.account_of(key) == "ada"
        now[0] += IDLE_SECONDS - 100
    assert sessions.account_of(key) is None  # twelve hours are over, although it was used
    key = sessions.begin("ada")
    now[0] += IDLE_SECONDS + 1
    assert sessions.account_of(key) is None


def test_bodies_have_a_limit_whether_or_not_they_say_their_length(desk: Desk) -> None:
    visitor = desk.visitor()
    token = visitor.token("/log-in")
    huge = b"name=" + b"x" * (1 << 20)
    headers = {"content-type": "application/x-www-form-urlencoded", "x-csrf-token": token}
    assert visitor.client.post("/log-in", content=huge, headers=headers).status_code == 413

    async def parts():
        yield huge[:1000]
        yield huge

    answer = visitor.client.post("/log-in", content=parts(), headers=headers)
    assert answer.status_code == 413
    assert "too much at once" in answer.text
    lying = {**headers, "content-length": "9" * 30}
    assert visitor.client.post("/log-in", content=b"", headers=lying).status_code == 413


def test_an_error_of_ours_tells_nothing_and_has_the_headers() -> None:
    router = APIRouter()

    @router.get("/fails")
    async def fails(request: Request) -> None:
        raise RuntimeError("the secret of the house")

    site = Site(SiteSettings(name="A site", hosts=own_hosts(8020)), open_store(None))
    noted: list[Exception] = []
    site.on_failure = noted.append
    answer = Client(make_app(site, [router])).get("/fails")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["content-security-policy"] == POLICY
    assert [str(error) for error in noted] == ["the secret of the house"]


def test_error_pages_have_the_look_of_the_site(desk: Desk) -> None:
    answer = desk.visitor().get("/nothing")
    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    assert 'href="/static/site.css' in answer.text
    answer = desk.visitor().get("/api/v1/nothing")
    assert answer.json()["error"]["status"] == 404
