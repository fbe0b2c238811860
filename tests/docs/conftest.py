"""The scripts of docs/, which are no package, and the site that they build."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.web.browser import Browser, chromium_browser

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    folder = str(ROOT / "docs")
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module(name)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    script("make_site").build(folder, folder.parent / "work")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a module: its event loop must not be there when others run theirs."""
    with chromium_browser() as browser:
        yield browser
