"""Single sign-on by OpenID Connect."""

from __future__ import annotations

import io
from pathlib import Path

import httpx
import pytest
from joserfc.jwk import RSAKey

from tacit.errors import SettingError
from tacit.federation.nats.journal import Journal
from tacit.web.coordinator.service import CoordinatorSite, WebWish
from tacit.web.coordinator.web_file import FILE, WebFile
from tacit.web.open_id import Provider, ProviderSettings
from tests.web.conftest import PASSWORD, Client, Desk, Visitor
from tests.web.provider import ISSUER, TestProvider

ADA = {"sub": "ada-17", "email": "Ada@Example.org", "email_verified": True}


@pytest.fixture
def provider(desk: Desk) -> TestProvider:
    made = TestProvider(claims=dict(ADA))
    settings = ProviderSettings(label="the university", issuer=ISSUER, client_id="tacit", client_secret="the secret")
    desk.site.provider = Provider(settings, transport=made)
    desk.site.accounts.add("ada", "researcher", email="ada@example.org")
    return made


def sign_on(visitor: Visitor, provider: TestProvider, place: str = "/") -> httpx.Response:
    location = visitor.get(f"/sign-on?next={place}").headers["location"]
    return visitor.client.get("/sign-on/back", params=provider.confirm(location))


def test_a_person_with_an_account_is_logged_in(desk: Desk, provider: TestProvider) -> None:
    visitor = desk.visitor()
    assert "Log in with the university" in visitor.get("/log-in").text
    assert sign_on(visitor, provider, "/tokens").headers["location"] == "/tokens"
    assert visitor.get("/tokens").status_code == 200
    account = desk.site.accounts.get("ada")
    assert account.subject == f"{ISSUER} ada-17"
    assert not account.must_change
    assert "logged in by single sign-on" in [line.what for line in desk.site.audit.lines()]
    assert desk.visitor().log_in("ada").status_code == 401  # the password that was given is void


def test_from_then_on_the_subject_counts_and_not_the_address(desk: Desk, provider: TestProvider) -> None:
    sign_on(desk.visitor(), provider)
    provider.claims = {"sub": "ada-17", "email": "new@example.org", "email_verified": True}
    assert sign_on(desk.visitor(), provider).status_code == 303
    provider.claims = {**ADA, "sub": "somebody-else"}  # who got the address later
    assert sign_on(desk.visitor(), provider).status_code == 403


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "x", "email": "ada@example.org"},
        {"sub": "x", "email": "ada@example.org", "email_verified": False},
        {"sub": "x", "email": "ada@example.org", "email_verified": "true"},
        {"sub": "x", "email": "eve@example.org", "email_verified": True},
        {"sub": "x", "email": "", "email_verified": True},
        {"sub": "x", "email": ["ada@example.org"], "email_verified": True},
        {"sub": "x", "role": "administrator"},
    ],
)
def test_nobody_else_gets_in_and_no_account_is_made(desk: Desk, provider: TestProvider, claims: dict) -> None:
    provider.claims = claims
    visitor = desk.visitor()
    answer = sign_on(visitor, provider)
    assert answer.status_code == 403
    assert "ask the administrator" in answer.text
    assert [(each.name, each.role) for each in desk.site.accounts.all()] == [("ada", "researcher")]
    assert visitor.get("/tokens").status_code == 303


@pytest.mark.parametrize(
    "lie",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another-site"},
        {"aud": ["tacit", "another"], "azp": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"exp": None},
        {"iat": 10**11},
        {"sub": ""},
        {"sub": None},
        {"sub": 5},
    ],
)
def test_a_token_with_one_wrong_claim_is_not_believed(desk: Desk, provider: TestProvider, lie: dict) -> None:
    provider.lies = lie
    answer = sign_on(desk.visitor(), provider)
    assert answer.status_code == 403
    assert "You are not logged in" in answer.text


def test_a_token_that_another_key_signed_is_not_believed(desk: Desk, provider: TestProvider) -> None:
    provider.signing_key = RSAKey.generate_key(2048, {"kid": "a"})
    assert sign_on(desk.visitor(), provider).status_code == 403


def test_an_answer_counts_once_and_for_the_browser_that_asked(desk: Desk, provider: TestProvider) -> None:
    """Nobody can be logged in as somebody else by a link."""
    eve = desk.visitor()
    answer = provider.confirm(eve.get("/sign-on").headers["location"])
    victim = desk.visitor()
    victim.get("/log-in")
    assert victim.client.get("/sign-on/back", params=answer).status_code == 403
    assert eve.client.get("/sign-on/back", params=answer).status_code == 403  # used up
    visitor = desk.visitor()
    answer = provider.confirm(visitor.get("/sign-on").headers["location"])
    assert visitor.client.get("/sign-on/back", params=answer).status_code == 303
    other = desk.visitor()
    assert other.client.get("/sign-on/back", params=answer).status_code == 403


@pytest.mark.parametrize("params", [{}, {"error": "access_denied"}, {"code": "x", "state": "\x00"}, {"state": "é"}])
def test_odd_answers_are_told_in_plain_words(desk: Desk, provider: TestProvider, params: dict[str, str]) -> None:
    answer = desk.visitor().client.get("/sign-on/back", params=params)
    assert answer.status_code == 403
    assert "You are not logged in" in answer.text


def test_a_disabled_account_stays_out(desk: Desk, provider: TestProvider) -> None:
    sign_on(desk.visitor(), provider)
    desk.site.accounts.disable("ada")
    assert sign_on(desk.visitor(), provider).status_code == 403


def test_a_provider_that_is_down_or_elsewhere_is_told(desk: Desk, provider: TestProvider) -> None:
    provider.is_down = True
    assert "does not answer" in desk.visitor().get("/sign-on").text
    provider.is_down = False
    provider.metadata = {"issuer": "https://evil.example"}
    assert "another name" in desk.visitor().get("/sign-on").text
    provider.metadata = {"token_endpoint": "http://id.example.org/token"}
    assert "token_endpoint will not do" in desk.visitor().get("/sign-on").text
    assert desk.visitor().get("/sign-on?next=https://evil.example").status_code == 403


def test_a_chosen_password_stays(desk: Desk, provider: TestProvider) -> None:
    desk.site.accounts.set_password("ada", PASSWORD)
    sign_on(desk.visitor(), provider)
    assert desk.visitor().log_in("ada").status_code == 303


def test_without_a_provider_there_is_no_such_page(desk: Desk) -> None:
    assert desk.visitor().get("/sign-on").status_code == 404
    assert "Log in with" not in desk.visitor().get("/log-in").text


def write(folder: Path, text: str, mode: int = 0o600) -> None:
    (folder / FILE).write_text(text)
    (folder / "secret").write_text("s3\n")
    (folder / "secret").chmod(mode)


GOOD = f"""
[site]
name = "North"

[sign_on]
label = "U"
issuer = "{ISSUER}"
client_id = "t"
client_secret_file = "secret"
"""


def test_the_settings_are_read_from_the_folder(tmp_path: Path) -> None:
    assert WebFile.read(tmp_path).provider is None
    write(tmp_path, GOOD)
    file = WebFile.read(tmp_path)
    assert file.name == "North"
    assert file.provider.client_secret == "s3"
    assert "s3" not in repr(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace("https:", "http:"), "must begin with https"),
        (GOOD.replace("client_id", "client"), "unknown key"),
        (GOOD.replace('label = "U"\n', ""), "label is missing"),
        (GOOD.replace('"secret"', '"nothing"'), "cannot be read"),
        (GOOD.replace("North", "No\\u202erth"), "can be seen"),
        ('[site]\naddress = "http://a.example"', "must be https://HOST"),
        ('[site]\naddress = "https://a.example/tacit"', "must be https://HOST"),
        ("sign_on = 5", "must be a table"),
        ("[sign_on", "is not TOML"),
    ],
)
def test_wrong_settings_are_one_line_that_says_where(tmp_path: Path, text: str, told: str) -> None:
    write(tmp_path, text)
    with pytest.raises(SettingError, match=told) as error:
        WebFile.read(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_behind_a_proxy_with_tls_the_site_has_the_proxys_address(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('[site]\naddress = "https://Studies.example.org"\n')
    site = CoordinatorSite(tmp_path, WebWish(listen="127.0.0.1:0"), Journal("coordinator", io.StringIO()))
    try:
        client = Client(site.app, host="studies.example.org")
        answer = client.get("/log-in")
        assert answer.headers["set-cookie"].startswith("__Host-")
        assert Client(site.app, host="127.0.0.1:8020").get("/log-in").status_code == 400
        site.site.accounts.add("ada", "viewer")
        site.site.accounts.set_password("ada", PASSWORD)
        visitor = Visitor(Client(site.app, host="studies.example.org", scheme="https"))
        token = visitor.token("/log-in")
        form = {"name": "ada", "password": PASSWORD, "csrf": token}
        headers = {"origin": "https://studies.example.org"}
        assert visitor.client.post("/log-in", data=form, headers=headers).status_code == 303
    finally:
        site.close()


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    write(tmp_path, GOOD, mode=0o644)
    with pytest.raises(SettingError, match="chmod 600"):
        WebFile.read(tmp_path)
