"""How the tests themselves are shared out: those of one group meet in one worker."""

from __future__ import annotations

import pytest


def test_workers_are_told_of_groups(request: pytest.FixtureRequest) -> None:
    """What shares out reads a test's group from its name; a group that is not in it is not kept together."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("runs under pytest -n 2 --dist loadgroup")
    marked = [(item, item.get_closest_marker("xdist_group")) for item in request.session.items]
    named = {item.nodeid: mark.args[0] for item, mark in marked if mark is not None}
    assert all(name.rpartition("@")[2] == group for name, group in named.items())


@pytest.fixture(scope="module")
def shared() -> object:
    return object()


@pytest.mark.parametrize("case", [1, 2])
def test_what_a_file_shares_makes_a_group(request: pytest.FixtureRequest, shared: object, case: int) -> None:
    mark = request.node.get_closest_marker("xdist_group")
    assert mark is not None
    assert mark.args[0] == "tests/test_workers.py"
    assert (request.node.get_closest_marker("no_cover") is not None) is (case == 2)  # the first case is measured
