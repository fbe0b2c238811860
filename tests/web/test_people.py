"""Accounts, the audit trail and tokens."""

from __future__ import annotations

import re

import pytest

from tacit.web.token import ApiTokens
from tests.web.conftest import Desk

_SECRET = re.compile(r'id="secret">([^<]+)<')
NONCE = re.compile(r'name="nonce" value="([^"]+)"')


@pytest.mark.parametrize("path", ["/accounts", "/audit", "/tokens"])
def test_pages_about_people_are_for_the_right_role(desk: Desk, path: str) -> None:
    assert desk.visitor().get(path).headers["location"] == f"/log-in?next={path}"
    answer = desk.member("bob", "approver").get(path)
    assert answer.status_code == (200 if path == "/tokens" else 403)
    assert desk.member("root", "administrator").get(path).status_code == 200


def test_an_administrator_makes_an_account_and_its_password_is_shown_once(desk: Desk) -> None:
    root = desk.member("root", "administrator")
    form = {"name": "ada", "role": "researcher", "email": "Ada@example.org", "nonce": "n1"}
    answer = root.post("/accounts", form)
    password = _SECRET.search(answer.text)[1]
    assert desk.visitor().log_in("ada", password).headers["location"] == "/password"
    again = root.post("/accounts", form)  # back button, and sent once more
    assert again.status_code == 303
    page = root.get("/accounts").text
    assert "made already" in page
    assert password not in page
    assert "made an account with the role researcher" in root.get("/audit").text
    assert desk.site.accounts.get("ada").email == "ada@example.org"


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"name": "<script>"}, "cannot be an account&#39;s name"),
        ({"name": "root"}, "already"),
        ({"role": "king"}, "no role"),
        ({"email": "nowhere"}, "no e-mail address"),
        ({"name": "a\x1b[2K"}, "\\x1b[2K"),
    ],
)
def test_what_cannot_be_an_account_is_told_beside_its_field(desk: Desk, form: dict[str, str], told: str) -> None:
    root = desk.member("root", "administrator")
    answer = root.post("/accounts", {"name": "ada", "role": "viewer", "email": "", **form})
    assert answer.status_code == 400
    assert told in answer.text
    assert "\x1b" not in answer.text
    assert desk.site.accounts.find("ada") is None


def test_an_administrator_changes_accounts_but_not_the_last_administrator(desk: Desk) -> None:
    root = desk.member("root", "administrator")
    ada = desk.member("ada", "viewer")
    root.post("/accounts/ada/role", {"role": "approver"}, page="/accounts")
    assert desk.site.accounts.get("ada").role == "approver"
    root.post("/accounts/ada/disable", {}, page="/accounts")
    assert ada.get("/").status_code == 303
    root.post("/accounts/ada/enable", {}, page="/accounts")
    password = _SECRET.search(root.post("/accounts/ada/reset", {}, page="/accounts").text)[1]
    assert ada.log_in("ada").status_code == 401
    assert ada.log_in("ada", password).status_code == 303
    root.post("/accounts/root/role", {"role": "viewer"}, page="/accounts")
    root.post("/accounts/root/disable", {}, page="/accounts")
    assert "last administrator" in root.get("/accounts").text
    assert desk.site.accounts.get("root").role == "administrator"
    assert root.post("/accounts/nobody/reset", {}, page="/accounts").status_code == 404
    assert root.post("/accounts/ada/crown", {}, page="/accounts").status_code == 404


def test_nobody_else_changes_accounts(desk: Desk) -> None:
    eve = desk.member("eve", "approver")
    for path in ("/accounts", "/accounts/eve/role"):
        form = {"name": "evil", "role": "administrator"}
        assert eve.post(path, form, page="/tokens").status_code == 403
    assert desk.site.accounts.find("evil") is None
    assert desk.site.accounts.get("eve").role == "approver"


def test_a_token_speaks_for_its_account_with_no_more_than_its_role(desk: Desk) -> None:
    ada = desk.member("ada", "researcher")
    answer = ada.post("/tokens", {"label": "nightly", "role": "viewer", "days": "30"})
    token = _SECRET.search(answer.text)[1]
    tokens: ApiTokens = desk.site.tokens
    assert tokens.account_of(token).role == "viewer"
    assert token.rpartition("_")[2] not in ada.get("/tokens").text
    desk.site.accounts.set_role("ada", "approver")
    assert tokens.account_of(token).role == "viewer"
    for wrong in (token[:-1], f"{token}0", token.replace("tacit_", ""), "", "_", "tacit__", "\x00"):
        assert tokens.account_of(wrong) is None, wrong
    (listed,) = tokens.of("ada")
    eve = desk.member("eve", "administrator")
    assert eve.post(f"/tokens/{listed.id}/revoke", {}, page="/tokens").status_code == 404
    assert ada.post(f"/tokens/{listed.id}/revoke", {}, page="/tokens").status_code == 303
    assert tokens.account_of(token) is None


def test_tokens_end_with_their_time_and_their_account(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.member("root", "administrator")
    desk.member("ada", "researcher")
    account, tokens = desk.site.accounts.get("ada"), desk.site.tokens
    token = tokens.make(account, role="researcher", label="a", days=1)
    desk.site.accounts.set_role("ada", "viewer")
    assert tokens.account_of(token).role == "viewer"
    desk.site.accounts.disable("ada")
    assert tokens.account_of(token) is None
    desk.site.accounts.disable("ada", disabled=False)
    now = __import__("time").time()
    monkeypatch.setattr("time.time", lambda: now + 86401)
    assert tokens.account_of(token) is None


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"role": "administrator"}, "cannot have the role"),
        ({"days": "1000"}, "up to 366 days"),
        ({"days": "nan"}, "up to 366 days"),
        ({"days": "many"}, "a number of days"),
        ({"label": ""}, "what the token is for"),
        ({"label": "x" * 81}, "what the token is for"),
    ],
)
def test_what_cannot_be_a_token_is_told(desk: Desk, form: dict[str, str], told: str) -> None:
    ada = desk.member("ada", "researcher")
    answer = ada.post("/tokens", {"label": "x", "role": "viewer", "days": "30", **form})
    assert answer.status_code == 400
    assert told in answer.text
    assert desk.site.tokens.of("ada") == []
