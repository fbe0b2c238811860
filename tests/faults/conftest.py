"""The federation that faults are done to."""

from __future__ import annotations

from ..daemon.conftest import federation, patient

__all__ = ["federation", "patient"]  # fixtures
