"""A coordinator's site in this process, and a visitor who uses its pages as a browser does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from argon2 import PasswordHasher

from tacit.daemon.coordinator.study_store import StudyStore
from tacit.web import account as account_module
from tacit.web.coordinator.application import make_coordinator_site
from tacit.web.site import Site, SiteSettings, own_hosts
from tacit.web.store import open_store
from tests.web.browser import Browser, LiveSite, chromium_browser, live
from tests.web.way import Way, practised

HOST = "127.0.0.1:8020"
PASSWORD = "four words no saying"

STUDY = """
[study]
name = "Readmission"
purpose = "Which patients come back within a month?"

[target]
name = "readmitted"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 110

[[feature]]
name = "ward"
kind = "categorical"
categories = ["surgery", "medicine"]

[privacy]
epsilon = 1.0
"""


class Client:
    """Sends requests to an application in this process, with the cookies of earlier answers."""

    def __init__(self, app: object, *, host: str = HOST, address: str = "127.0.0.1", scheme: str = "http") -> None:
        self.cookies = httpx.Cookies()
        self._transport = httpx.ASGITransport(app, client=(address, 5000))
        self._base = f"{scheme}://{host}"

    def request(self, method: str, path: str, **more: object) -> httpx.Response:
        async def send() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=self._transport, base_url=self._base, cookies=self.cookies, follow_redirects=False
            ) as client:
                answer = await client.request(method, path, **more)
                self.cookies = client.cookies
                return answer

        return asyncio.run(send())

    def get(self, path: str, **more: object) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: object) -> httpx.Response:
        return self.request("POST", path, **more)


class Visitor:
    """A browser without JavaScript: keeps cookies and fills in the forms that it was shown."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def get(self, path: str, **more: object) -> httpx.Response:
        return self.client.get(path, **more)

    def token(self, path: str) -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.get(path).text)
        assert found, f"{path} has no form"
        return found[1]

    def post(self, path: str, form: dict[str, str], *, page: str | None = None) -> httpx.Response:
        return self.client.post(path, data={"csrf": self.token(page or path), **form})

    def log_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        return self.post("/log-in", {"name": name, "password": password})


@dataclass
class Desk:
    site: Site
    studies: StudyStore
    app: object

    def visitor(self, **more: object) -> Visitor:
        return Visitor(Client(self.app, **more))

    def member(self, name: str, role: str) -> Visitor:
        """Somebody who has an account, has chosen a password and is logged in."""
        self.site.accounts.add(name, role)
        self.site.accounts.set_password(name, PASSWORD)
        visitor = self.visitor()
        assert visitor.log_in(name).status_code == 303
        return visitor


@pytest.fixture(autouse=True)
def _light_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that take no time: what is tested is who gets in, not how long a guess takes."""
    light = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(account_module, "_HASHER", light)
    monkeypatch.setattr(account_module, "_NOBODY", light.hash("nobody"))


def make_desk(
    *, is_public: bool = False, tls: bool = False, port: int = 8020, hosts: tuple[str, ...] = (), **tools: object
) -> Desk:
    studies = StudyStore(None)
    settings = SiteSettings(name="Tacit coordinator", hosts=own_hosts(port) | {*hosts}, tls=tls)
    site, app = make_coordinator_site(settings, open_store(None), studies, is_public=is_public, **tools)  # type: ignore[arg-type]
    site.on_failure = _raise
    return Desk(site, studies, app)


def _raise(error: Exception) -> None:
    """An error of ours fails the test that meets it."""
    raise error


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def public_desk() -> Desk:
    return make_desk(is_public=True)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a module: its event loop must not be there when others run theirs."""
    with chromium_browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    yield chromium
    chromium.close_pages()


@dataclass
class LiveDesk(Desk):
    live: LiveSite

    @property
    def url(self) -> str:
        return self.live.url

    def new_account(self, name: str, role: str) -> None:
        """An account that has chosen its password."""
        self.live.call(lambda: (self.site.accounts.add(name, role), self.site.accounts.set_password(name, PASSWORD)))


@pytest.fixture
def live_desk() -> Iterator[LiveDesk]:
    """A public coordinator's site that listens."""
    made: list[Desk] = []

    def make(port: int) -> tuple[object, object]:
        made.append(make_desk(is_public=True, port=port))
        return made[0].app, made[0].site.live

    with live(make) as site:
        yield LiveDesk(made[0].site, made[0].studies, made[0].app, live=site)


@pytest.fixture
def way(tmp_path: Path, browser: Browser) -> Iterator[Way]:
    """A practice federation, and people who use its sites."""
    with practised(tmp_path / "practice", browser) as made:
        yield made
