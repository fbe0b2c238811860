"""Logging in and out, and passwords."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import pytest

from tacit.errors import SettingError
from tacit.web.account import ONE_TIME_DAYS, Accounts, fits
from tacit.web.session import Attempts
from tacit.web.store import open_store
from tests.web.conftest import PASSWORD, Desk


def test_the_first_password_must_be_changed_before_anything_else(desk: Desk) -> None:
    given = desk.site.accounts.add("ada", "viewer")
    ada = desk.visitor()
    assert ada.log_in("ada", given).headers["location"] == "/password"
    assert ada.get("/").headers["location"] == "/password"
    form = {"password": given, "new_password": PASSWORD, "again_password": PASSWORD}
    assert ada.post("/password", form).headers["location"] == "/"
    assert "Your password is changed" in ada.get("/").text
    assert "Your password is changed" not in ada.get("/").text  # told once
    assert desk.visitor().log_in("ada", given).status_code == 401
    assert desk.visitor().log_in("ada").status_code == 303


def test_a_new_password_ends_the_sessions_elsewhere(desk: Desk) -> None:
    here = desk.member("ada", "viewer")
    there = desk.visitor()
    there.log_in("ada")
    new = "another good password"
    here.post("/password", {"password": PASSWORD, "new_password": new, "again_password": new})
    assert here.get("/").status_code == 200
    assert there.get("/").status_code == 303


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"password": "wrong"}, "not your present password"),
        ({"new_password": "short"}, "has 5 characters"),
        ({"new_password": "x" * 300}, "200 is the most"),
        ({"new_password": "adaadaadaada"}, "same few characters"),
        ({"again_password": "something else here"}, "differ"),
        ({"new_password": PASSWORD, "again_password": PASSWORD}, "present password"),
    ],
)
def test_a_password_that_will_not_do_is_told_beside_its_field(desk: Desk, form: dict[str, str], told: str) -> None:
    ada = desk.member("ada", "viewer")
    good = {"password": PASSWORD, "new_password": "another good one", "again_password": "another good one"}
    answer = ada.post("/password", {**good, **form})
    assert answer.status_code == 400
    assert told in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert PASSWORD not in answer.text


def test_wrong_names_and_wrong_passwords_look_alike(desk: Desk) -> None:
    desk.member("ada", "viewer")
    wrong = desk.visitor().log_in("ada", "not this one")
    nobody = desk.visitor().log_in("bob", "not this one")
    assert wrong.status_code == nobody.status_code == 401
    assert re.sub("[0-9a-f]{64}", "", wrong.text.replace("ada", "bob")) == re.sub("[0-9a-f]{64}", "", nobody.text)


def test_guesses_are_limited_and_others_are_not_shut_out(desk: Desk) -> None:
    desk.member("ada", "viewer")
    desk.site.accounts.add("bob", "viewer")
    guesser = desk.visitor()
    for _ in range(Attempts.PER_PAIR):
        assert guesser.log_in("ada", "a guess").status_code == 401
    answer = guesser.log_in("ada")  # the right one, too late
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert guesser.log_in("bob", "a guess").status_code == 401
    elsewhere = desk.visitor(address="192.0.2.7")
    assert elsewhere.log_in("ada").status_code == 303


def test_a_log_in_begins_a_new_session(desk: Desk) -> None:
    """Nobody can be logged into a session whose key somebody else chose."""
    desk.member("ada", "viewer")
    visitor = desk.visitor()
    visitor.client.cookies.set(desk.site.visits.session_cookie, "chosen-by-another")
    visitor.log_in("ada")
    assert desk.site.sessions.account_of("chosen-by-another") is None
    assert visitor.get("/").status_code == 200


def test_a_disabled_account_is_out_at_once(desk: Desk) -> None:
    desk.member("root", "administrator")
    ada = desk.member("ada", "viewer")
    desk.site.accounts.disable("ada")
    assert ada.get("/").status_code == 303
    assert desk.visitor().log_in("ada").status_code == 401


@pytest.mark.parametrize(
    "next_", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "/a\nb"]
)
def test_logging_in_leads_nowhere_else(desk: Desk, next_: str) -> None:
    desk.member("ada", "viewer")
    visitor = desk.visitor()
    form = {"name": "ada", "password": PASSWORD, "next": next_}
    assert visitor.post("/log-in", form).headers["location"] == "/"


def test_the_database_has_no_password_and_no_session_key() -> None:
    database = open_store(None)
    accounts = Accounts(database)
    password = accounts.add("ada", "administrator")
    assert fits(password, accounts.password_hash("ada"))
    assert not any(password in line for line in database.iterdump())
    with pytest.raises(SettingError, match="last administrator"):
        accounts.disable("ada")
    assert not accounts.get("ada").disabled


@pytest.mark.parametrize("name", ["", "Ada", "a b", "<script>", "a" * 41, "ada\x1b[2K", "../ada"])
def test_odd_names_are_refused(name: str) -> None:
    with pytest.raises(SettingError, match="cannot be an account's name"):
        Accounts(open_store(None)).add(name, "viewer")


def test_those_who_know_their_password_may_log_in_as_often_as_they_like() -> None:
    with closing(open_store(None)) as database:
        attempts = Attempts(database)
        for number in range(Attempts.PER_ADDRESS + 5):
            name = f"account {number}"
            assert attempts.seconds_to_wait(name, "192.0.2.1") == 0
            attempts.failed(name, "192.0.2.1")  # counted before the password is looked at
            attempts.succeeded(name, "192.0.2.1")
        for _ in range(Attempts.PER_ADDRESS):
            attempts.failed("somebody", "192.0.2.1")
        assert attempts.seconds_to_wait("anybody", "192.0.2.1") > 0


def test_a_one_time_password_expires_and_a_chosen_one_does_not(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    password = desk.site.accounts.add("ada", "viewer")
    desk.member("bob", "viewer")
    late = time.time() + ONE_TIME_DAYS * 86400 + 1
    monkeypatch.setattr("tacit.web.account.time.time", lambda: late)
    answer = desk.visitor().log_in("ada", password)
    assert answer.status_code == 401
    assert "This one-time password has expired: it was good for 7 days." in answer.text
    assert "has expired" not in desk.visitor().log_in("ada", "a wrong one").text
    assert desk.visitor().log_in("bob").status_code == 303
    again = desk.site.accounts.reset("ada")
    assert desk.visitor().log_in("ada", again).status_code == 303
    desk.site.accounts.set_password("ada", PASSWORD)
    monkeypatch.setattr("tacit.web.account.time.time", lambda: late + 10 * 365 * 86400)
    assert not desk.site.accounts.get("ada").is_expired


def test_a_store_of_before_is_brought_up_to_date_and_its_one_time_passwords_expire(tmp_path: Path) -> None:
    path = tmp_path / "web.db"
    with closing(open_store(path)) as store:
        accounts = Accounts(store)
        accounts.add("new", "viewer")
        accounts.add("old", "viewer")
        accounts.set_password("old", PASSWORD)
        store.execute("ALTER TABLE account DROP COLUMN expires")
        store.execute("PRAGMA user_version = 1")
    with closing(open_store(path)) as store:
        found = {each.name: each.expires - each.created for each in Accounts(store).all() if each.must_change}
        assert found == {"new": pytest.approx(ONE_TIME_DAYS * 86400)}
        assert Accounts(store).get("old").expires == 0


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.8", False),
        ("a pipe", "a pipe", True),
        ("a pipe", "", False),
    ],
)
def test_attempts_are_counted_by_networks_of_ipv6_and_addresses_of_ipv4(first: str, second: str, is_same: bool) -> None:
    with closing(open_store(None)) as store:
        attempts = Attempts(store)
        for _ in range(Attempts.PER_PAIR):
            attempts.failed("ada", first)
        assert (attempts.seconds_to_wait("ada", second) > 0) == is_same
        assert attempts.seconds_to_wait("ada", first) > 0
