"""What holds for every test: a slow machine is no fault, and no work is done twice."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Two workers on two cores: threads of linear algebra would wait for each other. Read when NumPy is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("tacit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tacit")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Share the tests out between workers, and say which of them are measured."""
    traced: set[str] = set()
    for item in items:
        if not _is_measured(item, traced):
            item.add_marker("no_cover")
        if item.get_closest_marker("xdist_group") is None and _shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    yield  # folders add groups of their own
    if getattr(config.option, "loadgroup", False):
        for item in items:
            _name_group(item)
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)  # no worker waits for them at the end


def _is_measured(item: pytest.Item, traced: set[str]) -> bool:
    """Whether the lines that a test runs are counted: those of each test's first case, if it is not slow.

    Other cases and slow tests run the same lines again: counting them costs minutes and tells next to nothing.
    """
    name = item.nodeid.partition("[")[0]
    if name in traced or item.get_closest_marker("slow") is not None:
        return False
    traced.add(name)
    return True


def _shares_a_fixture(item: pytest.Item) -> bool:
    """Whether a test uses something that was made for its whole file: two workers would make it twice."""
    found = getattr(item, "_fixtureinfo", None)
    made = found.name2fixturedefs.values() if found is not None else ()
    return any(fixture.scope == "module" for all_ in made for fixture in all_)


def _name_group(item: pytest.Item) -> None:
    """Let xdist see a test's group: it reads that from the name, which it cannot change itself since pytest 9.2.

    Without this every test is a group of its own, in silence, and both workers make what a group shares (xdist's issue
    1386). A second suffix, from an xdist that is mended, changes nothing.
    """
    group = item.get_closest_marker("xdist_group")
    if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
        item._id = type(item._id).parse(f"{item.nodeid}@{group.args[0]}")  # type: ignore[attr-defined]
