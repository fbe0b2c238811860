"""What holds for every test: a slow machine is no fault."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("tacit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tacit")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests run the same lines a thousand times: measuring their coverage would cost minutes and tell nothing."""
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker("no_cover")
