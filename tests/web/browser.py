"""Pages in a real browser: a site that listens, Chromium, pictures of pages, and what a screen reader would miss.

    def test_it(browser, tmp_path):
        with live(make_site) as url:
            page = browser.page()
            page.goto(url)
            browser.check(page)                       # nothing serious for axe, no error in the console
            browser.pictures(page, "catalogue")       # at 1280 and 390 pixels, light and dark

Pictures go to the folder that TACIT_PICTURES names; without it they are taken and thrown away.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tacit.web.live import Broadcaster
from tacit.web.serving import Listen, SiteServer

SIZES = {"1280": (1280, 900), "390": (390, 844)}
SCHEMES = ("light", "dark")
_SECONDS = 120.0  # only bounds a failure


class LiveSite:
    """A site that listens on this machine, on a thread and an event loop of its own."""

    def __init__(self, make: Callable[[int], tuple[Any, Broadcaster]]) -> None:
        """`make` gets the port and returns the application and its broadcaster."""
        self._server = SiteServer(Listen(), Path(tempfile.gettempdir()))
        self.url = self._server.url
        self._app, self._broadcaster = make(self._server.port)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(_SECONDS)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.call_soon(self._ready.set)
        await self._server.serve(self._app, self._stop, self._broadcaster.close)

    def call(self, act: Callable[[], Any]) -> Any:
        """Do something on the site's own thread, as a handler would; what `act` returns."""

        async def acting() -> Any:
            return act()

        return asyncio.run_coroutine_threadsafe(acting(), self._loop).result(_SECONDS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive(), "the site did not stop"


@contextmanager
def live(make: Callable[[int], tuple[Any, Broadcaster]]) -> Iterator[LiveSite]:
    site = LiveSite(make)
    try:
        yield site
    finally:
        site.close()


class Browser:
    """Chromium, and what tests do with its pages."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self._contexts: list[Any] = []

    def page(self, *, size: str = "1280", scheme: str = "light", javascript: bool = True) -> Any:
        """A page of a person of its own: no other page's cookies."""
        width, height = SIZES[size]
        context = self._chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, java_script_enabled=javascript,
            ignore_https_errors=True,
        )  # fmt: skip
        context.set_default_timeout(_SECONDS * 1000)
        self._contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        return page

    def log_in(self, page: Any, url: str, name: str, password: str) -> None:
        page.goto(f"{url}/log-in")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(lambda at: not at.endswith("/log-in"))

    def check(self, page: Any) -> None:
        """Nothing that axe calls serious or critical, no error in the console, nothing wider than the window."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(page).response["violations"]
        bad = [
            f"{each['id']}: {each['help']}: {node['html'][:200]}"
            for each in found
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]
        assert not bad, f"{page.url}: " + "\n".join(bad)
        assert not page.problems, f"{page.url}: {page.problems}"
        wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= window, f"{page.url} is {wide} pixels wide in a window of {window}"
        assert page.locator(".mark span").bounding_box()["width"] > 40, f"{page.url}: the site's name is squeezed away"

    def pictures(self, page: Any, name: str) -> None:
        """The page at both widths, light and dark, each checked."""
        folder = os.environ.get("TACIT_PICTURES")
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                self.check(page)
                target = Path(folder) / f"{name}-{size}-{scheme}.png" if folder else None
                page.screenshot(path=target, full_page=True)
        page.set_viewport_size(dict(zip(("width", "height"), SIZES["1280"], strict=True)))
        page.emulate_media(color_scheme="light")

    def close_pages(self) -> None:
        for context in self._contexts:
            context.close()
        self._contexts.clear()


@contextmanager
def chromium_browser() -> Iterator[Browser]:
    """Chromium; skips, and says so, where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium was found; install Debian's package chromium to test pages in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield Browser(chromium)
        finally:
            chromium.close()
