"""A practice federation in a browser: what each person does there, for the tests of the whole way."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.network.test_practice import practising
from tests.daemon.conftest import wait_for
from tests.web.browser import Browser

PASSWORD = "four words no saying"
STUDY = """
[study]
name = "Who comes back"
purpose = "Which patients come back within a month of going home?"

[target]
name = "readmitted"
classes = ["no", "yes"]

[[feature]]
name = "age"
kind = "numeric"
low = 18
high = 100

[[feature]]
name = "days_in_hospital"
kind = "numeric"
low = 0
high = 30

[[feature]]
name = "earlier_admissions"
kind = "numeric"
low = 0
high = 8

[[feature]]
name = "emergency"
kind = "binary"
values = ["no", "yes"]

[method]
name = "private-newton"

[privacy]
epsilon = 1.0

[federation]
quorum = 3
parties = ["north", "south", "west"]
"""


def command(*words: object) -> str:
    """What a `tacit` command prints; it must end well."""
    done = subprocess.run(
        [sys.executable, "-m", "tacit.cli.main", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Way:
    """The practice federation, and who is logged in where."""

    def __init__(self, folder: Path, browser: Browser, said: str) -> None:
        self.folder, self.browser = folder, browser
        found = re.findall(r"(\w+)\s+│ (http://\S+)\s+│ (\w+)\s+│ ([a-z2-7-]{19})", said)
        self.entries = {
            who if account == "owner" else account: (url, account, once) for who, url, account, once in found
        }
        assert set(self.entries) == {"ada", "ben", "root", "north", "south", "west"}
        self._pages: dict[str, Any] = {}

    def page(self, name: str) -> Any:
        """The page of a person, who logs in with the one-time password and chooses another."""
        if name not in self._pages:
            url, account, once = self.entries[name]
            page = self.browser.page()
            self.browser.log_in(page, url, account, once)
            page.get_by_label("Present password").fill(once)
            page.get_by_label("New password", exact=True).fill(PASSWORD)
            page.get_by_label("The new password again").fill(PASSWORD)
            page.get_by_role("button", name="Change the password").click()
            page.get_by_text("Your password is changed.").wait_for()
            self._pages[name] = page
        return self._pages[name]

    def url(self, name: str) -> str:
        return self.entries[name][0]

    def write(self, text: str) -> str:
        """Ada makes a draft of a study file, and sends it to review; the study's address."""
        ada = self.page("ada")
        ada.goto(f"{self.url('ada')}/studies/new")
        ada.locator("details", has=ada.locator("#f-file")).locator("summary").click()
        ada.get_by_label("A study file").set_input_files(
            {"name": "study.toml", "mimeType": "text/plain", "buffer": text.encode()}
        )
        ada.get_by_role("button", name="Read the file").click()
        ada.locator('input[value="Who comes back"]').wait_for()
        ada.get_by_role("button", name="Save as a draft").click()
        ada.get_by_text("The draft is kept.").wait_for()
        self.browser.pictures(ada, "way-editor")
        return self.review(ada)

    def review(self, ada: Any) -> str:
        place = str(ada.url).partition("?")[0].removesuffix("/edit")
        ada.get_by_role("button", name="Send to review").click()
        ada.wait_for_url(lambda at: "/edit" not in at)
        return place

    def approve(self, place: str) -> str:
        """Ben reads, signs with a key of his own and approves; Ada publishes. Returns the digest."""
        ben, ada = self.page("ben"), self.page("ada")
        ben.goto(place)
        file = self.folder / "read.toml"
        file.write_bytes(ben.request.get(f"{place}/file").body())
        digest = str(ben.locator("dd code").last.text_content())
        words = ("approver", "sign", file, "--author", "ada", "--folder", self.folder / "approver", "--digest", digest)
        ben.get_by_label("Signature").fill(command(*words))
        ben.get_by_role("button", name="Approve").click()
        ben.get_by_text("Approved. Parties verify your signature themselves.").wait_for()
        ada.goto(place)
        ada.get_by_role("button", name="Publish to the parties").click()
        ada.get_by_text("Published. Every party can read it and opt in.").wait_for()
        return digest

    def consent(self, name: str, digest: str, others: tuple[str, ...]) -> None:
        """An owner reads, accepts the others by their fingerprints, and takes part, or agrees anew."""
        page = self.page(name)
        here = f"{self.url(name)}/studies/{digest}"
        wait_for(lambda: page.request.get(here).status == 200, f"{name} is told of the study")
        for other in others:
            self._accept(page, here, other)
        page.goto(here)
        page.get_by_label("I have read").check()
        page.get_by_role("button", name=re.compile("^(Take part|Agree anew)$")).click()
        page.get_by_text("You take part in").wait_for()

    def _accept(self, page: Any, here: str, other: str) -> None:
        wait_for(lambda: f"<strong>{other}</strong>" in page.request.get(here).text(), f"the news of {other}")
        page.goto(here)
        box = page.get_by_label(f"{other} told me this by telephone")
        if box.count():
            box.check()
            page.get_by_role("button", name=f"Accept {other}").click()
            page.get_by_text(f"{other} is accepted.").wait_for()

    def leave(self, name: str, digest: str) -> None:
        """An owner leaves a study."""
        page = self.page(name)
        page.goto(f"{self.url(name)}/studies/{digest}")
        page.get_by_role("button", name="Leave this study").click()
        page.get_by_text("You have left Who comes back.").wait_for()

    def run(self, place: str) -> None:
        """Ada runs a study to its end."""
        self.start(place)
        self.wait_until_finished(place)

    def start(self, place: str) -> Any:
        """Ada starts the run; the part of the page, which is not loaded again, that moves by itself."""
        ada = self.page("ada")
        ada.goto(place)
        ada.get_by_role("button", name="Start the run").click()
        ada.get_by_text("The run has begun.").wait_for()
        live = ada.get_by_label("The run")
        live.get_by_text(re.compile("rounds so far|look 1 of")).first.wait_for()  # the first look may be over by now
        return live

    def wait_until_finished(self, place: str) -> None:
        wait_for(lambda: self._is_finished(place), "the run's end", 600)

    def _is_finished(self, place: str) -> bool:
        ada = self.page("ada")
        told = ada.request.get(place).text()
        assert "The last run stopped" not in told, told
        ada.wait_for_timeout(300)
        return "See the result" in told


@contextlib.contextmanager
def practised(folder: Path, browser: Browser) -> Iterator[Way]:
    """A practice federation in a new folder."""
    with practising("--folder", str(folder)) as practice:
        yield Way(folder, browser, practice.wait_until_ready())


@contextlib.contextmanager
def joined(way: Way, name: str) -> Iterator[None]:
    """A fourth party joins with its invitation, and serves its own site."""
    folder = way.folder / name
    command("party", "init", "--invite", way.folder / f"{name}.invite", "--data", way.folder / f"{name}.csv",
            "--folder", folder)  # fmt: skip
    once = command("party", "password", "--folder", folder).split()[-1]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    log = way.folder / f"{name}.log"
    with log.open("w") as stream:
        words = [sys.executable, "-m", "tacit.cli.main", "party", "serve", "--folder", str(folder), "--web"]
        process = subprocess.Popen([*words, "--web-listen", listen], stdout=stream, stderr=stream, env=dict(os.environ))
    try:
        wait_for(lambda: '"serving"' in log.read_text(), f"{name} serves")
        way.entries[name] = (f"http://{listen}", "owner", once)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)
